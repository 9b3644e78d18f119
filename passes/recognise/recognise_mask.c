/* Recognises masks by evaluating them at several sizes. A mask that depends on sizes only may equal "key j is visible
 * to query i of the last s", in full or within a window, at every size; then it is removed. A mask that also adds to
 * visible scores is ALiBi when the addition falls evenly with the distance; otherwise it is a bias of two positions.
 * The attention is causal in both cases. */
#include "base/poly.h"
#include "passes/recognise/recognise.h"

#include <math.h>

/* Values of b, s, p of a bound model: one row, several rows, with and without a past, odd and even. Biases are
 * compared with those at the first sizes that can be evaluated. A mask may be cut from a table that is shorter than
 * the longest. */
static const int64_t sizes[][3] = {{1, 64, 0}, {1, 1, 61}, {1, 2, 29}, {1, 7, 2},
                                   {2, 3, 4},  {2, 3, 0},  {1, 1, 5},  {1, 1, 0}};
enum { LEAST_SIZES = 3, SINKS = 7 /* an operand of Attention */ };

typedef struct {
  bool all, causal; /* these forms are still possible */
  bool biased;      /* adds to visible scores */
  bool even;        /* the addition falls evenly with the distance, [heads] slopes */
  bool steady;      /* the addition depends on positions only, plus an amount per row */
  bool sinks;       /* sinks take part in the softmax, so that an amount per row counts */
  int64_t window;   /* 0: none found so far */
  int64_t longest;  /* the most keys that a row sees beginning with the first */
  int64_t heads;
  double *slope;
  bool *sloped;           /* [heads] the slope is known */
  lp_array first;         /* the first sizes that could be evaluated */
  int64_t evaluated;      /* number of sizes at which it was evaluated */
  bool good;              /* it has a value at some sizes */
  const lp_value *mask;   /* the mask from which this kind was learnt */
  const lp_op *attention; /* and its attention */
} mask_kind;

double lp_match_mask_element(const lp_array *mask, int64_t index) {
  lp_tensor tensor = {.type = {mask->dtype, 0, NULL}, .data = mask->data};
  if (mask->dtype == LP_BOOL) return lp_tensor_i64(&tensor, index) != 0 ? 0 : -INFINITY;
  return lp_tensor_f64(&tensor, index);
}

static bool may_attend(double value) {
  return value > -1e4;
}

static bool close_to(double a, double b) {
  return fabs(a - b) <= 1e-4 * (1 + fabs(a) + fabs(b));
}

/* ---- one row ----------------------------------------------------------------------------------------------------- */

typedef struct {
  int64_t at; /* index of its first element */
  int64_t keys, head, position;
  int64_t first, last; /* visible keys */
} mask_row;

/* The amount by which a bias falls per position of distance. */
static void learn_slope(const lp_array *mask, const mask_row *row, mask_kind *kind) {
  double own = lp_match_mask_element(mask, row->at + row->last);
  int64_t far = row->last - row->first;
  if (far < 1) return;
  double slope = (own - lp_match_mask_element(mask, row->at + row->first)) / (double)far;
  if (!kind->sloped[row->head]) kind->slope[row->head] = slope;
  kind->sloped[row->head] = true;
  for (int64_t j = row->first; j <= row->last && kind->even; j++)
    kind->even =
        close_to(lp_match_mask_element(mask, row->at + j), own + kind->slope[row->head] * (double)(j - row->last));
}

/* Compares a row with the row of the same query position at the first sizes. Only a causal mask needs it; other masks
 * may see keys that there are none of at the first sizes. */
static void compare_row(const lp_array *mask, const mask_row *row, mask_kind *kind) {
  const lp_array *first = &kind->first;
  int64_t keys = first->dim[first->rank - 1], rows = first->rank > 1 ? first->dim[first->rank - 2] : 1;
  if (row->last != row->position || rows == 1 || row->position >= rows || row->position >= keys) return;
  int64_t at = (row->head * rows + row->position) * keys;
  double shift = lp_match_mask_element(first, at + row->last) - lp_match_mask_element(mask, row->at + row->last);
  kind->steady &= !kind->sinks || close_to(shift, 0);
  for (int64_t j = row->first; j <= row->last && kind->steady; j++)
    kind->steady = close_to(lp_match_mask_element(first, at + j), lp_match_mask_element(mask, row->at + j) + shift);
}

static bool learn_row(const lp_array *mask, mask_row *row, mask_kind *kind) {
  int64_t count = 0;
  row->first = row->keys;
  for (int64_t j = 0; j < row->keys; j++) {
    double value = lp_match_mask_element(mask, row->at + j);
    if (!may_attend(value)) continue;
    kind->biased |= value != 0;
    if (row->first == row->keys) row->first = j;
    row->last = j;
    count++;
  }
  if (count == 0 || count != row->last - row->first + 1) return false;
  kind->all &= row->first == 0 && row->last == row->keys - 1;
  kind->causal &= row->last == row->position;
  learn_slope(mask, row, kind);
  compare_row(mask, row, kind);
  if (row->first > 0) {
    int64_t window = row->position - row->first + 1;
    if (kind->window > 0 && kind->window != window) return false;
    kind->window = window;
  } else if (row->position + 1 > kind->longest) {
    kind->longest = row->position + 1;
  }
  return true;
}

/* ---- one size ---------------------------------------------------------------------------------------------------- */

static int64_t dim_from_end(const lp_array *mask, int32_t axis) {
  return mask->rank >= axis ? mask->dim[mask->rank - axis] : 1;
}

/* Each head has rows of its own. Rows of several sequences must be equal, so the first sequence stands for all. */
static bool learn(const lp_array *mask, int64_t s, int64_t total, mask_kind *kind) {
  int64_t queries = dim_from_end(mask, 2), heads = dim_from_end(mask, 3), batch = dim_from_end(mask, 4);
  bool one_row_for_all = queries == 1 && s > 1;
  if (heads > kind->heads) return false;
  for (int64_t r = 0; r < batch * heads * queries; r++) {
    mask_row row = {.at = r * total, .keys = total, .head = r / queries % heads};
    row.position = one_row_for_all ? total - 1 : total - s + r % queries;
    if (!learn_row(mask, &row, kind)) return false;
  }
  if (one_row_for_all) kind->causal = false;
  return true;
}

/* ---- all sizes --------------------------------------------------------------------------------------------------- */

/* The number of keys, past ones included. */
static int64_t key_count(const lp_op *attention, const int64_t *sym, size_t count) {
  lp_type k = lp_op_in(attention, 1)->type;
  const lp_value *past = lp_op_in(attention, 4);
  int64_t fresh = lp_poly_eval(k.dim[k.rank - 2], sym, count);
  return past ? fresh + lp_poly_eval(past->type.dim[2], sym, count) : fresh;
}

/* Learns the mask at one set of sizes; sizes at which it has no value do not occur in the model. */
static void learn_size(lp_module *module, const lp_op *attention, const int64_t *sym, mask_kind *kind,
                       lp_arena *arena) {
  lp_type q = lp_op_in(attention, 0)->type;
  size_t count = module->symbols.names.count;
  lp_array out;
  if (lp_value_eval(module, lp_op_in(attention, 3), NULL, 0, sym, arena, &out, NULL) != LP_OK) return;
  int64_t s = lp_poly_eval(q.dim[q.rank - 2], sym, count), total = key_count(attention, sym, count);
  if (dim_from_end(&out, 1) != total || (dim_from_end(&out, 2) != s && dim_from_end(&out, 2) != 1)) return;
  if (kind->evaluated++ == 0) kind->first = out;
  kind->good = learn(&out, s, total, kind);
}

static void learn_all(lp_module *module, lp_op *attention, mask_kind *kind, lp_arena *arena) {
  lp_value *mask = lp_op_in(attention, 3);
  size_t count = module->symbols.names.count;
  int64_t *sym = LP_NEW_ARRAY(arena, int64_t, count);
  *kind = (mask_kind){.mask = mask, .attention = attention, .all = true, .causal = true, .steady = true};
  kind->good = lp_match_input_free(mask);
  kind->sinks = lp_op_in(attention, SINKS) != NULL;
  kind->even = !kind->sinks; /* `falling` adds an amount to each row */
  lp_type type = mask->type;
  if (type.rank < 3 || !lp_type_static_dim(type, type.rank - 3, &kind->heads)) kind->heads = 1;
  kind->slope = LP_NEW_ARRAY(arena, double, kind->heads);
  kind->sloped = LP_NEW_ARRAY(arena, bool, kind->heads);
  for (size_t i = 0; i < LP_COUNT(sizes) && kind->good; i++) {
    for (size_t n = 0; n < count; n++)
      sym[n] = 1 + (int64_t)((7 * i + 5 * n) % 9); /* other symbols vary too */
    memcpy(sym, sizes[i], sizeof sizes[i]);
    learn_size(module, attention, sym, kind, arena);
  }
  kind->good &= kind->evaluated >= LEAST_SIZES;
  if (kind->window > 0) kind->good &= kind->causal && kind->longest <= kind->window;
}

/* ---- replacing --------------------------------------------------------------------------------------------------- */

/* slope[h] * (j - (total - 1)) over all keys j: [heads, 1, total]. An amount that a row adds to all its keys changes
 * nothing, because there are no sinks. */
static lp_value *falling(lp_build *b, const lp_op *attention, const mask_kind *kind) {
  const lp_value *past = lp_op_in(attention, 4);
  lp_type k = lp_op_in(attention, 1)->type;
  const lp_poly *total = k.dim[k.rank - 2];
  if (past) total = lp_poly_add(b->module->arena, past->type.dim[2], total);
  const lp_poly *ends[] = {lp_poly_sub(b->module->arena, lp_dim_const(b->module, 1), total),
                           lp_dim_const(b->module, 1)};
  lp_value *range[3];
  for (int32_t i = 0; i < 3; i++)
    range[i] = lp_build_size(b, ends[i > 0]);
  lp_op *distance = lp_build_onnx(b, LP_ONNX_Range, 3, range, 1);
  float *slopes = LP_NEW_ARRAY(b->module->arena, float, kind->heads);
  for (int64_t h = 0; h < kind->heads; h++)
    slopes[h] = (float)kind->slope[h];
  int64_t dim[] = {kind->heads, 1, 1};
  lp_value *in[] = {lp_build_constant(b, LP_F32, 3, dim, slopes),
                    distance ? lp_build_cast(b, distance->out[0], LP_F32) : NULL};
  lp_op *bias = in[1] ? lp_build_onnx(b, LP_ONNX_Mul, 2, in, 1) : NULL;
  return bias ? bias->out[0] : NULL;
}

static void set_causal(lp_module *module, lp_op *attention, const mask_kind *kind) {
  lp_op_set_i64(module, attention, "is_causal", 1);
  lp_op_set_i64(module, attention, "bottom_right", 1);
  if (kind->window > 0) lp_op_set_i64(module, attention, "window", kind->window);
}

static void raise_mask(lp_module *module, lp_op *attention, const mask_kind *kind, lp_diag *diag) {
  if (!kind->good || (!kind->all && !kind->causal)) return;
  if (!kind->biased) {
    lp_op_set_in(attention, 3, NULL);
    if (kind->causal && !kind->all) set_causal(module, attention, kind);
    return;
  }
  if (!kind->causal || kind->all) return;
  lp_build b = lp_build_at(module, attention, diag);
  lp_value *bias = kind->even ? falling(&b, attention, kind) : NULL;
  if (bias) lp_op_set_in(attention, 3, bias);
  if (bias || kind->steady) set_causal(module, attention, kind);
}

static bool same_shape(const lp_op *a, const lp_op *b, int32_t operand) {
  const lp_value *x = lp_op_in(a, operand), *y = lp_op_in(b, operand);
  return x && y ? lp_type_equal(x->type, y->type) : x == y;
}

/* Layers usually share masks: the result for a mask is reused at equal shapes. */
static bool holds(const mask_kind *kind, const lp_op *attention) {
  return kind->mask == lp_op_in(attention, 3) && kind->sinks == (lp_op_in(attention, SINKS) != NULL) &&
         same_shape(kind->attention, attention, 0) && same_shape(kind->attention, attention, 1) &&
         same_shape(kind->attention, attention, 4);
}

lp_status lp_recognise_masks(lp_module *module, lp_block *block, lp_diag *diag) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  mask_kind kind = {0};
  LP_FOR_OPS(op, block) {
    if (op->kind != LP_ONNX_Attention || !lp_op_in(op, 3)) continue;
    if (!holds(&kind, op)) {
      lp_arena_reset(arena);
      learn_all(module, op, &kind, arena);
    }
    raise_mask(module, op, &kind, diag);
  }
  return LP_OK;
}
