/* onnx: a placed module as ONNX models again, one per turn of a side. What the files of backend/onnx/ share.
 *
 *   halves.c   the folder: both programs' parts, the sides' weights, manifest.json (manifest.c)
 *   part.c     which operators are a turn, which values enter and leave it
 *   model.c    one part as ModelProto bytes
 *   graph.c    the graph being written: names, nodes, attributes;  size.c  polynomials as nodes
 *   weights.c  constants: small ones in the graph, others in the side's data file
 *   rules.c    how each op.* kind is said in ONNX, by the files lower_*.c
 *
 * Tensors are called by their names in the graph.
 */
#ifndef LP_ONNX_INTERNAL_H
#define LP_ONNX_INTERNAL_H

#include "backend/backend_internal.h"
#include "base/file.h"
#include "base/map.h"
#include "base/poly.h"

#include <onnx.pb-c.h>

typedef const char *onnx_name; /* of a tensor; NULL: absent */

/* ---- weights (weights.c) -------------------------------------------------------------------------------------------- */

/* The data file of a side, shared by all its models: each constant once. */
typedef struct {
  const char *file; /* its name beside the models */
  lp_writer *writer;
  lp_map *stored; /* what it is -> onnx_stored * */
} onnx_store;

/* ---- parts (part.c) -------------------------------------------------------------------------------------------------- */

typedef enum { ONNX_PORT_DATA, ONNX_PORT_CUT, ONNX_PORT_PAST, ONNX_PORT_PRESENT, ONNX_PORT_SIZE } onnx_role;

/* What enters or leaves a model. */
typedef struct {
  onnx_role role;
  onnx_name name;
  lp_type type;
  const lp_value *value; /* NULL: a past, a size */
  int64_t state;         /* of a past and a present */
} onnx_port;

typedef LP_VEC(onnx_port) onnx_ports;

/* A run of one side's operators between communications. */
typedef struct {
  const char *side;
  int32_t turn;
  LP_VEC(const lp_op *) ops;
  onnx_ports in, out;
  lp_buf bytes;     /* the model */
  const char *file; /* its name */
} onnx_part;

typedef struct {
  const lp_op *func;
  const char *name; /* "prefill" */
  LP_VEC(onnx_part *) parts;
} onnx_program;

/* Splits a function of a communicating module. Names what crosses as the module does, unique in the program. */
LP_MUST_USE lp_status onnx_program_create(lp_module *module, const lp_op *func, lp_arena *arena, onnx_program *out,
                                          lp_diag *diag);
void onnx_program_free(onnx_program *program);

/* ---- the graph being written (graph.c, size.c) ------------------------------------------------------------------------ */

typedef struct {
  lp_module *module;
  lp_arena *arena;
  lp_diag *diag;
  int64_t opset;
  onnx_part *part;
  onnx_store *store;
  const lp_op *op; /* being lowered: its name and location serve the nodes */
  lp_map *names;   /* taken */
  lp_map *values;  /* value -> its name */
  lp_map *made;    /* sizes and masks by what they are -> name */
  LP_VEC(Onnx__NodeProto *) nodes;
  LP_VEC(Onnx__TensorProto *) tensors;
} onnx_graph;

/* A node with one result, which is returned; absent operands are NULL. Attributes are added to the node made last. */
onnx_name onnx_node(onnx_graph *g, const char *type, int32_t count, const onnx_name *in);
#define ONNX_NODE(g, type, ...)                                                                                        \
  onnx_node((g), (type), (int32_t)(sizeof((onnx_name[]){__VA_ARGS__}) / sizeof(onnx_name)), (onnx_name[]){__VA_ARGS__})
/* A further result of the node made last. */
onnx_name onnx_more(onnx_graph *g);
void onnx_attr_i(onnx_graph *g, const char *name, int64_t value);
void onnx_attr_f(onnx_graph *g, const char *name, double value);
void onnx_attr_ints(onnx_graph *g, const char *name, const int64_t *values, int32_t count);
void onnx_attr_tensor(onnx_graph *g, const char *name, Onnx__TensorProto *tensor);
onnx_name onnx_unique(onnx_graph *g, const char *wanted);

void onnx_bind(onnx_graph *g, const lp_value *value, onnx_name name);
/* The operand as it is, or with floats of another width cast to `dtype`; NULL when it is absent. */
LP_MUST_USE lp_status onnx_operand(onnx_graph *g, int32_t index, onnx_name *out);
LP_MUST_USE lp_status onnx_operand_as(onnx_graph *g, int32_t index, lp_dtype dtype, onnx_name *out);
LP_MUST_USE lp_status onnx_value(onnx_graph *g, const lp_value *value, onnx_name *out);
onnx_name onnx_cast(onnx_graph *g, onnx_name x, lp_dtype dtype);
/* The type in which computed values are kept: few of the standard's operators take integers under 8 bits, so these are
 * widened; constants stay packed until an operator that cannot reads them. */
lp_dtype onnx_dtype(lp_dtype dtype);

/* Constants that the lowering makes. */
onnx_name onnx_i64s(onnx_graph *g, const int64_t *values, int32_t count); /* a vector */
onnx_name onnx_scalar(onnx_graph *g, lp_dtype dtype, double value);
Onnx__TensorProto *onnx_tensor(onnx_graph *g, lp_dtype dtype, int32_t rank, const int64_t *dim);
void onnx_tensor_set_data(onnx_graph *g, Onnx__TensorProto *tensor, const void *data, size_t bytes);
onnx_name onnx_initializer(onnx_graph *g, Onnx__TensorProto *tensor, const char *wanted);

/* A size as a vector of one i64, several as a shape; symbols are read off the part's inputs, or are inputs themselves. */
onnx_name onnx_size(onnx_graph *g, const lp_poly *poly);
onnx_name onnx_sizes(onnx_graph *g, const lp_poly *const *poly, int32_t count);
/* `x` of type `from` under the shape of `to`. */
onnx_name onnx_reshape(onnx_graph *g, onnx_name x, lp_type from, lp_type to);

/* ---- helpers of several rules (lower_math.c) --------------------------------------------------------------------------- */

onnx_name onnx_transpose(onnx_graph *g, onnx_name x, const int64_t *perm, int32_t rank);
onnx_name onnx_reduce(onnx_graph *g, const char *type, onnx_name x, const int64_t *axes, int32_t count, bool keep);
/* One function of op.map in `dtype`; NULL with a diagnostic when ONNX cannot say it. */
LP_MUST_USE lp_status onnx_function(onnx_graph *g, const lp_op *op, const char *fn, const onnx_name *in, int32_t count,
                                    lp_dtype dtype, onnx_name *out);
/* A constant's data at the graph's disposal. */
LP_MUST_USE lp_status onnx_constant(onnx_graph *g, const lp_value *value, onnx_name *out);
/* The weight of an op.linear as the float tensor that MatMul takes, [k][n]. `gate`: that of the gate. */
LP_MUST_USE lp_status onnx_weight(onnx_graph *g, const lp_op *op, bool gate, onnx_name *out);

/* Reports that an operator cannot be said in this opset. */
lp_status onnx_refuse(const onnx_graph *g, const char *why);

/* ---- rules ------------------------------------------------------------------------------------------------------------- */

typedef lp_status onnx_rule(onnx_graph *g, const lp_op *op, onnx_name *out); /* out[op->out_count] */

onnx_rule onnx_lower_linear, onnx_lower_matmul, onnx_lower_norm, onnx_lower_add_norm, onnx_lower_softmax,
    onnx_lower_reduce, onnx_lower_argmax, onnx_lower_topk, onnx_lower_cumsum, onnx_lower_map, onnx_lower_fused,
    onnx_lower_quantize, onnx_lower_dequantize, onnx_lower_attention, onnx_lower_kv_append, onnx_lower_rotary,
    onnx_lower_gather, onnx_lower_gather_elements, onnx_lower_concat, onnx_lower_slice, onnx_lower_transpose,
    onnx_lower_reshape, onnx_lower_expand, onnx_lower_pad, onnx_lower_windows, onnx_lower_iota, onnx_lower_dims,
    onnx_lower_fill;

/* The rule of a kind; NULL: ONNX has no words for it. */
onnx_rule *onnx_rule_find(lp_kind kind);

/* The model of a part, into part->bytes (model.c). */
LP_MUST_USE lp_status onnx_part_write(lp_module *module, onnx_part *part, onnx_store *store, int64_t opset,
                                      lp_diag *diag);
/* manifest.json (manifest.c). */
void onnx_manifest(const lp_module *module, const onnx_program *const *program, int32_t count, int64_t opset,
                   lp_buf *out);

#endif
