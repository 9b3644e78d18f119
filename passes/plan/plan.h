/* plan: decides where each operator runs. This is the public header of the planner: the problem, the schedulers, the
 * evaluation of a placement, and the report. The planner reads a lowered module and machine models and includes no
 * other pass; the pass `place` writes the decision into the module. Plan families are in plan/family/family.h, sweeps
 * in plan/sweep/sweep.h.
 *
 * A plan is a placement: one side for each operator of each stage. */
#pragma once

#include "base/certificate.h"
#include "base/place.h"
#include "passes/passes.h"

/* ---- the problem (problem.c) ------------------------------------------------------------------------------------- */

/* One placeable operator of a stage, at the workload's sizes. */
typedef struct {
  lp_op *op;
  /* Bytes depend on the side's weight dtype. With ranks the cloud's figures are those of one rank. */
  double flops[LP_SIDE_COUNT], bytes[LP_SIDE_COUNT], weight_bytes[LP_SIDE_COUNT];
  double macs, elements;                                                   /* as P1 counts them */
  double ms[LP_SIDE_COUNT], low_ms[LP_SIDE_COUNT], high_ms[LP_SIDE_COUNT]; /* with the 90 % interval */
  /* Bytes that it reads and writes, weights aside, in the largest pass: in prefill one over a part of the prompt, or
   * over all of it (stages.c). */
  double activation[LP_SIDE_COUNT], whole_activation[LP_SIDE_COUNT];
  double draw_ms[LP_SIDE_COUNT]; /* part of `ms`: drawing a token, where `draws` and the machine file has that figure */
  /* The part of the cloud's `ms` in which ranks gather this operator's result, the bytes, and the number of gathers. */
  double gather_ms, gather_bytes;
  int32_t gathers;
  bool draws; /* the sampler draws a token from this operator's result */
  /* The group of KV caches that it reads or writes, -1 none; all users of a group must be on one side. */
  int32_t state;
  int32_t layer; /* -1 before the first layer, layer_count after the last */
  /* Depends on positions only, so each side that needs it computes it. In @decode also an operator of @main that only
   * @prefill has: an encoder's, which @decode replaces by caches. */
  bool free;
  int8_t pin;             /* the side that the request wants it on (lp_side), -1: any */
  const int32_t *weights; /* ids of the constants it reads, of one numbering for both stages */
  int32_t weight_count;
} lp_plan_op;

/* A value that must cross the link when its producer and a consumer are on different sides. */
typedef struct {
  int32_t producer; /* index in ops; -1: an input, on the device */
  int32_t consumer;
  int32_t value; /* edges of one value with several consumers share it: it crosses once */
  double bytes;  /* 0 when the producer is free */
  const lp_value *data;
} lp_plan_edge;

/* One stage. `ops` are in program order, which is a topological one; `edges` are sorted by consumer. Weights and states
 * (groups of KV caches, numbered in order of first use) belong to the whole model and are the same in both stages. */
typedef struct {
  lp_stage stage;
  bool whole_prompts; /* of prefill: lp_plan_take_whole_prompts */
  int32_t op_count, edge_count, value_count, layer_count, weight_count, state_count;
  /* The operator with the logits, -1 none: its side samples, and the token returns to the device, 4 bytes per
   * sequence. */
  int32_t result;
  double result_bytes;
  lp_plan_op *ops;
  lp_plan_edge *edges;
  const double *weight_size[LP_SIDE_COUNT]; /* [weight_count] bytes in the side's dtype */
  const double *state_size[LP_SIDE_COUNT];  /* [state_count] bytes at isl + osl tokens; with ranks, of one of them */
  const double *state_prompt_size;          /* [state_count] bytes at isl tokens: what comm.kv_move carries; with ranks
                                             * so many that no plan with a move meets a limit on TTFT */
} lp_plan_problem;
/* The same for one operand: with int4, tables of embeddings and tied heads are int8, because rows of a table are read
 * as they are, and a head decides the token. */
lp_storage lp_plan_operand_storage(const lp_compile_request *request, lp_side side, const lp_op *op, int32_t operand);
/* The attribute `weight_dtype` that makes a backend store the weight so; NULL: none is needed, or none is stored so. */
const char *lp_plan_weight_dtype(const lp_compile_request *request, lp_side side, const lp_op *op);
/* The operand that an operator reads in that form when it runs on `side`: the weight of a product, or an embedding's
 * table in code for a processor. -1: none. */
int32_t lp_plan_converted_operand(const lp_compile_request *request, lp_side side, const lp_op *op);

/* Both stages of a module that is at least lowered, in `arena`: from @main, or from @prefill and @decode. */
LP_MUST_USE lp_status lp_plan_build(lp_module *module, const lp_compile_request *request, lp_arena *arena,
                                    lp_plan_problem out[LP_STAGE_COUNT], lp_diag *diag);
/* The same for plan `plan` of a placed module that has a family; plan 0 is the one that lp_plan_build builds. */
LP_MUST_USE lp_status lp_plan_build_of(lp_module *module, const lp_compile_request *request, int32_t plan,
                                       lp_arena *arena, lp_plan_problem out[LP_STAGE_COUNT], lp_diag *diag);
/* Reads the sides of a placed module into side[stage][op_count], in `arena`. Of more than two places, the cloud's side
 * is that of all but the device. */
void lp_plan_sides(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *side[LP_STAGE_COUNT], lp_arena *arena);

/* ---- the stages of a module (stages.c) --------------------------------------------------------------------------- */

/* The block that a stage runs: that of the stage's function, or of @main when there is none; NULL when the module has
 * neither. */
lp_block *lp_plan_stage_block(const lp_module *module, lp_stage stage);
/* The number of plans of a placed module; 1 without a family. */
int32_t lp_plan_count(const lp_module *module);
/* The function of a stage in plan `plan`; NULL when there is none. */
lp_op *lp_plan_func(const lp_module *module, lp_stage stage, int32_t plan);
/* Records the names of the functions of `count` plans on @prefill. */
void lp_plan_func_names_set(lp_module *module, lp_op *prefill, lp_stage stage, const char *const *names, int32_t count);

/* ---- schedulers (schedulers.c) ----------------------------------------------------------------------------------- */

/* The scheduler's proof of a plan's distance from the best plan, in units of the objective. The dual bound rests on
 * prices of the limits: per ms of a stage's bound and per byte of a side's memory, and on the share of a message that
 * each read is charged: the `way` of a minimum cut, in the scheduler's scratch arena or the module. `complete`: the
 * search was exhaustive, so the plan itself is the best one, or `cheapest` is. */
typedef struct {
  bool known, complete;
  double lower_bound, dual_bound;
  double per_ms[LP_STAGE_COUNT], per_byte[LP_SIDE_COUNT];
  const double *way;
  int32_t way_count;
  /* [op_count] the plan of the least objective that was found, where the tolerance made the scheduler take a faster
   * one; NULL: the plan itself. Owned as `way` is. */
  lp_side *cheapest[LP_STAGE_COUNT];
} lp_plan_proof;

/* Writes the proof as attributes of @prefill, and reads it back; it is not `known` when there are none. `cheapest` is
 * written by operators, and lp_plan_cheapest_read reads it. */
void lp_plan_proof_write(lp_module *module, lp_op *prefill, const lp_plan_proof *proof);
lp_plan_proof lp_plan_proof_read(const lp_module *module);
/* Records that an operator of the placed module is on this side in the cheapest plan, and on the other in the plan. */
void lp_plan_cheapest_write(lp_module *module, lp_op *op, lp_side side);
/* Fills side[stage][op_count], in `arena`, with the cheapest plan of the proof. False when that is the plan itself. */
bool lp_plan_cheapest_read(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *side[LP_STAGE_COUNT],
                           lp_arena *arena);

/* A scheduler fills side[stage][op_count] for both stages; the sides of free operators mean nothing. `proof` may be
 * NULL; a scheduler that proves nothing does not write to it. */
typedef lp_status lp_scheduler_place(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                                     lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch,
                                     lp_diag *diag);
typedef struct {
  const char *name, *summary;
  bool ignores_link;
  lp_scheduler_place *place;
} lp_scheduler;
const lp_scheduler *lp_scheduler_find(const char *name); /* a name of schedulers.def */
size_t lp_scheduler_names(const char *const **names);
extern const char *const lp_scheduler_default;
/* Finds the scheduler; reports an unknown name and suggests the nearest ones. */
LP_MUST_USE lp_status lp_scheduler_get(const char *name, const lp_scheduler **out, lp_diag *diag);

/* Asks the scheduler called `scheduler` for the sides, then puts all users of a KV cache on one side and each view on
 * the side of its operand. Allocates side[stage][op_count] in `scratch`. `proof` may be NULL. */
LP_MUST_USE lp_status lp_plan_choose(const lp_plan_problem problem[LP_STAGE_COUNT], const char *scheduler,
                                     const lp_compile_request *request, lp_side *side[LP_STAGE_COUNT],
                                     lp_plan_proof *proof, lp_arena *scratch, lp_diag *diag);

/* A prompt of more than LP_PROMPT_PART tokens runs in parts where prefill and decode have every operator on the same
 * side; else in one pass, which needs more memory (stages.c). */
bool lp_plan_runs_in_parts(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *const side[LP_STAGE_COUNT]);
/* Makes the problem one of whole prompts; its operators are then in `arena`. */
void lp_plan_take_whole_prompts(lp_plan_problem problem[LP_STAGE_COUNT], lp_arena *arena);
/* lp_plan_choose for a prompt in parts; where the plan cannot run in parts, for whole prompts, in which `problem` then
 * is. */
LP_MUST_USE lp_status lp_plan_choose_to_run(lp_plan_problem problem[LP_STAGE_COUNT], const char *scheduler,
                                            const lp_compile_request *request, lp_side *side[LP_STAGE_COUNT],
                                            lp_plan_proof *proof, lp_arena *scratch, lp_diag *diag);
/* An attribute of @prefill: its plan is one of whole prompts. */
#define LP_WHOLE_PROMPTS "whole_prompts"

/* Reports a pin that matches no operator, and more private layers than the model has (pin.c). */
LP_MUST_USE lp_status lp_plan_pin_used(const lp_plan_problem *problem, const lp_compile_request *request,
                                       lp_diag *diag);
/* Checks the form of a pin: "GLOB=device" or "GLOB=cloud". */
LP_MUST_USE lp_status lp_plan_pin_check(const char *text, lp_diag *diag, lp_loc loc);
/* Checks the form of an objective: "cost", "latency", "energy", or a sum of those with factors (objective.c). */
LP_MUST_USE lp_status lp_plan_objective_check(const char *text, lp_diag *diag, lp_loc loc);

/* As a dtype of a request, it lets the planner choose. */
#define LP_DTYPE_AUTO "auto"
/* Replaces "auto" in the request by the most precise types that the machines have, at most as precise as the file's,
 * with which the request's scheduler meets the SLA and both memories. Among types of equal error it takes those of the
 * better plan; where no types meet the constraints, those that come nearest. The module must be annotated (types.c). */
LP_MUST_USE lp_status lp_plan_choose_types(lp_module *module, lp_compile_request *request, lp_diag *diag);

/* ---- times and cost of a placement (evaluate.c) ------------------------------------------------------------------ */

/* The constraints of a request. Sweeps keep their numbers in journals, so append new ones. */
typedef enum {
  LP_LIMIT_NONE,
  LP_LIMIT_DEVICE_MEMORY,
  LP_LIMIT_CLOUD_MEMORY,
  LP_LIMIT_TTFT,
  LP_LIMIT_TPOT,
  LP_LIMIT_COUNT
} lp_plan_limit;
extern const char *const lp_plan_limit_names[LP_LIMIT_COUNT]; /* "device_memory", ...; NULL for LP_LIMIT_NONE */

/* The device's share of a request (device.c): joules of computing, of waiting at idle power and of its radio, and their
 * sum; the share of its purchase, over its life of continuous use, and the price of its energy, and their sum; that sum
 * with `cost_usd`. `cloud_j` is the cloud's computing; while the device computes, it serves others. NaN: a file lacks a
 * figure. */
typedef struct {
  double busy_j, waiting_j, radio_j, energy_j, cloud_j;
  double purchase_usd, energy_usd, cost_usd, total_usd;
} lp_plan_device;

/* True times, communication included, in ms; cost in USD for the whole request: `batch` sequences of isl + osl tokens.
 * A message costs rtt / 2 + 8 bytes / bandwidth; everything that one side has ready when the other takes over travels
 * as one message. KV moves happen at the end of prefill and are part of TTFT. With sessions, one decode step of the
 * cloud serves all of them, and the request is charged its share: cloud_busy_ms. */
typedef struct {
  bool feasible;
  lp_plan_limit binding; /* the constraint that fails; LP_LIMIT_NONE when feasible */
  double ttft_ms, tpot_ms, e2e_ms, cloud_busy_ms, device_busy_ms;
  double cost_usd, cost_per_mtok_usd, energy_j; /* busy time x price or power, of both machines: what plans minimise */
  lp_plan_device device;
  double prefill_device_ms, prefill_cloud_ms, prefill_link_ms, decode_device_ms, decode_cloud_ms, decode_link_ms;
  double kv_move_ms;
  int64_t crossings_prefill, crossings_decode; /* tensors that cross the link; the returning token is one */
  int64_t messages_prefill, messages_decode;
  double bytes_up, bytes_down; /* over the whole request */
  int64_t drafts;              /* with early exits: device passes per question; 0: none */
  double questions;            /* with early exits: questions to the cloud per token */
  double device_weight_bytes, cloud_weight_bytes;
  double device_memory_bytes, cloud_memory_bytes; /* weights, KV at isl + osl tokens, activations */
} lp_plan_result;

/* What a ms of an answer costs besides computing, in USD: a share of the device's purchase, waiting, and the radio
 * while it is awake. NaN: unknown (device.c). */
double lp_plan_device_usd_per_ms(const lp_compile_request *request);
void lp_plan_evaluate(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                      lp_side *const side[LP_STAGE_COUNT], lp_plan_result *out);
/* Plans the request with its scheduler, and evaluates the plan, which may miss the constraints. */
LP_MUST_USE lp_status lp_plan_try(lp_module *module, const lp_compile_request *request, lp_plan_result *out,
                                  lp_diag *diag);
/* Replaces the request's ranks by the number, 1, 2, 4 or 8, of the best plan, which meets the constraints if any does
 * (types.c). `request->cloud` must be the machine of one rank; it becomes `*all`, the machines of all ranks. Types that
 * are left to the planner stay so. The module must be annotated. */
LP_MUST_USE lp_status lp_plan_choose_ranks(lp_module *module, lp_compile_request *request, struct lp_machine *all,
                                           lp_diag *diag);
/* The probability that TTFT and TPOT are within the SLA: the share of the states of a link that varies; NaN for other
 * links. */
double lp_plan_probability(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                           lp_side *const side[LP_STAGE_COUNT]);
/* Orders two results by the objective, the better one first: < 0, 0, > 0. A feasible plan is better than any infeasible
 * one; of two infeasible plans the one nearer to its constraints is better. */
int lp_plan_compare(const lp_plan_result *a, const lp_plan_result *b, const lp_compile_request *request);
/* The gap between a plan's objective and its lower bound, as a share of the objective; NaN when no bound is known. */
double lp_plan_gap(const lp_plan_proof *proof, const lp_plan_result *result, const lp_compile_request *request);
/* Bytes of memory that a side has; 0: not known. */
double lp_plan_memory_limit(const lp_compile_request *request, lp_side side);

/* A split program is one total order of operators in turns. An operator's turn is the most changes of place on a path
 * from an input, which is on the device, to it. Within a turn the places follow each other by number. After its
 * operators of a turn a place sends to each other place the values that are needed there, as one message (order.c). */
typedef struct {
  int32_t *op;   /* [count] indices of the problem's operators that are not free, in order */
  int32_t *turn; /* [op_count] by operator, -1 for free ones; of two places even turns are the device's */
  int32_t count, turns;
} lp_plan_order;
void lp_plan_order_make(const lp_plan_problem *problem, const uint8_t *place, lp_arena *arena, lp_plan_order *out);
/* Sets the turns of place[op_count], and returns one more than the last. */
int32_t lp_plan_place_turns(const lp_plan_problem *problem, const uint8_t *place, int32_t *turn);

/* ---- the front of cost against time (front.c) -------------------------------------------------------------------- */

/* A plan of the front, and the limits with which the planner finds it or a cheaper one; 0: none, for the cheapest. The
 * layers below `cut` are on the device in a stage; the cheapest plan need not be such a cut. */
typedef struct {
  lp_plan_result result;
  double ttft_ms, tpot_ms;
  int64_t cut[LP_STAGE_COUNT];
} lp_plan_front_row;
enum { LP_FRONT_MOST = 5 };
/* At most LP_FRONT_MOST plans from the fastest answer to the cheapest one, and the knee among them. */
typedef struct lp_plan_front {
  lp_plan_front_row row[LP_FRONT_MOST];
  int32_t count, knee;
} lp_plan_front;
/* The front of feasible plans; it sorts `plans` and drops some. Where no plan is below the chord between the fastest
 * and the cheapest one, the knee is the cheapest if that is free, else the plan between them that loses least of time
 * or cost; of two plans the cheapest. */
void lp_plan_front_make(lp_plan_front_row *plans, int32_t count, lp_plan_front *out);
/* The front of a request that has a cloud and no limits on TTFT and TPOT, for the scheduler "exact". It is empty if no
 * plan is feasible. The module must be annotated. */
LP_MUST_USE lp_status lp_plan_front_find(lp_module *module, const lp_compile_request *request, lp_plan_front *out,
                                         lp_diag *diag);
/* Sets the limits of the knee as those of the request. */
void lp_plan_front_limit(const lp_plan_front *front, lp_compile_request *request);

/* ---- the report (report/report.c) -------------------------------------------------------------------------------- */

/* What a report says of a module that is at least `placed`, or at least `annotated` (then without a plan): model,
 * machines, plan, baselines, operators. Gathered once; the module may not change while it is used. */
typedef struct lp_report lp_report;
LP_MUST_USE lp_status lp_report_create(lp_module *module, const lp_compile_request *request, lp_report **out,
                                       lp_diag *diag);
void lp_report_free(lp_report *report); /* NULL is allowed */
/* Tells plans apart: a text of 16 digits that depends on every operator's side, on the types of weights and caches and
 * on the ranks (predictions.c). */
void lp_report_placement(const lp_report *report, char out[17]);
bool lp_report_crosses(const lp_report *report); /* whether the plan sends anything over the link */
/* The certificate of the plan, valid as long as the report; NULL: the module changed after it was planned. */
const lp_certificate *lp_report_certificate(lp_report *report);
/* States another lower bound than the scheduler's: what a checker of the certificate proves. The plan's proof is then
 * not `complete`. `aim` is where the checker's search has to aim to prove it; NaN: at the bound itself. */
void lp_report_state_bound(lp_report *report, double bound, double aim);
/* Appends the report. Formats: txt json csv html, line: where the layers run and the figures in one line, without its
 * end, and front: the front of the request, as lines; nothing without one. Deterministic. `table1` adds the counting of
 * P1's Table I. */
LP_MUST_USE lp_status lp_report_write(lp_report *report, const char *format, bool table1, lp_buf *out, lp_diag *diag);
