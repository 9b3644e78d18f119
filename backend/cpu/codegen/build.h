/* Writes LLVM IR: the module of a side, the current instance, and the few forms of IR that emitters use (build.c). */
#pragma once

#include "backend/cpu/rules.h"
#include "backend/cpu/target.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

typedef struct {
  LLVMTypeRef void_, i1, i8, i16, i32, i64, f16, f32, f64, ptr;
} cpu_types;

/* The LLVM module of a side. */
typedef struct {
  cpu_code *code;
  const cpu_target *target;
  lp_arena *arena;
  lp_diag *diag;
  LLVMContextRef context;
  LLVMModuleRef llvm;
  LLVMTargetMachineRef machine;
  cpu_types types;
  lp_map *instances; /* key -> LLVMValueRef */
  LLVMValueRef wait; /* the barrier between operators */
  int opt_level;
  bool failed; /* LLVM reported an error, which is in the diagnostics */
} cpu_codegen;

/* An instance being written: a function of the frame, the values of symbols, the thread, the addresses of results and
 * operands, and scratch. */
struct cpu_emitter {
  cpu_codegen *gen;
  lp_module *module;
  const lp_op *op;
  const cpu_call *call;
  LLVMBuilderRef b;
  LLVMValueRef function, frame, thread, threads;
  LLVMValueRef sym;       /* the values of symbols */
  LLVMValueRef last_sym;  /* of a segment: values with r in the place of s, for operators on the last rows */
  LLVMValueRef *out, *in; /* NULL where the operand is absent or has no address */
  LLVMValueRef scratch;   /* NULL when the rule needs no scratch */
};

LLVMValueRef cpu_i64(const cpu_emitter *e, int64_t value);
LLVMValueRef cpu_i32(const cpu_emitter *e, int64_t value);
LLVMValueRef cpu_f32(const cpu_emitter *e, double value);
LLVMValueRef cpu_null(const cpu_emitter *e);
/* The value of a symbol, and of a polynomial. */
LLVMValueRef cpu_symbol(cpu_emitter *e, lp_symbol symbol);
LLVMValueRef cpu_poly(cpu_emitter *e, const lp_poly *poly);
LLVMValueRef cpu_poly_product(cpu_emitter *e, const lp_poly *const *dims, int32_t from, int32_t to);
/* Allocates an i64 array on the stack. */
LLVMValueRef cpu_array(cpu_emitter *e, const LLVMValueRef *values, int32_t count);
/* Puts the sizes of a type into such an array. */
LLVMValueRef cpu_sizes(cpu_emitter *e, lp_type type);
/* A constant structure of constant members, laid out as in C, and the address of a constant of the module. */
LLVMValueRef cpu_record(const cpu_emitter *e, LLVMValueRef *members, unsigned count);
LLVMValueRef cpu_constant_data(const cpu_emitter *e, LLVMValueRef value);
LLVMValueRef cpu_offset_bytes(cpu_emitter *e, LLVMValueRef base, LLVMValueRef bytes);
LLVMValueRef cpu_barrier(cpu_emitter *e); /* frame->barrier */
/* Arguments of a call that takes a list and its length. */
#define CPU_ARGS(...) (LLVMValueRef[]){__VA_ARGS__}, LP_COUNT(((LLVMValueRef[]){__VA_ARGS__}))
/* Calls a kernel of kernels.h; arguments are checked against its prototype. */
LLVMValueRef cpu_kernel(cpu_emitter *e, const char *name, const LLVMValueRef *args, unsigned count);
void cpu_wait(cpu_emitter *e); /* emits a barrier inside an operator */
/* An intrinsic of one overloaded type. */
LLVMValueRef cpu_intrinsic(cpu_emitter *e, const char *name, LLVMTypeRef type, const LLVMValueRef *args,
                           unsigned count);
/* for (i = from; i < to; i += step): body between begin and end; `index` is i. */
typedef struct {
  LLVMBasicBlockRef head, after;
  LLVMValueRef index, to, step;
} cpu_loop;
cpu_loop cpu_loop_begin(cpu_emitter *e, LLVMValueRef from, LLVMValueRef to, LLVMValueRef step);
void cpu_loop_end(cpu_emitter *e, cpu_loop *loop);
/* The thread's part of [0, count), in multiples of 16: first, one past the last. */
void cpu_share(cpu_emitter *e, LLVMValueRef count, LLVMValueRef *from, LLVMValueRef *to);
/* Contiguous strides of `type` in elements; a cache's rows are `c` apart. `strides` is [rank]. */
void cpu_strides(cpu_emitter *e, const lp_value *value, LLVMValueRef *strides);
/* The lpk_groups of a product's weight or of a table (cpu/rules/linear.c). */
LLVMValueRef cpu_groups(cpu_emitter *e, const cpu_constant *w);
int cpu_kernel_isa(const cpu_emitter *e);
int cpu_kernel_dot(const cpu_emitter *e);
/* How the operator, an op.linear or op.attention, multiplies bf16: LPK_PAIRS_*. */
int cpu_kernel_pairs(const cpu_emitter *e);
/* Attributes of every emitted function: nounwind, and noinline when `keep` is set. */
void cpu_function_flags(const cpu_codegen *gen, LLVMValueRef function, bool keep);
/* A member of `frame`, which is of lp_frame, at `offset` bytes. */
LLVMValueRef cpu_frame_member(cpu_emitter *e, LLVMValueRef frame, size_t offset, LLVMTypeRef type, const char *name);
