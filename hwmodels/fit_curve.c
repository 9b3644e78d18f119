/* One curve: knots added where the error is largest, GSL's interpolation between them, and heights by least squares. */
#include "hwmodels/hwmodels_internal.h"

#include <gsl/gsl_linalg.h>
#include <math.h>

/* Smaller errors are noise of repeated measurements; no knot is spent on them. */
static const double small_error = 0.002;

const char *const lp_curve_kind_names[LP_CURVE_KINDS] = {"linear", "steffen", "akima"};

static const gsl_interp_type *type_of(lp_curve_kind kind) {
  const gsl_interp_type *const types[] = {gsl_interp_linear, gsl_interp_steffen, gsl_interp_akima};
  return types[kind];
}

double lp_fit_curve_at(const lp_fit_curve *curve, double x) {
  int32_t last = curve->count - 1;
  if (x <= curve->x[0]) return curve->y[0];
  if (x >= curve->x[last]) return curve->y[last];
  gsl_interp linear = {
      .type = gsl_interp_linear, .xmin = curve->x[0], .xmax = curve->x[last], .size = (size_t)curve->count};
  return gsl_interp_eval(curve->spline ? curve->spline : &linear, curve->x, curve->y, x, NULL);
}

void lp_fit_curve_straighten(lp_fit_curve *curve) {
  if (curve->spline) gsl_interp_free(curve->spline);
  curve->spline = NULL;
  curve->kind = LP_CURVE_LINEAR;
}

void lp_fit_curve_bend(lp_fit_curve *curve, lp_curve_kind kind) {
  lp_fit_curve_straighten(curve);
  if (kind == LP_CURVE_LINEAR || (size_t)curve->count < gsl_interp_type_min_size(type_of(kind))) return;
  curve->spline = gsl_interp_alloc(type_of(kind), (size_t)curve->count);
  curve->kind = kind;
  (void)gsl_interp_init(curve->spline, curve->x, curve->y, (size_t)curve->count);
}

/* The points of a curve, of different x. */
typedef struct {
  double *x, *y, *noise;
  int32_t count;
} points;

/* Averages points of equal x. */
static void merge(const double *x, const double *y, const double *noise, int32_t count, points *out) {
  for (int32_t i = 0, same = 0; i < count; i += same) {
    double sum = 0, noises = 0;
    for (same = 0; i + same < count && x[i + same] == x[i]; same++) {
      sum += y[i + same];
      noises += noise[i + same];
    }
    out->x[out->count] = x[i];
    out->noise[out->count] = noises / same;
    out->y[out->count++] = sum / same;
  }
}

/* Makes the point of the largest error a knot until there are enough. `knot` holds ascending indices. */
static void place_knots(const points *p, int32_t most, lp_curve_kind kind, int32_t *knot, lp_fit_curve *out) {
  int32_t knots = 0;
  knot[knots++] = 0;
  if (p->count > 1 && most > 1) knot[knots++] = p->count - 1;
  for (;;) {
    for (int32_t i = 0; i < knots; i++)
      out->x[i] = p->x[knot[i]], out->y[i] = p->y[knot[i]];
    out->count = knots;
    lp_fit_curve_bend(out, kind);
    int32_t worst = -1;
    double worst_error = 0;
    for (int32_t i = 0; i < p->count && knots < most; i++) {
      double error = fabs(lp_fit_curve_at(out, p->x[i]) - p->y[i]);
      if (error > fmax(worst_error, fmax(small_error, p->noise[i]))) worst = i, worst_error = error;
    }
    if (worst < 0) return;
    int32_t place = knots++;
    for (; knot[place - 1] > worst; place--)
      knot[place] = knot[place - 1];
    knot[place] = worst;
  }
}

/* Adds to the heights what fits the residuals best in the hat functions of the knots: a tridiagonal system, which is
 * exact for lines. A knot keeps a little of its own height, so that one without points of its own is determined. */
static void settle_heights(const double *x, const double *residual, int32_t count, lp_fit_curve *curve) {
  const double own = 1e-6;
  size_t knots = (size_t)curve->count;
  gsl_vector *diagonal = gsl_vector_alloc(knots), *side = gsl_vector_calloc(knots - 1);
  gsl_vector *right = gsl_vector_calloc(knots), *change = gsl_vector_alloc(knots);
  gsl_vector_set_all(diagonal, own);
  size_t k = 0;
  for (int32_t i = 0; i < count; i++) {
    while (k + 2 < knots && curve->x[k + 1] <= x[i])
      k++;
    double b = (x[i] - curve->x[k]) / (curve->x[k + 1] - curve->x[k]), a = 1 - b;
    *gsl_vector_ptr(diagonal, k) += a * a;
    *gsl_vector_ptr(diagonal, k + 1) += b * b;
    *gsl_vector_ptr(side, k) += a * b;
    *gsl_vector_ptr(right, k) += a * residual[i];
    *gsl_vector_ptr(right, k + 1) += b * residual[i];
  }
  if (gsl_linalg_solve_symm_tridiag(diagonal, side, right, change) == 0)
    for (size_t i = 0; i < knots; i++)
      curve->y[i] += gsl_vector_get(change, i);
  gsl_vector_free(diagonal);
  gsl_vector_free(side);
  gsl_vector_free(right);
  gsl_vector_free(change);
}

/* Returns the sum of their squares. */
static double take_residuals(const lp_fit_curve *curve, const double *x, const double *y, int32_t count,
                             double *residual) {
  double sum = 0;
  for (int32_t i = 0; i < count; i++) {
    residual[i] = y[i] - lp_fit_curve_at(curve, x[i]);
    sum += residual[i] * residual[i];
  }
  return sum;
}

void lp_fit_curve_make(lp_arena *arena, const double *x, const double *y, const double *noise, int32_t count,
                       int32_t knots, lp_curve_kind kind, lp_fit_curve *out) {
  enum { SPLINE_ROUNDS = 4 }; /* a spline's heights move its pieces; after four rounds they stay */
  size_t bytes = sizeof(double) * (size_t)count;
  points p = {.x = lp_alloc(bytes), .y = lp_alloc(bytes), .noise = lp_alloc(bytes)};
  LP_OWNED(lp_free_at) int32_t *knot = lp_alloc(sizeof *knot * ((size_t)count + 1));
  merge(x, y, noise, count, &p);
  int32_t most = knots < p.count ? knots : p.count;
  out->x = LP_NEW_ARRAY(arena, double, most);
  out->y = LP_NEW_ARRAY(arena, double, most);
  place_knots(&p, most, kind, knot, out);
  double *before = lp_alloc(sizeof *before * (size_t)most), *residual = p.noise; /* as many; no longer needed */
  double least = take_residuals(out, x, y, count, residual);
  for (int round = 0; out->count > 1 && round < (out->spline ? SPLINE_ROUNDS : 1); round++) {
    memcpy(before, out->y, sizeof *before * (size_t)out->count);
    settle_heights(x, residual, count, out);
    lp_fit_curve_bend(out, kind);
    double sum = take_residuals(out, x, y, count, residual);
    if (sum < least) {
      least = sum;
      continue;
    }
    memcpy(out->y, before, sizeof *before * (size_t)out->count);
    lp_fit_curve_bend(out, kind);
    break;
  }
  free(before);
  free(p.x);
  free(p.y);
  free(p.noise);
}

void lp_fit_release(const struct lp_hw_fit *fit) {
  for (int32_t f = 0; fit && f < fit->count; f++)
    for (int32_t c = 0; c < fit->family[f].count; c++)
      lp_fit_curve_straighten(&fit->family[f].curve[c]);
}
