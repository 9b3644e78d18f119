/* Functions of a shared library, loaded when they are first wanted: for what one command of many needs, so that the others
 * pay neither its memory nor its time to start. */
#ifndef LP_LIBRARY_H
#define LP_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  const char *name;
  void *function; /* where the pointer to the function is put */
} lp_library_function;

/* Loads `file` ("libcurl.so.4") and finds all functions; false when it or one of them is absent. It stays loaded: what it
 * registers to be done at exit is its code. From any thread. */
bool lp_library_load(const char *file, const lp_library_function *functions, size_t count);

#endif
