/* Compiling a model to be verified: as it is or, where a size depends on inputs, with these as a data set has them. */
#ifndef LP_TOOLS_VERIFY_COMPILE_H
#define LP_TOOLS_VERIFY_COMPILE_H

#include "ir/ir.h"
#include "tools/verify/verify.h"

/* An input of the graph; test data is numbered by them. */
typedef struct {
  const char *name;
  lp_dtype dtype; /* known once compiled, where it is not bound */
  bool bound;     /* a constant of what was compiled last */
} lp_verify_input;

typedef struct {
  lp_arena *arena;
  lp_verify_input *input;
  size_t count;
} lp_verify_graph;

LP_MUST_USE lp_status lp_verify_read_graph(const char *model, lp_arena *arena, lp_verify_graph *out, lp_diag *diag);

typedef struct {
  const char *model, *bundle; /* where from, where to */
  const lp_verify_options *options;
  lp_verify_graph *graph; /* `dtype` and `bound` are set */
} lp_verify_compilation;

/* Compiles with the inputs bound that options->bind names. Without `set`, what is refused because a size depends on
 * inputs sets *wants_set instead of reporting; with `set`, a folder of test data, such inputs are bound to its
 * values. */
LP_MUST_USE lp_status lp_verify_compile(const lp_verify_compilation *c, const char *set, bool *wants_set,
                                        lp_diag *diag);

#endif
