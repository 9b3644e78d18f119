/* What a side has to run: its programs, their segments and operators, as plan-memory and outline left them. */
#include "backend/cpu/cpu_internal.h"
#include "base/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const lp_op *cpu_value_cache(const lp_value *value) {
  return value && lp_op_is(value->def, LP_OP_KV_APPEND) ? value->def : NULL;
}

bool cpu_value_immediate(const lp_value *value, lp_tensor *out) {
  int64_t numel = 0;
  return value && lp_value_constant(value, out) && lp_type_static_numel(value->type, &numel) && numel == 1;
}

int64_t cpu_value_buffer(const cpu_plan *plan, const lp_value *value) {
  return lp_value_buffer(value, plan->side);
}

static cpu_segment *find_segment(cpu_plan *plan, cpu_program *program, int64_t index) {
  for (size_t i = 0; i < program->segments.count; i++)
    if (program->segments.data[i]->index == index) return program->segments.data[i];
  cpu_segment *segment = LP_NEW(plan->arena, cpu_segment);
  segment->index = index;
  lp_vec_push(&program->segments, segment);
  return segment;
}

/* The dependence on memory that codegen rests on: every result has a buffer of its own. */
static lp_status check_results(const cpu_plan *plan, const cpu_program *program, const lp_op *op, lp_diag *diag) {
  for (int32_t i = 0; i < op->out_count && op->kind != LP_OP_KV_APPEND; i++) {
    int64_t buffer = cpu_value_buffer(plan, op->out[i]);
    if (buffer < 0 || buffer >= program->buffer_count)
      return lp_error(diag, op->loc, "result %" PRId32 " of '%s' has buffer %" PRId64 ", found %" PRId64 " buffers", i,
                      lp_op_info_get(op->kind)->name, buffer, program->buffer_count);
  }
  return LP_OK;
}

/* ... and every operand lies in one, in a cache, or among the constants. */
static lp_status check_operands(const cpu_plan *plan, const cpu_program *program, const lp_op *op, lp_diag *diag) {
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *value = lp_op_in(op, i) ? lp_value_base(lp_op_in(op, i)) : NULL;
    if (!value || lp_value_is_constant(value) || cpu_value_cache(value)) continue;
    int64_t buffer = cpu_value_buffer(plan, value);
    if (buffer < 0 || buffer >= program->buffer_count)
      return lp_error(diag, op->loc, "operand %" PRId32 " of '%s' has no buffer on this side", i,
                      lp_op_info_get(op->kind)->name);
  }
  return LP_OK;
}

/* Operands without an address: absent ones, constants that are immediates, and those a rule takes as part of others. */
static lp_status bind_constants(cpu_plan *plan, cpu_call *call, lp_diag *diag) {
  const lp_op *op = call->op;
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *value = lp_op_in(op, i);
    if (!value || !lp_value_is_constant(lp_value_base(value))) continue;
    cpu_form form = call->rule->form ? call->rule->form(op, i) : CPU_FORM_RAW;
    if (form != CPU_FORM_NONE) LP_TRY(cpu_plan_constant(plan, op, i, form, &call->constant[i], diag));
  }
  return LP_OK;
}

static lp_status add_call(cpu_plan *plan, cpu_program *program, lp_op *op, lp_diag *diag) {
  char why[64] = "";
  if (!cpu_op_runs(op, why))
    return lp_error(diag, op->loc, "cpu cannot run '%s': %s", lp_op_info_get(op->kind)->name, why);
  if (lp_op_has(op, LP_ALIAS)) return LP_OK;
  LP_TRY(check_results(plan, program, op, diag));
  LP_TRY(check_operands(plan, program, op, diag));
  cpu_call call = {.op = op, .rule = cpu_rule_find(op->kind)};
  if (call.rule->scratch) call.scratch = call.rule->scratch(plan->module, op);
  call.joint = lp_op_is_joint(plan->module, op);
  if (call.rule->scratch_rows && call.joint) call.scratch_rows = call.rule->scratch_rows(plan->module, op);
  call.constant = LP_NEW_ARRAY(plan->arena, const cpu_constant *, op->in_count);
  lp_vec_push(&find_segment(plan, program, lp_op_i64(op, "segment", 0))->calls, call);
  return LP_OK;
}

static lp_status read_slots(cpu_plan *plan, cpu_program *program, lp_diag *diag) {
  const lp_attr *slots = lp_func_side_attr(program->func, "slot", plan->side);
  if (!slots) return LP_OK; /* nothing of this side in it */
  program->buffer_count = slots->count;
  program->slot = slots->is;
  for (int32_t i = 0; i < slots->count; i++) {
    if (slots->is[i] < 0 || slots->is[i] >= slots->count)
      return lp_error(diag, program->func->loc, "slot %" PRId64 " of buffer %" PRId32 " is out of range", slots->is[i],
                      i);
    if (slots->is[i] >= program->slot_count) program->slot_count = slots->is[i] + 1;
  }
  return LP_OK;
}

static lp_status add_program(cpu_plan *plan, lp_op *func, lp_diag *diag) {
  const char *name = lp_op_str(func, "sym_name", "main");
  cpu_program program = {.func = func, .name = name};
  LP_TRY(read_slots(plan, &program, diag));
  lp_vec_push(&plan->programs, program);
  cpu_program *added = &plan->programs.data[plan->programs.count - 1];
  LP_FOR_OPS(op, func->region) {
    if (!lp_op_is_run(op) || !lp_streq(lp_op_side(op), plan->side)) continue;
    LP_TRY(add_call(plan, added, op, diag));
  }
  return LP_OK;
}

/* Linears come first: a table that one of them multiplies by is read where it is packed (cpu_plan_constant). */
static lp_status bind_all(cpu_plan *plan, bool linears, lp_diag *diag) {
  for (size_t i = 0; i < plan->programs.count; i++) {
    const cpu_program *program = &plan->programs.data[i];
    for (size_t k = 0; k < program->segments.count; k++) {
      cpu_segment *segment = program->segments.data[k];
      for (size_t c = 0; c < segment->calls.count; c++)
        if ((segment->calls.data[c].op->kind == LP_OP_LINEAR) == linears)
          LP_TRY(bind_constants(plan, &segment->calls.data[c], diag));
    }
  }
  return LP_OK;
}

static lp_status add_programs(cpu_plan *plan, lp_diag *diag) {
  LP_FOR_OPS(op, lp_module_body(plan->module)) {
    if (op->kind == LP_OP_FUNC) LP_TRY(add_program(plan, op, diag));
  }
  LP_TRY(bind_all(plan, true, diag));
  return bind_all(plan, false, diag);
}

lp_status cpu_plan_create(lp_module *module, const char *side, lp_arena *arena, cpu_plan **out, lp_diag *diag) {
  cpu_plan *plan = LP_NEW(arena, cpu_plan);
  *plan = (cpu_plan){.module = module, .arena = arena, .side = side};
  plan->constants = lp_map_create();
  plan->names = lp_map_create();
  lp_status status = add_programs(plan, diag);
  if (status != LP_OK) {
    cpu_plan_free(plan);
    return status;
  }
  cpu_plan_place_constants(plan);
  *out = plan;
  return LP_OK;
}

void cpu_plan_free(cpu_plan *plan) {
  if (!plan) return;
  for (size_t i = 0; i < plan->programs.count; i++) {
    cpu_program *program = &plan->programs.data[i];
    for (size_t k = 0; k < program->segments.count; k++)
      lp_vec_free(&program->segments.data[k]->calls);
    lp_vec_free(&program->segments);
  }
  lp_vec_free(&plan->programs);
  lp_map_free(plan->constants);
  lp_map_free(plan->names);
}
