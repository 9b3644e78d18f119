/* Rewrites mixtures of experts so that only chosen experts are computed. NonZero of each expert's mask gives the tokens
 * that chose it, and a sum adds its results at their places; these sums become one over each token's choices. */
#include "base/poly.h"
#include "frontend/onnx/lanes.h"

enum { MOST_EXPERTS = 4096 }; /* of a mixture, each of which is compared with each other */

/* One NonZero of a mask that compares the indices of a TopK. */
typedef struct {
  lp_op *source;
  lp_choice choice;
} member;

/* An expert's rows, the value to which they are added, and the sum. */
typedef struct {
  lp_value *base, *rows, *total;
} addition;

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* Tells whether all elements are 0. */
static bool is_zero(const lp_value *value) {
  const lp_op *op = value->def;
  lp_tensor tensor;
  if (lp_op_is(op, LP_ONNX_Expand)) return is_zero(lp_op_in(op, 0));
  if (lp_op_is(op, LP_ONNX_ConstantOfShape)) {
    const lp_attr *fill = lp_op_attr(op, "value");
    return !fill || lp_tensor_f64(&fill->tensor, 0) == 0;
  }
  return lp_value_constant(value, &tensor) && value->type.rank == 0 && lp_tensor_f64(&tensor, 0) == 0;
}

/* The only Add that reads a value, besides operators that ask for its shape. */
static lp_op *sole_add(const lp_value *value) {
  lp_op *found = NULL;
  for (const lp_use *use = value->uses; use; use = use->next) {
    if (use->owner->kind == LP_ONNX_Shape) continue;
    if (found || use->owner->kind != LP_ONNX_Add) return NULL;
    found = use->owner;
  }
  return found;
}

/* Finds the rows in updates base[token] + rows, which replace those of `base`. */
static lp_value *added_rows(const lp_bound *b, const lp_value *updates, const lp_value *base) {
  const lp_op *op = updates->def;
  for (int32_t i = 0; i < 2 && lp_op_is(op, LP_ONNX_Add); i++) {
    const lp_op *taken = lp_op_in(op, i)->def;
    bool rows = lp_op_is(taken, LP_ONNX_Gather) && lp_op_i64(taken, "axis", 0) == 0;
    bool pairs = lp_op_is(taken, LP_ONNX_GatherND) && lp_op_i64(taken, "batch_dims", 0) == 0;
    if ((rows || pairs) && lp_op_in(taken, 0) == base && lp_bound_is_token(b, lp_op_in(taken, 1)))
      return lp_op_in(op, 1 - i);
  }
  return NULL;
}

static bool find_addition(const lp_bound *b, addition *out) {
  lp_op *sum = NULL;
  for (size_t i = 0; i < b->users.count; i++) {
    if (!lp_bound_is_sum(b->users.data[i]->kind)) continue;
    if (sum) return false;
    sum = b->users.data[i];
  }
  if (!sum || !lp_bound_is_token(b, lp_op_in(sum, 1))) return false;
  const char *reduction = lp_op_str(sum, "reduction", "none");
  const bool adds = lp_streq(reduction, "add");
  *out = (addition){lp_op_in(sum, 0), lp_op_in(sum, 2), sum->out[0]};
  lp_op *add = is_zero(out->base) && (adds || lp_streq(reduction, "none")) ? sole_add(out->total) : NULL;
  if (add) {
    out->base = lp_op_in(add, lp_op_in(add, 0) == out->total ? 1 : 0);
    out->total = add->out[0];
  } else if (!adds) {
    out->rows = lp_streq(reduction, "none") ? added_rows(b, out->rows, out->base) : NULL;
  }
  return out->rows && lp_type_equal(out->base->type, out->total->type);
}

/* Finds the first addition's base and the last one's total; false: each total is not the base of one other. */
static bool find_ends(const addition *list, int64_t count, lp_value **base, lp_value **total) {
  int64_t at = -1, found = 0;
  for (int64_t i = 0; i < count; i++) {
    bool first = true;
    for (int64_t k = 0; k < count && first; k++)
      first = list[k].total != list[i].base;
    if (first && at >= 0) return false;
    if (first) at = i;
  }
  if (at < 0) return false;
  *base = list[at].base;
  for (int64_t next = at; next >= 0 && found < count; found++) {
    *total = list[next].total;
    next = -1;
    for (int64_t k = 0; k < count; k++)
      if (list[k].base == *total) next = k;
  }
  return found == count;
}

/* ---- one mixture ------------------------------------------------------------------------------------------------- */

/* Sums the choices' rows, and adds them to the base. */
static lp_value *sum_of(lp_lanes *m, lp_value *all, lp_value *base, const lp_value *total) {
  if (!all || all->type.rank != 3 || !lp_poly_equal(all->type.dim[1], m->choices)) return NULL;
  lp_value *sum = lp_lanes_make(m, LP_ONNX_ReduceSum, all, LP_LANES_INTS(m, 1), "keepdims", 0);
  if (sum && !is_zero(base)) sum = lp_lanes_make(m, LP_ONNX_Add, base, sum, NULL, 0);
  return sum && lp_type_equal(sum->type, total->type) ? sum : NULL;
}

static bool gather(lp_lanes *m) {
  addition *list = LP_NEW_ARRAY(m->im->scratch, addition, m->experts);
  lp_value **rows = LP_NEW_ARRAY(m->im->scratch, lp_value *, m->experts), *base, *total;
  for (int64_t e = 0; e < m->experts; e++) {
    lp_bound_collect(&m->lane[e]);
    if (lp_bound_find_other(&m->lane[e])) return false;
    lp_bound_find_places(&m->lane[e]);
    if (!find_addition(&m->lane[e], &list[e])) return false;
    rows[e] = list[e].rows;
  }
  if (!find_ends(list, m->experts, &base, &total)) return false;
  m->where = total->def;
  lp_value *sum = sum_of(m, lp_lanes_all(m, rows), base, total);
  if (sum) lp_value_replace(total, sum);
  return sum != NULL;
}

/* Erases operators before `last`, and itself, that nothing uses, but not NonZeros. */
static void erase_unused(lp_op *last, const lp_op *first) {
  for (lp_op *op = last, *before; op && op != first; op = before) {
    bool used = op->kind == LP_ONNX_NonZero || !lp_op_has(op, LP_PURE);
    before = op->prev;
    for (int32_t i = 0; i < op->out_count; i++)
      used |= op->out[i]->uses != NULL;
    if (!used) lp_op_erase(op);
  }
}

/* Puts a NonZero of each expert into its lane; false: an expert has none, or two. */
static bool fill_lanes(lp_lanes *m, const member *members) {
  const lp_symbol rows = lp_symbols_find(&m->im->module->symbols, LP_ROWS_NAME);
  const lp_op *top = m->index->def;
  int64_t scores;
  if (m->experts > MOST_EXPERTS || m->index->type.rank != 2 ||
      !lp_type_static_dim(lp_op_in(top, 0)->type, 1, &scores) || scores != m->experts ||
      (lp_op_i64(top, "axis", -1) != 1 && lp_op_i64(top, "axis", -1) != -1))
    return false;
  for (int64_t i = 0; i < m->experts; i++) {
    const int64_t e = members[i].choice.expert;
    if (e < 0 || e >= m->experts || m->lane[e].source) return false;
    m->lane[e] = (lp_bound){.im = m->im,
                            .source = members[i].source,
                            .rows = rows,
                            .count = m->tokens,
                            .token_axis = 1 - members[i].choice.axis};
  }
  return true;
}

static bool gather_mixture(lp_importer *im, const member *members, int64_t count) {
  lp_value *index = members[0].choice.index->def->out[1];
  LP_OWNED(lp_lanes_release) lp_lanes m = {.im = im, .experts = count, .index = index, .loc = index->def->loc};
  m.lane = LP_NEW_ARRAY(im->scratch, lp_bound, count);
  for (int64_t e = 0; e < count; e++)
    m.lane[e] = (lp_bound){0};
  m.tokens = index->type.rank == 2 ? index->type.dim[0] : NULL;
  m.choices = index->type.rank == 2 ? index->type.dim[1] : NULL;
  const bool good = fill_lanes(&m, members) && gather(&m);
  if (!good) lp_lanes_undo(&m);
  for (int64_t e = 0; e < count; e++)
    if (m.lane[e].source) lp_bound_forget(&m.lane[e]);
  if (good) erase_unused(m.where, members[0].source);
  return good;
}

/* ---- all mixtures ------------------------------------------------------------------------------------------------ */

int64_t lp_mixtures_gather(lp_importer *im, lp_loc *first) {
  LP_VEC(member) members = {0};
  int64_t dense = 0;
  LP_FOR_OPS(op, im->block) {
    member found = {.source = op};
    if (op->kind == LP_ONNX_NonZero && op->out[0]->uses && lp_choice_find(lp_op_in(op, 0), &found.choice))
      lp_vec_push(&members, found);
  }
  for (size_t i = 0, end; i < members.count; i = end) {
    for (end = i + 1; end < members.count; end++)
      if (members.data[end].choice.index != members.data[i].choice.index) break;
    if (gather_mixture(im, members.data + i, (int64_t)(end - i))) continue;
    if (dense++ == 0) *first = members.data[i].source->loc;
  }
  lp_vec_free(&members);
  return dense;
}
