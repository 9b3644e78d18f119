/* Shared libraries that are loaded at the first use, so that only the commands that need one pay for its memory and
 * start. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  const char *name;
  void *function; /* the address of the function pointer to set */
} lp_library_function;

/* Loads `file` ("libcurl.so.4") and finds all functions; false when the library or one function is absent. Pointers to
 * functions that the library lacks become NULL. The library stays loaded, because its exit handlers are part of it. Any
 * thread. */
bool lp_library_load(const char *file, const lp_library_function *functions, size_t count);
