/* lp_segment_K(frame, thread): a straight list of calls, with a barrier only where an operator touches memory that one
 * since the last barrier wrote, or writes what one read. What is not joint is called for each sequence of the pass (base/abi.h),
 * between which there is nothing to wait for. In functions that are profiled the clock is told of each call, behind
 * the barrier, so that waiting for the others is the time of the operator that they still work on. */
#include "backend/cpu/cpu_internal.h"
#include "base/map.h"
#include "base/poly.h"

#include "base/abi.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- what an operator touches --------------------------------------------------------------------------------------- */

/* Memory is told apart by number: slots, then KV caches. Scratch is apart: whether it is used may depend on the rows. */
typedef struct {
  const cpu_plan *plan;
  const cpu_program *program;
  unsigned char *touched;      /* [slots + states] READ, WRITTEN since the last barrier */
  bool scratch_used;           /* since the last barrier, for certain or perhaps */
  const lp_poly *scratch_rows; /* of those who used it, when they agree; else NULL */
} hazards;

enum { READ = 1, WRITTEN = 2 };

/* How a call depends on those since the last barrier. */
typedef enum { INDEPENDENT, DEPENDS_ON_ROWS, DEPENDENT } dependence;

static int64_t value_memory(const hazards *h, lp_value *value) {
  value = lp_value_base(value);
  const lp_op *cache = cpu_value_cache(value);
  if (cache) return h->program->slot_count + lp_op_i64(cache, "state", 0);
  return h->program->slot[cpu_value_buffer(h->plan, value)];
}

/* The operand as memory to depend on; -1 when it is none. */
static int64_t operand_memory(const hazards *h, const lp_op *op, int32_t index) {
  lp_value *value = lp_op_in(op, index);
  return value && !lp_value_is_constant(lp_value_base(value)) ? value_memory(h, value) : -1;
}

static dependence depends(const hazards *h, const cpu_call *call) {
  const lp_op *op = call->op;
  for (int32_t i = 0; i < op->in_count; i++) {
    int64_t memory = operand_memory(h, op, i);
    if (memory >= 0 && h->touched[memory] & WRITTEN) return DEPENDENT;
  }
  for (int32_t i = 0; i < op->out_count; i++)
    if (h->touched[value_memory(h, op->out[i])]) return DEPENDENT;
  if (!call->scratch || !h->scratch_used) return INDEPENDENT;
  return lp_poly_equal(call->scratch_rows, h->scratch_rows) ? DEPENDS_ON_ROWS : DEPENDENT;
}

static void mark(hazards *h, const cpu_call *call) {
  const lp_op *op = call->op;
  for (int32_t i = 0; i < op->in_count; i++) {
    int64_t memory = operand_memory(h, op, i);
    if (memory >= 0) h->touched[memory] |= READ;
  }
  for (int32_t i = 0; i < op->out_count; i++)
    h->touched[value_memory(h, op->out[i])] |= WRITTEN;
  if (!call->scratch) return;
  bool agrees = !h->scratch_used || lp_poly_equal(call->scratch_rows, h->scratch_rows);
  h->scratch_rows = agrees ? call->scratch_rows : NULL;
  h->scratch_used = true;
}

static void forget(hazards *h, size_t memories) {
  memset(h->touched, 0, memories);
  h->scratch_used = false;
  h->scratch_rows = NULL;
}

static int64_t state_count(const lp_module *module) {
  int64_t most = 0;
  LP_FOR_OPS(func, lp_module_body(module)) {
    if (func->kind != LP_OP_FUNC) continue;
    LP_FOR_OPS(op, func->region) {
      if (op->kind == LP_OP_KV_APPEND && lp_op_i64(op, "state", 0) >= most) most = lp_op_i64(op, "state", 0) + 1;
    }
  }
  return most;
}

/* ---- code ------------------------------------------------------------------------------------------------------------ */

static LLVMValueRef member(cpu_emitter *e, LLVMValueRef frame, size_t offset, LLVMTypeRef type, const char *name) {
  return LLVMBuildLoad2(e->b, type, cpu_offset_bytes(e, frame, cpu_i64(e, (int64_t)offset)), name);
}

static LLVMValueRef frame_pointer(cpu_emitter *e, LLVMValueRef frame, size_t offset, const char *name) {
  return member(e, frame, offset, e->gen->types.ptr, name);
}

static LLVMValueRef buffer_address(cpu_emitter *e, LLVMValueRef frame, int64_t buffer) {
  LLVMValueRef offsets = frame_pointer(e, frame, offsetof(lp_frame, offset), ""), index = cpu_i64(e, buffer);
  LLVMValueRef at = LLVMBuildInBoundsGEP2(e->b, e->gen->types.i64, offsets, &index, 1, "");
  LLVMValueRef offset = LLVMBuildLoad2(e->b, e->gen->types.i64, at, "");
  return cpu_offset_bytes(e, frame_pointer(e, frame, offsetof(lp_frame, arena), ""), offset);
}

static LLVMValueRef state_address(cpu_emitter *e, LLVMValueRef frame, int64_t state) {
  LLVMValueRef states = frame_pointer(e, frame, offsetof(lp_frame, state), ""), index = cpu_i64(e, state);
  LLVMValueRef at = LLVMBuildInBoundsGEP2(e->b, e->gen->types.ptr, states, &index, 1, "");
  return LLVMBuildLoad2(e->b, e->gen->types.ptr, at, "");
}

/* Of a value as the sequence of `frame` has it: its rows among those of all, or a place of its own. */
static LLVMValueRef value_address(cpu_emitter *e, LLVMValueRef frame, lp_value *value) {
  value = lp_value_base(value);
  const lp_op *cache = cpu_value_cache(value);
  if (cache) return state_address(e, frame, lp_op_i64(cache, "state", 0));
  int64_t bytes, buffer = cpu_value_buffer(e->gen->plan, value);
  lp_rows rows = lp_type_rows(e->module, value->type, &bytes);
  if (frame == e->frame || rows == LP_ROWS_NONE) return buffer_address(e, frame, buffer);
  size_t first = rows == LP_ROWS_NEW ? offsetof(lp_frame, row) : offsetof(lp_frame, last_row);
  LLVMValueRef row = member(e, frame, first, e->gen->types.i64, "");
  return cpu_offset_bytes(e, buffer_address(e, e->frame, buffer), LLVMBuildNSWMul(e->b, row, cpu_i64(e, bytes), ""));
}

static void emit_call_of(cpu_emitter *e, LLVMValueRef frame, const cpu_program *program, const cpu_call *call) {
  const lp_op *op = call->op;
  LLVMValueRef instance = cpu_instance_get(e->gen, call);
  LLVMValueRef *args = LP_NEW_ARRAY(e->gen->arena, LLVMValueRef, 3 + op->out_count + op->in_count);
  unsigned count = 0;
  args[count++] = frame;
  args[count++] = e->thread;
  for (int32_t i = 0; i < op->out_count; i++)
    args[count++] = value_address(e, frame, op->out[i]);
  for (int32_t i = 0; i < op->in_count; i++) {
    if (!cpu_operand_passed(call, i)) continue;
    if (call->constant[i])
      args[count++] = cpu_offset_bytes(e, frame_pointer(e, frame, offsetof(lp_frame, weights), ""),
                                       cpu_i64(e, call->constant[i]->offset));
    else
      args[count++] = value_address(e, frame, lp_op_in(op, i));
  }
  if (call->scratch) args[count++] = buffer_address(e, frame, program->buffer_count);
  LLVMBuildCall2(e->b, LLVMGlobalGetValueType(instance), instance, args, count, "");
}

/* The frames of the pass's sequences. */
typedef struct {
  LLVMValueRef first, count;
} sequences;

static sequences find_sequences(cpu_emitter *e) {
  LLVMValueRef count = member(e, e->frame, offsetof(lp_frame, sequences), e->gen->types.i64, "sequences");
  LLVMValueRef several = frame_pointer(e, e->frame, offsetof(lp_frame, sequence), "");
  LLVMValueRef alone = LLVMBuildICmp(e->b, LLVMIntEQ, count, cpu_i64(e, 0), "alone");
  return (sequences){.first = LLVMBuildSelect(e->b, alone, e->frame, several, ""),
                     .count = LLVMBuildSelect(e->b, alone, cpu_i64(e, 1), count, "")};
}

static void emit_call(cpu_emitter *e, const sequences *all, const cpu_program *program, const cpu_call *call) {
  if (call->joint) {
    emit_call_of(e, e->frame, program, call);
    return;
  }
  cpu_loop loop = cpu_loop_begin(e, cpu_i64(e, 0), all->count, cpu_i64(e, 1));
  LLVMValueRef at = LLVMBuildNSWMul(e->b, loop.index, cpu_i64(e, (int64_t)sizeof(lp_frame)), "");
  emit_call_of(e, cpu_offset_bytes(e, all->first, at), program, call);
  cpu_loop_end(e, &loop);
}

/* A barrier only with more rows than need no scratch. */
static void wait_with_rows(cpu_emitter *e, const lp_poly *rows) {
  LLVMContextRef context = e->gen->context;
  LLVMBasicBlockRef many = LLVMAppendBasicBlockInContext(context, e->function, "many");
  LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(context, e->function, "any");
  LLVMValueRef few = cpu_i64(e, CPU_FEW_ROWS);
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSGT, cpu_poly(e, rows), few, ""), many, after);
  LLVMPositionBuilderAtEnd(e->b, many);
  cpu_wait(e);
  LLVMBuildBr(e->b, after);
  LLVMPositionBuilderAtEnd(e->b, after);
}

static void emit_calls(cpu_emitter *e, const cpu_program *program, const cpu_segment *segment) {
  size_t memories = (size_t)(program->slot_count + state_count(e->module));
  hazards h = {.plan = e->gen->plan, .program = program};
  h.touched = LP_NEW_ARRAY(e->gen->arena, unsigned char, memories);
  bool profiled = lp_op_bool(program->func, "profiled", false);
  sequences all = find_sequences(e);
  for (size_t i = 0; i < segment->calls.count; i++) {
    const cpu_call *call = &segment->calls.data[i];
    dependence how = depends(&h, call);
    if (how == DEPENDENT) {
      cpu_wait(e);
      forget(&h, memories);
    } else if (how == DEPENDS_ON_ROWS) {
      wait_with_rows(e, call->scratch_rows);
    }
    mark(&h, call);
    if (profiled) cpu_kernel(e, "lpk_mark", (LLVMValueRef[]){e->frame, e->thread}, 2);
    emit_call(e, &all, program, call);
  }
}

void cpu_segment_emit(cpu_codegen *gen, const cpu_program *program, cpu_segment *segment) {
  LLVMTypeRef params[] = {gen->types.ptr, gen->types.i64};
  cpu_emitter e = {.gen = gen, .module = gen->plan->module};
  e.function = LLVMAddFunction(gen->llvm, segment->symbol, LLVMFunctionType(gen->types.void_, params, 2, 0));
  cpu_function_flags(gen, e.function, false);
  e.frame = LLVMGetParam(e.function, 0);
  e.thread = LLVMGetParam(e.function, 1);
  LLVMSetValueName2(e.frame, "frame", 5);
  LLVMSetValueName2(e.thread, "thread", 6);
  e.b = LLVMCreateBuilderInContext(gen->context);
  LLVMPositionBuilderAtEnd(e.b, LLVMAppendBasicBlockInContext(gen->context, e.function, "entry"));
  LLVMValueRef at = cpu_offset_bytes(&e, e.frame, cpu_i64(&e, (int64_t)offsetof(lp_frame, threads)));
  e.threads = LLVMBuildLoad2(e.b, gen->types.i64, at, "threads");
  e.sym = frame_pointer(&e, e.frame, offsetof(lp_frame, sym), "sym");
  emit_calls(&e, program, segment);
  LLVMBuildRetVoid(e.b);
  LLVMDisposeBuilder(e.b);
}

/* ---- symbols --------------------------------------------------------------------------------------------------------- */

static void key_memory(const cpu_plan *plan, const cpu_program *program, lp_value *value, lp_buf *key) {
  value = lp_value_base(value);
  const lp_op *cache = cpu_value_cache(value);
  int64_t buffer = cpu_value_buffer(plan, value), bytes = 0;
  if (cache) {
    lp_buf_printf(key, " state %" PRId64, lp_op_i64(cache, "state", 0));
    return;
  }
  lp_rows rows = lp_type_rows(plan->module, value->type, &bytes);
  lp_buf_printf(key, " buffer %" PRId64 " slot %" PRId64 " rows %d of %" PRId64, buffer, program->slot[buffer],
                (int)rows, bytes);
}

void cpu_segment_key(const cpu_plan *plan, const cpu_program *program, const cpu_segment *segment, lp_buf *key) {
  lp_buf_printf(key, "%" PRId64, program->buffer_count);
  for (size_t k = 0; k < segment->calls.count; k++) {
    const cpu_call *call = &segment->calls.data[k];
    lp_buf_puts(key, call->joint ? "\njoint " : "\n");
    cpu_instance_key(plan, call, key);
    for (int32_t i = 0; i < call->op->out_count; i++)
      key_memory(plan, program, call->op->out[i], key);
    for (int32_t i = 0; i < call->op->in_count; i++) {
      if (!cpu_operand_passed(call, i)) continue;
      if (call->constant[i])
        lp_buf_printf(key, " weight %" PRId64, call->constant[i]->offset);
      else
        key_memory(plan, program, lp_op_in(call->op, i), key);
    }
  }
}

/* The symbol that `key` has or gets: PREFIX and the next number. */
static const char *symbol_for(cpu_plan *plan, lp_map *symbols, lp_buf *key, const char *prefix) {
  const char *symbol = lp_map_get(symbols, lp_buf_text(key));
  if (!symbol) {
    symbol = lp_arena_format(plan->arena, "%s%zu", prefix, lp_map_count(symbols));
    lp_map_put(symbols, lp_buf_text(key), (void *)(uintptr_t)symbol);
  }
  lp_buf_free(key);
  return symbol;
}

void cpu_symbols_assign(cpu_plan *plan) {
  lp_map *segments = lp_map_create(), *layouts = lp_map_create();
  for (size_t i = 0; i < plan->programs.count; i++) {
    cpu_program *program = &plan->programs.data[i];
    lp_buf key = {0};
    cpu_layout_key(plan, program, &key);
    program->layout = symbol_for(plan, layouts, &key, "lp_layout_");
    for (size_t k = 0; k < program->segments.count; k++) {
      cpu_segment *segment = program->segments.data[k];
      cpu_segment_key(plan, program, segment, &key);
      segment->symbol = symbol_for(plan, segments, &key, "lp_segment_");
    }
  }
  lp_map_free(segments);
  lp_map_free(layouts);
}
