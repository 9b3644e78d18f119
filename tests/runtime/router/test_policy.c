/* The policies: exploration has the stated probabilities, learners find the better route of each kind, and failures
 * fall back to the rule. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "runtime/router/router.h"
#include "runtime/router/simulated.h"
#include "tests/suite.h"

enum { BOTH = 1u << LP_ROUTE_EDGE | 1u << LP_ROUTE_CLOUD };

/* Kinds of requests and the reward of each route; the better route differs between kinds. */
static const struct {
  const char *keywords;
  double mean[LP_ROUTE_COUNT];
} kinds[] = {{"summary, quality", {-30, -20, 0}},
             {"summary", {-7, -18, 0}},
             {"code, quality", {-35, -25, 0}},
             {"code", {-9, -22, 0}},
             {"chat", {-3, -10, 0}},
             {"chat, quality", {-6, -11, 0}}};

static lp_router_request request_of(size_t kind) {
  return (lp_router_request){
      .keywords = kinds[kind].keywords, .offered = BOTH, .rule = LP_ROUTE_CLOUD, .mean_reward = kinds[kind].mean};
}

/* Runs `count` requests. Returns the share of the last quarter in which the policy's estimate names the better
 * route. */
static double run(lp_policy *policy, int count) {
  int right = 0, judged = 0;
  for (int i = 0; i < count; i++) {
    size_t kind = lp_random_bits(1, (uint64_t)i, 0) % LP_COUNT(kinds);
    lp_router_request request = request_of(kind);
    lp_decision decision;
    policy->decide(policy, &request, &decision);
    double noise = lp_random_uniform(1, (uint64_t)i, 1) - 0.5;
    policy->learn(policy, &request, decision.route, kinds[kind].mean[decision.route] + noise, true);
    if (i < count * 3 / 4) continue;
    lp_route better =
        kinds[kind].mean[LP_ROUTE_EDGE] > kinds[kind].mean[LP_ROUTE_CLOUD] ? LP_ROUTE_EDGE : LP_ROUTE_CLOUD;
    right += decision.probability[better] > 0.5;
    judged++;
  }
  policy->close(policy);
  return (double)right / judged;
}

LP_TEST(exploration_is_uniform_over_what_is_offered) {
  lp_explorer explorer = {.options = {.epsilon = 0.3, .seed = 7}};
  int count[LP_ROUTE_COUNT] = {0}, explored = 0;
  const int draws = 20000;
  for (int i = 0; i < draws; i++) {
    lp_decision decision = {0};
    lp_explorer_draw(&explorer, 7, LP_ROUTE_CLOUD, LP_DECIDED_MODEL, &decision);
    count[decision.route]++;
    explored += decision.source == LP_DECIDED_EXPLORE;
    ck_assert_double_eq_tol(decision.propensity, decision.route == LP_ROUTE_CLOUD ? 0.8 : 0.1, 1e-12);
  }
  ck_assert_double_eq_tol((double)explored / draws, 0.3, 0.015);
  ck_assert_double_eq_tol((double)count[LP_ROUTE_CLOUD] / draws, 0.8, 0.015);
  ck_assert_double_eq_tol((double)count[LP_ROUTE_EDGE] / draws, 0.1, 0.01);
}

LP_TEST(a_single_route_needs_no_draw) {
  lp_explorer explorer = {.options = {.epsilon = 1, .seed = 7}};
  lp_decision decision = {0};
  lp_explorer_draw(&explorer, 1u << LP_ROUTE_SPLIT, LP_ROUTE_SPLIT, LP_DECIDED_MODEL, &decision);
  ck_assert_int_eq(decision.source, LP_DECIDED_ONLY);
  ck_assert_int_eq(decision.route, LP_ROUTE_SPLIT);
  ck_assert_double_eq(decision.propensity, 1);
}

LP_TEST(exploration_decays_by_half_lives) {
  lp_explorer explorer = {.options = {.epsilon = 0.8, .half_life = 100, .seed = 3}, .count = 300};
  lp_decision decision = {0};
  lp_explorer_draw(&explorer, BOTH, LP_ROUTE_EDGE, LP_DECIDED_MODEL, &decision);
  double epsilon = 0.1, of_best = 1 - epsilon / 2;
  ck_assert_double_eq_tol(decision.propensity, decision.route == LP_ROUTE_EDGE ? of_best : epsilon / 2, 1e-9);
}

static const lp_exploration exploration = {.epsilon = 0.2, .seed = 5};

LP_TEST(learners_find_the_better_route_of_each_kind) {
  ck_assert_double_ge(run(lp_policy_table(0.1, &exploration), 2000), 0.99);
  ck_assert_double_ge(run(lp_policy_network(&exploration), 2000), 0.95);
  lp_router_options options = {.replay = LP_REPLAY_EMA, .exploration = exploration};
  ck_assert_double_ge(run(lp_router_create(&options, lp_decider_lookup()), 2000), 0.99);
  options.replay = LP_REPLAY_REWARD;
  ck_assert_double_ge(run(lp_router_create(&options, lp_decider_lookup()), 2000), 0.95);
}

LP_TEST(fixed_policies_do_what_their_names_say) {
  static const struct {
    const char *name;
    lp_route route;
  } want[] = {{"edge", LP_ROUTE_EDGE},
              {"cloud", LP_ROUTE_CLOUD},
              {"rule", LP_ROUTE_CLOUD},
              {"oracle", LP_ROUTE_EDGE},
              {"quickest", LP_ROUTE_EDGE}};
  lp_router_request request = request_of(1);
  request.delay_s[LP_ROUTE_EDGE] = 1;
  request.delay_s[LP_ROUTE_CLOUD] = 2;
  for (size_t i = 0; i < LP_COUNT(want); i++) {
    lp_policy *policy = lp_policy_fixed(want[i].name, 1);
    ck_assert_str_eq(policy->name, want[i].name);
    lp_decision decision;
    policy->decide(policy, &request, &decision);
    ck_assert_int_eq(decision.route, want[i].route);
    policy->close(policy);
  }
  ck_assert_ptr_null(lp_policy_fixed("best", 1));
}

/* No policy takes a route that is not offered. */
LP_TEST(constraints_bind_every_policy) {
  static const char *const names[] = {"rule", "edge", "cloud", "split", "random", "oracle", "quickest"};
  lp_router_options options = {.exploration = {.epsilon = 1, .seed = 2}};
  for (size_t i = 0; i < LP_COUNT(names) + 3; i++) {
    lp_policy *policy = i < LP_COUNT(names)        ? lp_policy_fixed(names[i], 9)
                        : i == LP_COUNT(names)     ? lp_policy_table(0.1, &options.exploration)
                        : i == LP_COUNT(names) + 1 ? lp_policy_network(&options.exploration)
                                                   : lp_router_create(&options, lp_decider_lookup());
    for (unsigned offered = 1; offered < 8; offered++) {
      lp_router_request request = request_of(0);
      request.offered = offered;
      lp_decision decision;
      policy->decide(policy, &request, &decision);
      ck_assert_msg(lp_route_offered(offered, decision.route), "%s takes %s of %u", policy->name,
                    lp_route_name(decision.route), offered);
      policy->learn(policy, &request, decision.route, 1, true);
    }
    policy->close(policy);
  }
}

static lp_status never_scores(lp_decider *self, const lp_prompt *prompt, double probability[LP_ROUTE_COUNT],
                              lp_diag *diag) {
  (void)self, (void)prompt, (void)probability;
  return lp_error(diag, (lp_loc){0}, "the model is away");
}

static void close_nothing(lp_decider *self) {
  (void)self;
}

LP_TEST(the_rule_decides_when_the_model_fails) {
  static lp_decider broken = {"broken", never_scores, close_nothing, false, NULL};
  lp_policy *policy = lp_router_create(&(lp_router_options){0}, &broken);
  lp_router_request request = request_of(1);
  lp_decision decision;
  policy->decide(policy, &request, &decision);
  ck_assert_int_eq(decision.route, LP_ROUTE_CLOUD);
  ck_assert_int_eq(decision.source, LP_DECIDED_FALLBACK);
  ck_assert_str_eq(decision.reason, "the model is away");
  request.offered = 1u << LP_ROUTE_EDGE | 1u << LP_ROUTE_SPLIT;
  policy->decide(policy, &request, &decision);
  ck_assert_int_ne(decision.route, LP_ROUTE_CLOUD);
  policy->close(policy);
}

static int asked;

static lp_status counts_calls(lp_decider *self, const lp_prompt *prompt, double probability[LP_ROUTE_COUNT],
                              lp_diag *diag) {
  (void)self, (void)prompt, (void)diag;
  asked++;
  probability[LP_ROUTE_EDGE] = 0.25;
  probability[LP_ROUTE_CLOUD] = 0.75;
  return LP_OK;
}

LP_TEST(the_same_prompt_is_asked_once) {
  static lp_decider slow = {"slow", counts_calls, close_nothing, false, NULL};
  lp_policy *policy = lp_router_create(&(lp_router_options){.cache = 64}, &slow);
  lp_router_request request = request_of(1);
  lp_decision decision;
  asked = 0;
  for (int i = 0; i < 3; i++)
    policy->decide(policy, &request, &decision);
  ck_assert_int_eq(asked, 1);
  ck_assert_int_eq(decision.source, LP_DECIDED_CACHE);
  ck_assert_double_eq(decision.probability[LP_ROUTE_CLOUD], 0.75);
  policy->learn(policy, &request, LP_ROUTE_EDGE, 5, true); /* another prompt */
  policy->decide(policy, &request, &decision);
  ck_assert_int_eq(asked, 2);
  ck_assert_int_eq(decision.source, LP_DECIDED_MODEL);
  request.offered |= 1u << LP_ROUTE_SPLIT;
  policy->decide(policy, &request, &decision);
  ck_assert_int_eq(asked, 3);
  policy->close(policy);
}

LP_TEST(a_failure_is_not_remembered) {
  static lp_decider broken = {"broken", never_scores, close_nothing, false, NULL};
  lp_policy *policy = lp_router_create(&(lp_router_options){.cache = 4}, &broken);
  lp_router_request request = request_of(1);
  lp_decision decision;
  for (int i = 0; i < 2; i++) {
    policy->decide(policy, &request, &decision);
    ck_assert_int_eq(decision.source, LP_DECIDED_FALLBACK);
    ck_assert_str_eq(decision.reason, "the model is away");
  }
  policy->close(policy);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 8 };
static pthread_barrier_t all_inside;

/* Returns only when all threads are in it. */
static lp_status meets(lp_decider *self, const lp_prompt *prompt, double probability[LP_ROUTE_COUNT], lp_diag *diag) {
  (void)self, (void)diag;
  (void)pthread_barrier_wait(&all_inside);
  probability[LP_ROUTE_EDGE] = strstr(prompt->keywords, "code") ? 0 : 1;
  probability[LP_ROUTE_CLOUD] = 1 - probability[LP_ROUTE_EDGE];
  probability[LP_ROUTE_SPLIT] = 0;
  return LP_OK;
}

static void *decide_once(void *user) {
  lp_policy *policy = user;
  lp_router_request request = {.keywords = "code", .offered = 3};
  lp_decision decision;
  policy->decide(policy, &request, &decision);
  ck_assert_int_eq(decision.route, LP_ROUTE_CLOUD);
  policy->learn(policy, &request, decision.route, 1, true);
  return NULL;
}

/* Threads ask a decider that allows it at the same time. */
LP_TEST(decides_in_parallel) {
  static lp_decider meeting = {"meeting", meets, close_nothing, true, NULL};
  const lp_router_options options = {.examples = 4};
  pthread_t thread[THREADS];
  lp_policy *policy = lp_router_create(&options, &meeting);
  ck_assert(policy->parallel);
  ck_assert_int_eq(pthread_barrier_init(&all_inside, NULL, THREADS), 0);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, decide_once, policy), 0);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  policy->close(policy);
  (void)pthread_barrier_destroy(&all_inside);
}

/* ---- policies by name -------------------------------------------------------------------------------------------- */

/* A model is a name, the base of an API, which has a model of its own, or the path of a bundle. */
LP_TEST(models_of_the_router) {
  static const struct {
    const char *policy, *model, *name, *why; /* why NULL: it opens */
  } cases[] = {{"router", "lookup", NULL, NULL},
               {"latest", "lookup", NULL, NULL},
               {"greedy", "http://127.0.0.1:9/v1", "m", NULL},
               {"router", "https://127.0.0.1:9/v1", "m", NULL},
               {"router", "http://127.0.0.1:9/v1", NULL, "name"},
               {"router", "/nonexistent/bundle", NULL, ""},
               {"router", "httpx://there", NULL, ""},
               {"q-table", NULL, NULL, NULL},
               {"rooter", "lookup", NULL, "there is no policy 'rooter'"}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    const lp_policy_spec spec = {
        .policy = cases[i].policy, .model = cases[i].model, .model_name = cases[i].name, .timeout_ms = 100};
    lp_diag *diag = lp_diag_create();
    lp_policy *policy = NULL;
    lp_status status = lp_policy_open(&spec, &policy, diag);
    ck_assert_msg((status == LP_OK) == !cases[i].why, "case %zu", i);
    ck_assert_uint_eq(lp_diag_error_count(diag), cases[i].why != NULL);
    if (cases[i].why) ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, cases[i].why));
    if (policy) policy->close(policy);
    lp_diag_free(diag);
  }
}

/* A model that cannot be opened is told before a simulation, once. */
LP_TEST(simulated_policies_have_a_model) {
  for (int i = 0; i < 2; i++) {
    const lp_policy_spec spec = {.model = i ? "/nonexistent/bundle" : "lookup"};
    lp_diag *diag = lp_diag_create();
    lp_router_sim *sim = NULL;
    ck_assert_int_eq(lp_router_sim_open(&spec, &sim, diag), i ? LP_FAILED : LP_OK);
    ck_assert_uint_eq(lp_diag_error_count(diag), (unsigned)i);
    if (i == 0) ck_assert_uint_gt(lp_router_sim_policies(sim).count, 8);
    if (i == 0) lp_router_sim_close(sim);
    lp_diag_free(diag);
  }
}
