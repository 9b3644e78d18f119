/* An estimate of the best plan after a label: the parts that are left fill the places like a liquid, those with the
 * least price first, as far as their memory goes. It orders labels where the bound cannot: at the best prices of the
 * limits all places are about as dear. It proves nothing. */
#include "passes/plan/places/model.h"

#include <math.h>

/* The amount by which an estimate that misses a limit is worse than any that does not. */
static const double miss = 1e6;

lp_places_rest *lp_places_rest_create(const lp_places_paths *paths) {
  const lp_places_model *m = paths->model;
  lp_places_rest *rest = LP_NEW_ARRAY(m->arena, lp_places_rest, m->part_count + 1);
  for (int32_t i = m->part_count - 1; i > 0; i--) {
    const lp_places_part *part = &m->part[i];
    rest[i - 1] = rest[i];
    for (int p = 0; p < m->count; p++) {
      for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
        const double price = paths->objective * m->busy[stage][p] + paths->duals.per_ms[stage];
        rest[i - 1].price[p] += price * part->ms[stage][p];
        rest[i - 1].ms[stage][p] += part->ms[stage][p];
        rest[i - 1].bytes[p] += part->weight_bytes[stage][p];
      }
      rest[i - 1].bytes[p] += part->weight_bytes[LP_PLACES_BOTH][p] + part->cache_bytes[p];
    }
  }
  return rest;
}

/* The amount of `total` if the rest fills the places with the least amounts first; share[place] is the share of the
 * rest that it has room for. What finds no room counts `miss` times. */
static double fill(int count, const double total[LP_PLACES_MAX], const double share[LP_PLACES_MAX], double scale) {
  double left = 1, sum = 0;
  bool full[LP_PLACES_MAX] = {false};
  for (int round = 0; round < count && left > 0; round++) {
    int best = -1;
    for (int p = 0; p < count; p++)
      if (!full[p] && (best < 0 || total[p] < total[best])) best = p;
    const double own = fmin(left, share[best]);
    full[best] = true;
    sum += own * total[best];
    left -= own;
  }
  return left > 1e-9 ? sum + miss * scale * left : sum;
}

double lp_places_estimate(const lp_places_paths *paths, const lp_places_rest *rest, const lp_places_sum *sum,
                          unsigned closed) {
  const lp_places_model *m = paths->model;
  double share[LP_PLACES_MAX], estimate = paths->objective * sum->objective, scale = m->scale;
  for (int p = 0; p < m->count; p++) {
    const double activation = fmax(sum->activation[p], m->least_activation[p]);
    const double room = fmax(0, m->limit_bytes[p] - sum->bytes[p] - activation);
    share[p] = closed >> p & 1 ? 0 : m->limit_bytes[p] > 0 && room < rest->bytes[p] ? room / rest->bytes[p] : 1;
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    estimate += paths->duals.per_ms[stage] * sum->ms[stage];
    if (!(m->limit_ms[stage] > 0)) continue;
    const double ms = sum->ms[stage] + fill(m->count, rest->ms[stage], share, m->limit_ms[stage]);
    if (ms > m->limit_ms[stage]) estimate += miss * scale * (ms / m->limit_ms[stage] - 1);
  }
  return estimate + fill(m->count, rest->price, share, scale);
}
