/* If: inlines branches. With a known condition it inlines one of them; else it inlines both, and Where selects from
 * their results. That is exact, because operators have no side effects and do not trap. */
#include "frontend/onnx/attr.h"
#include "frontend/onnx/build.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/node.h"
#include "frontend/onnx/scope.h"
#include "frontend/onnx/tensor.h"

/* Appends rows of zeros to the shorter of two constant tables that differ only in their count: one rotary table for
 * short and one for long sequences. Rows past the end of the selected table are never used. */
static lp_status lengthen_shorter(lp_importer *im, lp_loc loc, lp_value **yes, lp_value **no) {
  const lp_type a = (*yes)->type, b = (*no)->type;
  int64_t rows[2], columns[2];
  if (a.dtype != b.dtype || a.rank != 2 || b.rank != 2 || !lp_value_is_constant(*yes) || !lp_value_is_constant(*no) ||
      !lp_type_static_dim(a, 0, &rows[0]) || !lp_type_static_dim(b, 0, &rows[1]) ||
      !lp_type_static_dim(a, 1, &columns[0]) || !lp_type_static_dim(b, 1, &columns[1]) || columns[0] != columns[1])
    return LP_OK;
  lp_value **shorter = rows[0] < rows[1] ? yes : no;
  int64_t pads[] = {0, 0, rows[0] < rows[1] ? rows[1] - rows[0] : rows[0] - rows[1], 0}, four = 4;
  lp_value *in[] = {*shorter, lp_import_constant(im, loc, LP_I64, 1, &four, pads, sizeof pads)};
  lp_type unknown = {.rank = -1};
  return lp_import_built(im, lp_op_create(im->module, LP_ONNX_Pad, loc, 2, in, 1, &unknown), shorter);
}

lp_status lp_import_choice(lp_importer *im, lp_loc loc, lp_value *condition, lp_value *yes, lp_value *no,
                           lp_value **out) {
  *out = yes;
  if (!condition || yes == no) return LP_OK;
  if (yes && no) LP_TRY(lengthen_shorter(im, loc, &yes, &no));
  if (!yes || !no || !lp_type_equal(yes->type, no->type)) {
    lp_status status =
        lp_error(im->diag, loc,
                 "its condition depends on the input, and the shape or type of a result depends on the condition");
    lp_note_binding(im->diag, loc, condition);
    return status;
  }
  lp_value *in[] = {condition, yes, no};
  lp_type unknown = {.rank = -1};
  return lp_import_built(im, lp_op_create(im->module, LP_ONNX_Where, loc, 3, in, 1, &unknown), out);
}

lp_status lp_import_condition(lp_importer *im, lp_loc loc, lp_value **condition) {
  const int64_t none = 0;
  int64_t count;
  if ((*condition)->type.dtype != LP_BOOL) return lp_error(im->diag, loc, "its condition is not of type bool");
  if (!lp_type_static_numel((*condition)->type, &count) || count != 1)
    return lp_error(im->diag, loc, "its condition is not one element");
  if ((*condition)->type.rank == 0) return LP_OK;
  lp_value *in[] = {*condition, lp_import_constant(im, loc, LP_I64, 1, &none, NULL, 0)};
  lp_type unknown = {.rank = -1};
  return lp_import_built(im, lp_op_create(im->module, LP_ONNX_Reshape, loc, 2, in, 1, &unknown), condition);
}

static const char cache_switch[] = "use_cache_branch";

/* Tells whether the input selects between a branch with and one without a past, as in merged decoders. */
static bool is_cache_switch(const lp_value *value) {
  return !value->def && value->name && lp_streq(value->name, cache_switch);
}

static bool reads(const Onnx__GraphProto *graph, const char *name) {
  LP_FOR_REFS(Onnx__NodeProto, node, graph->node, graph->n_node) {
    for (size_t k = 0; k < node->n_input; k++)
      if (lp_streq(lp_text(node->input[k]), name)) return true;
    for (size_t k = 0; k < node->n_attribute; k++)
      if (node->attribute[k]->g && reads(node->attribute[k]->g, name)) return true;
  }
  return false;
}

bool lp_is_read_without_past(const Onnx__GraphProto *graph, const char *name) {
  for (size_t i = 0; i < graph->n_output; i++)
    if (lp_streq(lp_text(graph->output[i]->name), name)) return true;
  LP_FOR_REFS(Onnx__NodeProto, node, graph->node, graph->n_node) {
    bool switches = node->n_input == 1 && lp_streq(lp_text(node->input[0]), cache_switch);
    for (size_t k = 0; k < node->n_input; k++)
      if (lp_streq(lp_text(node->input[k]), name)) return true;
    for (size_t k = 0; k < node->n_attribute; k++)
      if (node->attribute[k]->g && !(switches && lp_streq(lp_text(node->attribute[k]->name), "then_branch")) &&
          reads(node->attribute[k]->g, name))
        return true;
  }
  return false;
}

/* Checks that the branch with a past can serve both cases, with an empty past for the first step: it must read
 * everything that the other branch reads. In an encoder-decoder model it does not, because it reuses keys of the
 * encoder's states that only the other branch computes. */
static lp_status check_cache_switch(lp_importer *im, const Onnx__NodeProto *node, const lp_call *call, lp_loc loc,
                                    const lp_value *condition) {
  const Onnx__AttributeProto *with = lp_attribute_find(node, call, "then_branch");
  const Onnx__AttributeProto *without = lp_attribute_find(node, call, "else_branch");
  if (!with || !with->g || !without || !without->g) return LP_OK; /* the caller refuses it as a missing attribute */
  for (size_t i = 0; i < im->model->graph->n_input; i++) {
    const char *name = lp_text(im->model->graph->input[i]->name);
    if (!reads(without->g, name) || reads(with->g, name)) continue;
    lp_status status =
        lp_error(im->diag, loc, "its branch with a past does not read input '%s', which the other branch reads", name);
    lp_note_binding(im->diag, loc, condition);
    return status;
  }
  return LP_OK;
}

static lp_status import_branch(lp_importer *im, const lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call,
                               lp_loc loc, const char *name, lp_value **results) {
  const Onnx__AttributeProto *branch = lp_attribute_find(node, call, name);
  if (!branch || !branch->g) return lp_error(im->diag, loc, "attribute '%s' is missing", name);
  if (branch->g->n_output < node->n_output)
    return lp_error(im->diag, loc, "its branch has %zu outputs, %zu wanted", branch->g->n_output, node->n_output);
  lp_scope body = lp_scope_open(im, scope);
  LP_TRY(lp_import_body(im, &body, branch->g, call, loc));
  for (size_t i = 0; i < node->n_output; i++)
    LP_TRY(lp_scope_result(im, &body, lp_text(branch->g->output[i]->name), loc, &results[i]));
  return LP_OK;
}

lp_status lp_import_if(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call, lp_loc loc) {
  lp_value *condition = NULL;
  int64_t taken = 1;
  if (node->n_input == 1) LP_TRY(lp_scope_find(im, scope, lp_text(node->input[0]), &condition));
  if (!condition) return lp_error(im->diag, loc, "an If takes exactly one input, its condition");
  lp_value **yes = LP_NEW_ARRAY(im->scratch, lp_value *, node->n_output + 1);
  lp_value **no = LP_NEW_ARRAY(im->scratch, lp_value *, node->n_output + 1);
  bool switches = is_cache_switch(condition), known = switches || lp_import_number(condition, &taken);
  if (switches && (im->options->encoder || im->options->without_past))
    taken = 0; /* the branch without a past, which computes the keys of the encoder's states */
  else if (switches)
    LP_TRY(check_cache_switch(im, node, call, loc, condition));
  im->has_cache_switch |= switches && taken;
  if (!known) LP_TRY(lp_import_condition(im, loc, &condition));
  if (!known || taken) LP_TRY(import_branch(im, scope, node, call, loc, "then_branch", yes));
  if (!known || !taken) LP_TRY(import_branch(im, scope, node, call, loc, "else_branch", no));
  for (size_t i = 0; i < node->n_output; i++) {
    lp_value *value = taken ? yes[i] : no[i];
    if (!lp_text(node->output[i])[0]) continue;
    if (!known) LP_TRY(lp_import_choice(im, loc, condition, yes[i], no[i], &value));
    LP_TRY(lp_scope_define(im, scope, lp_text(node->output[i]), value, loc));
  }
  return LP_OK;
}
