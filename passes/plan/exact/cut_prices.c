/* Searches for the best prices of the limits by subgradient steps on the bound of minimum cuts. */
#include "passes/plan/exact/cut_prices.h"
#include "base/side.h"

#include <math.h>

/* The most steps; the steps without a better bound after which they are halved. */
enum { MOST_STEPS = 30, PATIENCE = 4, OBJECTIVE = (int)LP_STAGE_COUNT + (int)LP_SIDE_COUNT, LIMITS };

/* Shares: a smaller rise of the bound is no progress; the length of a step, compared with the first, at which the
 * search ends. */
static const double progress = 1e-6, shortest = 1e-3;

typedef struct {
  lp_cut *cut;
  lp_cut_search *search;
  double *best_way;
  double ceiling; /* no placement has a greater objective */
} ascent;

/* An objective that no placement exceeds: every operator on both sides, every value across the link. */
static double find_ceiling(const lp_exact *x) {
  double sum = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_plan_weights *w = &x->weights;
    double link = x->rtt_half * (x->unit_count[stage] + 2);
    for (int32_t i = 0; i < x->problem[stage].value_count; i++)
      link += x->value[stage][i].bytes * fmax(x->ms_per_byte[0], x->ms_per_byte[1]);
    sum += w->link[stage] * (link + x->problem[stage].result_bytes * x->ms_per_byte[1]);
    for (int side = 0; side < LP_SIDE_COUNT; side++) {
      for (int32_t i = 0; i < x->unit_count[stage]; i++)
        sum += w->busy[stage][side] * x->unit[stage][i].ms[side];
      for (int32_t i = 0; i < x->holding_count; i++)
        sum += w->busy[stage][side] * x->holding[i].ms[stage][side];
    }
  }
  double moves = 2 * x->rtt_half;
  for (int32_t i = 0; i < x->holding_count; i++)
    moves += x->holding[i].move_bytes * fmax(x->ms_per_byte[0], x->ms_per_byte[1]);
  return sum + x->weights.move * moves;
}

/* The bound above which there is no wanted placement. */
static double enough(const ascent *a) {
  const double known = a->search->known;
  return isinf(known) ? a->ceiling * (1 + 1e-6) : known - LP_EXACT_ROUNDING * fabs(known);
}

static double limit_of(const lp_exact *x, int which) {
  if (which == OBJECTIVE) return x->limit_objective;
  return which < LP_STAGE_COUNT ? x->limit_ms[which] : x->limit_bytes[which - LP_STAGE_COUNT];
}

static double *dual_of(lp_exact_duals *duals, int which) {
  if (which == OBJECTIVE) return &duals->per_objective;
  return which < LP_STAGE_COUNT ? &duals->per_ms[which] : &duals->per_byte[which - LP_STAGE_COUNT];
}

/* Raises the prices of limits that the last cut exceeds and lowers the others, by the share of the step that would add
 * `missing` to the bound if that were a plane. A price counts in the objective as price times limit. */
static void move_prices(const lp_cut *cut, double missing, lp_exact_duals *duals) {
  lp_exact_duals excess = cut->excess;
  double slope[LIMITS], norm = 0;
  for (int i = 0; i < LIMITS; i++) {
    double limit = limit_of(cut->x, i);
    slope[i] = limit > 0 ? *dual_of(&excess, i) / limit : 0;
    if (slope[i] < 0 && !(*dual_of(duals, i) > 0)) slope[i] = 0;
    norm += slope[i] * slope[i];
  }
  for (int i = 0; i < LIMITS && norm > 0; i++)
    if (limit_of(cut->x, i) > 0)
      *dual_of(duals, i) = fmax(0, *dual_of(duals, i) + missing / norm * slope[i] / limit_of(cut->x, i));
}

/* Searches for better prices, keeps the best and returns their bound. Every cut on the way is a placement. */
static double ascend(ascent *a) {
  lp_cut_search *search = a->search;
  lp_exact_duals at = search->duals;
  double best = -INFINITY, length = 1;
  int stale = 0;
  for (int i = 0; i < MOST_STEPS; i++) {
    double bound = lp_cut_solve(a->cut, &at);
    if (isinf(bound)) return bound;
    stale = bound > best + progress * fabs(best) ? 0 : stale + 1;
    if (bound > best) {
      best = bound;
      search->duals = at;
      memcpy(a->best_way, a->cut->way, (size_t)a->cut->slot_count * sizeof *a->best_way);
    }
    search->known = fmin(search->known, search->see(search, a->cut->side, bound));
    double wanted = isinf(search->known) ? fmax(2 * fabs(bound), 1e-3 * a->ceiling) + bound : search->known;
    if (best >= enough(a)) break;
    if (stale >= PATIENCE) {
      length /= 2;
      stale = 0;
    }
    if (length < shortest || a->cut->flow.work >= search->effort) break;
    move_prices(a->cut, length * fmax(wanted - bound, 1e-9 * fabs(wanted)), &at);
    if (a->cut->x->rtt_half > 0) lp_cut_mix_way(a->cut, 1.0 / (i + 3));
  }
  memcpy(a->cut->way, a->best_way, (size_t)a->cut->slot_count * sizeof *a->best_way);
  return best;
}

void lp_cut_search_prices(lp_cut *cut, lp_cut_search *search) {
  ascent a = {.cut = cut, .search = search, .ceiling = find_ceiling(cut->x)};
  a.best_way = LP_NEW_ARRAY(cut->x->arena, double, cut->slot_count);
  search->bound = ascend(&a);
  search->complete = search->bound >= enough(&a);
  if (!isinf(search->bound)) (void)lp_cut_solve(cut, &search->duals);
}
