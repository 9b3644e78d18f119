/* Einsum becomes diagonals, transposes and one product. Axes of both operands and the result are the product's batch. A
 * MatMul sums over axes of both operands that the result lacks; without such axes the product is elementwise. The pass
 * fold removes double transposes that this leaves. */
#include "base/poly.h"
#include "frontend/onnx/attr.h"
#include "frontend/onnx/build.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/node.h"
#include "frontend/onnx/scope.h"
#include "frontend/onnx/tensor.h"

enum { FIRST_ELLIPSIS = 1 }; /* labels 1..8 stand for the axes of "...", letters for themselves */

typedef struct {
  char label[LP_MAX_RANK];
  int32_t count;
} labels;

typedef struct {
  lp_importer *im;
  lp_loc loc;
  const char *equation;
  labels in[2], out;
  int32_t operands;
} einsum;

static lp_status refuse(const einsum *e) {
  return lp_error(e->im->diag, e->loc, "the equation '%s' is not supported", e->equation);
}

/* ---- reading ---- */

static bool has(const labels *l, char label) {
  return memchr(l->label, label, (size_t)l->count) != NULL;
}

static lp_status push(const einsum *e, labels *l, char label) {
  if (l->count == LP_MAX_RANK) return refuse(e);
  l->label[l->count++] = label;
  return LP_OK;
}

/* The first axis with a label that occurs again, or -1. */
static int32_t repeated(const labels *l) {
  for (int32_t i = 0; i < l->count; i++)
    if (i + 1 < l->count && memchr(l->label + i + 1, l->label[i], (size_t)(l->count - i - 1))) return i;
  return -1;
}

/* One term of the equation, up to ',' or '-' or its end; "..." takes `ellipsis` axes. */
static lp_status read_term(const einsum *e, const char **at, int32_t ellipsis, labels *out) {
  for (; **at && **at != ',' && **at != '-'; (*at)++) {
    if (**at == ' ') continue;
    if (strncmp(*at, "...", 3) == 0) {
      *at += 2;
      for (int32_t i = 0; i < ellipsis; i++)
        LP_TRY(push(e, out, (char)(FIRST_ELLIPSIS + i)));
    } else if ((**at >= 'a' && **at <= 'z') || (**at >= 'A' && **at <= 'Z')) {
      LP_TRY(push(e, out, **at));
    } else {
      return refuse(e);
    }
  }
  return LP_OK;
}

static int32_t letters_of(const char *term) {
  int32_t count = 0;
  for (; *term && *term != ',' && *term != '-'; term++)
    count += *term != ' ' && *term != '.';
  return count;
}

/* Without "->" the result has the labels that occur once, in order of the alphabet. */
static lp_status implied_result(einsum *e) {
  for (int letter = FIRST_ELLIPSIS; letter <= 'z'; letter++) {
    int32_t found = 0;
    for (int32_t k = 0; k < e->operands; k++)
      for (int32_t i = 0; i < e->in[k].count; i++)
        found += e->in[k].label[i] == letter;
    if (found == 1 || (found > 1 && letter <= LP_MAX_RANK)) LP_TRY(push(e, &e->out, (char)letter));
  }
  return LP_OK;
}

static lp_status read_equation(einsum *e, lp_value *const *in) {
  const char *at = e->equation;
  int32_t ellipsis = 0;
  for (int32_t k = 0; k < e->operands; k++) {
    ellipsis = in[k]->type.rank - letters_of(at);
    if (ellipsis < 0) return refuse(e);
    LP_TRY(read_term(e, &at, ellipsis, &e->in[k]));
    if (e->in[k].count != in[k]->type.rank) return refuse(e);
    if (k + 1 < e->operands && *at++ != ',') return refuse(e);
  }
  if (!*at) return implied_result(e);
  if (strncmp(at, "->", 2) != 0) return refuse(e);
  at += 2;
  LP_TRY(read_term(e, &at, ellipsis, &e->out));
  return *at || repeated(&e->out) >= 0 ? refuse(e) : LP_OK;
}

/* ---- building ---- */

static lp_status apply(const einsum *e, lp_kind kind, lp_value *x, lp_value *y, lp_value **out) {
  lp_value *in[] = {x, y};
  lp_type unknown = {.rank = -1};
  return lp_import_built(e->im, lp_op_create(e->im->module, kind, e->loc, y ? 2 : 1, in, 1, &unknown), out);
}

static lp_value *axes_of(const einsum *e, int32_t count, const int64_t *axes) {
  int64_t size = count;
  return lp_import_constant(e->im, e->loc, LP_I64, 1, &size, axes, (size_t)count * sizeof(int64_t));
}

/* Orders the axes of `x`, labelled `from`, as in `to`; those of `to` that it lacks become axes of 1. */
static lp_status arrange(const einsum *e, lp_value **x, const labels *from, const labels *to) {
  int64_t perm[LP_MAX_RANK], missing[LP_MAX_RANK];
  int32_t kept = 0, added = 0;
  bool moved = false;
  for (int32_t i = 0; i < to->count; i++) {
    const char *at = memchr(from->label, to->label[i], (size_t)from->count);
    if (at) {
      perm[kept] = at - from->label;
      moved = moved || perm[kept] != kept;
      kept++;
    } else {
      missing[added++] = i;
    }
  }
  if (moved) {
    lp_type unknown = {.rank = -1};
    lp_op *op = lp_op_create(e->im->module, LP_ONNX_Transpose, e->loc, 1, x, 1, &unknown);
    lp_op_set_i64s(e->im->module, op, "perm", perm, kept);
    LP_TRY(lp_import_built(e->im, op, x));
  }
  return added > 0 ? apply(e, LP_ONNX_Unsqueeze, *x, axes_of(e, added, missing), x) : LP_OK;
}

/* Sums over the labels of one operand that occur nowhere else. */
static lp_status sum_alone(const einsum *e, lp_value **x, labels *own, const labels *other) {
  labels kept = {.count = 0};
  int64_t axes[LP_MAX_RANK];
  int32_t count = 0;
  for (int32_t i = 0; i < own->count; i++)
    if (has(&e->out, own->label[i]) || (other && has(other, own->label[i])))
      kept.label[kept.count++] = own->label[i];
    else
      axes[count++] = i;
  *own = kept;
  if (count == 0) return LP_OK;
  lp_value *in[] = {*x, axes_of(e, count, axes)};
  lp_type unknown = {.rank = -1};
  lp_op *op = lp_op_create(e->im->module, LP_ONNX_ReduceSum, e->loc, 2, in, 1, &unknown);
  lp_op_set_i64(e->im->module, op, "keepdims", 0);
  return lp_import_built(e->im, op, x);
}

/* The labels of the product, by kind. */
typedef struct {
  labels batch, left, right, summed;
} plan;

static lp_status plan_product(const einsum *e, plan *p) {
  for (int32_t i = 0; i < e->out.count; i++) {
    char label = e->out.label[i];
    bool a = has(&e->in[0], label), b = has(&e->in[1], label);
    if (!a && !b) return refuse(e);
    LP_TRY(push(e, a && b ? &p->batch : a ? &p->left : &p->right, label));
  }
  for (int32_t i = 0; i < e->in[0].count; i++)
    if (!has(&e->out, e->in[0].label[i])) LP_TRY(push(e, &p->summed, e->in[0].label[i]));
  return LP_OK;
}

static lp_status append(const einsum *e, labels *to, const labels *more) {
  for (int32_t i = 0; i < more->count; i++)
    LP_TRY(push(e, to, more->label[i]));
  return LP_OK;
}

/* Joins the last `count` axes into one. */
static lp_status join_last(const einsum *e, int32_t count, lp_value **x) {
  int64_t shape[LP_MAX_RANK] = {0}; /* 0 keeps an axis */
  if (count == 1) return LP_OK;
  int32_t rank = (*x)->type.rank - count + 1;
  shape[rank - 1] = -1;
  return apply(e, LP_ONNX_Reshape, *x, axes_of(e, rank, shape), x);
}

static lp_status swap_last(const einsum *e, lp_value **x) {
  labels from = {.count = (*x)->type.rank}, to = from;
  for (int32_t i = 0; i < from.count; i++)
    from.label[i] = to.label[i] = (char)('a' + i);
  to.label[from.count - 1] = from.label[from.count - 2];
  to.label[from.count - 2] = from.label[from.count - 1];
  return arrange(e, x, &from, &to);
}

/* Takes the last label, or `none` where there is none; the others go to `rest`. */
static lp_status take_last(const einsum *e, const labels *from, char none, labels *last, labels *rest) {
  for (int32_t i = 0; i + 1 < from->count; i++)
    LP_TRY(push(e, rest, from->label[i]));
  return push(e, last, from->count > 0 ? from->label[from->count - 1] : none);
}

/* Rows and columns are one axis each: the operand's own last axis, or one of size 1. Its other axes broadcast as
 * batch. */
static lp_status matrix_product(const einsum *e, const plan *p, lp_value **in, lp_value **out) {
  labels lead = p->batch, row = {.count = 0}, column = {.count = 0};
  LP_TRY(take_last(e, &p->left, '#', &row, &lead));
  LP_TRY(take_last(e, &p->right, '%', &column, &lead));
  labels left = lead, right = lead, result = lead;
  LP_TRY(append(e, &left, &row));
  LP_TRY(append(e, &left, &p->summed));
  LP_TRY(append(e, &right, &column));
  LP_TRY(append(e, &right, &p->summed));
  LP_TRY(arrange(e, &in[0], &e->in[0], &left));
  LP_TRY(arrange(e, &in[1], &e->in[1], &right));
  LP_TRY(join_last(e, p->summed.count, &in[0]));
  LP_TRY(join_last(e, p->summed.count, &in[1]));
  LP_TRY(swap_last(e, &in[1]));
  LP_TRY(apply(e, LP_ONNX_MatMul, in[0], in[1], out));
  int64_t ones[2];
  int32_t count = 0;
  if (p->left.count == 0) ones[count++] = lead.count;
  if (p->right.count == 0) ones[count++] = lead.count + 1;
  if (count > 0) LP_TRY(apply(e, LP_ONNX_Squeeze, *out, axes_of(e, count, ones), out));
  if (p->left.count > 0) LP_TRY(append(e, &result, &row));
  if (p->right.count > 0) LP_TRY(append(e, &result, &column));
  return arrange(e, out, &result, &e->out);
}

/* Joins axes `first` and `second`, of one size n, into one that becomes the last: both move to the end and are joined,
 * and every (n + 1)th element is taken. */
static lp_status take_diagonal(einsum *e, lp_value **x, labels *own, int32_t first, int32_t second) {
  labels from = {.count = own->count}, to = {.count = 0}, kept = {.count = 0};
  const lp_poly *size = (*x)->type.dim[second];
  if (!lp_poly_equal((*x)->type.dim[first], size)) return refuse(e);
  for (int32_t i = 0; i < own->count; i++) {
    from.label[i] = (char)('a' + i); /* one label for each axis */
    if (i == first || i == second) continue;
    LP_TRY(push(e, &to, from.label[i]));
    LP_TRY(push(e, &kept, own->label[i]));
  }
  LP_TRY(push(e, &kept, own->label[second]));
  LP_TRY(push(e, &to, (char)('a' + first)));
  LP_TRY(push(e, &to, (char)('a' + second)));
  LP_TRY(arrange(e, x, &from, &to));
  *own = kept;
  int64_t n;
  if (!lp_poly_is_const(size, &n)) return refuse(e);
  LP_TRY(join_last(e, 2, x));
  const int64_t zero = 0, end = INT64_MAX, axis = kept.count - 1, step = n + 1;
  lp_value *slice[] = {*x, axes_of(e, 1, &zero), axes_of(e, 1, &end), axes_of(e, 1, &axis), axes_of(e, 1, &step)};
  lp_type unknown = {.rank = -1};
  return lp_import_built(e->im, lp_op_create(e->im->module, LP_ONNX_Slice, e->loc, 5, slice, 1, &unknown), x);
}

static lp_status take_diagonals(einsum *e, lp_value **x, labels *own) {
  for (int32_t first = repeated(own); first >= 0; first = repeated(own)) {
    int32_t second = first + 1;
    while (own->label[second] != own->label[first])
      second++;
    LP_TRY(take_diagonal(e, x, own, first, second));
  }
  return LP_OK;
}

static lp_status build(einsum *e, lp_value **in, lp_value **out) {
  for (int32_t k = 0; k < e->operands; k++)
    LP_TRY(take_diagonals(e, &in[k], &e->in[k]));
  LP_TRY(sum_alone(e, &in[0], &e->in[0], e->operands > 1 ? &e->in[1] : NULL));
  if (e->operands == 1) {
    *out = in[0];
    if (e->in[0].count != e->out.count) return refuse(e);
    return arrange(e, out, &e->in[0], &e->out);
  }
  plan p = {.batch = {.count = 0}};
  LP_TRY(sum_alone(e, &in[1], &e->in[1], &e->in[0]));
  LP_TRY(plan_product(e, &p));
  if (p.summed.count > 0) return matrix_product(e, &p, in, out);
  LP_TRY(arrange(e, &in[0], &e->in[0], &e->out));
  LP_TRY(arrange(e, &in[1], &e->in[1], &e->out));
  return apply(e, LP_ONNX_Mul, in[0], in[1], out);
}

lp_status lp_import_einsum(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call,
                           lp_loc loc) {
  einsum e = {.im = im, .loc = loc, .operands = (int32_t)node->n_input};
  lp_value *in[2], *out = NULL;
  const Onnx__AttributeProto *equation = lp_attribute_find(node, call, "equation");
  if (!equation) return lp_error(im->diag, loc, "attribute 'equation' is missing");
  LP_TRY(lp_attribute_check(im, equation, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, loc));
  e.equation = lp_arena_strndup(im->scratch, equation->s.data ? (const char *)equation->s.data : "", equation->s.len);
  if (node->n_input < 1 || node->n_input > 2) return refuse(&e);
  if (node->n_output != 1) return lp_error(im->diag, loc, "%zu outputs, 1 wanted", node->n_output);
  for (int32_t i = 0; i < e.operands; i++) {
    LP_TRY(lp_scope_find(im, scope, lp_text(node->input[i]), &in[i]));
    if (!in[i])
      return lp_error(im->diag, loc, "input '%s' is made by no node, initializer or graph input",
                      lp_text(node->input[i]));
  }
  LP_TRY(read_equation(&e, in));
  LP_TRY(build(&e, in, &out));
  if (out == in[0]) LP_TRY(apply(&e, LP_ONNX_Identity, out, NULL, &out));
  return lp_scope_define(im, scope, lp_text(node->output[0]), out, loc);
}
