/* A run of bytes that another object owns. */
#pragma once

#include <stddef.h>

typedef struct {
  void *data; /* NULL when `size` is 0 */
  size_t size;
} lp_span;
