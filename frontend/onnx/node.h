/* Nodes: the order in which they are imported, their form, and those that become several operators. */
#pragma once

#include "frontend/onnx/importer.h"

lp_import_nodes_fn lp_import_nodes; /* the value of im->import_nodes */
/* Fills order[count] with indices in topological order, which is the given order when that is topological. */
LP_MUST_USE lp_status lp_sort_nodes(lp_importer *im, Onnx__NodeProto **nodes, size_t count, const lp_call *call,
                                    size_t *order);
/* Copies the graph's nodes to kept[count] and returns their number. It leaves out, with one warning, each Constant with
 * the name of a later Constant of the same type and shape. Other nodes with equal names remain and are refused
 * later. */
size_t lp_keep_latest_constants(lp_importer *im, Onnx__NodeProto **nodes, size_t count, Onnx__NodeProto **kept);

/* ---- older opsets ---- */

enum { LP_NODE_OPERANDS = 4096, LP_FORM_CONSUMED = 4 };

/* A node while it becomes an operator. */
typedef struct {
  lp_kind kind;
  lp_value **in; /* [in_count], with room for five in addition to the node's own */
  int32_t in_count;
  const char *consumed[LP_FORM_CONSUMED + 1]; /* attributes that became operands, NULL-terminated */
  int32_t consumed_count;
  int64_t axis; /* set on the operator when has_axis */
  bool has_axis, flatten;
  bool shares_buffer; /* GroupQueryAttention with present keys that are declared as long as the past ones */
} lp_node_form;

/* Turns attributes of older opsets into operands, in place. */
LP_MUST_USE lp_status lp_normalise(lp_importer *im, const Onnx__NodeProto *node, const lp_call *call, lp_loc loc,
                                   lp_node_form *form);

/* ---- nodes that become several operators ---- */

/* Fills im->functions; two functions with one name are an error. */
LP_MUST_USE lp_status lp_functions_index(lp_importer *im);
/* Returns the function that a node calls, or NULL. */
const Onnx__FunctionProto *lp_function_find(const lp_importer *im, const Onnx__NodeProto *node);
/* Imports the body of a function in place of the node that calls it. */
LP_MUST_USE lp_status lp_inline_function(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node,
                                         const Onnx__FunctionProto *function, const lp_call *call, lp_loc loc);
/* Imports an If: the taken branch when the condition is constant, else both branches and a selection of their
 * results. */
/* Tells whether a part of the graph other than a merged decoder's branch with a past reads this input (if.c). */
bool lp_is_read_without_past(const Onnx__GraphProto *graph, const char *name);
LP_MUST_USE lp_status lp_import_if(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call,
                                   lp_loc loc);
/* Parts of an If that a Loop needs, too. */
/* Makes a scalar of a condition that depends on the input. */
LP_MUST_USE lp_status lp_import_condition(lp_importer *im, lp_loc loc, lp_value **condition);
/* Selects `yes` where the condition holds, else `no`; both must have one type. A NULL condition always holds. */
LP_MUST_USE lp_status lp_import_choice(lp_importer *im, lp_loc loc, lp_value *condition, lp_value *yes, lp_value *no,
                                       lp_value **out);
/* Imports a Loop by unrolling it; refuses one without a bound on its trips that is known at compile time. */
LP_MUST_USE lp_status lp_import_loop(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call,
                                     lp_loc loc);
/* Tells whether the standard's operator of this name makes or reads a sequence of tensors. */
bool lp_is_sequence_operator(const char *name);
/* Imports such an operator: a sequence is a list of values, and refused unless its length and the indices into it are
 * constants. */
LP_MUST_USE lp_status lp_import_sequence(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node,
                                         const lp_call *call, lp_loc loc);
/* Imports an Einsum as other operators. */
LP_MUST_USE lp_status lp_import_einsum(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node,
                                       const lp_call *call, lp_loc loc);
