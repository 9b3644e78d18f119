/* Simulates the fleet of a report (`llmpart fleet -o json`): each of its pools by pool.h, at each value that a scenario
 * varies. The same report, scenario and seed give the same results on every machine. Times in s. */
#pragma once

#include "runtime/simulate/pool.h"

/* ---- the fleet and the scenario (fleet_read.c) ------------------------------------------------------------------- */

typedef struct {
  const char *machine;
  int64_t count, needed, spare;  /* machines; without spare ones */
  int64_t stay, spot;            /* of the first: in all hours; on the spot market */
  int64_t by_hour[LP_SIM_HOURS]; /* needed; of a fleet that has `by_hour` */
  double share;                  /* of the requests */
  double sessions, prompt_stretch, prompt_turn, usd_per_hour, spot_usd_per_hour;
  double usd_by_hour;           /* of a machine that comes and goes */
  lp_sim_pool_failures losses;  /* of spot machines */
  double power_w, idle_power_w; /* of a machine; NAN: unknown */
  lp_sim_times pass;
} lp_sim_fleet_pool;

typedef struct {
  const char *name;
  double share; /* of the requests; all add up to 1 */
  int32_t pool; /* -1: on the device alone */
  lp_sim_pool_user user;
  double limit_s[LP_FLEET_FIGURES][LP_FLEET_QUANTILES]; /* 0: none */
  const double *device_first_s;                         /* [user.knots] */
  double device_token_s, power_w;                       /* NAN: unknown */
} lp_sim_fleet_class;

/* The numbers that a scenario sets, and may vary; NAN: as the report. */
typedef struct {
  double rate;            /* requests per s; otherwise that of the busiest hour, or the mean one of a day */
  double replicas, spare; /* machines of each pool; machines more than the needed ones, which may be below 0 */
  double sessions, prompt_stretch, prompt_turn;
  lp_sim_pool_failures failures, losses; /* losses: of spot machines */
  double target, least, cold_s, keep_s;  /* lp_sim_pool_scaling */
} lp_sim_fleet_numbers;

typedef struct {
  lp_arena *arena;
  const char *path;             /* of the report */
  uint64_t digest;              /* of the files */
  int64_t seed, runs, requests; /* requests 0 until the report is read: 100,000, or those of a day */
  double rate, mean_rate;
  const lp_fleet_length *length; /* [lengths] */
  size_t lengths;
  lp_sim_fleet_pool pool[LP_FLEET_MOST_CLASSES];
  lp_sim_fleet_class class[LP_FLEET_MOST_CLASSES];
  int32_t pools, classes;
  bool by_hour;  /* machines come and go with the hours */
  double cold_s; /* before they serve then */
  lp_sim_fleet_numbers numbers;
  double *hour;       /* [LP_SIM_HOURS] with the mean 1; NULL: the rate does not change */
  const char *varied; /* a key; NULL: nothing */
  size_t varied_at;   /* offset of a double of lp_sim_fleet_numbers */
  double *value;      /* [values] */
  int32_t values;     /* 1 without `varied` */
} lp_sim_fleet;

/* Whether the file is a report of a fleet (.json), or a scenario with the key `fleet`. */
bool lp_sim_fleet_is(const char *path);
/* Reads a report, with the usual scenario, or a scenario. Release with lp_sim_fleet_free. */
LP_MUST_USE lp_status lp_sim_fleet_load(const char *path, lp_sim_fleet **out, lp_diag *diag);
void lp_sim_fleet_free(lp_sim_fleet *fleet); /* NULL is allowed */

/* ---- results (fleet.c) ------------------------------------------------------------------------------------------- */

typedef struct {
  int64_t requests;                                             /* counted, of all runs */
  lp_sim_estimate time_s[LP_FLEET_FIGURES][LP_FLEET_QUANTILES]; /* over runs */
  bool keeps;                                                   /* the means are within the limits */
  double busy_kwh;                                              /* a month of the devices; NAN: unknown */
} lp_sim_fleet_class_result;

typedef struct {
  double machines, busy;          /* rented ones in the mean; the share of their time in passes */
  double usd, busy_kwh, idle_kwh; /* a month of 730 hours; NAN: unknown */
  double failures;                /* a month of all machines */
} lp_sim_fleet_pool_result;

typedef struct {
  double value; /* of what is varied */
  lp_sim_fleet_class_result class[LP_FLEET_MOST_CLASSES];
  lp_sim_fleet_pool_result pool[LP_FLEET_MOST_CLASSES];
} lp_sim_fleet_point;

/* Fills point[fleet->values], in every process. Fails when a process has another version or other files. */
LP_MUST_USE lp_status lp_sim_fleet_run(const lp_sim_fleet *fleet, const lp_sim_options *options,
                                       lp_sim_fleet_point *point, lp_diag *diag);

/* Schema llmpart.simulate-fleet/1; a row for each class and value; a page that page/fleet.js draws from the JSON
 * (fleet_report.c). */
void lp_sim_fleet_print_json(const lp_sim_fleet *fleet, const lp_sim_fleet_point *point, lp_buf *out);
void lp_sim_fleet_print_csv(const lp_sim_fleet *fleet, const lp_sim_fleet_point *point, lp_buf *out);
void lp_sim_fleet_print_html(const lp_sim_fleet *fleet, const lp_sim_fleet_point *point, lp_buf *out);
