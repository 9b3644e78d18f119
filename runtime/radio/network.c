/* Places users in a layout, and computes the gains between them and all sectors and the rate of each user. */
#include "runtime/radio/radio.h"

#include <gsl/gsl_randist.h>
#include <math.h>

#include "runtime/radio/random.h"

/* ---- dropping ---- */

/* Uniform over the hexagon of a site; its corners lie isd / sqrt(3) from the middle, north and south. */
static lp_radio_point draw_place(gsl_rng *random, const lp_radio_layout *layout) {
  lp_radio_point middle = layout->site[gsl_rng_uniform_int(random, (unsigned long)layout->sites)];
  double half = layout->isd / 2, corner = layout->isd / sqrt(3);
  for (;;) {
    double x = (2 * gsl_rng_uniform(random) - 1) * half, y = (2 * gsl_rng_uniform(random) - 1) * corner;
    if (fabs(y) <= corner - fabs(x) / sqrt(3)) return (lp_radio_point){middle.x + x, middle.y + y};
  }
}

static bool is_far_enough(const lp_radio_layout *layout, lp_radio_point at, double least) {
  for (int32_t s = 0; s < layout->sites; s++) {
    lp_radio_point way = lp_radio_from_site(layout, s, at);
    if (hypot(way.x, way.y) < least) return false;
  }
  return true;
}

static lp_radio_user draw_user(gsl_rng *random, const lp_radio_profile *profile, const lp_radio_layout *layout) {
  lp_radio_user user = {0};
  do
    user.at = draw_place(random, layout);
  while (!is_far_enough(layout, user.at, profile->min_distance));
  /* The path loss of offices includes their walls. */
  double indoor = profile->scenario == LP_RADIO_INH || profile->scenario == LP_RADIO_INH_OPEN ? 0 : profile->indoor;
  user.indoor = gsl_rng_uniform(random) < indoor;
  user.high_loss = gsl_rng_uniform(random) < profile->high_loss;
  double deep = profile->scenario == LP_RADIO_RMA ? 10 : 25; /* TR 38.901, 7.4.3.1: the lesser of two */
  double a = gsl_rng_uniform(random), b = gsl_rng_uniform(random);
  user.d_in = user.indoor ? deep * fmin(a, b) : 0;
  return user;
}

/* ---- gains ---- */

typedef struct {
  gsl_rng *random;
  double wall_db; /* of this user, towards all sites */
  double shadow;  /* the part of shadowing that all sites share, in deviations */
  const lp_radio_user *user;
} link_state;

/* The loss between a user and a site: the same for the sectors of the site. */
static double draw_loss_db(link_state *state, const lp_radio_profile *profile, double d2d) {
  lp_radio_path path = {.scenario = (lp_radio_scenario)profile->scenario,
                        .d2d = d2d,
                        .h_bs = profile->h_bs,
                        .h_ut = profile->h_ut,
                        .fc = profile->fc,
                        .h_building = profile->h_building,
                        .w_street = profile->w_street};
  double outside = fmax(d2d - state->user->d_in, 0);
  path.los = gsl_rng_uniform(state->random) < lp_radio_los_probability(path.scenario, outside, path.h_ut);
  double chance = gsl_rng_uniform(state->random), choice = gsl_rng_uniform(state->random);
  path.h_e = lp_radio_environment_height(path.scenario, outside, path.h_ut, chance, choice);
  double common = profile->shadow_correlation, own = gsl_ran_gaussian_ziggurat(state->random, 1);
  double shadow = sqrt(common) * state->shadow + sqrt(1 - common) * own;
  double deviation = profile->shadowing ? lp_radio_shadow_db(&path, state->user->indoor) : 0;
  return lp_radio_path_loss_db(&path) + state->wall_db + deviation * shadow;
}

static void draw_gains(gsl_rng *random, lp_radio_network *network, int32_t index) {
  const lp_radio_profile *profile = network->profile;
  lp_radio_user *user = &network->user[index];
  double *gain = &network->gain[(size_t)index * (size_t)network->sectors], best = 0;
  int32_t sectors = (int32_t)profile->sectors;
  double spread = gsl_ran_gaussian_ziggurat(random, lp_radio_o2i_deviation_db(user->high_loss));
  link_state state = {.random = random, .shadow = gsl_ran_gaussian_ziggurat(random, 1), .user = user};
  if (user->indoor)
    state.wall_db = lp_radio_o2i_db(profile->fc, user->high_loss, user->d_in) + (profile->shadowing ? spread : 0);
  for (int32_t site = 0; site < network->layout.sites; site++) {
    lp_radio_point way = lp_radio_from_site(&network->layout, site, user->at);
    double d2d = hypot(way.x, way.y), azimuth = atan2(way.y, way.x) * 180 / M_PI;
    double down = atan2(profile->h_bs - profile->h_ut, d2d) * 180 / M_PI;
    double loss_db = draw_loss_db(&state, profile, d2d);
    for (int32_t s = 0; s < sectors; s++) {
      double antenna = lp_radio_antenna_db(&profile->antenna, azimuth - lp_radio_bearing_deg(s), down);
      int32_t sector = site * sectors + s;
      gain[sector] = lp_radio_linear(antenna - loss_db);
      if (gain[sector] <= best) continue;
      best = gain[sector];
      user->sector = sector;
    }
  }
  network->count[user->sector]++;
}

lp_radio_network *lp_radio_drop(const lp_radio_profile *profile, int32_t users, uint64_t seed) {
  lp_radio_network *network = lp_alloc(sizeof *network);
  network->profile = profile;
  network->layout = lp_radio_layout_make((int32_t)profile->sites, profile->isd, profile->wrap);
  network->users = users;
  network->sectors = network->layout.sites * (int32_t)profile->sectors;
  network->user = lp_alloc((size_t)users * sizeof *network->user);
  network->gain = lp_alloc((size_t)users * (size_t)network->sectors * sizeof *network->gain);
  network->count = lp_alloc((size_t)network->sectors * sizeof *network->count);
  for (int32_t i = 0; i < users; i++) {
    /* the numbers drawn for a user do not depend on the number of users */
    gsl_rng *random = lp_radio_stream(seed, "user", i);
    network->user[i] = draw_user(random, profile, &network->layout);
    draw_gains(random, network, i);
    gsl_rng_free(random);
  }
  return network;
}

void lp_radio_free(lp_radio_network *network) {
  if (!network) return;
  free(network->user);
  free(network->gain);
  free(network->count);
  free(network);
}

/* ---- powers ---- */

static double gain_of(const lp_radio_network *network, int32_t user, int32_t sector) {
  return network->gain[(size_t)user * (size_t)network->sectors + (size_t)sector];
}

/* The power that a user sends on each block, mW. */
static double user_power(const lp_radio_network *network, int32_t user) {
  const lp_radio_profile *profile = network->profile;
  double loss_db = -lp_radio_db(gain_of(network, user, network->user[user].sector));
  double most = profile->ue_power_dbm - lp_radio_db((double)profile->blocks);
  return lp_radio_linear(fmin(most, profile->p0_dbm + profile->alpha * loss_db));
}

static double sector_power(const lp_radio_profile *profile) {
  return lp_radio_linear(profile->power_dbm) / (double)profile->blocks;
}

static double noise_of(const lp_radio_profile *profile, lp_radio_direction direction) {
  double figure = direction == LP_RADIO_DOWN ? profile->ue_noise_db : profile->bs_noise_db;
  return lp_radio_noise(profile->block_hz, profile->n0_dbm_hz, figure);
}

double lp_radio_signal(const lp_radio_network *network, lp_radio_direction direction, int32_t user) {
  double gain = gain_of(network, user, network->user[user].sector);
  return gain * (direction == LP_RADIO_DOWN ? sector_power(network->profile) : user_power(network, user));
}

/* The mean power that the users of sector `from` cause at sector `to` on a block. */
static double uplink_leak(const lp_radio_network *network, int32_t from, int32_t to) {
  double sum = 0;
  for (int32_t i = 0; i < network->users; i++)
    if (network->user[i].sector == from) sum += user_power(network, i) * gain_of(network, i, to);
  return network->count[from] > 0 ? sum / network->count[from] : 0;
}

/* Received power per block in mW of sector `other` when it uses the block. In the uplink it is the mean over the users
 * that `other` serves; 0 if it serves none. */
static double interference_of(const lp_radio_network *network, lp_radio_direction direction, int32_t user,
                              int32_t other) {
  if (direction == LP_RADIO_DOWN) return sector_power(network->profile) * gain_of(network, user, other);
  return uplink_leak(network, other, network->user[user].sector);
}

double lp_radio_mean_sinr(const lp_radio_network *network, lp_radio_direction direction, int32_t user) {
  double interference = 0;
  for (int32_t s = 0; s < network->sectors; s++)
    if (s != network->user[user].sector) interference += interference_of(network, direction, user, s);
  return lp_radio_sinr(lp_radio_signal(network, direction, user), interference * network->profile->load,
                       noise_of(network->profile, direction));
}

/* ---- rates ---- */

/* The users of one sector as a cell; signal and interference are relative to noise. */
static void fill_cell(const lp_radio_network *network, lp_radio_direction direction, int32_t sector,
                      const int32_t *user, lp_radio_cell *cell, double *signal, double *interference) {
  double noise = noise_of(network->profile, direction);
  for (int32_t k = 0; k < cell->users; k++) {
    signal[k] = lp_radio_signal(network, direction, user[k]) / noise;
    int32_t n = 0;
    for (int32_t s = 0; s < network->sectors; s++) {
      if (s == sector) continue;
      double *place = &interference[k * cell->interferers + n++];
      /* In the uplink all users of a sector have the same interference, that at its antenna. */
      *place = direction == LP_RADIO_UP && k > 0 ? interference[n - 1]
                                                 : interference_of(network, direction, user[k], s) / noise;
    }
  }
  cell->signal = signal;
  cell->interference = interference;
}

static void sector_rates(const lp_radio_network *network, lp_radio_direction direction, int32_t sector,
                         lp_radio_cell *cell, double *rate) {
  size_t count = (size_t)network->count[sector], others = (size_t)network->sectors - 1;
  if (count == 0) return;
  LP_OWNED(lp_free_at) int32_t *user = lp_alloc(count * sizeof *user);
  int32_t n = 0;
  for (int32_t i = 0; i < network->users; i++)
    if (network->user[i].sector == sector) user[n++] = i;
  cell->users = n;
  cell->interferers = (int32_t)others;
  LP_OWNED(lp_free_at)
  double *signal = lp_alloc(count * sizeof *signal), *interference = lp_alloc((count * others + 1) * sizeof(double));
  lp_radio_schedule out = {.rate = lp_alloc(count * sizeof(double)), .share = lp_alloc(count * sizeof(double))};
  fill_cell(network, direction, sector, user, cell, signal, interference);
  lp_radio_schedule_run(cell, &out);
  for (int32_t k = 0; k < n; k++)
    rate[user[k]] = out.rate[k];
  free(out.rate);
  free(out.share);
}

void lp_radio_rates(const lp_radio_network *network, lp_radio_direction direction, int64_t intervals, uint64_t seed,
                    double *rate) {
  const lp_radio_profile *profile = network->profile;
  for (int32_t sector = 0; sector < network->sectors; sector++) {
    lp_radio_cell cell = {.blocks = (int32_t)profile->blocks,
                          .block_hz = profile->block_hz,
                          .load = profile->load,
                          .rayleigh = profile->rayleigh,
                          .coding = profile->coding,
                          .scheduler = (lp_radio_scheduler)profile->scheduler,
                          .beta = profile->beta,
                          .intervals = intervals,
                          .warm_up = intervals / 4,
                          .seed = seed * 1000003 + (uint64_t)sector};
    sector_rates(network, direction, sector, &cell, rate);
  }
}

void lp_radio_drop_rates(const lp_radio_profile *profile, int32_t users, int64_t intervals, uint64_t seed, double *up,
                         double *down) {
  lp_radio_network *network = lp_radio_drop(profile, users, seed);
  lp_radio_rates(network, LP_RADIO_UP, intervals, seed, up);
  lp_radio_rates(network, LP_RADIO_DOWN, intervals, seed, down);
  lp_radio_free(network);
}
