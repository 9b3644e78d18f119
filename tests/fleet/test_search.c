/* The search: brute force over kinds and assignments agrees with it, and more load, tighter limits, dearer machines and
 * more losses never make a fleet cheaper. */
#include "base/random.h"
#include "fleet/candidates.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifndef CASES
enum { CASES = 60 };
#endif
enum { KINDS = 3, CLASSES = 2 };

static lp_machine *machine[KINDS], *device[CLASSES];
static lp_link *link_of[CLASSES];
static lp_module *module;

static void setup(void) {
  static const char *const kinds[KINDS] = {"l4,idle_power=16W", "a40,idle_power=60W", "h100,idle_power=90W"},
                           *const devices[CLASSES] = {"raspberry-pi-5", "snapdragon-8s-gen3"},
                           *const links[CLASSES] = {"lte", "wifi"};
  const lp_decoder_shape shape = {.layers = 16,
                                  .hidden = 2048,
                                  .ffn = 8192,
                                  .heads = 32,
                                  .kv_heads = 8,
                                  .vocab = 32000,
                                  .context = 4096,
                                  .dtype = LP_F16,
                                  .causal = true};
  const lp_run_options quiet = {.verify_each = true};
  for (int i = 0; i < KINDS; i++)
    ck_assert_int_eq(lp_hw_load(kinds[i], &machine[i], NULL), LP_OK);
  for (int i = 0; i < CLASSES; i++) {
    ck_assert_int_eq(lp_hw_load(devices[i], &device[i], NULL), LP_OK);
    ck_assert_int_eq(lp_link_load(links[i], &link_of[i], NULL), LP_OK);
  }
  module = lp_decoder_create(&shape, NULL);
  const lp_compile_request request = {
      .device = device[0], .cloud = machine[0], .isl = 1, .osl = 1, .batch = 1, .generation = true};
  ck_assert_int_eq(lp_passes_run(module, "fuse,annotate", &request, &quiet, NULL), LP_OK);
}

static void teardown(void) {
  lp_module_free(module);
  for (int i = 0; i < KINDS; i++)
    lp_hw_free(machine[i]);
  for (int i = 0; i < CLASSES; i++) {
    lp_hw_free(device[i]);
    lp_link_free(link_of[i]);
  }
}

LP_CASE(.setup = setup, .teardown = teardown);

static double drawn(int seed, int position, double from, double to) {
  return from * pow(to / from, lp_random_uniform((uint64_t)seed, (uint64_t)position, 9));
}

/* A specification of random figures; it borrows machines and links. */
static lp_fleet_spec spec_of(int seed) {
  lp_fleet_spec spec = {.arena = lp_arena_create(),
                        .path = "random",
                        .requests = 200,
                        .seed = 1,
                        .kv_dtype = "f16",
                        .budget = INFINITY,
                        .limits_scale = 1};
  spec.rate = spec.mean_rate = drawn(seed, 0, 1, 60);
  spec.spare = seed % 2;
  spec.availability = 0.999;
  for (int i = 0; i < 2; i++)
    lp_vec_push(&spec.lengths,
                ((lp_fleet_length){round(drawn(seed, 1 + i, 16, 512)), round(drawn(seed, 3 + i, 4, 64)), 0.5}));
  for (int i = 0; i < CLASSES; i++) {
    lp_fleet_class class = {
        .name = i ? "laptops" : "phones", .share = i ? 0.4 : 0.6, .device = device[i], .link = link_of[i]};
    class.limit_s[LP_FLEET_TTFT][1] = drawn(seed, 5 + i, 0.5, 4);
    class.limit_s[LP_FLEET_TPOT][1] = drawn(seed, 7 + i, 0.03, 0.2);
    lp_vec_push(&spec.classes, class);
  }
  for (int i = 0; i < KINDS; i++)
    lp_vec_push(
        &spec.kinds,
        ((lp_fleet_kind){.name = machine[i]->name, .usd_per_hour = drawn(seed, 9 + i, 0.5, 4), .machine = machine[i]}));
  for (int i = 0; i < KINDS; i++)
    spec.kinds.data[i].usd_by_hour = spec.kinds.data[i].usd_per_hour * (seed % 5 ? 1 : drawn(seed, 30 + i, 1, 3));
  spec.day = (lp_fleet_day){.given = seed % 3 == 1, .start_hours = drawn(seed, 40, 0.01, 0.9)};
  for (int h = 0; h < LP_SIM_HOURS; h++) /* four rates */
    spec.day.hour[h] = h / 6 == seed % 4 ? 1 : drawn(seed, 41 + h / 6, 0.05, 1);
  for (int i = 0; i < KINDS && seed % 4 > 1; i++) {
    lp_fleet_kind *kind = &spec.kinds.data[i];
    kind->spot_usd_per_hour = kind->usd_per_hour * drawn(seed, 12 + i, 0.2, 1.2);
    kind->most_spot = seed % 4 > 2 ? 1024 : 3;
    kind->losses = (lp_sim_pool_failures){drawn(seed, 15 + i, 1e3, 1e6), 300};
  }
  return spec;
}

static void release(lp_fleet_spec *spec) {
  lp_vec_free(&spec->lengths);
  lp_vec_free(&spec->classes);
  lp_vec_free(&spec->kinds);
  lp_arena_free(spec->arena);
}

typedef struct {
  double usd, bound; /* INFINITY: there is none */
  double kwh, kwh_bound;
} cost;

/* Of machines, busy and idle, and of the devices' passes. */
static double kwh_of(const lp_fleet_spec *spec, const lp_fleet_plan *plan) {
  const int32_t hours = spec->day.given ? LP_SIM_HOURS : 1;
  double watts = 0, rate = 0;
  for (int32_t h = 0; h < hours; h++)
    rate += spec->rate * (spec->day.given ? spec->day.hour[h] : 1) / hours;
  for (int32_t i = 0; i < plan->pools; i++) {
    const lp_fleet_pool *pool = &plan->pool[i];
    const double *figure = spec->kinds.data[pool->kind].machine->figure;
    double needed = 0;
    for (int32_t h = 0; h < hours; h++)
      needed += (double)pool->by_hour[h] / hours;
    watts += figure[LP_HW_IDLE_POWER] * pool->rented;
    watts += (figure[LP_HW_POWER] - figure[LP_HW_IDLE_POWER]) * needed * pool->busy;
  }
  for (size_t i = 0; i < spec->classes.count; i++) {
    const lp_fleet_place *place = &plan->place[i];
    watts += rate * spec->classes.data[i].share *
             (place->pool < 0 ? plan->all->alone_j[i] : plan->all->option[plan->pool[place->pool].option].device_j[i]);
  }
  return watts * 0.73;
}

/* One machine fewer breaks a limit, one more keeps all. */
static void check_neighbours(const lp_fleet_spec *spec, const lp_fleet_plan *plan) {
  const lp_fleet_neighbour *cheaper = &plan->cheaper, *faster = &plan->faster;
  if (cheaper->pool >= 0) {
    ck_assert_double_gt(cheaper->value_s,
                        spec->classes.data[cheaper->class].limit_s[cheaper->figure][cheaper->quantile]);
    ck_assert_double_lt(cheaper->usd_per_month, plan->usd_per_month);
    ck_assert_int_lt(cheaper->count, plan->pool[cheaper->pool].count);
    if (plan->pool[cheaper->pool].spot == 0) ck_assert_int_eq(cheaper->count, plan->pool[cheaper->pool].count - 1);
  }
  if (faster->pool >= 0) {
    ck_assert_double_le(faster->value_s, spec->classes.data[faster->class].limit_s[faster->figure][faster->quantile]);
    ck_assert_double_gt(faster->usd_per_month, plan->usd_per_month);
  }
  ck_assert_int_eq(faster->pool < 0, plan->pools == 0);
  ck_assert_double_le(plan->least_usd_per_rate, plan->mean_usd_per_rate);
}

static cost cost_of(lp_fleet_spec *spec) {
  lp_fleet_plan plan;
  cost out = {INFINITY, INFINITY, INFINITY, INFINITY};
  const lp_status status = lp_fleet_find(spec, module, &plan, NULL);
  ck_assert(status == LP_OK || status == LP_INFEASIBLE);
  if (status == LP_OK) {
    ck_assert(plan.complete);
    ck_assert_double_le(plan.bound, plan.usd_per_month * (1 + 1e-12));
    for (size_t i = 0; i < spec->classes.count; i++)
      for (int k = 0; k < LP_FLEET_FIGURES * LP_FLEET_QUANTILES; k++) {
        const double limit = spec->classes.data[i].limit_s[k / 3][k % 3];
        if (limit > 0) ck_assert_double_le(plan.place[i].times.value_s[k / 3][k % 3], limit);
      }
    check_neighbours(spec, &plan);
    out = (cost){plan.usd_per_month, plan.bound, kwh_of(spec, &plan), plan.kwh_bound};
    if (spec->wants_energy) ck_assert_double_le(out.kwh_bound, out.kwh * (1 + 1e-9));
  }
  lp_fleet_free(&plan);
  return out;
}

/* All classes of the mask on one kind, at the rate that they have. */
static cost on_one_kind(int seed, unsigned classes, int kind, bool energy) {
  lp_fleet_spec spec = spec_of(seed);
  spec.wants_energy = energy;
  double share = 0;
  size_t kept = 0;
  for (size_t i = 0; i < CLASSES; i++)
    if (classes >> i & 1) {
      share += spec.classes.data[i].share;
      spec.classes.data[kept++] = spec.classes.data[i];
    }
  spec.classes.count = kept;
  for (size_t i = 0; i < kept; i++)
    spec.classes.data[i].share /= share;
  spec.rate *= share;
  spec.kinds.data[0] = spec.kinds.data[kind];
  spec.kinds.count = 1;
  const cost found = cost_of(&spec);
  release(&spec);
  return found;
}

/* The best of every kind for both classes together, and of every pair of kinds. */
/* Of the rows of prompts 10 in 11 are of the long one: (100 100 + 1000 1000) / 1100. A token of the short request has
 * 105 tokens before it in the mean, one of the long request 1010. */
LP_TEST(rows_and_tokens_have_lengths) {
  lp_fleet_spec spec = {0};
  lp_vec_push(&spec.lengths, ((lp_fleet_length){100, 10, 0.5}));
  lp_vec_push(&spec.lengths, ((lp_fleet_length){1000, 20, 0.5}));
  const lp_load_lengths lengths = lp_fleet_lengths(&spec);
  ck_assert_int_eq(lengths.prompt, 918);
  ck_assert_int_eq(lengths.context, (10 * 105 + 20 * 1010) / 30);
  ck_assert_int_eq(lengths.longest, 1020);
  lp_vec_free(&spec.lengths);
}

LP_LOOP_TEST(brute_force_finds_the_same_fleet, 0, 12) {
  double best = INFINITY;
  for (int i = 0; i < KINDS; i++) {
    best = fmin(best, on_one_kind(_i, 3, i, false).usd);
    for (int k = 0; k < KINDS; k++)
      if (i != k) best = fmin(best, on_one_kind(_i, 1, i, false).usd + on_one_kind(_i, 2, k, false).usd);
  }
  lp_fleet_spec spec = spec_of(_i);
  const double found = cost_of(&spec).usd;
  ck_assert(isinf(found) == isinf(best));
  if (!isinf(best)) ck_assert_double_eq_tol(found / fmax(best, 1e-9), best > 0 ? 1 : 0, 1e-9);
  release(&spec);
}

/* The same for energy; more load never lowers its bound. */
LP_LOOP_TEST(brute_force_finds_the_same_energy, 0, 6) {
  double best = INFINITY;
  for (int i = 0; i < KINDS; i++) {
    best = fmin(best, on_one_kind(_i, 3, i, true).kwh);
    for (int k = 0; k < KINDS; k++)
      if (i != k) best = fmin(best, on_one_kind(_i, 1, i, true).kwh + on_one_kind(_i, 2, k, true).kwh);
  }
  lp_fleet_spec spec = spec_of(_i);
  const double usd = cost_of(&spec).usd;
  spec.wants_energy = true;
  const cost found = cost_of(&spec);
  ck_assert(isinf(found.kwh) == isinf(best));
  if (!isinf(best)) {
    ck_assert_double_eq_tol(found.kwh / best, 1, 1e-5);
    ck_assert_double_ge(found.usd, usd * (1 - 1e-9));
  }
  spec.rate *= 1.5;
  ck_assert_double_ge(cost_of(&spec).kwh_bound, found.kwh_bound * (1 - 1e-9));
  release(&spec);
}

static void change(lp_fleet_spec *spec, int how, int seed) {
  const double factor = drawn(seed, 20 + how, 1.05, 3);
  if (how == 0) spec->rate *= factor;
  for (size_t i = 0; how == 1 && i < CLASSES; i++)
    for (int k = 0; k < LP_FLEET_FIGURES * LP_FLEET_QUANTILES; k++)
      spec->classes.data[i].limit_s[k / 3][k % 3] /= factor;
  if (how == 2) spec->kinds.data[0].usd_per_hour *= factor;
  if (how == 2) spec->kinds.data[0].usd_by_hour *= factor;
  if (how == 3) spec->spare++;
  if (how == 4) spec->classes.data[seed % CLASSES].private_layers += 1 + seed % 8;
  if (how == 5) spec->day.start_hours = fmin(0.999, spec->day.start_hours * factor);
  if (how == 6)
    for (int h = 0; h < 6; h++) /* of one of the rates */
      spec->day.hour[seed % 24 / 6 * 6 + h] = fmin(1, spec->day.hour[seed % 24 / 6 * 6 + h] * factor);
  if (how != 7) return;
  if (seed % 3 == 0) spec->availability = 1 - (1 - spec->availability) / factor;
  for (int i = 0; i < KINDS; i++) {
    if (seed % 3 == 1) spec->kinds.data[i].losses.every_s /= factor;
    if (seed % 3 == 2) spec->kinds.data[i].spot_usd_per_hour *= factor;
  }
}

LP_LOOP_TEST(harder_is_never_cheaper, 0, CASES) {
  lp_fleet_spec spec = spec_of(100 + _i);
  const cost before = cost_of(&spec);
  const int changes = spec.kinds.data[0].most_spot > 0 ? 8 : 7;
  release(&spec);
  for (int how = 0; how < changes; how++) {
    spec = spec_of(100 + _i);
    change(&spec, how, 100 + _i);
    const cost after = cost_of(&spec);
    ck_assert_msg(after.usd >= before.usd * (1 - 1e-12), "change %d: USD %g, and before %g", how, after.usd,
                  before.usd);
    ck_assert_msg(after.bound >= before.bound * (1 - 1e-12), "change %d: bound %g, and before %g", how, after.bound,
                  before.bound);
    release(&spec);
  }
}

/* Private layers stay on the device, whatever that costs. */
LP_LOOP_TEST(private_layers_stay, 0, 8) {
  for (int64_t layers = 1; layers <= 16; layers += 5) {
    lp_fleet_spec spec = spec_of(_i);
    lp_fleet_plan plan;
    spec.classes.data[_i % CLASSES].private_layers = layers;
    const lp_status status = lp_fleet_find(&spec, module, &plan, NULL);
    ck_assert(status == LP_OK || status == LP_INFEASIBLE);
    const lp_fleet_place *place = &plan.place[_i % CLASSES];
    if (status == LP_OK && place->pool >= 0) ck_assert_int_ge(plan.pool[place->pool].cut - 1, layers);
    lp_fleet_free(&plan);
    release(&spec);
  }
}

/* A fleet for the least latency costs at most its budget, and one for limits that are 2 % tighter costs more. */
LP_LOOP_TEST(a_budget_is_spent, 0, 8) {
  lp_fleet_spec spec = spec_of(_i);
  lp_fleet_plan plan;
  const double usd = cost_of(&spec).usd;
  if (!isinf(usd) && usd > 0) {
    spec.budget = 0.99 * usd;
    ck_assert_int_eq(lp_fleet_find(&spec, module, &plan, NULL), LP_INFEASIBLE);
    lp_fleet_free(&plan);
    spec.budget = 2 * usd;
    spec.wants_latency = true;
    ck_assert_int_eq(lp_fleet_find(&spec, module, &plan, NULL), LP_OK);
    ck_assert_double_le(plan.usd_per_month, spec.budget);
    lp_fleet_free(&plan);
    lp_fleet_spec tighter = spec_of(_i);
    for (int i = 0; i < CLASSES; i++)
      for (int k = 0; k < LP_FLEET_FIGURES * LP_FLEET_QUANTILES; k++) {
        double *limit = &tighter.classes.data[i].limit_s[k / 3][k % 3];
        ck_assert_double_eq_tol(spec.classes.data[i].limit_s[k / 3][k % 3], *limit * spec.limits_scale, 1e-9);
        *limit *= spec.limits_scale * 0.98;
      }
    ck_assert_double_gt(cost_of(&tighter).usd, spec.budget);
    release(&tighter);
  }
  release(&spec);
}
