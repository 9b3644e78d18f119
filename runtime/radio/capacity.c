/* Computes noise, SINR and Shannon capacity. */
#include "runtime/radio/radio.h"

#include <math.h>

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
