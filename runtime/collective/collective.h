/* runtime/collective: what the ranks of a sharded half say to each other, as one table of functions over a means of
 * communication: threads of this process (threads.c), or processes (peers.c), which the caller has joined. NCCL
 * (nccl.c) adds gathers in the memory of GPUs to either. This room moves bytes; it knows neither bundles nor programs.
 */
#pragma once

#include "base/base.h"
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
  /* Makes the calls of the other ranks fail, those that wait included; or NULL. With `gather_on_gpu`, this rank's
   * enqueued gathers end, and later ones fail. */
  void (*give_up)(void *self);
  /* Tells whether a rank has ended, without waiting. NULL: then this process ends too. */
  bool (*has_ended)(void *self);
  /* As all_gather, but enqueued on `stream` (a CUstream of the GPU that is current), and of that GPU's memory. It may
   * wait there for ever when a rank ends: whoever waits for the stream asks `has_ended`, and then gives up. False: the
   * gather was not enqueued. NULL: the ranks have no GPUs. */
  bool (*gather_on_gpu)(void *self, const void *part, size_t size, void *all, void *stream);
  /* What failed, with gather_on_gpu; borrowed, "" if nothing has. */
  const char *(*error)(void *self);
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

/* The ranks of `base` with NVIDIA's NCCL (libnccl.so.2 of 2.4 or newer), which is opened at run time. All ranks call
 * lp_nccl_open, each while its own GPU is current; all fail if one does. *out is as `base`, which is copied, and
 * gathers on GPUs. Rank 0 makes NCCL's id, and `base` brings it to the others. */
typedef struct lp_nccl lp_nccl;
LP_MUST_USE lp_status lp_nccl_open(const lp_collective *base, lp_nccl **nccl, lp_collective *out, lp_diag *diag);
/* After all streams with its gathers are idle. NULL is allowed. */
void lp_nccl_close(lp_nccl *nccl);
