/* TR 38.901, 7.4: path loss, probability of line of sight, penetration into buildings. */
#include "runtime/radio/radio.h"

#include <math.h>
#include <strings.h>

static const double light = 3.0e8; /* m/s, the value of the report */

const char *const lp_radio_scenario_names[LP_RADIO_SCENARIOS] = {"UMa", "UMi", "RMa", "InH-office", "InH-open"};

lp_status lp_radio_scenario_parse(const char *text, lp_radio_scenario *out, lp_diag *diag, lp_loc loc) {
  for (int i = 0; i < LP_RADIO_SCENARIOS; i++) {
    if (strcasecmp(text, lp_radio_scenario_names[i]) != 0) continue;
    *out = (lp_radio_scenario)i;
    return LP_OK;
  }
  if (strcasecmp(text, "InH") == 0) {
    *out = LP_RADIO_INH;
    return LP_OK;
  }
  return lp_error_near(diag, loc, text, lp_radio_scenario_names, LP_RADIO_SCENARIOS,
                       "unknown scenario '%s', wanted one of UMa, UMi, RMa, InH-office, InH-open", text);
}

static double distance_3d(const lp_radio_path *path) {
  double d = hypot(path->d2d, path->h_bs - path->h_ut);
  return d > 1 ? d : 1;
}

double lp_radio_breakpoint(const lp_radio_path *path) {
  double waves = path->fc * 1e9 / light, h_e = path->h_e > 0 && path->scenario == LP_RADIO_UMA ? path->h_e : 1;
  switch (path->scenario) {
  case LP_RADIO_UMA:
  case LP_RADIO_UMI:
    return 4 * (path->h_bs - h_e) * (path->h_ut - h_e) * waves;
  case LP_RADIO_RMA:
    return 2 * M_PI * path->h_bs * path->h_ut * waves;
  case LP_RADIO_INH:
  case LP_RADIO_INH_OPEN:
  case LP_RADIO_SCENARIOS:
    break;
  }
  return INFINITY;
}

/* ---- line of sight ---- */

/* a + b lg d + 20 lg fc up to the breakpoint; after it 40 lg d less a constant with which the two lines meet there. */
static double urban_los(const lp_radio_path *path, double a, double b) {
  double d = distance_3d(path), bp = lp_radio_breakpoint(path), heights = path->h_bs - path->h_ut;
  double frequency = 20 * log10(path->fc);
  if (path->d2d <= bp) return a + b * log10(d) + frequency;
  return a + 40 * log10(d) + frequency - (40 - b) / 2 * log10(bp * bp + heights * heights);
}

static double rural_near(const lp_radio_path *path, double d) {
  double h = path->h_building > 0 ? path->h_building : 5, rough = pow(h, 1.72);
  return 20 * log10(40 * M_PI * d * path->fc / 3) + fmin(0.03 * rough, 10) * log10(d) - fmin(0.044 * rough, 14.77) +
         0.002 * log10(h) * d;
}

/* The table changes from PL1 to PL2 at d2d = dBP, where they differ by some 0.001 dB; they meet at d3d = dBP. */
static double rural_los(const lp_radio_path *path) {
  double d = distance_3d(path), bp = lp_radio_breakpoint(path);
  return d <= bp ? rural_near(path, d) : rural_near(path, bp) + 40 * log10(d / bp);
}

static double los_db(const lp_radio_path *path) {
  switch (path->scenario) {
  case LP_RADIO_UMA:
    return urban_los(path, 28, 22);
  case LP_RADIO_UMI:
    return urban_los(path, 32.4, 21);
  case LP_RADIO_RMA:
    return rural_los(path);
  case LP_RADIO_INH:
  case LP_RADIO_INH_OPEN:
  case LP_RADIO_SCENARIOS:
    break;
  }
  return 32.4 + 17.3 * log10(distance_3d(path)) + 20 * log10(path->fc);
}

/* ---- no line of sight: never less than with it ---- */

static double rural_nlos(const lp_radio_path *path, double lg_d) {
  double h = path->h_building > 0 ? path->h_building : 5, w = path->w_street > 0 ? path->w_street : 20;
  double ratio = h / path->h_bs, lg_bs = log10(path->h_bs), lg_ut = log10(11.75 * path->h_ut);
  return 161.04 - 7.1 * log10(w) + 7.5 * log10(h) - (24.37 - 3.7 * ratio * ratio) * lg_bs +
         (43.42 - 3.1 * lg_bs) * (lg_d - 3) + 20 * log10(path->fc) - (3.2 * lg_ut * lg_ut - 4.97);
}

static double nlos_db(const lp_radio_path *path) {
  double lg_d = log10(distance_3d(path)), lg_f = log10(path->fc);
  switch (path->scenario) {
  case LP_RADIO_UMA:
    return 13.54 + 39.08 * lg_d + 20 * lg_f - 0.6 * (path->h_ut - 1.5);
  case LP_RADIO_UMI:
    return 35.3 * lg_d + 22.4 + 21.3 * lg_f - 0.3 * (path->h_ut - 1.5);
  case LP_RADIO_RMA:
    return rural_nlos(path, lg_d);
  case LP_RADIO_INH:
  case LP_RADIO_INH_OPEN:
  case LP_RADIO_SCENARIOS:
    break;
  }
  return 38.3 * lg_d + 17.30 + 24.9 * lg_f;
}

double lp_radio_path_loss_db(const lp_radio_path *path) {
  double los = los_db(path);
  return path->los ? los : fmax(los, nlos_db(path));
}

void lp_radio_usual_heights(lp_radio_scenario scenario, double *h_bs, double *h_ut) {
  static const double bs[LP_RADIO_SCENARIOS] = {25, 10, 35, 3, 3}, ut[LP_RADIO_SCENARIOS] = {1.5, 1.5, 1.5, 1, 1};
  *h_bs = bs[scenario];
  *h_ut = ut[scenario];
}

const char *lp_radio_path_outside(const lp_radio_path *path) {
  double d3d = hypot(path->d2d, path->h_bs - path->h_ut);
  if (path->fc < 0.5 || path->fc > 100) return "the frequency is outside of 0.5 to 100 GHz";
  switch (path->scenario) {
  case LP_RADIO_UMA:
  case LP_RADIO_UMI:
    if (path->h_ut < 1.5 || path->h_ut > 22.5) return "the user's height is outside of 1.5 to 22.5 m";
    return path->d2d < 10 || path->d2d > 5000 ? "the distance is outside of 10 m to 5 km" : NULL;
  case LP_RADIO_RMA:
    if (path->h_ut < 1 || path->h_ut > 10) return "the user's height is outside of 1 to 10 m";
    if (path->h_bs < 10 || path->h_bs > 150) return "the base station's height is outside of 10 to 150 m";
    if (path->fc > 30) return "the frequency is outside of 0.5 to 30 GHz";
    if (path->los) return path->d2d < 10 || path->d2d > 10000 ? "the distance is outside of 10 m to 10 km" : NULL;
    return path->d2d < 10 || path->d2d > 5000 ? "the distance is outside of 10 m to 5 km" : NULL;
  case LP_RADIO_INH:
  case LP_RADIO_INH_OPEN:
  case LP_RADIO_SCENARIOS:
    break;
  }
  return d3d < 1 || d3d > 150 ? "the distance is outside of 1 to 150 m" : NULL;
}

/* ---- shadowing ---- */

double lp_radio_shadow_db(const lp_radio_path *path, bool o2i) {
  switch (path->scenario) {
  case LP_RADIO_UMA:
    return o2i ? 7 : path->los ? 4 : 6;
  case LP_RADIO_UMI:
    return o2i ? 7 : path->los ? 4 : 7.82;
  case LP_RADIO_RMA:
    if (o2i || !path->los) return 8;
    return distance_3d(path) <= lp_radio_breakpoint(path) ? 4 : 6;
  case LP_RADIO_INH:
  case LP_RADIO_INH_OPEN:
  case LP_RADIO_SCENARIOS:
    break;
  }
  return path->los ? 3 : 8.03;
}

/* ---- probability of line of sight ---- */

static double high_user(double h_ut) {
  return h_ut <= 13 ? 0 : pow((fmin(h_ut, 23) - 13) / 10, 1.5);
}

static double urban_los_probability(double d, double decay) {
  return d <= 18 ? 1 : 18 / d + exp(-d / decay) * (1 - 18 / d);
}

static double above_roofs(double d) {
  return d <= 18 ? 0 : 1.25 * pow(d / 100, 3) * exp(-d / 150);
}

double lp_radio_los_probability(lp_radio_scenario scenario, double d, double h_ut) {
  switch (scenario) {
  case LP_RADIO_UMA:
    return fmin(1, urban_los_probability(d, 63) * (1 + high_user(h_ut) * above_roofs(d)));
  case LP_RADIO_UMI:
    return urban_los_probability(d, 36);
  case LP_RADIO_RMA:
    return d <= 10 ? 1 : exp(-(d - 10) / 1000);
  case LP_RADIO_INH:
    return d <= 1.2 ? 1 : d < 6.5 ? exp(-(d - 1.2) / 4.7) : 0.32 * exp(-(d - 6.5) / 32.6);
  case LP_RADIO_INH_OPEN:
  case LP_RADIO_SCENARIOS:
    break;
  }
  return d <= 5 ? 1 : d <= 49 ? exp(-(d - 5) / 70.8) : 0.54 * exp(-(d - 49) / 211.7);
}

double lp_radio_environment_height(lp_radio_scenario scenario, double d2d, double h_ut, double chance, double choice) {
  if (scenario != LP_RADIO_UMA || h_ut < 13) return 1;
  if (chance < 1 / (1 + high_user(h_ut) * above_roofs(d2d))) return 1;
  double steps = floor((h_ut - 1.5 - 12) / 3); /* 12, 15, ... up to h_ut - 1.5 */
  return steps < 0 ? 1 : 12 + 3 * floor(choice * (steps + 1));
}

/* ---- into buildings ---- */

double lp_radio_o2i_db(double fc, bool high_loss, double d_in) {
  double glass = high_loss ? 23 + 0.3 * fc : 2 + 0.2 * fc, concrete = 5 + 4 * fc, windows = high_loss ? 0.7 : 0.3;
  double through = windows * pow(10, -glass / 10) + (1 - windows) * pow(10, -concrete / 10);
  return 5 - 10 * log10(through) + 0.5 * d_in;
}

double lp_radio_o2i_deviation_db(bool high_loss) {
  return high_loss ? 6.5 : 4.4;
}

/* ---- noise and capacity ------------------------------------------------------------------------------------------ */

double lp_radio_db(double linear) {
  return 10 * log10(linear);
}

double lp_radio_linear(double db) {
  return pow(10, db / 10);
}

double lp_radio_capacity(double hertz, double sinr, const lp_radio_coding *coding) {
  if (coding->gap_db > 0) sinr /= lp_radio_linear(coding->gap_db);
  double per_hertz = log2(1 + sinr);
  return hertz * (coding->cap > 0 ? fmin(per_hertz, coding->cap) : per_hertz);
}

double lp_radio_sinr(double received, double interference, double noise) {
  return received / (interference + noise);
}

double lp_radio_noise(double hertz, double n0_dbm_hz, double figure_db) {
  return lp_radio_linear(n0_dbm_hz + figure_db) * hertz;
}
