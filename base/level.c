/* A level method (Lemarechal, Nemirovskii and Nesterov, 1995) for the prices of a high bound. Each placement that was
 * the cheapest one at some prices bounds the proved bound from above at all prices, linearly. The next prices are the
 * nearest to the best ones at which all these bounds reach a level between the best bound and the least that is known
 * not to be exceeded. Subgradient steps heed only the last of these bounds, and end far below the best one where two
 * limits bind at once. */
#include "base/level.h"

#include <math.h>
#include <string.h>

/* ---- the nearest point ------------------------------------------------------------------------------------------- */

enum { ROWS = LP_LEVEL_PRICES + 1, COLUMNS = LP_LEVEL_CUTS + LP_LEVEL_PRICES };

/* Least squares with weights that are not negative: the sum of columns, each times its weight, is to be near
 * (0, .., 0, 1). */
typedef struct {
  int rows, columns, chosen_count, chosen[ROWS];
  double column[COLUMNS][ROWS], weight[COLUMNS], rest[ROWS]; /* rest: the wanted sum less the present one */
} least_squares;

static double product(const double *a, const double *b, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++)
    sum += a[i] * b[i];
  return sum;
}

static void fill_rest(least_squares *l) {
  for (int i = 0; i < l->rows; i++) {
    l->rest[i] = i == l->rows - 1;
    for (int k = 0; k < l->chosen_count; k++)
      l->rest[i] -= l->column[l->chosen[k]][i] * l->weight[l->chosen[k]];
  }
}

/* Solves for the weights of the chosen columns without regard to their signs, by Cholesky's method; false when the
 * columns depend on each other. */
static bool solve_chosen(const least_squares *l, double *out) {
  const int n = l->chosen_count;
  double factor[ROWS][ROWS];
  for (int i = 0; i < n; i++) {
    const double *own = l->column[l->chosen[i]];
    for (int k = 0; k <= i; k++) {
      const double sum = product(own, l->column[l->chosen[k]], l->rows) - product(factor[i], factor[k], k);
      if (k == i && !(sum > 1e-13 * product(own, own, l->rows))) return false;
      factor[i][k] = k == i ? sqrt(sum) : sum / factor[k][k];
    }
    out[i] = (own[l->rows - 1] - product(factor[i], out, i)) / factor[i][i];
  }
  for (int i = n; i-- > 0;) {
    for (int k = i + 1; k < n; k++)
      out[i] -= factor[k][i] * out[k];
    out[i] /= factor[i][i];
  }
  return true;
}

/* Moves the weights of the chosen columns to their solution, as far as none becomes negative; drops those that become
 * 0. False when all of the way was possible, or when the columns depend on each other. */
static bool move_weights(least_squares *l) {
  double wanted[ROWS], share = 1;
  int kept = 0, first = -1;
  if (!solve_chosen(l, wanted)) {
    l->weight[l->chosen[--l->chosen_count]] = 0;
    return false;
  }
  for (int k = 0; k < l->chosen_count; k++) {
    const double own = l->weight[l->chosen[k]];
    if (wanted[k] > 0 || own / (own - wanted[k]) >= share) continue;
    share = own / (own - wanted[k]);
    first = k;
  }
  for (int k = 0; k < l->chosen_count; k++) {
    double *own = &l->weight[l->chosen[k]];
    *own = k == first ? 0 : *own + share * (wanted[k] - *own);
    if (*own > 0) l->chosen[kept++] = l->chosen[k];
  }
  l->chosen_count = kept;
  return first >= 0 && kept > 0;
}

/* The method of Lawson and Hanson (1974). */
static void solve(least_squares *l) {
  bool useless[COLUMNS] = {false};
  fill_rest(l);
  for (int step = 0; step < 4 * COLUMNS && l->chosen_count < l->rows; step++) {
    double most = 1e-12;
    int best = -1;
    for (int i = 0; i < l->columns; i++) {
      const double gain = l->weight[i] > 0 || useless[i] ? 0 : product(l->column[i], l->rest, l->rows);
      if (gain <= most) continue;
      most = gain;
      best = i;
    }
    if (best < 0) return;
    l->chosen[l->chosen_count++] = best;
    l->weight[best] = 1e-300; /* is chosen */
    while (move_weights(l)) {
    }
    useless[best] = !(l->weight[best] > 0);
    fill_rest(l);
  }
}

/* Moves `x` to the nearest point at which all cuts reach `level` and no price is negative; false when there is none.
 * Lawson and Hanson's least distance programming: the distance is taken in units of the level's distance. */
static bool project(const lp_level_method *m, double level, double *x) {
  const double scale = fmax(fabs(m->most), fabs(m->best));
  least_squares l = {.rows = m->size + 1, .columns = m->cut_count + m->size};
  for (int i = 0; i < m->cut_count; i++) {
    const lp_level_cut *cut = &m->cut[i];
    memcpy(l.column[i], cut->slope, sizeof cut->slope);
    l.column[i][m->size] = (level - cut->objective - product(cut->slope, x, m->size)) / scale;
  }
  for (int k = 0; k < m->size; k++) {
    double *column = l.column[m->cut_count + k];
    column[k] = 1;
    column[m->size] = -x[k] / scale;
  }
  solve(&l);
  const double rest = l.rest[m->size];
  if (!(rest > 1e-9)) return false;
  for (int k = 0; k < m->size; k++)
    x[k] = fmax(0, x[k] - scale * l.rest[k] / rest);
  return true;
}

/* ---- the method -------------------------------------------------------------------------------------------------- */

void lp_level_begin(lp_level_method *m, int size, double enough) {
  *m = (lp_level_method){.size = size, .best = -INFINITY, .most = enough};
}

void lp_level_add(lp_level_method *m, const double *x, double bound, const double *slope) {
  lp_level_cut *cut = &m->cut[m->added++ % LP_LEVEL_CUTS];
  if (m->cut_count < LP_LEVEL_CUTS) m->cut_count++;
  *cut = (lp_level_cut){.objective = bound - product(slope, x, m->size)};
  memcpy(cut->slope, slope, (size_t)m->size * sizeof *slope);
  if (bound <= m->best) return;
  m->best = bound;
  memcpy(m->at, x, (size_t)m->size * sizeof *x);
}

bool lp_level_next(lp_level_method *m, double *x) {
  static const double share = 0.5, near = 2e-4;
  while (m->most - m->best > near * fabs(m->most)) {
    const double level = m->best + share * (m->most - m->best);
    memcpy(x, m->at, (size_t)m->size * sizeof *x);
    if (project(m, level, x)) return true;
    m->most = level;
  }
  return false;
}
