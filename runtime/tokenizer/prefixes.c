/* A set of texts as a sorted list; a walk narrows it byte by byte. */
#include "runtime/tokenizer/prefixes.h"

static int compare(const void *a, const void *b) {
  const lp_prefix *x = a, *y = b;
  int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);
  if (order != 0) return order;
  return x->size < y->size ? -1 : x->size > y->size ? 1 : x->value < y->value ? -1 : x->value > y->value;
}

void lp_prefixes_complete(lp_prefixes *set) {
  if (set->list.count > 1) qsort(set->list.data, set->list.count, sizeof *set->list.data, compare);
  size_t at = 0;
  for (size_t byte = 0; byte < 257; byte++) {
    while (at < set->list.count && (uint8_t)set->list.data[at].text[0] < byte)
      at++;
    set->starts[byte] = at;
  }
}

void lp_prefixes_free(lp_prefixes *set) {
  lp_vec_free(&set->list);
}

/* Finds the first of data[low, high) with a byte of at least `byte` at `depth`. All have the same bytes before `depth`
 * and are longer. */
static size_t lower_bound(const lp_prefix *data, size_t low, size_t high, size_t depth, unsigned byte) {
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if ((uint8_t)data[middle].text[depth] < byte)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool lp_prefix_step(lp_prefix_walk *walk, uint8_t byte) {
  const lp_prefix *data = walk->set->list.data;
  if (walk->depth == 0) {
    walk->low = walk->set->starts[byte];
    walk->high = walk->set->starts[byte + 1];
  } else {
    walk->low = lower_bound(data, walk->low, walk->high, walk->depth, byte);
    walk->high = lower_bound(data, walk->low, walk->high, walk->depth, byte + 1u);
  }
  walk->depth++;
  walk->found = NULL;
  if (walk->low == walk->high) return false;
  /* Texts that end here are sorted first. */
  if (data[walk->low].size == walk->depth) walk->found = &data[walk->low];
  while (walk->low < walk->high && data[walk->low].size == walk->depth)
    walk->low++;
  return true;
}
