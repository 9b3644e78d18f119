/* passes: every change a module goes through between import and emission. One pass is one file and one descriptor; the
 * list is passes.def, pipelines are arrays in pipeline.c. A pass knows IR and machine models; it knows no file format
 * and no target.
 *
 * The module's states, in order (CONTRACT of what the next reader may rely on):
 *
 *   imported     @main of onnx.* operators, types known                                        (frontend)
 *   bound        roles of inputs and outputs known; attention_mask, position_ids of the generation
 *                protocol replaced by what they are; past/present pairs named                   (bind-inputs, fold)
 *   raised       idioms are onnx.RMSNormalization, onnx.Attention, ...; @main is layer.* groups (decompose, raise)
 *   lowered      @main is op.* operators; KV caches are llmpart.state and op.kv_append;
 *                every operator has `name`, `layer` (i64, -1 outside) and `layer_kind`          (lower)
 *   fused        linear epilogues, add_norm, op.fused                                           (fuse)
 *   annotated    flops, bytes_read, bytes_written (poly) on every operator                      (annotate)
 *   placed       @prefill and @decode replace @main; each operator has side "device" or "cloud" or "both" (cheap
 *                operators of positions alone, copied to each side that needs them)             (place)
 *   communicating  every operator has one side and reads values of its own side only; comm.*    (insert-comm)
 *   planned      `buffer` (i64s, one per result; numbered per function and side from 0; LP_ALIAS results share their
 *                operand's buffer; constants have none; function arguments: attr `arg_buffer_device`,
 *                `arg_buffer_cloud` (i64s, -1 unused) on the function). Function attributes `slot_device`,
 *                `slot_cloud` (i64s: buffer -> slot; buffers of one slot never live at once)    (plan-memory)
 *   outlined     `segment` (i64, numbered per function and side from 0) on every operator but constants and comm.*:
 *                a straight run of one side's operators between communications                  (outline)
 */
#ifndef LP_PASSES_H
#define LP_PASSES_H

#include "hwmodels/hwmodels.h"
#include "ir/ir.h"

/* What a compilation is asked for; text members are borrowed. Passes read what concerns them. */
typedef struct lp_request {
  const struct lp_machine *device, *cloud; /* cloud NULL: everything on the device */
  const struct lp_link *link;
  double ttft_ms, tpot_ms; /* the SLA; 0: none */
  int64_t isl, osl, batch; /* workload: prompt tokens, generated tokens */
  const char *scheduler;   /* a name of lp_scheduler_find */
  const char *objective;   /* cost latency energy */
  int64_t device_memory;   /* bytes; 0: the machine's own */
  const char *dtype_device, *dtype_cloud; /* weight dtype; NULL: as in the file */
  const int64_t *exits;    /* layers whose exit heads are kept */
  int32_t exit_count;
  bool generation; /* bind the generation protocol and give the model KV caches; false: keep the graph's own inputs */
  int64_t cut;     /* scheduler "cut": layers [0, cut) on the device */
} lp_request;

typedef struct {
  lp_diag *diag;
  const lp_request *request;
  lp_arena *scratch; /* emptied after each pass */
  const char *options; /* text between braces in `-p 'pass{...}'`, or NULL */
} lp_pass_context;

typedef struct {
  const char *name, *summary;
  const char *needs;   /* the state it starts from, or "" */
  const char *options; /* names of the options it takes, separated by spaces; NULL: none */
  lp_status (*run)(lp_module *module, lp_pass_context *context);
} lp_pass;

const lp_pass *lp_pass_find(const char *name); /* NULL when unknown */
size_t lp_pass_list(const lp_pass *const **list);
/* The value of option `name` in context->options ("a=1,b=2"), in scratch; NULL when it is not given. */
const char *lp_pass_option(const lp_pass_context *context, const char *name);

typedef struct {
  bool verify_each;
  bool print_after_all;
  const char *print_after;          /* a pass's name, or NULL */
  void (*print)(void *user, const char *pass, const lp_module *module);
  void (*time)(void *user, const char *pass, double ms); /* NULL: not timed */
  void *user;
} lp_run_options;

/* Runs "pass,pass{option=value}" or a pipeline's name in order; stops at the first failure. */
LP_MUST_USE lp_status lp_passes_run(lp_module *module, const char *pipeline, const lp_request *request,
                                    const lp_run_options *options, lp_diag *diag);

/* The pipelines: from imported to each stop. */
extern const char *const lp_pipeline_layers;  /* -> raised */
extern const char *const lp_pipeline_ops;     /* -> annotated */
extern const char *const lp_pipeline_placed;  /* -> communicating */
extern const char *const lp_pipeline_full;    /* -> outlined */

/* ---- planning ------------------------------------------------------------------------------------------------------ */

typedef enum { LP_STAGE_PREFILL, LP_STAGE_DECODE, LP_STAGE_COUNT } lp_stage;
typedef enum { LP_PLACE_DEVICE, LP_PLACE_CLOUD } lp_place;

/* One placeable operator of a stage, at the workload's sizes. */
typedef struct {
  lp_op *op;
  double flops, bytes, weight_bytes;
  double device_ms, cloud_ms;
  int64_t state; /* KV cache it reads or writes, -1 none: they must agree with op.kv_append's side */
  bool free;     /* positions alone: computed wherever it is needed */
} lp_plan_op;

/* A value that costs bytes when its producer and a consumer sit on different sides. */
typedef struct {
  int32_t producer; /* index in ops; -1: an input, on the device */
  int32_t consumer;
  int32_t value;    /* edges of one value with several consumers share it: it crosses once */
  double bytes;
} lp_plan_edge;

typedef struct {
  lp_stage stage;
  lp_plan_op *ops;
  int32_t op_count;
  lp_plan_edge *edges;
  int32_t edge_count, value_count;
  int32_t result; /* the operator whose side samples: its token returns to the device, 4 bytes per sequence */
} lp_plan_problem;

/* A scheduler fills side[op_count] for both stages. LP_INFEASIBLE when the SLA cannot hold (sides are then its best). */
typedef struct {
  const char *name, *summary;
  lp_status (*place)(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_request *request,
                     lp_place *side[LP_STAGE_COUNT], lp_arena *scratch, lp_diag *diag);
} lp_scheduler;
const lp_scheduler *lp_scheduler_find(const char *name); /* greedy layer cloud-only device-only cut (exact) */

/* What a placement comes to (true times, communication included). Times in ms, cost in USD. */
typedef struct {
  bool feasible;
  const char *binding; /* the constraint that fails: "ttft", "tpot", "device_memory", "cloud_memory", or NULL */
  double ttft_ms, tpot_ms, e2e_ms, cloud_busy_ms, device_busy_ms, cost_usd, cost_per_mtok_usd;
  double prefill_device_ms, prefill_cloud_ms, prefill_link_ms, decode_device_ms, decode_cloud_ms, decode_link_ms;
  int64_t crossings_prefill, crossings_decode;
  double bytes_up, bytes_down;
  double device_weight_bytes, cloud_weight_bytes;
  double lower_bound_usd, gap; /* negative: not known */
} lp_plan_result;

/* The report of a module that is at least `placed` (plan) or `annotated` (then only costs): model, machines, plan,
 * baselines, operators. Formats: txt json csv html. Deterministic. `table1` adds P1's Table I counting. */
LP_MUST_USE lp_status lp_report_write(lp_module *module, const lp_request *request, const char *format, bool table1,
                                      lp_buf *out, lp_diag *diag);

#endif
