/* Reads the calls of a side from the module, and finds the rule and the constants of each operator. */
#include "backend/cpu/code.h"

#include "backend/constants.h"
#include "backend/cpu/rules.h"
#include "backend/program.h"
#include "backend/rows.h"
#include "backend/values.h"

bool cpu_operand_passed(const cpu_call *call, int32_t index) {
  lp_value *value = lp_op_in(call->base.op, index);
  return value && (call->constant[index] || !lp_value_is_constant(lp_value_base(value)));
}

/* Checks that every result has a buffer, as the emitters assume. */
static lp_status check_results(const cpu_code *code, const lp_side_program *program, const lp_op *op, lp_diag *diag) {
  for (int32_t i = 0; i < op->out_count; i++) {
    if (lp_value_cache(op->out[i])) continue;
    int64_t buffer = lp_value_buffer(op->out[i], code->programs.side);
    if (buffer < 0 || buffer >= program->buffer_count)
      return lp_error(diag, op->loc, "result %" PRId32 " of '%s' has buffer %" PRId64 ", found %" PRId64 " buffers", i,
                      lp_op_info_get(op->kind)->name, buffer, program->buffer_count);
  }
  return LP_OK;
}

/* Checks that every operand is in a buffer, in a cache, or a constant, as the emitters assume. */
static lp_status check_operands(const cpu_code *code, const lp_side_program *program, const lp_op *op, lp_diag *diag) {
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *value = lp_op_in(op, i) ? lp_value_base(lp_op_in(op, i)) : NULL;
    if (!value || lp_value_is_constant(value) || lp_value_cache(value)) continue;
    int64_t buffer = lp_value_buffer(value, code->programs.side);
    if (buffer < 0 || buffer >= program->buffer_count)
      return lp_error(diag, op->loc, "operand %" PRId32 " of '%s' has no buffer on this side", i,
                      lp_op_info_get(op->kind)->name);
  }
  return LP_OK;
}

/* Binds the constants of a call in the forms that its rule reads. Immediates, and operands that are a part of other
 * constants, get none. */
static lp_status bind_constants(cpu_code *code, const cpu_call *call, lp_diag *diag) {
  const lp_op *op = call->base.op;
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *value = lp_op_in(op, i);
    if (!value || !lp_value_is_constant(lp_value_base(value))) continue;
    cpu_form form = call->rule->form ? call->rule->form(op, i) : CPU_FORM_RAW;
    if (form != CPU_FORM_NONE) LP_TRY(cpu_constant_get(&code->constants, op, i, form, &call->constant[i], diag));
  }
  return LP_OK;
}

static lp_status make_call(void *user, lp_side_program *program, lp_op *op, lp_diag *diag) {
  cpu_code *code = user;
  char why[64] = "";
  if (!cpu_op_runs(op, why))
    return lp_error(diag, op->loc, "cpu cannot run '%s': %s", lp_op_info_get(op->kind)->name, why);
  if (lp_op_has(op, LP_ALIAS) || lp_op_only_reads(op)) return LP_OK;
  LP_TRY(check_results(code, program, op, diag));
  LP_TRY(check_operands(code, program, op, diag));
  cpu_call *call = LP_NEW(code->arena, cpu_call);
  *call = (cpu_call){.base = {op, lp_op_is_joint(code->module, op)}, .rule = cpu_rule_find(op->kind)};
  call->last_rows = call->base.joint && lp_value_rows(code->module, op->out[0]) == LP_ROWS_LAST;
  if (call->rule->scratch) call->scratch = call->rule->scratch(code->module, op);
  if (call->rule->scratch_rows && call->base.joint) call->scratch_rows = call->rule->scratch_rows(code->module, op);
  call->constant = LP_NEW_ARRAY(code->arena, const cpu_constant *, op->in_count);
  lp_program_add(&code->programs, program, &call->base);
  return LP_OK;
}

/* Binds the constants of all linears (`linears`), or those of all other operators. */
static lp_status bind_all(cpu_code *code, bool linears, lp_diag *diag) {
  LP_FOR_VEC_REFS(lp_side_program, program, &code->programs.list) {
    LP_FOR_VEC_REFS(lp_side_segment, segment, &program->segments)
      for (size_t c = 0; c < segment->calls.count; c++)
        if (lp_op_is_weighted(segment->calls.data[c]->op) == linears)
          LP_TRY(bind_constants(code, cpu_call_at(segment, c), diag));
  }
  return LP_OK;
}

/* Linears come first, because an embedding shares the packed weight of a linear (cpu_constant_get). */
static lp_status fill(cpu_code *code, lp_diag *diag) {
  LP_TRY(lp_programs_read(&code->programs, sizeof(lp_side_program), make_call, code, diag));
  LP_TRY(bind_all(code, true, diag));
  return bind_all(code, false, diag);
}

lp_status cpu_code_create(lp_module *module, lp_place side, lp_arena *arena, cpu_code **out, lp_diag *diag) {
  cpu_code *code = LP_NEW(arena, cpu_code);
  *code = (cpu_code){.module = module, .arena = arena, .programs = {.module = module, .arena = arena, .side = side}};
  lp_constants_init(&code->constants, arena);
  lp_status status = fill(code, diag);
  if (status != LP_OK) {
    cpu_code_free(code);
    return status;
  }
  cpu_constants_place(&code->constants);
  *out = code;
  return LP_OK;
}

void cpu_code_free(cpu_code *code) {
  if (!code) return;
  lp_programs_free(&code->programs);
  lp_constants_release(&code->constants);
}
