/* Shared libraries by dlopen. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

bool lp_library_load(const char *file, const lp_library_function *functions, size_t count) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return false;
  bool all = true;
  for (size_t i = 0; i < count; i++) {
    void *address = dlsym(library, functions[i].name);
    /* ISO C has no conversion from object to function pointers; POSIX promises the same representation. */
    memcpy(functions[i].function, &address, sizeof address);
    all = all && address != NULL;
  }
  return all;
}
