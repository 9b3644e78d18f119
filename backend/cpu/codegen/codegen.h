/* Makes an object file from the code of a side. */
#pragma once

#include "backend/cpu/codegen/build.h"

/* Sets the symbols of segments and layouts; reads no weight and needs no LLVM module. */
void cpu_code_name(cpu_code *code);

LP_MUST_USE lp_status cpu_codegen_create(cpu_code *code, const cpu_target *target, int opt_level, lp_diag *diag,
                                         cpu_codegen **out);
void cpu_codegen_free(cpu_codegen *gen); /* NULL is allowed */
/* Emits all layouts and segments as an unoptimised module. */
LP_MUST_USE lp_status cpu_codegen_run(cpu_codegen *gen);

/* ---- parts of the module (instance.c, layout.c, segment.c) ---- */

/* Returns the function for a call. Equal operators have one instance, so that equal layers share code. */
LLVMValueRef cpu_instance_get(cpu_codegen *gen, const cpu_call *call);
/* Appends a key: two calls with equal keys have the same code. */
void cpu_instance_key(const cpu_code *code, const cpu_call *call, lp_buf *key);

void cpu_layout_emit(cpu_codegen *gen, const lp_side_program *program);
void cpu_segment_emit(cpu_codegen *gen, const lp_side_program *program, const lp_side_segment *segment);
/* Keys for lp_programs_name; `user` is the cpu_code. */
void cpu_layout_key(void *user, const lp_side_program *program, lp_buf *key);
void cpu_segment_key(void *user, const lp_side_program *program, const lp_side_segment *segment, lp_buf *key);

/* ---- the finished module (object.c) ---- */

LP_MUST_USE lp_status cpu_optimize(cpu_codegen *gen);
LP_MUST_USE lp_status cpu_emit_object(cpu_codegen *gen, bool as_text, lp_buf *out);
LP_MUST_USE lp_status cpu_link_shared(const lp_buf *object, lp_buf *out, lp_diag *diag);
