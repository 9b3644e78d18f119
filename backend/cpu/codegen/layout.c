/* lp_layout_N(sym, offset): buffers of one slot share memory, slots follow one another, scratch comes last. The
 * offset of the scratch region is one more entry, after those of the buffers. */
#include "backend/cpu/codegen/codegen.h"

#include "backend/program.h"
#include "base/poly.h"

#include <llvm-c/Core.h>

enum { SLOT_ALIGNMENT = 64 };

static void collect_scratch(const lp_side_program *program, lp_sizes *scratch) {
  LP_FOR_VEC_REFS(lp_side_segment, segment, &program->segments)
    for (size_t k = 0; k < segment->calls.count; k++)
      if (cpu_call_at(segment, k)->scratch) lp_sizes_add(scratch, cpu_call_at(segment, k)->scratch);
}

/* The greatest of the sizes, rounded up to the alignment. */
static LLVMValueRef emit_size(cpu_emitter *e, const lp_sizes *list) {
  LLVMValueRef most = cpu_i64(e, 0);
  for (size_t i = 0; i < list->count; i++) {
    LLVMValueRef args[] = {most, cpu_poly(e, list->data[i])};
    most = cpu_intrinsic(e, "llvm.smax", e->gen->types.i64, args, 2);
  }
  LLVMValueRef up = LLVMBuildNSWAdd(e->b, most, cpu_i64(e, SLOT_ALIGNMENT - 1), "");
  return LLVMBuildAnd(e->b, up, cpu_i64(e, -SLOT_ALIGNMENT), "");
}

static void store_offset(cpu_emitter *e, LLVMValueRef offsets, int64_t buffer, LLVMValueRef value) {
  LLVMValueRef index = cpu_i64(e, buffer);
  LLVMBuildStore(e->b, value, LLVMBuildInBoundsGEP2(e->b, e->gen->types.i64, offsets, &index, 1, ""));
}

static void emit_body(cpu_emitter *e, const lp_side_program *program, const lp_sizes *slots, const lp_sizes *scratch) {
  LLVMValueRef offsets = LLVMGetParam(e->function, 1), end = cpu_i64(e, 0);
  for (int64_t slot = 0; slot < program->slot_count; slot++) {
    for (int64_t buffer = 0; buffer < program->buffer_count; buffer++)
      if (program->slot[buffer] == slot) store_offset(e, offsets, buffer, end);
    end = LLVMBuildNSWAdd(e->b, end, emit_size(e, &slots[slot]), "");
  }
  store_offset(e, offsets, program->buffer_count, end);
  LLVMBuildRet(e->b, LLVMBuildNSWAdd(e->b, end, emit_size(e, scratch), "bytes"));
}

void cpu_layout_emit(cpu_codegen *gen, const lp_side_program *program) {
  lp_sizes *slots = lp_program_slot_sizes(&gen->code->programs, program), *scratch = &slots[program->slot_count];
  collect_scratch(program, scratch);
  LLVMTypeRef params[] = {gen->types.ptr, gen->types.ptr};
  LLVMTypeRef type = LLVMFunctionType(gen->types.i64, params, 2, 0);
  cpu_emitter e = {.gen = gen, .module = gen->code->module};
  e.function = LLVMAddFunction(gen->llvm, program->layout, type);
  cpu_function_flags(gen, e.function, false);
  e.sym = LLVMGetParam(e.function, 0);
  e.b = LLVMCreateBuilderInContext(gen->context);
  LLVMPositionBuilderAtEnd(e.b, LLVMAppendBasicBlockInContext(gen->context, e.function, "entry"));
  emit_body(&e, program, slots, scratch);
  LLVMDisposeBuilder(e.b);
  for (int64_t i = 0; i <= program->slot_count; i++)
    lp_vec_free(&slots[i]);
}

void cpu_layout_key(void *user, const lp_side_program *program, lp_buf *key) {
  const cpu_code *code = user;
  lp_sizes *slots = lp_program_slot_sizes(&code->programs, program);
  collect_scratch(program, &slots[program->slot_count]);
  for (int64_t buffer = 0; buffer < program->buffer_count; buffer++)
    lp_buf_printf(key, "%" PRId64 " ", program->slot[buffer]);
  for (int64_t i = 0; i <= program->slot_count; i++) {
    lp_buf_puts(key, ";");
    for (size_t k = 0; k < slots[i].count; k++) {
      lp_poly_print(slots[i].data[k], &code->module->symbols, key);
      lp_buf_puts(key, ",");
    }
    lp_vec_free(&slots[i]);
  }
}
