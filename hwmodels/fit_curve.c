/* One curve: knots added where the error is largest, heights by least squares, and GSL's interpolation between them. */
#include "hwmodels/hwmodels_internal.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>

/* Smaller errors are noise of repeated measurements; no knot is spent on them. */
static const double small_error = 0.002;

const char *const lp_curve_kind_names[LP_CURVE_KINDS] = {"linear", "steffen", "akima", "cubic"};

static const gsl_interp_type *type_of(lp_curve_kind kind) {
  const gsl_interp_type *const types[] = {gsl_interp_linear, gsl_interp_steffen, gsl_interp_akima, gsl_interp_cspline};
  return types[kind];
}

/* `spline` holds the coefficients for x and y; NULL: linear, which has none. */
static double between(const gsl_interp *spline, const double *x, const double *y, int32_t count, double at) {
  if (at <= x[0]) return y[0];
  if (at >= x[count - 1]) return y[count - 1];
  gsl_interp linear = {.type = gsl_interp_linear, .xmin = x[0], .xmax = x[count - 1], .size = (size_t)count};
  return gsl_interp_eval(spline ? spline : &linear, x, y, at, NULL);
}

double lp_fit_curve_at(const lp_fit_curve *curve, double x) {
  return between(curve->spline, curve->x, curve->y, curve->count, x);
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
static int32_t place_knots(const points *p, int32_t most, int32_t *knot, double *kx, double *ky) {
  int32_t knots = 0;
  knot[knots++] = 0;
  if (p->count > 1 && most > 1) knot[knots++] = p->count - 1;
  while (knots < most) {
    for (int32_t i = 0; i < knots; i++)
      kx[i] = p->x[knot[i]], ky[i] = p->y[knot[i]];
    int32_t worst = -1;
    double worst_error = 0;
    for (int32_t i = 0; i < p->count; i++) {
      double error = fabs(between(NULL, kx, ky, knots, p->x[i]) - p->y[i]);
      if (error > fmax(worst_error, fmax(small_error, p->noise[i]))) worst = i, worst_error = error;
    }
    if (worst < 0) break;
    int32_t place = knots++;
    for (; knot[place - 1] > worst; place--)
      knot[place] = knot[place - 1];
    knot[place] = worst;
  }
  for (int32_t i = 0; i < knots; i++)
    kx[i] = p->x[knot[i]], ky[i] = p->y[knot[i]];
  return knots;
}

/* Least squares in the hat functions of the knots: a tridiagonal system. A knot keeps a little of its own height, so
 * that one without points of its own is determined. */
static void settle_heights(const double *x, const double *y, int32_t count, const double *kx, double *ky,
                           int32_t knots) {
  const double own = 1e-6;
  gsl_vector *diagonal = gsl_vector_alloc((size_t)knots), *side = gsl_vector_calloc((size_t)knots - 1);
  gsl_vector *right = gsl_vector_alloc((size_t)knots), *height = gsl_vector_alloc((size_t)knots);
  for (int32_t i = 0; i < knots; i++) {
    gsl_vector_set(diagonal, (size_t)i, own);
    gsl_vector_set(right, (size_t)i, own * ky[i]);
  }
  for (int32_t i = 0, k = 0; i < count; i++) {
    while (k + 2 < knots && kx[k + 1] <= x[i])
      k++;
    double b = (x[i] - kx[k]) / (kx[k + 1] - kx[k]), a = 1 - b;
    *gsl_vector_ptr(diagonal, (size_t)k) += a * a;
    *gsl_vector_ptr(diagonal, (size_t)k + 1) += b * b;
    *gsl_vector_ptr(side, (size_t)k) += a * b;
    *gsl_vector_ptr(right, (size_t)k) += a * y[i];
    *gsl_vector_ptr(right, (size_t)k + 1) += b * y[i];
  }
  if (gsl_linalg_solve_symm_tridiag(diagonal, side, right, height) == 0)
    for (int32_t i = 0; i < knots; i++)
      ky[i] = gsl_vector_get(height, (size_t)i);
  gsl_vector_free(diagonal);
  gsl_vector_free(side);
  gsl_vector_free(right);
  gsl_vector_free(height);
}

void lp_fit_curve_make(lp_arena *arena, const double *x, const double *y, const double *noise, int32_t count,
                       int32_t knots, lp_fit_curve *out) {
  size_t bytes = sizeof(double) * (size_t)count;
  points p = {.x = lp_alloc(bytes), .y = lp_alloc(bytes), .noise = lp_alloc(bytes)};
  int32_t *knot = lp_alloc(sizeof *knot * ((size_t)count + 1));
  merge(x, y, noise, count, &p);
  int32_t most = knots < p.count ? knots : p.count;
  out->x = LP_NEW_ARRAY(arena, double, most);
  out->y = LP_NEW_ARRAY(arena, double, most);
  out->count = place_knots(&p, most, knot, out->x, out->y);
  if (out->count > 1) settle_heights(x, y, count, out->x, out->y, out->count);
  free(p.x);
  free(p.y);
  free(p.noise);
  free(knot);
}

void lp_fit_release(const struct lp_hw_fit *fit) {
  for (int32_t f = 0; fit && f < fit->count; f++)
    for (int32_t c = 0; c < fit->family[f].count; c++)
      lp_fit_curve_straighten(&fit->family[f].curve[c]);
}
