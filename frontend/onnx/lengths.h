/* Lengths that a file states as numbers: tools that fix the sizes of a finished model leave its graph as it was, so
 * that it computes other lengths too. */
#ifndef LP_ONNX_LENGTHS_H
#define LP_ONNX_LENGTHS_H

#include "frontend/onnx/importer.h"

/* Is axis `axis` of the input a count of tokens that the file states as a number? Decided by element type, rank and
 * name: tokens, masks and positions are integers; a past is a float tensor of four axes whose present is longer. */
bool lp_is_constant_length(const Onnx__GraphProto *graph, const Onnx__TypeProto__Tensor *tensor, const char *name,
                           int32_t axis);
/* Has an input of the graph such an axis? */
bool lp_has_constant_length(const Onnx__GraphProto *graph);
/* Is the module, imported with those lengths as symbols, right for other lengths: are the lengths of the tokens still
 * symbols, and does no operator take a certain row or a certain number of rows? */
bool lp_lengths_are_free(lp_module *module);

#endif
