/* runtime/radio: the rates of the wireless links between users and base stations.
 *
 * Path loss, line of sight, penetration and shadowing of 3GPP TR 38.901 (16.1), a layout of sites with sector antennas,
 * signal to interference and noise per resource block, Shannon capacity and the schedulers that share a cell. It knows
 * nothing of models, requests or queues.
 *
 * Distances are in m, frequencies in GHz, gains and losses linear unless a name ends in _db, powers in mW unless it
 * ends in _dbm. Functions of values are pure. Functions that draw random numbers take a seed and return the same
 * results for it on every machine (GSL's generators). */
#pragma once

#include "base/base.h"

/* ---- propagation (propagation.c): TR 38.901, 7.4 ----------------------------------------------------------------- */

typedef enum {
  LP_RADIO_UMA,      /* urban macro */
  LP_RADIO_UMI,      /* urban micro, street canyon */
  LP_RADIO_RMA,      /* rural macro */
  LP_RADIO_INH,      /* indoor office, mixed */
  LP_RADIO_INH_OPEN, /* indoor office, open: differs in the probability of line of sight */
  LP_RADIO_SCENARIOS
} lp_radio_scenario;

extern const char *const lp_radio_scenario_names[LP_RADIO_SCENARIOS]; /* "UMa" */
/* Ignores case. */
LP_MUST_USE lp_status lp_radio_scenario_parse(const char *text, lp_radio_scenario *out, lp_diag *diag, lp_loc loc);

/* One base station and one user. */
typedef struct {
  lp_radio_scenario scenario;
  bool los;
  double d2d;        /* along the ground */
  double h_bs, h_ut; /* antenna heights */
  double fc;         /* GHz */
  double h_e;        /* UMa: effective environment height; 0 is 1 m */
  double h_building; /* RMa: average height of buildings; 0 is 5 m */
  double w_street;   /* RMa: average width of streets; 0 is 20 m */
} lp_radio_path;

/* Path loss of Table 7.4.1-1, without shadowing. The table is valid from d2d = 10 m; the formulas are continued down to
 * 1 m. */
double lp_radio_path_loss_db(const lp_radio_path *path);
/* The distance along the ground at which the slope changes: d'BP of UMa and UMi, dBP of RMa; INFINITY indoors. */
double lp_radio_breakpoint(const lp_radio_path *path);
/* The usual antenna heights of a scenario: Table 7.2-1 to 7.2-3. */
void lp_radio_usual_heights(lp_radio_scenario scenario, double *h_bs, double *h_ut);
/* Returns the reason why the table does not cover the path ("the distance is outside of 10 m to 5 km"), or NULL. */
const char *lp_radio_path_outside(const lp_radio_path *path);
/* Standard deviation of shadowing: Table 7.4.1-1, and for users indoors ("O2I") Table 7.5-6. */
double lp_radio_shadow_db(const lp_radio_path *path, bool o2i);
/* Probability of line of sight, Table 7.4.2-1; `d2d` is the outdoor part of the distance. */
double lp_radio_los_probability(lp_radio_scenario scenario, double d2d, double h_ut);
/* The effective environment height of a link (note 1 of Table 7.4.1-1); `chance`, `choice` are uniform in [0, 1). */
double lp_radio_environment_height(lp_radio_scenario scenario, double d2d, double h_ut, double chance, double choice);
/* Penetration loss of Table 7.4.3-2: that of the wall, and 0.5 dB for each of `d_in` m inside. */
double lp_radio_o2i_db(double fc, bool high_loss, double d_in);
double lp_radio_o2i_deviation_db(bool high_loss);

/* ---- capacity (propagation.c) ------------------------------------------------------------------------------------ */

double lp_radio_db(double linear);
double lp_radio_linear(double db);

/* The loss of a real modem relative to Shannon's capacity. */
typedef struct {
  double gap_db; /* the loss of SINR; 0: none */
  double cap;    /* most bit/s/Hz (7.4063 for 256QAM at 948/1024); 0: none */
} lp_radio_coding;

/* The rate in bit/s over `hertz` at a linear SINR: hertz x min(log2(1 + sinr / gap), cap). */
double lp_radio_capacity(double hertz, double sinr, const lp_radio_coding *coding);
/* SINR of one block: p g / (interference + b N0 F), all received powers in mW. */
double lp_radio_sinr(double received, double interference, double noise);
/* Thermal noise of `hertz` in a receiver, mW. */
double lp_radio_noise(double hertz, double n0_dbm_hz, double figure_db);

/* ---- antennas and layouts (layout.c) ----------------------------------------------------------------------------- */

typedef struct {
  double gain_dbi;
  double azimuth_deg, elevation_deg; /* beam widths at -3 dB; azimuth 0: omnidirectional */
  double tilt_deg;                   /* below the horizon */
  double floor_db;                   /* the greatest attenuation: to the back, below, and in each plane */
} lp_radio_antenna;

/* Table 7.3-1: the gain towards `azimuth_deg` off the antenna's bearing and `down_deg` below the horizon. */
double lp_radio_antenna_db(const lp_radio_antenna *antenna, double azimuth_deg, double down_deg);

typedef struct {
  double x, y;
} lp_radio_point;

enum { LP_RADIO_MOST_SITES = 19, LP_RADIO_IMAGES = 7 };

/* Sites on a hexagonal grid around (0, 0), or two of them on a line. */
typedef struct {
  int32_t sites;
  double isd;                               /* between neighbours */
  lp_radio_point site[LP_RADIO_MOST_SITES]; /* the first is in the middle */
  int32_t images;                           /* 1, or 7 when the layout repeats */
  lp_radio_point image[LP_RADIO_IMAGES];    /* offsets; the first is 0 */
} lp_radio_layout;

/* `sites` is 1, 2, 7 or 19; only 7 and 19 (and 1) can wrap around. */
lp_radio_layout lp_radio_layout_make(int32_t sites, double isd, bool wrap);
/* The vector from the nearest image of a site to `at`. */
lp_radio_point lp_radio_from_site(const lp_radio_layout *layout, int32_t site, lp_radio_point at);
/* The bearing of a site's sector, degrees counter-clockwise from east: 30, 150, 270. */
double lp_radio_bearing_deg(int32_t sector);

/* ---- profiles (profile.c) ---------------------------------------------------------------------------------------- */

typedef enum { LP_RADIO_PF, LP_RADIO_RR, LP_RADIO_MAX, LP_RADIO_SCHEDULERS } lp_radio_scheduler;
extern const char *const lp_radio_scheduler_names[LP_RADIO_SCHEDULERS]; /* "pf", "rr", "max" */

/* A network. Its keys in YAML are the names of lp_radio_profile_keys. */
typedef struct {
  lp_arena *arena; /* owns the texts */
  const char *name, *title;
  int32_t scenario; /* lp_radio_scenario */
  int64_t sites, sectors;
  bool wrap;
  double isd, h_bs, h_ut, fc, h_building, w_street, min_distance;
  int64_t blocks;
  double block_hz;
  double power_dbm; /* power of a sector over all blocks */
  /* Power of a user over all blocks: min(ue_power, p0 + alpha x path loss) for each block, TS 38.213 without
   * corrections. */
  double ue_power_dbm, p0_dbm, alpha;
  double n0_dbm_hz, ue_noise_db, bs_noise_db; /* noise density, noise figures */
  lp_radio_antenna antenna;
  double indoor, high_loss;  /* the share of users indoors, and of those the share in buildings of high loss */
  bool shadowing;            /* standard deviation of penetration losses */
  double shadow_correlation; /* correlation of shadowing between sites; the sectors of a site have the same shadowing */
  bool rayleigh;             /* block fading, independent for each user, block and interval */
  double load;               /* the share of blocks that other cells use */
  lp_radio_coding coding;
  int32_t scheduler; /* lp_radio_scheduler */
  double beta;       /* proportional fair: weight of a new interval */
} lp_radio_profile;

/* `name` is uma-3gpp, umi-3gpp, two-cell or a path. Release with lp_radio_profile_free. */
LP_MUST_USE lp_status lp_radio_profile_load(const char *name, lp_radio_profile **out, lp_diag *diag);
LP_MUST_USE lp_status lp_radio_profile_parse(const char *file, const char *text, size_t size, lp_radio_profile **out,
                                             lp_diag *diag);
void lp_radio_profile_free(lp_radio_profile *profile); /* NULL is allowed */
size_t lp_radio_profile_names(const char *const **names);
void lp_radio_profile_print(const lp_radio_profile *profile, lp_buf *out); /* YAML that is read back */

/* ---- networks (network.c) ---------------------------------------------------------------------------------------- */

typedef enum { LP_RADIO_DOWN, LP_RADIO_UP } lp_radio_direction;

typedef struct {
  lp_radio_point at;
  bool indoor, high_loss;
  double d_in;    /* of the way, inside */
  int32_t sector; /* the serving sector: site x sectors of a site + sector */
} lp_radio_user;

/* Users dropped uniformly over the cells. */
typedef struct {
  const lp_radio_profile *profile; /* borrowed */
  lp_radio_layout layout;
  int32_t users, sectors;
  lp_radio_user *user;
  double *gain;   /* [user][sector], linear: antenna gain, path loss, shadowing and walls */
  int32_t *count; /* [sector] users served */
} lp_radio_network;

lp_radio_network *lp_radio_drop(const lp_radio_profile *profile, int32_t users, uint64_t seed);
void lp_radio_free(lp_radio_network *network); /* NULL is allowed */

/* Received power per block in mW of the user's own signal. */
double lp_radio_signal(const lp_radio_network *network, lp_radio_direction direction, int32_t user);
/* Mean SINR of a user when each other sector uses a block with the probability `load` of the profile. */
double lp_radio_mean_sinr(const lp_radio_network *network, lp_radio_direction direction, int32_t user);
/* Computes rate[users] in bit/s when all users always have data, with the profile's scheduler over `intervals`
 * intervals and a warm-up of a quarter as many. */
void lp_radio_rates(const lp_radio_network *network, lp_radio_direction direction, int64_t intervals, uint64_t seed,
                    double *rate);

/* Drops `users` users and computes up[users] and down[users] in bit/s; lp_radio_drop and lp_radio_rates in one call. */
void lp_radio_drop_rates(const lp_radio_profile *profile, int32_t users, int64_t intervals, uint64_t seed, double *up,
                         double *down);

/* ---- schedulers (scheduler.c) ------------------------------------------------------------------------------------ */

/* One cell. Its users always have data. */
typedef struct {
  int32_t users, blocks;
  double block_hz;
  const double *signal;       /* [users] mean received power of a block relative to noise */
  int32_t interferers;        /* 0: none */
  const double *interference; /* [users][interferers] the same for each interferer that uses the block */
  double load;                /* probability that an interferer uses a block, independent for each block and interval */
  bool rayleigh;
  lp_radio_coding coding;
  lp_radio_scheduler scheduler;
  double beta; /* proportional fair: Tbar <- (1 - beta) Tbar + beta x served rate */
  int64_t intervals, warm_up;
  uint64_t seed;
} lp_radio_cell;

/* Rates are means over the intervals after the warm-up. */
typedef struct {
  double *rate;  /* [users] bit/s */
  double *share; /* [users] of all blocks */
  /* mean fading gain |h|^2 of the blocks served: 1 if fading does not matter to the choice, at best H_K for K equal
   * users */
  double gain;
} lp_radio_schedule;

void lp_radio_schedule_run(const lp_radio_cell *cell, lp_radio_schedule *out);
