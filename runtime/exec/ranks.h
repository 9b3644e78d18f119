/* The ranks of a sharded half (docs/adr/0035). Rank 0 leads: its executors and its batch tell the others what they do,
 * and the others replay it on their own shards (follow.c). Private to exec/. */
#pragma once

#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/collective/collective.h"

/* What rank 0 tells. `id` numbers its executors from 1; 0 is the batch. */
typedef enum {
  LP_TELL_STOP,
  LP_TELL_BEGIN,  /* an executor's program; the payload is the symbols */
  LP_TELL_MEMBER, /* the batch's program; the payload is rank_member[] */
  LP_TELL_FILL,   /* the payload goes into `buffer` of step `step`, of all sequences one after the other */
  LP_TELL_RUN,    /* the segments and gathers of steps [step, until) */
  LP_TELL_FORGET, /* the executor's KV caches */
  LP_TELL_FREE    /* the executor */
} rank_order_kind;

typedef struct {
  uint32_t kind, id;
  int32_t program, step, until, buffer;
  uint64_t size; /* of the payload, which follows */
} rank_order;

typedef struct {
  int64_t id, first, of; /* as in lp_batch_member */
  int64_t sym[LP_MAX_SYMBOLS];
} rank_member;

/* Of a bundle, from lp_ranks_start or lp_ranks_lead until the bundle is freed. */
typedef struct lp_ranks {
  lp_collective collective; /* this rank's end */
  lp_nccl *nccl;            /* gathers in the GPUs' memories; NULL: the host's memory has what is gathered */
  bool ended;               /* a rank has ended, or this one has given up */
  uint32_t last_id;
  void *gathered; /* [gathered_bytes] room for the parts of all ranks */
  size_t gathered_bytes;
} lp_ranks;

/* The ranks of a side's half; NULL: it is not sharded, or they have not been started. */
lp_ranks *lp_ranks_of(const lp_bundle *bundle, lp_place side);
/* Fails if the half is sharded and its ranks have not been started. */
LP_MUST_USE lp_status lp_ranks_check(const lp_bundle *bundle, lp_place side, lp_diag *diag);
/* Sets the symbol `rank` of a sharded half. */
void lp_ranks_set_symbol(const lp_bundle *bundle, lp_place side, int64_t *sym);
/* Tells the other ranks, if this one leads; `ranks` may be NULL. */
LP_MUST_USE lp_status lp_ranks_tell(lp_ranks *ranks, rank_order order, const void *payload, lp_diag *diag);
/* Tells them to run the steps from `step` up to the next that moves data in or out, unless they have been told: *told
 * is the end of what they have been told. */
LP_MUST_USE lp_status lp_ranks_tell_run(lp_ranks *ranks, uint32_t id, const lp_program *program, const lp_step *step,
                                        int32_t *told, lp_diag *diag);
/* Fails with `own`, and if another rank could not begin. All ranks call it after they have begun a program. */
LP_MUST_USE lp_status lp_ranks_agree(lp_ranks *ranks, lp_status own, lp_diag *diag);
/* Tells whether the half is sharded and a rank of it has ended, so that no run can succeed. */
bool lp_ranks_have_ended(const lp_bundle *bundle);
/* Gives up for good if this rank cannot do what the others were told: they would wait for ever. Returns `status`. */
LP_MUST_USE lp_status lp_ranks_keep_up(lp_ranks *ranks, lp_status status);
/* Gathers the parts of a `gather` step whose result is whole[outer][parts][inner]. */
LP_MUST_USE lp_status lp_ranks_gather(lp_ranks *ranks, const lp_step *step, const void *part, size_t outer,
                                      size_t inner, void *whole, lp_diag *diag);
/* The sizes around the axis of a `gather` step, in bytes of the part; false: they overflow. */
bool lp_ranks_extent(const lp_step *step, const int64_t *sym, int32_t symbol_count, size_t *outer, size_t *inner);
/* Bytes of room in a GPU's activations for the parts of all ranks, of any of the program's gathers; SIZE_MAX: they
 * overflow. */
size_t lp_ranks_room(const lp_ranks *ranks, const lp_manifest *manifest, const lp_program *program, lp_place side,
                     const int64_t *sym);
/* Where that room begins after `bytes` of activations. */
size_t lp_ranks_room_at(size_t bytes);
