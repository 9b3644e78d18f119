/* A hash map from text to pointers. One map belongs to one thread at a time. */
#pragma once

#include "base/base.h"

/* Iteration is in order of insertion, so it is deterministic. Keys are copied; values are borrowed. Entries are never
 * removed. */
typedef struct lp_map lp_map;

LP_NEVER_NULL lp_map *lp_map_create(void);
void lp_map_free(lp_map *map); /* NULL is allowed; the values are not touched */
LP_OWNER(lp_map, lp_map_free)
void *lp_map_get(const lp_map *map, const char *key); /* NULL when absent */
bool lp_map_has(const lp_map *map, const char *key);
/* Puts or replaces; returns the value that was there, or NULL. */
void *lp_map_put(lp_map *map, const char *key, void *value);
size_t lp_map_count(const lp_map *map);
const char *lp_map_key_at(const lp_map *map, size_t index); /* index in order of insertion */
void *lp_map_value_at(const lp_map *map, size_t index);
