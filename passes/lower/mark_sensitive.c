/* mark-sensitive: chooses the products that a side keeps in int8 where it stores weights in int4 (--quantise=search).
 * In decoders rounding hurts most in the values' projections, which all later positions read, and in the products that
 * end the MLPs of the first and the last layers, whose inputs have the largest elements. They are taken in this order
 * while the weights grow by no more than the budget. No weight is read, so a plan without weights is the same. */
#include "base/units.h"
#include "ir/ir.h"
#include "passes/passes.h"

enum { X, WEIGHT, GATE = 4, SCALE = 5, VALUES = 2, MOST_STEPS = 8 };
/* Bits of an element with its share of a scale of f16 for 32. */
static const double narrow_bits = 4.5, wide_bits = 8.5;

typedef struct {
  lp_op *op;
  int64_t elements;
  int64_t order; /* values: -1; others: the layers to the nearer end of the model */
} candidate;

typedef LP_VEC(candidate) candidates;

/* The elements of the product's weights that a side may quantise; 0: none. */
static int64_t weight_elements(const lp_op *op) {
  const lp_value *w = lp_op_is_weighted(op) && lp_op_attr(op, "layer") ? lp_op_in(op, WEIGHT) : NULL;
  int64_t count = 0;
  if (!w || (lp_op_in(op, SCALE) && w->type.dtype != LP_F8E4M3FN) || !lp_value_is_constant(w) ||
      !lp_dtype_is_float(w->type.dtype) || !lp_type_static_numel(w->type, &count))
    return 0;
  return lp_op_in(op, GATE) ? 2 * count : count;
}

/* The product that an attention's values come from, through operators that move them; NULL: another. */
static lp_op *find_values(const lp_op *attention) {
  const lp_value *at = lp_op_in(attention, VALUES);
  for (int step = 0; at && at->def && step < MOST_STEPS; step++) {
    if (at->def->kind == LP_OP_LINEAR) return at->def;
    at = at->def->in_count > 0 ? lp_op_in(at->def, X) : NULL;
  }
  return NULL;
}

/* The last product of the MLP that `op` belongs to reads what another one of it made. */
static bool ends_mlp(const lp_op *op) {
  if (!lp_op_is_weighted(op) || !lp_streq(lp_op_str(op, "layer_kind", NULL), "mlp")) return false;
  const lp_value *at = lp_op_in(op, X);
  for (int step = 0; at && at->def && step < MOST_STEPS; step++) {
    if (!lp_streq(lp_op_str(at->def, "layer_kind", NULL), "mlp")) return false;
    if (lp_op_is_weighted(at->def)) return true;
    at = at->def->in_count > 0 ? lp_op_in(at->def, X) : NULL;
  }
  return false;
}

static void add(candidates *all, lp_op *op, int64_t order) {
  int64_t elements = op ? weight_elements(op) : 0;
  for (size_t i = 0; i < all->count; i++)
    if (all->data[i].op == op) return;
  if (elements > 0) lp_vec_push(all, ((candidate){op, elements, order}));
}

/* By order; of equal ones the earlier in the model. */
static int by_order(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->order != y->order) return x->order < y->order ? -1 : 1;
  int64_t first = lp_op_i64(x->op, "layer", 0), second = lp_op_i64(y->op, "layer", 0);
  return (first > second) - (first < second);
}

static void mark(lp_module *module, lp_op *func, double budget) {
  LP_OWNED(lp_free_at) candidates all = {0};
  int64_t layers = 0;
  double total = 0;
  LP_FOR_OPS(op, func->region) {
    total += (double)weight_elements(op);
    if (lp_op_i64(op, "layer", -1) >= layers) layers = lp_op_i64(op, "layer", 0) + 1;
  }
  LP_FOR_OPS(op, func->region) {
    int64_t layer = lp_op_i64(op, "layer", 0), last = layers - 1 - layer;
    if (op->kind == LP_OP_ATTENTION) add(&all, find_values(op), -1);
    if (ends_mlp(op)) add(&all, op, layer < last ? layer : last);
  }
  if (all.count > 0) qsort(all.data, all.count, sizeof *all.data, by_order);
  double left = budget * total * narrow_bits;
  for (size_t i = 0; i < all.count; i++) {
    double more = (double)all.data[i].elements * (wide_bits - narrow_bits);
    if (more > left) continue;
    left -= more;
    lp_op_set_bool(module, all.data[i].op, "sensitive", true);
  }
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  const char *text = lp_pass_option(context, "budget");
  const lp_compile_request *request = context->request;
  double budget = request ? request->quantise_budget : 0;
  if (text) LP_TRY(lp_parse_share(text, &budget, context->diag, LP_LOC_FILE("budget")));
  lp_op *func = lp_module_find_func(module, "main");
  if (func && (text || (request && lp_streq(request->quantise, "search")))) mark(module, func, budget);
  return LP_OK;
}

const lp_pass lp_pass_mark_sensitive = {
    .name = "mark-sensitive",
    .summary = "choose the products that keep 8 bits beside weights in int4",
    .needs = LP_STATE_LOWERED,
    .makes = LP_STATE_LOWERED,
    .breaks = LP_STATE_COUNT,
    .options = "budget",
    .run = run,
};
