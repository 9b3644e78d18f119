/* The processor for which code is emitted. */
#pragma once

#include "ir/ir.h"

typedef struct {
  const char *march; /* as reported: "native" is replaced by the host's name */
  const char *triple, *cpu, *features;
  const char *wide;  /* value of "prefer-vector-width", or NULL */
  const char *level; /* the level of x86-64 that the code needs; NULL on aarch64 */
  bool aarch64;
  int isa;                   /* LPK_ISA_* */
  int dot;                   /* LPK_DOT_* */
  int pairs;                 /* LPK_PAIRS_* */
  const char *dot_feature;   /* the feature that `dot` needs beyond the level or the triple; NULL: none */
  const char *pairs_feature; /* the feature that `pairs` needs; NULL: none */
} cpu_target;

LP_MUST_USE lp_status cpu_target_find(const char *march, lp_loc loc, cpu_target *out, lp_arena *arena, lp_diag *diag);

/* How the target multiplies bf16 in an op.linear or op.attention: LPK_PAIRS_*. */
int cpu_op_pairs(const cpu_target *target, const lp_op *op);
