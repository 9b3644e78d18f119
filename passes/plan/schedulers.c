/* The table of schedulers (schedulers.def) as data, look-up by name, and the sides that one chooses. */
#include "passes/plan/schedulers.h"
#include "base/abi.h"
#include "base/side.h"
#include "passes/plan/exact/exact.h"
#include "passes/plan/pin.h"
#include "passes/plan/plan.h"

static const lp_scheduler schedulers[] = {
#define LP_SCHEDULER(symbol, name, ignores_link, summary) {name, summary, ignores_link, lp_place_##symbol},
#include "passes/plan/schedulers.def"
};

static const char *const scheduler_names[] = {
#define LP_SCHEDULER(symbol, name, ignores_link, summary) name,
#include "passes/plan/schedulers.def"
};

const char *const lp_scheduler_default =
#define LP_DEFAULT(symbol, name, ignores_link, summary) name
#define LP_SCHEDULER(symbol, name, ignores_link, summary)
#include "passes/plan/schedulers.def"
    ;

const lp_scheduler *lp_scheduler_find(const char *name) {
  return LP_FIND_IN(schedulers, name);
}

size_t lp_scheduler_names(const char *const **names) {
  *names = scheduler_names;
  return LP_COUNT(scheduler_names);
}

/* ---- choosing sides ---------------------------------------------------------------------------------------------- */

lp_status lp_scheduler_get(const char *name, const lp_scheduler **out, lp_diag *diag) {
  *out = lp_scheduler_find(name);
  if (*out) return LP_OK;
  const char *const *names;
  size_t count = lp_scheduler_names(&names);
  lp_status status = lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "unknown scheduler '%s'", name);
  lp_note_near(diag, LP_LOC_NONE, name, names, count);
  return status;
}

lp_status lp_plan_choose(const lp_plan_problem problem[LP_STAGE_COUNT], const char *scheduler,
                         const lp_compile_request *request, lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof,
                         lp_arena *scratch, lp_diag *diag) {
  const lp_scheduler *found;
  LP_TRY(lp_scheduler_get(scheduler, &found, diag));
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    side[stage] = LP_NEW_ARRAY(scratch, lp_side, problem[stage].op_count);
  if (proof) *proof = (lp_plan_proof){0};
  lp_status status = found->place(problem, request, side, proof, scratch, diag);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_plan_settle(&problem[stage], side[stage]);
    lp_exact_join_views(&problem[stage], scratch, side[stage]);
  }
  return status;
}

lp_status lp_plan_choose_to_run(lp_plan_problem problem[LP_STAGE_COUNT], const char *scheduler,
                                const lp_compile_request *request, lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof,
                                lp_arena *scratch, lp_diag *diag) {
  lp_plan_result result;
  const lp_status status = lp_plan_choose(problem, scheduler, request, side, proof, scratch, diag);
  if ((status != LP_OK && status != LP_INFEASIBLE) || request->isl <= LP_PROMPT_PART ||
      lp_plan_runs_in_parts(problem, side))
    return status;
  lp_plan_take_whole_prompts(problem, scratch);
  lp_plan_evaluate(problem, request, side, &result);
  const bool fits = result.binding != LP_LIMIT_DEVICE_MEMORY && result.binding != LP_LIMIT_CLOUD_MEMORY;
  return fits ? status : lp_plan_choose(problem, scheduler, request, side, proof, scratch, diag);
}

lp_status lp_plan_try(lp_module *module, const lp_compile_request *request, lp_plan_result *out, lp_diag *diag) {
  LP_OWNED(lp_arena_free_at) lp_arena *scratch = lp_arena_create();
  lp_plan_problem problem[LP_STAGE_COUNT];
  lp_side *side[LP_STAGE_COUNT];
  const char *scheduler = request->scheduler ? request->scheduler : lp_scheduler_default;
  lp_status status = lp_plan_build(module, request, scratch, problem, diag);
  if (status == LP_OK) status = lp_plan_choose_to_run(problem, scheduler, request, side, NULL, scratch, diag);
  if (status == LP_INFEASIBLE) status = LP_OK;
  if (status == LP_OK) lp_plan_evaluate(problem, request, side, out);
  return status;
}
