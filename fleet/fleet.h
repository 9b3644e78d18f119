/* fleet: from a load, classes of users and limits at percentiles to machines, plans and money.
 *
 * The candidates of a class are the device without the cloud, a cut, where the cloud runs the upper layers, and the
 * cloud for all layers, which streams tokens back. A pool is a number of machines of one kind that run one cut for some
 * classes. The fleet is the cheapest set of pools of which the simulation says that all limits hold.
 *
 * The space that is searched, of which `bound` is a lower bound: every class has one candidate; the cuts of a class on
 * a kind of machine are those with the most layers on the device that leave a part of each limit to the queue
 * (candidates.c); some of a pool's machines may be of the spot market (mix.h); a pool takes as many sessions at a time
 * as its memory holds and as let a pass over one token of each keep the limits on TPOT; with lp_fleet_day its machines
 * come and go with the hours, and in each hour carry its load and keep all limits as if it lasted. Not in it: classes
 * that are divided between pools, and pools that serve several cuts. */
#pragma once

#include "passes/decoder.h"
#include "passes/plan/load.h"
#include "runtime/simulate/pool.h"

/* ---- the specification (spec.c) ---------------------------------------------------------------------------------- */

typedef struct {
  const char *name, *device_name, *link_name;
  double share;           /* of the requests; all add up to 1 */
  int64_t private_layers; /* of a split, that stay on the device at least */
  lp_loc loc;
  double limit_s[LP_FLEET_FIGURES][LP_FLEET_QUANTILES]; /* 0: none */
  lp_machine *device;
  lp_link *link;
} lp_fleet_class;

/* Where machines are: a class has a link of its own to each region. */
enum { LP_FLEET_MOST_REGIONS = 16 };
typedef struct {
  const char *name; /* NULL: there are no regions, and links are those of the classes */
  double price;     /* of machines, times that elsewhere */
  const char *link_name[LP_FLEET_MOST_CLASSES];
  lp_link *link[LP_FLEET_MOST_CLASSES];
} lp_fleet_region;

/* A kind of machine that may be rented. */
typedef struct {
  const char *name;
  int32_t region;              /* 0 where there are no regions */
  double usd_per_hour;         /* for the whole month: on demand or reserved, the cheaper one */
  double usd_by_hour;          /* on demand; 0: it cannot come and go */
  int64_t most;                /* 0: any number */
  double spot_usd_per_hour;    /* 0: none can be had on the spot market */
  int64_t most_spot;           /* of a pool */
  lp_sim_pool_failures losses; /* of a spot machine */
  bool borrows;                /* the machine, which the same kind in the first region owns */
  lp_machine *machine;
} lp_fleet_kind;

/* Machines that come and go with the hours of a day. */
typedef struct {
  bool given;                /* else all machines stay, for the busiest hour */
  double hour[LP_SIM_HOURS]; /* of lp_fleet_spec.rate; the most is 1; all 0: the rate does not change */
  double cold_s, drain_s;    /* before a machine serves; until the last answers of one that goes are done */
  double start_hours; /* both: what is paid each time that a machine comes, beside the hours in which it serves */
} lp_fleet_day;
static inline int32_t lp_fleet_hours(const lp_fleet_day *day) {
  return day->given ? LP_SIM_HOURS : 1;
}

typedef struct {
  lp_arena *arena;
  const char *path, *model; /* model NULL: the decoder */
  lp_decoder_shape decoder;
  lp_loc model_loc, exits_loc; /* the values of `model` or `decoder`, and of `exits` */
  double rate;                 /* requests per s in the busiest hour */
  double mean_rate;
  lp_fleet_day day;
  int64_t users; /* 0: the load is a rate */
  LP_VEC(lp_fleet_length) lengths;
  LP_VEC(lp_fleet_class) classes;
  LP_VEC(lp_fleet_region) regions; /* empty: none */
  LP_VEC(lp_fleet_kind) kinds;
  const char *dtype_device, *dtype_cloud, *kv_dtype;
  struct {
    int64_t layer;        /* the early exit comes after this number of layers; 0: none */
    double asks;          /* the share of the tokens that it leaves to the cloud */
    double question_rows; /* rows of the device for each of these: 1 / asks, or the drafts and one */
    int64_t drafts;       /* tokens that the exit proposes before the cloud is asked; 0: it gives those it is sure of */
  } exits;
  int64_t spare;       /* machines of each pool that may fail */
  double availability; /* the share of the time in which as many are there as are needed, and spare */
  int64_t requests;    /* counted in each simulation */
  int64_t seed;
  double budget;       /* USD a month; INFINITY: any */
  bool wants_latency;  /* the tightest limits within the budget, instead of the least cost */
  bool wants_energy;   /* the least energy of machines and devices, all powers being known */
  double limits_scale; /* all limits of the classes are this many times those of the file */
} lp_fleet_spec;

/* Loads a link as lp_link_load does. */
typedef lp_status lp_fleet_link_loader(const char *text, lp_link **out, lp_diag *diag);
/* Paths in the file are relative to its folder. Errors name file, line and column. Release in every case. */
LP_MUST_USE lp_status lp_fleet_spec_read(const char *path, lp_fleet_link_loader *load_link, lp_fleet_spec *out,
                                         lp_diag *diag);
void lp_fleet_spec_free(lp_fleet_spec *spec);
/* The region of a kind; the link of a class to it, with its text. */
lp_fleet_region lp_fleet_region_of(const lp_fleet_spec *spec, int32_t region);
/* A request of the specification, for passes and prices: its types, and any of its machines. */
lp_compile_request lp_fleet_request(const lp_fleet_spec *spec);
lp_load_lengths lp_fleet_lengths(const lp_fleet_spec *spec);

/* ---- the fleet (find.c) ------------------------------------------------------------------------------------------ */

/* Where a class runs. */
typedef struct {
  int32_t pool; /* index of lp_fleet_plan.pool; -1: on the device alone */
  lp_fleet_times times;
} lp_fleet_place;

/* How passes share their rows, as lp_engine_options say. The larger the stretch, the shorter is TTFT, and the longer
 * TPOT. Long turns run prompts in their order: where many wait, most of them wait less, and short prompts after long
 * ones wait more. A turn of the longest prompt that is to be on time runs all of these in their order, and lets others
 * run after each such part of the longest ones, which the percentile of the limit lets be late. Workers, which serve
 * the devices of a split, have turns of their own. */
typedef struct {
  double stretch; /* prompt_stretch */
  int64_t turn;   /* prompt_turn */
} lp_fleet_policy;
/* That are tried: the first ones for splits, the last ones where a limit tells prompts that are to be on time. */
enum { LP_FLEET_POLICIES = 12, LP_FLEET_SPLIT_POLICIES = 4 };
/* `turn`: rows of the longest prompt that is to be on time. */
lp_fleet_policy lp_fleet_policy_of(const lp_load_law *law, int64_t turn, int32_t index);

typedef struct {
  int32_t kind, option;            /* option: of the candidates */
  int64_t cut;                     /* of lp_load_cuts: 0: all in the cloud */
  bool exits;                      /* its devices have the early exit of the specification */
  int64_t needed, count, sessions; /* in the busiest hour; count: with spare ones */
  int64_t stay, spot; /* of the count: those of other markets that stay all month; those on the spot market */
  int64_t by_hour[LP_SIM_HOURS]; /* needed: [lp_fleet_hours] */
  lp_fleet_policy policy;        /* the one that kept the limits */
  double rented;                 /* machines in the mean, also while they start and drain */
  double busy;                   /* the share of the time in which the needed machines run passes, all hours together */
  double peak_busy;              /* the same, in the busiest hour */
  double utilisation;            /* the share of it that the requests would take in passes over all sessions */
  double usd_per_month, weight_bytes, session_bytes;
  unsigned classes;  /* bit 1 << class */
  const char *binds; /* "one fewer breaks ttft p95 of phones" */
} lp_fleet_pool;

enum { LP_FLEET_HOURS = 730 }; /* of a month */

/* The fleet with one machine more or fewer in a pool, by a simulation of that pool. */
typedef struct {
  int32_t pool;            /* -1: there is none */
  int64_t count, machines; /* of the pool; of the fleet */
  double usd_per_month;
  int32_t class; /* which comes nearest to a limit of its own, or is furthest beyond: by this figure */
  lp_fleet_figure figure;
  int32_t quantile;
  double value_s;
} lp_fleet_neighbour;

enum { LP_FLEET_FRONT = 6 };

typedef struct {
  lp_arena *arena;
  lp_fleet_place place[LP_FLEET_MOST_CLASSES];
  lp_fleet_pool pool[LP_FLEET_MOST_CLASSES];
  int32_t pools;
  int64_t cuts; /* lp_load_cuts */
  double usd_per_month;
  double bound;     /* USD a month; no fleet of the space costs less */
  double kwh_bound; /* kWh a month of machines and devices; no fleet of the space takes less; NAN: not sought */
  bool complete;    /* the search ended; else another fleet of the space may be cheaper */
  int64_t trials, refuted;
  lp_fleet_neighbour cheaper, faster;
  lp_fleet_neighbour front[LP_FLEET_FRONT]; /* each with a machine more than the one before, where limits are nearest */
  int32_t fronts;
  /* USD a month of one more request/s in the busiest hour: of the fleet in the mean, and at least, by the prices of the
   * bound, in these pools when the machines that it adds are as full as any can be. */
  double mean_usd_per_rate, least_usd_per_rate;
  struct lp_fleet_candidates *all; /* in the arena (candidates.h) */
} lp_fleet_plan;

/* `module` is at least lowered. LP_INFEASIBLE, with a diagnostic that names the class and what binds, when a class has
 * no candidate, or the fleet exceeds the budget. With spec->wants_latency it scales the limits of all classes down, to
 * a hundredth, as far as the budget allows. Release in every case. */
LP_MUST_USE lp_status lp_fleet_find(lp_fleet_spec *spec, lp_module *module, lp_fleet_plan *out, lp_diag *diag);
void lp_fleet_free(lp_fleet_plan *plan);
/* The times at the servers of a pool that runs all layers, without its users' links, by the simulation that accepted
 * it, and the requests per s of each without the spare ones. */
void lp_fleet_serve_times(const lp_fleet_spec *spec, const lp_fleet_plan *plan, const lp_fleet_pool *pool,
                          lp_fleet_times *out, double *rate);

/* Formats: text, json (schema llmpart.fleet/1, with the certificate that proof/ checks), csv, and html, a page that
 * page/page.js draws from the JSON (report.c). */
void lp_fleet_write(const lp_fleet_spec *spec, const lp_fleet_plan *plan, const char *format, lp_buf *out);

/* ---- the deployment (deploy.c) ----------------------------------------------------------------------------------- */

/* Refuses a folder that is not empty. */
LP_MUST_USE lp_status lp_fleet_check_folder(const char *path, lp_diag *diag);
/* Writes the folder `path`, whole or not at all: fleet.json, the report; a script that compiles the bundles; a
 * server's configuration for each pool that runs all layers; systemd/ with a unit and kubernetes/ with manifests for
 * each pool. Equal fleets give equal bytes. LP_INFEASIBLE: a pool of a split has classes
 * with different devices, for which a worker, which serves one bundle, cannot share passes. */
LP_MUST_USE lp_status lp_fleet_deploy(const lp_fleet_spec *spec, const lp_fleet_plan *plan, const char *path,
                                      lp_diag *diag);
