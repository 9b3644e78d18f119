/* The text of elementwise kernels: indices (index.c) and functions (function.c). */
#ifndef LP_GPU_ELEMENT_H
#define LP_GPU_ELEMENT_H

#include "backend/gpu/builder.h"

/* The text of a kernel with one thread per element of `type`: parameters, sizes, and lines of code. */
typedef struct {
  gpu_builder *b;
  lp_type type;
  lp_buf params, pointer_lines, size_lines, body; /* lines: parameters become pointers and numbers */
  gpu_arg arg[GPU_MOST_ARGS];
  int32_t arg_count;
  lp_map *sizes;        /* polynomial's text -> parameter's name */
  lp_map *lines;        /* index expressions known already -> variable */
  uint32_t coordinates; /* axes whose coordinate is a variable already */
} gpu_element;

void gpu_element_begin(gpu_element *e, gpu_builder *b, lp_type type);
/* A pointer parameter for a ref: its name. */
const char *gpu_element_pointer(gpu_element *e, int32_t ref, lp_dtype dtype, bool written);
/* A size in the kernel: a number, or a parameter's name. */
const char *gpu_element_size(gpu_element *e, const lp_poly *size);
/* The coordinate along an axis of the result: a variable's name, "0" if the axis has size 1. */
const char *gpu_element_coordinate(gpu_element *e, int32_t axis);
/* The index of the element of an operand of type `from`, broadcast to the result. */
const char *gpu_element_index(gpu_element *e, lp_type from);
/* The product of dims [from, to) as an expression. */
const char *gpu_element_stride(gpu_element *e, const lp_poly *const *dim, int32_t from, int32_t to);
/* An operand's element at `index`, widened to what its type is computed in. */
const char *gpu_element_load(gpu_element *e, const char *pointer, lp_dtype dtype, const char *index);
void gpu_element_line(gpu_element *e, const char *format, ...) LP_PRINTF(2, 3);
void gpu_element_store(gpu_element *e, const char *pointer, lp_dtype dtype, const char *index, const char *value);
/* Makes the kernel and its launch. */
void gpu_element_end(gpu_element *e, const char *stem);

/* The expression of a function of op.map on operands of type `dtype`; NULL: no such function. */
const char *gpu_function(gpu_launch_list *list, const lp_op *op, const char *const *in, const lp_dtype *types,
                         int32_t count);
bool gpu_function_runs(const lp_op *op, char why[64]);
/* A constant of one element as a literal; NULL when it is none. */
const char *gpu_literal(gpu_launch_list *list, const lp_value *value);

#endif
