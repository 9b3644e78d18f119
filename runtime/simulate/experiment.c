/* Runs every policy at every value of the axis, several times. */
#include <math.h>
#include <pthread.h>

#include "base/cores.h"
#include "base/peers.h"
#include "runtime/simulate/engine.h"
#include "runtime/simulate/statistics.h"

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* Threads and processes compute the runs; the results do not depend on their number. A process other than 0 sends a
 * `run_message`, which holds a run's tally, or in its first message its key; process 0 answers with the number of the
 * next run, or -1: there is none. */

typedef struct {
  int64_t points, runs; /* runs: of each point */
  int32_t tasks;
  /* Adds a run to a tally that was begun. Several threads call it at a time. */
  void (*run)(void *user, int64_t point, int64_t run, lp_sim_tally *tally, lp_sim_delays *delays);
  /* Called once for each point, in process 0, from one thread at a time: the tallies of its runs, and all delays. */
  void (*finish)(void *user, int64_t point, const lp_sim_tally *tallies, const lp_sim_delays *delays);
  void *user;
} run_work;

/* ---- what is to be done, and what has been ----------------------------------------------------------------------- */

typedef struct {
  lp_sim_tally *tally;   /* [runs]; NULL before the first run begins and after the last has ended */
  lp_sim_delays *delays; /* of all runs */
  int64_t left;          /* runs that have not ended */
} point_state;

typedef struct {
  const run_work *work;
  pthread_mutex_t lock; /* of all below */
  int64_t next;         /* the next run, counted over all points */
  point_state *point;
} board;

/* Returns the next run; -1: there is none. */
static int64_t take(board *b) {
  (void)pthread_mutex_lock(&b->lock);
  const int64_t runs = b->work->runs, unit = b->next < b->work->points * runs ? b->next++ : -1;
  if (unit >= 0 && unit % runs == 0) {
    b->point[unit / runs] = (point_state){.tally = lp_alloc((size_t)runs * sizeof(lp_sim_tally)),
                                          .delays = lp_alloc(sizeof(lp_sim_delays)),
                                          .left = runs};
  }
  (void)pthread_mutex_unlock(&b->lock);
  return unit;
}

/* No further run begins. */
static void stop(board *b) {
  (void)pthread_mutex_lock(&b->lock);
  b->next = b->work->points * b->work->runs;
  (void)pthread_mutex_unlock(&b->lock);
}

static void release(const board *b, point_state *p) {
  for (int64_t i = 0; p->tally && i < b->work->runs; i++)
    lp_sim_tally_end(&p->tally[i]);
  free(p->tally);
  free(p->delays);
  *p = (point_state){0};
}

/* Takes the result of a run; the board releases the tally. */
static void give(board *b, int64_t unit, const lp_sim_tally *tally, const lp_sim_delays *delays) {
  (void)pthread_mutex_lock(&b->lock);
  const int64_t runs = b->work->runs, point = unit / runs;
  point_state *p = &b->point[point];
  p->tally[unit % runs] = *tally;
  lp_sim_delays_merge(p->delays, delays);
  if (--p->left == 0) {
    b->work->finish(b->work->user, point, p->tally, p->delays);
    release(b, p);
  }
  (void)pthread_mutex_unlock(&b->lock);
}

static void compute(const run_work *work, int64_t unit, lp_sim_tally *tally, lp_sim_delays *delays) {
  lp_sim_tally_begin(tally, work->tasks);
  memset(delays, 0, sizeof *delays);
  work->run(work->user, unit / work->runs, unit % work->runs, tally, delays);
}

static void *compute_all(void *user) {
  board *b = user;
  LP_OWNED(lp_free_at) lp_sim_delays *delays = lp_alloc(sizeof *delays);
  for (int64_t unit; (unit = take(b)) >= 0;) {
    lp_sim_tally tally;
    compute(b->work, unit, &tally, delays);
    give(b, unit, &tally, delays);
  }
  return NULL;
}

/* ---- other processes --------------------------------------------------------------------------------------------- */

/* Followed by the tally's sums and counts. Processes of one key have one layout. */
typedef struct {
  int64_t unit;
  lp_sim_tally tally;
  lp_sim_delays delays;
} run_message;

static size_t cells(const run_work *work) {
  return (size_t)LP_SIM_PARTS * (size_t)(SIM_TASKS + work->tasks);
}

static size_t result_size(const run_work *work) {
  return sizeof(run_message) + cells(work) * (sizeof(double) + sizeof(int64_t));
}

/* Computes the run into a message for process 0. */
static void compute_message(const run_work *work, int64_t unit, run_message *message) {
  compute(work, unit, &message->tally, &message->delays);
  message->unit = unit;
  char *after = (char *)(message + 1);
  memcpy(after, message->tally.sum, cells(work) * sizeof(double));
  memcpy(after + cells(work) * sizeof(double), message->tally.count, cells(work) * sizeof(int64_t));
  lp_sim_tally_end(&message->tally);
}

static void give_message(board *b, const run_message *message) {
  const run_work *work = b->work;
  lp_sim_tally tally, sent = message->tally;
  const char *after = (const char *)(message + 1);
  lp_sim_tally_begin(&tally, work->tasks);
  memcpy(tally.sum, after, cells(work) * sizeof(double));
  memcpy(tally.count, after + cells(work) * sizeof(double), cells(work) * sizeof(int64_t));
  sent.sum = tally.sum;
  sent.count = tally.count;
  give(b, message->unit, &sent, &message->delays);
}

static void follow(const run_work *work, const lp_peers *peers, const char *key) {
  LP_OWNED(lp_free_at) run_message *message = lp_alloc(result_size(work));
  peers->send(0, key, strlen(key) + 1);
  for (;;) {
    int64_t unit = -1;
    size_t size;
    int32_t from = peers->wait(&size);
    if (size == sizeof unit) peers->receive(from, &unit, size);
    if (unit < 0) break;
    compute_message(work, unit, message);
    peers->send(0, message, result_size(work));
  }
}

/* Serves the other processes until each has been told that no run is left. */
static bool lead(board *b, const lp_peers *peers, const char *key) {
  bool good = true;
  for (int32_t left = 1; left < peers->count;) {
    size_t size;
    int32_t from = peers->wait(&size);
    char *message = lp_alloc(size + 1);
    peers->receive(from, message, size);
    const void *content = message;
    if (size == result_size(b->work))
      give_message(b, content);
    else
      good = lp_streq(message, key) && good;
    if (!good) stop(b);
    int64_t unit = take(b);
    peers->send(from, &unit, sizeof unit);
    left += unit < 0;
    free(message);
  }
  return good;
}

/* Computes all runs. `threads`: of this process; with peers each process has one, and process 0 another one that hands
 * out runs. `key` names what is computed; false: a process has another key. */
static bool compute_runs(const run_work *work, int32_t threads, const lp_peers *peers, const char *key) {
  if (peers && peers->rank != 0) {
    follow(work, peers, key);
    return true;
  }
  board b = {.work = work, .point = lp_alloc((size_t)work->points * sizeof(point_state))};
  (void)pthread_mutex_init(&b.lock, NULL);
  const bool leads = peers && peers->count > 1;
  size_t count = leads ? 1 : (size_t)(threads > 1 ? threads - 1 : 0), started = 0;
  pthread_t *thread = lp_alloc((count + 1) * sizeof *thread);
  while (started < count && pthread_create(&thread[started], NULL, compute_all, &b) == 0)
    started++;
  const bool good = !leads || lead(&b, peers, key);
  (void)compute_all(&b);
  for (size_t i = 0; i < started; i++)
    (void)pthread_join(thread[i], NULL);
  for (int64_t i = 0; i < work->points; i++)
    release(&b, &b.point[i]);
  free(thread);
  free(b.point);
  (void)pthread_mutex_destroy(&b.lock);
  return good;
}

/* ---- points ------------------------------------------------------------------------------------------------------ */

static void scale(lp_sim_lengths *lengths, double factor) {
  lengths->mean *= factor;
  lengths->from *= factor;
  lengths->to *= factor;
}

static double mean_tokens(const lp_sim_scenario *scenario) {
  double sum = 0, shares = 0;
  for (int32_t t = 0; t < scenario->tasks; t++) {
    sum += scenario->task[t].share * scenario->task[t].tokens.mean;
    shares += scenario->task[t].share;
  }
  return sum / shares;
}

/* The tasks that require quality keep their proportions to each other, and so do the others. */
static void share_quality(lp_sim_scenario *scenario, double value) {
  double sum[2] = {0, 0};
  for (int32_t t = 0; t < scenario->tasks; t++)
    sum[scenario->task[t].quality] += scenario->task[t].share;
  for (int32_t t = 0; t < scenario->tasks; t++) {
    bool quality = scenario->task[t].quality;
    if (sum[quality] > 0) scenario->task[t].share *= (quality ? value : 1 - value) / sum[quality];
  }
}

/* Copies the scenario with its axis at a value; `tasks` has room for the copy's tasks. */
static lp_sim_scenario scenario_at(const lp_sim_scenario *scenario, double value, lp_sim_task *tasks) {
  lp_sim_scenario at = *scenario;
  memcpy(tasks, scenario->task, (size_t)scenario->tasks * sizeof *tasks);
  at.task = tasks;
  switch (scenario->axis) {
  case LP_SIM_NOTHING:
    break;
  case LP_SIM_RATE:
    at.rate = value;
    break;
  case LP_SIM_QUALITY_SHARE:
    share_quality(&at, value);
    break;
  case LP_SIM_TOKENS:
    for (int32_t t = 0; t < at.tasks; t++)
      scale(&tasks[t].tokens, value / mean_tokens(scenario));
    break;
  case LP_SIM_PENALTY:
    at.penalty = value;
    break;
  case LP_SIM_SLOTS:
    at.station[LP_SITE_EDGE].slots = (int64_t)round(value);
    break;
  case LP_SIM_DECISION:
    at.decision_s = value;
    break;
  case LP_SIM_USERS:
    at.users = (int64_t)round(value);
    break;
  case LP_SIM_AXES:
    break;
  }
  if (at.user_rate > 0) at.rate = at.user_rate * (double)at.users;
  return at;
}

static void sum_up(const lp_sim_scenario *s, const lp_sim_tally *tallies, const lp_sim_delays *delays, lp_arena *arena,
                   lp_sim_point *point) {
  LP_FOR_EACH(const lp_sim_tally, tally, tallies, s->runs) {
    point->requests += tally->requests;
    point->rejected += tally->rejected;
    point->overflowed += tally->overflowed;
    for (int p = 0; p < LP_SITE_COUNT; p++) {
      point->share[p] += (double)tally->at[p];
      point->utilisation[p] += tally->utilisation[p] / (double)s->runs;
      point->queue_length[p] += tally->queue_length[p] / (double)s->runs;
    }
  }
  for (int p = 0; p < LP_SITE_COUNT; p++)
    point->share[p] /= point->requests > 0 ? (double)point->requests : 1;
  point->delay_s = lp_sim_estimate_of(tallies, s->runs, SIM_DELAY);
  point->reward = lp_sim_estimate_of(tallies, s->runs, SIM_REWARD);
  point->quality = lp_sim_estimate_of(tallies, s->runs, SIM_QUALITY);
  point->regret = lp_sim_estimate_of(tallies, s->runs, SIM_REGRET);
  point->wait_s = lp_sim_estimate_of(tallies, s->runs, SIM_WAIT);
  point->generation_s = lp_sim_estimate_of(tallies, s->runs, SIM_GENERATION);
  point->link_s = lp_sim_estimate_of(tallies, s->runs, SIM_LINK);
  point->ttft_s = lp_sim_estimate_of(tallies, s->runs, SIM_TTFT);
  point->p50_s = lp_sim_histogram_quantile(&delays->all, 0.50);
  point->p90_s = lp_sim_histogram_quantile(&delays->all, 0.90);
  point->p95_s = lp_sim_histogram_quantile(&delays->all, 0.95);
  point->p99_s = lp_sim_histogram_quantile(&delays->all, 0.99);
  for (int p = 0; p < LP_SITE_COUNT; p++) {
    point->site_delay_s[p] = lp_sim_estimate_of(tallies, s->runs, SIM_SITES + p);
    point->site_p95_s[p] = lp_sim_histogram_quantile(&delays->at[p], 0.95);
  }
  point->part = LP_NEW_ARRAY(arena, lp_sim_part, LP_SIM_PARTS);
  for (int32_t i = 0; i < LP_SIM_PARTS; i++)
    point->part[i] = (lp_sim_part){lp_sim_estimate_part(tallies, s->runs, SIM_REWARD, i),
                                   lp_sim_estimate_part(tallies, s->runs, SIM_REGRET, i),
                                   lp_sim_estimate_part(tallies, s->runs, SIM_QUALITY, i)};
  point->task_delay_s = LP_NEW_ARRAY(arena, lp_sim_estimate, s->tasks);
  for (int32_t t = 0; t < s->tasks; t++)
    point->task_delay_s[t] = lp_sim_estimate_of(tallies, s->runs, SIM_TASKS + t);
}

static lp_status drop_users(const lp_sim_scenario *s, int64_t users, lp_arena *arena, lp_sim_users *out,
                            lp_diag *diag) {
  *out = (lp_sim_users){0};
  if (!s->radio) return LP_OK;
  out->count = users;
  out->up = LP_NEW_ARRAY(arena, double, users);
  out->down = LP_NEW_ARRAY(arena, double, users);
  lp_radio_drop_rates(s->radio, (int32_t)users, s->intervals, (uint64_t)s->seed, out->up, out->down);
  for (int64_t i = 0; i < users; i++)
    if (out->up[i] <= 0 || out->down[i] <= 0)
      return lp_error(diag, LP_LOC_NONE,
                      "user %" PRId64 " of '%s' is never served in %" PRId64 " intervals of its scheduler, '%s'", i,
                      s->radio->name, s->intervals, lp_radio_scheduler_names[s->radio->scheduler]);
  return LP_OK;
}

/* An experiment while it is computed. */
typedef struct {
  const lp_sim_scenario *scenario;
  lp_sim_users *users; /* [values] if their number is varied, else one */
  lp_sim_result *result;
} experiment;

/* Places the users, for each number of them. */
static lp_status place_users(const experiment *e, lp_diag *diag) {
  const lp_sim_scenario *s = e->scenario;
  const bool varied = s->axis == LP_SIM_USERS;
  for (int32_t i = 0; i < (varied ? e->result->values : 1); i++)
    LP_TRY(drop_users(s, varied ? (int64_t)round(s->value[i]) : s->users, e->result->arena, &e->users[i], diag));
  return LP_OK;
}

/* Point `index` is of a service, a policy and a value of the axis; `tasks` has room for the scenario's tasks. */
static lp_sim_scenario scenario_of_point(const experiment *e, int64_t index, lp_sim_task *tasks) {
  const int64_t of_service = (int64_t)e->scenario->policies * e->result->values;
  lp_sim_scenario at = scenario_at(e->scenario, e->result->point[index].value, tasks);
  at.service = e->scenario->services[index / of_service];
  return at;
}

static const lp_sim_policy *policy_of_point(const experiment *e, int64_t index) {
  return e->scenario->policy[index / e->result->values % e->scenario->policies];
}

static void run_once(void *user, int64_t point, int64_t run, lp_sim_tally *tally, lp_sim_delays *delays) {
  const experiment *e = user;
  LP_OWNED(lp_free_at) lp_sim_task *tasks = lp_alloc((size_t)e->scenario->tasks * sizeof *tasks);
  const lp_sim_scenario at = scenario_of_point(e, point, tasks);
  const int64_t users = e->scenario->axis == LP_SIM_USERS ? point % e->result->values : 0;
  lp_sim_run_once(&at, &e->users[users], policy_of_point(e, point), run, tally, delays);
}

static void finish_point(void *user, int64_t point, const lp_sim_tally *tallies, const lp_sim_delays *delays) {
  const experiment *e = user;
  sum_up(e->scenario, tallies, delays, e->result->arena, &e->result->point[point]);
}

static void name_points(const experiment *e) {
  const lp_sim_scenario *s = e->scenario;
  lp_sim_result *result = e->result;
  result->points = s->service_count * s->policies * result->values;
  result->point = LP_NEW_ARRAY(result->arena, lp_sim_point, result->points);
  for (int32_t i = 0; i < result->points; i++) {
    result->point[i].service = s->services[i / (s->policies * result->values)]->name;
    result->point[i].policy = policy_of_point(e, i)->name;
    result->point[i].value = s->axis == LP_SIM_NOTHING ? 0 : s->value[i % result->values];
  }
}

lp_status lp_sim_run(const lp_sim_scenario *scenario, const lp_sim_options *options, lp_sim_result *out,
                     lp_diag *diag) {
  static const lp_sim_options usual = {0};
  const lp_sim_options *o = options ? options : &usual;
  *out = (lp_sim_result){.scenario = scenario,
                         .arena = lp_arena_create(),
                         .values = scenario->axis == LP_SIM_NOTHING ? 1 : scenario->values};
  experiment e = {scenario, LP_NEW_ARRAY(out->arena, lp_sim_users, out->values), out};
  LP_TRY(place_users(&e, diag));
  name_points(&e);
  const run_work work = {.points = out->points,
                         .runs = scenario->runs,
                         .tasks = scenario->tasks,
                         .run = run_once,
                         .finish = finish_point,
                         .user = &e};
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  lp_buf_printf(&key, "%s %016" PRIx64 " %" PRId64 " %" PRId64, LP_VERSION, scenario->digest, scenario->seed,
                scenario->runs);
  const int32_t threads = o->threads > 0 ? o->threads : o->peers ? 1 : lp_machine_threads();
  const bool good = compute_runs(&work, threads, o->peers, lp_buf_text(&key));
  return good ? LP_OK : lp_error(diag, LP_LOC_NONE, "a process has another version, scenario, seed or number of runs");
}

void lp_sim_result_free(lp_sim_result *result) {
  lp_arena_free(result->arena);
  *result = (lp_sim_result){0};
}
