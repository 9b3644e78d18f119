/* Identifies nodes. Texts live in the arena of the module. */
#pragma once

#include "frontend/onnx/importer.h"

/* Returns "" for the default domain in both of its spellings. */
const char *lp_node_domain(const Onnx__NodeProto *node);
/* The version of a domain ("": the default one) that the model imports; 0 when it imports none. */
int64_t lp_domain_opset(const lp_importer *im, const char *domain);
/* Reports that the model declares no opset of the default domain. */
LP_MUST_USE lp_status lp_refuse_no_opset(const lp_importer *im, lp_loc loc);
/* Finds the operator of the IR for a node. */
bool lp_kind_find(lp_importer *im, const Onnx__NodeProto *node, lp_kind *out);
/* Adds a note with operators of the same domain that have nearly the node's name. */
void lp_note_near_kinds(lp_importer *im, const Onnx__NodeProto *node, lp_loc loc);
/* The location of a node: its name, or its first result's name when it has none. */
lp_loc lp_node_loc(const lp_importer *im, const Onnx__NodeProto *node, const lp_call *call);
/* The location of the first node that reads `name`, or the file when none does. It searches the graph, so use it for
 * messages only. */
lp_loc lp_reader_loc(const lp_importer *im, const Onnx__GraphProto *graph, const char *name);
