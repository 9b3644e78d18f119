/* Makes dimensions agree by replacing symbols in the whole module; broadcasting. */
#include "base/poly.h"
#include "ir/infer/infer.h"
#include "ir/ir_internal.h"

bool lp_poly_is_i64(const lp_poly *poly, int64_t value) {
  int64_t found;
  return poly && lp_poly_is_const(poly, &found) && found == value;
}

static const lp_poly *subst(lp_module *m, const lp_poly *poly, lp_symbol symbol, const lp_poly *by) {
  if (!poly || !lp_poly_has(poly, symbol)) return poly;
  return lp_poly_subst(m->arena, poly, symbol, by);
}

static bool subst_list(lp_module *m, const lp_poly *const **list, int32_t count, lp_symbol symbol, const lp_poly *by) {
  bool found = false;
  for (int32_t i = 0; i < count; i++)
    found = found || ((*list)[i] && lp_poly_has((*list)[i], symbol));
  if (!found) return true;
  const lp_poly **copy = LP_NEW_ARRAY(m->arena, const lp_poly *, count);
  for (int32_t i = 0; i < count; i++) {
    copy[i] = subst(m, (*list)[i], symbol, by);
    if (!copy[i] && (*list)[i]) return false;
  }
  *list = copy;
  return true;
}

static bool subst_value(lp_module *m, lp_value *value, lp_symbol symbol, const lp_poly *by) {
  if (value->known && !subst_list(m, &value->known, value->known_count, symbol, by)) return false;
  return subst_list(m, &value->type.dim, value->type.rank, symbol, by);
}

static bool subst_block(lp_module *m, lp_block *block, lp_symbol symbol, const lp_poly *by);

/* The evaluation steps that replacing a symbol costs per operator, because many symbols in a long graph take quadratic
 * time. */
enum { SUBST_STEPS = 8 };

bool lp_op_substitute(lp_module *m, lp_op *op, lp_symbol symbol, const lp_poly *by) {
  bool good = lp_module_spend(m, SUBST_STEPS);
  for (int32_t i = 0; i < op->out_count; i++)
    good = good && subst_value(m, op->out[i], symbol, by);
  for (int32_t i = 0; i < op->attr_count && good; i++) {
    lp_attr *attr = &op->attr[i];
    if (attr->kind == LP_ATTR_POLY) {
      attr->poly = subst(m, attr->poly, symbol, by);
      good = attr->poly != NULL;
    } else if (attr->kind == LP_ATTR_POLYS) {
      good = subst_list(m, &attr->polys, attr->count, symbol, by);
    }
  }
  return good && (!op->region || subst_block(m, op->region, symbol, by));
}

static bool subst_block(lp_module *m, lp_block *block, lp_symbol symbol, const lp_poly *by) {
  bool good = true;
  for (int32_t i = 0; i < block->arg_count; i++)
    good = good && subst_value(m, block->arg[i], symbol, by);
  for (lp_op *op = block->first; op && good; op = op->next)
    good = lp_op_substitute(m, op, symbol, by);
  return good;
}

bool lp_module_substitute(lp_module *module, lp_symbol symbol, const lp_poly *by) {
  return subst_block(module, lp_module_body(module), symbol, by);
}

/* Names that the importer made up: d0, d1, ... . */
static bool is_unnamed(const lp_symbols *symbols, lp_symbol symbol) {
  const char *name = lp_symbols_name(symbols, symbol);
  return name[0] == 'd' && name[1] >= '0' && name[1] <= '9' && strspn(name + 1, "0123456789") == strlen(name + 1);
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

/* The polynomial over the greatest number that divides all its coefficients: 3 x = 3 y says x = y. */
static const lp_poly *reduced(lp_arena *arena, const lp_poly *poly) {
  int64_t divisor = 0;
  for (int32_t i = 0; i < poly->count; i++) {
    if (poly->term[i].coef == INT64_MIN) return poly;
    divisor = common_divisor(divisor, poly->term[i].coef);
  }
  return divisor > 1 ? lp_poly_div(arena, poly, lp_poly_const(arena, divisor)) : poly;
}

static bool all_positive(const lp_poly *poly) {
  for (int32_t i = 0; i < poly->count; i++)
    if (poly->term[i].coef < 0) return false;
  return true;
}

/* Solves a - b = 0 for a symbol that occurs in one linear term of coefficient 1 or -1, if its value is certainly a
 * size. Tries symbols without a name first, then the newest. Unless `may_vanish`, 0 is no size: x and 2 x do not
 * agree. */
static lp_symbol solve(const lp_infer *c, const lp_poly *difference, bool may_vanish, const lp_poly **by) {
  lp_arena *arena = c->m->arena;
  lp_symbol best = 0;
  LP_FOR_EACH(const lp_term, t, difference->term, difference->count) {
    lp_symbol symbol = t->symbol[0];
    if ((t->coef != 1 && t->coef != -1) || !symbol || t->symbol[1]) continue;
    const lp_poly *alone = lp_poly_scale(arena, lp_poly_symbol(arena, symbol), t->coef);
    const lp_poly *rest = lp_poly_scale(arena, lp_poly_sub(arena, difference, alone), -t->coef);
    if (!rest || lp_poly_has(rest, symbol) || !all_positive(rest)) continue;
    if (rest->count == 0 && !may_vanish) continue;
    bool unnamed = is_unnamed(&c->m->symbols, symbol), best_unnamed = best && is_unnamed(&c->m->symbols, best);
    if (best && (best_unnamed > unnamed || (best_unnamed == unnamed && best > symbol))) continue;
    best = symbol;
    *by = rest;
  }
  return best;
}

lp_status lp_infer_agree(lp_infer *c, const lp_poly *a, const lp_poly *b, const lp_poly **out) {
  *out = a;
  if (lp_poly_equal(a, b)) return LP_OK;
  const lp_poly *difference = lp_poly_sub(c->m->arena, a, b), *by = NULL;
  if (difference) difference = reduced(c->m->arena, difference);
  bool may_vanish = lp_poly_is_i64(a, 0) || lp_poly_is_i64(b, 0);
  lp_symbol symbol = difference ? solve(c, difference, may_vanish, &by) : 0;
  if (!symbol || !lp_module_substitute(c->m, symbol, by)) {
    if (c->m->eval_steps < SUBST_STEPS)
      return lp_infer_fail(c, "the graph has too many dimensions that must agree with each other");
    return lp_infer_fail(c, "dimensions %s and %s must agree", lp_infer_text(c, a), lp_infer_text(c, b));
  }
  c->again = true;
  *out = subst(c->m, a, symbol, by);
  return LP_OK;
}

static const lp_block *function_of(const lp_infer *c) {
  const lp_block *block = c->op->block;
  while (block && block->parent && block->parent->kind != LP_OP_FUNC)
    block = block->parent->block;
  return block;
}

bool lp_infer_sizes_integers(const lp_infer *c, lp_symbol symbol) {
  const lp_block *block = function_of(c);
  for (int32_t i = 0; block && i < block->arg_count; i++)
    for (int32_t axis = 0; !lp_dtype_is_float(block->arg[i]->type.dtype) && axis < block->arg[i]->type.rank; axis++)
      if (lp_poly_lone_symbol(block->arg[i]->type.dim[axis]) == symbol) return true;
  return false;
}

/* Tells whether the symbol is the first axis of an argument of the function. */
static bool leads_argument(const lp_infer *c, lp_symbol symbol) {
  const lp_block *block = function_of(c);
  for (int32_t i = 0; block && i < block->arg_count; i++)
    if (block->arg[i]->type.rank > 0 && lp_poly_lone_symbol(block->arg[i]->type.dim[0]) == symbol) return true;
  return false;
}

/* Tells whether the symbol is an axis of an integer argument other than its first; as a rule that is the number of
 * tokens. */
static bool counts_tokens(const lp_infer *c, lp_symbol symbol) {
  const lp_block *block = function_of(c);
  for (int32_t i = 0; block && i < block->arg_count; i++)
    for (int32_t axis = 1; !lp_dtype_is_float(block->arg[i]->type.dtype) && axis < block->arg[i]->type.rank; axis++)
      if (lp_poly_lone_symbol(block->arg[i]->type.dim[axis]) == symbol) return true;
  return false;
}

/* Tells whether the symbol is an axis of a float argument other than its first; as a rule that is the length of a
 * cache. */
static bool sizes_floats(const lp_infer *c, lp_symbol symbol) {
  const lp_block *block = function_of(c);
  for (int32_t i = 0; block && i < block->arg_count; i++)
    for (int32_t axis = 1; lp_dtype_is_float(block->arg[i]->type.dtype) && axis < block->arg[i]->type.rank; axis++)
      if (lp_poly_has(block->arg[i]->type.dim[axis], symbol)) return true;
  return false;
}

bool lp_infer_is_positive(const lp_infer *c, const lp_poly *size) {
  bool some = false;
  for (int32_t i = 0; i < size->count; i++) {
    lp_symbol symbol = size->term[i].symbol[0];
    if (size->term[i].coef < 0) return false;
    bool lone = symbol && !size->term[i].symbol[1];
    some |= !symbol || (lone && lp_infer_sizes_integers(c, symbol) && !sizes_floats(c, symbol));
  }
  return some;
}

/* The batch that must be 1 if the sizes are to be equal: one of them, or the factor between them; 0: none. */
static lp_symbol batch_between(const lp_infer *c, const lp_poly *a, const lp_poly *b) {
  lp_symbol x = lp_poly_lone_symbol(a), y = lp_poly_lone_symbol(b);
  if (x && y) {
    bool x_leads = leads_argument(c, x) && !counts_tokens(c, x), y_leads = leads_argument(c, y) && !counts_tokens(c, y);
    return x_leads == y_leads ? 0 : x_leads ? x : y;
  }
  const lp_poly *factor = lp_poly_div(c->m->arena, a, b);
  if (!factor) factor = lp_poly_div(c->m->arena, b, a);
  lp_symbol symbol = factor ? lp_poly_lone_symbol(factor) : 0;
  return symbol && leads_argument(c, symbol) ? symbol : 0;
}

/* A batch that broadcasts with another axis was traced with one sequence, and only works with one: sets *one to it. */
static lp_status broadcast_dims(lp_infer *c, const lp_poly *a, const lp_poly *b, const lp_poly **out, lp_symbol *one) {
  lp_symbol batch = lp_poly_equal(a, b) ? 0 : batch_between(c, a, b);
  if (!batch) return lp_infer_agree(c, a, b, out);
  const lp_poly *with = lp_poly_has(a, batch) ? a : b, *without = with == a ? b : a;
  lp_warning(c->diag, c->op->loc, "'%s' is taken to be 1: '%s' broadcasts to '%s'",
             lp_symbols_name(&c->m->symbols, batch), lp_infer_text(c, with), lp_infer_text(c, without));
  *out = without;
  *one = batch;
  c->again = true;
  return lp_module_substitute(c->m, batch, lp_dim_const(c->m, 1)) ? LP_OK : lp_infer_fail(c, "a size overflows");
}

lp_status lp_infer_one_batch(lp_infer *c, const lp_poly *product, const lp_poly *batch) {
  lp_symbol divisor = lp_poly_lone_symbol(batch);
  if (!divisor || !leads_argument(c, divisor) || product->count != 1) return LP_OK;
  for (size_t i = 0; i < LP_COUNT(product->term[0].symbol) && product->term[0].symbol[i]; i++) {
    lp_symbol symbol = product->term[0].symbol[i];
    const lp_poly *same;
    if (leads_argument(c, symbol)) return lp_infer_agree(c, lp_poly_symbol(c->m->arena, symbol), batch, &same);
  }
  return LP_OK;
}

lp_status lp_infer_broadcast(lp_infer *c, lp_shape *shape, const lp_shape *with) {
  lp_shape out = {.rank = shape->rank > with->rank ? shape->rank : with->rank};
  lp_symbol one = 0; /* replaced by 1 in the module, not yet in these copies of its dimensions */
  for (int32_t i = 1; i <= out.rank; i++) {
    const lp_poly *a = i <= shape->rank ? shape->dim[shape->rank - i] : NULL;
    const lp_poly *b = i <= with->rank ? with->dim[with->rank - i] : NULL;
    if (one && a) a = subst(c->m, a, one, lp_dim_const(c->m, 1));
    if (one && b) b = subst(c->m, b, one, lp_dim_const(c->m, 1));
    const lp_poly **to = &out.dim[out.rank - i];
    if (!a || !b)
      *to = a ? a : b;
    else if (lp_poly_is_i64(a, 1))
      *to = b;
    else if (lp_poly_is_i64(b, 1))
      *to = a;
    else
      LP_TRY(broadcast_dims(c, a, b, to, &one));
  }
  *shape = out;
  return LP_OK;
}
