/* The pipelines, in one place: which passes lead from an imported module to each state. */
#include "passes/passes.h"

#define LAYERS "fold,bind-inputs,fold,decompose,fold,recognise,fold,raise"
#define OPS    LAYERS ",lower,kv-cache,fuse,annotate"
#define PLACED OPS ",place"

const char *const lp_pipeline_layers = LAYERS;
const char *const lp_pipeline_ops = OPS;
const char *const lp_pipeline_placed = PLACED ",insert-comm";
const char *const lp_pipeline_full = PLACED ",insert-comm,plan-memory,outline";
