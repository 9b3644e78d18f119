/* Recognises causal and sliding-window masks by evaluating them at several sizes. A mask that depends on sizes alone
 * either equals "key j may be seen by query i of the last s" everywhere, or it stays an operand. */
#include "passes/recognise_internal.h"

#include <string.h>

/* b, s, p of a bound model: one row, several rows, with and without past, odd and even. */
static const int64_t sizes[][3] = {{1, 1, 0}, {1, 1, 5},  {2, 3, 0},  {2, 3, 4},
                                   {1, 7, 2}, {1, 2, 29}, {1, 1, 61}, {1, 64, 0}};

typedef struct {
  bool all, causal; /* still possible */
  int64_t window;   /* 0: none seen so far */
  int64_t longest;  /* most keys that a row sees from the very first on */
} mask_kind;

typedef struct {
  const lp_value *mask;
  const lp_op *attention; /* where it was learnt */
  mask_kind kind;
  bool good;
} learnt_mask;

static bool may_attend(const lp_array *mask, int64_t index) {
  lp_tensor tensor = {.type = {mask->dtype, 0, NULL}, .data = mask->data};
  if (mask->dtype == LP_BOOL) return lp_tensor_i64(&tensor, index) != 0;
  return lp_tensor_f64(&tensor, index) > -1e4;
}

/* 0 exactly where it may attend: another additive bias is not a mask. */
static bool is_neutral(const lp_array *mask, int64_t index) {
  lp_tensor tensor = {.type = {mask->dtype, 0, NULL}, .data = mask->data};
  return mask->dtype == LP_BOOL || !may_attend(mask, index) || lp_tensor_f64(&tensor, index) == 0;
}

/* Folds one row's first visible key into what the mask can still be. */
static bool learn_row(const lp_array *mask, int64_t row, int64_t keys, int64_t position, mask_kind *kind) {
  int64_t first = keys, last = -1, count = 0;
  for (int64_t j = 0; j < keys; j++) {
    if (!is_neutral(mask, row * keys + j)) return false;
    if (!may_attend(mask, row * keys + j)) continue;
    if (first == keys) first = j;
    last = j;
    count++;
  }
  if (count == 0 || count != last - first + 1) return false;
  kind->all &= first == 0 && last == keys - 1;
  kind->causal &= last == position;
  if (first > 0) {
    int64_t window = position - first + 1;
    if (kind->window > 0 && kind->window != window) return false;
    kind->window = window;
  } else if (position + 1 > kind->longest) {
    kind->longest = position + 1;
  }
  return true;
}

static bool learn(const lp_array *mask, int64_t s, int64_t total, mask_kind *kind) {
  int64_t keys = mask->rank > 0 ? mask->dim[mask->rank - 1] : 0,
          queries = mask->rank > 1 ? mask->dim[mask->rank - 2] : 1;
  int64_t rows = 1;
  for (int32_t i = 0; i + 1 < mask->rank; i++)
    rows *= mask->dim[i];
  if (keys != total || (queries != s && queries != 1)) return false;
  for (int64_t row = 0; row < rows; row++) {
    bool one_row_for_all = queries == 1 && s > 1;
    if (!learn_row(mask, row, keys, one_row_for_all ? total - 1 : total - s + row % queries, kind)) return false;
    if (one_row_for_all) kind->causal = false;
  }
  return true;
}

/* Keys in all, past ones included. */
static int64_t key_count(const lp_op *attention, const int64_t *sym, size_t count) {
  lp_type k = lp_op_in(attention, 1)->type;
  const lp_value *past = lp_op_in(attention, 4);
  int64_t fresh = lp_poly_eval(k.dim[k.rank - 2], sym, count);
  return past ? fresh + lp_poly_eval(past->type.dim[2], sym, count) : fresh;
}

/* Learns what the mask is at every size; `good` when it could be evaluated and is no other bias. */
static void evaluate_all(lp_module *module, lp_op *attention, mask_kind *kind, lp_arena *arena, bool *good) {
  lp_value *mask = lp_op_in(attention, 3);
  int64_t *sym = LP_NEW_ARRAY(arena, int64_t, module->symbols.names.count);
  lp_type q = lp_op_in(attention, 0)->type;
  size_t count = module->symbols.names.count;
  *good = true;
  for (size_t i = 0; i < LP_COUNT(sizes) && *good; i++) {
    for (size_t n = 0; n < count; n++)
      sym[n] = 1 + (int64_t)((7 * i + 5 * n) % 9); /* other symbols vary too */
    memcpy(sym, sizes[i], sizeof sizes[i]);
    lp_array out;
    *good = lp_value_eval(module, mask, NULL, 0, sym, arena, &out, NULL) == LP_OK;
    int64_t s = lp_poly_eval(q.dim[q.rank - 2], sym, count), total = key_count(attention, sym, count);
    *good = *good && learn(&out, s, total, kind);
  }
}

static bool same_shape(const lp_op *a, const lp_op *b, int32_t operand) {
  const lp_value *x = lp_op_in(a, operand), *y = lp_op_in(b, operand);
  return x && y ? lp_type_equal(x->type, y->type) : x == y;
}

/* Layers share a mask, as a rule: what the layer before learnt holds for the same mask over equal shapes. */
static bool learnt_before(const learnt_mask *last, const lp_op *attention) {
  return last->mask == lp_op_in(attention, 3) && same_shape(last->attention, attention, 0) &&
         same_shape(last->attention, attention, 1) && same_shape(last->attention, attention, 4);
}

static void raise_mask(lp_module *module, lp_op *attention, learnt_mask *last, lp_arena *arena) {
  lp_value *mask = lp_op_in(attention, 3);
  if (!mask) return;
  if (!learnt_before(last, attention)) {
    *last = (learnt_mask){mask, attention, {.all = true, .causal = true}, lp_match_input_free(mask)};
    if (last->good) evaluate_all(module, attention, &last->kind, arena, &last->good);
  }
  mask_kind kind = last->kind;
  bool windowed = kind.window > 0;
  if (!last->good || (!kind.all && !kind.causal) || (windowed && (!kind.causal || kind.longest > kind.window))) return;
  lp_op_set_in(attention, 3, NULL);
  if (kind.causal && !kind.all) lp_op_set_i64(module, attention, "is_causal", 1);
  if (kind.causal && !kind.all) lp_op_set_i64(module, attention, "bottom_right", 1);
  if (windowed) lp_op_set_i64(module, attention, "window", kind.window);
}

lp_status lp_recognise_masks(lp_module *module, lp_block *block, lp_diag *diag) {
  (void)diag;
  lp_arena *arena = lp_arena_create();
  learnt_mask last = {0};
  LP_FOR_OPS(op, block) {
    if (op->kind == LP_ONNX_Attention) raise_mask(module, op, &last, arena);
    lp_arena_reset(arena);
  }
  lp_arena_free(arena);
  return LP_OK;
}
