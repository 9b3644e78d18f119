/* Sets of items of one size, found by their bytes, which padding must not be part of. Items have numbers in the order
 * in which they came. A set belongs to one thread at a time. */
#pragma once

#include "base/base.h"

typedef struct {
  size_t size; /* of an item; set by the caller, all else is 0 */
  size_t count, capacity;
  void *data;    /* the items by number; owned, and moved by the next addition */
  int32_t *slot; /* hash table: number + 1; owned */
  size_t slots;
} lp_item_set;

/* The number of an item, which is copied into the set unless it is there. At most INT32_MAX - 1 items. */
int32_t lp_item_set_add(lp_item_set *set, const void *item);
void lp_item_set_free(lp_item_set *set);

/* Sets, each once. */
typedef LP_VEC(lp_item_set) lp_item_sets;
/* The number of a set with these items in this order. Takes ownership of the set, to which nothing can be added then.
 */
int32_t lp_item_sets_add(lp_item_sets *sets, lp_item_set *set);
void lp_item_sets_free(lp_item_sets *sets);
