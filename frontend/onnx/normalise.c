/* Older opsets: attributes that the newest opset takes as operands become constant operands, so that every later stage
 * sees one form. The form of each operator is that of the newest opset; see ir/ops.def. */
#include "base/number.h"
#include "frontend/onnx/attr.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/lengths.h"
#include "frontend/onnx/node.h"
#include "frontend/onnx/tensor.h"

typedef struct {
  lp_importer *im;
  const Onnx__NodeProto *node;
  const lp_call *call;
  lp_loc loc;
  lp_node_form *form;
} normaliser;

static void consume(const normaliser *n, const char *name) {
  if (n->form->consumed_count < LP_FORM_CONSUMED) n->form->consumed[n->form->consumed_count++] = name;
}

static lp_status set_operand(const normaliser *n, int32_t index, const char *name, lp_value *value) {
  lp_node_form *form = n->form;
  if (index < form->in_count && form->in[index])
    return lp_error(n->im->diag, n->loc, "'%s' is given both as attribute and as input", name);
  form->in[index] = value;
  if (form->in_count <= index) form->in_count = index + 1;
  return LP_OK;
}

/* Turns the attribute `name` of integers into operand `index`, if it is given. */
static lp_status ints_operand(const normaliser *n, const char *name, int32_t index) {
  const Onnx__AttributeProto *a = lp_attribute_find(n->node, n->call, name);
  if (!a) return LP_OK;
  LP_TRY(lp_attribute_check(n->im, a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, n->loc));
  int64_t count = (int64_t)a->n_ints;
  lp_value *value = lp_import_constant(n->im, n->loc, LP_I64, 1, &count, a->ints, a->n_ints * sizeof(int64_t));
  consume(n, name);
  return set_operand(n, index, name, value);
}

/* Before opset 10 the number of elements to take was an attribute. */
static lp_status topk_form(const normaliser *n) {
  const Onnx__AttributeProto *a = lp_attribute_find(n->node, n->call, "k");
  if (!a) return LP_OK;
  LP_TRY(lp_attribute_check(n->im, a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, n->loc));
  const int64_t one = 1;
  consume(n, "k");
  return set_operand(n, 1, "k", lp_import_constant(n->im, n->loc, LP_I64, 1, &one, &a->i, sizeof a->i));
}

static lp_value *scalar_like(const normaliser *n, float number, lp_dtype dtype) {
  union {
    float f32;
    double f64;
    uint16_t bits;
  } data;
  size_t size = (size_t)lp_dtype_bits(dtype) / 8;
  if (dtype == LP_F64)
    data.f64 = (double)number;
  else if (dtype == LP_F16)
    data.bits = lp_f32_to_f16(number);
  else
    data.f32 = number;
  return lp_import_constant(n->im, n->loc, dtype, 0, NULL, &data, size);
}

/* Turns the attribute `name`, a number, into a scalar operand of the first operand's type. */
static lp_status float_operand(const normaliser *n, const char *name, int32_t index) {
  const Onnx__AttributeProto *a = lp_attribute_find(n->node, n->call, name);
  if (!a) return LP_OK;
  LP_TRY(lp_attribute_check(n->im, a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, n->loc));
  lp_dtype dtype = n->form->in_count > 0 && n->form->in[0] ? n->form->in[0]->type.dtype : LP_F32;
  if (dtype != LP_F32 && dtype != LP_F64 && dtype != LP_F16)
    return lp_error(n->im->diag, n->loc, "attribute '%s' wants an operand of type f16, f32 or f64, found %s", name,
                    lp_dtype_name(dtype));
  consume(n, name);
  return set_operand(n, index, name, scalar_like(n, a->f, dtype));
}

/* Before opset 13 a softmax ran over all axes from `axis` (1 unless given) on, flattened. */
static lp_status softmax_form(const normaliser *n) {
  const Onnx__AttributeProto *a = lp_attribute_find(n->node, n->call, "axis");
  if (a) LP_TRY(lp_attribute_check(n->im, a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, n->loc));
  bool old = n->im->opset < 13;
  int64_t rank = n->form->in[0] ? n->form->in[0]->type.rank : 0;
  int64_t axis = a ? a->i : old ? 1 : -1;
  consume(n, "axis");
  n->form->has_axis = true;
  n->form->axis = axis;
  n->form->flatten = old && axis != rank - 1 && axis != -1;
  return LP_OK;
}

static lp_status slice_form(const normaliser *n) {
  LP_TRY(ints_operand(n, "starts", 1));
  LP_TRY(ints_operand(n, "ends", 2));
  return ints_operand(n, "axes", 3);
}

static lp_status pad_form(const normaliser *n) {
  LP_TRY(ints_operand(n, "pads", 1));
  return float_operand(n, "value", 2);
}

static lp_status clip_form(const normaliser *n) {
  LP_TRY(float_operand(n, "min", 1));
  return float_operand(n, "max", 2);
}

/* The declared dimension `axis` of a graph's input or output. */
static const Onnx__TensorShapeProto__Dimension *declared_dim(Onnx__ValueInfoProto *const *infos, size_t count,
                                                             const char *name, size_t axis) {
  for (size_t i = 0; i < count; i++) {
    const Onnx__TypeProto *type = infos[i]->type;
    if (!lp_streq(lp_text(infos[i]->name), name)) continue;
    bool shaped = type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && type->tensor_type &&
                  type->tensor_type->shape && axis < type->tensor_type->shape->n_dim;
    return shaped ? type->tensor_type->shape->dim[axis] : NULL;
  }
  return NULL;
}

/* The present is as long as the past (a buffer for the longest sequence) or longer by the new rows. No attribute of the
 * node says which, so its declared types decide. The names of their sizes are labels, which a generation ignores, as it
 * does constant lengths where they are free. */
static void group_query_form(const normaliser *n) {
  const Onnx__GraphProto *graph = n->im->model->graph;
  if (n->call || n->node->n_input < 4 || n->node->n_output < 2) return;
  const char *past_name = lp_text(n->node->input[3]), *present_name = lp_text(n->node->output[1]);
  const Onnx__TensorShapeProto__Dimension *past = declared_dim(graph->input, graph->n_input, past_name, 2);
  const Onnx__TensorShapeProto__Dimension *present = declared_dim(graph->output, graph->n_output, present_name, 2);
  if (!past || !present || past->value_case != present->value_case) return;
  bool generates = n->im->options && n->im->options->frees_lengths, open = lp_is_open_buffer(graph, n->node);
  bool constant = past->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
  bool grows = open && (constant ? n->im->frees_lengths : generates);
  if (grows) consume(n, "sliding_window_cache");
  if (constant)
    n->form->shares_buffer = past->dim_value == present->dim_value && !grows;
  else if (past->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
    n->form->shares_buffer = lp_streq(lp_text(past->dim_param), lp_text(present->dim_param)) && !grows;
}

/* Before opset 7 a slope per channel belonged to axis 1, and did not broadcast from the last axis. */
static lp_status prelu_form(const normaliser *n) {
  const lp_value *slope = n->form->in_count > 1 ? n->form->in[1] : NULL;
  int64_t count;
  bool one = slope && lp_type_static_numel(slope->type, &count) && count == 1;
  if (n->im->opset >= 7 || !slope || one) return LP_OK;
  return lp_error(n->im->diag, n->loc, "a slope per channel in the form of opsets before 7 is not supported");
}

lp_status lp_normalise(lp_importer *im, const Onnx__NodeProto *node, const lp_call *call, lp_loc loc,
                       lp_node_form *form) {
  normaliser n = {im, node, call, loc, form};
  switch (form->kind) {
  case LP_ONNX_Softmax:
  case LP_ONNX_LogSoftmax:
  case LP_ONNX_Hardmax:
    return softmax_form(&n);
  case LP_ONNX_Slice:
    return slice_form(&n);
  case LP_ONNX_Split:
    return ints_operand(&n, "split", 1);
  case LP_ONNX_TopK:
    return topk_form(&n);
  case LP_ONNX_Pad:
    return pad_form(&n);
  case LP_ONNX_Clip:
    return clip_form(&n);
  case LP_ONNX_PRelu:
    return prelu_form(&n);
  case LP_ONNX_Dropout: /* the identity at inference, for every ratio */
    consume(&n, "ratio");
    return LP_OK;
  case LP_ONNX_MsGroupQueryAttention:
    group_query_form(&n);
    return LP_OK;
  case LP_ONNX_Squeeze:
  case LP_ONNX_Unsqueeze:
  case LP_ONNX_ReduceSum:
  case LP_ONNX_ReduceMean:
  case LP_ONNX_ReduceMax:
  case LP_ONNX_ReduceMin:
  case LP_ONNX_ReduceProd:
  case LP_ONNX_ReduceL1:
  case LP_ONNX_ReduceL2:
  case LP_ONNX_ReduceSumSquare:
  case LP_ONNX_ReduceLogSum:
  case LP_ONNX_ReduceLogSumExp:
    return ints_operand(&n, "axes", 1);
  default:
    return LP_OK;
  }
}
