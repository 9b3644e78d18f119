/* Closed forms equal the planner's own sums, at sizes, machines, types and links for which they were not made. */
#include "base/side.h"
#include "passes/plan/forms.h"
#include "passes/plan/pin.h"
#include "tests/passes/plan/llama.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>

static const llama_shape llama_gqa = {6, 256, 512, 8, 2, 1000, 4096, LP_F16, true, false};

typedef struct {
  lp_module *module;
  lp_machine *device[2], *cloud[2];
  lp_link *link[2];
  lp_arena *arena;
  lp_plan_forms *forms;
} fixture;

static lp_compile_request request_at(const fixture *f, int i) {
  return (lp_compile_request){.device = f->device[i],
                              .cloud = f->cloud[i],
                              .link = f->link[i],
                              .isl = i ? 300 : 32,
                              .osl = i ? 77 : 8,
                              .batch = i ? 2 : 1,
                              .sessions = i ? 16 : 1,
                              .ttft_ms = 50,
                              .tpot_ms = 5,
                              .dtype_device = i ? "int4" : NULL,
                              .dtype_cloud = i ? "bf16" : NULL,
                              .objective = "cost",
                              .generation = true};
}

static fixture open(void) {
  fixture f = {.module = llama_create(&llama_gqa), .arena = lp_arena_create()};
  const lp_run_options quiet = {.verify_each = true};
  lp_compile_request none = {.generation = true, .isl = 1, .osl = 1, .batch = 1};
  ck_assert_int_eq(lp_passes_run(f.module, "fuse,annotate", &none, &quiet, NULL), LP_OK);
  static const char *const devices[] = {"jetson-nano-p1", "snapdragon-8s-gen3-p1"},
                           *const clouds[] = {"v100s-p1", "a100-p1"},
                           *const links[] = {"wifi", "rtt=20ms,up=10Mbit/s,down=90Mbit/s"};
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(lp_hw_load(devices[i], &f.device[i], NULL), LP_OK);
    ck_assert_int_eq(lp_hw_load(clouds[i], &f.cloud[i], NULL), LP_OK);
    ck_assert_int_eq(lp_link_load(links[i], &f.link[i], NULL), LP_OK);
  }
  lp_compile_request first = request_at(&f, 0);
  ck_assert_int_eq(lp_plan_forms_create(f.module, &first, f.arena, &f.forms, NULL), LP_OK);
  return f;
}

static void release(fixture *f) {
  for (int i = 0; i < 2; i++) {
    lp_hw_free(f->device[i]);
    lp_hw_free(f->cloud[i]);
    lp_link_free(f->link[i]);
  }
  lp_arena_free(f->arena);
  lp_module_free(f->module);
}

static void same(const char *what, double wanted, double found) {
  ck_assert_msg(fabs(found - wanted) <= 1e-12 * fabs(wanted), "%s: %.17g, wanted %.17g", what, found, wanted);
}

static void same_result(const lp_plan_result *a, const lp_plan_result *b) {
  same("ttft", a->ttft_ms, b->ttft_ms);
  same("tpot", a->tpot_ms, b->tpot_ms);
  same("e2e", a->e2e_ms, b->e2e_ms);
  same("cost", a->cost_usd, b->cost_usd);
  same("energy", a->energy_j, b->energy_j);
  same("up", a->bytes_up, b->bytes_up);
  same("down", a->bytes_down, b->bytes_down);
  same("kv", a->kv_move_ms, b->kv_move_ms);
  same("device memory", a->device_memory_bytes, b->device_memory_bytes);
  same("cloud memory", a->cloud_memory_bytes, b->cloud_memory_bytes);
  same("weights", a->device_weight_bytes, b->device_weight_bytes);
  ck_assert_int_eq(a->crossings_decode, b->crossings_decode);
  ck_assert_int_eq(a->messages_prefill, b->messages_prefill);
  ck_assert_int_eq(a->feasible, b->feasible);
}

/* Any sides: a random one for each operator, caches kept together. */
static void scatter(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *side[LP_STAGE_COUNT], unsigned *seed) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    for (int32_t i = 0; i < problem[stage].op_count; i++)
      side[stage][i] = (rand_r(seed) >> 5) % 2 ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
    lp_plan_settle(&problem[stage], side[stage]);
  }
}

LP_TEST(forms_equal_the_sums) {
  fixture f = open();
  unsigned seed = 7;
  for (int at = 0; at < 2; at++) {
    lp_compile_request request = request_at(&f, at);
    lp_plan_problem direct[LP_STAGE_COUNT], expanded[LP_STAGE_COUNT];
    lp_plan_prices prices;
    ck_assert_int_eq(lp_plan_build(f.module, &request, f.arena, direct, NULL), LP_OK);
    lp_plan_forms_price(f.forms, &request, f.arena, &prices);
    lp_plan_forms_problem(f.forms, &prices, f.arena, expanded);
    lp_side *side[LP_STAGE_COUNT];
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      side[stage] = LP_NEW_ARRAY(f.arena, lp_side, direct[stage].op_count);
    for (int trial = 0; trial < 50; trial++) {
      scatter(direct, side, &seed);
      lp_plan_result wanted, whole, found;
      lp_plan_form form;
      lp_plan_evaluate(direct, &request, side, &wanted);
      lp_plan_evaluate(expanded, &request, side, &whole);
      lp_plan_form_make(f.forms, side, f.arena, &form);
      lp_plan_form_evaluate(&form, &prices, &request, &found);
      same_result(&wanted, &whole);
      same_result(&wanted, &found);
    }
  }
  release(&f);
}

/* Equal layers are one: a class more for a layer more would make evaluation slow. */
LP_TEST(layers_share_classes) {
  int32_t ops = 0;
  for (int64_t layers = 4; layers <= 32; layers *= 8) {
    llama_shape shape = llama_gqa;
    shape.layers = layers;
    lp_module *module = llama_create(&shape);
    lp_arena *arena = lp_arena_create();
    lp_compile_request request = {.isl = 16, .osl = 4, .batch = 1, .generation = true};
    lp_plan_forms *forms;
    ck_assert_int_eq(lp_plan_forms_create(module, &request, arena, &forms, NULL), LP_OK);
    if (ops) ck_assert_int_eq(ops, forms->ops[LP_STAGE_DECODE].count);
    ops = forms->ops[LP_STAGE_DECODE].count;
    ck_assert_int_le(ops, 40);
    lp_arena_free(arena);
    lp_module_free(module);
  }
}
