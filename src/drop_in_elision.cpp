#include "elidex/internal/sync/drop_in_elision.hpp"

namespace elidex::internal {

constinit thread_local region_locks<elided_lock> native_region;

}  // namespace elidex::internal
