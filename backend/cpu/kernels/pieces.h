/* Work in pieces. Each thread has a share of an operator's pieces and takes them in order, so that it reads the weights
 * as one stream. A thread that has finished its share takes what is left of the others'. So a thread on a slower core,
 * or one that loses its core to another process, delays the operator by one piece, and results do not depend on who
 * computed them. */
#pragma once

#include "backend/cpu/kernels/vector.h"

/* Counts the pieces of a thread's share that have been taken; at the start of the thread's scratch. */
typedef struct {
  _Alignas(LPK_PIECES_BYTES) int64_t taken;
} pieces;

INLINE pieces *pieces_of(void *scratch, int64_t thread_bytes, int64_t thread) {
  return (pieces *)(void *)((char *)scratch + thread * thread_bytes);
}

/* Each thread opens its own share; a barrier must follow before any thread takes a piece. */
INLINE void open_pieces(pieces *own) {
  __atomic_store_n(&own->taken, 0, __ATOMIC_RELAXED);
}

/* Takes a piece and returns its number; no other thread gets it. A number past the end of the share: none is left. */
INLINE int64_t take_piece(pieces *share) {
  return __atomic_fetch_add(&share->taken, 1, __ATOMIC_RELAXED);
}
