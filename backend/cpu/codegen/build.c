/* The forms of LLVM IR that emitters share. */
#include "backend/cpu/codegen/build.h"

#include "backend/values.h"
#include "base/abi.h"
#include "base/poly.h"

#include <assert.h>
#include <llvm-c/Core.h>

LLVMValueRef cpu_i64(const cpu_emitter *e, int64_t value) {
  return LLVMConstInt(e->gen->types.i64, (unsigned long long)value, 1);
}

LLVMValueRef cpu_i32(const cpu_emitter *e, int64_t value) {
  return LLVMConstInt(e->gen->types.i32, (unsigned long long)value, 1);
}

LLVMValueRef cpu_f32(const cpu_emitter *e, double value) {
  return LLVMConstReal(e->gen->types.f32, value);
}

LLVMValueRef cpu_null(const cpu_emitter *e) {
  return LLVMConstNull(e->gen->types.ptr);
}

/* Marks a load of memory that does not change while a segment runs. */
static LLVMValueRef invariant(const cpu_emitter *e, LLVMValueRef load) {
  unsigned kind = LLVMGetMDKindIDInContext(e->gen->context, "invariant.load", 14);
  LLVMSetMetadata(load, kind, LLVMMetadataAsValue(e->gen->context, LLVMMDNodeInContext2(e->gen->context, NULL, 0)));
  return load;
}

LLVMValueRef cpu_symbol(cpu_emitter *e, lp_symbol symbol) {
  bool last_rows = e->call && e->call->last_rows;
  assert((!last_rows || symbol <= LP_SYM_COUNT) && "row-wise operators have no further symbols");
  if (last_rows && symbol == LP_SYM_R + 1) symbol = LP_SYM_S + 1;
  LLVMTypeRef i64 = e->gen->types.i64;
  LLVMValueRef index = cpu_i64(e, symbol - 1);
  LLVMValueRef address = LLVMBuildInBoundsGEP2(e->b, i64, e->sym, &index, 1, "");
  return invariant(e, LLVMBuildLoad2(e->b, i64, address, lp_symbols_name(&e->module->symbols, symbol)));
}

LLVMValueRef cpu_poly(cpu_emitter *e, const lp_poly *poly) {
  assert(poly && "every size in an outlined module is known");
  LLVMValueRef sum = cpu_i64(e, 0);
  for (int32_t t = 0; t < poly->count; t++) {
    LLVMValueRef product = cpu_i64(e, poly->term[t].coef);
    for (int32_t k = 0; k < LP_POLY_DEGREE && poly->term[t].symbol[k]; k++)
      product = LLVMBuildNSWMul(e->b, product, cpu_symbol(e, poly->term[t].symbol[k]), "");
    sum = LLVMBuildNSWAdd(e->b, sum, product, "");
  }
  return sum;
}

LLVMValueRef cpu_poly_product(cpu_emitter *e, const lp_poly *const *dims, int32_t from, int32_t to) {
  LLVMValueRef product = cpu_i64(e, 1);
  for (int32_t i = from; i < to; i++)
    product = LLVMBuildNSWMul(e->b, product, cpu_poly(e, dims[i]), "");
  return product;
}

/* Stack memory is allocated in the entry block, whatever block the builder is in. */
static LLVMValueRef entry_alloca(cpu_emitter *e, LLVMTypeRef type) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b), entry = LLVMGetEntryBasicBlock(e->function);
  LLVMValueRef first = LLVMGetFirstInstruction(entry);
  if (first)
    LLVMPositionBuilderBefore(e->b, first);
  else
    LLVMPositionBuilderAtEnd(e->b, entry);
  LLVMValueRef memory = LLVMBuildAlloca(e->b, type, "");
  LLVMPositionBuilderAtEnd(e->b, here);
  return memory;
}

LLVMValueRef cpu_array(cpu_emitter *e, const LLVMValueRef *values, int32_t count) {
  LLVMTypeRef i64 = e->gen->types.i64;
  LLVMValueRef memory = entry_alloca(e, LLVMArrayType2(i64, (uint64_t)(count ? count : 1)));
  for (int32_t i = 0; i < count; i++) {
    LLVMValueRef index = cpu_i64(e, i);
    LLVMBuildStore(e->b, values[i], LLVMBuildInBoundsGEP2(e->b, i64, memory, &index, 1, ""));
  }
  return memory;
}

LLVMValueRef cpu_sizes(cpu_emitter *e, lp_type type) {
  LLVMValueRef dims[LP_MAX_RANK];
  for (int32_t i = 0; i < type.rank; i++)
    dims[i] = cpu_poly(e, type.dim[i]);
  return cpu_array(e, dims, type.rank);
}

LLVMValueRef cpu_record(const cpu_emitter *e, LLVMValueRef *members, unsigned count) {
  return LLVMConstStructInContext(e->gen->context, members, count, 0);
}

LLVMValueRef cpu_constant_data(const cpu_emitter *e, LLVMValueRef value) {
  LLVMValueRef global = LLVMAddGlobal(e->gen->llvm, LLVMTypeOf(value), "constants");
  LLVMSetInitializer(global, value);
  LLVMSetGlobalConstant(global, 1);
  LLVMSetLinkage(global, LLVMPrivateLinkage);
  return global;
}

LLVMValueRef cpu_offset_bytes(cpu_emitter *e, LLVMValueRef base, LLVMValueRef bytes) {
  return LLVMBuildGEP2(e->b, e->gen->types.i8, base, &bytes, 1, "");
}

LLVMValueRef cpu_barrier(cpu_emitter *e) {
  return cpu_frame_member(e, e->frame, offsetof(lp_frame, barrier), e->gen->types.ptr, "barrier");
}

LLVMValueRef cpu_kernel(cpu_emitter *e, const char *name, const LLVMValueRef *args, unsigned count) {
  LLVMValueRef kernel = LLVMGetNamedFunction(e->gen->llvm, name);
  assert(kernel && "the bitcode holds every kernel of kernels.h");
  LLVMTypeRef type = LLVMGlobalGetValueType(kernel);
  assert(LLVMCountParamTypes(type) == count && "the call agrees with kernels.h");
  LLVMTypeRef params[40];
  LLVMGetParamTypes(type, params);
  for (unsigned i = 0; i < count; i++)
    assert(LLVMTypeOf(args[i]) == params[i] && "the call agrees with kernels.h");
  return LLVMBuildCall2(e->b, type, kernel, (LLVMValueRef *)(uintptr_t)args, count, "");
}

void cpu_wait(cpu_emitter *e) {
  LLVMValueRef args[] = {cpu_barrier(e), e->threads};
  LLVMBuildCall2(e->b, LLVMGlobalGetValueType(e->gen->wait), e->gen->wait, args, 2, "");
}

LLVMValueRef cpu_intrinsic(cpu_emitter *e, const char *name, LLVMTypeRef type, const LLVMValueRef *args,
                           unsigned count) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  assert(id && "the intrinsic exists in LLVM 19");
  LLVMValueRef declaration = LLVMGetIntrinsicDeclaration(e->gen->llvm, id, &type, 1);
  LLVMTypeRef function = LLVMIntrinsicGetType(e->gen->context, id, &type, 1);
  return LLVMBuildCall2(e->b, function, declaration, (LLVMValueRef *)(uintptr_t)args, count, "");
}

cpu_loop cpu_loop_begin(cpu_emitter *e, LLVMValueRef from, LLVMValueRef to, LLVMValueRef step) {
  LLVMContextRef context = e->gen->context;
  cpu_loop loop = {.to = to, .step = step};
  LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
  loop.head = LLVMAppendBasicBlockInContext(context, e->function, "loop");
  loop.after = LLVMAppendBasicBlockInContext(context, e->function, "done");
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, from, to, ""), loop.head, loop.after);
  LLVMPositionBuilderAtEnd(e->b, loop.head);
  loop.index = LLVMBuildPhi(e->b, e->gen->types.i64, "i");
  LLVMAddIncoming(loop.index, &from, &before, 1);
  return loop;
}

void cpu_loop_end(cpu_emitter *e, cpu_loop *loop) {
  LLVMValueRef next = LLVMBuildNSWAdd(e->b, loop->index, loop->step, "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, next, loop->to, ""), loop->head, loop->after);
  LLVMAddIncoming(loop->index, &next, &latch, 1);
  LLVMPositionBuilderAtEnd(e->b, loop->after);
}

void cpu_share(cpu_emitter *e, LLVMValueRef count, LLVMValueRef *from, LLVMValueRef *to) {
  LLVMValueRef chunk = LLVMBuildNSWAdd(e->b, count, LLVMBuildNSWSub(e->b, e->threads, cpu_i64(e, 1), ""), "");
  chunk = LLVMBuildSDiv(e->b, chunk, e->threads, "");
  chunk = LLVMBuildAnd(e->b, LLVMBuildNSWAdd(e->b, chunk, cpu_i64(e, 15), ""), cpu_i64(e, -16), "chunk");
  LLVMValueRef begin[] = {LLVMBuildNSWMul(e->b, e->thread, chunk, ""), count};
  *from = cpu_intrinsic(e, "llvm.smin", e->gen->types.i64, begin, 2);
  LLVMValueRef end[] = {LLVMBuildNSWAdd(e->b, begin[0], chunk, ""), count};
  *to = cpu_intrinsic(e, "llvm.smin", e->gen->types.i64, end, 2);
}

void cpu_strides(cpu_emitter *e, const lp_value *value, LLVMValueRef *strides) {
  const lp_type type = value->type;
  const lp_op *cache = lp_value_cache(value); /* [b][heads][its rows][d] */
  LLVMValueRef stride = cpu_i64(e, 1);
  for (int32_t i = type.rank - 1; i >= 0; i--) {
    strides[i] = stride;
    const lp_poly *extent = type.dim[i];
    if (cache && i == type.rank - 2) extent = lp_cache_rows(e->module, cache);
    stride = LLVMBuildNSWMul(e->b, stride, cpu_poly(e, extent), "");
  }
}

int cpu_kernel_isa(const cpu_emitter *e) {
  return e->gen->target->isa;
}

int cpu_kernel_dot(const cpu_emitter *e) {
  return e->gen->target->dot;
}

int cpu_kernel_pairs(const cpu_emitter *e) {
  return cpu_op_pairs(e->gen->target, e->op);
}

void cpu_function_flags(const cpu_codegen *gen, LLVMValueRef function, bool keep) {
  static const char *const flags[] = {"nounwind", "noinline"};
  for (size_t i = 0; i < (keep ? 2 : 1); i++) {
    unsigned kind = LLVMGetEnumAttributeKindForName(flags[i], strlen(flags[i]));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(gen->context, kind, 0));
  }
}

LLVMValueRef cpu_frame_member(cpu_emitter *e, LLVMValueRef frame, size_t offset, LLVMTypeRef type, const char *name) {
  return LLVMBuildLoad2(e->b, type, cpu_offset_bytes(e, frame, cpu_i64(e, (int64_t)offset)), name);
}
