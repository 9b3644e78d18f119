/* cpu: native code for one side through libLLVM. What the files of backend/cpu/ share.
 *
 * The way of an emission:
 *
 *   plan.c      the side's programs, segments and operators; constants in the forms their kernels read (constants.c)
 *   codegen.c   an LLVM module with the kernels' bitcode linked in; one internal function, an "instance", per distinct
 *               operator (kind, attributes, types), so that equal layers share code; lower_*.c write their bodies
 *   layout.c    lp_layout_N: where every buffer lies
 *   segment.c   lp_segment_K: pointers, calls of instances, barriers where one operator needs another's result
 *   optimize.c  passes and object code;  link.c  the shared object;  weights.c  weights.safetensors
 */
#ifndef LP_CPU_INTERNAL_H
#define LP_CPU_INTERNAL_H

#include "backend/backend_internal.h"
#include "base/file.h"
#include "base/map.h"
#include "base/poly.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

/* ---- target (target.c) ------------------------------------------------------------------------------------------- */

typedef struct {
  const char *march; /* as reported: "native" has become the host's name */
  const char *triple, *cpu, *features;
  const char *wide; /* value of "prefer-vector-width", or NULL */
  bool aarch64;
  int isa; /* LPK_ISA_* */
} cpu_target;

LP_MUST_USE lp_status cpu_target_find(const char *march, cpu_target *out, lp_arena *arena, lp_diag *diag);

/* ---- plan (plan.c, constants.c) ---------------------------------------------------------------------------------- */

/* How a constant lies in weights.safetensors. */
typedef enum {
  CPU_FORM_NONE,   /* not an operand of its own: absent, an immediate, or part of another constant */
  CPU_FORM_RAW,    /* row-major, as in the module */
  CPU_FORM_F32,    /* row-major, converted to f32 */
  CPU_FORM_PANELS, /* a linear's weight: panels [ceil(n / 32)][k][32], zero padded */
  CPU_FORM_GROUPS, /* a linear's weight of 8, 4 or 2 bits: panels of groups (kernels/pack.h), [panels][bytes] */
  CPU_FORM_BIAS,   /* a linear's bias: f32 [ceil(n / 32)][32], zero padded */
  CPU_FORM_TABLE   /* as a rule's wish: PANELS when the side has them anyway, else RAW */
} cpu_form;

typedef struct {
  lp_value *value;
  lp_value *gate; /* PANELS and BIAS: panel 2j is the gate's (BIAS: zero), panel 2j + 1 the value's; else NULL */
  cpu_form form;
  bool gated;
  bool transpose; /* PANELS: the value is [n][k], not [k][n] */
  lp_dtype dtype; /* stored */
  int64_t n, k;   /* PANELS, GROUPS and BIAS */
  /* PANELS and GROUPS of an integer weight: of the value and of its gate; NULL where there is none */
  lp_value *scale[2], *zero[2];
  int64_t group; /* rows of k that share a scale, k when all do */
  /* GROUPS */
  lp_dtype codes, scale_dtype; /* I8, U4 or U2; f32, f16 or bf16 */
  bool zeros;                  /* zero points are stored */
  int32_t rank;
  int64_t dim[LP_MAX_RANK]; /* stored shape */
  int64_t bytes;
  int64_t offset;   /* from the start of the data section */
  const char *name; /* unique in the file */
} cpu_constant;

typedef struct cpu_rule cpu_rule;

enum { CPU_FEW_ROWS = 4 }; /* what lpk_linear multiplies without scratch */

/* One operator to run. */
typedef struct {
  lp_op *op;
  const cpu_rule *rule;
  const cpu_constant **constant; /* [in_count], NULL where the operand is none */
  const lp_poly *scratch;        /* NULL: none */
  const lp_poly *scratch_rows;   /* scratch is touched only above CPU_FEW_ROWS of these; NULL: always */
  bool joint;                    /* runs once over the rows of all sequences (base/abi.h) */
} cpu_call;

typedef struct {
  int64_t index; /* attribute `segment` */
  LP_VEC(cpu_call) calls;
  const char *symbol; /* set by cpu_symbols_assign */
} cpu_segment;

typedef struct {
  const lp_op *func;
  const char *name; /* "prefill" */
  LP_VEC(cpu_segment *) segments;
  int64_t buffer_count; /* of the planner; the scratch region is one more */
  const int64_t *slot;  /* [buffer_count] */
  int64_t slot_count;
  const char *layout; /* symbol, set by cpu_symbols_assign */
} cpu_program;

typedef struct {
  lp_module *module;
  lp_arena *arena;
  const char *side;
  LP_VEC(cpu_program) programs;
  lp_map *constants; /* key -> cpu_constant*, in order of first use */
  lp_map *names;     /* of the constants */
  int64_t weight_bytes;
} cpu_plan;

LP_MUST_USE lp_status cpu_plan_create(lp_module *module, const char *side, lp_arena *arena, cpu_plan **out,
                                      lp_diag *diag);
void cpu_plan_free(cpu_plan *plan);
/* The constant of operand `index` of `op` in the form that its rule wants; NULL when it wants none. */
LP_MUST_USE lp_status cpu_plan_constant(cpu_plan *plan, const lp_op *op, int32_t index, cpu_form form,
                                        const cpu_constant **out, lp_diag *diag);
/* Sets every constant's offset. */
void cpu_plan_place_constants(cpu_plan *plan);
/* The buffer of a value on the plan's side, -1 when it has none. */
int64_t cpu_value_buffer(const cpu_plan *plan, const lp_value *value);
/* The op.kv_append that `value` is the result of, or NULL. */
const lp_op *cpu_value_cache(const lp_value *value);
/* A constant of one element that the code carries as an immediate. */
bool cpu_value_immediate(const lp_value *value, lp_tensor *out);
/* The form of the weight of an op.linear: GROUPS for integers and where `weight_dtype` asks for them. */
cpu_form cpu_linear_weight_form(const lp_op *op);
/* Fills what GROUPS and integer weights need of `constant`, whose n, k and transpose are set (constant_groups.c). */
void cpu_describe_groups(const lp_op *op, cpu_constant *constant);
/* The elements of a constant, all there. */
LP_MUST_USE lp_status cpu_constant_data(cpu_plan *plan, const lp_value *value, lp_tensor *out, lp_diag *diag);
/* The panels of a GROUPS constant (weights_groups.c); `w` and `gate` hold all elements. */
LP_MUST_USE lp_status cpu_write_groups(cpu_plan *plan, lp_writer *writer, const cpu_constant *constant,
                                       const lp_tensor *w, const lp_tensor *gate, lp_diag *diag);
/* An integer weight as f32, [n][k] or [k][n] like the constant; release with free(). */
LP_MUST_USE lp_status cpu_dequantise(cpu_plan *plan, const cpu_constant *constant, const lp_tensor *w, int which,
                                     float **out, lp_diag *diag);
LP_MUST_USE lp_status cpu_weights_write(cpu_plan *plan, const char *path, lp_diag *diag);

/* ---- rules (rules.c, lower_*.c, elementwise.c) -------------------------------------------------------------------- */

typedef struct cpu_codegen cpu_codegen;

/* An instance being written: a function of frame, thread, the results' and the operands' addresses and scratch. */
typedef struct {
  cpu_codegen *gen;
  lp_module *module;
  const lp_op *op;
  const cpu_call *call;
  LLVMBuilderRef b;
  LLVMValueRef function, frame, thread, threads;
  LLVMValueRef sym;       /* frame->sym */
  LLVMValueRef *out, *in; /* NULL where the operand is absent or has no address */
  LLVMValueRef scratch;   /* NULL when the rule asks for none */
} cpu_emitter;

/* How one kind of operator is done. */
struct cpu_rule {
  lp_kind kind;
  /* Can it? Else `why` (64 bytes). NULL: always. */
  bool (*runs)(const lp_op *op, char why[64]);
  /* The form in which it reads a constant operand. */
  cpu_form (*form)(const lp_op *op, int32_t index);
  /* Bytes of scratch as a polynomial, or NULL: none. */
  const lp_poly *(*scratch)(lp_module *module, const lp_op *op);
  void (*emit)(cpu_emitter *e);
  bool reads_packed; /* values may be of types under 8 bits */
  bool reads_cache;  /* operands may be results of op.kv_append, whose rows are `c` apart */
  /* Rows on which the use of scratch depends (scratch_rows), or NULL: it is always used. */
  const lp_poly *(*scratch_rows)(lp_module *module, const lp_op *op);
};

const cpu_rule *cpu_rule_find(lp_kind kind); /* NULL: no operator that runs */
bool cpu_op_runs(const lp_op *op, char why[64]);

cpu_form cpu_form_raw(const lp_op *op, int32_t index);
cpu_form cpu_form_f32(const lp_op *op, int32_t index);
/* All values are f32; constants may be of another float type. */
bool cpu_all_f32(const lp_op *op, char why[64]);
int cpu_kernel_dtype(lp_dtype dtype); /* LPK_* */

/* One entry per op kind, in the file that emits it. */
extern const cpu_rule cpu_rule_linear, cpu_rule_matmul, cpu_rule_quantize, cpu_rule_dequantize, cpu_rule_attention,
    cpu_rule_linear_attention, cpu_rule_kv_append, cpu_rule_rotary, cpu_rule_norm, cpu_rule_add_norm, cpu_rule_softmax,
    cpu_rule_reduce, cpu_rule_argmax, cpu_rule_topk, cpu_rule_cumsum, cpu_rule_gather, cpu_rule_gather_elements,
    cpu_rule_scatter_elements, cpu_rule_scatter_nd, cpu_rule_concat, cpu_rule_slice, cpu_rule_transpose,
    cpu_rule_reshape, cpu_rule_expand, cpu_rule_pad, cpu_rule_windows, cpu_rule_iota, cpu_rule_dims, cpu_rule_fill,
    cpu_rule_map, cpu_rule_fused;

/* ---- writing code (build.c) ---------------------------------------------------------------------------------------- */

typedef struct {
  LLVMTypeRef void_, i1, i8, i16, i32, i64, f16, f32, f64, ptr;
} cpu_types;

const cpu_types *cpu_gen_types(const cpu_emitter *e);
LLVMValueRef cpu_i64(const cpu_emitter *e, int64_t value);
LLVMValueRef cpu_i32(const cpu_emitter *e, int64_t value);
LLVMValueRef cpu_f32(const cpu_emitter *e, double value);
LLVMValueRef cpu_null(const cpu_emitter *e);
/* The value of a polynomial at the frame's symbols. */
LLVMValueRef cpu_poly(cpu_emitter *e, const lp_poly *poly);
LLVMValueRef cpu_poly_product(cpu_emitter *e, const lp_poly *const *dims, int32_t from, int32_t to);
/* An i64 array on the stack. */
LLVMValueRef cpu_array(cpu_emitter *e, const LLVMValueRef *values, int32_t count);
/* The sizes of a type as such an array. */
LLVMValueRef cpu_sizes(cpu_emitter *e, lp_type type);
LLVMValueRef cpu_offset_bytes(cpu_emitter *e, LLVMValueRef base, LLVMValueRef bytes);
LLVMValueRef cpu_barrier(cpu_emitter *e); /* frame->barrier */
/* Calls a kernel of kernels.h; arguments are checked against its prototype. */
void cpu_kernel(cpu_emitter *e, const char *name, const LLVMValueRef *args, unsigned count);
LLVMValueRef cpu_kernel_value(cpu_emitter *e, const char *name, const LLVMValueRef *args, unsigned count);
void cpu_wait(cpu_emitter *e); /* a barrier inside an operator */
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
int32_t cpu_dtype_bytes(lp_dtype dtype);
int cpu_kernel_isa(const cpu_emitter *e);

/* ---- elementwise (elementwise.c, scalar.c, scalar_fn.c, scalar_math.c) -------------------------------------------------------------------------- */

/* A scalar on its way through an expression: integers in their width (packed ones in a byte), narrow
 * floats as float. */
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
/* The same bits as another type of the same width. */
cpu_scalar cpu_scalar_reinterpret(cpu_emitter *e, cpu_scalar scalar, lp_dtype dtype);
/* As `op`, a cast, says. */
cpu_scalar cpu_scalar_cast(cpu_emitter *e, const lp_op *op, cpu_scalar scalar, lp_dtype dtype);
cpu_scalar cpu_scalar_immediate(cpu_emitter *e, const lp_tensor *tensor);
/* One op.map; result of dtype `result`. */
cpu_scalar cpu_scalar_map(cpu_emitter *e, const lp_op *op, const cpu_scalar *in, int32_t count, lp_dtype result);
bool cpu_scalar_runs(const char *fn);
/* A function at work: operands of one element type (`type`), the operator for its attributes. */
typedef struct {
  cpu_emitter *e;
  LLVMBuilderRef b;
  const lp_op *op;
  LLVMTypeRef type;
  bool real, negatives; /* float; not unsigned */
  LLVMValueRef x, y, z; /* the operands; NULL where absent */
} cpu_fn;

/* In which element type operands are taken. */
typedef enum {
  CPU_FN_RESULT,  /* the result's */
  CPU_FN_REAL,    /* the result's, as a float */
  CPU_FN_COMPARE, /* the operands' common one; gives a bit */
  CPU_FN_LOGIC,   /* bool; gives an i8 of 0 or 1 */
  CPU_FN_SELECT,  /* where */
  CPU_FN_CAST,
  CPU_FN_BITS /* bitcast */
} cpu_fn_domain;

typedef struct {
  const char *fn;
  cpu_fn_domain domain;
  LLVMValueRef (*emit)(const cpu_fn *a);
} cpu_function;
const cpu_function *cpu_math_function(const char *fn); /* those of scalar_math.c; NULL: none of them */

LLVMValueRef cpu_fn_number(const cpu_fn *a, double value);
LLVMValueRef cpu_fn_add(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_fn_sub(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_fn_mul(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_fn_less(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_fn_select(const cpu_fn *a, LLVMValueRef bit, LLVMValueRef yes, LLVMValueRef no);
LLVMValueRef cpu_fn_intrinsic1(const cpu_fn *a, const char *name, LLVMValueRef x);
LLVMValueRef cpu_fn_intrinsic2(const cpu_fn *a, const char *name, LLVMValueRef x, LLVMValueRef y);
/* The kernel lpk_* of one float; of doubles its form lpk_*_f64. */
LLVMValueRef cpu_fn_kernel(const cpu_fn *a, const char *name, LLVMValueRef x);
LLVMValueRef cpu_fn_kernel2(const cpu_fn *a, const char *name, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_fn_min(const cpu_fn *a); /* of x and y */
LLVMValueRef cpu_fn_max(const cpu_fn *a);
LLVMValueRef cpu_fn_isnan(const cpu_fn *a);

LLVMTypeRef cpu_scalar_type(const cpu_emitter *e, lp_dtype dtype);
bool cpu_dtype_unsigned(lp_dtype dtype);

/* ---- modules (codegen.c, instance.c, layout.c, segment.c, optimize.c, link.c) --------------------------------------- */

struct cpu_codegen {
  cpu_plan *plan;
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
  bool failed; /* LLVM reported an error; the diagnostic is made */
};

LP_MUST_USE lp_status cpu_codegen_create(cpu_plan *plan, const cpu_target *target, int opt_level, lp_diag *diag,
                                         cpu_codegen **out);
void cpu_codegen_free(cpu_codegen *gen);
/* Everything from the plan to an unoptimised module. Names the plan's segments and layouts. */
LP_MUST_USE lp_status cpu_codegen_run(cpu_codegen *gen);

/* The instance for a call, made when it is the first of its kind. */
LLVMValueRef cpu_instance_get(cpu_codegen *gen, const cpu_call *call);
/* What makes two operators the same code; appended to `key`. */
void cpu_instance_key(const cpu_plan *plan, const cpu_call *call, lp_buf *key);
/* Which operands an instance takes an address of. */
bool cpu_operand_passed(const cpu_call *call, int32_t index);

/* Attributes of every emitted function: nounwind, and noinline when it is to stay one. */
void cpu_function_flags(const cpu_codegen *gen, LLVMValueRef function, bool keep);

void cpu_layout_emit(cpu_codegen *gen, cpu_program *program);
/* What makes two programs' layouts, two segments, the same code; appended to `key`. */
void cpu_layout_key(cpu_plan *plan, const cpu_program *program, lp_buf *key);
void cpu_segment_key(const cpu_plan *plan, const cpu_program *program, const cpu_segment *segment, lp_buf *key);
void cpu_segment_emit(cpu_codegen *gen, const cpu_program *program, cpu_segment *segment);

/* Symbol names of the plan's segments and layouts: functions of the plan alone. */
void cpu_symbols_assign(cpu_plan *plan);

LP_MUST_USE lp_status cpu_optimize(cpu_codegen *gen);
LP_MUST_USE lp_status cpu_emit_object(cpu_codegen *gen, bool as_text, lp_buf *out);
LP_MUST_USE lp_status cpu_link_shared(const lp_buf *object, lp_buf *out, lp_diag *diag);

#endif
