/* The base law of a family: launch + ((flops / P)^4 + (bytes / B)^4)^(1/4), the roofline with a rounded ridge. The
 * simplex method finds the three figures. Weak priors keep a figure near an estimate where the table does not determine
 * it: large operators say little about launches. */
#include "hwmodels/hwmodels_internal.h"

#include <gsl/gsl_multimin.h>
#include <math.h>

enum { PARAMETERS = 3, ROUNDS = 400 };

typedef struct {
  lp_fit_family *family;
  const lp_fit_samples *samples;
  double launch_guess;           /* log us */
  double most_flops, most_bytes; /* log of the rates per us: at most the machine's own */
} problem;

static void take(lp_fit_family *family, const gsl_vector *at) {
  family->launch_us = exp(gsl_vector_get(at, 0));
  family->flops_per_us = exp(gsl_vector_get(at, 1));
  family->bytes_per_us = exp(gsl_vector_get(at, 2));
}

/* A rate above the machine's own is impossible, and one below a few percent of it is unlikely. */
static double rate_penalty(double rate, double most) {
  double above = fmax(rate - most, 0), below = fmax(most - 1.5 - rate, 0);
  return 10 * above * above + 0.05 * below * below;
}

static double cost(const gsl_vector *at, void *user) {
  problem *p = user;
  take(p->family, at);
  double sum = 0;
  LP_FOR_REFS(const lp_hw_sample, sample, p->samples->sample, p->samples->count) {
    double error = log(sample->time_us) - lp_fit_base(p->family, &sample->facts);
    sum += error * error;
  }
  double launch = gsl_vector_get(at, 0) - p->launch_guess;
  return sum / (double)p->samples->count + 0.02 * launch * launch + rate_penalty(gsl_vector_get(at, 1), p->most_flops) +
         rate_penalty(gsl_vector_get(at, 2), p->most_bytes);
}

/* The starting point: the best rates that a sample reaches. */
static void begin(const problem *p, gsl_vector *at) {
  double flops = 1e-3, bytes = 1e-3;
  LP_FOR_REFS(const lp_hw_sample, sample, p->samples->sample, p->samples->count) {
    flops = fmax(flops, sample->facts.flops / sample->time_us);
    bytes = fmax(bytes, sample->facts.bytes / sample->time_us);
  }
  gsl_vector_set(at, 0, p->launch_guess);
  gsl_vector_set(at, 1, fmin(log(flops), p->most_flops));
  gsl_vector_set(at, 2, fmin(log(bytes), p->most_bytes));
}

void lp_fit_base_law(lp_fit_family *family, const lp_machine *machine, const lp_fit_samples *samples,
                     double launch_us_guess) {
  /* No operator reaches the data sheet's bandwidth; operands that fit the cache may be read faster. */
  double share = family->op == LP_HW_LINEAR || family->op == LP_HW_ATTENTION ? 0.95 : 8;
  problem p = {.family = family,
               .samples = samples,
               .launch_guess = log(launch_us_guess),
               .most_flops = log(lp_hw_peak(machine, family->dtype) * 1e-6),
               .most_bytes = log(share * machine->figure[LP_HW_BANDWIDTH] * 1e-6)};
  gsl_vector *at = gsl_vector_alloc(PARAMETERS), *step = gsl_vector_alloc(PARAMETERS);
  begin(&p, at);
  gsl_vector_set_all(step, 0.3);
  gsl_multimin_function function = {cost, PARAMETERS, &p};
  gsl_multimin_fminimizer *simplex = gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, PARAMETERS);
  gsl_multimin_fminimizer_set(simplex, &function, at, step);
  for (int i = 0; i < ROUNDS && gsl_multimin_fminimizer_iterate(simplex) == 0; i++)
    if (gsl_multimin_fminimizer_size(simplex) < 1e-5) break;
  take(family, gsl_multimin_fminimizer_x(simplex));
  gsl_multimin_fminimizer_free(simplex);
  gsl_vector_free(at);
  gsl_vector_free(step);
}
