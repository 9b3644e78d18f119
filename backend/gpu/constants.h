/* Constants of the code of a GPU. A constant is stored once for each form in which kernels read it. */
#pragma once

#include "backend/constants.h"

typedef enum {
  GPU_FORM_RAW,    /* row-major, as in the module */
  GPU_FORM_F32,    /* floats as f32 */
  GPU_FORM_MATRIX, /* a linear's weight [n][k] in `store` */
  GPU_FORM_SCALE   /* the scales of a matrix of codes: f16 [n][k / 32], or u32 [n][k / kept] */
} gpu_form;

typedef struct {
  lp_stored_constant stored; /* first: see lp_constants */
  lp_value *value;
  lp_value *scale, *zero; /* of an integer weight, else NULL */
  int64_t group;
  gpu_form form;
  lp_dtype codes; /* of a matrix of codes and of its scales */
  int64_t kept;   /* elements that share a scale where codes are the model's own (lp_storage_on_gpu), else 0 */
  bool transpose; /* the value is [n][k] */
  int64_t n, k, k_stored;
} gpu_constant;

/* The constant of a value. Only gpu_weights_write reads weights. */
const gpu_constant *gpu_constant_get(lp_constants *constants, const lp_op *op, lp_value *value, gpu_form form);
/* Finds the weight of an op.linear, or with `gate` that of its gate: its codes or floats, and its scales (NULL for
 * floats). */
void gpu_constant_weight(lp_constants *constants, const lp_op *op, bool gate, const gpu_constant **matrix,
                         const gpu_constant **scale);
/* Sets every constant's offset. */
void gpu_constants_place(lp_constants *constants);
LP_MUST_USE lp_status gpu_weights_write(const lp_constants *constants, lp_module *module, lp_writer *writer,
                                        lp_diag *diag);
