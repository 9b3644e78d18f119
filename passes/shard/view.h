/* The shards of a model, for the planner: what one rank computes of each operator, and what the ranks gather, if all
 * operators are in the cloud. The module stays as it is: the view holds a copy of it that was cut. */
#pragma once

#include "ir/ir.h"

/* A gather of what an operator computes. */
typedef struct {
  int32_t op;          /* the operator's number; that of a view's operand, since a view takes no time of its own */
  const lp_op *gather; /* the comm.all_gather of the copy */
} lp_shard_gather;

/* One block. Its placeable operators are numbered in their order. */
typedef struct {
  int32_t count, gather_count;
  lp_op **part;            /* [count] the operator of the copy: its types and attributes are those of one rank */
  lp_shard_gather *gather; /* [gather_count] in order */
} lp_shard_stage;

typedef struct {
  lp_module *module; /* the copy; owned */
  lp_arena *arena;   /* owned */
  lp_shard_stage *stage;
} lp_shard_view;

/* Makes the view of `count` blocks of a module that is at least lowered, for `ranks` > 1. Blocks may be the same one.
 * Messages between the sides are left out. The copy shares attributes with the module, which must outlive it. Release
 * with lp_shard_view_free. */
LP_MUST_USE lp_status lp_shard_view_make(const lp_module *module, lp_block *const *blocks, int32_t count, int64_t ranks,
                                         lp_shard_view **out, lp_diag *diag);
void lp_shard_view_free(lp_shard_view *view); /* NULL is allowed */

/* The parts into which the columns of an operator's constant operand are cut; 1: each rank has the whole. */
int64_t lp_shard_parts(const lp_op *part, int32_t operand);
