/* lp_layout_N(sym, offset): buffers of one slot share memory, slots follow one another, scratch comes last. The scratch
 * region's offset is one more entry, after the buffers'. */
#include "backend/cpu/cpu_internal.h"
#include "base/poly.h"

#include <stdlib.h>

enum { SLOT_ALIGNMENT = 64 };

/* The distinct sizes of one slot. */
typedef LP_VEC(const lp_poly *) sizes;

static void add_size(sizes *list, const lp_poly *size) {
  for (size_t i = 0; i < list->count; i++)
    if (lp_poly_equal(list->data[i], size)) return;
  lp_vec_push(list, size);
}

static void add_value(cpu_plan *plan, const cpu_program *program, const lp_value *value, sizes *slots) {
  int64_t buffer = cpu_value_buffer(plan, value);
  if (buffer < 0 || buffer >= program->buffer_count || cpu_value_cache(value)) return;
  add_size(&slots[program->slot[buffer]], lp_type_bytes(plan->module, value->type));
}

/* Arguments, the side's own results and what it receives. */
static void collect(cpu_plan *plan, const cpu_program *program, sizes *slots) {
  const lp_block *block = program->func->region;
  for (int32_t i = 0; i < block->arg_count; i++)
    add_value(plan, program, block->arg[i], slots);
  LP_FOR_OPS(op, block) {
    if (lp_op_has(op, LP_CONSTANT) || !lp_streq(lp_op_side(op), plan->side)) continue;
    for (int32_t i = 0; i < op->out_count; i++)
      add_value(plan, program, op->out[i], slots);
  }
}

static void collect_scratch(const cpu_program *program, sizes *scratch) {
  for (size_t i = 0; i < program->segments.count; i++) {
    const cpu_segment *segment = program->segments.data[i];
    for (size_t k = 0; k < segment->calls.count; k++)
      if (segment->calls.data[k].scratch) add_size(scratch, segment->calls.data[k].scratch);
  }
}

/* The greatest of the sizes, rounded up. */
static LLVMValueRef emit_size(cpu_emitter *e, const sizes *list) {
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

static void emit_body(cpu_emitter *e, const cpu_program *program, const sizes *slots, const sizes *scratch) {
  LLVMValueRef offsets = LLVMGetParam(e->function, 1), end = cpu_i64(e, 0);
  for (int64_t slot = 0; slot < program->slot_count; slot++) {
    for (int64_t buffer = 0; buffer < program->buffer_count; buffer++)
      if (program->slot[buffer] == slot) store_offset(e, offsets, buffer, end);
    end = LLVMBuildNSWAdd(e->b, end, emit_size(e, &slots[slot]), "");
  }
  store_offset(e, offsets, program->buffer_count, end);
  LLVMBuildRet(e->b, LLVMBuildNSWAdd(e->b, end, emit_size(e, scratch), "bytes"));
}

void cpu_layout_emit(cpu_codegen *gen, cpu_program *program) {
  sizes *slots = LP_NEW_ARRAY(gen->arena, sizes, program->slot_count + 1), scratch = {0};
  collect(gen->plan, program, slots);
  collect_scratch(program, &scratch);
  LLVMTypeRef params[] = {gen->types.ptr, gen->types.ptr};
  LLVMTypeRef type = LLVMFunctionType(gen->types.i64, params, 2, 0);
  cpu_emitter e = {.gen = gen, .module = gen->plan->module};
  e.function = LLVMAddFunction(gen->llvm, program->layout, type);
  cpu_function_flags(gen, e.function, false);
  e.sym = LLVMGetParam(e.function, 0);
  e.b = LLVMCreateBuilderInContext(gen->context);
  LLVMPositionBuilderAtEnd(e.b, LLVMAppendBasicBlockInContext(gen->context, e.function, "entry"));
  emit_body(&e, program, slots, &scratch);
  LLVMDisposeBuilder(e.b);
  for (int64_t i = 0; i < program->slot_count; i++)
    lp_vec_free(&slots[i]);
  lp_vec_free(&scratch);
}

/* What makes two programs' layouts the same function. */
void cpu_layout_key(cpu_plan *plan, const cpu_program *program, lp_buf *key) {
  sizes *slots = LP_NEW_ARRAY(plan->arena, sizes, program->slot_count + 1);
  collect(plan, program, slots);
  collect_scratch(program, &slots[program->slot_count]);
  for (int64_t buffer = 0; buffer < program->buffer_count; buffer++)
    lp_buf_printf(key, "%" PRId64 " ", program->slot[buffer]);
  for (int64_t i = 0; i <= program->slot_count; i++) {
    lp_buf_puts(key, ";");
    for (size_t k = 0; k < slots[i].count; k++) {
      lp_poly_print(slots[i].data[k], &plan->module->symbols, key);
      lp_buf_puts(key, ",");
    }
    lp_vec_free(&slots[i]);
  }
}
