/* The binary contract between emitted CPU code and the runtime that loads it. Kernels, code generator and executor all
 * read this file and nothing else of each other. C and freestanding: no libc.
 *
 * A side's code is one shared object. It exports
 *   lp_abi                   uint32_t, equals LP_ABI_VERSION
 *   lp_layout                lp_layout_fn: where every buffer lies for given symbol values
 *   lp_segment_0, _1, ...    lp_segment_fn: one straight run of operators between two communications
 *   lp_contract              char [], LP_CONTRACT_MARK and 64 hex digits: see below; absent in code without a bundle
 *   lp_sequences             uint32_t, 1: segments run several sequences at once; absent: one at a time
 *
 * Symbols: every size in the code is a polynomial over a fixed vector of run-time values, `sym`. The first LP_SYM_COUNT
 * are those below; a model with further dimensions (an encoder's length) numbers them after these, in the order the
 * manifest lists them.
 *
 * Threads: all `threads` of the pool call the same segment with the same frame, each with its own number (SPMD).
 * Between operators the code calls lp_barrier_wait on `barrier`. Thread 0 is the caller's own.
 *
 * Sequences: a pass may run a batch of sequences, so that it reads the weights once for all of them. Each sequence has
 * a frame with its own positions, caches and memory. The batch has a frame too: its symbols are b = 1, s and r are the
 * sums over the sequences, all others are 0. Its arena holds the row-wise values: [b, s, ..] and [b, r, ..], where all
 * further sizes are constant (axes of 1 do not count) and the rows of the sequences follow each other. All other values
 * lie in the sequences' own arenas. Row-wise operators run once per batch; the others (attention, caches, positions)
 * run once per sequence.
 *
 * Contract: the code of a bundle carries the SHA-256 of the part of its manifest that says how to run it. A runtime
 * looks for the mark in the file before it opens the code, and refuses code that another manifest describes. A launch
 * list of a GPU has the same text as a member `contract`.
 *
 * Time: in code that is compiled for profiling, thread 0 calls `clock`, if it is set, at the start of each operator.
 */
#pragma once

#include <stdint.h>

#define LP_ABI_VERSION 3u
#define LP_CONTRACT_MARK "llmpart contract "

enum {
  LP_SYM_B, /* b: batch */
  LP_SYM_S, /* s: new tokens in this step */
  LP_SYM_P, /* p: past tokens, already in the KV cache */
  LP_SYM_R, /* r: rows of logits wanted, the last r of the s positions */
  LP_SYM_C, /* c: capacity of the KV cache in tokens, >= p + s */
  LP_SYM_T, /* t: threads */
  LP_SYM_COUNT
};

/* The tokens of a prompt that one pass takes at most, unless the plan needs whole prompts or the caller says otherwise
 * (runtime/session/choose_plan.c). The planner counts the memory of such passes. */
enum { LP_PROMPT_PART = 1024 };

/* A centralised sense-reversing spin barrier; one cache line per word so that waiting does not disturb arriving. */
typedef struct {
  _Alignas(64) int32_t arrived;
  _Alignas(64) int32_t phase;
} lp_barrier;

/* Begins the state of a profiler, which follows in its own struct. */
typedef struct lp_clock {
  void (*mark)(struct lp_clock *clock); /* an operator begins; called in the order of the segment */
} lp_clock;

typedef struct lp_frame {
  const int64_t *sym;    /* [symbols] */
  const int64_t *offset; /* [buffers] byte offset of each buffer in `arena`, from lp_layout */
  char *arena;           /* activations and scratch, 64-byte aligned */
  const char *weights;   /* start of the side's packed weight data, 64-byte aligned, read-only */
  void *const *state;    /* [states] KV caches: [b][kv_head][c][head_dim] */
  lp_barrier *barrier;
  int64_t threads;           /* also sym[LP_SYM_T] */
  lp_clock *clock;           /* NULL: no profiling */
  int64_t sequences;         /* of a batch; 0: this frame is that of a single sequence */
  struct lp_frame *sequence; /* [sequences]; their `sequences` are 0 */
  int64_t row, last_row;     /* first row of the sequence in values [b, s, ..] and in values [b, r, ..] */
} lp_frame;

/* Fills offset[buffers]; returns the arena bytes needed. Pure. */
typedef int64_t lp_layout_fn(const int64_t *sym, int64_t *offset);
typedef void lp_segment_fn(const lp_frame *frame, int64_t thread);
