/* What planning shares: the problem's ground rules, the order in which a split program runs, the schedulers. */
#ifndef LP_PLAN_INTERNAL_H
#define LP_PLAN_INTERNAL_H

#include "base/side.h"
#include "passes/passes_internal.h"

/* ---- problem (problem.c) ------------------------------------------------------------------------------------- */

bool lp_plan_is_placeable(const lp_op *op); /* op.* and no communication */
/* The dtype in which a side stores a linear operator's weight that the file has in `own`. */
lp_storage lp_plan_weight_storage(const lp_compile_request *request, lp_side place, lp_dtype own);
/* Is this operand stored in the side's dtype? The matrices of op.linear are; tables and vectors stay as they are. */
bool lp_plan_weight_converted(const lp_op *op, int32_t operand);

/* ---- numbers (numbers.c) ------------------------------------------------------------------------------------- */

/* The values of a module's symbols in a stage as each side sees them: the cloud decodes for all sessions at once. */
typedef struct {
  const lp_compile_request *request;
  double *value[LP_SIDE_COUNT]; /* [count], in an arena */
  size_t count;
  double
      pass_bytes[LP_SIDE_COUNT]; /* weights and caches that the stage reads, all of it on that side; 0 where the machine
                                      * does not ask (lp_op_facts) */
} lp_plan_sizes;
/* The block that the stage runs: of its own function, else of @main; NULL: there is neither. */
lp_block *lp_plan_stage_block(const lp_module *module, lp_stage stage);
void lp_plan_sizes_set(lp_plan_sizes *sizes, const lp_module *module, const lp_compile_request *request, lp_stage stage,
                       lp_arena *arena);
/* Fills the numbers of item->op, whose closed forms are `cost`. */
void lp_plan_op_price(const lp_plan_sizes *sizes, const lp_cost *cost, lp_plan_op *item);
/* Bytes of a value of the request itself. */
double lp_plan_value_bytes(const lp_plan_sizes *sizes, lp_type type);
/* Bytes of a constant operand as the side stores it. */
double lp_plan_weight_bytes(const lp_compile_request *request, lp_side place, const lp_op *op, int32_t operand);
/* Bytes of a KV cache (llmpart.state) that holds so many tokens. */
double lp_plan_state_bytes(const lp_module *module, const lp_compile_request *request, const lp_op *state,
                           double tokens, lp_arena *arena);

/* ---- order (order.c) ----------------------------------------------------------------------------------------- */

/* A split program is one total order of operators in turns: the device begins, and whoever has the turn runs all that it
 * can before the other takes over; what the other needs then crosses as one message. */
typedef struct {
  int32_t *op;   /* [count] indices of the problem's operators that are not free, in order */
  int32_t *turn; /* [op_count] by operator, -1 for free ones: even is the device's, odd the cloud's */
  int32_t count, turns;
} lp_plan_order;
/* By operator, as above; returns how many turns there are. */
int32_t lp_plan_turns(const lp_plan_problem *problem, const lp_side *side, int32_t *turn);
void lp_plan_order_make(const lp_plan_problem *problem, const lp_side *side, lp_arena *arena, lp_plan_order *out);

/* ---- evaluation (evaluate.c) --------------------------------------------------------------------------------- */

/* What crosses the link in a stage: values by the first edge that carries each, the result's token, and messages by the
 * side that sends. */
typedef struct {
  bool *edge; /* [edge_count] */
  bool result;
  int32_t messages[LP_SIDE_COUNT];
  int64_t count;
} lp_plan_crossings;
void lp_plan_find_crossings(const lp_plan_problem *problem, const lp_side *side, lp_arena *arena,
                            lp_plan_crossings *out);
/* The side of each group of caches in a stage. */
lp_side *lp_plan_state_sides(const lp_plan_problem *problem, const lp_side *side, lp_arena *arena);
/* Bit 1 << place for each weight: it is held there. */
unsigned char *lp_plan_mark_weights(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *const side[LP_STAGE_COUNT],
                                    lp_arena *arena);

/* What a placement adds up to: lp_plan_conclude makes times, cost and memory of it. By side; bytes by the side they leave. */
typedef struct {
  double busy_ms[LP_SIDE_COUNT], bytes[LP_SIDE_COUNT], messages[LP_SIDE_COUNT];
  int64_t crossings;
} lp_plan_stage_sum;
typedef struct {
  lp_plan_stage_sum stage[LP_STAGE_COUNT];
  double move_bytes[LP_SIDE_COUNT]; /* of KV caches, at the end of prefill */
  double weight_bytes[LP_SIDE_COUNT], activation_bytes[LP_SIDE_COUNT], cache_bytes[LP_SIDE_COUNT];
} lp_plan_sums;
void lp_plan_conclude(const lp_plan_sums *sums, const lp_compile_request *request, lp_plan_result *out);
/* The largest of value / limit over all constraints, and whose it is; at most 1 when feasible. */
double lp_plan_strain(const lp_plan_result *result, const lp_compile_request *request, const char **name);

/* The objective as a sum: its weights per ms of a stage's operators on a side, of its messages, and of KV moves. */
typedef struct {
  double busy[LP_STAGE_COUNT][LP_SIDE_COUNT], link[LP_STAGE_COUNT], move;
} lp_plan_weights;
void lp_plan_weights_get(const lp_compile_request *request, lp_plan_weights *out);
double lp_plan_objective_value(const lp_plan_result *result, const lp_compile_request *request);
/* Bytes there are on a side; 0: not known. */
double lp_plan_memory_limit(const lp_compile_request *request, lp_side place);
/* Requests that share a side: KV caches are there for each. */
double lp_plan_sessions(const lp_compile_request *request, lp_side place);
/* Requests that one run of a stage serves there. */
double lp_plan_shared_runs(const lp_compile_request *request, lp_stage stage, lp_side place);
/* Runs of a stage in a request. */
double lp_plan_steps(const lp_compile_request *request, lp_stage stage);

/* Bit 1 << place of needed[op]: the operator runs there. Free operators run on every side that needs them. */
void lp_plan_mark_needed(const lp_plan_problem *problem, const lp_side *side, unsigned char *needed);

/* ---- choosing (split/place.c) ------------------------------------------------------------------------------------------- */

/* The sides that a scheduler chooses, caches settled: allocates side[stage][op_count] in `scratch`. */
LP_MUST_USE lp_status lp_plan_choose(const lp_plan_problem problem[LP_STAGE_COUNT], const char *scheduler,
                                     const lp_compile_request *request, lp_side *side[LP_STAGE_COUNT],
                                     lp_plan_proof *proof, lp_arena *scratch, lp_diag *diag);
/* ---- what must be where (pin.c) ---------------------------------------------------------------------------------- */

/* Sets each operator's `pin`; all users of a KV cache have the same. */
void lp_plan_pin(lp_plan_problem *problem, const lp_compile_request *request);
/* An error for a pin that names no operator, and for more private layers than there are. */
LP_MUST_USE lp_status lp_plan_pin_used(const lp_plan_problem *problem, const lp_compile_request *request,
                                       lp_diag *diag);
/* Puts what is pinned and the users of each KV cache where they must be. */
void lp_plan_settle(const lp_plan_problem *problem, lp_side *side);

/* ---- proofs (proof.c) -------------------------------------------------------------------------------------------- */

/* As attributes of @prefill, and back; not `known` when there are none. */
void lp_plan_proof_write(lp_module *module, lp_op *prefill, const lp_plan_proof *proof);
lp_plan_proof lp_plan_proof_read(const lp_module *module);

/* ---- schedulers (schedulers.c, schedule_*.c) ---------------------------------------------------------------------- */

extern const lp_scheduler lp_scheduler_exact, lp_scheduler_greedy, lp_scheduler_layer, lp_scheduler_cut,
    lp_scheduler_cloud_only, lp_scheduler_device_only;

/* One stage of Algorithm 1; returns the stage's time as the algorithm sees it, over linear and attention operators. */
double lp_greedy_place_stage(const lp_plan_problem *problem, double bound_ms, lp_side *side);

/* Every operator on one side. */
void lp_plan_fill(const lp_plan_problem *problem, lp_side place, lp_side *side);
/* The cut before layer `cut`: those below it on the device, the rest in the cloud. Cut 0 leaves the embedding on the
 * device, cut -1 nothing; layer_count + 1 leaves nothing to the cloud. */
void lp_plan_fill_cut(const lp_plan_problem *problem, int64_t cut, lp_side *side);

#endif
