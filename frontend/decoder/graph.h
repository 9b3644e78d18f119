/* Appends operators to a block, as the importer of ONNX would. */
#pragma once

#include "ir/ir.h"

/* After a failure every function returns NULL, NULL operands give NULL results, and `status` keeps the failure. */
typedef struct {
  lp_module *module;
  lp_block *block;
  const char *path, *node; /* of the locations */
  lp_diag *diag;
  lp_status status;
} lp_graph;

/* Creates an operator without placing it, so that its attributes can be set; NULL when an operand is NULL. */
lp_op *lp_graph_begin(lp_graph *g, lp_kind kind, int32_t in_count, lp_value *const *in, int32_t out_count);
/* Places the operator, infers its types and returns its first result. */
lp_value *lp_graph_end(lp_graph *g, lp_op *op);
/* Operators without attributes, of one and of two operands. */
lp_value *lp_graph_op1(lp_graph *g, lp_kind kind, lp_value *x);
lp_value *lp_graph_op2(lp_graph *g, lp_kind kind, lp_value *x, lp_value *y);
lp_value *lp_graph_cast(lp_graph *g, lp_value *x, lp_dtype dtype); /* returns x itself when it has the type */
/* Constants; the data is copied. */
lp_value *lp_graph_floats(lp_graph *g, int32_t rank, const int64_t *dim, const float *data);
lp_value *lp_graph_float(lp_graph *g, double value); /* scalar */
lp_value *lp_graph_int(lp_graph *g, int64_t value);  /* scalar */
lp_value *lp_graph_ints(lp_graph *g, int64_t count, const int64_t *data);
