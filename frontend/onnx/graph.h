/* The imported graph, the inputs that the user gives as constants, and the census of its operators. */
#pragma once

#include "frontend/onnx/importer.h"

/* The graph to import: the main one, or the one that options->subgraph names. */
LP_MUST_USE lp_status lp_model_graph(lp_importer *im, const Onnx__GraphProto **out);
/* Adds a note for each graph that the node holds, with the option that imports it. */
void lp_note_subgraphs(const lp_importer *im, const Onnx__NodeProto *node, lp_loc loc);
/* Reads the default domain's opset. A refusal names the first node of `graph` (or NULL) to which it applies. A graph
 * with only nodes of other domains needs no such opset; nodes of its functions are refused one by one. */
LP_MUST_USE lp_status lp_read_opset(lp_importer *im, const Onnx__GraphProto *graph);
/* Imports im->model into im->module. */
LP_MUST_USE lp_status lp_import_model(lp_importer *im);

/* The same, or the value that an input of a generation gets without one: how many positions have logits. */
const lp_input_binding *lp_binding_of(const lp_importer *im, const Onnx__GraphProto *graph, const char *name,
                                      lp_type type);
/* Checks that every binding names an input of the graph, once. */
LP_MUST_USE lp_status lp_bindings_check(lp_importer *im, const Onnx__GraphProto *graph);
/* Appends the constant. Sizes that `type` leaves open become those of the value in the whole module. */
LP_MUST_USE lp_status lp_import_binding(lp_importer *im, const lp_input_binding *binding, lp_type type, lp_value **out);

/* Counts the operators for lp_onnx_census. */
LP_MUST_USE lp_status lp_census_take(lp_importer *im, lp_arena *arena, lp_operator_count **out, size_t *count);
