/* ir: the one representation that every stage of the compiler reads and writes, at three levels: onnx.* operators as
 * the file has them, layer.* groups that have a name in the field (attention, MLP), op.* operators that are costed,
 * placed and run.
 *
 * A module is a list of functions; a function is one block of operators in execution order; an operator may hold one
 * region (a block) of its own. A layer holds the operators that it groups. Values are in SSA form. Everything lives in
 * the module's arena and dies with it. Text is generic MLIR assembly (printer.c, parser.c).
 *
 * This folder knows no file format, machine or backend. One module belongs to one thread at a time.
 */
#pragma once

#include "base/base.h"
#include "base/map.h"
#include "base/minifloat.h"
#include "base/place.h"
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
int32_t lp_dtype_bits(lp_dtype dtype); /* of one element; a bool takes 8 */
bool lp_dtype_is_float(lp_dtype dtype);
bool lp_dtype_is_code(lp_dtype dtype); /* of weights with scales: an integer of at most 8 bits, or f8e4m3fn */
bool lp_dtype_is_mini(lp_dtype dtype); /* a float of 8 or 4 bits, which is stored but never computed in */
lp_mini lp_dtype_mini(lp_dtype dtype); /* the format of such a type */
/* The TensorProto.DataType number of ONNX; 0 when ONNX has no such type. */
int32_t lp_dtype_onnx(lp_dtype dtype);
bool lp_dtype_from_onnx(int64_t data_type, lp_dtype *out);

/* The stored types of an op.linear's floats, if its attribute `weight_dtype` asks for fewer bits: as "f32", "f16" or
 * "bf16", or as codes "int8" or "int4" (symmetric) in groups of LP_WEIGHT_GROUP along k, with one f16 scale for each
 * group; or by the name of its own blocks (blocks.h), whose codes and scales the CPU's code keeps. */
enum { LP_WEIGHT_GROUP = 32 };
typedef struct lp_block_form lp_block_form;
typedef struct {
  const char *name;
  lp_dtype dtype; /* of the elements or codes */
  double bits;    /* bits of one weight, its share of the scale included */
  bool packed;    /* as the file's own blocks */
  int64_t group;  /* elements that share a scale and a zero point, of codes that a GPU keeps (lp_storage_on_gpu) */
} lp_storage;
bool lp_storage_find(const char *name, lp_storage *out);
lp_storage lp_storage_of(lp_dtype own);

/* How a KV cache holds the rows that are appended to it. In f32, f16 and bf16 its last axis counts a row's elements. In
 * "int8" and "int4" rows are codes in blocks of LP_CACHE_BLOCK elements, each block with one f16 scale, and the last
 * axis counts the bytes of a row: of type i8 a signed code in a byte, of type u8 two codes + 8, that of an element of
 * the block's first half below that of its second half; after a row's codes follow its scales. */
enum { LP_CACHE_BLOCK = 32 };
bool lp_cache_dtype_parse(const char *name, lp_dtype *out); /* "f32", "f16", "bf16", "int8", "int4" */
bool lp_cache_is_coded(lp_dtype dtype);
/* The size of a cache's last axis for rows of `width` elements, and the width for that size; -1: no whole blocks. */
int64_t lp_cache_row(lp_dtype dtype, int64_t width);
int64_t lp_cache_width(lp_dtype dtype, int64_t row);
/* Writes a row of `width` elements as a cache of that type holds it, rounded to nearest even, and reads it. */
void lp_cache_encode(lp_dtype dtype, int64_t width, const float *x, void *row);
void lp_cache_decode(lp_dtype dtype, int64_t width, const void *row, float *x);

enum { LP_MAX_RANK = 8 };

/* An element type and a shape, of which dimensions are polynomials over the module's symbols. Rank -1: not known. */
typedef struct {
  lp_dtype dtype;
  int32_t rank;
  const lp_poly *const *dim; /* [rank], in the module's arena */
} lp_type;

typedef struct lp_module lp_module;
typedef struct lp_op lp_op;
typedef struct lp_value lp_value;
typedef struct lp_block lp_block;

lp_type lp_type_make(lp_module *module, lp_dtype dtype, int32_t rank, const lp_poly *const *dim); /* copies `dim` */
lp_type lp_type_static(lp_module *module, lp_dtype dtype, int32_t rank, const int64_t *dim);
lp_type lp_type_with_dtype(lp_type type, lp_dtype dtype);
bool lp_type_equal(lp_type a, lp_type b);
const lp_poly *lp_type_numel(lp_module *module, lp_type type); /* elements; NULL: the rank is unknown, or overflow */
const lp_poly *lp_cache_width_of(lp_module *module, lp_type cache); /* the elements of a row of a cache */
int64_t lp_op_state(const lp_op *op); /* the KV cache that it writes, for which its last result stands; -1: none */
const lp_op *lp_value_cache(const lp_value *value); /* the operator that writes the cache that it stands for, or NULL */
/* The number of bytes. The total of a packed type is rounded up to whole bytes when it is constant. */
const lp_poly *lp_type_bytes(lp_module *module, lp_type type);
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
  LP_ELEMENTWISE = 1 << 1, /* a result element depends on the operands' elements at the same (broadcast) index only */
  LP_COMMUTES = 1 << 2,    /* two operands, in either order */
  LP_TERMINATOR = 1 << 3,
  LP_ALIAS = 1 << 4,     /* result is the first operand's memory under another type */
  LP_LINEAR_OP = 1 << 5, /* Algorithm 1's "linear" operators */
  LP_ATTENTION_OP = 1 << 6,
  LP_STATEFUL = 1 << 7, /* reads or writes a KV cache */
  LP_COMM = 1 << 8,     /* moves data between the sides, or between the ranks of a side */
  LP_HAS_REGION = 1 << 9,
  LP_CONSTANT = 1 << 10,      /* value known at compile time or load time; operands, if any, are constants */
  LP_ROWWISE = 1 << 11,       /* last-axis operator: every leading position is computed on its own */
  LP_NORM_OP = 1 << 12,       /* ONNX: a norm over the last axes, with a scale */
  LP_IN_ORDER = 1 << 13,      /* ONNX: the first operand's elements in their order, perhaps of another type or shape */
  LP_DECODER_LAYER = 1 << 14, /* layer.*: a part of a decoder layer */
  LP_HEAD = 1 << 15           /* layer.*: the projection to the vocabulary */
};

/* lp_kind, the enum of every operator: LP_OP_MODULE, LP_ONNX_Add, LP_LAYER_NORM, LP_OP_LINEAR, ..., LP_OP_COUNT. The
 * build makes it from ops.def (CMakeLists.txt). */
#include "ir/kinds.h"

typedef struct {
  lp_kind kind;
  const char *name; /* "onnx.MatMul", "com.microsoft.FastGelu", "layer.attention", "op.linear" */
  lp_level level;
  int16_t in_min, in_max, out_min, out_max; /* a maximum of -1 is any number */
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
  int32_t index;    /* of the result or argument */
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
  lp_block *block;  /* the block that holds it; NULL when detached */
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

/* The mean squares of what a weight's elements are multiplied by, along the inner axis of its product. */
typedef struct {
  int64_t count;
  const float *mean; /* [count] */
} lp_input_squares;

/* A weight file that exists only while it is read: `make` writes its `size` bytes. */
typedef struct lp_made_file {
  size_t size;
  void (*make)(const struct lp_made_file *file, uint8_t *out);
} lp_made_file;

struct lp_module {
  lp_arena *arena;
  lp_symbols symbols; /* b s p r c t come first, in the order of base/abi.h */
  const char *name;
  lp_op *op;             /* builtin.module */
  lp_map *sources;       /* path -> lp_mapping*, opened when first asked for (lp_weight_data) */
  lp_map *made;          /* name -> const lp_made_file * */
  const char *directory; /* paths of weight files are relative to it */
  int64_t eval_steps;    /* steps left for evaluation at compile time: see LP_EVAL_STEPS */
  int64_t rank;          /* the rank whose parts llmpart.shard stands for */
  LP_VEC(void *) shards; /* copies made by lp_weight_data */
  /* A weight's name -> lp_input_squares *: measured, for rounding the weight. Borrowed; NULL: none. Not printed. */
  const lp_map *input_squares;
};

lp_module *lp_module_create(const char *name);
void lp_module_free(lp_module *module); /* unmaps the sources; NULL is allowed */
LP_OWNER(lp_module, lp_module_free)
lp_block *lp_module_body(const lp_module *module);
/* Adds a function `name` with `arg_count` arguments of the given types and an empty block. */
lp_op *lp_module_add_func(lp_module *module, const char *name, int32_t arg_count, const lp_type *arg_types);
lp_op *lp_module_find_func(const lp_module *module, const char *name);
/* The terminator of a function's block; its operands are the function's results. */
lp_op *lp_block_terminator(const lp_block *block);

/* ---- places (places.c) ------------------------------------------------------------------------------------------- */

/* The places of a function of a placed module, number 0 the device: those of its attribute `places` (strs), or else the
 * two sides. Returns their number and sets `names`, which are the module's. */
int32_t lp_func_places(const lp_op *func, const char *const **names);         /* func NULL: the two sides */
int32_t lp_module_places(const lp_module *module, const char *const **names); /* those of its functions */
const char *lp_module_place_name(const lp_module *module, lp_place place);
/* The place that an operator's attribute names: `side`, `from` or `to`. -1: none of its function's. */
lp_place lp_op_place(const lp_op *op, const char *attr);
/* The function that a block is part of, also as the block of an operator's region; NULL: none. */
const lp_op *lp_block_func(const lp_block *block);
/* The name of a function's attribute `name` of a place: "slot_device" of a side, "slot.phone" of one of `places`. */
enum { LP_PLACE_KEY_SIZE = 80 };
const char *lp_func_place_key(const lp_op *func, const char *name, lp_place place, char out[LP_PLACE_KEY_SIZE]);

/* ---- building ---------------------------------------------------------------------------------------------------- */

/* Creates a detached operator. Optional operands may be NULL; the results get `out_types`. */
lp_op *lp_op_create(lp_module *module, lp_kind kind, lp_loc loc, int32_t in_count, lp_value *const *in,
                    int32_t out_count, const lp_type *out_types);
void lp_op_append(lp_block *block, lp_op *op);
void lp_op_insert_before(lp_op *where, lp_op *op);
void lp_op_insert_after(lp_op *where, lp_op *op);
void lp_op_detach(lp_op *op); /* the operands stay */
/* Detaches the operator and removes it from its operands' uses. Its results must have no uses (asserted). */
void lp_op_erase(lp_op *op);
/* Copies an operator with its attributes and regions; the copy is detached. The operands are the same ones, or
 * map(user, value) of each when `map` is given. */
typedef lp_value *lp_value_map(void *user, lp_value *value);
lp_op *lp_op_clone(lp_module *module, const lp_op *op, lp_value_map *map, void *user);
lp_block *lp_op_add_region(lp_module *module, lp_op *op, int32_t arg_count, const lp_type *arg_types);
lp_value *lp_block_add_arg(lp_block *block, lp_type type);
lp_value *lp_op_add_result(lp_module *module, lp_op *op, lp_type type);

lp_value *lp_op_in(const lp_op *op, int32_t index); /* NULL when the operand is absent or `index` is past the end */
lp_value *lp_op_out(const lp_op *op, int32_t index);
void lp_op_set_in(lp_op *op, int32_t index, lp_value *value);
void lp_op_set_ins(lp_module *module, lp_op *op, int32_t count, lp_value *const *in);
void lp_value_replace(lp_value *old, lp_value *by); /* replaces every use */
bool lp_value_has_one_use(const lp_value *value);
void lp_block_renumber(lp_block *block);      /* sets `order` of every operator */
void lp_block_forget(const lp_block *block);  /* clears `scratch` of operators, results, arguments; not in regions */
bool lp_op_is(const lp_op *op, lp_kind kind); /* false for NULL */
bool lp_op_has(const lp_op *op, uint32_t traits);
bool lp_op_is_weighted(const lp_op *op); /* op.linear or op.experts: operands 1 and 4 are its weights */

#define LP_FOR_OPS(op, block) for (lp_op *op = (block)->first; op; op = op->next)
/* Each function of a module. */
#define LP_FOR_FUNCS(func, module)                                                                                     \
  LP_FOR_OPS(func, lp_module_body(module))                                                                             \
    if (func->kind == LP_OP_FUNC)

/* Attributes. A setter replaces the attribute and copies lists into the arena; names must outlive the module
 * (literals). */
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
bool lp_op_same_attrs(const lp_op *a, const lp_op *b); /* of the same names and values */

/* Constants. A small one (llmpart.constant) holds its data; a weight (llmpart.weight) refers to a file, an offset and a
 * length. */
lp_op *lp_constant_create(lp_module *module, lp_loc loc, lp_tensor tensor);
lp_op *lp_weight_create(lp_module *module, lp_loc loc, lp_type type, const char *file, int64_t offset, int64_t length);
/* Makes a constant [parts * rows][columns] of matrices [rows][columns] of one type, one after the other; with `turned`
 * they are [columns][rows], and transposed. They are `parts` constants, else of any rank (the first axes are rows), or
 * the parts of one (count 1). The operator is detached, and refers to files as they do; NULL: they are of different
 * kinds, or an element is no whole byte. */
lp_op *lp_constant_stack(lp_module *module, lp_loc loc, int64_t parts, lp_value *const *values, int64_t count,
                         bool turned);
/* Makes a constant of some of the `parts` equal parts of one along its first axis, in the order of `at`, detached. A
 * weight refers to its files. NULL: the parts do not begin at whole bytes, or it is an llmpart.shard. */
lp_value *lp_constant_select(lp_module *module, const lp_value *whole, int64_t parts, const int64_t *at, int64_t count);
/* Makes a weight of one part of an llmpart.weight [parts * rows][columns], so that others need not be in memory. NULL:
 * the parts of `whole` follow each other in a file, or it is no llmpart.weight. */
lp_value *lp_constant_part(lp_module *module, const lp_value *whole, int64_t part, int64_t parts);
bool lp_value_is_constant(const lp_value *value); /* llmpart.constant, llmpart.weight or llmpart.shard */
/* Sets `out` to the tensor of an llmpart.constant; false for any other value. */
bool lp_value_constant(const lp_value *value, lp_tensor *out);
/* The bytes of an llmpart.constant or llmpart.weight, valid as long as the module. Maps the weight's file on first use
 * and checks its length. Of an llmpart.shard it gives the part of module->rank, and of blocks the values, valid until
 * lp_shards_release. */
LP_MUST_USE lp_status lp_weight_data(lp_module *module, const lp_value *value, lp_tensor *out, lp_diag *diag);
/* The blocks in which an llmpart.weight [n][k] of f32 lies in its file, row by row, as its attribute `blocks` says;
 * NULL: its elements lie there. */
const lp_block_form *lp_weight_blocks(const lp_value *value);
/* The bytes in the file of an llmpart.weight: elements or blocks. They are valid as long as the module, or in a file
 * that is made until lp_shards_release. */
LP_MUST_USE lp_status lp_weight_stored(lp_module *module, const lp_value *value, lp_tensor *out, lp_diag *diag);
/* Maps the files of an llmpart.weight into module->sources, without those that are made. */
LP_MUST_USE lp_status lp_weight_open(lp_module *module, const lp_op *op, lp_diag *diag);
/* Frees the copies that lp_weight_data made of blocks, and of parts that do not follow each other in their file. */
void lp_shards_release(lp_module *module);
/* Tells whether `axis` of a type can be cut into equal parts that begin at whole bytes. */
bool lp_type_divides(lp_type type, int32_t axis, int64_t parts);
/* An element of a small constant as a number. The index is flat. */
int64_t lp_tensor_i64(const lp_tensor *tensor, int64_t index);
double lp_tensor_f64(const lp_tensor *tensor, int64_t index);
/* The bits of an element of a packed type (fewer than 8 bits; the first element lies in the low bits). */
uint8_t lp_packed_get(const void *data, lp_dtype dtype, int64_t index);
void lp_packed_set(void *data, lp_dtype dtype, int64_t index, int64_t bits);

/* ---- dimensions -------------------------------------------------------------------------------------------------- */

const lp_poly *lp_dim_const(lp_module *module, int64_t value);
const lp_poly *lp_dim_symbol(lp_module *module, const char *name);
/* Of the sizes from `from` on, before `to`; NULL: too large. */
const lp_poly *lp_dim_product(lp_module *module, const lp_poly *const *dim, int32_t from, int32_t to);

/* ---- types and values of operators (infer*.c, eval*.c) ----------------------------------------------------------- */

/* Sets the types of an onnx.* operator's results from its operands, and those elements of integer results that are
 * known as polynomials. Where the shape of a result depends on data, the diagnostic names the node and the operator. */
LP_MUST_USE lp_status lp_op_infer(lp_module *module, lp_op *op, lp_diag *diag);
/* Replaces a symbol by an equal polynomial in every type, known value and attribute. False when a size would
 * overflow. */
LP_MUST_USE bool lp_module_substitute(lp_module *module, lp_symbol symbol, const lp_poly *by);
/* Does the same in the results, attributes and region of one operator. */
LP_MUST_USE bool lp_op_substitute(lp_module *module, lp_op *op, lp_symbol symbol, const lp_poly *by);
/* Call it after a refusal because `value` is not known before the program runs. It adds a note for each small input of
 * the graph that `value` is computed from, with the option that makes that input a constant. */
void lp_note_binding(lp_diag *diag, lp_loc loc, const lp_value *value);
/* Infers every operator of the block in order, those in regions included. */
LP_MUST_USE lp_status lp_block_infer(lp_module *module, lp_block *block, lp_diag *diag);

/* A dense array of actual numbers, row-major in its dtype. */
typedef struct {
  lp_dtype dtype;
  int32_t rank;
  int64_t dim[LP_MAX_RANK];
  void *data;
} lp_array;

int64_t lp_array_numel(const lp_array *array);
size_t lp_array_bytes(const lp_array *array);
void lp_array_set_i64(lp_array *array, int64_t index, int64_t value);
void lp_array_set_f64(lp_array *array, int64_t index, double value); /* integers are truncated and clamped */

/* The reference interpreter. It computes an onnx.* or op.* operator on given operands (absent ones are NULL), with
 * floats in double, and allocates the results in `arena`. It is slow and plain; folding, recognising and the
 * conformance tests rest on it. `sym` [module->symbols.names.count] gives the values of the symbols in attributes and
 * types. */
LP_MUST_USE lp_status lp_op_eval(lp_module *module, const lp_op *op, const lp_array *const *in, lp_array *out,
                                 const int64_t *sym, lp_arena *arena, lp_diag *diag);
/* The function of op.map that an elementwise onnx.* operator computes; a variadic operator applies it to two operands
 * at a time. alpha and beta come from the operator's attributes and are NaN where the function has none. lp_op_function
 * returns false for any other operator. */
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

/* The budget of a module for evaluation at compile time, in elements computed, so that folding the constants of a
 * hostile file ends. When it is used up, nothing more is known or folded. Real models take less than a hundredth. */
#define LP_EVAL_STEPS ((int64_t)1 << 27)

/* The windows of a convolution: the effect of auto_pad, pads, strides and dilations on the spatial axes of x. */
enum { LP_MAX_SPATIAL = 3 };
typedef struct {
  int32_t count; /* spatial axes */
  int64_t window[LP_MAX_SPATIAL], steps[LP_MAX_SPATIAL], dilations[LP_MAX_SPATIAL];
  int64_t before[LP_MAX_SPATIAL], after[LP_MAX_SPATIAL]; /* padding */
  const lp_poly *out[LP_MAX_SPATIAL];                    /* number of windows along each axis */
} lp_windows;
/* Fills the windows. `x` [n][c][spatial...] and `w` [m][c / group][kernel...] are the operands' types; the kernel's
 * sizes are constant. */
LP_MUST_USE lp_status lp_op_windows(lp_module *module, const lp_op *op, lp_type x, lp_type w, lp_windows *out,
                                    lp_diag *diag);
/* Evaluates `value` and the operators that it depends on, back to constants, values known as polynomials (taken at
 * `sym`) and the given bindings, which have the sizes of `sym`. When it depends on anything else it returns LP_FAILED,
 * without a diagnostic when `diag` is NULL. */
typedef struct {
  const lp_value *value;
  lp_array array;
} lp_binding;
LP_MUST_USE lp_status lp_value_eval(lp_module *module, lp_value *value, const lp_binding *bindings, size_t count,
                                    const int64_t *sym, lp_arena *arena, lp_array *out, lp_diag *diag);
/* Does the same for several values, and computes what they share once: out[value_count]. */
LP_MUST_USE lp_status lp_values_eval(lp_module *module, lp_value *const *values, size_t value_count,
                                     const lp_binding *bindings, size_t count, const int64_t *sym, lp_arena *arena,
                                     lp_array *out, lp_diag *diag);

/* ---- text (printer.c, parser.c), checks (verifier.c), costs (cost.c) --------------------------------------------- */

/* Prints generic MLIR assembly, which `mlir-opt --allow-unregistered-dialect` accepts. The text is deterministic;
 * attributes are sorted. */
void lp_module_print(const lp_module *module, bool with_locations, lp_buf *out);
/* Parses a module, which the caller frees. Printing it gives the text again: print(parse(print(m))) = print(m). Errors
 * are located in `file`. */
LP_MUST_USE lp_status lp_module_parse(const char *file, const char *text, size_t size, lp_module **out, lp_diag *diag);
/* Checks structure (dominance, terminators, arity, attribute schema), types and, where present, flops and bytes.
 * Reports the first fault. */
LP_MUST_USE lp_status lp_module_verify(const lp_module *module, lp_diag *diag);

/* An op.* operator's operations and traffic, exact, as polynomials in the symbols of its types. */
typedef struct {
  const lp_poly *flops;           /* a multiply-add is 2 */
  const lp_poly *bytes_read;      /* operands in their dtypes, weights included */
  const lp_poly *bytes_written;   /* results */
  const lp_poly *weight_bytes;    /* the constants among bytes_read */
  const lp_poly *macs, *elements; /* as P1 counts them (Table I): multiply-adds; elements in and out */
} lp_cost;
lp_cost lp_op_cost(lp_module *module, const lp_op *op);
