#pragma once
// What libcds wants before a map of it can be used: the library and its garbage collector, as long
// as the program lives, and every thread that touches a map made known to it.
//
//   collector::ensure();                     // before a map is made
//   const attached here;                     // in each thread, while it uses one
//
// Thread-safety: all of it.

#include <cds/container/skip_list_map_hp.h>
#include <cds/gc/hp.h>
#include <cds/init.h>

#include <cstddef>
#include <cstdint>

namespace elidex::bench {

class collector {
 public:
  static void ensure() { static const collector only; }

 private:
  static constexpr std::size_t threads_max = 1100;
  // Of all the maps here the skip list takes the most.
  using most_pointers = cds::container::SkipListMap<cds::gc::HP, std::uint64_t, std::uint64_t>;
  struct library {
    library() { cds::Initialize(); }
    ~library() { cds::Terminate(); }
  };
  library library_;
  cds::gc::HP hazard_pointers_{most_pointers::c_nHazardPtrCount, threads_max};
};

class attached {
 public:
  attached() : mine_(!cds::threading::Manager::isThreadAttached()) {
    if (mine_) cds::threading::Manager::attachThread();
  }
  attached(const attached&) = delete;
  attached& operator=(const attached&) = delete;
  ~attached() {
    if (mine_) cds::threading::Manager::detachThread();
  }

 private:
  bool mine_;
};

}  // namespace elidex::bench
