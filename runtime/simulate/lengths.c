/* Random numbers: streams, and lengths of prompts and answers. */
#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

#include "runtime/simulate/simulate_internal.h"

gsl_rng *lp_sim_stream(const lp_sim_scenario *scenario, int64_t run, const char *purpose) {
  gsl_rng *stream = gsl_rng_alloc(gsl_rng_mt19937);
  uint64_t mixed = lp_hash_bytes(purpose, strlen(purpose), (uint64_t)scenario->seed);
  mixed = lp_hash_bytes(&run, sizeof run, mixed);
  gsl_rng_set(stream, (unsigned long)((mixed ^ mixed >> 32) & 0xffffffff));
  return stream;
}

static double draw(gsl_rng *random, const lp_sim_lengths *lengths) {
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

double lp_sim_draw(gsl_rng *random, const lp_sim_lengths *lengths) {
  return fmax(round(draw(random, lengths)), lengths->least);
}
