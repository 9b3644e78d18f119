/* Simulates one run, from event to event. */
#include <gsl/gsl_randist.h>
#include <math.h>

#include "base/random.h"
#include "runtime/simulate/engine.h"
#include "runtime/simulate/station.h"

typedef struct {
  const lp_sim_scenario *scenario;
  lp_sim_scenario drifted; /* the models from request drift_after on */
  const lp_sim_users *users;
  const lp_sim_policy *policy;
  void *state;   /* of the policy */
  uint64_t seed; /* of the run */
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
  lp_sim_delays *delays;
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

static bool is_there(const lp_sim_scenario *s, int site) {
  return (s->there >> site & 1u) != 0;
}

/* These draws do not depend on the policy. */
typedef struct {
  int32_t task, place;
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
  d.place = traced ? traced->place : -1;
  for (int p = 0; p < LP_SITE_COUNT; p++)
    d.success[p] = traced && traced->success[p] >= 0 ? traced->success[p] : s->task[d.task].success[p];
  for (int p = 0; p < LP_SITE_COUNT; p++)
    if (is_there(s, p)) d.lucky[p] = s->task[d.task].quality ? gsl_rng_uniform(e->tasks) : 0;
  if (e->users->count > 0) {
    uint64_t user = gsl_rng_uniform_int(e->tasks, (unsigned long)e->users->count);
    d.up_bps = e->users->up[user];
    d.down_bps = e->users->down[user];
  }
  return d;
}

/* ---- deciding ---------------------------------------------------------------------------------------------------- */

static double generation_s(const lp_sim_scenario *s, lp_site site, double prompt, double tokens) {
  const lp_sim_station *form = &s->station[site];
  if (form->pass.count > 0) return lp_sim_passes_alone_s(form, prompt, tokens);
  return lp_generation_s(&s->service->at[site], prompt, tokens, (lp_counting)s->counting);
}

lp_service_model lp_sim_figures(const lp_sim_scenario *s, lp_site site) {
  lp_service_model out = s->service->at[site];
  const lp_sim_station *form = &s->station[site];
  if (form->pass.count == 0) return out;
  const double first = lp_sim_passes_alone_s(form, 1, 1);
  if (!out.model) out.model = lp_site_names[site];
  out.prompt_s = (lp_sim_passes_alone_s(form, 129, 1) - first) / 128;
  out.tpot_s = lp_sim_passes_alone_s(form, 1, 2) - first;
  out.ttft_s = fmax(0, first - out.prompt_s);
  return out;
}

/* The user's link carries the prompt up, and for a split without passes, whose device is the user's, the hidden states
 * of all positions but the last. Both ways with the server's work on the request. */
static double up_s(const lp_sim_scenario *s, const drawn *d, lp_site site) {
  const lp_sim_station *form = &s->station[site];
  double up = form->request_s + lp_transmission_s(d->prompt, s->token_bytes, d->up_bps, site, s->backhaul_s);
  if (form->pass.count > 0 || form->crossing.row_bytes <= 0) return up;
  return up + lp_transmission_s(d->prompt + fmax(d->tokens - 1, 0), form->crossing.row_bytes, d->up_bps, site, 0) +
         form->crossing.rtt_s * d->tokens * (1 - form->exits.share);
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
                            .patience = s->patience,
                            .scenario = s,
                            .offered = s->there,
                            .up_bps = d->up_bps,
                            .down_bps = d->down_bps};
  for (int p = 0; p < LP_SITE_COUNT; p++) {
    if (!is_there(s, p)) continue;
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

/* The time to the first token. Its way down takes no time worth counting. */
static double first_s(const lp_sim_job *job, const lp_sim_outcome *outcome) {
  double share = job->work_s > 0 ? job->first_work_s / job->work_s : 1;
  double until = job->first_s > 0 ? job->first_s : job->started_s + share * outcome->service_s;
  return until - job->arrived_s;
}

static void count_outcome(engine *e, const lp_sim_job *job, const lp_sim_outcome *outcome) {
  int32_t part = part_of(e, job->index);
  lp_sim_tally *tally = e->tally;
  if (part < 0) return;
  tally->requests++;
  tally->at[job->site]++;
  lp_sim_tally_add(tally, part, SIM_DELAY, outcome->delay_s);
  lp_sim_tally_add(tally, part, SIM_REWARD, outcome->reward);
  lp_sim_tally_add(tally, part, SIM_REGRET, job->regret);
  lp_sim_tally_add(tally, part, SIM_WAIT, job->started_s - job->reached_s);
  lp_sim_tally_add(tally, part, SIM_GENERATION, outcome->service_s);
  lp_sim_tally_add(tally, part, SIM_LINK, job->link_s);
  lp_sim_tally_add(tally, part, SIM_TTFT, first_s(job, outcome));
  lp_sim_tally_add(tally, part, SIM_SITES + (int32_t)job->site, outcome->delay_s);
  lp_sim_tally_add(tally, part, SIM_TASKS + job->task, outcome->delay_s);
  if (e->scenario->task[job->task].quality) lp_sim_tally_add(tally, part, SIM_QUALITY, outcome->met ? 1 : 0);
  lp_sim_histogram_add(&e->delays->all, outcome->delay_s);
  lp_sim_histogram_add(&e->delays->at[job->site], outcome->delay_s);
}

/* Counts a request at the end of its generation. The time of the downlink, which follows, is known. */
static void complete(engine *e, uint32_t index) {
  const lp_sim_job *job = &e->jobs.data[index];
  const lp_sim_scenario *s = scenario_of(e, job->index);
  double down = job->link_s + job->decision_s - (job->reached_s - job->arrived_s);
  lp_sim_outcome outcome = {.site = job->site,
                            .at_s = e->now_s,
                            .delay_s = e->now_s - job->arrived_s + down,
                            .service_s = e->now_s - job->started_s,
                            .tokens = job->tokens,
                            .met = job->met};
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
  if (e->policy->lose) e->policy->lose(e->state, &e->requests.data[index], job->site);
  lp_vec_push(&e->free, index);
}

/* The place that the request names, or that the policy decides. */
static lp_site place_of(engine *e, const drawn *d, const lp_sim_request *request) {
  return d->place >= 0 ? (lp_site)d->place : e->policy->decide(e->state, request);
}

/* The decided place, or the quickest of the others if that is full and they are not. */
static lp_site with_room(const engine *e, const lp_sim_request *request, lp_site decided) {
  lp_site best = decided;
  if (!lp_sim_site_is_full(&e->site[decided])) return decided;
  for (lp_site site = 0; site < LP_SITE_COUNT; site++)
    if (is_there(e->scenario, (int)site) && !lp_sim_site_is_full(&e->site[site]) &&
        (best == decided || request->delay_s[site] < request->delay_s[best]))
      best = site;
  return best;
}

/* The reward that the best other place would have given in addition. */
static double regret_of(const engine *e, const lp_sim_request *request, lp_site site) {
  double most = 0;
  for (int other = 0; other < LP_SITE_COUNT; other++)
    if (is_there(e->scenario, other))
      most = fmax(most, request->expected_reward[other] - request->expected_reward[site]);
  return most;
}

static void arrive(engine *e) {
  const lp_sim_scenario *s = scenario_of(e, e->next);
  drawn d = draw_request(e);
  lp_sim_request request = view_of(e, &d);
  lp_site decided = place_of(e, &d, &request), site = with_room(e, &request, decided);
  if (site != decided && part_of(e, e->next) >= 0) e->tally->overflowed++;
  if (e->policy->begin) e->policy->begin(e->state, &request, site);
  uint32_t index = new_job(e);
  lp_sim_job *job = &e->jobs.data[index];
  double up = up_s(s, &d, site), decision = e->policy->asks_model ? s->decision_s : 0;
  *job = (lp_sim_job){.index = e->next,
                      .arrived_s = e->now_s,
                      .work_s = generation_s(s, site, d.prompt, d.tokens),
                      .expected_work_s = generation_s(s, site, d.prompt, s->task[d.task].tokens.mean),
                      .first_work_s = generation_s(s, site, d.prompt, 1),
                      .prompt = d.prompt,
                      .tokens = d.tokens,
                      .seed = lp_random_mix(e->seed + (uint64_t)e->next),
                      .link_s = up + down_s(s, &d, d.tokens),
                      .decision_s = decision,
                      .regret = regret_of(e, &request, site),
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
  int32_t server = 0;
  double link = e->links.entries.count > 0 ? e->links.entries.data[0].key : INFINITY, end = INFINITY;
  lp_site first = LP_SITE_EDGE;
  for (lp_site site = 0; site < LP_SITE_COUNT; site++) {
    int32_t its = 0;
    double at = lp_sim_site_next(&e->site[site], &its);
    if (at < end) end = at, first = site, server = its;
  }
  double next = fmin(fmin(end, link), e->next_s);
  if (isinf(next)) return false;
  e->now_s = next;
  if (end <= next) {
    uint32_t job = lp_sim_site_finish(&e->site[first], e->jobs.data, server, next);
    if (job != LP_SIM_NO_JOB) complete(e, job);
  } else if (link <= next) {
    reach(e, lp_sim_heap_pop(&e->links));
  } else {
    arrive(e);
  }
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
                     lp_sim_tally *tally, lp_sim_delays *delays) {
  engine e = {.scenario = s,
              .drifted = *s,
              .users = users,
              .policy = policy,
              .arrivals = stream_create(s, run, "arrivals"),
              .tasks = stream_create(s, run, "tasks"),
              .share = lp_alloc((size_t)s->tasks * sizeof *e.share),
              .tally = tally,
              .delays = delays};
  e.seed = (uint64_t)(s->seed * 1000003 + run);
  if (policy->create) e.state = policy->create(policy->context, e.seed);
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
