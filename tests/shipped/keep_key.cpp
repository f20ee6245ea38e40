// A planted bug: with the linker's --wrap=pthread_key_delete no key is ever deleted.
extern "C" int __wrap_pthread_key_delete(unsigned int /*key*/);

int __wrap_pthread_key_delete(unsigned int /*key*/) {
  return 0;
}
