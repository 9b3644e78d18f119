/* Looks things up in a manifest that has been read: programs by name, ports by role, the plan of a request. */
#include "base/base.h"
#include "runtime/bundle/manifest.h"

int32_t lp_manifest_program(const lp_manifest *manifest, const char *name) {
  for (int32_t i = 0; i < manifest->program_count; i++)
    if (lp_streq(manifest->programs[i].name, name)) return i;
  return -1;
}

int32_t lp_manifest_most_buffers(const lp_manifest *manifest, lp_place side) {
  int32_t most = 0;
  for (int32_t i = 0; i < manifest->program_count; i++)
    if (manifest->programs[i].buffers[side] > most) most = manifest->programs[i].buffers[side];
  return most;
}

int32_t lp_manifest_input(const lp_manifest *manifest, lp_role role) {
  for (int32_t i = 0; i < manifest->input_count; i++)
    if (manifest->inputs[i].role == role) return i;
  return -1;
}

int32_t lp_manifest_output(const lp_manifest *manifest, lp_role role) {
  for (int32_t i = 0; i < manifest->output_count; i++)
    if (manifest->outputs[i].role == role) return i;
  return -1;
}

int32_t lp_manifest_exit(const lp_manifest *manifest, int32_t output) {
  for (int32_t i = 0; i < manifest->exit_count; i++)
    if (manifest->exits[i].output == output) return i;
  return -1;
}

static bool is_inside(const lp_plan_region *region, const double at[LP_PLAN_AXES]) {
  for (int i = 0; i < LP_PLAN_AXES; i++)
    if (!(at[i] >= region->low[i] && at[i] < region->high[i])) return false;
  return true;
}

int32_t lp_manifest_plan(const lp_manifest *manifest, const double at[LP_PLAN_AXES]) {
  for (int32_t i = 0; i < manifest->plan_count; i++)
    for (int32_t k = 0; k < manifest->plans[i].region_count; k++)
      if (is_inside(&manifest->plans[i].region[k], at)) return i;
  return 0;
}

int32_t lp_manifest_others(const lp_manifest *manifest) {
  int32_t count = 0;
  for (lp_place place = 1; place < manifest->place_count; place++) {
    bool takes_part = false;
    for (int32_t i = 0; i < manifest->program_count; i++)
      takes_part |= manifest->programs[i].takes_part[place];
    count += takes_part;
  }
  return count;
}

/* Tells whether the step brings tokens to a place, from the device or as its own input. */
static bool brings_tokens(const lp_manifest *manifest, const lp_step *step) {
  if (step->kind == LP_STEP_INPUT) return manifest->inputs[step->port].role == LP_ROLE_TOKENS;
  return step->kind == LP_STEP_SEND && step->side == LP_SIDE_DEVICE && step->carries_tokens;
}

lp_place lp_manifest_streams(const lp_manifest *manifest, int32_t program) {
  const lp_program *of = &manifest->programs[program];
  lp_place at = LP_SIDE_DEVICE;
  int32_t payloads = 0, drawings = 0;
  LP_FOR_EACH(const lp_step, step, of->step, of->step_count) {
    bool brings = brings_tokens(manifest, step);
    if (brings && step->to == LP_SIDE_DEVICE) continue; /* sent on by another step */
    if (at == LP_SIDE_DEVICE) at = step->to;
    if (step->to != at || (step->side != at && !brings) || (step->kind == LP_STEP_INPUT && !brings))
      return LP_SIDE_DEVICE;
    payloads += brings;
    drawings += step->kind == LP_STEP_OUTPUT && step->port == lp_manifest_output(manifest, LP_ROLE_LOGITS);
  }
  return payloads == 1 && drawings == 1 ? at : LP_SIDE_DEVICE;
}

void lp_manifest_fall_back(lp_manifest *manifest, lp_place side) {
  manifest->side[side] = *manifest->side[side].fallback;
  LP_FOR_EACH(lp_program, program, manifest->programs, manifest->program_count) {
    program->layout_name[side] = program->fallback[side];
    for (int32_t k = 0; k < program->step_count; k++)
      if (program->step[k].kind == LP_STEP_RUN && program->step[k].side == side)
        program->step[k].segment = program->step[k].fallback;
  }
}
