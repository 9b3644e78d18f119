/* divide-experts: divides each mixture of experts in two, those that tokens choose most often (".hot") and the others
 * (".rest"), so that a plan may place them apart. Tokens choose as before; each half looks up which of its experts were
 * chosen, and computes their weighted sum. The rows of the other half's experts are zero in it (op.experts), so that
 * both sums add up to that of the mixture:
 *
 *   sum(w * experts(.., all, index))  ->  sum(w * experts(.., hot, hot_place[index]))
 *                                         + sum(w * experts(.., rest, rest_place[index])) */
#include "ir/ir.h"
#include "passes/build.h"
#include "passes/passes.h"

enum { INDEX = 3, PARTS = 2 };

static const char *const suffixes[] = {[LP_HALF_HOT] = ".hot", [LP_HALF_REST] = ".rest"};

lp_mixture_half lp_op_half(const lp_op *op) {
  const char *name = lp_op_str(op, "name", ""), *dot = strrchr(name, '.');
  for (lp_mixture_half half = LP_HALF_HOT; dot && half <= LP_HALF_REST; half++)
    if (lp_streq(dot, suffixes[half])) return half;
  return LP_HALF_NONE;
}

typedef LP_VEC(lp_op *) op_list;

typedef struct {
  lp_value *index;
  int64_t experts, chosen;
  op_list inner; /* the products of the mixture and what lies between them and `sum`, in order */
  lp_op *sum;    /* over the choices; NULL: the operators have another form */
} mixture;

/* Some of a mixture's experts, in the order of their numbers. */
typedef struct {
  const char *suffix;
  int64_t count;
  int64_t *expert; /* [count] */
  int64_t *place;  /* [all experts]: the place in `expert`, or -1 */
  double *share;   /* [count] */
} half;

static bool contains(const op_list *list, const lp_op *op) {
  for (size_t i = 0; i < list->count; i++)
    if (list->data[i] == op) return true;
  return false;
}

/* ---- finding a mixture ------------------------------------------------------------------------------------------- */

static bool reads(const lp_op *op, const op_list *list) {
  for (int32_t i = 0; i < op->in_count; i++)
    if (op->in[i].value && contains(list, op->in[i].value->def)) return true;
  return false;
}

static bool is_product(const mixture *m, const lp_op *op) {
  return op->kind == LP_OP_EXPERTS && lp_op_in(op, INDEX) == m->index && lp_op_i64(op, "experts", 0) == m->experts;
}

/* Tells whether a value of the mixture is linear in the last products, so that those of both halves add up to it. */
static bool is_linear(const mixture *m, const lp_value *value) {
  const lp_op *op = value->def;
  if (!contains(&m->inner, op)) return false;
  if (op->kind == LP_OP_EXPERTS) return true;
  if (op->kind == LP_OP_RESHAPE) return is_linear(m, lp_op_in(op, 0));
  const char *fn = op->kind == LP_OP_MAP ? lp_op_str(op, "fn", "") : "";
  if (!lp_streq(fn, "mul") && !lp_streq(fn, "cast")) return false;
  for (int32_t i = 0; i < op->in_count; i++)
    if (is_linear(m, lp_op_in(op, i))) return true;
  return false;
}

/* Finds the operators from the products to the sum; m->sum is NULL where others depend on the products too. */
static void find_mixture(mixture *m, lp_op *first) {
  m->index = lp_op_in(first, INDEX);
  m->experts = lp_op_i64(first, "experts", 0);
  if (!lp_type_static_dim(m->index->type, -1, &m->chosen)) return;
  for (lp_op *op = first; op; op = op->next) {
    const bool depends = reads(op, &m->inner);
    const bool sums = op->kind == LP_OP_REDUCE && lp_streq(lp_op_str(op, "fn", ""), "sum");
    if (depends && !m->sum && sums && is_linear(m, lp_op_in(op, 0))) {
      m->sum = op;
    } else if (is_product(m, op) || depends) {
      if (m->sum || !lp_op_has(op, LP_PURE) || op->out_count != 1) {
        m->sum = NULL;
        return;
      }
      lp_vec_push(&m->inner, op);
    }
  }
}

/* ---- the halves -------------------------------------------------------------------------------------------------- */

typedef struct {
  double share;
  int64_t expert;
} use;

static int greater_first(const void *a, const void *b) {
  const use *x = a, *y = b;
  if (x->share != y->share) return x->share < y->share ? 1 : -1;
  return (x->expert > y->expert) - (x->expert < y->expert);
}

static int by_expert(const void *a, const void *b) {
  const use *x = a, *y = b;
  return (x->expert > y->expert) - (x->expert < y->expert);
}

static half make_half(const mixture *m, lp_arena *arena, const char *suffix, use *uses, int64_t count) {
  half h = {suffix, count, LP_NEW_ARRAY(arena, int64_t, count), LP_NEW_ARRAY(arena, int64_t, m->experts),
            LP_NEW_ARRAY(arena, double, count)};
  for (int64_t e = 0; e < m->experts; e++)
    h.place[e] = -1;
  qsort(uses, (size_t)count, sizeof *uses, by_expert);
  for (int64_t i = 0; i < count; i++) {
    h.expert[i] = uses[i].expert;
    h.place[uses[i].expert] = i;
    h.share[i] = uses[i].share;
  }
  return h;
}

static void make_halves(const mixture *m, lp_arena *arena, int64_t hot, half out[PARTS]) {
  const lp_attr *shares = lp_op_attr(m->inner.data[0], "shares");
  use *uses = LP_NEW_ARRAY(arena, use, m->experts);
  for (int64_t e = 0; e < m->experts; e++)
    uses[e] = (use){shares && shares->count == m->experts ? shares->fs[e] : (double)m->chosen / (double)m->experts, e};
  qsort(uses, (size_t)m->experts, sizeof *uses, greater_first);
  out[0] = make_half(m, arena, suffixes[LP_HALF_HOT], uses, hot);
  out[1] = make_half(m, arena, suffixes[LP_HALF_REST], uses + hot, m->experts - hot);
}

/* Puts the half's experts in place of all in operand `i` of a product; false where its parts cannot be told apart. */
static bool take_part(lp_module *module, lp_op *op, int32_t i, const half *h, int64_t experts) {
  lp_value *whole = lp_op_in(op, i);
  int64_t one;
  if (i == 0 || i == INDEX || !whole || (lp_type_static_numel(whole->type, &one) && one == 1)) return true;
  lp_value *part = lp_constant_select(module, whole, experts, h->expert, h->count);
  if (!part) return false;
  if (whole->name) part->name = lp_arena_format(module->arena, "%s%s", whole->name, h->suffix);
  lp_op_insert_before(op, part->def);
  lp_op_set_in(op, i, part);
  return true;
}

static bool take_parts(lp_module *module, lp_op *op, const half *h, int64_t experts) {
  for (int32_t i = 0; i < op->in_count; i++)
    if (!take_part(module, op, i, h, experts)) return false;
  lp_op_set_i64(module, op, "experts", h->count);
  lp_op_set_f64s(module, op, "shares", h->share, (int32_t)h->count);
  lp_op_remove_costs(op);
  return true;
}

static lp_value *copied(void *user, lp_value *value) {
  (void)user;
  return value->scratch ? value->scratch : value;
}

static void rename_op(lp_module *module, lp_op *op, const char *suffix) {
  const char *name = lp_op_str(op, "name", NULL);
  if (name) lp_op_set_str(module, op, "name", lp_arena_format(module->arena, "%s%s", name, suffix));
}

/* Copies the mixture's operators for a half, each in front of its original. NULL: its weights cannot be divided. */
static lp_value *copy_half(lp_module *module, const mixture *m, const half *h, lp_diag *diag) {
  bool divides = true;
  lp_build b = lp_build_at(module, m->inner.data[0], diag);
  lp_value *map = lp_build_constant(&b, LP_I64, 1, &m->experts, h->place);
  lp_op *look_up = lp_build_typed(&b, LP_OP_GATHER, 2, (lp_value *[]){map, m->index}, m->index->type);
  lp_op_set_i64(module, look_up, "axis", 0);
  rename_op(module, look_up, h->suffix);
  for (size_t i = 0; i <= m->inner.count; i++) {
    lp_op *op = i < m->inner.count ? m->inner.data[i] : m->sum;
    lp_op *copy = lp_op_clone(module, op, copied, NULL);
    lp_op_insert_before(op, copy);
    rename_op(module, copy, h->suffix);
    if (copy->kind == LP_OP_EXPERTS) {
      lp_op_set_in(copy, INDEX, look_up->out[0]);
      divides = divides && take_parts(module, copy, h, m->experts);
    }
    op->out[0]->scratch = copy->out[0];
  }
  lp_value *sum = m->sum->out[0]->scratch;
  for (size_t i = 0; i < m->inner.count; i++)
    m->inner.data[i]->out[0]->scratch = NULL;
  m->sum->out[0]->scratch = NULL;
  return divides ? sum : NULL;
}

/* The originals lose their uses; what a failed division leaves has none. */
static bool divide(lp_module *module, lp_pass_context *context, const mixture *m, int64_t hot) {
  half halves[PARTS];
  lp_value *sum[PARTS];
  make_halves(m, context->scratch, hot, halves);
  for (int i = 0; i < PARTS; i++) {
    sum[i] = copy_half(module, m, &halves[i], context->diag);
    if (!sum[i]) return false;
  }
  lp_build b = lp_build_at(module, m->sum->next, context->diag);
  lp_value *all = lp_build_map2(&b, "add", sum[0], sum[1], sum[0]->type.dtype);
  lp_op_set_attr(module, all->def, lp_op_attr(m->sum, "layer"));
  lp_op_set_attr(module, all->def, lp_op_attr(m->sum, "layer_kind"));
  lp_op_set_str(module, all->def, "name", lp_op_str(m->sum, "name", ""));
  lp_value_replace(m->sum->out[0], all);
  return true;
}

static lp_status divide_all(lp_module *module, lp_pass_context *context, lp_block *block, int64_t hot, int64_t *done) {
  lp_op *next;
  for (lp_op *op = block->first; op; op = next) {
    next = op->next;
    if (op->kind != LP_OP_EXPERTS || lp_op_i64(op, "experts", 0) <= hot) continue;
    mixture m = {0};
    find_mixture(&m, op);
    const bool divided = m.sum && divide(module, context, &m, hot);
    *done += divided;
    if (divided) next = m.sum->next;
    lp_vec_free(&m.inner);
  }
  lp_build_remove_dead(block);
  lp_block_renumber(block);
  return LP_OK;
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  const char *option = lp_pass_option(context, "hot");
  const int64_t hot = option ? strtoll(option, NULL, 10) : context->request ? context->request->hot_experts : 0;
  int64_t done = 0;
  if (hot < 1) return LP_OK;
  LP_FOR_FUNCS(func, module)
    LP_TRY(divide_all(module, context, func->region, hot, &done));
  if (done > 0) return LP_OK;
  return lp_error(context->diag, LP_LOC_NONE, "no mixture has more than %" PRId64 " experts and a form that divides",
                  hot);
}

const lp_pass lp_pass_divide_experts = {
    .name = "divide-experts",
    .summary = "divide each mixture into the experts that are chosen most often and the rest",
    .needs = LP_STATE_LOWERED,
    .makes = LP_STATE_LOWERED,
    .breaks = LP_STATE_ANNOTATED,
    .options = "hot",
    .run = run,
};
