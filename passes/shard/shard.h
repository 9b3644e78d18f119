/* Values of a half that several ranks run, and the operators that each rank runs on its part (shard_rules.c). Private
 * to this room. */
#pragma once

#include "passes/passes.h"

/* What a rank holds of a value: `axis` is cut into `parts` equal parts, and rank i of n holds part i * parts / n. It is
 * value->scratch; NULL: every rank holds the whole value. */
typedef struct {
  int32_t axis;
  int64_t parts;
  lp_value *whole; /* the result of comm.all_gather, once an operator needed it; or NULL */
} lp_share;

typedef struct {
  lp_module *module;
  lp_arena *scratch;
  lp_diag *diag;
  int64_t ranks;
  const int64_t *state_parts; /* [states]: the parts of each KV cache's heads; below 2: each rank keeps all heads */
} lp_shard;

/* While the pass runs, op->scratch is the number of parts that an op.linear must be cut into (0: one for each rank), or
 * not NULL for an op.attention that is cut. */
void lp_shard_set_mark(lp_op *op, int64_t mark);

/* The parts that the heads of K and V are cut into when `ranks` ranks share an attention's query heads: all ranks, or
 * as many as there are heads, each on ranks / heads ranks. 0: the heads do not divide. */
int64_t lp_shard_kv_parts(const lp_op *attention, int64_t ranks);
/* Tells whether an op.linear of constant weights can be cut into parts of its columns. */
bool lp_shard_linear_divides(const lp_shard *shard, const lp_op *op, int64_t parts);
/* Rewrites an operator of the half: a rank computes its part of the result if it can, the whole result otherwise. */
LP_MUST_USE lp_status lp_shard_op(lp_shard *shard, lp_op *op);

/* Rewrites all operators of the cloud, and the KV caches, of a module that is at least placed (shard.c). */
LP_MUST_USE lp_status lp_shard_module(lp_module *module, int64_t ranks, lp_arena *scratch, lp_diag *diag);
