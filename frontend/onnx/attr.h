/* Attributes of nodes. */
#pragma once

#include "frontend/onnx/importer.h"

/* The attribute of a node, or the one that a node in a function's body refers to; NULL when absent. */
const Onnx__AttributeProto *lp_attribute_find(const Onnx__NodeProto *node, const lp_call *call, const char *name);
/* Follows references of a function's body to the attributes of its call. */
const Onnx__AttributeProto *lp_attribute_resolve(const Onnx__AttributeProto *attribute, const lp_call *call);
/* Sets the operator's attributes by its schema; those named in `consumed` (NULL-terminated) are left out. */
LP_MUST_USE lp_status lp_import_attributes(lp_importer *im, lp_op *op, const Onnx__NodeProto *node, const lp_call *call,
                                           const char *const *consumed);
/* Checks that an attribute has the ONNX type. */
LP_MUST_USE lp_status lp_attribute_check(lp_importer *im, const Onnx__AttributeProto *attribute,
                                         Onnx__AttributeProto__AttributeType type, lp_loc loc);
