/* Finds the operators that run in one call. The operators of a call may run in any order and at the same time, so none
 * of them writes what another one reads or writes. */
#include "backend/gpu/join.h"

#include "backend/rows.h"
#include "backend/values.h"

static int64_t group_of(const lp_op *op) {
  return lp_op_i64(op, "join", -1);
}

static bool may_be_within(const lp_op *op, int64_t group) {
  return op && (group_of(op) == group || lp_op_has(op, LP_CONSTANT) || lp_op_has(op, LP_ALIAS));
}

/* Collects the operators with the number of `op`, which have only constants and aliases between them. */
static bool collect(lp_op *op, gpu_group *out) {
  const int64_t number = group_of(op);
  lp_op *first = op;
  for (lp_op *at = op->prev; may_be_within(at, number); at = at->prev)
    if (group_of(at) == number) first = at;
  out->count = 0;
  for (lp_op *at = first; may_be_within(at, number); at = at->next) {
    if (group_of(at) != number) continue;
    if (out->count == GPU_MOST_JOINED) return false;
    out->op[out->count++] = at;
  }
  return true;
}

/* ---- operators that may run at the same time --------------------------------------------------------------------- */

/* The slot of a value, -1 when it has none. */
static int64_t slot_of(const lp_side_programs *programs, const lp_side_program *program, lp_value *value) {
  const int64_t buffer = value ? lp_value_buffer(lp_value_base(value), programs->side) : -1;
  return buffer >= 0 && buffer < program->buffer_count ? program->slot[buffer] : -1;
}

/* Tells whether `op` writes to a slot that `other` reads or writes, or both use one KV cache. */
static bool disturbs(const lp_side_programs *programs, const lp_side_program *program, const lp_op *op,
                     const lp_op *other) {
  if (lp_op_state(op) >= 0 && lp_op_state(op) == lp_op_state(other)) return true;
  for (int32_t i = 0; i < op->out_count; i++) {
    const int64_t slot = slot_of(programs, program, op->out[i]);
    for (int32_t k = 0; k < other->in_count + other->out_count; k++) {
      lp_value *value = k < other->in_count ? lp_op_in(other, k) : other->out[k - other->in_count];
      if (value && lp_value_base(value) == op->out[i]) return true;
      if (slot >= 0 && slot == slot_of(programs, program, value)) return true;
    }
  }
  return false;
}

static bool fit_together(const lp_side_programs *programs, const lp_side_program *program, const gpu_group *group) {
  const lp_op *first = group->op[0];
  for (int32_t i = 0; i < group->count; i++) {
    const lp_op *op = group->op[i];
    if (op->kind != first->kind || lp_op_at(op) != programs->side ||
        lp_op_i64(op, "segment", 0) != lp_op_i64(first, "segment", 0) ||
        lp_op_is_joint(programs->module, op) != lp_op_is_joint(programs->module, first))
      return false;
    for (int32_t k = 0; k < group->count; k++)
      if (k != i && disturbs(programs, program, op, group->op[k])) return false;
  }
  return true;
}

void gpu_group_find(const lp_side_programs *programs, const lp_side_program *program, lp_op *op, gpu_group *out) {
  *out = (gpu_group){.op = {op}, .count = 1};
  if (group_of(op) < 0) return;
  gpu_group group;
  if (collect(op, &group) && fit_together(programs, program, &group)) *out = group;
}
