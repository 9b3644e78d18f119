/* Plan families: regions cover every request once, more plans never serve worse, and their weights fit together. */
#include "base/side.h"
#include "passes/plan/evaluate.h"
#include "passes/plan/family/family.h"
#include "tests/passes/plan/llama.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>

static const llama_shape shape = {3, 256, 512, 8, 2, 1000, 4096, LP_F16, true, false};
static const char device_text[] = "jetson-nano-p1,peak_f16=4GFLOP/s,memory_bandwidth=1GB/s";

typedef struct {
  lp_module *module;
  lp_machine *device, *cloud;
  lp_link *link;
  lp_arena *arena;
  lp_compile_request request;
  lp_side *own[LP_STAGE_COUNT];
} fixture;

static fixture fixture_open(const char *scheduler) {
  fixture f = {.module = llama_create(&shape), .arena = lp_arena_create()};
  lp_plan_problem problem[LP_STAGE_COUNT];
  ck_assert_int_eq(lp_hw_load(device_text, &f.device, NULL), LP_OK);
  ck_assert_int_eq(lp_hw_load("a100", &f.cloud, NULL), LP_OK);
  ck_assert_int_eq(lp_link_load("wifi", &f.link, NULL), LP_OK);
  f.request = (lp_compile_request){.device = f.device,
                                   .cloud = f.cloud,
                                   .link = f.link,
                                   .isl = 256,
                                   .osl = 64,
                                   .batch = 1,
                                   .scheduler = scheduler,
                                   .ttft_ms = 200,
                                   .tpot_ms = 20,
                                   .generation = true};
  ck_assert_int_eq(lp_plan_build(f.module, &f.request, f.arena, problem, NULL), LP_OK);
  ck_assert_int_eq(lp_plan_choose(problem, scheduler, &f.request, f.own, NULL, f.arena, NULL), LP_OK);
  return f;
}

static void fixture_close(fixture *f) {
  lp_arena_free(f->arena);
  lp_module_free(f->module);
  lp_hw_free(f->device);
  lp_hw_free(f->cloud);
  lp_link_free(f->link);
}

static lp_plan_family find(fixture *f, int32_t most) {
  lp_plan_family family;
  ck_assert_int_eq(lp_plan_family_find(f->module, &f->request, most, f->own, f->arena, &family, NULL), LP_OK);
  return family;
}

static int32_t regions_at(const lp_plan_family *family, const double at[LP_FAMILY_AXES]) {
  int32_t found = 0;
  for (int32_t i = 0; i < family->region_count; i++) {
    bool inside = true;
    for (int axis = 0; axis < LP_FAMILY_AXES; axis++)
      inside = inside && at[axis] >= family->region[i].low[axis] && at[axis] < family->region[i].high[axis];
    found += inside;
  }
  return found;
}

LP_TEST(regions_cover_every_request_once) {
  fixture f = fixture_open("exact");
  lp_plan_family family = find(&f, 4);
  unsigned seed = 3;
  ck_assert_int_ge(family.count, 2);
  for (int i = 0; i < 2000; i++) {
    double at[LP_FAMILY_AXES];
    for (int axis = 0; axis < LP_FAMILY_AXES; axis++)
      at[axis] = pow(10, (axis == LP_FAMILY_UP ? 4 : -1) + 6.0 * rand_r(&seed) / RAND_MAX);
    ck_assert_int_eq(regions_at(&family, at), 1);
  }
  const double none[LP_FAMILY_AXES] = {1, 1, 0, 1e12}; /* no link between */
  ck_assert_int_eq(regions_at(&family, none), 1);
  fixture_close(&f);
}

LP_TEST(more_plans_serve_no_worse) {
  fixture f = fixture_open("layer");
  lp_plan_family before = find(&f, 1);
  ck_assert_int_eq(before.count, 1);
  ck_assert_int_eq(before.regret.missed, before.regret.alone_missed);
  for (int32_t most = 2; most <= 5; most++) {
    lp_plan_family family = find(&f, most);
    ck_assert_int_le(family.count, most);
    ck_assert_int_le(family.regret.missed, before.regret.missed);
    if (family.regret.missed == before.regret.missed)
      ck_assert_double_le(family.regret.worst, before.regret.worst * (1 + 1e-12));
    before = family;
  }
  ck_assert_int_lt(before.regret.missed, before.regret.alone_missed);
  fixture_close(&f);
}

/* Room for one layer's weights less than all: the plans must not need every layer on the device among them. */
LP_TEST(weights_of_all_plans_fit) {
  fixture f = fixture_open("layer");
  lp_plan_problem problem[LP_STAGE_COUNT];
  ck_assert_int_eq(lp_plan_build(f.module, &f.request, f.arena, problem, NULL), LP_OK);
  double all = 0;
  for (int32_t i = 0; i < problem[0].weight_count; i++)
    all += problem[0].weight_size[LP_SIDE_DEVICE][i];
  f.request.device_memory = (int64_t)(0.8 * all);
  f.request.ttft_ms = f.request.tpot_ms = 0;
  lp_side *own[LP_STAGE_COUNT];
  ck_assert_int_eq(lp_plan_choose(problem, "layer", &f.request, own, NULL, f.arena, NULL), LP_OK);
  f.own[0] = own[0];
  f.own[1] = own[1];
  lp_plan_family family = find(&f, 6);
  unsigned char *held = LP_NEW_ARRAY(f.arena, unsigned char, problem[0].weight_count);
  for (int32_t k = 0; k < family.count; k++) {
    const unsigned char *of_plan = lp_plan_mark_weights(problem, family.side[k], f.arena);
    for (int32_t i = 0; i < problem[0].weight_count; i++)
      held[i] |= of_plan[i];
  }
  double together = 0;
  for (int32_t i = 0; i < problem[0].weight_count; i++)
    if (held[i] & (1u << LP_SIDE_DEVICE)) together += problem[0].weight_size[LP_SIDE_DEVICE][i];
  ck_assert_double_le(together, (double)f.request.device_memory);
  fixture_close(&f);
}
