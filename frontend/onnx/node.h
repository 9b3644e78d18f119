/* Nodes: the order in which they are imported, their form, and those that become several operators. */
#ifndef LP_ONNX_NODE_H
#define LP_ONNX_NODE_H

#include "frontend/onnx/importer.h"

lp_import_nodes_fn lp_import_nodes; /* im->import_nodes is set to it */
/* order[count]: indices in topological order, the given order where it is one. */
LP_MUST_USE lp_status lp_sort_nodes(lp_importer *im, Onnx__NodeProto **nodes, size_t count, const lp_call *call,
                                    size_t *order);
/* Copies the graph's nodes to kept[count] but for each Constant whose name a later Constant of the same type and shape
 * takes, with one warning; returns how many it copied. Other nodes of one name remain, and are refused later. */
size_t lp_keep_latest_constants(lp_importer *im, Onnx__NodeProto **nodes, size_t count, Onnx__NodeProto **kept);

/* ---- older opsets ---- */

enum { LP_NODE_OPERANDS = 4096, LP_FORM_CONSUMED = 4 };

/* A node on its way to an operator. */
typedef struct {
  lp_kind kind;
  lp_value **in; /* [in_count], room for five and whatever the node has */
  int32_t in_count;
  const char *consumed[LP_FORM_CONSUMED + 1]; /* attributes that became operands, NULL-terminated */
  int32_t consumed_count;
  int64_t axis; /* set on the operator when has_axis */
  bool has_axis, flatten;
  bool shares_buffer; /* GroupQueryAttention whose present keys are declared as long as the past ones */
} lp_node_form;

/* Turns attributes of older opsets into operands, in place. */
LP_MUST_USE lp_status lp_normalise(lp_importer *im, const Onnx__NodeProto *node, const lp_call *call, lp_loc loc,
                                   lp_node_form *form);

/* ---- nodes that become several operators ---- */

/* Fills im->functions; two functions of one name are an error. */
LP_MUST_USE lp_status lp_functions_index(lp_importer *im);
/* The function a node calls, or NULL. */
const Onnx__FunctionProto *lp_function_find(const lp_importer *im, const Onnx__NodeProto *node);
/* Imports the body of a function in place of the node that calls it. */
LP_MUST_USE lp_status lp_inline_function(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node,
                                         const Onnx__FunctionProto *function, const lp_call *call, lp_loc loc);
/* An If: the taken branch where the condition is constant, else both branches and a selection of their results. */
LP_MUST_USE lp_status lp_import_if(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call,
                                   lp_loc loc);
/* Parts of an If that a Loop needs. */
/* Makes a scalar of a condition that depends on the input. */
LP_MUST_USE lp_status lp_import_condition(lp_importer *im, lp_loc loc, lp_value **condition);
/* Selects `yes` where the condition holds, else `no`; both must have one type. A NULL condition holds. */
LP_MUST_USE lp_status lp_import_choice(lp_importer *im, lp_loc loc, lp_value *condition, lp_value *yes, lp_value *no,
                                       lp_value **out);
/* A Loop, unrolled; refused where the number of its trips has no bound before it runs. */
LP_MUST_USE lp_status lp_import_loop(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call,
                                     lp_loc loc);
/* Einsum is built from the operators it stands for. */
LP_MUST_USE lp_status lp_import_einsum(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node,
                                       const lp_call *call, lp_loc loc);

#endif
