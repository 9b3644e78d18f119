/* lp_segment_K(frame, thread): a list of calls, with a barrier only before a call that reads memory written since
 * the last barrier, or writes memory read since then. Calls that are not joint run for each sequence of the pass
 * (base/abi.h), with no barrier between the sequences. In profiled functions a mark for the clock follows each
 * barrier, so that the time spent waiting counts for the operator that other threads still work on. */
#include "backend/cpu/codegen/codegen.h"

#include "backend/program.h"
#include "backend/rows.h"
#include "backend/values.h"
#include "base/abi.h"
#include "base/poly.h"

#include <llvm-c/Core.h>

/* ---- the memory that an operator touches ------------------------------------------------------------------------- */

/* Each memory has a number: first the slots, then the KV caches. Scratch has no number, because its use may depend on
 * the number of rows. */
typedef struct {
  lp_place side;
  const lp_side_program *program;
  unsigned char *touched;      /* [slots + states] READ, WRITTEN since the last barrier */
  bool scratch_used;           /* since the last barrier, at least for some numbers of rows */
  const lp_poly *scratch_rows; /* rows of the calls that used it, when they agree; else NULL */
} hazards;

enum { READ = 1, WRITTEN = 2 };

/* The dependence of a call on the calls since the last barrier. */
typedef enum { INDEPENDENT, DEPENDS_ON_ROWS, DEPENDENT } dependence;

static int64_t value_memory(const hazards *h, lp_value *value) {
  value = lp_value_base(value);
  const lp_op *cache = lp_value_cache(value);
  if (cache) return h->program->slot_count + lp_op_i64(cache, "state", 0);
  return h->program->slot[lp_value_buffer(value, h->side)];
}

/* The number of an operand's memory; -1 when it is absent or constant. */
static int64_t operand_memory(const hazards *h, const lp_op *op, int32_t index) {
  lp_value *value = lp_op_in(op, index);
  return value && !lp_value_is_constant(lp_value_base(value)) ? value_memory(h, value) : -1;
}

static dependence depends(const hazards *h, const cpu_call *call) {
  const lp_op *op = call->base.op;
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
  const lp_op *op = call->base.op;
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
  LP_FOR_FUNCS(func, module) {
    LP_FOR_OPS(op, func->region) {
      if (lp_op_state(op) >= most) most = lp_op_state(op) + 1;
    }
  }
  return most;
}

/* ---- code -------------------------------------------------------------------------------------------------------- */

static LLVMValueRef frame_pointer(cpu_emitter *e, LLVMValueRef frame, size_t offset, const char *name) {
  return cpu_frame_member(e, frame, offset, e->gen->types.ptr, name);
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

/* The address of a value for the sequence of `frame`: its rows among those of all sequences, or its own buffer. */
static LLVMValueRef value_address(cpu_emitter *e, LLVMValueRef frame, lp_value *value) {
  value = lp_value_base(value);
  const lp_op *cache = lp_value_cache(value);
  if (cache) return state_address(e, frame, lp_op_i64(cache, "state", 0));
  int64_t bytes, buffer = lp_value_buffer(value, e->gen->code->programs.side);
  lp_rows rows = lp_type_rows(e->module, value->type, &bytes);
  if (frame == e->frame || rows == LP_ROWS_NONE) return buffer_address(e, frame, buffer);
  size_t first = rows == LP_ROWS_NEW ? offsetof(lp_frame, row) : offsetof(lp_frame, last_row);
  LLVMValueRef row = cpu_frame_member(e, frame, first, e->gen->types.i64, "");
  return cpu_offset_bytes(e, buffer_address(e, e->frame, buffer), LLVMBuildNSWMul(e->b, row, cpu_i64(e, bytes), ""));
}

static void emit_call_of(cpu_emitter *e, LLVMValueRef frame, const lp_side_program *program, const cpu_call *call) {
  const lp_op *op = call->base.op;
  LLVMValueRef instance = cpu_instance_get(e->gen, call);
  LLVMValueRef *args = LP_NEW_ARRAY(e->gen->arena, LLVMValueRef, 4 + op->out_count + op->in_count);
  unsigned count = 0;
  args[count++] = frame;
  args[count++] = call->last_rows ? e->last_sym : frame_pointer(e, frame, offsetof(lp_frame, sym), "");
  args[count++] = e->thread;
  for (int32_t i = 0; i < op->out_count; i++)
    args[count++] = value_address(e, frame, op->out[i]);
  for (int32_t i = 0; i < op->in_count; i++) {
    if (!cpu_operand_passed(call, i)) continue;
    if (call->constant[i])
      args[count++] = cpu_offset_bytes(e, frame_pointer(e, frame, offsetof(lp_frame, weights), ""),
                                       cpu_i64(e, call->constant[i]->stored.offset));
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
  LLVMValueRef count = cpu_frame_member(e, e->frame, offsetof(lp_frame, sequences), e->gen->types.i64, "sequences");
  LLVMValueRef several = frame_pointer(e, e->frame, offsetof(lp_frame, sequence), "");
  LLVMValueRef alone = LLVMBuildICmp(e->b, LLVMIntEQ, count, cpu_i64(e, 0), "alone");
  return (sequences){.first = LLVMBuildSelect(e->b, alone, e->frame, several, ""),
                     .count = LLVMBuildSelect(e->b, alone, cpu_i64(e, 1), count, "")};
}

static void emit_call(cpu_emitter *e, const sequences *all, const lp_side_program *program, const cpu_call *call) {
  if (call->base.joint) {
    emit_call_of(e, e->frame, program, call);
    return;
  }
  cpu_loop loop = cpu_loop_begin(e, cpu_i64(e, 0), all->count, cpu_i64(e, 1));
  LLVMValueRef at = LLVMBuildNSWMul(e->b, loop.index, cpu_i64(e, (int64_t)sizeof(lp_frame)), "");
  emit_call_of(e, cpu_offset_bytes(e, all->first, at), program, call);
  cpu_loop_end(e, &loop);
}

/* A barrier that is skipped when there are so few rows that no call uses scratch. */
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

static void emit_calls(cpu_emitter *e, const lp_side_program *program, const lp_side_segment *segment) {
  size_t memories = (size_t)(program->slot_count + state_count(e->module));
  hazards h = {.side = e->gen->code->programs.side, .program = program};
  h.touched = LP_NEW_ARRAY(e->gen->arena, unsigned char, memories);
  bool profiled = lp_op_bool(program->func, "profiled", false);
  sequences all = find_sequences(e);
  for (size_t i = 0; i < segment->calls.count; i++) {
    const cpu_call *call = cpu_call_at(segment, i);
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

/* The symbols of row-wise operators on the last rows. Their types have the symbols of the ABI and no others. */
static LLVMValueRef last_symbols(cpu_emitter *e) {
  LLVMValueRef values[LP_SYM_COUNT];
  for (int32_t i = 0; i < LP_SYM_COUNT; i++)
    values[i] = cpu_symbol(e, (lp_symbol)((i == LP_SYM_S ? LP_SYM_R : i) + 1));
  return cpu_array(e, values, LP_SYM_COUNT);
}

void cpu_segment_emit(cpu_codegen *gen, const lp_side_program *program, const lp_side_segment *segment) {
  LLVMTypeRef params[] = {gen->types.ptr, gen->types.i64};
  cpu_emitter e = {.gen = gen, .module = gen->code->module};
  e.function = LLVMAddFunction(gen->llvm, segment->symbol, LLVMFunctionType(gen->types.void_, params, 2, 0));
  cpu_function_flags(gen, e.function, false);
  e.frame = LLVMGetParam(e.function, 0);
  e.thread = LLVMGetParam(e.function, 1);
  LLVMSetValueName2(e.frame, "frame", 5);
  LLVMSetValueName2(e.thread, "thread", 6);
  e.b = LLVMCreateBuilderInContext(gen->context);
  LLVMPositionBuilderAtEnd(e.b, LLVMAppendBasicBlockInContext(gen->context, e.function, "entry"));
  e.threads = cpu_frame_member(&e, e.frame, offsetof(lp_frame, threads), gen->types.i64, "threads");
  e.sym = frame_pointer(&e, e.frame, offsetof(lp_frame, sym), "sym");
  e.last_sym = last_symbols(&e);
  emit_calls(&e, program, segment);
  LLVMBuildRetVoid(e.b);
  LLVMDisposeBuilder(e.b);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static void key_memory(const cpu_code *code, const lp_side_program *program, lp_value *value, lp_buf *key) {
  value = lp_value_base(value);
  const lp_op *cache = lp_value_cache(value);
  int64_t buffer = lp_value_buffer(value, code->programs.side), bytes = 0;
  if (cache) {
    lp_buf_printf(key, " state %" PRId64, lp_op_i64(cache, "state", 0));
    return;
  }
  lp_rows rows = lp_type_rows(code->module, value->type, &bytes);
  lp_buf_printf(key, " buffer %" PRId64 " slot %" PRId64 " rows %d of %" PRId64, buffer, program->slot[buffer],
                (int)rows, bytes);
}

void cpu_segment_key(void *user, const lp_side_program *program, const lp_side_segment *segment, lp_buf *key) {
  const cpu_code *code = user;
  lp_buf_printf(key, "%" PRId64, program->buffer_count);
  for (size_t k = 0; k < segment->calls.count; k++) {
    const cpu_call *call = cpu_call_at(segment, k);
    lp_buf_puts(key, call->last_rows ? "\njoint last " : call->base.joint ? "\njoint " : "\n");
    cpu_instance_key(code, call, key);
    for (int32_t i = 0; i < call->base.op->out_count; i++)
      key_memory(code, program, call->base.op->out[i], key);
    for (int32_t i = 0; i < call->base.op->in_count; i++) {
      if (!cpu_operand_passed(call, i)) continue;
      if (call->constant[i])
        lp_buf_printf(key, " weight %" PRId64, call->constant[i]->stored.offset);
      else
        key_memory(code, program, lp_op_in(call->base.op, i), key);
    }
  }
}
