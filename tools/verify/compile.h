/* Compiles a model for verification: unchanged or, where a size depends on inputs, with these inputs bound to the
 * values of a data set. */
#pragma once

#include "ir/ir.h"
#include "tools/verify/verify.h"

/* An input of the graph. Test data refers to inputs by number. */
typedef struct {
  const char *name;
  lp_dtype dtype; /* known after compilation when the input is not bound */
  bool bound;     /* a constant in the latest compilation */
} lp_verify_input;

typedef struct {
  lp_arena *arena;
  lp_verify_input *input;
  size_t count;
} lp_verify_graph;

LP_MUST_USE lp_status lp_verify_read_graph(const char *model, lp_arena *arena, lp_verify_graph *out, lp_diag *diag);

typedef struct {
  const char *model, *bundle; /* the path of the model, and that of the bundle to write */
  const char *encoder;        /* the file of the encoder to join to the model; NULL: none */
  const lp_verify_options *options;
  lp_verify_graph *graph; /* `dtype` and `bound` are set */
} lp_verify_compilation;

/* Compiles with the inputs bound that options->bind names. A refusal because a size depends on inputs sets *wants_set,
 * without a report, when `set` is NULL; otherwise `set` is a folder of test data, and such inputs are bound to its
 * values. */
LP_MUST_USE lp_status lp_verify_compile(const lp_verify_compilation *c, const char *set, bool *wants_set,
                                        lp_diag *diag);
