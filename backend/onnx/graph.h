/* The graph under construction (graph.c, size.c): nodes, attributes, tensors. Tensors are known by their names. */
#pragma once

#include "backend/onnx/part.h"
#include "base/file.h"
#include "base/map.h"

#include <onnx.pb-c.h>

typedef const char *onnx_name; /* of a tensor; NULL: absent */

/* The data file of a side, shared by all its models: each constant once. */
typedef struct {
  const char *file; /* its name in the folder of the models */
  lp_writer *writer;
  lp_map *stored; /* a key of the constant -> onnx_stored * */
} onnx_store;

typedef struct {
  lp_module *module;
  lp_arena *arena;
  lp_diag *diag;
  int64_t opset;
  onnx_part *part;
  onnx_store *store;
  const lp_op *op; /* the operator being lowered; nodes take its name and location */
  lp_map *names;   /* taken */
  lp_map *values;  /* value -> its name */
  lp_map *made;    /* sizes and masks by a description of them -> name */
  LP_VEC(Onnx__NodeProto *) nodes;
  LP_VEC(Onnx__TensorProto *) tensors;
} onnx_graph;

/* Adds a node with one result and returns the result; absent operands are NULL. Attributes are added to the newest
 * node. */
onnx_name onnx_node(onnx_graph *g, const char *type, int32_t count, const onnx_name *in);
#define ONNX_NODE(g, type, ...)                                                                                        \
  onnx_node((g), (type), (int32_t)(sizeof((onnx_name[]){__VA_ARGS__}) / sizeof(onnx_name)), (onnx_name[]){__VA_ARGS__})
/* Adds a further result to the newest node. */
onnx_name onnx_more(onnx_graph *g);
void onnx_attr_i(onnx_graph *g, const char *name, int64_t value);
void onnx_attr_f(onnx_graph *g, const char *name, double value);
void onnx_attr_s(onnx_graph *g, const char *name, const char *value);
void onnx_attr_ints(onnx_graph *g, const char *name, const int64_t *values, int32_t count);
void onnx_attr_tensor(onnx_graph *g, const char *name, Onnx__TensorProto *tensor);
onnx_name onnx_unique(onnx_graph *g, const char *wanted);

void onnx_bind(onnx_graph *g, const lp_value *value, onnx_name name);
onnx_name onnx_cast(onnx_graph *g, onnx_name x, lp_dtype dtype);
/* The type of a computed value. Few of the standard's operators take integers under 8 bits, so these are widened;
 * constants stay packed until an operator reads them that does not take the packed type. */
lp_dtype onnx_dtype(lp_dtype dtype);
/* The name that onnx_bind gave the value, or NULL. */
onnx_name onnx_bound(const onnx_graph *g, const lp_value *value);

/* Constants that the lowering makes. */
onnx_name onnx_i64s(onnx_graph *g, const int64_t *values, int32_t count); /* a vector */
onnx_name onnx_scalar(onnx_graph *g, lp_dtype dtype, double value);
Onnx__TensorProto *onnx_tensor(onnx_graph *g, lp_dtype dtype, int32_t rank, const int64_t *dim);
void onnx_tensor_set_data(onnx_graph *g, Onnx__TensorProto *tensor, const void *data, size_t bytes);
onnx_name onnx_initializer(onnx_graph *g, Onnx__TensorProto *tensor, const char *wanted);

/* Returns a size as a vector of one i64, several as a shape. Symbols are read from the dimensions of the part's inputs,
 * or are inputs themselves. */
onnx_name onnx_size(onnx_graph *g, const lp_poly *poly);
onnx_name onnx_sizes(onnx_graph *g, const lp_poly *const *poly, int32_t count);
/* Reshapes `x`, of type `from`, to the shape of `to`. */
onnx_name onnx_reshape(onnx_graph *g, onnx_name x, lp_type from, lp_type to);

onnx_name onnx_transpose(onnx_graph *g, onnx_name x, const int64_t *perm, int32_t rank);
onnx_name onnx_reduce(onnx_graph *g, const char *type, onnx_name x, const int64_t *axes, int32_t count, bool keep);

/* Reports that the operator being lowered cannot be expressed in this opset. */
LP_MUST_USE lp_status onnx_refuse(const onnx_graph *g, const char *why);
