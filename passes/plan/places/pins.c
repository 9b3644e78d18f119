/* Pins of operators to places: "GLOB=edge" keeps operators on any machine of a kind, "GLOB=edge.2" on one of them. */
#include "passes/plan/pin.h"
#include "passes/plan/places/model.h"

/* The places of a name, as bits: one place, or all of a kind "edge" with the places "edge.1", "edge.2", .. 0: none. */
static unsigned find_places(const lp_places *places, const char *name) {
  const size_t length = strlen(name);
  unsigned found = 0;
  for (int p = 0; p < places->count; p++) {
    const char *own = places->place[p].name, *dot = strrchr(own, '.');
    if (lp_streq(own, name)) return 1U << p;
    if (dot && (size_t)(dot - own) == length && strncmp(own, name, length) == 0) found |= 1U << p;
  }
  return found;
}

lp_status lp_places_pin_check(const lp_places *places, const char *text, lp_diag *diag, lp_loc loc) {
  const char *name = lp_plan_pin_place(text);
  if (name && find_places(places, name)) return LP_OK;
  lp_status status = lp_error(diag, loc, "'%s' is not an operator's name and a place", text);
  lp_note(diag, loc, "such as 'layer.0.*=%s' or '*/lm_head/*=%s'", places->place[0].name,
          places->place[places->count - 1].name);
  return status;
}

uint8_t lp_places_allowed(const lp_places_problem *problem, int stage, int32_t op) {
  const unsigned all = (1U << problem->places->count) - 1;
  if (problem->allowed[stage]) return problem->allowed[stage][op];
  const int pin = problem->of[0][stage].ops[op].pin;
  return (uint8_t)(pin < 0 ? all : pin == LP_SIDE_DEVICE ? 1U : all & ~1U);
}

/* The places of an operator by its own name and layer; the last pin counts, as with two sides. */
static uint8_t allowed_of(const lp_places_problem *problem, const lp_plan_op *item) {
  const lp_compile_request *request = problem->request;
  unsigned allowed = (1U << problem->places->count) - 1;
  if (request->keep_private && item->layer < request->private_layers) allowed = 1;
  for (int32_t i = 0; i < request->pin_count; i++)
    if (lp_plan_pin_matches(item, request->pins[i]))
      allowed = find_places(problem->places, lp_plan_pin_place(request->pins[i]));
  return (uint8_t)allowed;
}

/* The layers up to the last exit are the device's, and the others are not. */
static lp_status part_at_exit(const lp_places_problem *problem, const lp_plan_op *item, uint8_t *allowed,
                              lp_diag *diag) {
  if (problem->exit_layer == 0) return LP_OK;
  *allowed = (uint8_t)(item->layer < problem->exit_layer ? *allowed & 1U : *allowed & ~1U);
  if (*allowed || item->free) return LP_OK;
  const char *name = lp_op_str(item->op, "name", NULL);
  return lp_error(diag, LP_LOC_FILE("--pin"),
                  "with early exits the device has the layers below %" PRId64
                  " and no other: an operator of layer %" PRId64 " is pinned elsewhere%s%s",
                  problem->exit_layer, (int64_t)item->layer, name ? ", " : "", name ? name : "");
}

/* The operators of a KV cache go where the pins of all of them let them be. */
static lp_status join_states(const lp_plan_problem *stage, uint8_t *allowed, lp_arena *arena, lp_diag *diag) {
  uint8_t *of = LP_NEW_ARRAY(arena, uint8_t, stage->state_count + 1);
  memset(of, 0xff, (size_t)stage->state_count + 1);
  for (int32_t i = 0; i < stage->op_count; i++) {
    const int32_t state = stage->ops[i].state;
    if (state < 0) continue;
    of[state] = (uint8_t)(of[state] & allowed[i]);
    if (of[state]) continue;
    const char *name = lp_op_str(stage->ops[i].op, "name", NULL);
    return lp_error(diag, LP_LOC_FILE("--pin"),
                    "the operators of a KV cache of layer %" PRId32 " are pinned to different places%s%s",
                    stage->ops[i].layer, name ? ", one of them is " : "", name ? name : "");
  }
  for (int32_t i = 0; i < stage->op_count; i++)
    if (stage->ops[i].state >= 0) allowed[i] = of[stage->ops[i].state];
  return LP_OK;
}

/* Tells whether a pin names one of several machines of a kind. */
static bool tells_apart(const lp_places_problem *problem) {
  const lp_compile_request *request = problem->request;
  for (int32_t i = 0; i < request->pin_count; i++) {
    const char *name = lp_plan_pin_place(request->pins[i]);
    for (int p = 0; p < problem->places->count; p++)
      if (lp_streq(problem->places->place[p].name, name) && strchr(name, '.')) return true;
  }
  return false;
}

static const lp_places *set_apart(const lp_places *places, lp_arena *arena) {
  lp_places *own = LP_NEW(arena, lp_places);
  *own = *places;
  for (int p = 0; p < own->count; p++) {
    own->place[p].kind = p;
    own->place[p].member = 0;
  }
  return own;
}

lp_status lp_places_pin(lp_places_problem *problem, lp_arena *arena, lp_diag *diag) {
  const lp_compile_request *request = problem->request;
  if (request->pin_count == 0 && !request->keep_private && problem->exit_layer == 0) return LP_OK;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_plan_problem *shape = &problem->of[0][stage];
    uint8_t *allowed = LP_NEW_ARRAY(arena, uint8_t, shape->op_count + 1);
    for (int32_t i = 0; i < shape->op_count; i++) {
      allowed[i] = allowed_of(problem, &shape->ops[i]);
      LP_TRY(part_at_exit(problem, &shape->ops[i], &allowed[i], diag));
    }
    LP_TRY(join_states(shape, allowed, arena, diag));
    problem->allowed[stage] = allowed;
  }
  if (tells_apart(problem)) problem->places = set_apart(problem->places, arena);
  return LP_OK;
}

bool lp_places_pin_pair(const lp_places_problem *problem, int place, lp_arena *arena,
                        lp_plan_problem out[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_plan_problem *from = &problem->of[place][stage];
    lp_plan_op *ops = LP_NEW_ARRAY(arena, lp_plan_op, from->op_count + 1);
    out[stage] = *from;
    out[stage].ops = ops;
    for (int32_t i = 0; i < from->op_count; i++) {
      const unsigned allowed = lp_places_allowed(problem, stage, i);
      const bool device = allowed & 1, other = allowed >> place & 1;
      ops[i] = from->ops[i];
      if (ops[i].free) continue;
      if (!device && !other) return false;
      ops[i].pin = (int8_t)(device && other ? -1 : other);
    }
  }
  return true;
}
