/* ir: the one representation that every stage of the compiler reads and writes, at three levels: onnx.* operators as
 * the file has them, layer.* groups that name what a model is made of, op.* operators that are costed, placed and run.
 *
 * A module is a list of functions; a function is one block of operators in execution order; an operator may hold one
 * region (a block) of its own: a layer holds the operators it groups. Values are in SSA form. Everything lives in the
 * module's arena and dies with it. Text is generic MLIR assembly (printer.c, parser.c).
 *
 * This folder knows no file format, machine or backend. One module belongs to one thread at a time.
 */
#ifndef LP_IR_H
#define LP_IR_H

#include "base/base.h"
#include "base/map.h"
#include "base/minifloat.h"
#include "base/poly.h"

/* ---- types ------------------------------------------------------------------------------------------------------- */

typedef enum {
  LP_F32,
  LP_F16,
  LP_BF16,
  LP_F64,
  LP_I8,
  LP_I16,
  LP_I32,
  LP_I64,
  LP_U8,
  LP_U16,
  LP_U32,
  LP_U64,
  LP_BOOL,
  LP_I4,
  LP_U4,
  LP_I2,
  LP_U2,
  LP_F8E4M3FN,
  LP_F8E4M3FNUZ,
  LP_F8E5M2,
  LP_F8E5M2FNUZ,
  LP_F8E8M0,
  LP_F4E2M1,
  LP_DTYPE_COUNT
} lp_dtype;

const char *lp_dtype_name(lp_dtype dtype); /* "f32", "bf16", "i64", "u8", "bool" */
bool lp_dtype_parse(const char *name, lp_dtype *out);
int32_t lp_dtype_bits(lp_dtype dtype); /* bool is stored in 8 */
bool lp_dtype_is_float(lp_dtype dtype);
bool lp_dtype_is_mini(lp_dtype dtype); /* a float of 8 or 4 bits: stored, never computed in */
lp_mini lp_dtype_mini(lp_dtype dtype); /* of such a type */
/* TensorProto.DataType as ONNX numbers it, 0 when it has none. */
int32_t lp_dtype_onnx(lp_dtype dtype);
bool lp_dtype_from_onnx(int64_t data_type, lp_dtype *out);

/* How an op.linear's floats are stored where its attribute `weight_dtype` asks for less: "f32", "f16", "bf16", or codes
 * in groups of LP_WEIGHT_GROUP along k with one f16 scale: "int8", "int4" (symmetric). */
enum { LP_WEIGHT_GROUP = 32 };
typedef struct {
  const char *name;
  lp_dtype dtype; /* of the elements or codes */
  double bits;    /* of one weight with its part of the scale */
} lp_storage;
bool lp_storage_find(const char *name, lp_storage *out);
lp_storage lp_storage_of(lp_dtype own);

enum { LP_MAX_RANK = 8 };

/* A tensor's element type and shape; dims are polynomials over the module's symbols. rank -1: not known. */
typedef struct {
  lp_dtype dtype;
  int32_t rank;
  const lp_poly *const *dim; /* [rank], in the module's arena */
} lp_type;

typedef struct lp_module lp_module;
typedef struct lp_op lp_op;
typedef struct lp_value lp_value;
typedef struct lp_block lp_block;

lp_type lp_type_make(lp_module *module, lp_dtype dtype, int32_t rank, const lp_poly *const *dim); /* copies dim */
lp_type lp_type_static(lp_module *module, lp_dtype dtype, int32_t rank, const int64_t *dim);
lp_type lp_type_with_dtype(lp_type type, lp_dtype dtype);
bool lp_type_equal(lp_type a, lp_type b);
/* Number of elements, NULL when rank is unknown or it overflows. */
const lp_poly *lp_type_numel(lp_module *module, lp_type type);
const lp_poly *lp_type_bytes(lp_module *module, lp_type type);     /* packed types round up per tensor when constant */
bool lp_type_static_dim(lp_type type, int32_t axis, int64_t *out); /* axis may be negative */
bool lp_type_static_numel(lp_type type, int64_t *out);

/* ---- attributes -------------------------------------------------------------------------------------------------- */

typedef enum {
  LP_ATTR_BOOL,
  LP_ATTR_I64,
  LP_ATTR_F64,
  LP_ATTR_STR,
  LP_ATTR_POLY,
  LP_ATTR_I64S,
  LP_ATTR_F64S,
  LP_ATTR_STRS,
  LP_ATTR_POLYS,
  LP_ATTR_TENSOR
} lp_attr_kind;

/* Small constant data: row-major, little-endian, packed as ONNX raw_data. The data outlives the module. */
typedef struct {
  lp_type type; /* static shape */
  const void *data;
  size_t bytes;
} lp_tensor;

typedef struct {
  const char *name;
  lp_attr_kind kind;
  int32_t count; /* of the list kinds */
  union {
    bool b;
    int64_t i;
    double f;
    const char *s;
    const lp_poly *poly;
    const int64_t *is;
    const double *fs;
    const char *const *ss;
    const lp_poly *const *polys;
    lp_tensor tensor;
  };
} lp_attr;

/* ---- operators --------------------------------------------------------------------------------------------------- */

typedef enum { LP_LEVEL_STRUCT, LP_LEVEL_ONNX, LP_LEVEL_LAYER, LP_LEVEL_OP } lp_level;

enum {
  LP_PURE = 1 << 0,        /* no effect but its results: may be removed, merged, moved */
  LP_ELEMENTWISE = 1 << 1, /* result element depends on the operands' elements at the same (broadcast) index */
  LP_COMMUTES = 1 << 2,    /* two operands, in either order */
  LP_TERMINATOR = 1 << 3,
  LP_ALIAS = 1 << 4,     /* result is the first operand's memory under another type */
  LP_LINEAR_OP = 1 << 5, /* Algorithm 1's "linear" operators */
  LP_ATTENTION_OP = 1 << 6,
  LP_STATEFUL = 1 << 7, /* reads or writes a KV cache */
  LP_COMM = 1 << 8,     /* moves data between the sides */
  LP_HAS_REGION = 1 << 9,
  LP_CONSTANT = 1 << 10,      /* no operands, value known at compile time or load time */
  LP_ROWWISE = 1 << 11,       /* last-axis operator: every leading position is computed on its own */
  LP_NORM_OP = 1 << 12,       /* ONNX: a norm over the last axes, by a scale */
  LP_IN_ORDER = 1 << 13,      /* ONNX: the first operand's elements in their order, perhaps of another type or shape */
  LP_DECODER_LAYER = 1 << 14, /* layer.*: what decoder layers are made of */
  LP_HEAD = 1 << 15           /* layer.*: the projection to the vocabulary */
};

/* The enum of every operator, from ops.def. */
typedef enum {
#define LP_STRUCT(id, ...) LP_OP_##id,
#define LP_ONNX(id, ...) LP_ONNX_##id,
#define LP_LAYER(id, ...) LP_LAYER_##id,
#define LP_OPERATOR(id, ...) LP_OP_##id,
#include "ir/ops.def"
  LP_OP_COUNT
} lp_kind;

typedef struct {
  lp_kind kind;
  const char *name; /* "onnx.MatMul", "com.microsoft.FastGelu", "layer.attention", "op.linear" */
  lp_level level;
  int16_t in_min, in_max, out_min, out_max; /* max -1: any number */
  uint32_t traits;
  const char *attrs; /* "heads:i64 scale:f64 bias?:bool": the schema the verifier checks; "*" takes any */
} lp_op_info;

const lp_op_info *lp_op_info_get(lp_kind kind);
bool lp_op_info_find(const char *name, lp_kind *out);
/* Every operator's name, for "did you mean". */
size_t lp_op_names(const char *const **names);

/* One operand: a link in the value's list of uses. */
typedef struct lp_use {
  lp_value *value; /* NULL: an optional operand that is absent */
  lp_op *owner;
  struct lp_use *next, *prev;
} lp_use;

struct lp_value {
  lp_type type;
  lp_op *def;       /* NULL for a block argument */
  lp_block *block;  /* of the definition or the argument */
  int32_t index;    /* which result or argument */
  const char *name; /* the ONNX value's name, or NULL */
  lp_use *uses;
  /* Integer elements known as polynomials (shape arithmetic), row-major; NULL when not known. Set by lp_op_infer, not
   * printed: text that needs it is inferred again. */
  const lp_poly *const *known;
  int32_t known_count;
  void *scratch; /* for the current pass; NULL between passes */
};

struct lp_op {
  lp_kind kind;
  lp_loc loc;
  int32_t in_count, out_count, attr_count;
  lp_use *in;
  lp_value **out;
  int32_t out_room; /* of `out`, kept by lp_op_add_result */
  lp_attr *attr;    /* sorted by name */
  lp_block *region; /* NULL without LP_HAS_REGION */
  lp_block *block;  /* where it stands; NULL when detached */
  lp_op *next, *prev;
  int64_t order; /* increases along the block; renumbered by lp_block_renumber */
  void *scratch;
};

struct lp_block {
  lp_module *module;
  lp_op *parent;               /* the operator that holds this region */
  int32_t arg_count, arg_room; /* room in `arg`, at least arg_count once one was added */
  lp_value **arg;
  lp_op *first, *last;
};

struct lp_module {
  lp_arena *arena;
  lp_symbols symbols; /* b s p r c t come first, in the order of base/abi.h */
  const char *name;
  lp_op *op;             /* builtin.module */
  lp_map *sources;       /* path -> lp_mapping*, opened when first asked for (lp_weight_data) */
  const char *directory; /* that weight files' paths are relative to */
  int64_t eval_steps;    /* what may still be evaluated at compile time: see LP_EVAL_STEPS */
};

lp_module *lp_module_create(const char *name);
void lp_module_free(lp_module *module); /* unmaps the sources; NULL is allowed */
lp_block *lp_module_body(const lp_module *module);
/* A function `name` with `args` arguments (types set by the caller through block->arg). */
lp_op *lp_module_add_func(lp_module *module, const char *name, int32_t arg_count, const lp_type *arg_types);
lp_op *lp_module_find_func(const lp_module *module, const char *name);
/* The function's block; its terminator holds the results. */
lp_op *lp_block_terminator(const lp_block *block);

/* ---- building ---------------------------------------------------------------------------------------------------- */

/* Creates a detached operator; operands may be NULL where optional; results get `types`. */
lp_op *lp_op_create(lp_module *module, lp_kind kind, lp_loc loc, int32_t in_count, lp_value *const *in,
                    int32_t out_count, const lp_type *out_types);
void lp_op_append(lp_block *block, lp_op *op);
void lp_op_insert_before(lp_op *where, lp_op *op);
void lp_op_insert_after(lp_op *where, lp_op *op);
void lp_op_detach(lp_op *op); /* keeps operands */
/* Detaches and drops its operands' uses; its results must have no uses left (asserted). */
void lp_op_erase(lp_op *op);
/* A copy with the same operands (through `map` when not NULL: map(user, value)) and attributes, regions included;
 * detached. */
typedef lp_value *lp_value_map(void *user, lp_value *value);
lp_op *lp_op_clone(lp_module *module, const lp_op *op, lp_value_map *map, void *user);
lp_block *lp_op_add_region(lp_module *module, lp_op *op, int32_t arg_count, const lp_type *arg_types);
lp_value *lp_block_add_arg(lp_block *block, lp_type type);
lp_value *lp_op_add_result(lp_module *module, lp_op *op, lp_type type);

lp_value *lp_op_in(const lp_op *op, int32_t index); /* NULL past the end or absent */
lp_value *lp_op_out(const lp_op *op, int32_t index);
void lp_op_set_in(lp_op *op, int32_t index, lp_value *value);
void lp_op_set_ins(lp_module *module, lp_op *op, int32_t count, lp_value *const *in);
void lp_value_replace(lp_value *old, lp_value *by); /* every use */
bool lp_value_has_one_use(const lp_value *value);
void lp_block_renumber(lp_block *block);      /* sets op->order */
bool lp_op_is(const lp_op *op, lp_kind kind); /* NULL is nothing */
bool lp_op_has(const lp_op *op, uint32_t traits);

#define LP_FOR_OPS(op, block) for (lp_op *op = (block)->first; op; op = op->next)
/* Each function of a module. */
#define LP_FOR_FUNCS(func, module) LP_FOR_OPS(func, lp_module_body(module)) if (func->kind == LP_OP_FUNC)

/* Attributes: set replaces; lists are copied into the arena; names must outlive the module (literals). */
const lp_attr *lp_op_attr(const lp_op *op, const char *name); /* NULL when absent */
bool lp_op_bool(const lp_op *op, const char *name, bool otherwise);
int64_t lp_op_i64(const lp_op *op, const char *name, int64_t otherwise);
double lp_op_f64(const lp_op *op, const char *name, double otherwise);
const char *lp_op_str(const lp_op *op, const char *name, const char *otherwise);
const lp_poly *lp_op_poly(const lp_op *op, const char *name); /* NULL when absent */
void lp_op_set_bool(lp_module *module, lp_op *op, const char *name, bool value);
void lp_op_set_i64(lp_module *module, lp_op *op, const char *name, int64_t value);
void lp_op_set_f64(lp_module *module, lp_op *op, const char *name, double value);
void lp_op_set_str(lp_module *module, lp_op *op, const char *name, const char *value);
void lp_op_set_poly(lp_module *module, lp_op *op, const char *name, const lp_poly *value);
void lp_op_set_i64s(lp_module *module, lp_op *op, const char *name, const int64_t *values, int32_t count);
void lp_op_set_f64s(lp_module *module, lp_op *op, const char *name, const double *values, int32_t count);
void lp_op_set_strs(lp_module *module, lp_op *op, const char *name, const char *const *values, int32_t count);
void lp_op_set_polys(lp_module *module, lp_op *op, const char *name, const lp_poly *const *values, int32_t count);
void lp_op_set_tensor(lp_module *module, lp_op *op, const char *name, lp_tensor value);
void lp_op_set_attr(lp_module *module, lp_op *op, const lp_attr *attr);
void lp_op_remove_attr(lp_op *op, const char *name);

/* Constants. A small one (ir.constant) holds its data; a weight (ir.weight) is a reference: file, offset, length. */
lp_op *lp_constant_create(lp_module *module, lp_loc loc, lp_tensor tensor);
lp_op *lp_weight_create(lp_module *module, lp_loc loc, lp_type type, const char *file, int64_t offset, int64_t length);
bool lp_value_is_constant(const lp_value *value); /* ir.constant or ir.weight */
/* The tensor of an ir.constant; false for anything else. */
bool lp_value_constant(const lp_value *value, lp_tensor *out);
/* The bytes of an ir.constant or ir.weight; maps the weight's file on first use and checks that it is long enough. */
LP_MUST_USE lp_status lp_weight_data(lp_module *module, const lp_value *value, lp_tensor *out, lp_diag *diag);
/* An element of a small constant as a number; index is flat. */
int64_t lp_tensor_i64(const lp_tensor *tensor, int64_t index);
double lp_tensor_f64(const lp_tensor *tensor, int64_t index);
/* The bits of an element of a packed type (fewer than 8 bits; the first element lies in the low bits). */
uint8_t lp_packed_get(const void *data, lp_dtype dtype, int64_t index);
void lp_packed_set(void *data, lp_dtype dtype, int64_t index, int64_t bits);

/* ---- dimensions -------------------------------------------------------------------------------------------------- */

const lp_poly *lp_dim_const(lp_module *module, int64_t value);
const lp_poly *lp_dim_symbol(lp_module *module, const char *name);

/* ---- what operators mean (infer*.c, eval*.c) --------------------------------------------------------------------- */

/* Sets the types of an onnx.* operator's results, and the polynomials of integer results that are known, from its
 * operands. An operator whose result shape depends on data reports that by node and operator. */
LP_MUST_USE lp_status lp_op_infer(lp_module *module, lp_op *op, lp_diag *diag);
/* Replaces a symbol by what it equals in every type, known value and attribute; false when a size would overflow. */
LP_MUST_USE bool lp_module_substitute(lp_module *module, lp_symbol symbol, const lp_poly *by);
/* The same in one operator's results, attributes and region. */
LP_MUST_USE bool lp_op_substitute(lp_module *module, lp_op *op, lp_symbol symbol, const lp_poly *by);
/* After a refusal because `value` is not known before the program runs: a note for each small input of the graph that
 * it is computed from, with the option that makes that input a constant. */
void lp_note_binding(lp_diag *diag, lp_loc loc, const lp_value *value);
/* Every operator of the block in order, regions included. */
LP_MUST_USE lp_status lp_block_infer(lp_module *module, lp_block *block, lp_diag *diag);

/* A dense array of actual numbers, row-major in its dtype. */
typedef struct {
  lp_dtype dtype;
  int32_t rank;
  int64_t dim[LP_MAX_RANK];
  void *data;
} lp_array;

void lp_array_set_i64(lp_array *array, int64_t index, int64_t value);
void lp_array_set_f64(lp_array *array, int64_t index, double value); /* integers: truncated, clamped */

/* The reference interpreter: computes an onnx.* or op.* operator on given operands (absent ones NULL), floats in
 * double, results in `arena`. It is slow and plain; folding, recognising and the conformance tests rest on it. `sym`
 * [module->symbols.names.count] gives the values of the symbols in attributes and types. */
LP_MUST_USE lp_status lp_op_eval(lp_module *module, const lp_op *op, const lp_array *const *in, lp_array *out,
                                 const int64_t *sym, lp_arena *arena, lp_diag *diag);
/* The function of op.map that an elementwise onnx.* operator computes (for variadic ones: of two operands). alpha and
 * beta come from its attributes, and are NaN where the function has none. false: it is no such operator. */
typedef struct {
  const char *fn;
  double alpha, beta;
} lp_function;
/* The rounding and saturation of a cast to a float of 8 bits, from onnx.Cast, onnx.CastLike or op.map. */
typedef struct {
  bool saturate;
  lp_e8m0_rounding rounding;
} lp_cast;
lp_cast lp_op_cast(const lp_op *op);
bool lp_op_function(const lp_op *op, lp_function *out);

/* A module's share of evaluation at compile time, in elements computed: folding a hostile file's constants must end.
 * When it is used up, nothing more is known or folded. Real models take less than a hundredth. */
#define LP_EVAL_STEPS ((int64_t)1 << 27)

/* The windows of a convolution: the effect of auto_pad, pads, strides and dilations on the spatial axes of x. */
enum { LP_MAX_SPATIAL = 3 };
typedef struct {
  int32_t count; /* spatial axes */
  int64_t window[LP_MAX_SPATIAL], steps[LP_MAX_SPATIAL], dilations[LP_MAX_SPATIAL];
  int64_t before[LP_MAX_SPATIAL], after[LP_MAX_SPATIAL]; /* padding */
  const lp_poly *out[LP_MAX_SPATIAL];                    /* windows along each axis */
} lp_windows;
/* `x` [n][c][spatial...] and `w` [m][c / group][kernel...] are the operands' types, the kernel's sizes constant. */
LP_MUST_USE lp_status lp_op_windows(lp_module *module, const lp_op *op, lp_type x, lp_type w, lp_windows *out,
                                    lp_diag *diag);
/* Evaluates `value` and what it needs, back to constants, values known as polynomials (taken at `sym`) and the given
 * bindings (value->array pairs), whose sizes must be those of `sym`.
 * LP_FAILED without a diagnostic when diag is NULL and it depends on something else. */
typedef struct {
  const lp_value *value;
  lp_array array;
} lp_binding;
LP_MUST_USE lp_status lp_value_eval(lp_module *module, lp_value *value, const lp_binding *bindings, size_t count,
                                    const int64_t *sym, lp_arena *arena, lp_array *out, lp_diag *diag);
/* The same for several values, which share what they need: out[value_count]. */
LP_MUST_USE lp_status lp_values_eval(lp_module *module, lp_value *const *values, size_t value_count,
                                     const lp_binding *bindings, size_t count, const int64_t *sym, lp_arena *arena,
                                     lp_array *out, lp_diag *diag);

/* ---- text (printer.c, parser.c), checks (verifier.c), costs (cost.c) --------------------------------------------- */

/* Generic MLIR assembly, accepted by `mlir-opt --allow-unregistered-dialect`. Deterministic; attributes sorted. */
void lp_module_print(const lp_module *module, bool with_locations, lp_buf *out);
/* parse(print(m)) prints the same. */
LP_MUST_USE lp_status lp_module_parse(const char *file, const char *text, size_t size, lp_module **out, lp_diag *diag);
/* Structure (dominance, terminators, arity, attribute schema), types and, where present, flops and bytes. */
LP_MUST_USE lp_status lp_module_verify(const lp_module *module, lp_diag *diag);

/* What an op.* operator computes and moves, exact, in the symbols of its types. */
typedef struct {
  const lp_poly *flops;           /* a multiply-add is 2 */
  const lp_poly *bytes_read;      /* operands in their dtypes, weights included */
  const lp_poly *bytes_written;   /* results */
  const lp_poly *weight_bytes;    /* the constants among bytes_read */
  const lp_poly *macs, *elements; /* P1's own counting (Table I): multiply-adds; elements in and out */
} lp_cost;
lp_cost lp_op_cost(lp_module *module, const lp_op *op);

#endif
