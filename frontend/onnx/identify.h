/* What a node is, and where. Texts live in the arena of the module. */
#ifndef LP_ONNX_IDENTIFY_H
#define LP_ONNX_IDENTIFY_H

#include "frontend/onnx/importer.h"

/* "" for the default domain in both of its spellings. */
const char *lp_node_domain(const Onnx__NodeProto *node);
/* The version of a domain ("": the default one) that the model imports; 0 when it imports none. */
int64_t lp_domain_opset(const lp_importer *im, const char *domain);
/* Reports that the model declares no opset of the default domain. */
LP_MUST_USE lp_status lp_refuse_no_opset(const lp_importer *im, lp_loc loc);
/* The operator of the IR that a node is. */
bool lp_kind_find(lp_importer *im, const Onnx__NodeProto *node, lp_kind *out);
/* Notes the operators of the same domain that are nearly called like the node. */
void lp_note_near_kinds(lp_importer *im, const Onnx__NodeProto *node, lp_loc loc);
/* Where a node is: its name, or its first result's where it has none. */
lp_loc lp_node_loc(const lp_importer *im, const Onnx__NodeProto *node, const lp_call *call);
/* Where the first node is that reads `name`; the file where none does. For messages: it searches. */
lp_loc lp_reader_loc(const lp_importer *im, const Onnx__GraphProto *graph, const char *name);

#endif
