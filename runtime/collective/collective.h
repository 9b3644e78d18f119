/* runtime/collective: what the ranks of a sharded half say to each other, as one table of functions over a means of
 * communication: threads of this process (threads.c), or processes (peers.c), which the caller has joined. This room
 * moves bytes; it knows neither bundles nor programs. */
#ifndef LP_COLLECTIVE_H
#define LP_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/peers.h"

/* One rank's end. All ranks call the same functions in the same order, each from one thread at a time. A function that
 * returns false has failed for good: a rank has ended. */
typedef struct lp_collective {
  int32_t rank, count;
  void *self;
  /* Copies data[size] of rank 0 to all others. */
  bool (*broadcast)(void *self, void *data, size_t size);
  /* Fills all[count][size] with every rank's part[size]. */
  bool (*all_gather)(void *self, const void *part, size_t size, void *all);
  /* Makes the calls of the other ranks fail, those that wait included; or NULL. */
  void (*give_up)(void *self);
} lp_collective;

/* Joins what lp_collective.all_gather gave: all[ranks][outer][inner] becomes whole[outer][parts][inner]. Part i is that
 * of rank i * ranks / parts. */
void lp_collective_join(const void *all, int32_t ranks, int32_t parts, size_t outer, size_t inner, void *whole);

/* Threads of this process: ends[count] are set; one call frees what they share, after all threads have ended. */
typedef struct lp_thread_ranks lp_thread_ranks;
lp_thread_ranks *lp_thread_ranks_create(int32_t count, lp_collective *ends);
void lp_thread_ranks_free(lp_thread_ranks *ranks); /* NULL is allowed */

/* Processes, as mpirun starts them. `peers` is borrowed. */
void lp_collective_of_peers(const lp_peers *peers, lp_collective *out);

#endif
