/* A heap of numbered items: the least key comes first, items of equal keys in the order of insertion. */
#ifndef LP_SIMULATE_HEAP_H
#define LP_SIMULATE_HEAP_H

#include "base/base.h"

typedef struct {
  double key;
  uint32_t order, item;
} lp_sim_entry;

typedef struct {
  LP_VEC(lp_sim_entry) entries;
  uint32_t next;
} lp_sim_heap;

/* The caller frees `entries` with lp_vec_free. */
void lp_sim_heap_push(lp_sim_heap *heap, double key, uint32_t item);
uint32_t lp_sim_heap_pop(lp_sim_heap *heap); /* not empty */

#endif
