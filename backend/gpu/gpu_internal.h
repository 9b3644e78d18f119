/* gpu: code for one side's GPU, the same for every language that kernels are printed in. What the files of backend/gpu/
 * share with the languages' folders (backend/cuda).
 *
 *   plan.c        the side's programs and segments; each operator becomes a call: a launcher and what it works on
 *   lower_*.c     operators as launches of kernels, rules.c their table;  index.c, function.c  text of elementwise kernels
 *   lower_product.c  and products that a library may do
 *   kernel.c      kernels by template (kernels/NAME.kernel) and parameters, each distinct one once
 *   constants.c   weights in the form kernels read;  weights.c  writes them
 *   repeat.c      equal runs of calls (layers) become one function
 *   describe.c    sizes of slots, symbols;  table.c  the plan as data, for a runtime that launches kernels itself
 *   print.c       everything as text, by way of a dialect: words for qualifiers and indices, and how a launch is said
 *
 * A template is C with two kinds of words to fill in: $NAME is a parameter, @name a word of the dialect. A kernel's sizes are parameters
 * of type @size, which converts to long: some languages pass them by address, so that a recorded launch serves other sizes.
 */
#ifndef LP_GPU_INTERNAL_H
#define LP_GPU_INTERNAL_H

#include "backend/backend_internal.h"
#include "base/map.h"
#include "base/poly.h"

/* ---- dialects ------------------------------------------------------------------------------------------------------- */

typedef struct gpu_launch gpu_launch;
typedef struct gpu_launcher gpu_launcher;

typedef struct {
  const char *word, *means; /* "sync" -> "__syncthreads()" */
} gpu_word;

typedef struct {
  const char *name;
  const gpu_word *words; /* ends with NULL */
  const char *prologue;  /* a template: what kernels rely on */
  const char *tensor;    /* a template: what those on tensor cores rely on; NULL: there are none */
  bool products;         /* may the runtime find a library of matrix products? */
} gpu_dialect;

/* ---- constants (constants.c, weights.c) ------------------------------------------------------------------------------ */

typedef enum {
  GPU_FORM_RAW,    /* row-major, as in the module */
  GPU_FORM_F32,    /* floats as f32 */
  GPU_FORM_MATRIX, /* a linear's weight [n][k] in `store` */
  GPU_FORM_SCALE   /* the scales of a matrix of codes: f16 [n][ceil(k / 32)] */
} gpu_form;

typedef struct {
  lp_value *value;
  lp_value *scale, *zero; /* of an integer weight, else NULL */
  int64_t group;
  gpu_form form;
  lp_dtype store; /* as it lies in the file */
  lp_dtype codes; /* of a matrix of integers and of its scales: i8 or u4 */
  bool transpose; /* the value is [n][k] */
  int64_t n, k, k_stored;
  int32_t rank;
  int64_t dim[LP_MAX_RANK], bytes, offset;
  const char *name;
} gpu_constant;

/* ---- launches -------------------------------------------------------------------------------------------------------- */

typedef enum { GPU_AT_NOTHING, GPU_AT_BUFFER, GPU_AT_WEIGHT, GPU_AT_STATE } gpu_place;

/* What a kernel's pointer points to. */
typedef struct {
  gpu_place place;
  int64_t index; /* of the buffer or state */
  const gpu_constant *constant;
  lp_rows rows; /* of a buffer: in a pass over several sequences it holds those of all, of so many bytes each */
  int64_t row_bytes;
} gpu_ref;

typedef struct {
  const char *name; /* "norm_rms_128" */
  const char *text; /* with the dialect's words unfilled */
  bool finishes;    /* it is launched behind a library's product alone */
} gpu_kernel;

typedef enum { GPU_ARG_REF, GPU_ARG_NULL, GPU_ARG_SIZE, GPU_ARG_SCRATCH } gpu_arg_kind;
typedef struct {
  gpu_arg_kind kind;
  int32_t ref;         /* which of the call's */
  const lp_poly *size; /* a long */
} gpu_arg;

enum { GPU_MOST_ARGS = 64 }; /* of a kernel */

/* y[rows][n] = epilogue(scale * x[rows][k] . w[n][k] + bias) + add, in place of a kernel: what a library of products does. Its
 * launch's arguments are x, w, bias, add, y, rows, and at which byte of y's memory the result begins. */
typedef struct {
  int64_t n, k;
  lp_dtype dtype;       /* of x and w; the others are f32 */
  const char *scale;    /* an integer */
  const char *epilogue; /* "none" "relu" "gelu_tanh"; not with `add` */
} gpu_gemm;

/* When is it launched? A call's products are done by the library all, or none. */
typedef enum { GPU_BY_ANY, GPU_BY_LIBRARY, GPU_BY_KERNEL } gpu_by;

/* One kernel, or product, over a grid of ceil(size / per) groups on each axis; only where `few` lies in [least, most], and the GPU's
 * architecture (80: sm_80) in [least_sm, most_sm]. */
struct gpu_launch {
  const gpu_kernel *kernel; /* NULL: */
  const gpu_gemm *product;  /* without threads and grid */
  gpu_by by;
  int32_t threads;
  struct {
    const lp_poly *size;
    int64_t per;
  } grid[2];
  const lp_poly *few; /* NULL: always */
  int64_t least, most;
  int32_t least_sm, most_sm; /* both 0: any */
  gpu_arg arg[GPU_MOST_ARGS];
  int32_t arg_count;
  bool spare;  /* more groups than the sizes ask for do no harm */
  bool spread; /* and a third axis of the grid counts sequences: its pointers are PLACEs */
};

/* What does one kind of call: launches in order. Equal ones are shared; refs are numbered within the call. */
struct gpu_launcher {
  const char *name, *what;
  gpu_launch *launch;
  int32_t launch_count;
};

typedef struct {
  const lp_op *op;
  const gpu_launcher *launcher;
  const gpu_ref *ref;
  int32_t ref_count;
  bool joint; /* runs once over the rows of all sequences (base/abi.h) */
} gpu_call;

typedef struct {
  int64_t index; /* attribute `segment` */
  LP_VEC(gpu_call) calls;
  const char *symbol;
} gpu_segment;

/* Scratch of the launches: bytes, needed only while `few` is at most `most`, and perhaps only beside a library's product. */
typedef struct {
  const lp_poly *bytes, *few;
  int64_t most;
  bool library;
} gpu_scratch;

typedef struct {
  const lp_op *func;
  const char *name;
  LP_VEC(gpu_segment *) segments;
  LP_VEC(gpu_scratch) scratch;
  const lp_value *narrowed; /* what lies in the scratch at this place of the program, for products (lower_tensor.c) */
  lp_dtype narrowed_as;
  int64_t narrowed_in; /* segment */
  bool narrowed_jointly;
  int64_t buffer_count;
  const int64_t *slot;
  int64_t slot_count;
  const char *layout;
} gpu_program;

typedef struct {
  lp_module *module;
  lp_arena *arena;
  lp_diag *diag;
  const char *side;
  bool tensor;     /* may kernels use tensor cores? */
  bool any_tensor; /* does one? */
  bool products;   /* may a library do products? */
  LP_VEC(gpu_program) programs;
  lp_map *constants;    /* key -> gpu_constant *, in order of first use */
  lp_map *names;        /* of constants */
  lp_map *kernels;      /* text -> gpu_kernel *, in order of first use */
  lp_map *kernel_names; /* taken */
  lp_map *launchers;    /* description -> gpu_launcher *, in order of first use */
  int64_t weight_bytes;
} gpu_plan;

/* `dialect`: what the plan will be printed in. */
LP_MUST_USE lp_status gpu_plan_create(lp_module *module, const char *side, const gpu_dialect *dialect, lp_arena *arena,
                                      gpu_plan **out, lp_diag *diag);
void gpu_plan_free(gpu_plan *plan);

/* ---- lowering --------------------------------------------------------------------------------------------------------- */

/* A call being made. */
typedef struct {
  gpu_plan *plan;
  gpu_program *program;
  const lp_op *op;
  LP_VEC(gpu_ref) refs;
  LP_VEC(gpu_launch) launches;
  lp_status status;
} gpu_builder;

typedef struct {
  lp_kind kind;
  bool (*runs)(const lp_op *op, char why[64]); /* NULL: always */
  void (*lower)(gpu_builder *b);
} gpu_rule;

const gpu_rule *gpu_rule_find(lp_kind kind);
bool gpu_op_runs(const lp_op *op, char why[64]);
extern const gpu_rule gpu_rule_linear, gpu_rule_matmul, gpu_rule_norm, gpu_rule_add_norm, gpu_rule_softmax,
    gpu_rule_reduce, gpu_rule_argmax, gpu_rule_attention, gpu_rule_kv_append, gpu_rule_rotary, gpu_rule_map,
    gpu_rule_fused, gpu_rule_gather, gpu_rule_gather_elements, gpu_rule_concat, gpu_rule_slice, gpu_rule_transpose,
    gpu_rule_reshape, gpu_rule_expand, gpu_rule_pad, gpu_rule_windows, gpu_rule_iota, gpu_rule_dims, gpu_rule_fill;

/* Values as the kernels read them (plan.c). */
const lp_op *gpu_value_cache(const lp_value *value); /* the op.kv_append whose result it is, or NULL */
/* The number of the call's ref for an operand or result; constants in `form`. -1: the operand is absent. */
int32_t gpu_ref_in(gpu_builder *b, int32_t operand, gpu_form form);
int32_t gpu_ref_value(gpu_builder *b, lp_value *value, gpu_form form);
int32_t gpu_ref_out(gpu_builder *b, int32_t result);
int32_t gpu_ref_state(gpu_builder *b, int64_t state);
int32_t gpu_ref_constant(gpu_builder *b, const gpu_constant *constant);
void gpu_add_scratch(gpu_builder *b, const lp_poly *bytes, const lp_poly *few, int64_t most);

/* Constants (constants.c). A linear's weight: its codes or floats, and scales (NULL for floats). */
const gpu_constant *gpu_constant_get(gpu_builder *b, lp_value *value, gpu_form form);
void gpu_constant_weight(gpu_builder *b, bool gate, const gpu_constant **matrix, const gpu_constant **scale);
void gpu_plan_place_constants(gpu_plan *plan);
LP_MUST_USE lp_status gpu_weights_write(const gpu_plan *plan, const char *path, lp_diag *diag);

/* Kernels (kernel.c). A template with parameters, a row of names and values that ends with NULL. */
const char *gpu_template(const char *name);
/* `text` with parameters filled in; in the plan's arena. */
const char *gpu_fill(gpu_plan *plan, const char *text, const char *const *params);
gpu_kernel *gpu_kernel_get(gpu_plan *plan, const char *template, const char *stem, const char *const *params);
/* Launch, filled step by step. */
gpu_launch *gpu_launch_add(gpu_builder *b, const gpu_kernel *kernel, int32_t threads, const lp_poly *x, int64_t per);
void gpu_launch_rows(gpu_launch *launch, const lp_poly *y, int64_t per);
void gpu_launch_when(gpu_launch *launch, const lp_poly *few, int64_t least, int64_t most);
enum { GPU_MOST_SM = 9999 };
void gpu_launch_on(gpu_launch *launch, int32_t least_sm, int32_t most_sm);
void gpu_arg_ref(gpu_launch *launch, int32_t ref); /* -1: a null pointer */
void gpu_arg_size(gpu_launch *launch, const lp_poly *size);
void gpu_arg_scratch(gpu_launch *launch);

/* Types in kernels: "float", "unsigned short". */
const char *gpu_type(lp_dtype dtype);
const char *gpu_store_name(lp_dtype dtype); /* "f32" f16 bf16 int8 int4 bool */
bool gpu_all_f32(const lp_op *op, char why[64]);
const lp_poly *gpu_product(lp_module *module, const lp_poly *const *dim, int32_t from, int32_t to);
const char *gpu_format(gpu_plan *plan, const char *format, ...) LP_PRINTF(2, 3);

/* ---- products (lower_rows.c, lower_tensor.c) ---------------------------------------------------------------------------- */

/* op.linear with the numbers of its refs, -1 where there is none: y[rows][n] of x[rows][k] and w[n][k]. */
typedef struct {
  int32_t x, w, scale, gate, gate_scale, bias, residual, y;
  const gpu_constant *matrix;
  int64_t n, k;
  const lp_poly *rows;
} gpu_linear;
/* "gated_silu_": what tells kernels' names apart. */
const char *gpu_linear_tag(const gpu_builder *b);
/* For more than `few` rows, on architectures from `sm` on: by the runtime's library of products where there is one. x is as `dtype` in
 * memory, its `scale`th part: an operand, or with x < 0 the scratch's beginning. What else does it then is launched GPU_BY_KERNEL.
 * false: no library is to be found. */
typedef struct {
  lp_dtype dtype;
  const char *scale;
  int32_t x, sm;
  int64_t few;
} gpu_product_form;
bool gpu_linear_product(gpu_builder *b, const gpu_linear *l, const gpu_product_form *form);
/* For more than `few` rows, on GPUs with tensor cores for the weight's type: their first architecture, 0 where there is none. */
int32_t gpu_linear_tensor(gpu_builder *b, const gpu_linear *l, int64_t few);

/* ---- elementwise kernels (index.c, function.c) ------------------------------------------------------------------------ */

/* The text of a kernel with one thread per element of `type`: parameters, sizes, and lines of code. */
typedef struct {
  gpu_builder *b;
  lp_type type;
  lp_buf params, pointer_lines, size_lines, body; /* lines: parameters become pointers and numbers */
  gpu_arg arg[GPU_MOST_ARGS];
  int32_t arg_count;
  lp_map *sizes;        /* polynomial's text -> parameter's name */
  lp_map *lines;        /* index expressions known already -> variable */
  uint32_t coordinates; /* axes whose coordinate is a variable already */
} gpu_element;

void gpu_element_begin(gpu_element *e, gpu_builder *b, lp_type type);
/* A pointer parameter for a ref: its name. */
const char *gpu_element_pointer(gpu_element *e, int32_t ref, lp_dtype dtype, bool written);
/* A size in the kernel: a number, or a parameter's name. */
const char *gpu_element_size(gpu_element *e, const lp_poly *size);
/* The coordinate along an axis of the result: a variable's name, "0" where there is but one. */
const char *gpu_element_coordinate(gpu_element *e, int32_t axis);
/* Where the element of an operand of type `from`, broadcast to the result, lies. */
const char *gpu_element_index(gpu_element *e, lp_type from);
/* The product of dims [from, to) as an expression. */
const char *gpu_element_stride(gpu_element *e, const lp_poly *const *dim, int32_t from, int32_t to);
/* An operand's element at `index`, widened to what its type is computed in. */
const char *gpu_element_load(gpu_element *e, const char *pointer, lp_dtype dtype, const char *index);
void gpu_element_line(gpu_element *e, const char *format, ...) LP_PRINTF(2, 3);
void gpu_element_store(gpu_element *e, const char *pointer, lp_dtype dtype, const char *index, const char *value);
/* Makes the kernel and its launch. */
void gpu_element_end(gpu_element *e, const char *stem);

/* The expression of a function of op.map on operands of type `dtype`; NULL: there is none. */
const char *gpu_function(gpu_plan *plan, const lp_op *op, const char *const *in, const lp_dtype *types, int32_t count);
bool gpu_function_runs(const lp_op *op, char why[64]);
/* A constant of one element as a literal; NULL when it is none. */
const char *gpu_literal(gpu_plan *plan, const lp_value *value);

/* ---- text (repeat.c, print.c) ------------------------------------------------------------------------------------------- */

/* A run of `period` calls from `first` that is there `count` times in a row. */
typedef struct {
  size_t first, period, count;
} gpu_run;
typedef LP_VEC(gpu_run) gpu_runs;
void gpu_find_runs(const gpu_segment *segment, gpu_runs *out);

/* Symbols of segments and layouts, from the plan alone. */
void gpu_symbols_assign(gpu_plan *plan);
/* All kernels in the dialect; those that finish a library's products only for who may have one. */
void gpu_print_kernels(const gpu_plan *plan, const gpu_dialect *dialect, bool library, lp_buf *out);
/* `text` with the words of the dialect filled in. */
void gpu_print_text(const gpu_dialect *dialect, const char *text, lp_buf *out);
/* A polynomial as a C expression over the members of `f`. */
void gpu_print_size(const gpu_plan *plan, const lp_poly *size, lp_buf *out);

/* The plan as data for a runtime that launches the kernels (table.c). */
void gpu_print_table(const gpu_plan *plan, const gpu_dialect *dialect, lp_buf *out);

/* ---- facts (describe.c) -------------------------------------------------------------------------------------------------- */

/* [slot_count]: the sizes of the buffers of each slot of a program; each list is released with lp_vec_free. */
typedef LP_VEC(const lp_poly *) gpu_sizes;
gpu_sizes *gpu_slot_sizes(const gpu_plan *plan, const gpu_program *program);
/* For the manifest; `arena` may outlive the plan's. */
void gpu_describe(const gpu_plan *plan, const char *triple, const char *march, lp_arena *arena, lp_code *out);

#endif
