/* What the search asks of the simulation of a pool (runtime/simulate/pool.h), for machines and users of plans. Times in
 * s. */
#pragma once

#include "fleet/fleet.h"

/* A class of the pool's requests. */
typedef struct {
  double share; /* of the pool's requests; all add up to 1 */
  const lp_load_user *user;
  const lp_fleet_class *limits; /* NULL: none */
} lp_trial_class;

typedef struct {
  const lp_fleet_length *length; /* [lengths], of every class */
  size_t lengths;
  lp_trial_class class[LP_FLEET_MOST_CLASSES];
  int32_t classes;
  const lp_load_law *law;
  int64_t machines, sessions; /* sessions: the most of each machine */
  double rate;                /* of the whole pool */
  lp_fleet_policy policy;
  int64_t requests; /* counted, at least; a quarter as many run before them, and more where answers take long */
  uint64_t seed;
} lp_trial;

/* Fills out[classes], and the share of the time in which machines run passes. False: a limit is broken; the simulation
 * then ends as soon as too many requests are beyond it for its percentile, and `out` may be of a part. The same trial
 * gives the same result on every machine. */
bool lp_trial_run(const lp_trial *trial, lp_fleet_times *out, double *busy);

lp_fleet_strain lp_fleet_strain_of(const lp_fleet_class *class, const lp_fleet_times *times);

/* As a machine of a pool, and as a user of it; they borrow. */
lp_sim_station lp_trial_station(const lp_load_law *law);
lp_sim_pool_user lp_trial_user(const lp_load_user *user);

/* The times of a class alone: on a machine without other requests, or, with `law` NULL, on the device alone; of every
 * `stride`-th length. */
void lp_trial_alone(const lp_fleet_length *length, size_t lengths, size_t stride, const lp_load_user *user,
                    const lp_load_law *law, lp_fleet_times *out);
/* The passes of the device in a mean request, in s. */
double lp_trial_device_s(const lp_fleet_length *length, size_t lengths, const lp_load_user *user);
int64_t lp_trial_most_rows(const lp_load_law *law); /* of a pass */
/* A pass over so many tokens and prompt rows. */
double lp_trial_pass_s(const lp_load_law *law, double tokens, double prompt_rows);
