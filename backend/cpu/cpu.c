/* The CPU backend's table. */
#include "backend/backends.h"

#include "backend/cpu/codegen/codegen.h"
#include "backend/cpu/constants/weights.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/program.h"

#include <llvm-c/Core.h>

typedef lp_status code_work(cpu_code *code, const cpu_target *target, void *user, lp_diag *diag);

/* Calls `work` with the code and the target of the side, and releases the code afterwards. */
static lp_status with_code(lp_module *module, const lp_emit_options *options, code_work *work, void *user,
                           lp_diag *diag) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  cpu_target target;
  cpu_code *code = NULL;
  lp_status status = cpu_target_find(options->march, LP_LOC_NONE, &target, arena, diag);
  if (status == LP_OK) status = cpu_code_create(module, options->side, arena, &code, diag);
  if (status == LP_OK) {
    cpu_code_name(code);
    code->contract = options->contract;
    status = work(code, &target, user, diag);
  }
  cpu_code_free(code);
  return status;
}

static lp_status check_march(const char *march, lp_loc loc, lp_diag *diag) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  cpu_target target;
  return cpu_target_find(march, loc, &target, arena, diag);
}

/* ---- emit -------------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_emit_form form;
  bool macos;
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
  LP_OWNED(lp_buf_free) lp_buf object = {0};
  LP_TRY(cpu_emit_object(gen, false, &object));
  return cpu_link_shared(&object, want->out, diag);
}

static lp_status emit_code(cpu_code *code, const cpu_target *target, void *user, lp_diag *diag) {
  const emission *want = user;
  cpu_codegen *gen;
  cpu_target mine = *target;
  if (want->macos && want->form != LP_EMIT_SHARED) /* libraries are linked as ELF */
    mine.triple = mine.aarch64 ? "arm64-apple-macosx11.0.0" : "x86_64-apple-macosx11.0.0";
  LP_TRY(cpu_codegen_create(code, &mine, want->opt_level, diag, &gen));
  lp_status status = cpu_codegen_run(gen);
  if (status == LP_OK) status = cpu_optimize(gen);
  if (status == LP_OK) status = write_form(gen, want, diag);
  cpu_codegen_free(gen);
  return status;
}

static lp_status cpu_emit(lp_module *module, const lp_emit_options *options, lp_emit_form form, lp_buf *out,
                          lp_diag *diag) {
  if (form >= LP_EMIT_SOURCE) return lp_error(diag, LP_LOC_NONE, "the cpu backend emits no source code");
  emission want = {form, lp_streq(options->os, "macos"), options->opt_level, out};
  return with_code(module, options, emit_code, &want, diag);
}

/* ---- describe ---------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_arena *arena; /* the caller's: outlives the code */
  lp_code *out;
} description;

/* Sets `what[0]` if some product rounds its activations to int8, `what[1]` if to bf16. */
static void find_rounding(const cpu_code *code, const cpu_target *target, bool what[2]) {
  LP_FOR_VEC_REFS(lp_side_program, program, &code->programs.list) {
    for (size_t k = 0; k < program->segments.count; k++)
      for (size_t c = 0; c < program->segments.data[k]->calls.count; c++) {
        const lp_op *op = program->segments.data[k]->calls.data[c]->op;
        what[0] = what[0] || (lp_op_is_weighted(op) && cpu_linear_is_integer(op));
        what[1] = what[1] || cpu_op_pairs(target, op) != LPK_PAIRS_NONE;
      }
  }
}

static lp_status describe_code(cpu_code *code, const cpu_target *target, void *user, lp_diag *diag) {
  const description *d = user;
  (void)diag;
  *d->out = (lp_code){.triple = lp_arena_strdup(d->arena, target->triple),
                      .march = lp_arena_strdup(d->arena, target->march),
                      .level = target->level,
                      .weight_bytes = code->constants.bytes};
  bool what[2] = {false};
  find_rounding(code, target, what);
  d->out->activations = what[0] && what[1] ? "int8,bf16" : what[0] ? "int8" : what[1] ? "bf16" : NULL;
  d->out->feature = what[1] ? target->pairs_feature : what[0] ? target->dot_feature : NULL;
  lp_programs_describe(&code->programs, d->arena, d->out);
  return LP_OK;
}

static lp_status cpu_describe(lp_module *module, const lp_emit_options *options, lp_arena *arena, lp_code *out,
                              lp_diag *diag) {
  description d = {arena, out};
  return with_code(module, options, describe_code, &d, diag);
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static lp_status write_code(cpu_code *code, const cpu_target *target, void *user, lp_diag *diag) {
  (void)target;
  return cpu_weights_write(&code->constants, code->module, user, diag);
}

static lp_status cpu_write_weights(lp_module *module, const lp_emit_options *options, lp_writer *writer,
                                   lp_diag *diag) {
  return with_code(module, options, write_code, writer, diag);
}

const lp_backend lp_backend_cpu = {
    .name = "cpu",
    .summary = "native code for x86-64 and aarch64, through LLVM",
    .emits_code = true,
    .sharded = true,
    .runs = cpu_op_runs,
    .emit = cpu_emit,
    .check_march = check_march,
    .describe = cpu_describe,
    .write_weights = cpu_write_weights,
};
