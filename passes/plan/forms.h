/* A model's plan problem in closed forms, which can be priced at any sizes, on any machines and over any link without
 * reading the module again. Operators, values, weights and KV caches that cost the same at all sizes form one class. A
 * placement is the number of members of each class on each side, and its cost and latency are a sum over some dozens of
 * classes. */
#pragma once

#include "base/side.h"
#include "passes/plan/numbers.h"
#include "passes/plan/plan.h"

/* A partition into classes: class_of[thing], and the first thing of each class. */
typedef struct {
  int32_t count, *class_of, *first;
} lp_plan_classes;

/* Immutable once created, so threads may share it. `states_of` lists the llmpart.state operators of each state
 * group. */
typedef struct {
  const lp_module *module;
  /* The structure, with the numbers of the request for which the forms were created. */
  lp_plan_problem problem[LP_STAGE_COUNT];
  lp_plan_classes ops[LP_STAGE_COUNT], edges[LP_STAGE_COUNT], weights, states;
  lp_cost *cost[LP_STAGE_COUNT]; /* [class] */
  struct {
    const lp_op *op;
    int32_t operand;
    lp_weight_form form;
  } *weight_at; /* [weight] an operator that reads it, as which operand and in which form */
  struct {
    const lp_op **op;
    int32_t count;
  } *states_of; /* [state group] */
} lp_plan_forms;

/* Creates the forms of a module that is at least lowered, in `arena`; both must outlive them. */
LP_MUST_USE lp_status lp_plan_forms_create(lp_module *module, const lp_compile_request *request, lp_arena *arena,
                                           lp_plan_forms **out, lp_diag *diag);

/* The prices of each class at a request: its sizes, machines and types. They do not depend on the link, the SLA or the
 * prices of machines. */
typedef struct {
  lp_plan_op *op[LP_STAGE_COUNT];                    /* [class] */
  double *ms[LP_STAGE_COUNT][LP_SIDE_COUNT];         /* [class] the same numbers, contiguous */
  double *activation[LP_STAGE_COUNT][LP_SIDE_COUNT]; /* [class] bytes of activations that it needs at most */
  double *value[LP_STAGE_COUNT];                     /* [class of edges] bytes */
  double *weight[LP_SIDE_COUNT];                     /* [class] bytes */
  double *state, *state_prompt;                      /* [class] bytes at isl + osl tokens; at isl */
  double result_bytes;
} lp_plan_prices;
void lp_plan_forms_price(const lp_plan_forms *forms, const lp_compile_request *request, lp_arena *arena,
                         lp_plan_prices *out);
/* The plan problem at these prices, for schedulers. */
void lp_plan_forms_problem(const lp_plan_forms *forms, const lp_plan_prices *prices, lp_arena *arena,
                           lp_plan_problem out[LP_STAGE_COUNT]);

/* A placement as a sum: `times` things of a class. */
typedef struct {
  int32_t class_id, times;
} lp_plan_term;
typedef struct {
  lp_plan_term *term;
  int32_t count;
} lp_plan_terms;
typedef struct {
  lp_plan_terms busy[LP_STAGE_COUNT][LP_SIDE_COUNT];     /* by the side they run on */
  lp_plan_terms crossing[LP_STAGE_COUNT][LP_SIDE_COUNT]; /* by the side they leave */
  int32_t messages[LP_STAGE_COUNT][LP_SIDE_COUNT], results[LP_STAGE_COUNT];
  int64_t crossings[LP_STAGE_COUNT];
  bool streams; /* lp_plan_streams */
  lp_plan_terms weights[LP_SIDE_COUNT], caches[LP_SIDE_COUNT], moves[LP_SIDE_COUNT];
} lp_plan_form;
void lp_plan_form_make(const lp_plan_forms *forms, lp_side *const side[LP_STAGE_COUNT], lp_arena *arena,
                       lp_plan_form *out);
/* The forms of all cuts, in `arena`: [0] leaves all in the cloud, and [*count - 1] all on the device (load.c). */
lp_plan_form *lp_plan_form_cuts(const lp_plan_forms *forms, lp_arena *arena, int64_t *count);
/* Computes the result of lp_plan_evaluate at these prices; `request` gives link, sessions, SLA and limits. It takes
 * about a microsecond, and any thread may call it. */
void lp_plan_form_evaluate(const lp_plan_form *form, const lp_plan_prices *prices, const lp_compile_request *request,
                           lp_plan_result *out);
