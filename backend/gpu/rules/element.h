/* Writes the text of kernels that have one thread for each element of the result: indices (index.c) and functions
 * (function.c). */
#pragma once

#include "backend/gpu/builder.h"

/* A kernel being written, with one thread for each element of a result of `type`. */
typedef struct {
  gpu_builder *b;
  lp_type type;
  lp_buf params, pointer_lines, size_lines, body; /* the lines turn parameters into pointers and numbers */
  gpu_arg arg[GPU_MOST_ARGS];
  int32_t arg_count;
  int32_t first;        /* number of the first parameter */
  lp_map *sizes;        /* text of a polynomial -> name of its parameter */
  lp_map *lines;        /* index expression -> the variable that holds it */
  uint32_t coordinates; /* bit i is set when the coordinate of axis i has a variable */
  int32_t each;         /* elements a thread; 1 at the beginning */
} gpu_element;

/* Writes the kernel of one operator, b->op: begins it, but does not end it. */
typedef void gpu_element_writer(gpu_element *e, gpu_builder *b);
/* Makes one kernel and its launch for all operators of a call; `write` is called once for each operator. */
void gpu_elements_make(gpu_builder *b, gpu_element_writer *write, const char *stem);
void gpu_element_begin(gpu_element *e, gpu_builder *b, lp_type type);
/* Adds a pointer parameter for a ref and returns its name. */
const char *gpu_element_pointer(gpu_element *e, int32_t ref, lp_dtype dtype, bool written);
/* A size as an expression: a number, or the name of a parameter. */
const char *gpu_element_size(gpu_element *e, const lp_poly *size);
/* The coordinate along an axis of the result as an expression: the name of a variable, or "0" if the axis has size
 * 1. */
const char *gpu_element_coordinate(gpu_element *e, int32_t axis);
/* The index of the element of an operand of type `from`, broadcast to the result. */
const char *gpu_element_index(gpu_element *e, lp_type from);
/* The product of dims [from, to) as an expression. */
const char *gpu_element_stride(gpu_element *e, const lp_poly *const *dim, int32_t from, int32_t to);
/* The element of an operand at `index`, widened to the type of the computation. */
const char *gpu_element_load(gpu_element *e, const char *pointer, lp_dtype dtype, const char *index);
void gpu_element_line(gpu_element *e, const char *format, ...) LP_PRINTF(2, 3);
void gpu_element_store(gpu_element *e, const char *pointer, lp_dtype dtype, const char *index, const char *value);
/* Makes the kernel and its launch; `stem` begins the name of the kernel. */
void gpu_element_end(gpu_element *e, const char *stem);

/* The expression of the function of an op.map on operands of the types [count]; NULL: there is no such function. */
const char *gpu_function(gpu_launch_list *list, const lp_op *op, const char *const *in, const lp_dtype *types,
                         int32_t count);
bool gpu_function_runs(const lp_op *op, char why[64]);
/* A constant of one element as a literal; NULL when the value is not one. */
const char *gpu_literal(gpu_launch_list *list, const lp_value *value);
