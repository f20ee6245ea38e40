// How a map isolates its operations. See ordered_map.hpp.
#pragma once

namespace elidex {

enum class synchronization {
  automatic,   // hardware if htm::capability().rtm_commits, otherwise optimistic
  hardware,    // hardware transactions; one that does not commit takes a lock
  optimistic,  // version locks; readers validate the version
};

}  // namespace elidex
