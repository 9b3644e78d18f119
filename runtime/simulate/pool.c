/* Simulates a pool, from event to event: see pool.h. */
#include "runtime/simulate/pool.h"

#include <assert.h>
#include <math.h>

#include "base/random.h"

/* The purposes of random numbers of a request, and of a machine. */
enum { ARRIVAL, LENGTH, CLASS, FAILURE };

typedef struct {
  int32_t class;
  bool counted;
  double prompt, tokens;
  double rows, pending;      /* of both, those not yet computed when it comes to a machine */
  double arrived_s, first_s; /* first: 0 until then */
  double ready_s;            /* when the next token's rows come from the device */
} job;

/* IDLE: not rented. STARTING: it serves from `next_s` on, after a start or a failure. LEAVING: it takes no requests,
 * and becomes idle when it has none. */
typedef enum { IDLE, STARTING, SERVING, LEAVING } state;

typedef struct {
  lp_sim_passes passes;
  state state;
  double next_s;           /* the end of its passes, or when a row comes back, or it serves; INFINITY: neither */
  double began_s, pass_s;  /* of its passes */
  int64_t repeats;         /* passes of the same rows, one after the other */
  double fails_s, since_s; /* since: it is rented */
  uint64_t failures;
} machine;

typedef struct {
  const lp_sim_pool *pool;
  lp_sim_station station;
  int16_t paced[LP_PASS_MOST_SEQUENCES];
  double *below; /* [lengths] cumulative weights */
  LP_VEC(job) jobs;
  LP_VEC(uint32_t) free; /* places in jobs */
  struct {
    LP_VEC(uint32_t) jobs;
    size_t first;
  } queue;
  int64_t arrived, from, left; /* requests: that came; the first counted one; counted ones that are not done */
  int64_t wanted;
  machine *machine;                                /* [machines] */
  bool splits;                                     /* rows of some class come from devices */
  double now_s, arrival_s, scale_s, fewer_since_s; /* the next arrival and decision; fewer machines are wanted since */
  lp_sim_pool_sample sample[LP_FLEET_MOST_CLASSES];
  double beyond[LP_FLEET_MOST_CLASSES][LP_FLEET_FIGURES][LP_FLEET_QUANTILES]; /* counted requests over a limit */
  bool broken;
  int64_t hours;           /* of pool->by_hour: that have begun */
  bool starts;             /* machines of the next hour have started */
  lp_sim_pool_result days; /* what there was at the end of the last day */
  lp_sim_pool_result *out;
} simulation;

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* The first of `count` ascending shares that is above `share`. */
static size_t pick(const double *below, size_t count, double share) {
  size_t low = 0, high = count - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (below[middle] > share)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static double exponential(uint64_t seed, uint64_t sequence, uint64_t position) {
  return -log1p(-lp_random_uniform(seed, sequence, position));
}

/* The time of the next arrival: a unit of the exponential distribution is used up at the rate of each hour. */
static double next_arrival_s(const simulation *s) {
  const lp_sim_pool *pool = s->pool;
  double unit = exponential(pool->seed, (uint64_t)s->arrived, ARRIVAL), at_s = s->now_s;
  if (!pool->hour) return at_s + unit / pool->rate;
  for (;;) {
    const double hour = floor(at_s / 3600), end_s = 3600 * (hour + 1);
    const double rate = pool->rate * pool->hour[(int64_t)hour % LP_SIM_HOURS], room = rate * (end_s - at_s);
    if (unit <= room && rate > 0) return at_s + unit / rate;
    unit -= room;
    at_s = end_s;
  }
}

static job drawn(const simulation *s) {
  const lp_sim_pool *pool = s->pool;
  const uint64_t number = (uint64_t)s->arrived;
  const size_t at = pick(s->below, pool->lengths, lp_random_uniform(pool->seed, number, LENGTH));
  double share = lp_random_uniform(pool->seed, number, CLASS);
  int32_t class = 0;
  while (class < pool->classes - 1 && share >= pool->class[class].share)
    share -= pool->class[class ++].share;
  return (job){.class = class,
               .counted = s->arrived >= s->from && s->arrived < s->wanted,
               .prompt = pool->length[at].prompt,
               .tokens = pool->length[at].answer,
               .rows = pool->length[at].prompt,
               .pending = lp_sim_pool_asked(&pool->class[class].user, pool->length[at].answer),
               .arrived_s = s->now_s};
}

static void arrive(simulation *s) {
  const job one = drawn(s);
  uint32_t place = (uint32_t)s->jobs.count;
  if (s->free.count > 0)
    s->jobs.data[place = s->free.data[--s->free.count]] = one;
  else
    lp_vec_push(&s->jobs, one);
  lp_vec_push(&s->queue.jobs, place);
  s->arrived++;
  s->arrival_s = next_arrival_s(s);
}

static job *job_of(const simulation *s, const lp_sim_member *member) {
  assert(s->jobs.data && member->job < s->jobs.count);
  return &s->jobs.data[member->job];
}

/* Counts an answer, and ends the simulation when a percentile can no longer be within its limit. */
static void count(simulation *s, const job *one) {
  const lp_sim_pool_class *class = &s->pool->class[one->class];
  double value_s[LP_FLEET_FIGURES];
  value_s[LP_FLEET_TTFT] = lp_sim_pool_first_s(&class->user, one->prompt) + one->first_s - one->arrived_s;
  value_s[LP_FLEET_TPOT] = (s->now_s - one->first_s) / fmax(1, one->tokens - 1);
  if (class->user.streams) value_s[LP_FLEET_TPOT] += class->user.token_s;
  value_s[LP_FLEET_ANSWER] = value_s[LP_FLEET_TTFT] + (one->tokens - 1) * value_s[LP_FLEET_TPOT];
  s->left--;
  s->out->requests[one->class]++;
  lp_sim_pool_sample_add(&s->sample[one->class], value_s[LP_FLEET_TTFT], value_s[LP_FLEET_TPOT], one->tokens, 1);
  const double expected = class->share * (double)(s->wanted - s->from), most = expected + 4 * sqrt(expected) + 4;
  for (int i = 0; class->limit_s && i < LP_FLEET_FIGURES; i++)
    for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
      const double limit = class->limit_s[i][k];
      if (limit <= 0 || value_s[i] <= limit) continue;
      if (++s->beyond[one->class][i][k] > (1 - lp_fleet_quantiles[k]) * most) s->broken = true;
    }
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

/* The passes until an answer is complete, if each has one row of all members: nothing else changes meanwhile. */
static int64_t repeats(const simulation *s, const lp_sim_passes *passes) {
  int64_t least = INT64_MAX;
  if (s->splits || passes->members.count > LP_PASS_MOST_SEQUENCES) return 1;
  LP_FOR_VEC(const lp_sim_member, member, &passes->members) {
    if (!member->generates) return 1;
    if (member->tokens < least) least = member->tokens;
  }
  return least;
}

/* Begins a pass over the rows that are there, or waits for the first that comes back. */
static void begin(simulation *s, machine *m) {
  double soonest = INFINITY;
  bool any = !s->splits;
  for (size_t i = 0; s->splits && i < m->passes.members.count; i++) {
    lp_sim_member *member = &m->passes.members.data[i];
    const double ready_s = job_of(s, member)->ready_s;
    member->away = ready_s > s->now_s;
    any = any || !member->away;
    if (ready_s < soonest) soonest = ready_s;
  }
  m->began_s = s->now_s;
  m->repeats = repeats(s, &m->passes);
  m->pass_s = any ? lp_sim_passes_begin(&m->passes, &s->station) : 0;
  m->next_s = any ? s->now_s + m->pass_s * (double)m->repeats : soonest;
}

static void repeat(simulation *s, machine *m, double passes) {
  for (size_t i = 0; passes > 0 && i < m->passes.members.count; i++) {
    m->passes.members.data[i].tokens -= (int64_t)passes;
    m->passes.members.data[i].served += (int64_t)passes;
  }
  s->out->busy_s += passes * m->pass_s;
  m->began_s += passes * m->pass_s;
  m->repeats -= (int64_t)passes;
}

/* Does the passes that have ended, and leaves one under way, after which the rows change. */
static void cut_short(simulation *s, machine *m) {
  if (m->repeats <= 1) return;
  const double ended = ceil((s->now_s - m->began_s) / m->pass_s) - 1;
  repeat(s, m, fmax(0, fmin(ended, (double)m->repeats - 1)));
  m->repeats = 1;
  m->next_s = m->began_s + m->pass_s;
}

/* Notes the end of a pass; true: the answer is complete. */
static bool is_done(simulation *s, const lp_sim_member *member) {
  if (member->rows == 0 || !member->generates) return false;
  job *one = job_of(s, member);
  const lp_sim_pool_user *user = &s->pool->class[one->class].user;
  if (one->first_s <= 0) one->first_s = s->now_s;
  if (!user->streams) one->ready_s = s->now_s + user->token_s;
  if (member->tokens > 0) return false;
  if (one->counted) count(s, one);
  lp_vec_push(&s->free, member->job);
  return true;
}

/* The others keep their order, which is that in which they came where they were served as much. */
static void end(simulation *s, machine *m) {
  size_t kept = 0;
  repeat(s, m, (double)m->repeats - 1);
  lp_sim_passes_end(&m->passes);
  s->out->busy_s += s->now_s - m->began_s;
  for (size_t i = 0; i < m->passes.members.count; i++) {
    if (is_done(s, &m->passes.members.data[i])) continue;
    if (kept < i) m->passes.members.data[kept] = m->passes.members.data[i];
    kept++;
  }
  m->passes.members.count = kept;
}

/* Removes the requests at the head of the queue that have been taken. */
static void tidy(simulation *s) {
  const size_t left = s->queue.jobs.count - s->queue.first;
  if (s->queue.first == 0) return;
  memmove(s->queue.jobs.data, s->queue.jobs.data + s->queue.first, left * sizeof *s->queue.jobs.data);
  s->queue.jobs.count = left;
  s->queue.first = 0;
}

/* Gives requests that wait to the machines with the fewest. */
static void admit(simulation *s) {
  while (s->queue.first < s->queue.jobs.count) {
    machine *best = NULL;
    LP_FOR_EACH(machine, m, s->machine, s->pool->machines)
      if (m->state == SERVING && (!best || m->passes.members.count < best->passes.members.count)) best = m;
    if (!best || (int64_t)best->passes.members.count >= s->pool->sessions) break;
    const uint32_t place = s->queue.jobs.data[s->queue.first++];
    if (best->passes.runs) cut_short(s, best);
    lp_sim_passes_add(&best->passes, place, s->jobs.data[place].rows, s->jobs.data[place].pending, 0);
    const lp_sim_pool_user *user = &s->pool->class[s->jobs.data[place].class].user;
    best->passes.members.data[best->passes.members.count - 1].beside = lp_sim_pool_question_rows(user) - 1;
    if (!best->passes.runs) begin(s, best);
  }
  if (s->queue.first > 64 && s->queue.first > s->queue.jobs.count / 2) tidy(s);
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

static bool is_spot(const simulation *s, const machine *m) {
  return m - s->machine >= s->pool->machines - s->pool->spot;
}

static const lp_sim_pool_failures *failures_of(const simulation *s, const machine *m) {
  return is_spot(s, m) ? &s->pool->losses : &s->pool->failures;
}

static void pay(simulation *s, const machine *m) {
  s->out->paid_s += s->now_s - m->since_s;
  if (is_spot(s, m)) s->out->spot_paid_s += s->now_s - m->since_s;
}

static void rent(simulation *s, machine *m, state as, double next_s) {
  if (m->state == IDLE) m->since_s = s->now_s;
  m->state = as;
  m->next_s = next_s;
}

static void serve(simulation *s, machine *m) {
  const lp_sim_pool_failures *failures = failures_of(s, m);
  const uint64_t number = (uint64_t)(m - s->machine) << 32 | m->failures;
  m->state = SERVING;
  m->next_s = INFINITY;
  if (failures->every_s > 0) m->fails_s = s->now_s + failures->every_s * exponential(s->pool->seed, number, FAILURE);
}

static void dismiss(simulation *s, machine *m) {
  m->state = m->passes.members.count > 0 ? LEAVING : IDLE;
  if (m->state == LEAVING) return;
  m->next_s = m->fails_s = INFINITY;
  pay(s, m);
}

/* The requests of the machine go to the head of the queue, in the order in which they came to it. */
static void fail(simulation *s, machine *m) {
  const size_t lost = m->passes.members.count;
  if (m->passes.runs) {
    cut_short(s, m);
    s->out->busy_s += s->now_s - m->began_s;
  }
  tidy(s);
  for (size_t i = 0; i < lost; i++)
    lp_vec_push(&s->queue.jobs, 0);
  if (lost > 0)
    memmove(s->queue.jobs.data + lost, s->queue.jobs.data, (s->queue.jobs.count - lost) * sizeof *s->queue.jobs.data);
  for (size_t i = 0; i < lost; i++) {
    const lp_sim_member *member = &m->passes.members.data[i];
    job *one = job_of(s, member);
    one->pending = (double)member->tokens;
    one->rows = one->prompt + one->tokens - one->pending;
    s->queue.jobs.data[i] = member->job;
  }
  m->passes.members.count = 0;
  m->passes.runs = false;
  m->fails_s = INFINITY;
  m->failures++;
  s->out->failures++;
  if (m->state == LEAVING)
    dismiss(s, m);
  else
    rent(s, m, STARTING, s->now_s + failures_of(s, m)->restart_s);
}

static const double decision_s = 15; /* as Kubernetes' autoscaler */

/* Some of the machines. */
typedef struct {
  machine *from, *to;
} machines;

static machines all_of(const simulation *s) {
  return (machines){s->machine, s->machine + s->pool->machines};
}

/* Of the machines in a state, the one with the fewest requests; NULL: none. */
static machine *fewest(machines of, state in) {
  machine *best = NULL;
  for (machine *m = of.from; m < of.to; m++)
    if (m->state == in && (!best || m->passes.members.count < best->passes.members.count)) best = m;
  return best;
}

static int64_t rented_of(machines of) {
  int64_t rented = 0;
  for (const machine *m = of.from; m < of.to; m++)
    rented += m->state == STARTING || m->state == SERVING;
  return rented;
}

static void add_machines(simulation *s, machines of, int64_t wanted) {
  for (int64_t rented = rented_of(of); rented < wanted; rented++) {
    machine *back = fewest(of, LEAVING);
    if (back)
      back->state = SERVING;
    else
      rent(s, fewest(of, IDLE), STARTING, s->now_s + s->pool->scaling.cold_s);
  }
}

static void remove_machines(simulation *s, machines of, int64_t wanted) {
  for (int64_t rented = rented_of(of); rented > wanted && fewest(of, SERVING); rented--)
    dismiss(s, fewest(of, SERVING));
}

static void scale(simulation *s) {
  const lp_sim_pool_scaling *scaling = &s->pool->scaling;
  double flying = (double)(s->queue.jobs.count - s->queue.first);
  for (int64_t i = 0; i < s->pool->machines; i++)
    flying += (double)s->machine[i].passes.members.count;
  const int64_t wanted =
      (int64_t)fmin((double)s->pool->machines, fmax((double)scaling->least, ceil(flying / scaling->target)));
  const bool fewer = wanted < rented_of(all_of(s));
  s->scale_s += decision_s;
  if (!fewer) s->fewer_since_s = INFINITY;
  add_machines(s, all_of(s), wanted);
  if (fewer) s->fewer_since_s = fmin(s->fewer_since_s, s->now_s);
  if (s->now_s - s->fewer_since_s >= scaling->keep_s) remove_machines(s, all_of(s), wanted);
}

/* Notes what there was until now, and pays for it. */
static void end_day(simulation *s) {
  LP_FOR_EACH(machine, m, s->machine, s->pool->machines) {
    if (m->state == IDLE) continue;
    pay(s, m);
    m->since_s = s->now_s;
  }
  s->days = *s->out;
  s->days.elapsed_s = s->now_s;
}

/* At the end of an hour, and before it, when machines of the next one start. */
static void follow(simulation *s) {
  static const double hour_s = 3600;
  const lp_sim_pool_hour *next = &s->pool->by_hour[(s->hours + 1) % LP_SIM_HOURS];
  machine *spot = s->machine + (s->pool->machines - s->pool->spot);
  const machines markets[] = {{s->machine, spot}, {spot, s->machine + s->pool->machines}};
  const int64_t wanted[] = {next->firm, next->spot};
  for (int i = 0; i < 2; i++) {
    add_machines(s, markets[i], wanted[i]);
    if (s->starts) remove_machines(s, markets[i], wanted[i]);
  }
  s->hours += s->starts;
  s->starts = !s->starts;
  if (s->starts)
    s->scale_s = hour_s * (double)(s->hours + 1);
  else
    s->scale_s = fmax(s->now_s, hour_s * (double)(s->hours + 1) - s->pool->scaling.cold_s);
  if (!s->starts && s->hours % LP_SIM_HOURS == 0) end_day(s);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

/* What a machine waits for has come. */
static void advance(simulation *s, machine *m) {
  if (m->state == STARTING) {
    serve(s, m);
    admit(s);
    return;
  }
  if (m->passes.runs) {
    end(s, m);
    if (m->state == LEAVING) dismiss(s, m);
    admit(s);
  }
  if (!m->passes.runs && m->state != IDLE) begin(s, m);
}

static double due_s(const machine *m) {
  return m->next_s < m->fails_s ? m->next_s : m->fails_s;
}

static void run(simulation *s) {
  s->arrival_s = next_arrival_s(s);
  while (s->left > 0 && !s->broken) {
    machine *first = s->machine;
    double machine_s = due_s(first);
    LP_FOR_EACH(machine, m, s->machine, s->pool->machines) {
      if (due_s(m) >= machine_s) continue;
      machine_s = due_s(m);
      first = m;
    }
    s->now_s = fmin(fmin(s->arrival_s, s->scale_s), machine_s);
    if (s->scale_s <= s->now_s) {
      (s->pool->by_hour ? follow : scale)(s);
      admit(s);
    } else if (s->arrival_s <= s->now_s) {
      arrive(s);
      admit(s);
    } else if (first->fails_s <= s->now_s) {
      fail(s, first);
      admit(s);
    } else {
      advance(s, first);
    }
  }
}

static void prepare(simulation *s) {
  const lp_sim_pool *pool = s->pool;
  const double least = 2 * lp_sim_pool_together(pool), counted = fmax((double)pool->requests, least);
  lp_sim_pace(&s->station, s->paced);
  s->left = (int64_t)counted;
  s->from = (int64_t)fmax(counted / 4, least);
  s->wanted = s->from + s->left;
  s->scale_s = pool->by_hour ? 3600 - pool->scaling.cold_s : pool->scaling.target > 0 ? decision_s : INFINITY;
  s->fewer_since_s = INFINITY;
  s->below = lp_alloc(pool->lengths * sizeof *s->below);
  s->machine = lp_alloc((size_t)pool->machines * sizeof *s->machine);
  double sum = 0;
  for (size_t i = 0; i < pool->lengths; i++)
    s->below[i] = sum += pool->length[i].weight;
  for (int32_t i = 0; i < pool->classes; i++)
    s->splits = s->splits || !pool->class[i].user.streams;
  for (int64_t i = 0; i < pool->machines; i++) {
    const int64_t place = i - (pool->machines - pool->spot); /* among those of the spot market */
    s->machine[i] = (machine){.fails_s = INFINITY, .next_s = INFINITY, .state = IDLE};
    if (!pool->by_hour || (place < 0 ? i < pool->by_hour->firm : place < pool->by_hour->spot)) serve(s, &s->machine[i]);
  }
}

bool lp_sim_pool_run(const lp_sim_pool *pool, lp_sim_pool_result *out) {
  *out = (lp_sim_pool_result){0};
  simulation s = {.pool = pool, .station = pool->station, .out = out};
  prepare(&s);
  run(&s);
  bool holds = !s.broken;
  for (int32_t i = 0; i < pool->classes; i++) {
    const double(*limit_s)[LP_FLEET_QUANTILES] = pool->class[i].limit_s;
    lp_sim_pool_sample_end(&s.sample[i], &out->times[i]);
    holds = holds && !(limit_s && lp_sim_pool_strain_of(limit_s, &out->times[i]).ratio > 1);
  }
  out->elapsed_s = s.now_s;
  for (int64_t i = 0; i < pool->machines; i++) {
    if (s.machine[i].state != IDLE) pay(&s, &s.machine[i]);
    lp_vec_free(&s.machine[i].passes.members);
  }
  if (s.days.elapsed_s > 0) {
    memcpy(s.days.times, out->times, sizeof out->times);
    memcpy(s.days.requests, out->requests, sizeof out->requests);
    *out = s.days;
  }
  lp_vec_free(&s.jobs);
  lp_vec_free(&s.free);
  lp_vec_free(&s.queue.jobs);
  free(s.below);
  free(s.machine);
  return holds;
}
