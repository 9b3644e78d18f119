/* Counts the calls of the process under test, and says which one fails. */
#ifndef LP_INJECT_DUE_H
#define LP_INJECT_DUE_H

#include <stdbool.h>

/* Counts a call of `name` since main; true if it is number LP_INJECT, which happens once. It then writes the name and
 * the place of `caller` to the file LP_INJECT_REPORT. Any thread may call it. Without LP_INJECT it counts nothing. */
bool lp_inject_due(const char *name, const void *caller);
/* The C library's function that the caller stands in for. */
void *lp_inject_real(const char *name);

#endif
