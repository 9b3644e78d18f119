/* Sets of items in hash tables with linear probing. */
#include "base/item_set.h"

static unsigned char *item_at(const lp_item_set *set, size_t number) {
  return (unsigned char *)set->data + number * set->size;
}

/* Mixes whole words, which is several times as fast as lp_hash_bytes. The values depend on the order of bytes in a
 * word, so they must not leave the process. */
static size_t hash_of(const void *item, size_t size) {
  uint64_t hash = size;
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, (const char *)item + i, size - i < sizeof word ? size - i : sizeof word);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return (size_t)hash;
}

/* The slot of an equal item, or the free one in which it belongs. */
static int32_t *find_slot(const lp_item_set *set, const void *item) {
  size_t at = hash_of(item, set->size) % set->slots;
  while (set->slot[at] && memcmp(item_at(set, (size_t)set->slot[at] - 1), item, set->size) != 0)
    at = (at + 1) % set->slots;
  return &set->slot[at];
}

static void rehash(lp_item_set *set) {
  free(set->slot);
  set->slots = set->slots ? 4 * set->slots : 64;
  set->slot = lp_alloc(set->slots * sizeof *set->slot);
  for (size_t i = 0; i < set->count; i++)
    *find_slot(set, item_at(set, i)) = (int32_t)i + 1;
}

int32_t lp_item_set_add(lp_item_set *set, const void *item) {
  if (2 * (set->count + 1) > set->slots) rehash(set);
  int32_t *slot = find_slot(set, item);
  if (*slot) return *slot - 1;
  if (set->count == set->capacity) set->data = lp_vec_grow(set->data, &set->capacity, set->size);
  memcpy(item_at(set, set->count), item, set->size);
  *slot = (int32_t)++set->count;
  return *slot - 1;
}

void lp_item_set_free(lp_item_set *set) {
  free(set->data);
  free(set->slot);
  *set = (lp_item_set){.size = set->size};
}

int32_t lp_item_sets_add(lp_item_sets *sets, lp_item_set *set) {
  for (size_t i = 0; i < sets->count; i++) {
    const lp_item_set *other = &sets->data[i];
    if (other->count != set->count || other->size != set->size) continue;
    if (set->count && memcmp(other->data, set->data, set->count * set->size) != 0) continue;
    lp_item_set_free(set);
    return (int32_t)i;
  }
  free(set->slot);
  set->slot = NULL;
  set->slots = 0;
  lp_vec_push(sets, *set);
  *set = (lp_item_set){.size = set->size};
  return (int32_t)sets->count - 1;
}

void lp_item_sets_free(lp_item_sets *sets) {
  LP_FOR_VEC(lp_item_set, set, sets)
    lp_item_set_free(set);
  lp_vec_free(sets);
}
