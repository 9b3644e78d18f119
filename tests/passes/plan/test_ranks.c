/* Planning for several ranks: the formulas of a layer by hand, what more ranks do to a plan, and a model that does not
 * fit one machine. */
#include "base/side.h"
#include "passes/passes.h"
#include "passes/plan/plan.h"
#include "tests/passes/plan/llama.h"
#include "tests/suite.h"

#include <string.h>

LP_CASE(.timeout = 300);

/* A model of one layer, of which everything divides by 2 and 4, and nothing by 3. */
static const llama_shape one_layer = {1, 64, 128, 8, 4, 256, 64, LP_F32, true, false};
static const llama_shape llama_70b = {80, 8192, 28672, 64, 8, 32000, 4096, LP_F16, true, false};

typedef struct {
  lp_module *module;
  lp_machine *device, *cloud, all;
  lp_link *link;
  lp_interconnect *interconnect;
  lp_arena *arena;
  lp_compile_request request;
  lp_plan_problem problem[LP_STAGE_COUNT];
} study;

/* Figures for which times are easy to say: a multiply-add rate and a bandwidth that are round numbers, no launches. */
static const char round_machine[] =
    "a100,predictor=roofline,peak_f32=1TFLOP/s,memory_bandwidth=1GB/s,compute_utilisation=1,memory_utilisation=1,"
    "launch=0ms,cache=0,price_usd_per_s=1,power=10W";

static study study_open(const llama_shape *shape, const char *cloud, int64_t ranks, const char *interconnect) {
  study s = {.module = llama_create(shape), .arena = lp_arena_create()};
  ck_assert_int_eq(lp_hw_load("jetson-orin", &s.device, NULL), LP_OK);
  ck_assert_int_eq(lp_hw_load(cloud, &s.cloud, NULL), LP_OK);
  ck_assert_int_eq(lp_link_load("lan", &s.link, NULL), LP_OK);
  ck_assert_int_eq(lp_interconnect_load(interconnect, s.cloud, &s.interconnect, NULL), LP_OK);
  s.all = lp_hw_of_ranks(s.cloud, ranks);
  s.request = (lp_compile_request){.device = s.device,
                                   .cloud = s.cloud,
                                   .link = s.link,
                                   .interconnect = s.interconnect,
                                   .isl = 16,
                                   .osl = 8,
                                   .batch = 1,
                                   .ranks = ranks,
                                   .objective = "cost",
                                   .generation = true};
  return s;
}

static void build(study *s) {
  s->request.cloud = &s->all;
  ck_assert_int_eq(lp_plan_build(s->module, &s->request, s->arena, s->problem, NULL), LP_OK);
}

static void study_close(study *s) {
  lp_arena_free(s->arena);
  lp_module_free(s->module);
  lp_hw_free(s->device);
  lp_hw_free(s->cloud);
  lp_link_free(s->link);
  lp_interconnect_free(s->interconnect);
}

static lp_plan_result plan(study *s, const char *scheduler) {
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_result result;
  lp_status status = lp_plan_choose(s->problem, scheduler, &s->request, side, NULL, s->arena, NULL);
  ck_assert(status == LP_OK || status == LP_INFEASIBLE);
  lp_plan_evaluate(s->problem, &s->request, side, &result);
  return result;
}

/* ---- the time of a gather ---------------------------------------------------------------------------------------- */

LP_TEST(a_gather_takes_alpha_steps_and_bytes) {
  study s = study_open(&one_layer, round_machine, 2, "alpha=1ms,step=0.5ms,beta=1MB/s");
  ck_assert_double_eq(lp_interconnect_gather_ms(s.interconnect, 1, 1e6), 0);
  ck_assert_double_eq_tol(lp_interconnect_gather_ms(s.interconnect, 2, 1e6), 1 + 0.5 + 500, 1e-9);
  ck_assert_double_eq_tol(lp_interconnect_gather_ms(s.interconnect, 4, 1e6), 1 + 1.5 + 750, 1e-9);
  study_close(&s);
}

LP_TEST(machines_name_their_interconnects) {
  static const struct {
    const char *machine, *text, *name; /* name NULL: refused */
    double beta;
  } row[] = {{"h100", NULL, "nvlink4", 450e9},
             {"h100", "nvlink", "nvlink4", 450e9},
             {"a100", "nvlink", "nvlink3", 300e9},
             {"b200", "nvlink", "nvlink5", 900e9},
             {"h200", "pcie", "pcie5", 63e9},
             {"l4", NULL, "pcie4", 31.5e9},
             {"l4", "nvlink", NULL, 0},
             {"l4", "ethernet", "ethernet", 12.5e9},
             {"h100", "pcie,beta=1GB/s", "pcie5", 1e9},
             {"epyc-9654", NULL, "ethernet", 12.5e9},
             {"h100", "alpha=1ms", NULL, 0},
             {"h100", "none", NULL, 0}, /* as long as "pcie" */
             {"h100", "no-such-one", NULL, 0}};
  for (size_t i = 0; i < LP_COUNT(row); i++) {
    lp_machine *machine = NULL;
    lp_interconnect *found = NULL;
    ck_assert_int_eq(lp_hw_load(row[i].machine, &machine, NULL), LP_OK);
    lp_status status = lp_interconnect_load(row[i].text, machine, &found, NULL);
    ck_assert_msg((status == LP_OK) == (row[i].name != NULL), "row %zu", i);
    if (found) ck_assert_str_eq(found->name, row[i].name);
    if (found) ck_assert_double_eq(found->figure[LP_INTERCONNECT_BETA], row[i].beta);
    lp_interconnect_free(found);
    lp_hw_free(machine);
  }
}

/* ---- one layer, by hand ------------------------------------------------------------------------------------------ */

/* The bytes of an op.linear of `rows` rows: X [rows, k], W [k, n], Y [rows, n] and what else it reads, in f32. */
static double linear_bytes(double rows, double k, double n) {
  return 4 * (rows * k + k * n + rows * n);
}

/* The one operator of a layer with that many weights, in prefill. */
static const lp_plan_op *find_linear(const study *s, int64_t k, int64_t n, int32_t skip) {
  for (int32_t i = 0; i < s->problem[0].op_count; i++) {
    const lp_op *op = s->problem[0].ops[i].op;
    int64_t inner = 0, columns = 0;
    if (op->kind != LP_OP_LINEAR || !lp_type_static_dim(lp_op_in(op, 0)->type, -1, &inner) ||
        !lp_type_static_dim(op->out[0]->type, -1, &columns))
      continue;
    if (inner == k && columns == n && skip-- == 0) return &s->problem[0].ops[i];
  }
  return NULL;
}

/* 16 tokens, hidden 64, ffn 128, 8 heads of 8, 4 of them of keys; 2 ranks. */
LP_TEST(a_layer_has_the_times_of_its_shards) {
  study s = study_open(&one_layer, round_machine, 2, "alpha=1ms,beta=1MB/s");
  build(&s);
  const lp_plan_op *q = find_linear(&s, 64, 64, 0), *o = find_linear(&s, 64, 64, 1), *k = find_linear(&s, 64, 32, 0),
                   *up = find_linear(&s, 64, 128, 0), *down = find_linear(&s, 128, 64, 0);
  ck_assert(q && o && k && up && down);
  /* Queries and keys stay in parts: half the columns, and no gather. 1 GB/s: a byte takes 1e-6 ms. */
  ck_assert_double_eq_tol(q->ms[LP_SIDE_CLOUD], 1e-6 * linear_bytes(16, 64, 32), 1e-9);
  ck_assert_double_eq_tol(k->ms[LP_SIDE_CLOUD], 1e-6 * linear_bytes(16, 64, 16), 1e-9);
  ck_assert_int_eq(q->gathers + k->gathers, 0);
  ck_assert_double_eq_tol(q->flops[LP_SIDE_CLOUD], 2.0 * 16 * 64 * 32, 1e-9);
  ck_assert_double_eq_tol(q->flops[LP_SIDE_DEVICE], 2.0 * 16 * 64 * 64, 1e-9);
  /* The output's product is gathered: 16 rows of 64 values, of which a rank gets half from the other at 1 MB/s. */
  const double gather = 1 + 1e-3 * 4 * 16 * 64 / 2;
  ck_assert_int_eq(o->gathers, 1);
  ck_assert_double_eq_tol(o->gather_ms, gather, 1e-9);
  ck_assert_double_eq_tol(o->ms[LP_SIDE_CLOUD] - o->gather_ms, 1e-6 * linear_bytes(16, 64, 32), 1e-9);
  ck_assert_double_eq_tol(down->ms[LP_SIDE_CLOUD] - gather, 1e-6 * linear_bytes(16, 128, 32), 1e-9);
  /* The attention and the gated product are gathered, too: their readers sum over all columns. */
  double gathered[LP_STAGE_COUNT] = {0};
  int32_t gathers[LP_STAGE_COUNT] = {0};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < s.problem[stage].op_count; i++) {
      gathered[stage] += s.problem[stage].ops[i].gather_bytes;
      gathers[stage] += s.problem[stage].ops[i].gathers;
    }
  /* attention, output, inner and outer product of rows; the logits of the last token */
  ck_assert_int_eq(gathers[0], 5);
  ck_assert_int_eq(gathers[1], 5);
  ck_assert_double_eq_tol(gathered[0], 4 * (16 * (64 + 64 + 128 + 64) + 256), 1e-9);
  ck_assert_double_eq_tol(gathered[1], 4 * (64 + 64 + 128 + 64 + 256), 1e-9);
  study_close(&s);
}

/* A rank has its columns and heads, and all of the embedding and the norms. */
LP_TEST(a_rank_holds_its_part) {
  study one = study_open(&one_layer, round_machine, 1, "ethernet"),
        two = study_open(&one_layer, round_machine, 2, "ethernet");
  build(&one);
  build(&two);
  const double products = 4.0 * (64 * 64 * 2 + 64 * 32 * 2 + 64 * 128 * 3 + 64 * 256);
  const lp_plan_result a = plan(&one, "cloud-only"), b = plan(&two, "cloud-only");
  ck_assert_double_eq_tol(a.cloud_weight_bytes - b.cloud_weight_bytes, products / 2, 1e-6);
  ck_assert_double_eq(one.problem[0].state_size[LP_SIDE_CLOUD][0], 2 * two.problem[0].state_size[LP_SIDE_CLOUD][0]);
  ck_assert_double_eq(one.problem[0].state_size[LP_SIDE_DEVICE][0], two.problem[0].state_size[LP_SIDE_DEVICE][0]);
  const lp_plan_result c = plan(&one, "device-only"), d = plan(&two, "device-only");
  ck_assert_double_eq(c.device_memory_bytes, d.device_memory_bytes);
  ck_assert_double_eq(c.e2e_ms, d.e2e_ms);
  study_close(&one);
  study_close(&two);
}

/* Two machines cost twice as much a second. */
LP_TEST(the_price_is_that_of_all_machines) {
  study s = study_open(&one_layer, round_machine, 2, "ethernet");
  build(&s);
  const lp_plan_result r = plan(&s, "cloud-only");
  ck_assert_double_eq_tol(r.cost_usd, 2e-3 * r.cloud_busy_ms, 1e-12);
  study_close(&s);
}

/* Three divides no head and no width: a rank does everything, and gathers nothing. */
LP_TEST(what_does_not_divide_is_as_on_one_rank) {
  study one = study_open(&one_layer, round_machine, 1, "ethernet"),
        three = study_open(&one_layer, round_machine, 3, "ethernet");
  build(&one);
  build(&three);
  const lp_plan_result a = plan(&one, "cloud-only"), b = plan(&three, "cloud-only");
  ck_assert_double_eq(a.ttft_ms, b.ttft_ms);
  ck_assert_double_eq(a.tpot_ms, b.tpot_ms);
  ck_assert_double_eq(a.cloud_memory_bytes, b.cloud_memory_bytes);
  study_close(&one);
  study_close(&three);
}

/* ---- more ranks -------------------------------------------------------------------------------------------------- */

/* Gathers that take no time: more ranks are never slower. A worse interconnect never makes a plan faster. */
LP_TEST(ranks_and_interconnects_are_monotone) {
  static const char *const over[] = {"alpha=0ms,beta=1000000GB/s", "nvlink4", "pcie5", "ethernet"};
  const llama_shape shape = {4, 1024, 2816, 16, 8, 32000, 2048, LP_F16, true, false};
  for (size_t i = 0; i < LP_COUNT(over); i++) {
    double least = 0;
    for (int64_t ranks = 1; ranks <= 8; ranks *= 2) {
      study s = study_open(&shape, "h100,predictor=roofline", ranks, over[i]);
      build(&s);
      const lp_plan_result r = plan(&s, "cloud-only");
      if (ranks > 1 && i == 0) ck_assert_double_le(r.tpot_ms, least);
      if (i == 0 || ranks == 1) least = r.tpot_ms;
      study_close(&s);
      if (i == 0) continue;
      study better = study_open(&shape, "h100,predictor=roofline", ranks, over[i - 1]);
      build(&better);
      const lp_plan_result was = plan(&better, "cloud-only");
      ck_assert_double_le(was.tpot_ms, r.tpot_ms);
      ck_assert_double_le(was.ttft_ms, r.ttft_ms);
      study_close(&better);
    }
  }
}

/* ---- a model that exceeds a machine ------------------------------------------------------------------------------ */

/* 70B in f16 are 138 GB: two machines of 80 GiB hold them, one does not. */
LP_TEST(seventy_billion_fit_two_machines) {
  study one = study_open(&llama_70b, "h100", 1, "nvlink"), two = study_open(&llama_70b, "h100", 2, "nvlink");
  one.request.isl = two.request.isl = 512;
  one.request.osl = two.request.osl = 128;
  one.request.tpot_ms = two.request.tpot_ms = 60;
  build(&one);
  build(&two);
  const lp_plan_result a = plan(&one, "layer"), b = plan(&two, "layer");
  ck_assert(!a.feasible);
  ck_assert(b.feasible);
  ck_assert_double_gt(b.cloud_memory_bytes, 60e9);
  ck_assert_double_lt(b.cloud_memory_bytes, 80.0 * (1 << 30));
  study_close(&one);
  study_close(&two);
}

LP_TEST(the_planner_chooses_ranks) {
  study s = study_open(&llama_70b, "h100", 1, "nvlink");
  lp_machine all;
  s.request.isl = 512;
  s.request.osl = 128;
  s.request.tpot_ms = 60;
  s.request.scheduler = "cloud-only";
  ck_assert_int_eq(lp_plan_choose_ranks(s.module, &s.request, &all, NULL), LP_OK);
  ck_assert_int_eq(s.request.ranks, 2);
  ck_assert_ptr_eq(s.request.cloud, &all);
  ck_assert_double_eq(all.figure[LP_HW_PRICE], 2 * s.cloud->figure[LP_HW_PRICE]);
  study_close(&s);
}
