/* Sums, quantiles and intervals. */
#include <gsl/gsl_cdf.h>
#include <math.h>

#include "runtime/simulate/statistics.h"

void lp_sim_tally_begin(lp_sim_tally *tally, int32_t tasks) {
  *tally = (lp_sim_tally){.sums = SIM_TASKS + tasks};
  size_t cells = (size_t)LP_SIM_PARTS * (size_t)tally->sums;
  tally->sum = lp_alloc(cells * sizeof *tally->sum);
  tally->count = lp_alloc(cells * sizeof *tally->count);
}

void lp_sim_tally_end(lp_sim_tally *tally) {
  free(tally->sum);
  free(tally->count);
}

void lp_sim_tally_add(lp_sim_tally *tally, int32_t part, int32_t sum, double value) {
  int32_t at = part * tally->sums + sum;
  tally->sum[at] += value;
  tally->count[at]++;
}

/* ---- quantiles: 128 bins to a factor of two, from 2^-12 s ---- */

enum { BINS_PER_OCTAVE = 128, LEAST_OCTAVE = -12 };

void lp_sim_histogram_add(lp_sim_histogram *histogram, double seconds) {
  int octave = 0;
  double mantissa = frexp(seconds, &octave); /* [0.5, 1) */
  int bin = (octave - LEAST_OCTAVE) * BINS_PER_OCTAVE + (int)((2 * mantissa - 1) * (double)BINS_PER_OCTAVE);
  if (!(seconds > 0) || bin < 0) bin = 0;
  if (bin >= LP_SIM_BINS) bin = LP_SIM_BINS - 1;
  histogram->bin[bin]++;
  histogram->count++;
}

static void merge(lp_sim_histogram *to, const lp_sim_histogram *from) {
  for (int bin = 0; bin < LP_SIM_BINS; bin++)
    to->bin[bin] += from->bin[bin];
  to->count += from->count;
}

void lp_sim_delays_merge(lp_sim_delays *to, const lp_sim_delays *from) {
  merge(&to->all, &from->all);
  for (int site = 0; site < LP_SITE_COUNT; site++)
    merge(&to->at[site], &from->at[site]);
}

double lp_sim_histogram_quantile(const lp_sim_histogram *histogram, double share) {
  int64_t wanted = (int64_t)ceil(share * (double)histogram->count), seen = 0;
  for (int bin = 0; bin < LP_SIM_BINS; bin++) {
    seen += histogram->bin[bin];
    if (seen < wanted || seen == 0) continue;
    double mantissa = 0.5 + (bin % BINS_PER_OCTAVE + 0.5) / (2 * (double)BINS_PER_OCTAVE);
    return ldexp(mantissa, bin / BINS_PER_OCTAVE + LEAST_OCTAVE);
  }
  return 0;
}

/* ---- intervals ---- */

static void mean_of(const lp_sim_tally *tally, int32_t sum, int32_t part, int32_t parts, double *total,
                    int64_t *count) {
  *total = 0;
  *count = 0;
  for (int32_t p = part; p < part + parts; p++) {
    *total += tally->sum[p * tally->sums + sum];
    *count += tally->count[p * tally->sums + sum];
  }
}

/* The total of all samples, and the spread of their means. */
typedef struct {
  double total, mean, squares;
  int64_t all, used;
} spread;

static void add_sample(spread *to, double total, int64_t count) {
  to->total += total;
  to->all += count;
  if (count == 0) return;
  double mean = total / (double)count, from = mean - to->mean;
  to->used++;
  to->mean += from / (double)to->used;
  to->squares += from * (mean - to->mean);
}

static lp_sim_estimate estimate(const spread *of) {
  lp_sim_estimate out = {of->all > 0 ? of->total / (double)of->all : 0, 0};
  double degrees = (double)(of->used - 1);
  if (of->used > 1) out.half = gsl_cdf_tdist_Pinv(0.975, degrees) * sqrt(of->squares / degrees / (double)of->used);
  return out;
}

lp_sim_estimate lp_sim_estimate_of(const lp_sim_tally *tallies, int64_t runs, int32_t sum) {
  spread found = {0};
  for (int64_t i = 0; i < (runs > 1 ? runs : LP_SIM_PARTS); i++) {
    double total = 0;
    int64_t count = 0;
    if (runs > 1)
      mean_of(&tallies[i], sum, 0, LP_SIM_PARTS, &total, &count);
    else
      mean_of(&tallies[0], sum, (int32_t)i, 1, &total, &count);
    add_sample(&found, total, count);
  }
  return estimate(&found);
}

lp_sim_estimate lp_sim_estimate_part(const lp_sim_tally *tallies, int64_t runs, int32_t sum, int32_t part) {
  spread found = {0};
  for (int64_t i = 0; i < runs; i++) {
    double total = 0;
    int64_t count = 0;
    mean_of(&tallies[i], sum, part, 1, &total, &count);
    add_sample(&found, total, count);
  }
  return estimate(&found);
}

int64_t lp_sim_part_end(const lp_sim_scenario *scenario, int32_t part) {
  return scenario->warm_up + (part + 1) * (scenario->requests - scenario->warm_up) / LP_SIM_PARTS;
}
