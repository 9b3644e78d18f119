/* Runs the pools of a fleet, several times at each value: see fleet.h. */
#include "runtime/simulate/fleet.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <pthread.h>

#include "base/cores.h"
#include "base/random.h"

static const double hours = 730; /* of a month */

/* ---- runs -------------------------------------------------------------------------------------------------------- */

typedef struct {
  const lp_sim_fleet *fleet;
  pthread_mutex_t lock;       /* of `next` */
  int64_t next, step, units;  /* this process computes each `step`-th unit */
  lp_sim_pool_result *result; /* [values][runs][pools] */
} board;

static lp_sim_fleet_numbers numbers_at(const lp_sim_fleet *fleet, int32_t value) {
  lp_sim_fleet_numbers out = fleet->numbers;
  if (fleet->varied) *(double *)((char *)&out + fleet->varied_at) = fleet->value[value];
  return out;
}

static double rate_of(const lp_sim_fleet *fleet, const lp_sim_fleet_numbers *numbers) {
  return !isnan(numbers->rate) ? numbers->rate : fleet->hour ? fleet->mean_rate : fleet->rate;
}

/* The machines of a pool: `replicas`, or the needed ones and `spare`, or those of the report. */
static int64_t machines_of(const lp_sim_fleet_pool *pool, const lp_sim_fleet_numbers *numbers) {
  if (!isnan(numbers->replicas)) return llround(numbers->replicas);
  if (isnan(numbers->spare)) return pool->count;
  return llround(fmax(1, (double)pool->needed + numbers->spare));
}

static double given(double number, double otherwise) {
  return isnan(number) ? otherwise : number;
}

/* The lowest layers of the machines that an hour wants stay; those above them are of the spot market, with those that
 * stand in for lost ones, and the others come and go (fleet/mix.h). */
static void schedule(const lp_sim_fleet_pool *of, double spare, lp_sim_pool *pool, lp_sim_pool_hour *hour) {
  const int64_t firm = of->count - of->spot, there = of->needed + of->spare - firm, in_place = of->spot - there;
  pool->machines = pool->spot = 0;
  for (int h = 0; h < LP_SIM_HOURS; h++) {
    const int64_t wanted = llround(fmax(1, (double)of->by_hour[h] + given(spare, (double)of->spare)));
    const int64_t above = wanted > of->stay ? wanted - of->stay : 0, spots = above < there ? above : there;
    hour[h] = (lp_sim_pool_hour){of->stay + above - spots, spots + in_place};
    if (hour[h].firm > pool->machines) pool->machines = hour[h].firm;
    if (hour[h].spot > pool->spot) pool->spot = hour[h].spot;
  }
  pool->machines += pool->spot;
  pool->by_hour = hour;
}

static bool is_scheduled(const lp_sim_fleet *fleet, const lp_sim_fleet_numbers *numbers) {
  return fleet->by_hour && isnan(numbers->replicas) && numbers->target <= 0;
}

static void run_unit(const board *b, int64_t unit) {
  const lp_sim_fleet *fleet = b->fleet;
  const int32_t index = (int32_t)(unit % fleet->pools);
  const int64_t run = unit / fleet->pools % fleet->runs;
  const lp_sim_fleet_numbers numbers = numbers_at(fleet, (int32_t)(unit / fleet->pools / fleet->runs));
  const lp_sim_fleet_pool *of = &fleet->pool[index];
  lp_sim_pool pool = {.length = fleet->length,
                      .lengths = fleet->lengths,
                      .station = {.pass = of->pass,
                                  .prompt_stretch = given(numbers.prompt_stretch, of->prompt_stretch),
                                  .prompt_turn = llround(given(numbers.prompt_turn, of->prompt_turn))},
                      .machines = machines_of(of, &numbers),
                      .sessions = llround(given(numbers.sessions, of->sessions)),
                      .rate = rate_of(fleet, &numbers) * of->share,
                      .hour = fleet->hour,
                      .failures = numbers.failures,
                      .losses = {given(numbers.losses.every_s, of->losses.every_s),
                                 given(numbers.losses.restart_s, of->losses.restart_s)},
                      .scaling = {numbers.target, llround(numbers.least), numbers.cold_s, numbers.keep_s},
                      .requests = llround(ceil((double)fleet->requests * of->share)),
                      .seed = lp_random_bits((uint64_t)fleet->seed, (uint64_t)run, (uint64_t)index)};
  lp_sim_pool_hour hour[LP_SIM_HOURS];
  pool.spot = of->spot < pool.machines ? of->spot : pool.machines;
  if (is_scheduled(fleet, &numbers)) {
    pool.scaling.cold_s = fleet->cold_s;
    schedule(of, numbers.spare, &pool, hour);
  }
  for (int32_t i = 0; i < fleet->classes; i++)
    if (fleet->class[i].pool == index)
      pool.class[pool.classes++] = (lp_sim_pool_class){fleet->class[i].share / of->share, fleet->class[i].user, NULL};
  if (pool.classes > 0) (void)lp_sim_pool_run(&pool, &b->result[unit]); /* without limits none is broken */
}

static void *run_all(void *user) {
  board *b = user;
  for (;;) {
    (void)pthread_mutex_lock(&b->lock);
    const int64_t unit = b->next < b->units ? b->next : -1;
    b->next += b->step;
    (void)pthread_mutex_unlock(&b->lock);
    if (unit < 0) return NULL;
    run_unit(b, unit);
  }
}

static void compute(board *b, int32_t threads) {
  const int32_t count = threads > 0 ? threads : lp_machine_threads();
  (void)pthread_mutex_init(&b->lock, NULL);
  lp_threads_run(count < b->units ? count : (int32_t)b->units, run_all, b);
  (void)pthread_mutex_destroy(&b->lock);
}

/* Gives all processes the results of all; false: one has other files. Each has a share of the same size, the last parts
 * of which may be empty. */
static bool exchange(const board *b, const lp_peers *peers) {
  const lp_sim_fleet *fleet = b->fleet;
  const size_t count = (size_t)peers->count, share = ((size_t)b->units + count - 1) / count;
  const int64_t numbers[] = {fleet->seed, fleet->runs};
  const uint64_t key =
      lp_hash_bytes(numbers, sizeof numbers, lp_hash_bytes(LP_VERSION, sizeof LP_VERSION, fleet->digest));
  LP_OWNED(lp_free_at) uint64_t *keys = lp_alloc(count * sizeof *keys);
  LP_OWNED(lp_free_at) lp_sim_pool_result *mine = lp_alloc((share + 1) * sizeof *mine);
  LP_OWNED(lp_free_at) lp_sim_pool_result *all = lp_alloc((count * share + 1) * sizeof *all);
  bool same = true;
  peers->all_gather(&key, sizeof key, keys);
  for (size_t i = 0; i < count; i++)
    same = same && keys[i] == key;
  for (size_t i = 0; i < share; i++) {
    const size_t unit = i * count + (size_t)peers->rank;
    mine[i] = unit < (size_t)b->units ? b->result[unit] : (lp_sim_pool_result){0};
  }
  if (same && share > 0) peers->all_gather(mine, share * sizeof *mine, all);
  for (size_t i = 0; same && i < (size_t)b->units; i++)
    b->result[i] = all[i % count * share + i / count];
  return same;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* The mean of numbers `stride` bytes from each other, with the half of its 95 % interval. */
static lp_sim_estimate estimate(const double *first, size_t stride, int64_t count) {
  double mean = 0, squares = 0;
  const char *at = (const char *)first;
  for (int64_t i = 0; i < count; i++)
    mean += *(const double *)(at + (size_t)i * stride) / (double)count;
  for (int64_t i = 0; i < count; i++)
    squares += pow(*(const double *)(at + (size_t)i * stride) - mean, 2);
  if (count < 2) return (lp_sim_estimate){mean, NAN};
  const double degrees = (double)(count - 1);
  return (lp_sim_estimate){mean, gsl_cdf_tdist_Pinv(0.975, degrees) * sqrt(squares / degrees / (double)count)};
}

/* The device's passes of a mean request, in s. */
static double device_s(const lp_sim_fleet *fleet, const lp_sim_fleet_class *class) {
  const lp_sim_pool_user passes = {class->user.knots, class->user.prompt, class->device_first_s, 0, false, 1, 1};
  double sum = 0;
  for (size_t i = 0; i < fleet->lengths; i++)
    sum += fleet->length[i].weight * (lp_sim_pool_first_s(&passes, fleet->length[i].prompt) +
                                      (fleet->length[i].answer - 1) * class->device_token_s);
  return sum;
}

/* `results`: of the runs of one point. */
static void sum_class(const lp_sim_fleet *fleet, int32_t index, double rate, const lp_sim_pool_result *results,
                      lp_sim_fleet_class_result *out) {
  const lp_sim_fleet_class *class = &fleet->class[index];
  lp_fleet_times alone, mean;
  int32_t at = 0; /* among those of its pool */
  for (int32_t i = 0; i < index; i++)
    at += fleet->class[i].pool == class->pool;
  if (class->pool < 0) lp_sim_pool_alone(fleet->length, fleet->lengths, 1, &class->user, NULL, &alone);
  for (int i = 0; i < LP_FLEET_FIGURES; i++)
    for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
      const size_t stride = sizeof *results * (size_t)fleet->pools;
      if (class->pool < 0)
        out->time_s[i][k] = (lp_sim_estimate){alone.value_s[i][k], NAN};
      else
        out->time_s[i][k] = estimate(&results[class->pool].times[at].value_s[i][k], stride, fleet->runs);
      mean.value_s[i][k] = out->time_s[i][k].mean;
    }
  out->keeps = lp_sim_pool_strain_of(class->limit_s, &mean).ratio <= 1;
  out->busy_kwh = rate * class->share * device_s(fleet, class) * class->power_w * hours / 1e3;
  for (int64_t run = 0; class->pool >= 0 && run < fleet->runs; run++)
    out->requests += results[run * fleet->pools + class->pool].requests[at];
}

static void sum_pool(const lp_sim_fleet *fleet, int32_t index, bool scheduled, const lp_sim_pool_result *results,
                     lp_sim_fleet_pool_result *out) {
  const lp_sim_fleet_pool *pool = &fleet->pool[index];
  double busy_s = 0, paid_s = 0, spot_paid_s = 0, elapsed_s = 0, failures = 0;
  for (int64_t run = 0; run < fleet->runs; run++) {
    const lp_sim_pool_result *one = &results[run * fleet->pools + index];
    busy_s += one->busy_s;
    paid_s += one->paid_s;
    spot_paid_s += one->spot_paid_s;
    elapsed_s += one->elapsed_s;
    failures += (double)one->failures;
  }
  if (elapsed_s <= 0) return; /* a pool without requests */
  const double of_month = hours / elapsed_s, firm_s = paid_s - spot_paid_s;
  const double comes_s = scheduled && pool->usd_by_hour > 0 ? firm_s - elapsed_s * (double)pool->stay : 0;
  *out = (lp_sim_fleet_pool_result){.machines = paid_s / elapsed_s,
                                    .busy = busy_s / paid_s,
                                    .usd = of_month * ((firm_s - comes_s) * pool->usd_per_hour +
                                                       spot_paid_s * pool->spot_usd_per_hour +
                                                       (comes_s > 0 ? comes_s * pool->usd_by_hour : 0)),
                                    .busy_kwh = busy_s * of_month * pool->power_w / 1e3,
                                    .idle_kwh = (paid_s - busy_s) * of_month * pool->idle_power_w / 1e3,
                                    .failures = failures * of_month * 3600};
}

static void sum_up(const board *b, lp_sim_fleet_point *point) {
  const lp_sim_fleet *fleet = b->fleet;
  for (int32_t value = 0; value < fleet->values; value++) {
    const lp_sim_fleet_numbers numbers = numbers_at(fleet, value);
    const lp_sim_pool_result *results = &b->result[(int64_t)value * fleet->runs * fleet->pools];
    point[value] = (lp_sim_fleet_point){.value = fleet->varied ? fleet->value[value] : NAN};
    for (int32_t i = 0; i < fleet->classes; i++)
      sum_class(fleet, i, rate_of(fleet, &numbers), results, &point[value].class[i]);
    for (int32_t i = 0; i < fleet->pools; i++)
      sum_pool(fleet, i, is_scheduled(fleet, &numbers), results, &point[value].pool[i]);
  }
}

lp_status lp_sim_fleet_run(const lp_sim_fleet *fleet, const lp_sim_options *options, lp_sim_fleet_point *point,
                           lp_diag *diag) {
  const lp_peers *peers = options->peers;
  board b = {.fleet = fleet,
             .next = peers ? peers->rank : 0,
             .step = peers ? peers->count : 1,
             .units = fleet->values * fleet->runs * fleet->pools};
  b.result = lp_alloc((size_t)(b.units + 1) * sizeof *b.result);
  for (int64_t i = 0; i < b.units; i++)
    b.result[i] = (lp_sim_pool_result){0};
  compute(&b, peers ? 1 : options->threads);
  const bool same = !peers || exchange(&b, peers);
  if (same) sum_up(&b, point);
  free(b.result);
  return same ? LP_OK
              : lp_error(diag, LP_LOC_NONE, "a process has another version, fleet, scenario, seed or number of runs");
}
