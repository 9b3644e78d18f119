/* Recognises activations by their values: evaluates a small cone of elementwise operators over one value at sample
 * points and compares it with the named activations. No spelling of GELU needs its own pattern. */
#include "passes/recognise/recognise.h"

#include <math.h>

enum { MAX_CONE = 16, SAMPLES = 33 };

static double gelu(double x) {
  return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
}
static double gelu_tanh(double x) {
  return 0.5 * x * (1.0 + tanh(sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}
static double silu(double x) {
  return x / (1.0 + exp(-x));
}
static double quick_gelu(double x) {
  return x / (1.0 + exp(-1.702 * x));
}

/* Values of 16 bits are too coarse to tell the two GELUs apart, so there the operator that the search began with must
 * be the one of the definition as well. */
static const struct {
  double (*f)(double);
  lp_kind defined_by;
  lp_kind kind;
  const char *approximate; /* of Gelu */
  double alpha;            /* of Swish */
} activations[] = {{gelu, LP_ONNX_Erf, LP_ONNX_Gelu, "none", 0},
                   {gelu_tanh, LP_ONNX_Tanh, LP_ONNX_Gelu, "tanh", 0},
                   {silu, LP_ONNX_Sigmoid, LP_ONNX_Swish, NULL, 1.0},
                   {quick_gelu, LP_ONNX_Sigmoid, LP_ONNX_Swish, NULL, 1.702}};

typedef struct {
  lp_op *op[MAX_CONE];
  int32_t count;
} cone;

static bool in_cone(const cone *c, const lp_op *op) {
  for (int32_t i = 0; i < c->count; i++)
    if (c->op[i] == op) return true;
  return false;
}

static bool used_inside(const cone *c, const lp_value *value) {
  for (const lp_use *use = value->uses; use; use = use->next)
    if (!in_cone(c, use->owner)) return false;
  return true;
}

static bool is_scalar(lp_value *value) {
  double number;
  return lp_scalar_constant(value, &number);
}

/* The values that enter the cone, without scalars; it distinguishes at most two. */
static int32_t cone_leaves(const cone *c, lp_value *leaf[MAX_CONE * 2]) {
  int32_t count = 0;
  for (int32_t i = 0; i < c->count; i++)
    for (int32_t k = 0; k < c->op[i]->in_count; k++) {
      lp_value *value = lp_op_in(c->op[i], k);
      bool seen = !value || is_scalar(value) || (value->def && in_cone(c, value->def));
      for (int32_t j = 0; j < count && !seen; j++)
        seen = leaf[j] == value;
      if (!seen) leaf[count++] = value;
    }
  return count;
}

static bool can_join(const cone *c, const lp_value *value) {
  return value->def && lp_op_has(value->def, LP_ELEMENTWISE) && value->def->out_count == 1 && used_inside(c, value) &&
         lp_dtype_is_float(value->type.dtype);
}

/* Grows the cone backwards until one value enters it. */
static lp_value *grow(cone *c) {
  lp_value *leaf[MAX_CONE * 2];
  for (;;) {
    int32_t count = cone_leaves(c, leaf), joined = -1;
    if (count == 1) return leaf[0];
    for (int32_t i = 0; i < count && joined < 0; i++)
      if (can_join(c, leaf[i])) joined = i;
    if (count == 0 || joined < 0 || c->count == MAX_CONE) return NULL;
    c->op[c->count++] = leaf[joined]->def;
  }
}

/* How far a value y of x may be from the activation's: in 16 bits by two steps of the numbers that take part, so that
 * what replaces the cone differs from it no more than it does from its own definition. Negative: such values are not
 * recognised. */
static double tolerance(lp_dtype dtype, double x, double y) {
  switch (dtype) {
  case LP_F32:
    return 2e-5 * (1.0 + fabs(y));
  case LP_F16:
    return ldexp(fabs(x) + fabs(y), -10);
  case LP_BF16:
    return ldexp(fabs(x) + fabs(y), -7);
  default:
    return -1;
  }
}

static int match_samples(const lp_op *seed, const lp_array *x, const lp_array *y) {
  const lp_tensor from = {.type = {x->dtype, 0, NULL}, .data = x->data},
                  to = {.type = {y->dtype, 0, NULL}, .data = y->data};
  for (size_t k = 0; k < LP_COUNT(activations); k++) {
    bool same = x->dtype == LP_F32 || seed->kind == activations[k].defined_by;
    for (int i = 0; i < SAMPLES && same; i++) {
      double at = lp_tensor_f64(&from, i), wanted = activations[k].f(at);
      same = fabs(lp_tensor_f64(&to, i) - wanted) <= tolerance(x->dtype, at, wanted);
    }
    if (same) return (int)k;
  }
  return -1;
}

/* Identifies the activation that `root` computes of `x`, found from `seed`; -1: none. The scratch arena holds the
 * samples. */
static int identify(lp_module *module, const lp_op *seed, lp_op *root, lp_value *x, lp_arena *arena) {
  lp_array out,
      in = {.dtype = x->type.dtype, .rank = 1, .dim = {SAMPLES}, .data = LP_NEW_ARRAY(arena, double, SAMPLES)};
  if (!lp_dtype_is_float(in.dtype)) return -1;
  for (int i = 0; i < SAMPLES; i++)
    lp_array_set_f64(&in, i, (double)(((float)i - 16.0f) * 0.37f));
  lp_binding binding = {x, in};
  int64_t *sym = LP_NEW_ARRAY(arena, int64_t, module->symbols.names.count);
  for (size_t i = 0; i < module->symbols.names.count; i++)
    sym[i] = 1;
  if (lp_value_eval(module, root->out[0], &binding, 1, sym, arena, &out, NULL) != LP_OK) return -1;
  if (out.dtype != in.dtype || out.rank != 1 || out.dim[0] != SAMPLES) return -1;
  return match_samples(seed, &in, &out);
}

static void replace(lp_module *module, lp_op *root, lp_value *x, int which) {
  lp_op *op = lp_op_create(module, activations[which].kind, root->loc, 1, &x, 1, &root->out[0]->type);
  if (activations[which].approximate)
    lp_op_set_str(module, op, "approximate", activations[which].approximate);
  else
    lp_op_set_f64(module, op, "alpha", activations[which].alpha);
  lp_op_insert_before(root, op);
  op->out[0]->name = root->out[0]->name;
  lp_value_replace(root->out[0], op->out[0]);
}

/* Follows the users of a sigmoid, tanh or erf until their value is a named activation. */
static void raise_from(lp_module *module, lp_op *seed, lp_arena *arena) {
  cone c = {{0}, 0};
  for (lp_op *root = seed; root && c.count < MAX_CONE;) {
    if (!lp_op_has(root, LP_ELEMENTWISE) || root->out_count != 1) return;
    c.op[c.count++] = root;
    cone attempt = c;
    lp_value *x = root == seed ? NULL : grow(&attempt);
    int which = x ? identify(module, seed, root, x, arena) : -1;
    if (which >= 0) {
      replace(module, root, x, which);
      return;
    }
    root = lp_value_has_one_use(root->out[0]) ? root->out[0]->uses->owner : NULL;
  }
}

lp_status lp_recognise_activations(lp_module *module, lp_block *block, lp_diag *diag) {
  (void)diag;
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  for (lp_op *op = block->first; op; op = op->next) {
    if (op->kind == LP_ONNX_Sigmoid || op->kind == LP_ONNX_Tanh || op->kind == LP_ONNX_Erf) {
      raise_from(module, op, arena);
      lp_arena_reset(arena);
    }
  }
  return LP_OK;
}
