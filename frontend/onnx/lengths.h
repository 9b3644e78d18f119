/* Lengths that a file states as numbers. Tools that fix the sizes of a finished model leave its graph unchanged, so
 * that it can compute other lengths, too. */
#pragma once

#include "frontend/onnx/importer.h"

/* Tells whether axis `axis` of the input is a count of tokens that the file states as a number. Element type, rank and
 * name decide: tokens, masks and positions are integers; a past is a float tensor of four axes with a longer
 * present, or an open buffer. */
bool lp_is_constant_length(const Onnx__GraphProto *graph, const Onnx__TypeProto__Tensor *tensor, const char *name,
                           int32_t axis);
/* Tells whether the label of a mask's length contradicts the other inputs' labels: it is that of the past, without the
 * new tokens, or a sum of labels that no input has. The graph decides then. */
bool lp_is_wrong_label(const Onnx__GraphProto *graph, const Onnx__TypeProto__Tensor *tensor, const char *name,
                       int32_t axis);
/* Tells whether a GroupQueryAttention may grow its caches although the file declares presents as long as pasts. The
 * operator reads as many rows of a buffer as its lengths say and writes the new rows after them, so a generation
 * computes the same with buffers and with caches that grow. The same is true of a buffer as long as the node's window
 * (sliding_window_cache), which keeps all rows that the window shows. Only the node may read pasts and presents, and
 * the graph must take tokens. */
bool lp_is_open_buffer(const Onnx__GraphProto *graph, const Onnx__NodeProto *node);
/* Tells whether an input of the graph has such an axis. */
bool lp_has_constant_length(const Onnx__GraphProto *graph);
/* Tells whether the module, imported with those lengths as symbols, is correct for other lengths: the lengths of the
 * tokens must still be symbols, and no operator may take a certain row or a certain number of rows. */
bool lp_lengths_are_free(lp_module *module);
