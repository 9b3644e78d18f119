/* A run of bytes that another object owns. */
#ifndef LP_SPAN_H
#define LP_SPAN_H

#include <stddef.h>

typedef struct {
  void *data; /* NULL when `size` is 0 */
  size_t size;
} lp_span;

#endif
