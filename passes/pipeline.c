/* The pipelines: the passes that lead from an imported module to each state. */
#include "passes/passes.h"

#define LAYERS "fold,bind-inputs,fold,decompose,fold,recognise,fold,raise,exits"
#define OPS "lower,kv-cache,fuse,tie-weights,mark-sensitive,annotate"
#define SPLIT "insert-comm,shard,join,plan-memory,outline"

const char *const lp_pipeline_layers = LAYERS;
const char *const lp_pipeline_ops = LAYERS "," OPS;
const char *const lp_pipeline_placed = LAYERS "," OPS ",place,insert-comm";
const char *const lp_pipeline_full = LAYERS "," OPS ",place," SPLIT;
const char *const lp_pipeline_split = SPLIT;
const char *const lp_pipeline_split_profiled = SPLIT "{profile=true}";
