/* Builds the call of one operator: its refs, its kernels and their launches. */
#pragma once

#include "backend/gpu/join.h"
#include "backend/gpu/launches.h"

/* A call being made. */
typedef struct {
  gpu_launch_list *list;
  gpu_program *program;
  const lp_op *op;        /* the one being lowered; of a group, the first one at the beginning */
  const gpu_group *group; /* all operators of the call; more than one only if the rule `joins` them */
  LP_VEC(gpu_ref) refs;
  LP_VEC(gpu_launch) launches;
  int32_t params; /* of the kernel being written that earlier operators of the call have (rules/index.c) */
  lp_status status;
} gpu_builder;

/* ---- refs (refs.c) ---- */

/* Returns the number of the call's ref for an operand or result; constants are stored in `form`. -1: the operand is
 * absent. */
int32_t gpu_ref_in(gpu_builder *b, int32_t operand, gpu_form form);
int32_t gpu_ref_value(gpu_builder *b, lp_value *value, gpu_form form);
int32_t gpu_ref_out(gpu_builder *b, int32_t result);
int32_t gpu_ref_state(gpu_builder *b, int64_t state);
int32_t gpu_ref_constant(gpu_builder *b, const gpu_constant *constant);
void gpu_add_scratch(gpu_builder *b, const lp_poly *bytes, const lp_poly *few, int64_t most);

/* ---- kernels and launches (kernel.c) ---- */

/* `text` with parameters filled in, in the arena of the list. */
const char *gpu_fill(gpu_launch_list *list, const char *text, const char *const *params);
gpu_kernel *gpu_kernel_get(gpu_launch_list *list, const char *template, const char *stem, const char *const *params);
/* A launch; the functions below fill it step by step. */
gpu_launch *gpu_launch_add(gpu_builder *b, const gpu_kernel *kernel, int32_t threads, const lp_poly *x, int64_t per);
void gpu_launch_rows(gpu_launch *launch, const lp_poly *y, int64_t per);
void gpu_launch_when(gpu_launch *launch, const lp_poly *few, int64_t least, int64_t most);
void gpu_launch_on(gpu_launch *launch, int32_t least_sm, int32_t most_sm);
void gpu_launch_range(gpu_launch *launch, lp_hw_architectures on);
void gpu_arg_ref(gpu_launch *launch, int32_t ref); /* -1: a null pointer */
void gpu_arg_size(gpu_launch *launch, const lp_poly *size);
void gpu_arg_scratch(gpu_launch *launch);

/* Types in kernels: "float", "unsigned short". */
const char *gpu_type(lp_dtype dtype);
const char *gpu_store_name(lp_dtype dtype); /* "f32" f16 bf16 int8 int4 bool */
/* Whether the last axis of the first operand is constant; else says why not. */
bool gpu_static_last(const lp_op *op, char why[64]);
const char *gpu_format(gpu_launch_list *list, const char *format, ...) LP_PRINTF(2, 3);
