/* Elementwise expressions: scalars, and the functions of op.map on them (scalar.c, function.c, math.c). */
#pragma once

#include "backend/cpu/codegen/build.h"

/* A scalar in an expression: integers have their width (packed ones a byte), narrow floats are float. */
typedef struct {
  LLVMValueRef value;
  lp_dtype dtype;
} cpu_scalar;
cpu_scalar cpu_scalar_load(cpu_emitter *e, LLVMValueRef address, lp_dtype dtype);
void cpu_scalar_store(cpu_emitter *e, LLVMValueRef address, cpu_scalar scalar, lp_dtype dtype);
/* Element offset + index of an array, packed types too. Elements of a packed result are stored in order. */
cpu_scalar cpu_scalar_load_at(cpu_emitter *e, LLVMValueRef base, LLVMValueRef offset, LLVMValueRef index,
                              lp_dtype dtype);
void cpu_scalar_store_at(cpu_emitter *e, LLVMValueRef base, LLVMValueRef index, cpu_scalar scalar, lp_dtype dtype);
cpu_scalar cpu_scalar_convert(cpu_emitter *e, cpu_scalar scalar, lp_dtype dtype);
/* Takes the same bits as another type of the same width. */
cpu_scalar cpu_scalar_reinterpret(cpu_emitter *e, cpu_scalar scalar, lp_dtype dtype);
/* Converts as the cast `op` specifies. */
cpu_scalar cpu_scalar_cast(cpu_emitter *e, const lp_op *op, cpu_scalar scalar, lp_dtype dtype);
cpu_scalar cpu_scalar_immediate(cpu_emitter *e, const lp_tensor *tensor);
/* Emits one op.map with a result of dtype `result`. */
cpu_scalar cpu_scalar_map(cpu_emitter *e, const lp_op *op, const cpu_scalar *in, int32_t count, lp_dtype result);
bool cpu_scalar_runs(const char *fn);
/* A function being emitted: operands of one element type (`type`), and the operator, which has the attributes. */
typedef struct {
  cpu_emitter *e;
  LLVMBuilderRef b;
  const lp_op *op;
  LLVMTypeRef type;
  bool real, negatives; /* float; not unsigned */
  LLVMValueRef x, y, z; /* the operands; NULL where absent */
} cpu_fn;

/* The element type to which operands are converted. */
typedef enum {
  CPU_FN_RESULT,  /* the type of the result */
  CPU_FN_REAL,    /* the type of the result, as a float */
  CPU_FN_COMPARE, /* the operands' common one; gives a bit */
  CPU_FN_LOGIC,   /* bool; gives an i8 of 0 or 1 */
  CPU_FN_SELECT,  /* the operator Where */
  CPU_FN_CAST,
  CPU_FN_BITS /* bitcast */
} cpu_fn_domain;

typedef struct {
  const char *fn;
  cpu_fn_domain domain;
  LLVMValueRef (*emit)(const cpu_fn *a);
} cpu_function;
const cpu_function *cpu_math_function(const char *fn); /* finds a function of math.c; NULL: there is none */

/* Instructions for the functions (build.c). */
LLVMValueRef cpu_fn_number(const cpu_fn *a, double value);
LLVMValueRef cpu_fn_add(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_fn_sub(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_fn_mul(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y);
/* Compares floats, signed integers or unsigned integers. */
LLVMValueRef cpu_fn_compare(const cpu_fn *a, LLVMRealPredicate real, LLVMIntPredicate with_sign,
                            LLVMIntPredicate without, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_fn_less(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_fn_select(const cpu_fn *a, LLVMValueRef bit, LLVMValueRef yes, LLVMValueRef no);
LLVMValueRef cpu_fn_intrinsic1(const cpu_fn *a, const char *name, LLVMValueRef x);
LLVMValueRef cpu_fn_intrinsic2(const cpu_fn *a, const char *name, LLVMValueRef x, LLVMValueRef y);
/* Calls the kernel lpk_* of one float; for doubles its form lpk_*_f64. */
LLVMValueRef cpu_fn_kernel(const cpu_fn *a, const char *name, LLVMValueRef x);
LLVMValueRef cpu_fn_kernel2(const cpu_fn *a, const char *name, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_fn_min(const cpu_fn *a); /* of x and y */
LLVMValueRef cpu_fn_max(const cpu_fn *a);
LLVMValueRef cpu_fn_isnan(const cpu_fn *a);

LLVMTypeRef cpu_scalar_type(const cpu_emitter *e, lp_dtype dtype);
bool cpu_dtype_unsigned(lp_dtype dtype);
