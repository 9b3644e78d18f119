/* Simulates one run, from event to event. */
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/simulate/engine.h"
#include "runtime/simulate/heap.h"
#include "runtime/simulate/station.h"

typedef struct {
  const lp_sim_scenario *scenario;
  lp_sim_scenario drifted; /* the models from request drift_after on */
  const lp_sim_users *users;
  const lp_sim_policy *policy;
  void *state; /* of the policy */
  gsl_rng *arrivals, *tasks;
  lp_sim_site site[LP_SITE_COUNT];
  lp_sim_heap links; /* requests on their way to a site */
  LP_VEC(lp_sim_job) jobs;
  LP_VEC(lp_sim_request) requests; /* the requests as the policy saw them; only for a policy that learns */
  LP_VEC(uint32_t) free;           /* places in jobs */
  double *share;                   /* [tasks] cumulated */
  int64_t next;                    /* index of the next request */
  double next_s;                   /* when the next request comes; INFINITY: no more */
  double now_s;
  lp_sim_tally *tally;
  lp_sim_histogram *histogram;
} engine;

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* The stream of one purpose in one run. Release with gsl_rng_free. */
static gsl_rng *stream_create(const lp_sim_scenario *scenario, int64_t run, const char *purpose) {
  gsl_rng *stream = gsl_rng_alloc(gsl_rng_mt19937);
  uint64_t mixed = lp_hash_bytes(purpose, strlen(purpose), (uint64_t)scenario->seed);
  mixed = lp_hash_bytes(&run, sizeof run, mixed);
  gsl_rng_set(stream, (unsigned long)((mixed ^ mixed >> 32) & 0xffffffff));
  return stream;
}

static double draw_length(gsl_rng *random, const lp_sim_lengths *lengths) {
  switch (lengths->shape) {
  case LP_SIM_FIXED:
    break;
  case LP_SIM_UNIFORM:
    return lengths->from + (lengths->to - lengths->from) * gsl_rng_uniform(random);
  case LP_SIM_EXPONENTIAL:
    return gsl_ran_exponential(random, lengths->mean);
  case LP_SIM_LOGNORMAL:
    return gsl_ran_lognormal(random, log(lengths->mean) - lengths->sigma * lengths->sigma / 2, lengths->sigma);
  case LP_SIM_GEOMETRIC:
    return (double)gsl_ran_geometric(random, 1 / lengths->mean);
  }
  return lengths->mean;
}

static double draw_tokens(gsl_rng *random, const lp_sim_lengths *lengths) {
  return fmax(round(draw_length(random, lengths)), lengths->least);
}

/* Returns the scenario of a request, which depends on the drift. */
static const lp_sim_scenario *scenario_of(const engine *e, int64_t index) {
  return e->scenario->drift_after > 0 && index >= e->scenario->drift_after ? &e->drifted : e->scenario;
}

/* ---- arrivals ---------------------------------------------------------------------------------------------------- */

static void plan_arrival(engine *e) {
  const lp_sim_scenario *s = e->scenario;
  if (e->next >= s->requests)
    e->next_s = INFINITY;
  else if (s->trace)
    e->next_s = s->trace[e->next].at_s;
  else
    e->next_s = e->now_s + (s->rate > 0 ? gsl_ran_exponential(e->arrivals, 1 / s->rate) : s->every_s);
}

/* These draws do not depend on the policy. */
typedef struct {
  int32_t task;
  double prompt, tokens, lucky[LP_SITE_COUNT], success[LP_SITE_COUNT];
  double up_bps, down_bps;
} drawn;

static drawn draw_request(engine *e) {
  const lp_sim_scenario *s = e->scenario;
  const lp_sim_traced *traced = s->trace ? &s->trace[e->next] : NULL;
  drawn d = {.up_bps = s->up_bps, .down_bps = s->down_bps};
  double u = s->tasks > 1 ? gsl_rng_uniform(e->tasks) : 0;
  while (d.task < s->tasks - 1 && u >= e->share[d.task])
    d.task++;
  if (traced) d.task = traced->task;
  d.prompt = draw_tokens(e->tasks, &s->task[d.task].prompt);
  d.tokens = draw_tokens(e->tasks, &s->task[d.task].tokens);
  if (traced && traced->prompt >= 0) d.prompt = traced->prompt;
  if (traced && traced->tokens >= 0) d.tokens = traced->tokens;
  for (int p = 0; p < LP_SITE_COUNT; p++)
    d.success[p] = traced && traced->success[p] >= 0 ? traced->success[p] : s->task[d.task].success[p];
  for (int p = 0; p < LP_SITE_COUNT; p++)
    d.lucky[p] = s->task[d.task].quality ? gsl_rng_uniform(e->tasks) : 0;
  if (e->users->count > 0) {
    uint64_t user = gsl_rng_uniform_int(e->tasks, (unsigned long)e->users->count);
    d.up_bps = e->users->up[user];
    d.down_bps = e->users->down[user];
  }
  return d;
}

/* ---- deciding ---------------------------------------------------------------------------------------------------- */

static double generation_s(const lp_sim_scenario *s, lp_site site, double prompt, double tokens) {
  return lp_generation_s(&s->service->at[site], prompt, tokens, (lp_counting)s->counting);
}

static double up_s(const lp_sim_scenario *s, const drawn *d, lp_site site) {
  return lp_transmission_s(d->prompt, s->token_bytes, d->up_bps, site, s->backhaul_s);
}

static double down_s(const lp_sim_scenario *s, const drawn *d, double tokens) {
  return lp_transmission_s(tokens, s->token_bytes, d->down_bps, LP_SITE_EDGE, 0);
}

static bool suffices(const lp_sim_task *task, const drawn *d, lp_site site) {
  return !task->quality || d->lucky[site] < d->success[site];
}

static lp_sim_request view_of(const engine *e, const drawn *d) {
  const lp_sim_scenario *s = scenario_of(e, e->next);
  const lp_sim_task *task = &s->task[d->task];
  lp_sim_request request = {.now_s = e->now_s,
                            .index = e->next,
                            .task = d->task,
                            .task_name = task->name,
                            .quality = task->quality,
                            .prompt_tokens = d->prompt,
                            .expected_tokens = task->tokens.mean,
                            .target_s = s->target_s,
                            .penalty = s->penalty,
                            .patience = s->patience};
  for (int p = 0; p < LP_SITE_COUNT; p++) {
    double mean = task->tokens.mean, up = up_s(s, d, (lp_site)p);
    request.wait_s[p] = lp_sim_site_wait_s(&e->site[p]);
    request.delay_s[p] = request.wait_s[p] + generation_s(s, (lp_site)p, d->prompt, mean) + up + down_s(s, d, mean);
    double truly = request.wait_s[p] + generation_s(s, (lp_site)p, d->prompt, d->tokens) + up + down_s(s, d, d->tokens);
    request.expected_reward[p] = lp_service_reward(s->target_s, truly, s->penalty, !suffices(task, d, (lp_site)p));
  }
  return request;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static uint32_t new_job(engine *e) {
  if (e->free.count > 0) return e->free.data[--e->free.count];
  lp_vec_push(&e->jobs, (lp_sim_job){0});
  if (e->policy->learn) lp_vec_push(&e->requests, (lp_sim_request){0});
  return (uint32_t)(e->jobs.count - 1);
}

/* The twentieth of the counted requests that this one belongs to; -1: it belongs to the warm-up. */
static int32_t part_of(const engine *e, int64_t index) {
  int64_t warm_up = e->scenario->warm_up, counted = e->scenario->requests - warm_up;
  return index < warm_up ? -1 : (int32_t)((index - warm_up) * LP_SIM_PARTS / counted);
}

static void count_outcome(engine *e, const lp_sim_job *job, const lp_sim_outcome *outcome) {
  int32_t part = part_of(e, job->index);
  lp_sim_tally *tally = e->tally;
  if (part < 0) return;
  double generation = outcome->delay_s - job->link_s - job->decision_s - (job->started_s - job->reached_s);
  tally->requests++;
  tally->at[job->site]++;
  lp_sim_tally_add(tally, part, SIM_DELAY, outcome->delay_s);
  lp_sim_tally_add(tally, part, SIM_REWARD, outcome->reward);
  lp_sim_tally_add(tally, part, SIM_REGRET, job->regret);
  lp_sim_tally_add(tally, part, SIM_WAIT, job->started_s - job->reached_s);
  lp_sim_tally_add(tally, part, SIM_GENERATION, generation);
  lp_sim_tally_add(tally, part, SIM_LINK, job->link_s);
  lp_sim_tally_add(tally, part, SIM_TASKS + job->task, outcome->delay_s);
  if (e->scenario->task[job->task].quality) lp_sim_tally_add(tally, part, SIM_QUALITY, outcome->met ? 1 : 0);
  lp_sim_histogram_add(e->histogram, outcome->delay_s);
}

/* Counts a request at the end of its generation. The time of the downlink, which follows, is known. */
static void complete(engine *e, uint32_t index) {
  const lp_sim_job *job = &e->jobs.data[index];
  const lp_sim_scenario *s = scenario_of(e, job->index);
  double down = job->link_s + job->decision_s - (job->reached_s - job->arrived_s);
  lp_sim_outcome outcome = {.site = job->site, .delay_s = e->now_s - job->arrived_s + down, .met = job->met};
  outcome.reward = lp_service_reward(s->target_s, outcome.delay_s, s->penalty, !outcome.met);
  count_outcome(e, job, &outcome);
  if (e->policy->learn) e->policy->learn(e->state, &e->requests.data[index], &outcome);
  lp_vec_push(&e->free, index);
}

static void reach(engine *e, uint32_t index) {
  lp_sim_job *job = &e->jobs.data[index];
  job->reached_s = e->now_s;
  if (lp_sim_site_offer(&e->site[job->site], e->jobs.data, index, e->now_s)) return;
  if (part_of(e, job->index) >= 0) e->tally->rejected++;
  lp_vec_push(&e->free, index);
}

static void arrive(engine *e) {
  const lp_sim_scenario *s = scenario_of(e, e->next);
  drawn d = draw_request(e);
  lp_sim_request request = view_of(e, &d);
  lp_site site = e->policy->decide(e->state, &request), other = site == LP_SITE_EDGE ? LP_SITE_CLOUD : LP_SITE_EDGE;
  if (lp_sim_site_is_full(&e->site[site]) && !lp_sim_site_is_full(&e->site[other])) {
    site = other;
    if (part_of(e, e->next) >= 0) e->tally->overflowed++;
  }
  uint32_t index = new_job(e);
  lp_sim_job *job = &e->jobs.data[index];
  double up = up_s(s, &d, site), decision = e->policy->asks_model ? s->decision_s : 0;
  *job = (lp_sim_job){.index = e->next,
                      .arrived_s = e->now_s,
                      .work_s = generation_s(s, site, d.prompt, d.tokens),
                      .expected_work_s = generation_s(s, site, d.prompt, s->task[d.task].tokens.mean),
                      .link_s = up + down_s(s, &d, d.tokens),
                      .decision_s = decision,
                      .regret = fmax(0, request.expected_reward[other] - request.expected_reward[site]),
                      .met = suffices(&s->task[d.task], &d, site),
                      .task = d.task,
                      .site = site};
  if (e->policy->learn) e->requests.data[index] = request;
  if (up + decision > 0)
    lp_sim_heap_push(&e->links, e->now_s + decision + up, index);
  else
    reach(e, index);
  e->next++;
  plan_arrival(e);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

/* The earliest event. At equal times ends come before arrivals, so that an arrival finds the freed slots. */
static bool step(engine *e) {
  int32_t server[LP_SITE_COUNT] = {0, 0};
  double link = e->links.entries.count > 0 ? e->links.entries.data[0].key : INFINITY;
  double edge = lp_sim_site_next(&e->site[LP_SITE_EDGE], &server[LP_SITE_EDGE]);
  double cloud = lp_sim_site_next(&e->site[LP_SITE_CLOUD], &server[LP_SITE_CLOUD]);
  lp_site first = edge <= cloud ? LP_SITE_EDGE : LP_SITE_CLOUD;
  double end = fmin(edge, cloud), next = fmin(fmin(end, link), e->next_s);
  if (isinf(next)) return false;
  e->now_s = next;
  if (end <= next)
    complete(e, lp_sim_site_finish(&e->site[first], e->jobs.data, server[first], next));
  else if (link <= next)
    reach(e, lp_sim_heap_pop(&e->links));
  else
    arrive(e);
  return true;
}

static void conclude(engine *e, double arrivals_end_s) {
  for (int p = 0; p < LP_SITE_COUNT; p++) {
    const lp_sim_site *site = &e->site[p];
    const lp_sim_station *form = site->form;
    double time = fmax(arrivals_end_s, 1e-300);
    e->tally->queue_length[p] = site->waiting_s / time;
    if (form->slots < LP_SIM_UNLIMITED)
      e->tally->utilisation[p] = site->busy_s / (time * (double)form->replicas * (double)form->slots);
    lp_sim_site_end(&e->site[p]);
  }
  if (e->policy->free) e->policy->free(e->state);
  gsl_rng_free(e->arrivals);
  gsl_rng_free(e->tasks);
  lp_vec_free(&e->links.entries);
  lp_vec_free(&e->jobs);
  lp_vec_free(&e->requests);
  lp_vec_free(&e->free);
  free(e->share);
}

void lp_sim_run_once(const lp_sim_scenario *s, const lp_sim_users *users, const lp_sim_policy *policy, int64_t run,
                     lp_sim_tally *tally, lp_sim_histogram *histogram) {
  engine e = {.scenario = s,
              .drifted = *s,
              .users = users,
              .policy = policy,
              .arrivals = stream_create(s, run, "arrivals"),
              .tasks = stream_create(s, run, "tasks"),
              .share = lp_alloc((size_t)s->tasks * sizeof *e.share),
              .tally = tally,
              .histogram = histogram};
  if (policy->create) e.state = policy->create(policy->context, (uint64_t)(s->seed * 1000003 + run));
  if (s->drift_service) e.drifted.service = s->drift_service;
  if (s->drift_penalty >= 0) e.drifted.penalty = s->drift_penalty;
  double sum = 0, all = 0, last = 0;
  for (int32_t t = 0; t < s->tasks; t++)
    all += s->task[t].share;
  for (int32_t t = 0; t < s->tasks; t++)
    e.share[t] = (sum += s->task[t].share) / all;
  for (int p = 0; p < LP_SITE_COUNT; p++)
    lp_sim_site_begin(&e.site[p], &s->station[p]);
  plan_arrival(&e);
  do
    last = isinf(e.next_s) ? last : e.next_s;
  while (step(&e));
  conclude(&e, fmax(last, e.now_s));
}
