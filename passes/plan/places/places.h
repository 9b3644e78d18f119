/* places: plans over any number of machines, of which the device is one. The two-place planner (passes/plan/exact)
 * stays the one for a device and a cloud; this room searches where there are more.
 *
 * A plan gives each operator of each stage a place. It is priced as lp_plan_evaluate prices two sides: operators run
 * one after the other, an operator's turn is the most changes of place on a path to it, and all that a place has made
 * in a turn for another place travels as one message, straight from one to the other. For two places the figures are
 * equal.
 *
 * The search keeps the operators of a part together: parts are the pieces of the model between which only values of the
 * piece before are alive, half layers in most decoders. The bound holds for all placements, those that divide parts
 * included. The best pairs of the device and another place, divided or not, are candidates too. */
#pragma once

#include "base/place.h"
#include "passes/plan/plan.h"

/* A machine. Those of one kind are interchangeable: they have the same figures and links. Text is borrowed. */
typedef struct {
  const char *name; /* "edge", or "edge.2" for the second of several of one kind */
  const struct lp_machine *machine;
  int32_t kind;     /* ascending from 0 */
  int32_t member;   /* of its kind, from 0 */
  const char *code; /* as lp_compile_request.code, and lacks_bf16 as its code_lacks_bf16 */
  bool lacks_bf16;
  const char *dtype; /* of its weights; NULL: the request's for the cloud. The device's is the request's */
} lp_places_member;

/* Place 0 is the device, kind 0, which has the inputs and gets the tokens. */
typedef struct {
  lp_places_member place[LP_PLACES_MAX];
  int32_t count;
  /* Messages from one place to another use this link, against its direction (its rate down) where `is_down` says so. */
  const struct lp_link *link[LP_PLACES_MAX][LP_PLACES_MAX];
  bool is_down[LP_PLACES_MAX][LP_PLACES_MAX];
} lp_places;

/* The plan problem by place: of[place][stage] has the place's figures on its device side (place 0) or its cloud side.
 * All have the same operators and edges. `request` has the SLA and the workload; its device is place 0. */
typedef struct {
  const lp_places *places;
  const lp_compile_request *request;
  const lp_plan_problem *of[LP_PLACES_MAX];
  /* allowed[stage][op_count]: bit p lets an operator be in place p. All operators of a KV cache have the same. NULL:
   * the `pin` of operators says where they may be, and 1 is any place but the device. */
  const uint8_t *allowed[LP_STAGE_COUNT];
  /* With early exits the layers below this one, up to the last exit, are the device's, and the others form a chain:
   * both stages in the same places, none of them twice, and nothing at the device (runtime/exits/halves.h). 0: no. */
  int64_t exit_layer;
} lp_places_problem;

/* Reports a pin "GLOB=PLACE" that names no place: neither one nor a kind of several. LP_FAILED. */
LP_MUST_USE lp_status lp_places_pin_check(const lp_places *places, const char *text, lp_diag *diag, lp_loc loc);

/* The constraints, as numbers: the memory of place 0, 1, .., then TTFT and TPOT. */
enum { LP_PLACES_TTFT = LP_PLACES_MAX, LP_PLACES_TPOT, LP_PLACES_LIMITS };

/* Times in ms, communication included; arrays are by place, and [from][to] by the places of a message. */
typedef struct {
  bool feasible;
  int32_t binding; /* the constraint that fails most; -1: none */
  double ttft_ms, tpot_ms, e2e_ms, cost_usd, cost_per_mtok_usd, energy_j, kv_move_ms, objective;
  double busy_ms[LP_STAGE_COUNT][LP_PLACES_MAX]; /* in one run of a stage */
  double link_ms[LP_STAGE_COUNT];                /* without the moves of KV caches */
  double request_ms[LP_PLACES_MAX];              /* in the request, which shares the decode steps of sessions */
  double weight_bytes[LP_PLACES_MAX], memory_bytes[LP_PLACES_MAX];
  int32_t messages[LP_STAGE_COUNT][LP_PLACES_MAX][LP_PLACES_MAX];
  double bytes[LP_STAGE_COUNT][LP_PLACES_MAX][LP_PLACES_MAX];
  double move_bytes[LP_PLACES_MAX][LP_PLACES_MAX];
} lp_places_result;

/* Prices the placement place[stage][op_count]; the places of free operators mean nothing (evaluate.c). */
void lp_places_evaluate(const lp_places_problem *problem, uint8_t *const place[LP_STAGE_COUNT], lp_places_result *out);
/* As lp_plan_compare. */
int lp_places_compare(const lp_places_problem *problem, const lp_places_result *a, const lp_places_result *b);

/* The best plan of the device and one other place. The two-place planner's own search (`is_exact`) is left out where
 * `lower_bound` shows that it saves no more than the request's tolerance over the best plan. */
typedef struct {
  int32_t with; /* the other place */
  bool has_result, is_exact;
  lp_places_result result;
  double lower_bound; /* infinite: no plan of the pair meets the limits */
} lp_places_pair;

/* The prices of the limits that prove `dual_bound`: objective per ms of a stage and per byte of a place. */
typedef struct {
  double per_ms[LP_STAGE_COUNT], per_byte[LP_PLACES_MAX];
} lp_places_duals;

typedef struct {
  bool pairs;    /* plan each pair of the device and another place, also by the scheduler `exact` */
  size_t labels; /* the most labels that the search keeps for a part; 0: the usual number */
} lp_places_options;

/* A plan and its proof. Arrays are in the arena. */
typedef struct {
  uint8_t *place[LP_STAGE_COUNT]; /* [op_count] */
  lp_places_result result;
  lp_places_pair pair[LP_PLACES_MAX];
  int32_t pair_count, best_pair; /* best_pair: in `pair`, -1: there is none */
  bool is_pair;                  /* the plan is the best pair's, which the search did not improve */
  /* Bounds of the objective of all plans that meet the limits; infinite: none does. `dual_bound` is the one that the
   * prices prove, `lower_bound` the better one of the search. complete: no plan is better than this one. */
  double lower_bound, dual_bound;
  bool complete;
  lp_places_duals duals;
  const struct lp_places_model *model; /* the parts, in the arena */
} lp_places_plan;

/* Plans the problem. LP_INFEASIBLE: `out` has the plan that is nearest to its limits; reports nothing. */
LP_MUST_USE lp_status lp_places_solve(const lp_places_problem *problem, const lp_places_options *options,
                                      lp_arena *arena, lp_places_plan *out, lp_diag *diag);

/* The request in which a place other than the device is the cloud. */
lp_compile_request lp_places_request_of(const lp_places_problem *problem, int place);

/* A problem with its plan. The caller sets the problem's places, and the arena of all else; the pass `place` plans, and
 * writes the plan into the module. */
typedef struct lp_places_solution {
  lp_places_problem problem;
  lp_places_plan plan;
  lp_arena *arena;
} lp_places_solution;

/* Builds the problem of an annotated module and plans it. LP_INFEASIBLE as above; reports nothing then. `request` is
 * kept. */
LP_MUST_USE lp_status lp_places_plan_module(lp_module *module, const lp_compile_request *request,
                                            lp_places_solution *solution, lp_diag *diag);
/* Appends the report of the placed module as "txt", "json" (schema llmpart.places/1), "csv", "html" or "line": the
 * figures in one line, without its end. */
LP_MUST_USE lp_status lp_places_report(lp_module *module, const lp_places_solution *solution, const char *format,
                                       lp_buf *out, lp_diag *diag);
/* Reports the limit that the nearest plan exceeds, and returns LP_INFEASIBLE; LP_OK for a feasible plan. */
LP_MUST_USE lp_status lp_places_judge(const lp_module *module, const lp_places_solution *solution, lp_diag *diag);
