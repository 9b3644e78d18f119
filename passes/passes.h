/* passes: every change a module goes through between import and emission. One pass is one file and one descriptor; the
 * list is passes.def, pipelines are arrays in pipeline.c. A pass knows IR and machine models; it knows no file format
 * and no target.
 *
 * A module goes through the states of lp_module_state, in this order. A pass says the state that it needs and the
 * state that it makes, and the runner checks both. state.c has the table of the states: names, meanings, how each is
 * recognised. */
#pragma once

#include "base/side.h"
#include "hwmodels/hwmodels.h"
#include "ir/ir.h"

/* A module in a state has what the earlier states promise, too. */
typedef enum {
  /* @main of onnx.* operators, types known. bind-inputs then finds the roles of inputs and outputs, names past/present
   * pairs, and replaces attention_mask and position_ids of the generation protocol by computed values; decompose and
   * recognise replace idioms by onnx.RMSNormalization, onnx.Attention, ... */
  LP_STATE_IMPORTED,
  /* @main is layer.* groups. With early exits the function has `exits` (i64s), and their logits are its last
   * results. */
  LP_STATE_RAISED,
  /* @main is op.* operators, each with `name`, `layer` (i64, -1 outside) and `layer_kind`. kv-cache makes KV caches
   * llmpart.state and op.kv_append; fuse makes linear epilogues, op.add_norm and op.fused. */
  LP_STATE_LOWERED,
  /* Operators have `flops`, `bytes_read` and `bytes_written` (poly), unless one of them is beyond 64 bits. A function
   * in which no operator has them carries the attribute `annotated`. */
  LP_STATE_ANNOTATED,
  /* @prefill and @decode replace @main. Each operator has `side`: "device", "cloud", the name of one of the functions'
   * `places`, or "both" (cheap operators of positions only, copied to each place that needs them). An op.linear has
   * `weight_dtype` when its place stores the weights in another type. */
  LP_STATE_PLACED,
  /* Each operator has one place and reads values of its own place only; comm.* move the others. The functions have
   * `communicating`. */
  LP_STATE_COMMUNICATING,
  /* Operators that their place's code may run together have the same `join` (i64, numbered per function from 0): they
   * do not depend on each other, and only constants and aliases are between them.
   * Operators have `buffer` (i64s, one per result; numbered per function and place from 0; LP_ALIAS results share their
   * operand's buffer; constants have none); functions have `arg_buffer_device`, `arg_buffer_cloud` (i64s, -1 unused)
   * and `slot_device`, `slot_cloud` (i64s: buffer -> slot; buffers of one slot never live at once). With
   * `places` they are `arg_buffer.NAME` and `slot.NAME`. */
  LP_STATE_PLANNED,
  /* Each operator but constants and comm.* has `segment` (i64, numbered per function and place from 0): a straight run
   * of one place's operators between communications. */
  LP_STATE_OUTLINED,
  LP_STATE_COUNT
} lp_module_state;

typedef enum { LP_STAGE_PREFILL, LP_STAGE_DECODE, LP_STAGE_COUNT } lp_stage;

/* "prefill" and "decode": the functions that replace @main once a module is placed. */
extern const char *const lp_stage_names[LP_STAGE_COUNT];

/* The modes in which a plan with early exits generates tokens; `llmpart run --mode` names the same ones. */
typedef enum { LP_EXITS_FULL, LP_EXITS_EXACT, LP_EXITS_THRESHOLD, LP_EXITS_STANDALONE, LP_EXITS_COUNT } lp_exits_mode;
extern const char *const lp_exits_modes[LP_EXITS_COUNT]; /* "full", "exact", .. (plan/exits.c) */

/* The mode for which a plan is made, and the figures of its exits. LP_EXITS_FULL: the cloud computes every token. */
typedef struct {
  lp_exits_mode mode;
  double rate;      /* exact: the chance that a draft is confirmed; threshold: the share of tokens taken at exits */
  double row_share; /* bytes of a row of hidden states on the link, as a share of the plan's own */
  double theta;     /* threshold: the confidence of tokens that are taken at exits; else 0 */
  /* threshold: the runs of the device's layers per token, as a share of all its layers. Layers after an exit that gave
   * the token wait, and then run once for several tokens. */
  double layer_runs;
  const char *codec; /* the encoding of these rows: "f32", "f16", "int8" or "int4"; NULL: not known */
} lp_exit_rates;

/* What was measured of a weight. */
typedef struct {
  int64_t count;
  double *value; /* [count] */
} lp_measured_vector;

/* The request that a compilation serves. Text members are borrowed. Each pass reads the members that concern it. */
typedef struct lp_compile_request {
  const struct lp_machine *device, *cloud; /* cloud NULL: everything on the device */
  const struct lp_link *link;
  double ttft_ms, tpot_ms; /* the SLA; 0: none */
  int64_t isl, osl, batch; /* workload: prompt tokens, generated tokens */
  int64_t past;            /* tokens that the KV caches hold before the prompt */
  int64_t sessions;        /* requests that the cloud decodes at a time, as one batch; 0: 1 */
  const char *scheduler;   /* a name of lp_scheduler_find */
  const char *objective;   /* cost, latency, energy or a sum like "cost+1e-6*latency"; NULL: cost */
  /* The scheduler "exact" takes the plan of least latency that it finds with an objective of at most (1 + tolerance)
   * times the least one. 0: it takes the plan of least objective. */
  double tolerance;
  const char *const *pins; /* "GLOB=device", "GLOB=cloud": operators by name; the last match counts */
  int32_t pin_count;
  /* Skip branch and bound even where it would be needed; the points of a plan family are planned so. */
  bool near_suffices;
  bool plan_is_known;     /* search for a better one with less work; pairs of places are planned so */
  bool feasible_suffices; /* stop at any plan that meets the constraints; fixes are found so */
  bool keep_private;      /* embeddings and layers [0, private_layers) stay on the device */
  int64_t private_layers;
  int64_t device_memory; /* bytes; 0: the machine's own */
  /* How many experts of each mixture the device's memory holds, those that tokens choose most often; the others come
   * from its storage whenever a token chooses them. 0: all. */
  int64_t device_experts;
  int64_t hot_experts;  /* experts of each mixture that are placed apart from the rest (divide-experts); 0: all */
  bool experts_counted; /* the shares of tokens that choose each expert were measured */
  /* Weight dtype; NULL: as in the file. Only lp_plan_choose_types accepts LP_DTYPE_AUTO. */
  const char *dtype_device, *dtype_cloud;
  bool chose_dtype_device, chose_dtype_cloud; /* lp_plan_choose_types chose the dtype */
  /* The code of each side, for reports: "cuda sm_53"; NULL: unknown. It may be for another processor than the one that
   * the machine's figures describe. */
  const char *code[LP_SIDE_COUNT];
  bool code_is_other[LP_SIDE_COUNT];
  bool code_lacks_bf16[LP_SIDE_COUNT]; /* the code's processor does not compute in it: LP_DTYPE_AUTO leaves it out */
  /* "auto": the CPU rounds the activations of products with integer weights to int8, and those of products with bf16
   * weights to bf16; "f32": it never does; NULL: lp_rounds_activations() decides. */
  const char *activations;
  /* "search": beside weights in int4, the products that rounding hurts most keep int8, while the weights grow by at
   * most `quantise_budget`, a share; NULL and "plain": none do. */
  const char *quantise;
  double quantise_budget;
  bool weighs_rounding; /* weights are rounded by the activations that were measured for them */
  const char *kv_dtype; /* of KV caches: f32 f16 bf16 int8 int4; NULL: f32 */
  const int64_t *exits; /* layers that keep their exit heads */
  int32_t exit_count;
  lp_exit_rates exit_rates;
  bool generation; /* bind the generation protocol and give the model KV caches; false: keep the graph's own inputs */
  /* Ranks that run the cloud's half together, each on its part of the weights; 0 and 1: one. `cloud` is then the
   * machine of each of them, but at the price and power of all (lp_hw_of_ranks), and an operator's time in the cloud is
   * that of one rank's part and of gathering the parts over the interconnect. */
  int64_t ranks;
  bool chose_ranks;                           /* lp_plan_choose_ranks chose them */
  const struct lp_interconnect *interconnect; /* NULL: gathers take no time */
  int64_t plans; /* the most plans of a family; the runtime takes one of them for each request. 0 and 1: no family */
  int64_t cut;   /* scheduler "cut": layers [0, cut) on the device */
  /* Scheduler "cut" without `cut`: the last ONNX node on the device, together with everything that it depends on.
   * "auto" takes half of the work. */
  const char *cut_node;
  /* More than two places, over which the pass `place` plans, with its plan; NULL: it plans a device and a cloud. */
  struct lp_places_solution *places;
  bool joins[LP_PLACES_MAX];         /* the place's code can run operators together that the pass join marks */
  const struct lp_plan_front *front; /* from which the limits come; NULL: the user gave them, or there are none */
  double measured_ttft_ms, measured_tpot_ms; /* of a run, for the report to compare with; 0: none */
} lp_compile_request;

/* The half of a divided mixture of experts that an operator computes a part of, as its name says (divide-experts): that
 * of the experts which tokens choose most often, "*.hot", or of the others, "*.rest". */
typedef enum { LP_HALF_NONE, LP_HALF_HOT, LP_HALF_REST } lp_mixture_half;
lp_mixture_half lp_op_half(const struct lp_op *op);
/* Removes what the pass annotate wrote on an operator that has changed. */
void lp_op_remove_costs(struct lp_op *op);

enum { LP_MOST_RANKS = 64 }; /* of lp_compile_request.ranks */

/* Tells whether activations are rounded to the type of the weights that they are multiplied by. Without `activations`
 * they are if the request names bf16, int8 or int4 for either side's weights: who rounds weights wants their speed,
 * while a file's own weights keep the sums that the file means. */
bool lp_rounds_activations(const lp_compile_request *request);

typedef struct {
  lp_diag *diag;
  const lp_compile_request *request;
  lp_arena *scratch;   /* emptied after each pass */
  const char *options; /* text between braces in `-p 'pass{...}'`, or NULL */
} lp_pass_context;

typedef struct {
  const char *name, *summary;
  /* The module is at least `needs` before the pass and at least `makes` after it. A pass that needs less than
   * LP_STATE_PLACED works on @main and refuses a placed module. */
  lp_module_state needs, makes;
  /* The earliest state that the pass may undo, so that the passes that made it must run again; LP_STATE_COUNT: none. A
   * pass that undoes another state has a fault, which the runner reports. */
  lp_module_state breaks;
  const char *options; /* names of the options that the pass takes, separated by spaces; NULL: none */
  lp_status (*run)(lp_module *module, lp_pass_context *context);
} lp_pass;

const lp_pass *lp_pass_find(const char *name); /* NULL when unknown */
size_t lp_pass_list(const lp_pass *const **list);
/* The value of option `name` in context->options ("a=1,b=2"), in the scratch arena; NULL when it is absent. */
const char *lp_pass_option(const lp_pass_context *context, const char *name);

typedef struct {
  bool verify_each;
  bool print_after_all;
  const char *print_after; /* a pass's name, or NULL */
  void (*print)(void *user, const char *pass, const lp_module *module);
  void (*time)(void *user, const char *pass, double ms); /* NULL: not timed */
  void *user;
} lp_run_options;

/* Runs "pass,pass{option=value}" or a named pipeline in order; stops at the first failure and returns its status. */
LP_MUST_USE lp_status lp_passes_run(lp_module *module, const char *pipeline, const lp_compile_request *request,
                                    const lp_run_options *options, lp_diag *diag);

/* The pipelines. Each leads from the imported state to the state in its comment. */
extern const char *const lp_pipeline_layers; /* -> raised */
extern const char *const lp_pipeline_ops;    /* -> annotated */
extern const char *const lp_pipeline_placed; /* -> communicating */
extern const char *const lp_pipeline_full;   /* -> outlined */
extern const char *const lp_pipeline_split;  /* placed -> outlined, for callers that look at the module in between */

/* Tells whether an onnx.* operator is always replaced by others before it is lowered. */
bool lp_kind_decomposes(lp_kind kind);

/* The pipeline from insert-comm to outline, for code that reports when each operator begins. */
extern const char *const lp_pipeline_split_profiled;
