/* Constants of the code of the CPU. A constant is stored once for each form in which kernels read it, and operators
 * share it. */
#pragma once

#include "backend/constants.h"
#include "backend/cpu/kernels/pack.h"
#include "ir/blocks.h"

/* The layout of a constant in weights.safetensors. */
typedef enum {
  CPU_FORM_NONE,   /* the operand is absent, an immediate, or stored as a part of another constant */
  CPU_FORM_RAW,    /* row-major, as in the module */
  CPU_FORM_F32,    /* row-major, converted to f32 */
  CPU_FORM_PANELS, /* a linear's weight: panels [ceil(n / 32)][k][32], zero padded */
  CPU_FORM_GROUPS, /* a linear's weight of 8, 4 or 2 bits: panels of groups (kernels/pack.h), [panels][bytes] */
  CPU_FORM_BIAS,   /* a linear's bias: f32 [ceil(n / 32)][32], zero padded */
  CPU_FORM_TABLE   /* a rule wants it: PANELS if a linear of the side reads the table in panels, else RAW */
} cpu_form;

typedef struct {
  lp_stored_constant stored; /* first: see lp_constants */
  lp_value *value;
  lp_value *gate; /* PANELS and BIAS: panel 2j is of the gate (BIAS: zero), panel 2j + 1 of the value; else NULL */
  cpu_form form;
  bool gated;
  bool transpose;  /* PANELS: the value is [n][k], not [k][n] */
  int64_t n, k;    /* PANELS, GROUPS and BIAS: of each expert */
  int64_t experts; /* 1 but for op.experts: their panels follow each other */
  /* PANELS and GROUPS of an integer weight: [0] of the value, [1] of its gate; NULL where there is none */
  lp_value *scale[2], *zero[2];
  int64_t own_group, group; /* the number of rows of k that share one of `scale`, and a scale that is stored */
  /* GROUPS */
  lp_dtype codes, scale_dtype; /* I8, U4, U2 or F8E4M3FN; f32, f16 or bf16, or bytes of super-blocks */
  int bits;                    /* of a code */
  int zeros;                   /* LPK_ZEROS, LPK_MINIMA: they are stored; or another kind of codes (lpk_groups) */
  int super;                   /* see lpk_groups */
  const lp_block_form *blocks; /* form of the value's blocks; codes and scales are copied exactly; NULL: no blocks */
} cpu_constant;

/* The constant of operand `index` of `op` in a form; NULL for CPU_FORM_NONE. Reads no weight. */
LP_MUST_USE lp_status cpu_constant_get(lp_constants *constants, const lp_op *op, int32_t index, cpu_form form,
                                       const cpu_constant **out, lp_diag *diag);
/* Sets every constant's offset. */
void cpu_constants_place(lp_constants *constants);
/* The form of the weight of an op.linear: GROUPS for integers and where `weight_dtype` asks for them. */
cpu_form cpu_linear_weight_form(const lp_op *op);
/* The blocks that a product's weight, or an embedding's table, and its gate keep where `weight_dtype` names them; NULL:
 * they are converted. */
const lp_block_form *cpu_kept_blocks(const lp_op *op);
/* Tells whether an op.linear is computed with activations of 8 bits: `activations` asks for it, and the groups of its
 * weight are whole blocks of the kernel. */
bool cpu_linear_is_integer(const lp_op *op);
/* Tells whether `activations` asks for products of bf16, which a processor may have. */
bool cpu_op_asks_bf16(const lp_op *op);
/* The layout of GROUPS (kernels/pack.h). */
lpk_group_form cpu_group_form(const cpu_constant *constant);
/* Fills the fields of `constant` for groups and integer weights. The caller has set n, k and transpose (groups.c). */
void cpu_describe_groups(const lp_op *op, cpu_constant *constant);
