/* Masks that are inputs, [b, 1, s, p + s] or [s, p + s]: they say which keys each query sees. The uses of a mask
 * determine the meaning of its elements. A mask that is added holds zeros and large negative numbers. One that selects
 * or multiplies shows the keys where it is not zero. One that selects the large negative numbers hides the keys where
 * it is not zero. */
#include "passes/build.h"
#include "passes/recognise/bind.h"

enum { MAX_DEPTH = 12 };

typedef enum { NO_USE, SHOWS, HIDES, ADDED, UNKNOWN } meaning;

static meaning opposite(meaning m) {
  return m == SHOWS ? HIDES : m == HIDES ? SHOWS : m;
}

/* The meaning from two uses, which must agree. */
static meaning both(meaning a, meaning b) {
  if (a == NO_USE || a == b) return b;
  return b == NO_USE ? a : UNKNOWN;
}

static bool is_number(const lp_value *value, double *out) {
  return value && lp_scalar_constant(value, out);
}

/* Where(mask, x, y): the branch with large negative numbers is hidden. */
static meaning meaning_of_choice(const lp_op *where) {
  double yes = 0, no = 0;
  bool knows_yes = is_number(lp_op_in(where, 1), &yes), knows_no = is_number(lp_op_in(where, 2), &no);
  if (knows_no && no <= -1e4) return SHOWS;
  return knows_yes && yes <= -1e4 ? HIDES : UNKNOWN;
}

static meaning meaning_of_product(const lp_op *op, const lp_value *mask) {
  double factor;
  const lp_value *other = lp_op_in(op, 0) == mask ? lp_op_in(op, 1) : lp_op_in(op, 0);
  return is_number(other, &factor) && factor <= -1e4 ? HIDES : SHOWS;
}

/* The index of the operand of an attention operator that is its mask or bias. */
static int32_t mask_operand(const lp_op *op) {
  switch (op->kind) {
  case LP_ONNX_Attention:
    return 3;
  case LP_ONNX_MsMultiHeadAttention:
    return 5;
  case LP_ONNX_MsGroupQueryAttention:
    return 10;
  default:
    return -1;
  }
}

static meaning meaning_at(const lp_use *use, const lp_value *value, meaning rest) {
  const lp_op *op = use->owner;
  int32_t operand = (int32_t)(use - op->in);
  double number;
  switch (op->kind) {
  case LP_ONNX_Shape:
  case LP_ONNX_Size:
    return NO_USE;
  case LP_ONNX_Add:
    return lp_dtype_is_float(value->type.dtype) ? ADDED : UNKNOWN;
  case LP_ONNX_Mul:
    return meaning_of_product(op, value);
  case LP_ONNX_Where:
    return operand == 0 ? meaning_of_choice(op) : UNKNOWN;
  case LP_ONNX_Not:
    return opposite(rest);
  case LP_ONNX_Equal:
    if (!is_number(lp_op_in(op, 1 - operand), &number)) return UNKNOWN;
    return number == 0 ? opposite(rest) : number == 1 ? rest : UNKNOWN;
  case LP_ONNX_Sub: /* 1 - mask */
    return operand == 1 && is_number(lp_op_in(op, 0), &number) && number == 1 ? opposite(rest) : UNKNOWN;
  case LP_ONNX_Slice:
  case LP_ONNX_Expand:
    return operand == 0 ? rest : NO_USE;
  default:
    if (operand == mask_operand(op)) return value->type.dtype == LP_BOOL ? SHOWS : ADDED;
    return lp_op_has(op, LP_IN_ORDER) && operand == 0 ? rest : UNKNOWN;
  }
}

static bool passes_on(const lp_op *op) {
  return lp_op_has(op, LP_IN_ORDER) || op->kind == LP_ONNX_Slice || op->kind == LP_ONNX_Expand ||
         op->kind == LP_ONNX_Not || op->kind == LP_ONNX_Equal || op->kind == LP_ONNX_Sub;
}

static meaning meaning_of(const lp_value *value, int depth) {
  meaning all = NO_USE;
  for (const lp_use *use = value->uses; use; use = use->next) {
    const lp_op *op = use->owner;
    meaning rest = UNKNOWN;
    if (passes_on(op) && depth < MAX_DEPTH) rest = meaning_of(op->out[0], depth + 1);
    all = both(all, meaning_at(use, value, rest));
  }
  return all;
}

bool lp_bind_is_mask(const char *name) {
  static const char *const names[] = {"attention_mask", "causal_mask",    "mask",
                                      "attn_mask",      "attention_bias", "causal_attention_mask"};
  return LP_FIND_IN(names, name) != NULL;
}

static lp_value *counted(lp_build *build, const lp_poly *start, const lp_poly *end) {
  lp_value *in[] = {lp_build_size(build, start), lp_build_size(build, end),
                    lp_build_size(build, lp_dim_const(build->module, 1))};
  return lp_build_value(build, LP_ONNX_Range, 3, in);
}

lp_value *lp_bind_make_mask(lp_build *build, const lp_bind *b, const lp_value *arg) {
  static const char *const names[] = {[SHOWS] = "shows", [HIDES] = "hides", [ADDED] = "added"};
  static const int64_t last = 1;
  lp_type type = arg->type;
  meaning means = meaning_of(arg, 0);
  if (means == UNKNOWN) {
    (void)lp_error(build->diag, build->loc,
                   "the meaning of its elements is unknown: they are neither added to scores nor select them");
    return NULL;
  }
  const char *attribute = lp_arena_format(b->module->arena, "mask_of_%s", build->loc.node);
  lp_op_set_str(b->module, b->func, attribute, names[means == NO_USE ? SHOWS : means]);
  const lp_poly *total = type.dim[type.rank - 1];
  const lp_poly *before = lp_poly_sub(build->module->arena, total, type.dim[type.rank - 2]);
  lp_value *keys = counted(build, lp_dim_const(build->module, 0), total);
  lp_value *row[] = {counted(build, before, total), lp_build_i64s(build, &last, 1)};
  lp_value *pair[] = {keys, lp_build_value(build, LP_ONNX_Unsqueeze, 2, row)};
  lp_value *mask = lp_build_value(build, means == HIDES ? LP_ONNX_Greater : LP_ONNX_LessOrEqual, 2, pair);
  if (means == ADDED && mask) {
    lp_value *choice[] = {mask, lp_build_float(build, type.dtype, 0),
                          lp_build_float(build, type.dtype, type.dtype == LP_F16 ? -65504.0 : -3e38)};
    mask = lp_build_value(build, LP_ONNX_Where, 3, choice);
  }
  lp_value *wide[] = {mask ? lp_build_cast(build, mask, type.dtype) : NULL, lp_build_sizes(build, type)};
  return lp_build_value(build, LP_ONNX_Expand, 2, wide);
}
