/* Binary heaps of events. */
#include "runtime/simulate/heap.h"

static bool before(const lp_sim_entry *a, const lp_sim_entry *b) {
  return a->key < b->key || (a->key == b->key && a->order < b->order);
}

void lp_sim_heap_push(lp_sim_heap *heap, double key, uint32_t item) {
  lp_sim_entry entry = {key, heap->next++, item};
  size_t at = heap->entries.count;
  lp_vec_push(&heap->entries, entry);
  lp_sim_entry *entries = heap->entries.data;
  while (at > 0 && before(&entry, &entries[(at - 1) / 2])) {
    entries[at] = entries[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  entries[at] = entry;
}

uint32_t lp_sim_heap_pop(lp_sim_heap *heap) {
  lp_sim_entry *entries = heap->entries.data;
  uint32_t item = entries[0].item;
  lp_sim_entry last = entries[--heap->entries.count];
  size_t count = heap->entries.count, at = 0;
  for (size_t child = 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && before(&entries[child + 1], &entries[child])) child++;
    if (!before(&entries[child], &last)) break;
    entries[at] = entries[child];
    at = child;
  }
  if (count > 0) entries[at] = last;
  return item;
}
