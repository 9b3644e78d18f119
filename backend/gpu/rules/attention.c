/* op.attention, op.rotary and op.kv_append on GPUs. */
#include "backend/gpu/rules/element.h"

#include "backend/gpu/rules.h"
#include "backend/values.h"
#include "base/poly.h"

enum {
  Q,
  K,
  V,
  MASK,
  SINKS,
  FEW_ROWS = 4,
  CHUNK = 64,
  THREADS = 128,
  TILE_ROWS = 16,
  TENSOR_ROWS = 64,
  MOST_WIDTH = 256,
  EIGHT = 8
};

static bool heads_first(const lp_op *op) {
  return !lp_streq(lp_op_str(op, "layout", "bhsd"), "bshd");
}

static bool is_store(lp_dtype dtype) {
  return dtype == LP_F32 || dtype == LP_F16 || dtype == LP_BF16 || lp_cache_is_coded(dtype);
}

/* The elements of a row of keys or values; false: their number is not constant, or no whole blocks of codes. */
static bool row_width(lp_type type, int64_t *out) {
  if (!lp_type_static_dim(type, 3, out)) return false;
  *out = lp_cache_width(type.dtype, *out);
  return *out >= 0;
}

/* Returns the suffix of the names of the functions that load and store elements of rows. For codes it also adds these
 * functions to the kernels. */
static const char *row_store(gpu_launch_list *list, lp_dtype dtype, int64_t width) {
  if (!lp_cache_is_coded(dtype)) return gpu_store_name(dtype);
  const bool wide = dtype == LP_I8;
  const char *const params[] = {
      "WIDTH",
      gpu_format(list, "%" PRId64, width),
      "SCALES",
      gpu_format(list, "%" PRId64, wide ? width : width / 2),
      "TYPE",
      gpu_type(dtype),
      "BYTE",
      wide ? "at" : "(at / 32 * 16 + at % 16)",
      "VALUE",
      wide ? "(signed char)byte" : "(byte >> at % 32 / 16 * 4 & 15) - 8",
      "MOST",
      wide ? "127.0f" : "7.0f",
      "BYTES",
      wide ? "32" : "16",
      "CODES",
      wide ? "code_$NAME(x[i], scale)" : "(code_$NAME(x[i], scale) + 8) | (code_$NAME(x[i + 16], scale) + 8) << 4",
      NULL};
  return gpu_kernel_get(list, "cache", gpu_format(list, "cache%d_%" PRId64, wide ? 8 : 4, width), params)->name;
}

static bool attention_runs(const lp_op *op, char why[64]) {
  const lp_value *mask = lp_op_in(op, MASK), *k = lp_op_in(op, K), *v = lp_op_in(op, V);
  int64_t d = 0, dv = 0, heads = lp_op_i64(op, "heads", 0), kv_heads = lp_op_i64(op, "kv_heads", 0);
  if (lp_op_in(op, Q)->type.dtype != LP_F32) return snprintf(why, 64, "a query that is not f32"), false;
  if (!is_store(k->type.dtype) || v->type.dtype != k->type.dtype)
    return snprintf(why, 64, "k, v of types %s, %s", lp_dtype_name(k->type.dtype), lp_dtype_name(v->type.dtype)), false;
  if (mask && ((mask->type.dtype != LP_F32 && mask->type.dtype != LP_BOOL) || mask->type.rank > 4))
    return snprintf(why, 64, "a mask of type %s, rank %d", lp_dtype_name(mask->type.dtype), mask->type.rank), false;
  if (k->type.rank != 4 || v->type.rank != 4 || lp_op_in(op, Q)->type.rank != 4)
    return snprintf(why, 64, "operands that are not of four axes"), false;
  if (!row_width(k->type, &d) || !row_width(v->type, &dv) || d > MOST_WIDTH || dv > MOST_WIDTH)
    return snprintf(why, 64, "heads wider than %d", MOST_WIDTH), false;
  if (kv_heads <= 0 || heads % kv_heads != 0)
    return snprintf(why, 64, "heads that are not a multiple of kv_heads"), false;
  return true;
}

typedef struct {
  gpu_builder *b;
  const lp_op *op;
  const lp_poly *batch, *rows, *total, *keys_apart, *values_apart;
  int64_t heads, d, dv;
  int32_t q, k, v, mask, sinks, y;
  const char *const *params;
} attention;

static const char *seen(gpu_launch_list *list, const lp_op *op) {
  int64_t window = lp_op_i64(op, "window", 0);
  const char *causal = lp_op_bool(op, "causal", false) ? "j <= total - s + i" : "1";
  return window > 0 ? gpu_format(list, "%s && j > total - s + i - %" PRId64, causal, window) : causal;
}

/* The number of rows from one head to the next: the capacity of a cache, or all rows of another tensor. */
static const lp_poly *rows_apart(const attention *a, int32_t operand) {
  const lp_op *cache = lp_value_cache(lp_value_base(lp_op_in(a->op, operand)));
  return cache ? lp_cache_rows(a->b->list->module, cache) : a->total;
}

/* Strides of batch, head, row and key in the mask; 0 where the mask is broadcast. */
static void add_mask_strides(const attention *a, gpu_launch *launch) {
  lp_module *m = a->b->list->module;
  const lp_value *mask = lp_op_in(a->op, MASK);
  for (int32_t axis = 0; axis < 4; axis++) {
    int64_t one;
    int32_t own = mask ? axis - (4 - mask->type.rank) : -1;
    bool repeats = own < 0 || (lp_poly_is_const(mask->type.dim[own], &one) && one == 1);
    gpu_arg_size(launch, repeats ? lp_dim_const(m, 0) : lp_dim_product(m, mask->type.dim, own + 1, mask->type.rank));
  }
}

static void add_operands(const attention *a, gpu_launch *launch) {
  const int32_t refs[] = {a->q, a->k, a->v, a->mask};
  for (size_t i = 0; i < LP_COUNT(refs); i++)
    gpu_arg_ref(launch, refs[i]);
}

static void add_sizes(const attention *a, gpu_launch *launch) {
  const lp_poly *const sizes[] = {a->rows, a->total, a->keys_apart, a->values_apart};
  for (size_t i = 0; i < LP_COUNT(sizes); i++)
    gpu_arg_size(launch, sizes[i]);
  add_mask_strides(a, launch);
}

/* Few rows: groups work on parts of the keys at the same time, and a second kernel joins the parts. */
static void launch_split(const attention *a, const char *stem) {
  gpu_launch_list *list = a->b->list;
  lp_arena *arena = list->module->arena;
  const lp_poly *heads = lp_poly_scale(arena, lp_poly_mul(arena, a->batch, a->rows), a->heads);
  const gpu_kernel *split = gpu_kernel_get(list, "attention_split", gpu_format(list, "%s_split", stem), a->params);
  gpu_launch *launch = gpu_launch_add(a->b, split, THREADS, a->total, CHUNK);
  gpu_launch_rows(launch, heads, 1);
  gpu_launch_when(launch, a->rows, 0, FEW_ROWS);
  launch->spare = launch->spread = true;
  add_operands(a, launch);
  gpu_arg_scratch(launch);
  gpu_arg_size(launch, heads);
  add_sizes(a, launch);
  const gpu_kernel *merge = gpu_kernel_get(list, "attention_merge", gpu_format(list, "%s_merge", stem), a->params);
  launch = gpu_launch_add(a->b, merge, THREADS, heads, 1);
  gpu_launch_when(launch, a->rows, 0, FEW_ROWS);
  launch->spare = launch->spread = true;
  gpu_arg_scratch(launch);
  gpu_arg_ref(launch, a->sinks);
  gpu_arg_ref(launch, a->y);
  gpu_arg_size(launch, heads);
  gpu_arg_size(launch, a->rows);
  gpu_arg_size(launch, a->total);
  /* each CHUNK keys leave a part of dv + 2 floats */
  int64_t per_key = ((a->dv + 2) * 4 + CHUNK - 1) / CHUNK;
  const lp_poly *keys = lp_poly_add(arena, a->total, lp_dim_const(list->module, CHUNK));
  gpu_add_scratch(a->b, lp_poly_scale(arena, lp_poly_mul(arena, heads, keys), per_key), a->rows, FEW_ROWS);
}

static gpu_launch *launch_many(const attention *a, const char *template, const char *name, int64_t rows) {
  gpu_launch_list *list = a->b->list;
  gpu_launch *launch = gpu_launch_add(a->b, gpu_kernel_get(list, template, name, a->params), THREADS, a->rows, rows);
  gpu_launch_rows(launch, lp_poly_scale(list->module->arena, a->batch, a->heads), 1);
  gpu_launch_when(launch, a->rows, FEW_ROWS + 1, INT64_MAX);
  add_operands(a, launch);
  gpu_arg_ref(launch, a->sinks);
  gpu_arg_ref(launch, a->y);
  add_sizes(a, launch);
  return launch;
}

/* Many rows: on tensor cores where the GPU has them. */
static void launch_tiles(const attention *a, const char *stem, int32_t tensor) {
  gpu_launch_list *list = a->b->list;
  gpu_launch *tile = launch_many(a, "attention_tile", gpu_format(list, "%s_tile", stem), TILE_ROWS);
  if (tensor == 0) return;
  gpu_launch_on(tile, 0, tensor - 1);
  gpu_launch *launch = launch_many(a, "attention_tensor", gpu_format(list, "%s_tensor", stem), TENSOR_ROWS);
  gpu_launch_on(launch, tensor, LP_HW_MOST_SM);
  list->any_tensor = true;
}

static void read_attention(attention *a) {
  gpu_builder *b = a->b;
  const lp_type q = lp_op_in(a->op, Q)->type, k = lp_op_in(a->op, K)->type;
  a->batch = q.dim[0];
  a->rows = q.dim[heads_first(a->op) ? 2 : 1];
  a->total = k.dim[2];
  a->keys_apart = rows_apart(a, K);
  a->values_apart = rows_apart(a, V);
  a->heads = lp_op_i64(a->op, "heads", 1);
  row_width(k, &a->d);
  row_width(lp_op_in(a->op, V)->type, &a->dv);
  a->q = gpu_ref_in(b, Q, GPU_FORM_F32);
  a->k = gpu_ref_in(b, K, GPU_FORM_RAW);
  a->v = gpu_ref_in(b, V, GPU_FORM_RAW);
  a->mask = gpu_ref_in(b, MASK, GPU_FORM_F32);
  a->sinks = gpu_ref_in(b, SINKS, GPU_FORM_F32);
  a->y = gpu_ref_out(b, 0);
}

static void lower_attention(gpu_builder *b) {
  gpu_launch_list *list = b->list;
  attention a = {.b = b, .op = b->op};
  read_attention(&a);
  const lp_dtype store = lp_op_in(a.op, K)->type.dtype;
  const lp_value *mask = lp_op_in(a.op, MASK);
  const lp_dtype mask_dtype = mask ? mask->type.dtype : LP_F32;
  double cap = lp_op_f64(a.op, "softcap", 0);
  int64_t wide = a.d > a.dv ? a.d : a.dv;
  const int32_t tensor = list->tensor ? lp_hw_attention_tensor_from(store, a.d, a.dv) : 0;
  const char *const params[] = {
      "WHAT",        "op.attention",
      "D",           gpu_format(list, "%" PRId64, a.d),
      "DV",          gpu_format(list, "%" PRId64, a.dv),
      "WIDE",        gpu_format(list, "%" PRId64, wide),
      "HEADS",       gpu_format(list, "%" PRId64, a.heads),
      "KV_HEADS",    gpu_format(list, "%" PRId64, lp_op_i64(a.op, "kv_heads", 1)),
      "CHUNK",       gpu_format(list, "%d", CHUNK),
      "VECTOR",      a.d % 8 == 0 && a.dv % 8 == 0 ? "8" : "1",
      "ROWS",        gpu_format(list, "%d", TILE_ROWS),
      "KEYS",        wide > 128 ? "16" : "32",
      "THREADS",     gpu_format(list, "%d", THREADS),
      "SM",          gpu_format(list, "%d", tensor),
      "TENSOR_KEYS", wide > 128 ? "16" : "64", /* for wider heads the queries are in shared memory, too */
      "MASKED",      mask ? "1" : "0",
      "APART",       wide > 128 ? "1" : "0",
      "KTYPE",       gpu_type(store),
      "KSTORE",      row_store(list, store, a.d),
      "VSTORE",      row_store(list, store, a.dv),
      "KROW",        gpu_format(list, "%" PRId64, lp_cache_row(store, a.d)),
      "VROW",        gpu_format(list, "%" PRId64, lp_cache_row(store, a.dv)),
      "MTYPE",       gpu_type(mask_dtype),
      "MSTORE",      gpu_store_name(mask_dtype),
      "SCALE",       gpu_format(list, "%.9ef", lp_op_f64(a.op, "scale", 1)),
      "CAP",         cap > 0 ? gpu_format(list, "%.9ef * tanhf(score / %.9ef)", cap, cap) : "score",
      "SEEN",        seen(list, a.op),
      "CAUSAL",      lp_op_bool(a.op, "causal", false) ? "1" : "0",
      "WINDOW",      gpu_format(list, "%" PRId64, lp_op_i64(a.op, "window", 0)),
      "HEADS_FIRST", heads_first(a.op) ? "1" : "0",
      NULL};
  a.params = params;
  const char *stem = gpu_format(list, "attention_%" PRId64 "x%" PRId64, a.heads, a.d);
  launch_split(&a, stem);
  launch_tiles(&a, stem, tensor);
}

/* ---- caches ------------------------------------------------------------------------------------------------------ */

static bool append_runs(const lp_op *op, char why[64]) {
  if (lp_op_only_reads(op)) return true;
  if (lp_op_in(op, 0)->type.dtype != LP_F32 || !is_store(op->out[0]->type.dtype))
    return snprintf(why, 64, "rows of type %s", lp_dtype_name(lp_op_in(op, 0)->type.dtype)), false;
  return true;
}

/* `type` with a last axis of vectors of `each` elements. */
static lp_type in_vectors(lp_module *m, lp_type type, int64_t last, int64_t each) {
  const lp_poly **dim = LP_NEW_ARRAY(m->arena, const lp_poly *, type.rank);
  memcpy(dim, type.dim, (size_t)type.rank * sizeof *dim);
  dim[type.rank - 1] = lp_dim_const(m, last / each);
  type.dim = dim;
  return type;
}

static void write_kv_append(gpu_element *e, gpu_builder *b) {
  lp_module *m = b->list->module;
  int64_t last = 0;
  const lp_dtype store = b->op->out[0]->type.dtype;
  const bool coded = lp_cache_is_coded(store);
  const int64_t each = coded ? LP_CACHE_BLOCK : EIGHT;
  const bool vectors = lp_type_static_dim(lp_op_in(b->op, 0)->type, 3, &last) && last % each == 0;
  const lp_type x = vectors ? in_vectors(m, lp_op_in(b->op, 0)->type, last, each) : lp_op_in(b->op, 0)->type;
  gpu_element_begin(e, b, x);
  const char *from = gpu_element_pointer(e, gpu_ref_in(b, 0, GPU_FORM_F32), LP_F32, false);
  const char *cache = gpu_element_pointer(e, gpu_ref_state(b, lp_op_i64(b->op, "state", 0)), store, true);
  int32_t head = heads_first(b->op) ? 1 : 2, row = 3 - head;
  const char *width = gpu_element_size(e, x.dim[3]), *heads = gpu_element_size(e, x.dim[head]);
  bool once = lp_op_bool(b->op, "once", false);
  const char *past = gpu_element_size(e, once ? lp_dim_const(m, 0) : lp_dim_symbol(m, "p")),
             *capacity = gpu_element_size(e, lp_cache_rows(m, b->op));
  const char *c[] = {gpu_element_coordinate(e, 0), gpu_element_coordinate(e, head), gpu_element_coordinate(e, row),
                     gpu_element_coordinate(e, 3)};
  const char *row_text =
      gpu_format(b->list, "((%s * %s + %s) * %s + %s + %s)", c[0], heads, c[1], capacity, past, c[2]);
  if (!coded) gpu_element_line(e, "const long to = %s * %s + %s;", row_text, width, c[3]);
  if (coded) {
    gpu_element_line(e, "float part[32];");
    gpu_element_line(e, "for (int j = 0; j < 32; j += 8)");
    gpu_element_line(e, "  load_f32(8, %s, 0, i * 32 + j, part + j);", from);
    gpu_element_line(e, "store_%s(%s + %s * %" PRId64 ", %s, part);", row_store(b->list, store, last), cache, row_text,
                     lp_cache_row(store, last), c[3]);
  } else if (vectors) {
    gpu_element_line(e, "float part[8];");
    gpu_element_line(e, "load_f32(8, %s, 0, i * 8, part);", from);
    gpu_element_line(e, "store8_%s(%s, to * 8, part);", gpu_store_name(store), cache);
  } else {
    gpu_element_store(e, cache, store, "to", gpu_format(b->list, "%s[i]", from));
  }
}

/* The operators of a group do not depend on each other, so any rotations, and any appends, can be in one launch. */
static bool any_joins(const gpu_group *group) {
  (void)group;
  return true;
}

static void lower_kv_append(gpu_builder *b) {
  gpu_elements_make(b, write_kv_append, "kv_append");
}

/* ---- rotary positions -------------------------------------------------------------------------------------------- */

static bool rotary_runs(const lp_op *op, char why[64]) {
  if (lp_op_in(op, 0)->type.rank != 4) return snprintf(why, 64, "an operand that is not of four axes"), false;
  return lp_op_all_f32(op, why);
}

/* Writes the pair of an element, and of the element its new value. */
static void rotate_element(gpu_element *e, const char *const x[3], const char *y, const char *row, int64_t rotary) {
  const int64_t half = rotary / 2;
  gpu_element_line(e, "const long place = %s;", gpu_element_coordinate(e, 3));
  gpu_element_line(e, "float value = %s[i];", x[0]);
  gpu_element_line(e, "if (place < %" PRId64 ") {", rotary);
  if (lp_op_bool(e->b->op, "interleaved", false))
    gpu_element_line(e, "  const long pair = place / 2, second = place %% 2, first = i - second, other = first + 1;");
  else
    gpu_element_line(e,
                     "  const long pair = place %% %" PRId64 ", second = place / %" PRId64
                     ", first = i - second * %" PRId64 ", other = first + %" PRId64 ";",
                     half, half, half, half);
  gpu_element_line(e, "  const long angle = (%s) * %" PRId64 " + pair;", row, half);
  gpu_element_line(e, "  const float c = %s[angle], s = %s[angle];", x[1], x[2]);
  gpu_element_line(e, "  value = second ? %s[first] * s + %s[other] * c : %s[first] * c - %s[other] * s;", x[0], x[0],
                   x[0], x[0]);
  gpu_element_line(e, "}");
  gpu_element_store(e, y, LP_F32, "i", "value");
}

/* The same for eight neighbours in each half of a head. */
static void rotate_vectors(gpu_element *e, const char *const x[3], const char *y, const char *row, int64_t half) {
  gpu_element_line(e, "const long place = %s * 8, first = i * 16 - place, other = first + %" PRId64 ";",
                   gpu_element_coordinate(e, 3), half);
  gpu_element_line(e, "const long angle = (%s) * %" PRId64 " + place;", row, half);
  gpu_element_line(e, "float a[8], b[8], c[8], s[8], turned[8];");
  gpu_element_line(e, "load_f32(8, %s, 0, first, a);", x[0]);
  gpu_element_line(e, "load_f32(8, %s, 0, other, b);", x[0]);
  gpu_element_line(e, "load_f32(8, %s, 0, angle, c);", x[1]);
  gpu_element_line(e, "load_f32(8, %s, 0, angle, s);", x[2]);
  gpu_element_line(e, "for (int j = 0; j < 8; j++)");
  gpu_element_line(e, "  turned[j] = a[j] * c[j] - b[j] * s[j];");
  gpu_element_line(e, "store8_f32(%s, first, turned);", y);
  gpu_element_line(e, "for (int j = 0; j < 8; j++)");
  gpu_element_line(e, "  turned[j] = a[j] * s[j] + b[j] * c[j];");
  gpu_element_line(e, "store8_f32(%s, other, turned);", y);
}

static void write_rotary(gpu_element *e, gpu_builder *b) {
  const lp_type type = lp_op_in(b->op, 0)->type, table = lp_op_in(b->op, 1)->type;
  int64_t rotary = lp_op_i64(b->op, "rotary_dim", 0), one, last = 0;
  bool shared = lp_poly_is_const(table.dim[0], &one) && one == 1;
  bool vectors = !lp_op_bool(b->op, "interleaved", false) && lp_type_static_dim(type, 3, &last) && last == rotary &&
                 rotary % (2 * EIGHT) == 0;
  const lp_type x = vectors ? in_vectors(b->list->module, type, rotary / 2, EIGHT) : type;
  gpu_element_begin(e, b, x);
  const char *in[3];
  for (int32_t i = 0; i < 3; i++)
    in[i] = gpu_element_pointer(e, gpu_ref_in(b, i, GPU_FORM_F32), LP_F32, false);
  const char *y = gpu_element_pointer(e, gpu_ref_out(b, 0), LP_F32, true);
  int32_t row = heads_first(b->op) ? 2 : 1;
  const char *rows = gpu_element_size(e, x.dim[row]), *batch = shared ? "0" : gpu_element_coordinate(e, 0);
  const char *place = gpu_format(b->list, "%s * %s + %s", batch, rows, gpu_element_coordinate(e, row));
  if (vectors)
    rotate_vectors(e, in, y, place, rotary / 2);
  else
    rotate_element(e, in, y, place, rotary);
}

static void lower_rotary(gpu_builder *b) {
  gpu_elements_make(b, write_rotary, "rotary");
}

const gpu_rule gpu_rule_attention = {LP_OP_ATTENTION, attention_runs, lower_attention, NULL};
const gpu_rule gpu_rule_kv_append = {LP_OP_KV_APPEND, append_runs, lower_kv_append, any_joins};
const gpu_rule gpu_rule_rotary = {LP_OP_ROTARY, rotary_runs, lower_rotary, any_joins};
