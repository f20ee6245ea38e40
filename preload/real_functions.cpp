#include "preload/real_functions.hpp"

#include <dlfcn.h>

#include "preload/symbols.hpp"

namespace elidex::preload {
namespace {

struct function_name {
  const char* name;
  const char* version;  // null: the default one
};

#if defined(__x86_64__)
constexpr const char* condition_version = "GLIBC_2.3.2";  // older conditions were smaller
#else
constexpr const char* condition_version = nullptr;
#endif

template <class F>
void for_each_function(const F& f) noexcept {
  using p = pthread_functions;
  f.template operator()<&p::mutex_lock>(function_name{"pthread_mutex_lock", nullptr});
  f.template operator()<&p::mutex_trylock>(function_name{"pthread_mutex_trylock", nullptr});
  f.template operator()<&p::mutex_timedlock>(function_name{"pthread_mutex_timedlock", nullptr});
  f.template operator()<&p::mutex_clocklock>(function_name{"pthread_mutex_clocklock", nullptr});
  f.template operator()<&p::mutex_unlock>(function_name{"pthread_mutex_unlock", nullptr});
  f.template operator()<&p::mutex_destroy>(function_name{"pthread_mutex_destroy", nullptr});
  f.template operator()<&p::rwlock_rdlock>(function_name{"pthread_rwlock_rdlock", nullptr});
  f.template operator()<&p::rwlock_tryrdlock>(function_name{"pthread_rwlock_tryrdlock", nullptr});
  f.template operator()<&p::rwlock_timedrdlock>(
      function_name{"pthread_rwlock_timedrdlock", nullptr});
  f.template operator()<&p::rwlock_clockrdlock>(
      function_name{"pthread_rwlock_clockrdlock", nullptr});
  f.template operator()<&p::rwlock_wrlock>(function_name{"pthread_rwlock_wrlock", nullptr});
  f.template operator()<&p::rwlock_trywrlock>(function_name{"pthread_rwlock_trywrlock", nullptr});
  f.template operator()<&p::rwlock_timedwrlock>(
      function_name{"pthread_rwlock_timedwrlock", nullptr});
  f.template operator()<&p::rwlock_clockwrlock>(
      function_name{"pthread_rwlock_clockwrlock", nullptr});
  f.template operator()<&p::rwlock_unlock>(function_name{"pthread_rwlock_unlock", nullptr});
  f.template operator()<&p::rwlock_destroy>(function_name{"pthread_rwlock_destroy", nullptr});
  f.template operator()<&p::cond_wait>(function_name{"pthread_cond_wait", condition_version});
  f.template operator()<&p::cond_timedwait>(
      function_name{"pthread_cond_timedwait", condition_version});
  f.template operator()<&p::cond_clockwait>(function_name{"pthread_cond_clockwait", nullptr});
}

}  // namespace

void find_real_functions() noexcept {
  inside_dlsym = true;
  for_each_function([]<auto Member>(function_name which) noexcept {
    void* found =
        which.version == nullptr ? nullptr : ::dlvsym(RTLD_NEXT, which.name, which.version);
    if (found == nullptr) found = ::dlsym(RTLD_NEXT, which.name);
    if (found == nullptr) found = find_in_libc(which.name);
    using function = std::remove_reference_t<decltype(real.*Member)>;
    // relaxed, without a partner: real_is_known publishes them.
    std::atomic_ref(real.*Member)
        .store(reinterpret_cast<function>(found), std::memory_order_relaxed);
  });
  inside_dlsym = false;
  // pairs with the acquire in real_function()
  real_is_known.store(true, std::memory_order_release);
}

void* find_one_in_libc(const void* place_in_real) noexcept {
  void* found = nullptr;
  for_each_function([&]<auto Member>(function_name which) noexcept {
    if (static_cast<const void*>(&(real.*Member)) == place_in_real)
      found = find_in_libc(which.name);
  });
  return found;
}

}  // namespace elidex::preload
