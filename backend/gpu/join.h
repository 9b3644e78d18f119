/* Calls of several operators. The pass join marks operators as a group. A group becomes one call, and a launch of the
 * call may compute several of its operators. */
#pragma once

#include "backend/program.h"

enum { GPU_MOST_JOINED = 4 };

/* The operators of one call, in order. */
typedef struct {
  lp_op *op[GPU_MOST_JOINED];
  int32_t count;
} gpu_group;

/* Finds the group of `op`, or `op` itself: no group if an operator of it depends on another one, or overwrites the
 * memory that another one uses. */
void gpu_group_find(const lp_side_programs *programs, const lp_side_program *program, lp_op *op, gpu_group *out);
