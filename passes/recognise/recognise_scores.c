/* Reduces the operators between q.k^T and its softmax to the parameters of Attention: a scale, a soft cap, one mask.
 * Algebra follows scales, tanh, sums and selections. Other operators (masks that multiply, lower bounds) are evaluated:
 * they are accepted when each score is scaled and shifted by an amount that does not depend on any score, or is masked
 * whatever its value is. */
#include "base/poly.h"
#include "passes/recognise/recognise.h"

#include <math.h>

enum { MAX_STEPS = 16 };
#define MOST_HIDDEN (-1e3)    /* of what a mask adds to a hidden score */
#define MOST_ABSORBED (-1e30) /* a sum of this and a score is the same number again, in f32 as in f64 */

/* One operator on the path, and the operand that carries the scores. */
typedef struct {
  lp_op *op;
  int32_t operand;
} step;

typedef struct {
  step step[MAX_STEPS]; /* from the softmax down to the product */
  int32_t count;
  lp_op *product;
  lp_value *end;   /* the softmax's operand */
  int32_t masks;   /* steps that shift or mask */
  int32_t deepest; /* the index of the mask step nearest to the product */
  bool unproven;   /* algebra does not suffice */
} chain;

/* ---- the path from softmax to product ---------------------------------------------------------------------------- */

/* The operands of an operator that scores may pass: [0, end). */
static int32_t passable_operands(const lp_op *op) {
  switch (op->kind) {
  case LP_ONNX_Add:
  case LP_ONNX_Mul:
  case LP_ONNX_Max:
    return op->in_count == 2 ? 2 : 0;
  case LP_ONNX_Where:
    return 3;
  case LP_ONNX_Sub:
  case LP_ONNX_Div:
  case LP_ONNX_Tanh:
  case LP_ONNX_Clip:
    return 1;
  default:
    return lp_op_has(op, LP_ALIAS) ? 1 : 0;
  }
}

static bool is_product(const lp_op *op) {
  return op->kind == LP_ONNX_MatMul && !lp_value_is_constant(lp_op_in(op, 0)) && !lp_value_is_constant(lp_op_in(op, 1));
}

static bool leads_to_product(lp_value *value, int depth) {
  value = lp_match_peel(value);
  if (!value || !value->def || depth > MAX_STEPS || value->known || !lp_dtype_is_float(value->type.dtype)) return false;
  if (is_product(value->def)) return true;
  for (int32_t i = 0; i < passable_operands(value->def); i++)
    if (leads_to_product(lp_op_in(value->def, i), depth + 1)) return true;
  return false;
}

static bool find_chain(lp_value *scores, chain *c) {
  *c = (chain){.end = scores, .deepest = -1};
  for (lp_value *value = lp_match_peel(scores); value && value->def; c->count++) {
    lp_op *op = value->def;
    if (is_product(op)) {
      c->product = op;
      return true;
    }
    int32_t operands = passable_operands(op), found = -1;
    for (int32_t i = 0; i < operands && found < 0; i++)
      if (leads_to_product(lp_op_in(op, i), 0)) found = i;
    if (found < 0 || c->count == MAX_STEPS) return false;
    c->step[c->count] = (step){op, found};
    value = lp_match_peel(lp_op_in(op, found));
  }
  return false;
}

/* ---- scale and cap of the steps ---------------------------------------------------------------------------------- */

static bool is_very_negative(const lp_value *value) {
  double number;
  return lp_scalar_constant(value, &number) && number <= -1e4;
}

/* The factor of a step that multiplies by a number. */
static bool factor_of(const step *s, double *factor) {
  lp_value *other = lp_match_peel(lp_op_in(s->op, 1 - s->operand));
  if (!lp_scalar_constant(other, factor) || *factor == 0) return false;
  if (s->op->kind == LP_ONNX_Div) *factor = 1 / *factor;
  return true;
}

static void add_mask(chain *c, int32_t at) {
  c->masks++;
  if (c->deepest < 0) c->deepest = at;
}

/* Folds a step into scale and cap; false when Attention cannot do that. */
static bool learn_step(chain *c, int32_t at, lp_scores *out) {
  const step *s = &c->step[at];
  double factor;
  switch (s->op->kind) {
  case LP_ONNX_Mul:
  case LP_ONNX_Div:
    if (factor_of(s, &factor)) {
      out->scale *= factor;
      out->softcap *= factor;
      return true;
    }
    c->unproven = true;
    add_mask(c, at);
    return s->op->kind == LP_ONNX_Mul;
  case LP_ONNX_Tanh:
    if (c->masks || out->softcap != 0) return false;
    out->softcap = 1;
    return true;
  case LP_ONNX_Where:
    add_mask(c, at);
    return is_very_negative(lp_match_peel(lp_op_in(s->op, 3 - s->operand))); /* no float is the condition */
  case LP_ONNX_Add:
  case LP_ONNX_Sub:
    add_mask(c, at);
    return true;
  case LP_ONNX_Max:
  case LP_ONNX_Clip:
    c->unproven = true;
    add_mask(c, at);
    return true;
  default:
    return lp_op_has(s->op, LP_ALIAS);
  }
}

/* ---- the mask ---------------------------------------------------------------------------------------------------- */

/* Values of b, s and p at which masks are computed. */
static const int64_t proof_sizes[][3] = {{1, 1, 2}, {2, 3, 0}, {1, 2, 4}};

/* The symbols at proof_sizes[size]. */
static const int64_t *symbols_at(const lp_module *module, size_t size, lp_arena *arena) {
  const size_t count = module->symbols.names.count;
  int64_t *sym = LP_NEW_ARRAY(arena, int64_t, count);
  for (size_t n = 0; n < count; n++)
    sym[n] = 2;
  memcpy(sym, proof_sizes[size], sizeof proof_sizes[size]);
  return sym;
}

/* Zeros in place of the scores: all of them where steps read their shape, one otherwise. */
static lp_value *zeros(lp_build *b, lp_type type, bool all) {
  lp_value *zero = lp_build_float(b, type.dtype, 0);
  if (!all) return zero;
  lp_value *in[] = {zero, lp_build_sizes(b, type)};
  lp_op *op = lp_build_onnx(b, LP_ONNX_Expand, 2, in, 1);
  return op ? op->out[0] : NULL;
}

/* A selection that gives hidden keys a number to which adding a score changes nothing. */
static lp_value *absorbing(lp_build *b, const step *where, lp_value *shown) {
  lp_value *in[] = {lp_op_in(where->op, 0), NULL, NULL};
  in[where->operand] = lp_build_cast(b, shown, LP_F32);
  in[3 - where->operand] = lp_build_float(b, LP_F32, MOST_ABSORBED);
  return lp_build_value(b, LP_ONNX_Where, 3, in);
}

/* The step's operator on another value than the scores. */
static lp_value *repeated(lp_build *b, const step *s, lp_value *value) {
  lp_op *copy = lp_op_clone(b->module, s->op, NULL, NULL);
  lp_op_set_in(copy, s->operand, value);
  return lp_build_place(b, copy) == LP_OK ? copy->out[0] : NULL;
}

/* Computes the mask to add: the value of the steps from the first mask on when all scores are zero. The selection at
 * step `absorbs` hides by an absorbing number; -1: none does. */
static lp_value *mask_of_zeros(lp_build *b, const chain *c, int32_t absorbs) {
  bool all = c->unproven;
  for (int32_t i = 0; i <= c->deepest; i++)
    all |= lp_op_has(c->step[i].op, LP_ALIAS);
  lp_value *value = NULL;
  for (int32_t i = c->deepest; i >= 0; i--) {
    const step *s = &c->step[i];
    lp_type type = lp_op_in(s->op, s->operand)->type;
    value = !value ? zeros(b, type, all) : i < absorbs ? value : lp_build_cast(b, value, type.dtype);
    if (!value) return NULL;
    value = i == absorbs ? absorbing(b, s, value) : repeated(b, s, value);
    if (!value) return NULL;
  }
  return value;
}

/* The last step but views, if it is a selection that gives all hidden keys the same number, whatever their scores are:
 * in a row that sees no key all keys then weigh the same. -1 for another step, or if the sum of that number and a
 * score is the number again. */
static int32_t last_selection(const chain *c) {
  int32_t at = 0;
  double number;
  while (at < c->deepest && lp_op_has(c->step[at].op, LP_ALIAS))
    at++;
  const step *s = &c->step[at];
  bool selects =
      s->op->kind == LP_ONNX_Where && lp_scalar_constant(lp_match_peel(lp_op_in(s->op, 3 - s->operand)), &number);
  return selects && number > MOST_ABSORBED ? at : -1;
}

/* Tells whether a mask that follows from the sizes leaves each row a key, as far as it can be computed. */
static bool rows_see_keys(lp_module *module, lp_value *mask) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  bool all = lp_match_input_free(mask);
  for (size_t i = 0; i < LP_COUNT(proof_sizes) && all; i++) {
    lp_array array;
    all = lp_value_eval(module, mask, NULL, 0, symbols_at(module, i, arena), arena, &array, NULL) == LP_OK;
    if (!all) break;
    const int64_t count = lp_array_numel(&array), keys = array.rank > 0 ? array.dim[array.rank - 1] : 1;
    bool sees = false;
    for (int64_t k = 0; k < count && all; k++) {
      sees |= lp_match_mask_element(&array, k) > MOST_HIDDEN;
      if ((k + 1) % keys > 0) continue;
      all = sees;
      sees = false;
    }
  }
  return all;
}

/* A mask that only the last step applies is kept as it is: an operand to add, or a selection of visible keys that
 * leaves no row without any. */
static bool plain_mask(lp_build *b, const chain *c, lp_value **mask) {
  const step *last = &c->step[0];
  if (c->masks != 1 || c->unproven || c->deepest != 0) return false;
  if (last->op->kind == LP_ONNX_Add) {
    *mask = lp_op_in(last->op, 1 - last->operand);
    return true;
  }
  if (last->op->kind != LP_ONNX_Where) return false;
  *mask = lp_op_in(last->op, 0);
  if (!lp_match_input_free(*mask)) return false;
  if (last->operand != 1) {
    lp_op *allowed = lp_build_onnx(b, LP_ONNX_Not, 1, mask, 1);
    *mask = allowed ? allowed->out[0] : NULL;
  }
  return !*mask || rows_see_keys(b->module, *mask);
}

/* ---- proof by evaluation ----------------------------------------------------------------------------------------- */

static double probe(int64_t i) {
  static const double numbers[] = {0, -3, 0.5, 7, -0.75, 2, -6};
  return numbers[i % (int64_t)LP_COUNT(numbers)];
}

static double scored(const lp_scores *found, double x) {
  double y = found->scale * x;
  return found->softcap != 0 ? found->softcap * tanh(y / found->softcap) : y;
}

/* Tells whether all scores of a row agree. A hidden key may have any very negative score, if the row sees another key;
 * where it sees none, all weigh by their scores. */
static bool row_agrees(const lp_tensor *scores, const lp_tensor *shifts, const lp_tensor *x, int64_t first,
                       int64_t keys, const lp_scores *found) {
  const double tolerance = x->type.dtype == LP_F32 ? 1e-4 : 4e-3; /* f16 has steps of 2^-11 */
  bool same = true, sees = false;
  for (int64_t i = first; i < first + keys; i++)
    sees |= lp_tensor_f64(shifts, i) > MOST_HIDDEN;
  for (int64_t i = first; i < first + keys && same; i++) {
    const double shift = lp_tensor_f64(shifts, i), score = lp_tensor_f64(scores, i);
    const double own = scored(found, lp_tensor_f64(x, i));
    const bool masked = sees && shift <= MOST_HIDDEN && score <= MOST_HIDDEN;
    same = masked || fabs(score - (own + shift)) <= tolerance * (1 + fabs(own));
  }
  return same;
}

static bool agree(const lp_array *scores, const lp_array *shifts, const lp_array *x, const lp_scores *found) {
  const lp_tensor y = {.type = {scores->dtype, 0, NULL}, .data = scores->data};
  const lp_tensor m = {.type = {shifts->dtype, 0, NULL}, .data = shifts->data};
  const lp_tensor p = {.type = {x->dtype, 0, NULL}, .data = x->data};
  const int64_t count = lp_array_numel(scores), keys = x->rank > 0 ? x->dim[x->rank - 1] : 1;
  bool same = count == lp_array_numel(shifts) && count == lp_array_numel(x);
  for (int64_t i = 0; i < count && same; i += keys)
    same = row_agrees(&y, &m, &p, i, keys, found);
  return same;
}

static bool agree_at(lp_module *module, const chain *c, const lp_scores *found, const int64_t *sym, lp_arena *arena) {
  lp_type type = c->product->out[0]->type;
  lp_array x = {.dtype = type.dtype, .rank = type.rank}, scores, shifts;
  if (type.dtype != LP_F32 && type.dtype != LP_F16) return false;
  for (int32_t i = 0; i < type.rank; i++)
    x.dim[i] = lp_poly_eval(type.dim[i], sym, module->symbols.names.count);
  int64_t count = lp_array_numel(&x);
  x.data = LP_NEW_ARRAY(arena, float, count);
  for (int64_t i = 0; i < count; i++)
    lp_array_set_f64(&x, i, probe(i));
  lp_binding binding = {c->product->out[0], x};
  return lp_value_eval(module, c->end, &binding, 1, sym, arena, &scores, NULL) == LP_OK &&
         lp_value_eval(module, found->mask, NULL, 0, sym, arena, &shifts, NULL) == LP_OK &&
         agree(&scores, &shifts, &x, found);
}

static bool proven(lp_module *module, const chain *c, const lp_scores *found) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  bool good = true;
  for (size_t i = 0; i < LP_COUNT(proof_sizes) && good; i++)
    good = agree_at(module, c, found, symbols_at(module, i, arena), arena);
  return good;
}

bool lp_match_scores(lp_build *b, lp_value *scores, lp_scores *out) {
  chain c;
  *out = (lp_scores){.scale = 1.0};
  if (!find_chain(scores, &c)) return false;
  out->product = c.product;
  for (int32_t i = c.count - 1; i >= 0; i--)
    if (!learn_step(&c, i, out)) return false;
  if (c.masks == 0) return true;
  if (plain_mask(b, &c, &out->mask)) return out->mask != NULL;
  const int32_t selection = last_selection(&c);
  out->mask = mask_of_zeros(b, &c, -1);
  if (out->mask && selection >= 0 && !rows_see_keys(b->module, out->mask)) out->mask = mask_of_zeros(b, &c, selection);
  return out->mask && (!c.unproven || proven(b->module, &c, out));
}
