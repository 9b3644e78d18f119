/* The quantity that a plan minimises: cost, latency or energy of the whole request, or a weighted sum of them. */
#include "passes/plan/objective.h"
#include "base/side.h"
#include "base/units.h"
#include "passes/passes.h"
#include "passes/plan/plan.h"

static const char *const names[] = {"cost", "latency", "energy"};
enum { COST, LATENCY, ENERGY, QUANTITY_COUNT };

/* One term, "NAME" or "FACTOR*NAME". */
static lp_status read_term(char *text, double factor[QUANTITY_COUNT], lp_diag *diag, lp_loc loc) {
  char *star = strchr(text, '*');
  double value = 1;
  if (star) {
    *star = 0;
    LP_TRY(lp_parse_double(text, &value, diag, loc));
  }
  const char *name = star ? star + 1 : text;
  for (int i = 0; i < QUANTITY_COUNT; i++) {
    if (!lp_streq(name, names[i])) continue;
    factor[i] += value;
    return LP_OK;
  }
  return lp_error_near(diag, loc, name, names, LP_COUNT(names),
                       "'%s' is none of cost, latency and energy, nor a sum like cost+1e-6*latency", name);
}

/* Tells whether the '+' at `at` belongs to a number, as in 1e+3. */
static bool is_exponent(const char *text, const char *at) {
  return at > text + 1 && (at[-1] == 'e' || at[-1] == 'E') && at[-2] >= '0' && at[-2] <= '9';
}

static lp_status read_objective(const char *text, double factor[QUANTITY_COUNT], lp_diag *diag, lp_loc loc) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  char *copy = lp_arena_strdup(arena, text ? text : names[COST]), *rest = copy;
  lp_status status = LP_OK;
  while (rest && status == LP_OK) {
    char *term = rest;
    rest = strchr(term, '+');
    while (rest && is_exponent(term, rest))
      rest = strchr(rest + 1, '+');
    if (rest) *rest++ = 0;
    status = read_term(term, factor, diag, loc);
  }
  return status;
}

lp_status lp_plan_objective_check(const char *text, lp_diag *diag, lp_loc loc) {
  double factor[QUANTITY_COUNT] = {0};
  return read_objective(text, factor, diag, loc);
}

static void get_factors(const lp_compile_request *request, double factor[QUANTITY_COUNT]) {
  memset(factor, 0, QUANTITY_COUNT * sizeof *factor);
  if (!request->objective || lp_streq(request->objective, names[COST])) {
    factor[COST] = 1; /* the default objective, without parsing it each time */
    return;
  }
  if (read_objective(request->objective, factor, NULL, LP_LOC_NONE) != LP_OK) factor[COST] = 1;
}

double lp_plan_steps(const lp_compile_request *request, lp_stage stage) {
  if (stage == LP_STAGE_PREFILL) return 1;
  return request->osl > 1 ? (double)(request->osl - 1) : 0; /* the first token comes from prefill */
}

double lp_plan_sessions(const lp_compile_request *request, lp_side side) {
  return side == LP_SIDE_CLOUD && request->sessions > 1 ? (double)request->sessions : 1;
}

/* Sessions share decode: one step serves all of them. Each prompt has a run of its own. */
double lp_plan_shared_runs(const lp_compile_request *request, lp_stage stage, lp_side side) {
  return stage == LP_STAGE_DECODE ? lp_plan_sessions(request, side) : 1;
}

void lp_plan_weights_get(const lp_compile_request *request, lp_plan_weights *out) {
  const struct lp_machine *machine[] = {request->device, request->cloud};
  double factor[QUANTITY_COUNT];
  get_factors(request, factor);
  *out = (lp_plan_weights){.move = factor[LATENCY]};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    double steps = lp_plan_steps(request, (lp_stage)stage);
    out->link[stage] = factor[LATENCY] * steps;
    for (int side = 0; side < LP_SIDE_COUNT; side++) {
      double price = machine[side] ? machine[side]->figure[LP_HW_PRICE] : 0;
      double power = machine[side] ? machine[side]->figure[LP_HW_POWER] : 0;
      double own = 1e-3 / lp_plan_shared_runs(request, (lp_stage)stage, (lp_side)side);
      out->busy[stage][side] = steps * (own * (factor[COST] * price + factor[ENERGY] * power) + factor[LATENCY]);
    }
  }
}

double lp_plan_objective_value(const lp_plan_result *result, const lp_compile_request *request) {
  double factor[QUANTITY_COUNT];
  get_factors(request, factor);
  return factor[COST] * result->cost_usd + factor[LATENCY] * result->e2e_ms + factor[ENERGY] * result->energy_j;
}
