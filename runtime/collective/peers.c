/* Ranks that are processes, over the functions of base/peers.h; and what the backends share. */

#include "runtime/collective/collective.h"

void lp_collective_join(const void *all, int32_t ranks, int32_t parts, size_t outer, size_t inner, void *whole) {
  for (int32_t part = 0; part < parts; part++) {
    const char *from = (const char *)all + (size_t)(part * (ranks / parts)) * outer * inner;
    char *to = (char *)whole + (size_t)part * inner;
    for (size_t i = 0; i < outer; i++)
      memcpy(to + i * inner * (size_t)parts, from + i * inner, inner);
  }
}

/* Errors of MPI end all processes, so nothing fails here. */
static bool broadcast(void *self, void *data, size_t size) {
  ((const lp_peers *)self)->broadcast(data, size);
  return true;
}

static bool all_gather(void *self, const void *part, size_t size, void *all) {
  ((const lp_peers *)self)->all_gather(part, size, all);
  return true;
}

void lp_collective_of_peers(const lp_peers *peers, lp_collective *out) {
  *out = (lp_collective){.rank = peers->rank,
                         .count = peers->count,
                         .self = (void *)(uintptr_t)peers,
                         .broadcast = broadcast,
                         .all_gather = all_gather};
}
