/* The bandwidth of operators by the bytes that the whole pass reads. Weights of a pass that fits a cache are still
 * there in the next pass, those of a larger pass come from memory, and in between a share of them does. Each family has
 * one curve: the share of the base law's bandwidth over the bytes of the pass. It is fitted to operators of one shape
 * and size in passes of several sizes, so that no effect of the shape is taken for one of the cache. The base law, of
 * which it is a part, and the curve are fitted alternately. */
#include "hwmodels/hwmodels_internal.h"

#include <math.h>

enum { LAWS = 3, ROUNDS = 30, STEPS = 40 };
static const double bin_width = 0.1;               /* passes count as equal when their bytes differ by up to a tenth */
static const double slowest = -2.5, fastest = 3.5; /* log of the share */
static const double prior = 0.01;                  /* weight of a prior towards 1, which decides where samples do not */

typedef struct {
  const lp_hw_sample *sample;
  int64_t key[LP_FIT_KEYS];
  double size;
  int32_t group, bin; /* groups of one shape and size; of equal passes */
} reading;

typedef struct {
  lp_fit_family *family;
  reading *all; /* by bin */
  size_t count;
  double *height; /* [group] the residual of the shape from the base law, in log time */
  int32_t groups;
  lp_fit_curve *curve; /* a knot for each bin */
} pass_fit;

/* ---- samples that determine the curve ---- */

static int by_shape(const void *a, const void *b) {
  const reading *x = a, *y = b;
  int order = memcmp(x->key, y->key, sizeof x->key);
  return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

static int by_pass(const void *a, const void *b) {
  double x = ((const reading *)a)->sample->facts.pass_bytes, y = ((const reading *)b)->sample->facts.pass_bytes;
  return (x > y) - (x < y);
}

/* Keeps groups in which one pass reads much more than another. */
static void keep_telling(pass_fit *p) {
  size_t kept = 0;
  qsort(p->all, p->count, sizeof *p->all, by_shape);
  for (size_t from = 0, end; from < p->count; from = end) {
    double least = INFINITY, most = 0;
    for (end = from; end < p->count && by_shape(&p->all[from], &p->all[end]) == 0; end++) {
      least = fmin(least, p->all[end].sample->facts.pass_bytes);
      most = fmax(most, p->all[end].sample->facts.pass_bytes);
    }
    if (most < 1.5 * least) continue;
    for (size_t i = from; i < end; i++) {
      p->all[kept] = p->all[i];
      p->all[kept++].group = p->groups;
    }
    p->groups++;
  }
  p->count = kept;
}

static void deal_bins(pass_fit *p) {
  qsort(p->all, p->count, sizeof *p->all, by_pass);
  for (size_t from = 0, end; from < p->count; from = end) {
    double limit = p->all[from].sample->facts.pass_bytes * exp(bin_width), sum = 0;
    for (end = from; end < p->count && p->all[end].sample->facts.pass_bytes <= limit; end++) {
      p->all[end].bin = p->curve->count;
      sum += log(p->all[end].sample->facts.pass_bytes);
    }
    p->curve->x[p->curve->count++] = sum / (double)(end - from);
  }
}

static void list_readings(pass_fit *p, const lp_fit_samples *samples) {
  for (size_t i = 0; i < samples->count; i++) {
    const lp_op_facts *facts = &samples->sample[i]->facts;
    if (facts->pass_bytes <= 0) continue;
    reading *r = &p->all[p->count++];
    *r = (reading){.sample = samples->sample[i], .size = lp_fit_size(p->family, facts)};
    lp_fit_key(p->family, facts, r->key);
  }
  keep_telling(p);
}

/* ---- the curve ---- */

/* The residual of a sample when its pass reads at exp(y) of the base law's bandwidth. */
static double error_at(const pass_fit *p, const reading *r, double y) {
  lp_fit_family family = *p->family;
  family.pass.count = 0;
  family.bytes_per_us *= exp(y);
  return log(r->sample->time_us) - lp_fit_base(&family, &r->sample->facts);
}

static double cost(const pass_fit *p, size_t from, size_t end, double y) {
  double sum = 0;
  for (size_t i = from; i < end; i++) {
    double error = error_at(p, &p->all[i], y) - p->height[p->all[i].group];
    sum += error * error;
  }
  return sum / (double)(end - from) + prior * y * y;
}

/* Golden-section search, because the cost has one minimum. */
static double best_share(const pass_fit *p, size_t from, size_t end) {
  const double golden = 0.6180339887498949;
  double low = slowest, high = fastest;
  double a = high - golden * (high - low), b = low + golden * (high - low);
  double at_a = cost(p, from, end, a), at_b = cost(p, from, end, b);
  for (int i = 0; i < STEPS; i++) {
    if (at_a < at_b) {
      high = b, b = a, at_b = at_a;
      a = high - golden * (high - low);
      at_a = cost(p, from, end, a);
    } else {
      low = a, a = b, at_a = at_b;
      b = low + golden * (high - low);
      at_b = cost(p, from, end, b);
    }
  }
  return (low + high) / 2;
}

/* A pass that reads more is never faster. Neighbours that contradict this are averaged. */
static void let_fall(lp_fit_curve *curve, double *weight) {
  for (int32_t i = 1; i < curve->count; i++) {
    int32_t from = i;
    double sum = weight[i] * curve->y[i], total = weight[i];
    while (from > 0 && curve->y[from - 1] < sum / total) {
      from--;
      sum += weight[from] * curve->y[from];
      total += weight[from];
    }
    for (int32_t k = from; k <= i; k++)
      curve->y[k] = sum / total;
  }
}

static void settle_heights(pass_fit *p, double *times) {
  memset(p->height, 0, sizeof *p->height * (size_t)p->groups);
  memset(times, 0, sizeof *times * (size_t)p->groups);
  LP_FOR_EACH(const reading, r, p->all, p->count) {
    p->height[r->group] += error_at(p, r, p->curve->y[r->bin]);
    times[r->group]++;
  }
  for (int32_t i = 0; i < p->groups; i++)
    p->height[i] /= times[i];
}

static void find_shares(pass_fit *p) {
  LP_OWNED(lp_free_at) double *times = lp_alloc(sizeof *times * (p->count + 1));
  for (int round = 0; round < ROUNDS; round++) {
    settle_heights(p, times);
    for (size_t from = 0, end; from < p->count; from = end) {
      for (end = from; end < p->count && p->all[end].bin == p->all[from].bin;)
        end++;
      p->curve->y[p->all[from].bin] = best_share(p, from, end);
    }
  }
  memset(times, 0, sizeof *times * p->count);
  for (size_t i = 0; i < p->count; i++)
    times[p->all[i].bin]++;
  let_fall(p->curve, times);
}

void lp_fit_pass_law(lp_fit_family *family, const lp_machine *machine, const lp_fit_samples *samples,
                     double launch_us_guess) {
  lp_fit_base_law(family, machine, samples, launch_us_guess);
  bool reads = family->op == LP_HW_LINEAR || (family->op == LP_HW_ATTENTION && family->decode);
  if (!reads) return;
  lp_fit_curve curve = {0};
  pass_fit p = {.family = family, .curve = &curve};
  p.all = lp_alloc((samples->count + 1) * sizeof *p.all);
  p.height = lp_alloc((samples->count + 1) * sizeof *p.height);
  list_readings(&p, samples);
  if (p.count > 0) {
    curve.x = LP_NEW_ARRAY(machine->arena, double, p.count);
    curve.y = LP_NEW_ARRAY(machine->arena, double, p.count);
    deal_bins(&p);
    for (int i = 0; i < LAWS; i++) {
      find_shares(&p);
      family->pass = curve;
      lp_fit_base_law(family, machine, samples, launch_us_guess);
    }
  }
  free(p.height);
  free(p.all);
}
