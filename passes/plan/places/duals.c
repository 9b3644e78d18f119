/* The best prices of the limits, by Shor's r-algorithm: subgradient steps in a space that is dilated along the
 * difference of two slopes after each step, which follows the ridges of a bound that is the minimum of many planes. N.
 * Z. Shor, "Minimization Methods for Non-Differentiable Functions", Springer, 1985, chapter 3. Places of one kind have
 * one price, which loses nothing: the bound is concave and does not change when two of them change places. */
#include "passes/plan/places/model.h"

#include <math.h>

/* The factor by which space shrinks along the difference of two slopes; those of the step's length after a step that
 * went too far, and after several that did not. */
static const double dilation = 0.5, shorter = 0.9, longer = 1.2;

/* Bounds above this multiple of the objective's scale need not be better. */
static const double beyond = 1e6;

/* Steps below this share of the prices do not matter. */
static const double least_step = 1e-7;

/* The limits, scaled so that 1 is the limit: both stages' times, then the memory of each kind. */
enum { ROWS = LP_STAGE_COUNT + LP_PLACES_MAX };

typedef struct {
  lp_places_paths *paths;
  int rows;
  double limit[ROWS]; /* 0: none */
  /* The price of each whole limit is the amount of its value, so that prices are never negative. */
  double value[ROWS];
  double space[ROWS][ROWS], slope[ROWS];
  double best, best_price[ROWS];
  double known; /* the least objective known; a bound there suffices */
  lp_places_see *see;
  void *user;
  int rounds; /* left */
} steepest;

static void set_limits(steepest *s) {
  const lp_places_model *m = s->paths->model;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    s->limit[stage] = m->limit_ms[stage];
  for (int p = 0; p < m->count; p++) {
    const int row = LP_STAGE_COUNT + m->problem->places->place[p].kind;
    if (m->limit_bytes[p] > 0)
      s->limit[row] += fmax(m->limit_bytes[p] - (s->paths->divides ? 0 : m->least_activation[p]), 1);
    if (row >= s->rows) s->rows = row + 1;
  }
}

static void set_duals(const steepest *s, const double price[ROWS]) {
  const lp_places_model *m = s->paths->model;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    s->paths->duals.per_ms[stage] = s->limit[stage] > 0 ? price[stage] / s->limit[stage] : 0;
  for (int p = 0; p < m->count; p++) {
    const int row = LP_STAGE_COUNT + m->problem->places->place[p].kind;
    s->paths->duals.per_byte[p] = m->limit_bytes[p] > 0 ? price[row] / s->limit[row] : 0;
  }
}

static void get_values(steepest *s) {
  const lp_places_model *m = s->paths->model;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    s->value[stage] = s->paths->duals.per_ms[stage] * s->limit[stage];
  for (int p = 0; p < m->count; p++) {
    const int row = LP_STAGE_COUNT + m->problem->places->place[p].kind;
    s->value[row] = s->paths->duals.per_byte[p] * s->limit[row];
  }
}

/* The share by which the shortest path exceeds each limit is the slope of the bound. */
static void set_slope(steepest *s) {
  const lp_places_model *m = s->paths->model;
  double used[ROWS] = {0};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    used[stage] = s->paths->ms[stage];
  for (int p = 0; p < m->count; p++)
    used[LP_STAGE_COUNT + m->problem->places->place[p].kind] += s->paths->bytes[p];
  for (int row = 0; row < s->rows; row++)
    s->slope[row] = s->limit[row] > 0 ? used[row] / s->limit[row] - 1 : 0;
}

/* Tells whether no part of the path is divided. */
static bool is_whole(const lp_places_paths *paths) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < paths->model->part_count; i++)
      if (paths->path[stage][i] == paths->model->count) return false;
  return true;
}

/* Of the feasibility of limits only the directions of prices matter, which have the sum 1. Returns the sum before. */
static double normalise(const steepest *s, double price[ROWS]) {
  double sum = 0;
  for (int row = 0; row < s->rows; row++)
    sum += price[row];
  for (int row = 0; row < s->rows; row++)
    price[row] = sum > 0 ? price[row] / sum : s->limit[row] > 0;
  return sum > 0 ? sum : 1;
}

/* Finds the bound and its slope at the values; false: nothing better is to be found. */
static bool look(steepest *s) {
  double price[ROWS] = {0}, sum = 1, along = 0;
  for (int row = 0; row < s->rows; row++)
    price[row] = s->limit[row] > 0 ? fabs(s->value[row]) : 0;
  const bool has_objective = s->paths->objective > 0;
  if (!has_objective) sum = normalise(s, price);
  set_duals(s, price);
  lp_places_paths_solve(s->paths);
  s->rounds--;
  const double bound = lp_places_paths_bound(s->paths);
  if (s->see && is_whole(s->paths)) s->known = fmin(s->known, s->see(s->user, s->paths->path));
  if (bound > s->best) {
    s->best = bound;
    memcpy(s->best_price, price, sizeof price);
  }
  set_slope(s);
  for (int row = 0; row < s->rows && !has_objective; row++)
    along += s->slope[row] * price[row];
  for (int row = 0; row < s->rows; row++)
    s->slope[row] = (s->slope[row] - along) / sum * (s->value[row] < 0 ? -1 : 1);
  /* Without a plan the bound grows for ever where no plan meets the limits. */
  return s->rounds > 0 && !isinf(bound) && bound < s->known &&
         !(has_objective && bound > beyond * s->paths->model->scale);
}

/* Fills `out` with the slope in the dilated space, of length 1; false: it is 0. */
static bool get_direction(const steepest *s, const double slope[ROWS], double out[ROWS]) {
  double square = 0;
  for (int i = 0; i < s->rows; i++) {
    out[i] = 0;
    for (int k = 0; k < s->rows; k++)
      out[i] += s->space[k][i] * slope[k];
    square += out[i] * out[i];
  }
  for (int i = 0; i < s->rows && square > 0; i++)
    out[i] /= sqrt(square);
  return square > 0;
}

static void dilate(steepest *s, const double before[ROWS]) {
  double change[ROWS], direction[ROWS];
  for (int row = 0; row < s->rows; row++)
    change[row] = s->slope[row] - before[row];
  if (!get_direction(s, change, direction)) return;
  for (int i = 0; i < s->rows; i++) {
    double along = 0;
    for (int k = 0; k < s->rows; k++)
      along += s->space[i][k] * direction[k];
    for (int k = 0; k < s->rows; k++)
      s->space[i][k] += (dilation - 1) * along * direction[k];
  }
}

/* Goes along the slope while the bound rises. Returns false when the search is over. */
static bool ascend(steepest *s, double *length) {
  double step[ROWS] = {0}, direction[ROWS], before[ROWS], size = 0, rising;
  int steps = 0;
  if (!get_direction(s, s->slope, direction)) return false;
  memcpy(before, s->slope, sizeof before);
  for (int i = 0; i < s->rows; i++)
    for (int k = 0; k < s->rows; k++)
      step[i] += s->space[i][k] * direction[k];
  do {
    rising = size = 0;
    for (int row = 0; row < s->rows; row++) {
      s->value[row] += *length * step[row];
      size = fmax(size, fabs(*length * step[row]));
    }
    if (!look(s)) return false;
    for (int row = 0; row < s->rows; row++)
      rising += s->slope[row] * step[row];
    if (++steps > 2) *length *= longer;
  } while (rising > 0);
  if (steps == 1) *length *= shorter;
  dilate(s, before);
  double largest = 0;
  for (int row = 0; row < s->rows; row++)
    largest = fmax(largest, fabs(s->value[row]));
  return size > least_step * largest;
}

double lp_places_improve(lp_places_paths *paths, int rounds, double known, lp_places_see *see, void *user) {
  steepest s = {.paths = paths, .best = -INFINITY, .known = known, .see = see, .user = user, .rounds = rounds};
  set_limits(&s);
  get_values(&s);
  double length = 0.1;
  if (paths->objective > 0) length = isinf(known) ? paths->model->scale : known / 4;
  for (int row = 0; row < s.rows; row++)
    s.space[row][row] = 1;
  if (look(&s) && length > 0)
    while (ascend(&s, &length))
      continue;
  set_duals(&s, s.best_price);
  lp_places_paths_solve(paths);
  return lp_places_paths_bound(paths);
}
