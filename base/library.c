/* Shared libraries by dlopen. */
#include "base/library.h"

#include <string.h>

#ifdef LP_STATIC
/* A static program has no dynamic linker: every library is absent. */
bool lp_library_load(const char *file, const lp_library_function *functions, size_t count) {
  (void)file;
  for (size_t i = 0; i < count; i++)
    memset(functions[i].function, 0, sizeof(void *));
  return false;
}
#else
#include <dlfcn.h>

bool lp_library_load(const char *file, const lp_library_function *functions, size_t count) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  bool all = true;
  for (size_t i = 0; i < count; i++) {
    void *address = dlsym(library, functions[i].name);
    /* ISO C has no conversion from object to function pointers; POSIX promises the same representation. */
    memcpy(functions[i].function, &address, sizeof address);
    all = all && address;
  }
  return all;
}
#endif
