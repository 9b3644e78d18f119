/* The law of a machine under load has the figures of plans where both exist. */
#include "fleet/fleet.h"
#include "tests/suite.h"

#include <math.h>

enum { PROMPT = 64, CONTEXT = 200, LONGEST = 600 };

typedef struct {
  lp_module *module;
  lp_machine *device, *cloud;
  lp_link *link;
  lp_arena *arena;
  lp_load *load;
  lp_load_law *law;
  lp_load_user *user;
} fixture;

static lp_compile_request request_of(const fixture *f) {
  return (lp_compile_request){.device = f->device,
                              .cloud = f->cloud,
                              .link = f->link,
                              .isl = 1,
                              .osl = 1,
                              .batch = 1,
                              .sessions = 1,
                              .scheduler = "cloud-only",
                              .objective = "cost",
                              .generation = true};
}

static fixture open(void) {
  const lp_decoder_shape shape = {.layers = 6,
                                  .hidden = 512,
                                  .ffn = 1024,
                                  .heads = 8,
                                  .kv_heads = 8,
                                  .vocab = 1000,
                                  .context = 4096,
                                  .dtype = LP_F16,
                                  .causal = true};
  const lp_run_options quiet = {.verify_each = true};
  const lp_load_lengths lengths = {.prompt = PROMPT, .context = CONTEXT, .kept = 300, .longest = LONGEST};
  fixture f = {.module = lp_decoder_create(&shape, NULL), .arena = lp_arena_create()};
  ck_assert_int_eq(lp_hw_load("jetson-orin", &f.device, NULL), LP_OK);
  ck_assert_int_eq(lp_hw_load("l4", &f.cloud, NULL), LP_OK);
  ck_assert_int_eq(lp_link_load("wifi", &f.link, NULL), LP_OK);
  const lp_compile_request request = request_of(&f);
  ck_assert_int_eq(lp_passes_run(f.module, "fuse,annotate", &request, &quiet, NULL), LP_OK);
  ck_assert_int_eq(lp_load_create(f.module, &request, f.arena, &f.load, NULL), LP_OK);
  f.law = LP_NEW_ARRAY(f.arena, lp_load_law, lp_load_cuts(f.load));
  f.user = LP_NEW_ARRAY(f.arena, lp_load_user, lp_load_cuts(f.load));
  lp_load_laws(f.load, &request, &lengths, f.law);
  lp_load_users(f.load, &request, &lengths, f.user);
  return f;
}

static void release(fixture *f) {
  lp_hw_free(f->device);
  lp_hw_free(f->cloud);
  lp_link_free(f->link);
  lp_arena_free(f->arena);
  lp_module_free(f->module);
}

static lp_plan_result planned(const fixture *f, const char *scheduler, int64_t isl, int64_t osl, int64_t sessions) {
  lp_compile_request request = request_of(f);
  lp_plan_result result;
  request.scheduler = scheduler;
  request.isl = isl, request.osl = osl, request.sessions = sessions;
  const lp_status status = lp_plan_try(f->module, &request, &result, NULL);
  ck_assert(status == LP_OK || status == LP_INFEASIBLE);
  return result;
}

LP_TEST(passes_over_tokens_are_those_of_plans) {
  fixture f = open();
  for (int i = 0; i < LP_LOAD_KNOTS; i++) {
    const lp_plan_result plan = planned(&f, "cloud-only", CONTEXT, 1, 1 << i);
    ck_assert_double_eq_tol(1e3 * f.law[0].token_s[i] / plan.decode_cloud_ms, 1, 1e-9);
  }
  release(&f);
}

/* A whole prompt of twice the mean is halfway after the mean; one of 256 rows begins the prompt. */
LP_TEST(passes_over_prompts_are_those_of_plans) {
  fixture f = open();
  const lp_plan_result plan = planned(&f, "cloud-only", 256, 1, 1);
  ck_assert_double_eq_tol(1e3 * f.law[0].prompt_s[8] / plan.prefill_cloud_ms, 1, 1e-9);
  const lp_plan_result first = planned(&f, "cloud-only", 16, 1, 1);
  ck_assert_double_ge(1e3 * f.law[0].prompt_s[4], first.prefill_cloud_ms); /* it has a past of 24 */
  release(&f);
}

LP_TEST(the_device_alone_is_that_of_plans) {
  fixture f = open();
  const lp_load_user *whole = &f.user[lp_load_cuts(f.load) - 1];
  const lp_plan_result plan = planned(&f, "device-only", LONGEST, 1, 1),
                       token = planned(&f, "device-only", CONTEXT, 1, 1);
  ck_assert_double_eq_tol(1e3 * whole->first_s[LP_LOAD_KNOTS - 1] / plan.ttft_ms, 1, 1e-9);
  ck_assert_double_eq_tol(1e3 * whole->token_s / token.tpot_ms, 1, 1e-9);
  ck_assert(!whole->streams && f.user[0].streams);
  for (int64_t i = 1; i < lp_load_cuts(f.load); i++)
    ck_assert_double_le(f.law[i].token_s[0], f.law[i - 1].token_s[0] * (1 + 1e-9));
  release(&f);
}

/* Sessions at a time fill the memory, and one more would not fit. */
LP_TEST(sessions_fill_the_memory) {
  fixture f = open();
  const lp_compile_request request = request_of(&f);
  const lp_load_lengths lengths = {.prompt = PROMPT, .context = CONTEXT, .kept = 300, .longest = LONGEST};
  ck_assert_int_eq(f.law[0].sessions, 256);
  const double cache = 6 * 2 * 512 * 2; /* layers, keys and values, hidden, bytes of f16: of a token */
  ck_assert_double_eq_tol(f.law[0].session_bytes, 300 * cache, 1);
  f.cloud->figure[LP_HW_MEMORY] = f.law[0].weight_bytes;
  lp_load_laws(f.load, &request, &lengths, f.law);
  ck_assert_int_eq(f.law[0].sessions, 0);
  int64_t before = 0;
  for (int more = 1; more < 400; more++) {
    f.cloud->figure[LP_HW_MEMORY] = f.law[0].weight_bytes + more * 300 * cache;
    lp_load_laws(f.load, &request, &lengths, f.law);
    ck_assert_double_le((double)f.law[0].sessions, fmin(256, more));
    ck_assert(f.law[0].sessions == 256 || f.law[0].sessions <= before + 1);
    before = f.law[0].sessions;
  }
  ck_assert_int_eq(before, 256);
  release(&f);
}

/* An exit after the last layer is the whole model; each layer less takes as much off. */
LP_TEST(an_exit_adds_the_head) {
  fixture f = open();
  const int64_t cuts = lp_load_cuts(f.load), layers = cuts - 3;
  const lp_load_user *whole = &f.user[cuts - 1];
  const double layer_s = f.user[3].device_token_s - f.user[2].device_token_s;
  for (int64_t exit = 1; exit <= layers; exit++) {
    const lp_load_user *split = &f.user[exit + 1], with = lp_load_user_with_exit(f.user, cuts, exit, 0.25, 4);
    const double device_s = whole->device_token_s - (double)(layers - exit) * layer_s,
                 link_s = split->token_s - split->device_token_s;
    ck_assert_double_eq_tol(with.device_token_s / device_s, 1, 1e-6);
    ck_assert_double_eq_tol(0.25 * with.token_s / (device_s + 0.25 * link_s), 1, 1e-6);
    ck_assert_double_lt(with.room_bytes, split->room_bytes - 1000 * 512 * 2 * (1 - 1e-9)); /* the head's weights */
    ck_assert_double_ge(with.room_bytes, whole->room_bytes - 1);
    const lp_load_user drafts = lp_load_user_with_exit(f.user, cuts, exit, 0.25, 6);
    ck_assert_double_eq_tol(drafts.device_token_s / device_s, 1.5, 1e-6);
    ck_assert_double_eq_tol(drafts.token_s / (6 * device_s + link_s), 1, 1e-6);
  }
  release(&f);
}
