/* Schedulers, which give each block to a user: proportional fair, round robin, maximum rate. */
#include "runtime/radio/radio.h"

#include <gsl/gsl_randist.h>
#include <math.h>

#include "runtime/radio/random.h"

const char *const lp_radio_scheduler_names[LP_RADIO_SCHEDULERS] = {"pf", "rr", "max"};

/* The state of a run; all arrays are per user. */
typedef struct {
  const lp_radio_cell *cell;
  gsl_rng *random;
  double *mean;    /* Tbar, bit/s */
  double *served;  /* bit/s in this interval */
  double *rate;    /* of the block at hand */
  double *fade;    /* |h|^2 of the current block */
  bool *active;    /* [interferers] of the current block */
  double *disturb; /* interference of the current block; computed once when all cells use all blocks */
  int32_t turn;    /* of round robin */
  double gain_sum; /* of served blocks after the warm-up */
  int64_t *blocks; /* served after the warm-up */
} run;

static double interference_of(const run *r, int32_t user) {
  const lp_radio_cell *cell = r->cell;
  const double *from = cell->interference + (size_t)user * (size_t)cell->interferers;
  double sum = 0;
  for (int32_t j = 0; j < cell->interferers; j++)
    sum += r->active[j] ? from[j] : 0;
  return sum;
}

/* The channel of one block in one interval: which cells interfere, the fading of each user's signal, and the rate that
 * each user would get. */
static void draw_block(run *r) {
  const lp_radio_cell *cell = r->cell;
  bool steady = cell->load >= 1 || cell->interferers == 0;
  for (int32_t j = 0; j < cell->interferers && !steady; j++)
    r->active[j] = gsl_rng_uniform(r->random) < cell->load;
  for (int32_t k = 0; k < cell->users; k++) {
    if (!steady) r->disturb[k] = interference_of(r, k);
    r->fade[k] = cell->rayleigh ? gsl_ran_exponential(r->random, 1) : 1;
    double sinr = lp_radio_sinr(cell->signal[k] * r->fade[k], r->disturb[k], 1);
    r->rate[k] = lp_radio_capacity(cell->block_hz, sinr, &cell->coding);
  }
}

static int32_t choose(run *r) {
  const lp_radio_cell *cell = r->cell;
  if (cell->scheduler == LP_RADIO_RR) {
    int32_t user = r->turn;
    r->turn = (r->turn + 1) % cell->users;
    return user;
  }
  int32_t best = 0;
  double most = -1;
  for (int32_t k = 0; k < cell->users; k++) {
    double worth = cell->scheduler == LP_RADIO_PF ? r->rate[k] / r->mean[k] : r->rate[k];
    if (worth <= most) continue;
    most = worth;
    best = k;
  }
  return best;
}

static void run_interval(run *r, bool counts) {
  const lp_radio_cell *cell = r->cell;
  memset(r->served, 0, (size_t)cell->users * sizeof *r->served);
  for (int32_t q = 0; q < cell->blocks; q++) {
    draw_block(r);
    int32_t user = choose(r);
    r->served[user] += r->rate[user];
    if (!counts) continue;
    r->gain_sum += r->fade[user];
    r->blocks[user]++;
  }
  for (int32_t k = 0; k < cell->users; k++)
    r->mean[k] = (1 - cell->beta) * r->mean[k] + cell->beta * r->served[k];
}

/* Starts Tbar near its final value: the user's rate at its mean signal, divided by the number of users. */
static void begin(run *r) {
  const lp_radio_cell *cell = r->cell;
  for (int32_t j = 0; j < cell->interferers; j++)
    r->active[j] = true;
  for (int32_t k = 0; k < cell->users; k++) {
    r->disturb[k] = interference_of(r, k);
    double sinr = lp_radio_sinr(cell->signal[k], r->disturb[k] * cell->load, 1);
    r->mean[k] = fmax(lp_radio_capacity(cell->block_hz, sinr, &cell->coding) * cell->blocks / cell->users, 1e-9);
  }
}

void lp_radio_schedule_run(const lp_radio_cell *cell, lp_radio_schedule *out) {
  size_t users = (size_t)cell->users;
  run r = {.cell = cell, .random = lp_radio_stream(cell->seed, "channel", 0)};
  r.mean = lp_alloc(5 * users * sizeof *r.mean);
  r.served = r.mean + users;
  r.rate = r.served + users;
  r.fade = r.rate + users;
  r.disturb = r.fade + users;
  r.active = lp_alloc((size_t)cell->interferers + 1);
  r.blocks = lp_alloc(users * sizeof *r.blocks);
  memset(out->rate, 0, users * sizeof *out->rate);
  begin(&r);
  for (int64_t t = 0; t < cell->warm_up + cell->intervals; t++) {
    bool counts = t >= cell->warm_up;
    run_interval(&r, counts);
    for (size_t k = 0; counts && k < users; k++)
      out->rate[k] += r.served[k] / (double)cell->intervals;
  }
  double all = (double)cell->intervals * cell->blocks;
  for (size_t k = 0; k < users; k++)
    out->share[k] = (double)r.blocks[k] / all;
  out->gain = r.gain_sum / all;
  free(r.mean);
  free(r.active);
  free(r.blocks);
  gsl_rng_free(r.random);
}
