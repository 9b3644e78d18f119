/* Names in reports over places: runs of layers, limits, and gaps. */
#include <math.h>

#include "passes/plan/places/model.h"
#include "tests/suite.h"

enum { LAYERS = 5, OPS = 9 };

/* Operators of the embedding, of five layers, and of the head; one of a layer is free. */
static lp_plan_op ops[OPS] = {{.layer = -1}, {.layer = 0}, {.layer = 1}, {.layer = 1, .free = true}, {.layer = 2},
                              {.layer = 2},  {.layer = 3}, {.layer = 4}, {.layer = LAYERS}};

static const char *ranges_of(uint8_t places[OPS], lp_buf *out) {
  const lp_plan_problem stage = {.op_count = OPS, .layer_count = LAYERS, .ops = ops};
  const lp_places_problem problem = {.of[0] = &stage};
  const lp_places_plan plan = {.place = {places, places}};
  const lp_places_facts facts = {.arena = lp_arena_create(), .problem = &problem, .plan = &plan};
  lp_places_range *list = NULL;
  char name[48];
  lp_buf_clear(out);
  for (int32_t i = 0, count = lp_places_ranges(&facts, 0, &list); i < count; i++)
    lp_buf_printf(out, "%s%s: %x", i ? ", " : "", lp_places_range_name(&facts, &list[i], name), list[i].at);
  lp_arena_free(facts.arena);
  return lp_buf_text(out);
}

LP_TEST(runs_of_layers) {
  lp_buf out = {0};
  ck_assert_str_eq(ranges_of((uint8_t[OPS]){0, 0, 0, 2, 0, 0, 0, 0, 0}, &out), "embedding: 1, layers 0-4: 1, head: 1");
  ck_assert_str_eq(ranges_of((uint8_t[OPS]){0, 0, 1, 0, 1, 1, 0, 0, 2}, &out),
                   "embedding: 1, layer 0: 1, layers 1-2: 2, layers 3-4: 1, head: 4");
  ck_assert_str_eq(ranges_of((uint8_t[OPS]){1, 0, 0, 0, 0, 1, 1, 0, 0}, &out),
                   "embedding: 2, layers 0-1: 1, layer 2: 3, layer 3: 2, layer 4: 1, head: 1");
  lp_buf_free(&out);
}

LP_TEST(limits) {
  const lp_places places = {.count = 2, .place = {{.name = "a"}, {.name = "b"}}};
  char name[80];
  ck_assert_str_eq(lp_places_limit_name(&places, 0, name), "memory of a");
  ck_assert_str_eq(lp_places_limit_name(&places, 1, name), "memory of b");
  ck_assert_ptr_null(lp_places_limit_name(&places, 2, name));
  ck_assert_ptr_null(lp_places_limit_name(&places, -1, name));
  ck_assert_str_eq(lp_places_limit_name(&places, LP_PLACES_TTFT, name), "ttft");
  ck_assert_str_eq(lp_places_limit_name(&places, LP_PLACES_TPOT, name), "tpot");
}

LP_TEST(gaps) {
  const lp_places_plan plan = {.result = {.feasible = true, .objective = 4}}, none = {.result = {.objective = 4}},
                       free_plan = {.result = {.feasible = true}};
  ck_assert_double_eq(lp_places_gap(&plan, 3), 0.25);
  ck_assert_double_eq(lp_places_gap(&plan, 5), 0);
  ck_assert_double_eq(lp_places_gap(&free_plan, 0), 0);
  ck_assert(isnan(lp_places_gap(&none, 3)));
}
