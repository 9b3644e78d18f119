/* The functions of a module's stages and plans. */
#include "passes/plan/plan.h"

static const char *const attr_of[LP_STAGE_COUNT] = {"plan_prefill", "plan_decode"};

/* The names of the functions of all plans; NULL without a family. */
static const lp_attr *func_names(const lp_module *module, lp_stage stage) {
  const lp_op *prefill = lp_module_find_func(module, lp_stage_names[LP_STAGE_PREFILL]);
  const lp_attr *attr = prefill ? lp_op_attr(prefill, attr_of[stage]) : NULL;
  return attr && attr->kind == LP_ATTR_STRS ? attr : NULL;
}

lp_block *lp_plan_stage_block(const lp_module *module, lp_stage stage) {
  const lp_op *func = lp_module_find_func(module, lp_stage_names[stage]);
  if (!func) func = lp_module_find_func(module, "main");
  return func ? func->region : NULL;
}

int32_t lp_plan_count(const lp_module *module) {
  const lp_attr *names = func_names(module, LP_STAGE_PREFILL);
  return names && names->count > 0 ? names->count : 1;
}

lp_op *lp_plan_func(const lp_module *module, lp_stage stage, int32_t plan) {
  const lp_attr *names = func_names(module, stage);
  if (names && plan < names->count) return lp_module_find_func(module, names->ss[plan]);
  return plan == 0 ? lp_module_find_func(module, lp_stage_names[stage]) : NULL;
}

void lp_plan_func_names_set(lp_module *module, lp_op *prefill, lp_stage stage, const char *const *names,
                            int32_t count) {
  lp_op_set_strs(module, prefill, attr_of[stage], names, count);
}

/* ---- prompts in parts -------------------------------------------------------------------------------------------- */

/* The runtime passes a long prompt over the model in parts (LP_PROMPT_PART), the later ones with the decode program, so
 * a plan that places decode otherwise than prefill takes its prompts whole. */

bool lp_plan_runs_in_parts(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *const side[LP_STAGE_COUNT]) {
  const lp_plan_problem *prefill = &problem[LP_STAGE_PREFILL], *decode = &problem[LP_STAGE_DECODE];
  if (prefill->op_count != decode->op_count) return false;
  for (int32_t i = 0; i < prefill->op_count; i++)
    if (!prefill->ops[i].free && !decode->ops[i].free && side[LP_STAGE_PREFILL][i] != side[LP_STAGE_DECODE][i])
      return false;
  return true;
}

void lp_plan_take_whole_prompts(lp_plan_problem problem[LP_STAGE_COUNT], lp_arena *arena) {
  lp_plan_problem *prefill = &problem[LP_STAGE_PREFILL];
  prefill->whole_prompts = true;
  if (prefill->op_count == 0) return;
  prefill->ops = lp_arena_copy(arena, prefill->ops, (size_t)prefill->op_count * sizeof *prefill->ops);
  for (int32_t i = 0; i < prefill->op_count; i++)
    memcpy(prefill->ops[i].activation, prefill->ops[i].whole_activation, sizeof prefill->ops[i].activation);
}
