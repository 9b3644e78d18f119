/* Simulates a pool: see trial.h. */
#include "fleet/trial.h"
#include "base/random.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* ---- times ------------------------------------------------------------------------------------------------------- */

static lp_sim_times times_of(const lp_load_law *law) {
  return (lp_sim_times){.count = LP_LOAD_KNOTS,
                        .rows = (double *)law->rows,
                        .seconds = (double *)law->token_s,
                        .prompt_seconds = (double *)law->prompt_s};
}

double lp_trial_pass_s(const lp_load_law *law, double tokens, double prompt_rows) {
  const lp_sim_times times = times_of(law);
  return lp_sim_pass_s(&times, tokens, prompt_rows);
}

static double first_s(const lp_load_user *user, double prompt) {
  int i = 1;
  while (i < LP_LOAD_KNOTS - 1 && prompt > user->prompt[i])
    i++;
  const double wide = user->prompt[i] - user->prompt[i - 1];
  const double share = wide > 0 ? (prompt - user->prompt[i - 1]) / wide : 0;
  return fmax(0, user->first_s[i - 1] + share * (user->first_s[i] - user->first_s[i - 1]));
}

/* ---- percentiles ------------------------------------------------------------------------------------------------- */

typedef struct {
  double value, weight;
} weighted;
typedef struct {
  weighted *data[LP_FLEET_FIGURES];
  size_t count[LP_FLEET_FIGURES];
} sample;

static void sample_begin(sample *s, size_t most) {
  *s = (sample){0};
  for (int i = 0; i < LP_FLEET_FIGURES; i++)
    s->data[i] = lp_alloc((most + 1) * sizeof *s->data[i]);
}

static void sample_add(sample *s, double first, double token, double tokens, double weight) {
  const double answer = first + (tokens - 1) * token;
  s->data[LP_FLEET_TTFT][s->count[LP_FLEET_TTFT]++] = (weighted){first, weight};
  s->data[LP_FLEET_ANSWER][s->count[LP_FLEET_ANSWER]++] = (weighted){answer, weight};
  if (tokens > 1) s->data[LP_FLEET_TPOT][s->count[LP_FLEET_TPOT]++] = (weighted){token, weight};
}

static int compare(const void *a, const void *b) {
  const double x = ((const weighted *)a)->value, y = ((const weighted *)b)->value;
  return (x > y) - (x < y);
}

/* A share `quantile` of the weight has at most this value. */
static double percentile(const weighted *sorted, size_t count, double quantile) {
  double sum = 0, below = 0;
  for (size_t i = 0; i < count; i++)
    sum += sorted[i].weight;
  for (size_t i = 0; i < count; i++) {
    below += sorted[i].weight;
    if (below >= quantile * sum * (1 - 1e-12)) return sorted[i].value;
  }
  return count ? sorted[count - 1].value : 0;
}

static void sample_end(sample *s, lp_fleet_times *out) {
  for (int i = 0; i < LP_FLEET_FIGURES; i++) {
    qsort(s->data[i], s->count[i], sizeof *s->data[i], compare);
    for (int k = 0; k < LP_FLEET_QUANTILES; k++)
      out->value_s[i][k] = percentile(s->data[i], s->count[i], lp_fleet_quantiles[k]);
    free(s->data[i]);
  }
}

lp_fleet_strain lp_fleet_strain_of(const lp_fleet_class *class, const lp_fleet_times *times) {
  lp_fleet_strain worst = {0};
  for (int i = 0; i < LP_FLEET_FIGURES; i++)
    for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
      const double limit = class->limit_s[i][k], ratio = limit > 0 ? times->value_s[i][k] / limit : 0;
      if (ratio > worst.ratio) worst = (lp_fleet_strain){ratio, (lp_fleet_figure)i, k};
    }
  return worst;
}

void lp_trial_alone(const lp_fleet_length *length, size_t lengths, size_t stride, const lp_load_user *user,
                    const lp_load_law *law, lp_fleet_times *out) {
  const lp_sim_station station = {.pass = law ? times_of(law) : (lp_sim_times){0}};
  const double token = user->token_s + (law ? lp_trial_pass_s(law, 1, 0) : 0);
  sample s;
  sample_begin(&s, lengths);
  for (size_t i = 0; i < lengths; i += stride) {
    const double cloud = law ? lp_sim_passes_alone_s(&station, length[i].prompt, 1) : 0;
    sample_add(&s, first_s(user, length[i].prompt) + cloud, token, length[i].answer, length[i].weight);
  }
  sample_end(&s, out);
}

/* ---- the simulation ---------------------------------------------------------------------------------------------- */

typedef struct {
  int32_t class;
  double prompt, tokens;
  double arrived_s, first_s, done_s; /* first and done: 0 until then */
  double ready_s;                    /* when the next token's rows come from the device */
} job;

typedef struct {
  const lp_trial *trial;
  lp_sim_station station;
  double *below;                 /* [lengths] cumulative weights */
  LP_VEC(job) jobs;              /* in the order of arrival, in which they are admitted too */
  size_t admitted, wanted, from; /* counted: [from, wanted) */
  size_t left;                   /* of the counted ones */
  lp_sim_passes *passes;         /* [machines] */
  double *began_s, busy_s;
  double beyond[LP_FLEET_MOST_CLASSES][LP_FLEET_FIGURES][LP_FLEET_QUANTILES]; /* counted requests over a limit */
  bool broken;
  double *next_s; /* [machines] the end of its pass, or when a row comes back; INFINITY: neither */
} simulation;

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

static void arrive(simulation *s, double now_s) {
  const lp_trial *trial = s->trial;
  const uint64_t number = s->jobs.count;
  const lp_fleet_length *length =
      &trial->length[pick(s->below, trial->lengths, lp_random_uniform(trial->seed, number, 1))];
  double share = lp_random_uniform(trial->seed, number, 2);
  int32_t class = 0;
  while (class < trial->classes - 1 && share >= trial->class[class].share)
    share -= trial->class[class ++].share;
  const job one = {.class = class, .prompt = length->prompt, .tokens = length->answer, .arrived_s = now_s};
  lp_vec_push(&s->jobs, one);
}

static double gap_s(const simulation *s) {
  return -log1p(-lp_random_uniform(s->trial->seed, s->jobs.count, 0)) / s->trial->rate;
}

static job *job_of(const simulation *s, const lp_sim_member *member) {
  assert(s->jobs.data && member->job < s->jobs.count);
  return &s->jobs.data[member->job];
}

/* Begins a pass over the rows that are there, or waits for the first that comes back. */
static void begin(simulation *s, int64_t machine, double now_s) {
  lp_sim_passes *passes = &s->passes[machine];
  double soonest = INFINITY;
  bool any = false;
  for (size_t i = 0; i < passes->members.count; i++) {
    lp_sim_member *member = &passes->members.data[i];
    const double ready_s = job_of(s, member)->ready_s;
    member->away = ready_s > now_s;
    any = any || !member->away;
    soonest = fmin(soonest, ready_s);
  }
  s->began_s[machine] = now_s;
  s->next_s[machine] = any ? now_s + lp_sim_passes_begin(passes, &s->station) : soonest;
}

static void admit(simulation *s, double now_s) {
  while (s->admitted < s->jobs.count) {
    int64_t best = 0;
    for (int64_t i = 1; i < s->trial->machines; i++)
      if (s->passes[i].members.count < s->passes[best].members.count) best = i;
    if ((int64_t)s->passes[best].members.count >= s->trial->sessions) return;
    const job *one = &s->jobs.data[s->admitted];
    lp_sim_passes_add(&s->passes[best], (uint32_t)s->admitted, one->prompt, one->tokens, 0);
    s->admitted++;
    if (!s->passes[best].runs) begin(s, best, now_s);
  }
}

/* The figures of a request that is done. */
static void figures(const simulation *s, const job *one, double value_s[LP_FLEET_FIGURES]) {
  const lp_load_user *user = s->trial->class[one->class].user;
  value_s[LP_FLEET_TTFT] = first_s(user, one->prompt) + one->first_s - one->arrived_s;
  value_s[LP_FLEET_TPOT] = (one->done_s - one->first_s) / fmax(1, one->tokens - 1);
  if (user->streams) value_s[LP_FLEET_TPOT] += user->token_s;
  value_s[LP_FLEET_ANSWER] = value_s[LP_FLEET_TTFT] + (one->tokens - 1) * value_s[LP_FLEET_TPOT];
}

/* Counts a request, and ends the simulation when a percentile can no longer be within its limit. */
static void count(simulation *s, const job *one) {
  const lp_trial_class *class = &s->trial->class[one->class];
  double value_s[LP_FLEET_FIGURES];
  s->left--;
  figures(s, one, value_s);
  const double expected = class->share * (double)(s->wanted - s->from), most = expected + 4 * sqrt(expected) + 4;
  for (int i = 0; class->limits && i < LP_FLEET_FIGURES; i++)
    for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
      const double limit = class->limits->limit_s[i][k];
      if (limit <= 0 || value_s[i] <= limit) continue;
      if (++s->beyond[one->class][i][k] > (1 - lp_fleet_quantiles[k]) * most) s->broken = true;
    }
}

static void end(simulation *s, int64_t machine, double now_s) {
  lp_sim_passes *passes = &s->passes[machine];
  lp_sim_passes_end(passes);
  s->busy_s += now_s - s->began_s[machine];
  for (size_t i = 0; i < passes->members.count;) {
    const lp_sim_member *member = &passes->members.data[i++];
    job *one = job_of(s, member);
    const lp_load_user *user = s->trial->class[one->class].user;
    if (member->rows == 0 || !member->generates) continue;
    if (one->first_s <= 0) one->first_s = now_s;
    if (!user->streams) one->ready_s = now_s + user->token_s;
    if (member->tokens > 0) continue;
    one->done_s = now_s;
    if (member->job >= s->from && member->job < s->wanted) count(s, one);
    passes->members.data[--i] = passes->members.data[--passes->members.count];
  }
}

/* Returns the time at its end. */
static double run(simulation *s) {
  double arrival_s = gap_s(s), now_s = 0;
  while (s->left > 0 && !s->broken) {
    int64_t first = 0;
    for (int64_t i = 1; i < s->trial->machines; i++)
      if (s->next_s[i] < s->next_s[first]) first = i;
    if (arrival_s <= s->next_s[first]) {
      now_s = arrival_s;
      arrive(s, now_s);
      arrival_s += gap_s(s);
      admit(s, now_s);
      continue;
    }
    now_s = s->next_s[first];
    if (s->passes[first].runs) {
      end(s, first, now_s);
      admit(s, now_s);
    }
    if (!s->passes[first].runs) begin(s, first, now_s);
  }
  return now_s;
}

/* The percentiles over the counted requests that are done. */
static bool report(const simulation *s, lp_fleet_times *out) {
  bool holds = !s->broken;
  for (int32_t i = 0; i < s->trial->classes; i++) {
    sample found;
    sample_begin(&found, s->wanted - s->from);
    for (size_t k = s->from; k < s->wanted && k < s->jobs.count; k++) {
      const job *one = &s->jobs.data[k];
      double value_s[LP_FLEET_FIGURES];
      if (one->class != i || one->done_s <= 0) continue;
      figures(s, one, value_s);
      sample_add(&found, value_s[LP_FLEET_TTFT], value_s[LP_FLEET_TPOT], one->tokens, 1);
    }
    sample_end(&found, &out[i]);
    const lp_fleet_class *limits = s->trial->class[i].limits;
    holds = holds && !(limits && lp_fleet_strain_of(limits, &out[i]).ratio > 1);
  }
  return holds;
}

/* The requests that arrive while one takes its time on a machine with all sessions taken. */
static double together(const lp_trial *trial) {
  double answer = 0, user_s = 0;
  for (size_t i = 0; i < trial->lengths; i++)
    answer += trial->length[i].weight * trial->length[i].answer;
  for (int32_t i = 0; i < trial->classes; i++)
    if (!trial->class[i].user->streams) user_s = fmax(user_s, trial->class[i].user->token_s);
  return trial->rate * answer * (lp_trial_pass_s(trial->law, (double)trial->sessions, 0) + user_s);
}

bool lp_trial_run(const lp_trial *trial, lp_fleet_times *out, double *busy) {
  const double least = 2 * together(trial), counted = fmax((double)trial->requests, least);
  const size_t machines = (size_t)trial->machines;
  simulation s = {.trial = trial, .station = {.pass = times_of(trial->law), .prompt_stretch = trial->stretch}};
  int16_t paced[LP_PASS_MOST_SEQUENCES];
  lp_sim_pace(&s.station, paced);
  s.left = (size_t)counted;
  s.from = (size_t)fmax(counted / 4, least);
  s.wanted = s.from + s.left;
  s.below = lp_alloc(trial->lengths * sizeof *s.below);
  s.passes = lp_alloc(machines * sizeof *s.passes);
  s.next_s = lp_alloc(machines * sizeof *s.next_s);
  s.began_s = lp_alloc(machines * sizeof *s.began_s);
  double sum = 0;
  for (size_t i = 0; i < trial->lengths; i++)
    s.below[i] = sum += trial->length[i].weight;
  for (size_t i = 0; i < machines; i++) {
    s.passes[i] = (lp_sim_passes){0};
    s.next_s[i] = INFINITY;
  }
  const double end_s = run(&s);
  *busy = s.busy_s / (end_s * (double)machines);
  const bool holds = report(&s, out);
  for (size_t i = 0; i < machines; i++)
    lp_vec_free(&s.passes[i].members);
  lp_vec_free(&s.jobs);
  free(s.below);
  free(s.passes);
  free(s.next_s);
  free(s.began_s);
  return holds;
}
