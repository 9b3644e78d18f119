/* A hash map that remembers the order of insertion: an array of entries, and an open-addressed table of indices. */
#include "base/map.h"
#include "base/base.h"

#include <assert.h>

typedef struct {
  char *key;
  void *value;
  uint64_t hash;
} entry;

struct lp_map {
  LP_VEC(entry) entries;
  uint32_t *slot;    /* [slots] index of the entry + 1, 0 when free */
  size_t slot_count; /* a power of two, at most half full */
};

lp_map *lp_map_create(void) {
  return lp_alloc(sizeof(lp_map));
}

void lp_map_free(lp_map *map) {
  if (!map) return;
  for (size_t i = 0; i < map->entries.count; i++)
    free(map->entries.data[i].key);
  lp_vec_free(&map->entries);
  free(map->slot);
  free(map);
}

/* The slot that holds `key`, or the free one where it belongs. */
static uint32_t *find_slot(const lp_map *map, const char *key, uint64_t hash) {
  size_t mask = map->slot_count - 1;
  assert(map->slot);
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    uint32_t index = map->slot[i];
    if (index == 0) return &map->slot[i];
    assert(index <= map->entries.count && map->entries.data);
    const entry *e = &map->entries.data[index - 1];
    if (e->hash == hash && strcmp(e->key, key) == 0) return &map->slot[i];
  }
}

static entry *find_entry(const lp_map *map, const char *key) {
  if (map->slot_count == 0) return NULL;
  uint32_t index = *find_slot(map, key, lp_hash_bytes(key, strlen(key), 0));
  return index ? &map->entries.data[index - 1] : NULL;
}

static void grow(lp_map *map) {
  free(map->slot);
  map->slot_count = map->slot_count ? map->slot_count * 2 : 16;
  map->slot = lp_alloc(map->slot_count * sizeof *map->slot);
  assert(map->entries.data || map->entries.count == 0);
  for (size_t i = 0; i < map->entries.count; i++)
    *find_slot(map, map->entries.data[i].key, map->entries.data[i].hash) = (uint32_t)(i + 1);
}

void *lp_map_get(const lp_map *map, const char *key) {
  const entry *e = find_entry(map, key);
  return e ? e->value : NULL;
}

bool lp_map_has(const lp_map *map, const char *key) {
  return find_entry(map, key) != NULL;
}

void *lp_map_put(lp_map *map, const char *key, void *value) {
  entry *old = find_entry(map, key);
  if (old) {
    void *before = old->value;
    old->value = value;
    return before;
  }
  if (map->slot_count < 2 * (map->entries.count + 1)) grow(map);
  entry fresh = {.key = lp_strdup(key), .value = value, .hash = lp_hash_bytes(key, strlen(key), 0)};
  uint32_t *slot = find_slot(map, key, fresh.hash);
  assert(map->entries.data || map->entries.capacity == map->entries.count);
  lp_vec_push(&map->entries, fresh);
  *slot = (uint32_t)map->entries.count;
  return NULL;
}

size_t lp_map_count(const lp_map *map) {
  return map->entries.count;
}

const char *lp_map_key_at(const lp_map *map, size_t index) {
  return map->entries.data[index].key;
}

void *lp_map_value_at(const lp_map *map, size_t index) {
  return map->entries.data[index].value;
}
