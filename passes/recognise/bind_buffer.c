/* Caches that are buffers of constant length, into which the graph writes the new rows at their positions (as for the
 * StaticCache of transformers), become caches that grow: the past has p rows, zeros fill the buffer after them, and
 * the present is its first p + s rows. recognise (recognise_buffer.c) proves afterwards that the graph writes the
 * rows after the past and attends to none that is not written, and removes the zeros. */
#include "base/poly.h"
#include "passes/build.h"
#include "passes/recognise/bind.h"

enum { MAX_TURNS = 4 };

/* A buffer that can grow. */
typedef struct {
  int32_t input, output, axis; /* the axis of the input that counts positions */
  int64_t length;
} buffer;

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* The axis along which the scatter writes one row for each new token; -1: it writes anything else. */
static int32_t row_axis(const lp_op *scatter, const lp_poly *fresh) {
  lp_type data = lp_op_in(scatter, 0)->type, index = lp_op_in(scatter, 1)->type, rows = lp_op_in(scatter, 2)->type;
  int64_t axis = lp_op_i64(scatter, "axis", 0), depth;
  if (!lp_streq(lp_op_str(scatter, "reduction", "none"), "none") || rows.rank != data.rank) return -1;
  if (scatter->kind == LP_ONNX_ScatterND) {
    if (index.rank != 2 || !lp_type_static_dim(index, 1, &depth) || depth != 1) return -1;
    axis = 0;
  }
  if (axis < 0) axis += data.rank;
  for (int32_t i = 0; i < data.rank; i++)
    if (!lp_poly_equal(rows.dim[i], i == axis ? fresh : data.dim[i])) return -1;
  return (int32_t)axis;
}

/* Finds the scatter that writes into the value, in whichever order its axes are, and sets the value's axis that counts
 * positions. */
static lp_op *find_write(const lp_value *value, const lp_poly *fresh, int32_t *axis, int turns) {
  for (const lp_use *use = value->uses; use && turns < MAX_TURNS; use = use->next) {
    lp_op *op = use->owner;
    const lp_attr *perm = op->kind == LP_ONNX_Transpose ? lp_op_attr(op, "perm") : NULL;
    bool writes = op->kind == LP_ONNX_ScatterElements || op->kind == LP_ONNX_ScatterND;
    if (use->value != lp_op_in(op, 0)) continue;
    lp_op *found = writes ? op : perm ? find_write(op->out[0], fresh, axis, turns + 1) : NULL;
    if (writes && (*axis = row_axis(op, fresh)) < 0) found = NULL;
    if (found && perm) *axis = (int32_t)perm->is[*axis];
    if (found) return found;
  }
  return NULL;
}

/* The output that is the written buffer in the order of the input; -1: none. */
static int32_t find_present(const lp_bind *b, const lp_op *write, lp_type past) {
  for (int32_t i = 0; i < b->end->in_count; i++) {
    const lp_value *value = lp_op_in(b->end, i);
    bool same = lp_type_equal(value->type, past) && lp_streq(b->output_role[i], "data");
    while (lp_op_is(value->def, LP_ONNX_Transpose))
      value = lp_op_in(value->def, 0);
    if (same && value->def == write) return i;
  }
  return -1;
}

static bool is_buffer(const lp_bind *b, int32_t input, buffer *out) {
  const lp_value *arg = b->block->arg[input];
  lp_type tokens = b->block->arg[b->tokens]->type;
  *out = (buffer){.input = input};
  if (!lp_dtype_is_float(arg->type.dtype) || arg->type.rank != 4) return false;
  const lp_op *write = find_write(arg, tokens.dim[1], &out->axis, 0);
  if (!write || out->axis == 0 || !lp_type_static_dim(arg->type, out->axis, &out->length)) return false;
  out->output = find_present(b, write, arg->type);
  return out->output >= 0;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static lp_type with_dim(const lp_bind *b, lp_type type, int32_t axis, const lp_poly *size) {
  const lp_poly *dims[LP_MAX_RANK];
  for (int32_t i = 0; i < type.rank; i++)
    dims[i] = i == axis ? size : type.dim[i];
  return lp_type_make(b->module, type.dtype, type.rank, dims);
}

/* Gives the input the length p; what used it reads it with zeros after it, as long as before. */
static lp_status pad_past(const lp_bind *b, const buffer *of, const lp_poly *past) {
  lp_build build = lp_build_at(b->module, b->block->first, b->diag);
  lp_value *arg = b->block->arg[of->input];
  const lp_poly *rest = lp_poly_sub(b->module->arena, lp_dim_const(b->module, of->length), past);
  lp_type whole = arg->type, unknown = {.rank = -1};
  lp_value *shape = lp_build_sizes(&build, with_dim(b, whole, of->axis, rest));
  lp_value *zeros = lp_build_cast(&build, lp_build_value(&build, LP_ONNX_ConstantOfShape, 1, &shape), whole.dtype);
  if (!zeros) return LP_FAILED;
  arg->type = with_dim(b, whole, of->axis, past);
  lp_value *parts[] = {arg, zeros};
  lp_op *padded = lp_op_create(b->module, LP_ONNX_Concat, build.loc, 2, parts, 1, &unknown);
  lp_op_set_i64(b->module, padded, "axis", of->axis);
  LP_TRY(lp_build_place(&build, padded));
  lp_value_replace(arg, padded->out[0]);
  lp_op_set_in(padded, 0, arg);
  return LP_OK;
}

static lp_status cut_present(const lp_bind *b, const buffer *of, const lp_poly *total) {
  static const int64_t start = 0;
  lp_build build = lp_build_at(b->module, b->end, b->diag);
  int64_t axis = of->axis;
  lp_value *in[] = {lp_op_in(b->end, of->output), lp_build_i64s(&build, &start, 1),
                    lp_build_sizes(&build, lp_type_make(b->module, LP_I64, 1, &total)),
                    lp_build_i64s(&build, &axis, 1)};
  lp_value *rows = lp_build_value(&build, LP_ONNX_Slice, 4, in);
  if (!rows) return LP_FAILED;
  lp_op_set_in(b->end, of->output, rows);
  return LP_OK;
}

lp_status lp_bind_open_buffers(lp_bind *b) {
  const lp_poly *past = lp_dim_symbol(b->module, "p");
  const lp_poly *total = lp_poly_add(b->module->arena, past, b->block->arg[b->tokens]->type.dim[1]);
  for (int32_t i = 0; i < b->block->arg_count; i++) {
    buffer of;
    if (i == b->tokens || !b->block->first || !is_buffer(b, i, &of)) continue;
    int64_t context = lp_op_i64(b->func, "context", of.length);
    LP_TRY(pad_past(b, &of, past));
    LP_TRY(cut_present(b, &of, total));
    lp_op_set_i64(b->module, b->func, "context", of.length < context ? of.length : context);
  }
  return LP_OK;
}
