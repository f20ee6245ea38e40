// The main() that elidex-c++ links into a program. It runs the program's own main(), which has been
// renamed. The file also defines how many CPUs the program sees.
#include <dlfcn.h>
#include <unistd.h>

extern "C" {
int elidex_program_main(int argc, char** argv, char** environment);
int elidex_sim_main(int (*program)(int, char**, char**), int argc, char** argv,
                    void (*elide_locks)());
int elidex_sim_cpu_count() noexcept;
void elidex_program_elide_locks();  // preload/simulated_pthread.cpp

// std::thread::hardware_concurrency() asks this.
int get_nprocs() noexcept {
  const int cpus = elidex_sim_cpu_count();
  if (cpus != 0) return cpus;
  using function = int();
  return reinterpret_cast<function*>(::dlsym(RTLD_NEXT, "get_nprocs"))();
}
long sysconf(int name) noexcept {
  const int cpus = elidex_sim_cpu_count();
  if (cpus != 0 && (name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF)) return cpus;
  using function = long(int);
  return reinterpret_cast<function*>(::dlsym(RTLD_NEXT, "sysconf"))(name);
}
}

int main(int argc, char** argv) {
  return elidex_sim_main(elidex_program_main, argc, argv, elidex_program_elide_locks);
}
