/* passes: every change a module goes through between import and emission. One pass is one file and one descriptor; the
 * list is passes.def, pipelines are arrays in pipeline.c. A pass knows IR and machine models; it knows no file format
 * and no target.
 *
 * The module's states, in order (CONTRACT of what the next reader may rely on):
 *
 *   imported     @main of onnx.* operators, types known                                        (frontend)
 *   bound        roles of inputs and outputs known; attention_mask, position_ids of the generation
 *                protocol replaced by what they are; past/present pairs named                   (bind-inputs, fold)
 *   raised       idioms are onnx.RMSNormalization, onnx.Attention, ...; @main is layer.* groups
 *                                                                                  (decompose, recognise, raise); with early
                exits, the function has `exits` (i64s) and their logits come last               (exits)
 *   lowered      @main is op.* operators; KV caches are llmpart.state and op.kv_append;
 *                every operator has `name`, `layer` (i64, -1 outside) and `layer_kind`     (lower, kv-cache)
 *   fused        linear epilogues, add_norm, op.fused                                           (fuse)
 *   annotated    flops, bytes_read, bytes_written (poly) on every operator                      (annotate)
 *   placed       @prefill and @decode replace @main; each operator has side "device" or "cloud" or "both" (cheap
 *                operators of positions alone, copied to each side that needs them); op.linear whose weights the
 *                side stores in another type: `weight_dtype`                                    (place)
 *   communicating  every operator has one side and reads values of its own side only; comm.*; the
 *                functions carry `communicating`                                                (insert-comm)
 *   planned      `buffer` (i64s, one per result; numbered per function and side from 0; LP_ALIAS results share their
 *                operand's buffer; constants have none; function arguments: attr `arg_buffer_device`,
 *                `arg_buffer_cloud` (i64s, -1 unused) on the function). Function attributes `slot_device`,
 *                `slot_cloud` (i64s: buffer -> slot; buffers of one slot never live at once)    (plan-memory)
 *   outlined     `segment` (i64, numbered per function and side from 0) on every operator but constants and comm.*:
 *                a straight run of one side's operators between communications                  (outline)
 */
#ifndef LP_PASSES_H
#define LP_PASSES_H

#include "base/side.h"
#include "hwmodels/hwmodels.h"
#include "ir/ir.h"

/* What a compilation is asked for; text members are borrowed. Passes read what concerns them. */
typedef struct lp_compile_request {
  const struct lp_machine *device, *cloud; /* cloud NULL: everything on the device */
  const struct lp_link *link;
  double ttft_ms, tpot_ms; /* the SLA; 0: none */
  int64_t isl, osl, batch; /* workload: prompt tokens, generated tokens */
  int64_t sessions;        /* requests that the cloud decodes at a time, as one batch; 0: 1 */
  const char *scheduler;   /* a name of lp_scheduler_find */
  const char *objective;   /* cost, latency, energy or a sum like "cost+1e-6*latency"; NULL: cost */
  const char *const *pins; /* "GLOB=device", "GLOB=cloud": operators by name; the last that fits counts */
  int32_t pin_count;
  bool near_suffices;     /* no branch and bound where it would be needed: how the points of a family are planned */
  bool feasible_suffices; /* any plan that meets the constraints will do: how fixes are found */
  bool keep_private;      /* embeddings and layers [0, private_layers) stay on the device */
  int64_t private_layers;
  int64_t device_memory;                      /* bytes; 0: the machine's own */
  const char *dtype_device, *dtype_cloud;     /* weight dtype; NULL: as in the file. Planning takes no LP_DTYPE_AUTO */
  bool chose_dtype_device, chose_dtype_cloud; /* lp_plan_choose_types did */
  const char *kv_dtype;                       /* of KV caches: f32 f16 bf16; NULL: f32 */
  const int64_t *exits;                       /* layers whose exit heads are kept */
  int32_t exit_count;
  bool generation; /* bind the generation protocol and give the model KV caches; false: keep the graph's own inputs */
  int64_t plans;   /* a family of up to so many plans, from which the runtime takes one for each request; 0, 1: one */
  int64_t cut;     /* scheduler "cut": layers [0, cut) on the device */
  const char *
      cut_node; /* scheduler "cut": instead, what this ONNX node needs and itself on the device; "auto": half the work */
} lp_compile_request;

typedef struct {
  lp_diag *diag;
  const lp_compile_request *request;
  lp_arena *scratch;   /* emptied after each pass */
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
  const char *print_after; /* a pass's name, or NULL */
  void (*print)(void *user, const char *pass, const lp_module *module);
  void (*time)(void *user, const char *pass, double ms); /* NULL: not timed */
  void *user;
} lp_run_options;

/* Runs "pass,pass{option=value}" or a pipeline's name in order; stops at the first failure. */
LP_MUST_USE lp_status lp_passes_run(lp_module *module, const char *pipeline, const lp_compile_request *request,
                                    const lp_run_options *options, lp_diag *diag);

/* The pipelines: from imported to each stop. */
extern const char *const lp_pipeline_layers; /* -> raised */
extern const char *const lp_pipeline_ops;    /* -> annotated */
extern const char *const lp_pipeline_placed; /* -> communicating */
extern const char *const lp_pipeline_full;   /* -> outlined */
extern const char *const lp_pipeline_split;  /* placed -> outlined, for who looks at the module in between */

/* Is an onnx.* operator always replaced by others before it is lowered? */
bool lp_kind_decomposes(lp_kind kind);

/* insert-comm to outline, for code that tells when each operator begins. */
extern const char *const lp_pipeline_split_profiled;

/* ---- a decoder without a file (decoder.c) ---------------------------------------------------------------------------- */

typedef struct {
  int64_t layers, hidden, ffn, heads, kv_heads, vocab, context;
  lp_dtype dtype; /* of weights and activations */
  bool causal;    /* false: attention is costed over all pairs, as P1 does */
} lp_decoder_shape;

/* @main of a Llama with inputs input_ids [b, s], result logits [b, r, vocab]; lowered, not fused. Its weights lie one after
 * the other in "weights.bin", lp_decoder_weight_bytes of them. */
lp_module *lp_decoder_create(const lp_decoder_shape *shape);
int64_t lp_decoder_weight_bytes(const lp_module *module);

/* ---- planning ------------------------------------------------------------------------------------------------------ */

typedef enum { LP_STAGE_PREFILL, LP_STAGE_DECODE, LP_STAGE_COUNT } lp_stage;

/* One placeable operator of a stage, at the workload's sizes. */
typedef struct {
  lp_op *op;
  double flops, bytes[LP_SIDE_COUNT], weight_bytes[LP_SIDE_COUNT];         /* bytes depend on the side's weight dtype */
  double macs, elements;                                                   /* P1's own counting */
  double ms[LP_SIDE_COUNT], low_ms[LP_SIDE_COUNT], high_ms[LP_SIDE_COUNT]; /* with the 90 % interval */
  double draw_ms[LP_SIDE_COUNT]; /* of which drawing a token, where `draws` and the machine was measured doing that */
  bool draws;                    /* a token is drawn from what it computes */
  int32_t state;          /* group of KV caches that it reads or writes, -1 none: all of a group must be on one side */
  int32_t layer;          /* -1 before the first layer, layer_count behind the last */
  bool free;              /* positions alone: computed wherever it is needed */
  int8_t pin;             /* the side that the request wants it on (lp_side), -1: any */
  const int32_t *weights; /* ids of the constants it reads, the same in both stages */
  int32_t weight_count;
} lp_plan_op;

/* A value that costs bytes when its producer and a consumer sit on different sides. */
typedef struct {
  int32_t producer; /* index in ops; -1: an input, on the device */
  int32_t consumer;
  int32_t value; /* edges of one value with several consumers share it: it crosses once */
  double bytes;  /* 0 when the producer is free */
  const lp_value *data;
} lp_plan_edge;

/* One stage. `ops` stand in program order, which is a topological one; `edges` are sorted by consumer. Weights and states
 * (groups of KV caches, numbered in order of first use) are the whole model's, the same in both stages. */
typedef struct {
  lp_stage stage;
  int32_t op_count, edge_count, value_count, layer_count, weight_count, state_count;
  int32_t result; /* the operator whose side samples, -1 none: its token returns to the device, 4 bytes per sequence */
  double result_bytes;
  lp_plan_op *ops;
  lp_plan_edge *edges;
  const double *weight_size[LP_SIDE_COUNT]; /* [weight_count] bytes in the side's dtype */
  const double *state_size;                 /* [state_count] bytes at isl + osl tokens */
  const double *state_prompt_size;          /* [state_count] bytes at isl tokens: what comm.kv_move carries */
} lp_plan_problem;

/* Both stages of a module that is at least lowered, in `arena`: from @main, or from @prefill and @decode. */
LP_MUST_USE lp_status lp_plan_build(lp_module *module, const lp_compile_request *request, lp_arena *arena,
                                    lp_plan_problem out[LP_STAGE_COUNT], lp_diag *diag);

/* What is known of a plan's distance from the best one, in units of the objective. The dual bound rests on prices of the
 * limits: per ms of a stage's bound and per byte of a side's memory, and on how much of a message each read is charged: the
 * `way` of a minimum cut, in the scheduler's scratch arena or the module. A complete search proves the plan itself best. */
typedef struct {
  bool known, complete;
  double lower_bound, dual_bound;
  double per_ms[LP_STAGE_COUNT], per_byte[LP_SIDE_COUNT];
  const double *way;
  int32_t way_count;
} lp_plan_proof;

/* The problem of one plan of a placed module with a family; plan 0 is what lp_plan_build builds. */
#define LP_DTYPE_AUTO "auto"
/* In place of "auto" in the request: the most precise types that the machines have, and the file's own at most, with which the
 * request's scheduler meets the SLA and both memories; among those of equal error the ones of the better plan; where none does,
 * the ones that come nearest. The module is annotated. */
LP_MUST_USE lp_status lp_plan_choose_types(lp_module *module, lp_compile_request *request, lp_diag *diag);

LP_MUST_USE lp_status lp_plan_build_of(lp_module *module, const lp_compile_request *request, int32_t plan,
                                       lp_arena *arena, lp_plan_problem out[LP_STAGE_COUNT], lp_diag *diag);

/* A scheduler fills side[stage][op_count] for both stages; the sides of free operators mean nothing. */
typedef struct {
  const char *name, *summary;
  bool
      ignores_link; /* takes communication as hidden: a plan whose true times miss the SLA is a warning, not an error */
  lp_status (*place)(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                     lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch, lp_diag *diag);
} lp_scheduler; /* `proof` may be NULL and is left alone by schedulers that prove nothing */
const lp_scheduler *lp_scheduler_find(const char *name); /* exact greedy layer cloud-only device-only cut */
size_t lp_scheduler_names(const char *const **names);
extern const char *const lp_scheduler_default;

/* What a placement comes to (true times, communication included). Times in ms, cost in USD for the whole request:
 * `batch` sequences of isl + osl tokens. A message costs rtt / 2 + 8 bytes / bandwidth; what one side has ready when the
 * other takes over travels as one message. KV moves are the end of prefill: TTFT has them. With sessions,
 * decode's cloud operators take the time of all together and the request is charged its share: cloud_busy_ms. */
typedef struct {
  bool feasible;
  const char *binding; /* the constraint that fails: "ttft", "tpot", "device_memory", "cloud_memory", or NULL */
  double ttft_ms, tpot_ms, e2e_ms, cloud_busy_ms, device_busy_ms, cost_usd, cost_per_mtok_usd,
      energy_j; /* cost: busy time x price of either machine */
  double prefill_device_ms, prefill_cloud_ms, prefill_link_ms, decode_device_ms, decode_cloud_ms, decode_link_ms;
  double kv_move_ms;
  int64_t crossings_prefill, crossings_decode; /* tensors that cross the link; the returning token is one */
  int64_t messages_prefill, messages_decode;
  double bytes_up, bytes_down; /* over the whole request */
  double device_weight_bytes, cloud_weight_bytes;
  double device_memory_bytes, cloud_memory_bytes; /* weights, KV at isl + osl tokens, activations */
} lp_plan_result;

void lp_plan_evaluate(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                      lp_side *const side[LP_STAGE_COUNT], lp_plan_result *out);
/* "cost", "latency", "energy", or a sum of those with factors. */
LP_MUST_USE lp_status lp_plan_objective_check(const char *text, lp_diag *diag, lp_loc loc);
/* "GLOB=device" or "GLOB=cloud". */
LP_MUST_USE lp_status lp_plan_pin_check(const char *text, lp_diag *diag, lp_loc loc);
/* What `a` is worse by than `b` under the objective, an infeasible plan being worse than any feasible one: < 0, 0, > 0. */
int lp_plan_compare(const lp_plan_result *a, const lp_plan_result *b, const lp_compile_request *request);
/* The sides of a module that is placed, read back into side[stage][op_count]. */
void lp_plan_sides(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *side[LP_STAGE_COUNT], lp_arena *arena);

/* The report of a module that is at least `placed` (plan) or `annotated` (then only costs): model, machines, plan,
 * baselines, operators. Formats: txt json csv html. Deterministic. `table1` adds P1's Table I counting. */
LP_MUST_USE lp_status lp_report_write(lp_module *module, const lp_compile_request *request, const char *format,
                                      bool table1, lp_buf *out, lp_diag *diag);

#endif
