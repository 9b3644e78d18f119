/* The CPU backend's table. */
#include "backend/cpu/cpu_internal.h"

#include <stdlib.h>

/* Does `work` on the side's plan and target, and cleans up in every case. */
typedef lp_status with_plan(cpu_plan *plan, const cpu_target *target, void *user, lp_diag *diag);

static lp_status on_plan(lp_module *module, const lp_emit_options *options, with_plan *work, void *user,
                         lp_diag *diag) {
  lp_arena *arena = lp_arena_create();
  cpu_target target;
  cpu_plan *plan = NULL;
  lp_status status = cpu_target_find(options->march, &target, arena, diag);
  if (status == LP_OK) status = cpu_plan_create(module, options->side, arena, &plan, diag);
  if (status == LP_OK) {
    cpu_symbols_assign(plan);
    status = work(plan, &target, user, diag);
  }
  cpu_plan_free(plan);
  lp_arena_free(arena);
  return status;
}

/* ---- emit ------------------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_emit_form form;
  int opt_level;
  lp_buf *out;
} emission;

static void print_ir(const cpu_codegen *gen, lp_buf *out) {
  char *text = LLVMPrintModuleToString(gen->llvm);
  lp_buf_puts(out, text);
  LLVMDisposeMessage(text);
}

static lp_status write_form(cpu_codegen *gen, const emission *want, lp_diag *diag) {
  if (want->form == LP_EMIT_LLVM_IR) {
    print_ir(gen, want->out);
    return LP_OK;
  }
  if (want->form != LP_EMIT_SHARED) return cpu_emit_object(gen, want->form == LP_EMIT_ASM, want->out);
  lp_buf object = {0};
  lp_status status = cpu_emit_object(gen, false, &object);
  if (status == LP_OK) status = cpu_link_shared(&object, want->out, diag);
  lp_buf_free(&object);
  return status;
}

static lp_status emit_plan(cpu_plan *plan, const cpu_target *target, void *user, lp_diag *diag) {
  const emission *want = user;
  cpu_codegen *gen;
  LP_TRY(cpu_codegen_create(plan, target, want->opt_level, diag, &gen));
  lp_status status = cpu_codegen_run(gen);
  if (status == LP_OK) status = cpu_optimize(gen);
  if (status == LP_OK) status = write_form(gen, want, diag);
  cpu_codegen_free(gen);
  return status;
}

static lp_status cpu_emit(lp_module *module, const lp_emit_options *options, lp_emit_form form, lp_buf *out,
                          lp_diag *diag) {
  if (form >= LP_EMIT_SOURCE) return lp_error(diag, LP_LOC_NONE, "the cpu backend emits no source code");
  emission want = {form, options->opt_level, out};
  return on_plan(module, options, emit_plan, &want, diag);
}

/* ---- describe ---------------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_arena *arena; /* the caller's: outlives the plan */
  lp_code *out;
} description;

static void describe_program(const description *d, const cpu_program *program, lp_code_program *out) {
  int64_t count = 0;
  for (size_t i = 0; i < program->segments.count; i++)
    if (program->segments.data[i]->index >= count) count = program->segments.data[i]->index + 1;
  const char **segment = LP_NEW_ARRAY(d->arena, const char *, count);
  for (size_t i = 0; i < program->segments.count; i++)
    segment[program->segments.data[i]->index] = lp_arena_strdup(d->arena, program->segments.data[i]->symbol);
  *out = (lp_code_program){.name = program->name,
                           .layout = lp_arena_strdup(d->arena, program->layout),
                           .buffers = program->buffer_count + 1, /* scratch */
                           .segment_count = count,
                           .segment = segment};
}

static lp_status describe_plan(cpu_plan *plan, const cpu_target *target, void *user, lp_diag *diag) {
  const description *d = user;
  (void)diag;
  lp_code_program *programs = LP_NEW_ARRAY(d->arena, lp_code_program, plan->programs.count);
  for (size_t i = 0; i < plan->programs.count; i++)
    describe_program(d, &plan->programs.data[i], &programs[i]);
  *d->out = (lp_code){.triple = lp_arena_strdup(d->arena, target->triple),
                      .march = lp_arena_strdup(d->arena, target->march),
                      .program_count = (int32_t)plan->programs.count,
                      .program = programs,
                      .weight_bytes = plan->weight_bytes};
  return LP_OK;
}

static lp_status cpu_describe(lp_module *module, const lp_emit_options *options, lp_arena *arena, lp_code *out,
                              lp_diag *diag) {
  description d = {arena, out};
  return on_plan(module, options, describe_plan, &d, diag);
}

/* ---- weights ------------------------------------------------------------------------------------------------------------ */

static lp_status write_plan(cpu_plan *plan, const cpu_target *target, void *user, lp_diag *diag) {
  (void)target;
  return cpu_weights_write(plan, user, diag);
}

static lp_status cpu_write_weights(lp_module *module, const lp_emit_options *options, const char *path, lp_diag *diag) {
  return on_plan(module, options, write_plan, (void *)(uintptr_t)path, diag);
}

const lp_backend lp_backend_cpu = {
    .name = "cpu",
    .summary = "native code for x86-64 and aarch64, through LLVM",
    .emits_code = true,
    .runs = cpu_op_runs,
    .emit = cpu_emit,
    .describe = cpu_describe,
    .write_weights = cpu_write_weights,
};
