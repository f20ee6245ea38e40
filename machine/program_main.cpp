// main() of a program that elidex-c++ has linked. The program's own one has another name.

extern "C" {
int elidex_program_main(int argc, char** argv);
int elidex_sim_main(int (*program)(int, char**), int argc, char** argv, void (*elide_locks)());
void elidex_program_elide_locks();  // preload/simulated_pthread.cpp
}

int main(int argc, char** argv) {
  return elidex_sim_main(elidex_program_main, argc, argv, elidex_program_elide_locks);
}
