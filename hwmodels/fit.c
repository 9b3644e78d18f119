/* Fits families of curves to samples. Impossible samples are dropped, tiles and the kind of curve are found by
 * cross-validation, and the residuals of left-out samples give the width of the intervals. */
#include "base/number.h"
#include "base/path.h"
#include "hwmodels/hwmodels_internal.h"

#include <math.h>

/* ---- impossible samples ---- */

bool lp_hw_is_possible(const lp_machine *machine, const lp_hw_sample *sample) {
  const double unknown_cache = 64 << 20;
  const double *figure = machine->figure;
  double cache = figure[LP_HW_CACHE] > 0 ? figure[LP_HW_CACHE] : unknown_cache;
  double compute_us = sample->facts.flops / lp_hw_peak(machine, sample->facts.dtype) * 1e6;
  double memory_us = (sample->facts.bytes - cache) / figure[LP_HW_BANDWIDTH] * 1e6;
  return sample->time_us >= compute_us && sample->time_us >= memory_us;
}

/* The quantile `share` of the values; 0 when there are none. Sorts them. */
static double quantile(double *values, size_t count, double share) {
  if (count == 0) return 0;
  qsort(values, count, sizeof *values, lp_compare_doubles);
  size_t index = (size_t)ceil(share * (double)count);
  return values[index == 0 ? 0 : index > count ? count - 1 : index - 1];
}

/* The 95th percentile of the rates plus a tenth, so that a wrong row or two does not set it. */
static double reached(const lp_hw_samples *samples, bool of_flops) {
  LP_OWNED(lp_free_at) double *rate = lp_alloc((samples->count + 1) * sizeof *rate);
  for (size_t i = 0; i < samples->count; i++) {
    const lp_op_facts *facts = &samples->data[i].facts;
    rate[i] = (of_flops ? facts->flops : facts->bytes) / samples->data[i].time_us * 1e6;
  }
  double result = 1.1 * quantile(rate, samples->count, 0.95);
  return fmax(result, 1);
}

lp_machine *lp_hw_from_samples(const char *name, const char *title, const lp_hw_samples *samples) {
  static const char *const best = "the 95th percentile of the table's own rates, and a tenth";
  lp_machine *machine = lp_alloc(sizeof *machine);
  machine->arena = lp_arena_create();
  machine->name = lp_arena_strdup(machine->arena, name);
  machine->title = lp_arena_strdup(machine->arena, title);
  machine->kind = LP_MACHINE_GPU;
  machine->predictor = &lp_hw_roofline;
  double flops = reached(samples, true);
  const struct {
    lp_hw_figure figure;
    double value;
    const char *source;
  } rows[] = {{LP_HW_PEAK_F32, flops, best},
              {LP_HW_PEAK_F16, flops, best},
              {LP_HW_BANDWIDTH, reached(samples, false), best},
              {LP_HW_MEMORY, 16.0 * (1 << 30), "unknown: assumed"}};
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    machine->figure[rows[i].figure] = rows[i].value;
    machine->source[rows[i].figure] = rows[i].source;
  }
  machine->figure[LP_HW_COMPUTE_UTILISATION] = machine->figure[LP_HW_MEMORY_UTILISATION] = 1;
  return machine;
}

/* ---- one family ---- */

typedef struct {
  int64_t key[LP_FIT_KEYS];
  double size, x, y; /* the size; log of its whole quanta; log of the time divided by the base law */
  int32_t turn;      /* the fold that leaves it out; -1: none does, as at the ends of a curve */
  const lp_hw_sample *sample;
} point;

typedef struct {
  lp_machine *machine;
  const lp_hw_fit_options *options;
  double launch_guess;
  lp_fit_family *family;
  lp_fit_samples samples;
  point *points;    /* [samples.count] by key, then size */
  double *residual; /* [samples.count] of cross-validation */
} fitter;

static int by_key_and_size(const void *a, const void *b) {
  const point *x = a, *y = b;
  for (int i = 0; i < LP_FIT_KEYS; i++)
    if (x->key[i] != y->key[i]) return x->key[i] < y->key[i] ? -1 : 1;
  return x->size != y->size ? (x->size > y->size) - (x->size < y->size)
                            : (x->sample > y->sample) - (x->sample < y->sample);
}

static void make_points(fitter *f) {
  for (size_t i = 0; i < f->samples.count; i++) {
    point *p = &f->points[i];
    p->sample = f->samples.sample[i];
    p->size = lp_fit_size(f->family, &p->sample->facts);
    p->x = log(lp_fit_whole_quanta(f->family, p->size));
    p->y = log(p->sample->time_us) - lp_fit_base(f->family, &p->sample->facts);
    lp_fit_key(f->family, &p->sample->facts, p->key);
  }
  qsort(f->points, f->samples.count, sizeof *f->points, by_key_and_size);
}

/* The end of the run of points with one key that begins at `from`. */
static size_t end_of_curve(const fitter *f, size_t from) {
  size_t end = from + 1;
  while (end < f->samples.count && memcmp(f->points[end].key, f->points[from].key, sizeof f->points->key) == 0)
    end++;
  return end;
}

/* Assigns points to folds cyclically. Points of one size stay together; with `by_tile`, those of one tile. */
static void deal(fitter *f, bool by_tile) {
  for (size_t from = 0, end; from < f->samples.count; from = end) {
    end = end_of_curve(f, from);
    int32_t turn = 0;
    for (size_t i = from; i < end; i++) {
      const point *p = &f->points[i], *before = i > from ? p - 1 : p;
      turn += by_tile ? p->x > before->x : p->size > before->size;
      f->points[i].turn = turn;
    }
    for (size_t i = from; i < end; i++)
      if (f->points[i].turn == 0 || f->points[i].turn == turn) f->points[i].turn = -1;
  }
}

static bool left_out(const point *p, size_t fold, size_t folds) {
  return folds > 0 && p->turn >= 0 && (size_t)p->turn % folds == fold;
}

/* The error in log time that the clock explains: a time and its neighbours may each be off by half a tick. */
static double tick_noise(const lp_fit_family *family, double time_us) {
  return 1.5 * log1p(family->tick_us / 2 / time_us);
}

/* The residual, in log time, of a measured time against the predicted one, rounded as the family's clock would. */
static double residual_of(const fitter *f, const point *p, double factor) {
  double us = p->sample->time_us;
  return log(us / lp_fit_on_clock(f->family->tick_us, us * exp(factor - p->y)));
}

static void make_curve(const fitter *f, lp_arena *arena, size_t from, size_t end, size_t fold, size_t folds,
                       lp_fit_curve *out) {
  double *x = LP_NEW_ARRAY(arena, double, end - from), *y = LP_NEW_ARRAY(arena, double, end - from);
  double *noise = LP_NEW_ARRAY(arena, double, end - from);
  int32_t count = 0;
  for (size_t i = from; i < end; i++) {
    if (left_out(&f->points[i], fold, folds)) continue;
    x[count] = f->points[i].x;
    noise[count] = tick_noise(f->family, f->points[i].sample->time_us);
    y[count++] = f->points[i].y;
  }
  lp_fit_curve_make(arena, x, y, noise, count, f->options->knots, f->family->kind, out);
}

static double mean_error(const double *residual, size_t of) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < of; i++) {
    if (isnan(residual[i])) continue;
    sum += fabs(expm1(-residual[i]));
    count++;
  }
  return count > 0 ? sum / (double)count : 0;
}

/* The residuals of the points [from, end) from curves that were fitted without the point's fold; NAN for points that no
 * fold leaves out. */
static void leave_out_folds(const fitter *f, size_t from, size_t end, size_t folds) {
  LP_OWNED(lp_arena_free_at) lp_arena *scratch = lp_arena_create();
  for (size_t i = from; i < end; i++)
    f->residual[i] = NAN;
  for (size_t fold = 0; fold < folds && end - from > 2; fold++) {
    lp_fit_curve curve = {0};
    make_curve(f, scratch, from, end, fold, folds, &curve);
    for (size_t i = from; i < end; i++)
      if (left_out(&f->points[i], fold, folds))
        f->residual[i] = residual_of(f, &f->points[i], lp_fit_curve_at(&curve, f->points[i].x));
    lp_fit_curve_straighten(&curve);
  }
}

static void cross_validate(const fitter *f, size_t folds) {
  for (size_t from = 0, end; from < f->samples.count; from = end) {
    end = end_of_curve(f, from);
    leave_out_folds(f, from, end, folds);
  }
}

/* Gives the family the kind of curve with the least error when each third size is left out, and leaves the residuals
 * of that kind without each fifth. Chosen by fifths it is worse than lines for all (tests/bench/hw_holdout.py). */
static void choose_kind(fitter *f) {
  lp_fit_family *family = f->family;
  lp_curve_kind best = LP_CURVE_LINEAR;
  /* A table of prefill has several lengths in one tile of queries. One fold takes all of them, or each would predict
   * the others. */
  deal(f, family->op == LP_HW_ATTENTION && !family->decode);
  for (family->kind = LP_CURVE_LINEAR; family->kind < LP_CURVE_KINDS; family->kind++) {
    cross_validate(f, 3);
    family->left_out_pct[family->kind] = 100 * mean_error(f->residual, f->samples.count);
    if (family->left_out_pct[family->kind] < family->left_out_pct[best]) best = family->kind;
  }
  family->kind = best;
  cross_validate(f, 5);
}

/* ---- intervals ---- */

/* Half the interval that should hold nine in ten new points: the 90th percentile of absolute residuals among points
 * [from, end), or `otherwise` when there are few. Conformal prediction adds a rank for the new point; these residuals
 * are of curves that lack a fifth of the points and so are large already. */
static double spread_of(const fitter *f, size_t from, size_t end, size_t least, double otherwise) {
  LP_OWNED(lp_free_at) double *values = lp_alloc((end - from + 1) * sizeof *values);
  size_t count = 0;
  for (size_t i = from; i < end; i++)
    if (!isnan(f->residual[i])) values[count++] = fabs(f->residual[i]);
  return count >= least ? quantile(values, count, 0.9) : otherwise;
}

static void make_curves(fitter *f, lp_arena *arena) {
  lp_fit_family *family = f->family;
  double usual = spread_of(f, 0, f->samples.count, 5, 0.2);
  family->count = 0;
  for (size_t from = 0, end; from < f->samples.count; from = end, family->count++)
    end = end_of_curve(f, from);
  family->curve = LP_NEW_ARRAY(arena, lp_fit_curve, family->count);
  size_t from = 0;
  for (int32_t c = 0; c < family->count; c++) {
    size_t end = end_of_curve(f, from);
    lp_fit_curve *curve = &family->curve[c];
    make_curve(f, arena, from, end, 0, 0, curve);
    memcpy(curve->key, f->points[from].key, sizeof curve->key);
    curve->spread = spread_of(f, from, end, 20, usual);
    curve->measured = LP_NEW_ARRAY(arena, double, end - from);
    for (size_t i = from; i < end; i++)
      if (i == from || f->points[i].size > f->points[i - 1].size)
        curve->measured[curve->measured_count++] = f->points[i].size;
    from = end;
  }
}

/* ---- shapes that were not measured ---- */

/* Residuals of each curve's points from the prediction of the other curves, and the distance to these. There must be
 * two curves. */
static void leave_out_curves(const fitter *f, double *residual, double *away) {
  size_t at = 0;
  for (int32_t c = 0; c < f->family->count; c++) {
    for (size_t end = end_of_curve(f, at); at < end; at++) {
      lp_fit_blend blend = lp_fit_combine(f->family, &f->points[at].sample->facts, c);
      residual[at] = residual_of(f, &f->points[at], blend.y);
      away[at] = blend.distance;
    }
  }
}

static void judge_unseen(fitter *f) {
  lp_fit_family *family = f->family;
  size_t count = f->samples.count;
  family->unseen_spread = 0.35; /* with only one shape: the error of rooflines */
  family->unseen_distance = 1;
  if (family->count < 2) return;
  LP_OWNED(lp_free_at) double *residual = lp_alloc(count * sizeof *residual), *away = lp_alloc(count * sizeof *away);
  leave_out_curves(f, residual, away);
  for (size_t i = 0; i < count; i++)
    residual[i] = fabs(residual[i]);
  family->unseen_spread = quantile(residual, count, 0.9);
  family->unseen_distance = fmax(0.1, quantile(away, count, 0.5) * M_LN2);
}

/* ---- tiles ---- */

/* The mean error at left-out points. For attention, with shapes along an axis, also at left-out curves. */
static double error_at(fitter *f, int64_t quantum) {
  f->family->quantum = quantum;
  lp_fit_base_law(f->family, f->machine, &f->samples, f->launch_guess);
  make_points(f);
  deal(f, false);
  cross_validate(f, 2);
  double error = mean_error(f->residual, f->samples.count);
  if (f->family->op != LP_HW_ATTENTION) return error;
  LP_OWNED(lp_arena_free_at) lp_arena *scratch = lp_arena_create();
  make_curves(f, scratch);
  if (f->family->count > 1) {
    LP_OWNED(lp_free_at) double *away = lp_alloc(f->samples.count * sizeof *away);
    leave_out_curves(f, f->residual, away);
    error += mean_error(f->residual, f->samples.count);
  }
  return error;
}

/* The smallest quantum that predicts left-out points clearly better than smaller ones do. */
static void choose_quantum(fitter *f) {
  static const int64_t quanta[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  double least = INFINITY;
  int64_t best = 1;
  for (size_t i = 0; i < LP_COUNT(quanta); i++) {
    double error = error_at(f, quanta[i]);
    if (error >= 0.98 * least) continue;
    least = error;
    best = quanta[i];
  }
  f->family->quantum = best;
}

/* ---- the clock ---- */

static bool is_whole(double value) {
  return fabs(value - round(value)) < 1e-6;
}

/* The tick of the clock: the largest power of ten, in us, of which nine in ten times are whole multiples. 0 where it is
 * fine compared with the times. */
static double find_tick(const lp_fit_samples *samples) {
  const double coarse = 0.005;
  double *times = lp_alloc((samples->count + 1) * sizeof *times), found = 0;
  for (size_t i = 0; i < samples->count; i++)
    times[i] = samples->sample[i]->time_us;
  double shortest = quantile(times, samples->count, 0.1);
  for (double tick = 100; tick > coarse * shortest && found == 0; tick /= 10) {
    size_t whole = 0;
    for (size_t i = 0; i < samples->count; i++)
      whole += is_whole(times[i] / tick);
    if (samples->count >= 20 && (double)whole >= 0.9 * (double)samples->count) found = tick;
  }
  free(times);
  return found;
}

/* ---- all ---- */

static void fit_family(fitter *f) {
  lp_fit_family *family = f->family;
  f->points = lp_alloc(f->samples.count * sizeof *f->points);
  f->residual = lp_alloc(f->samples.count * sizeof *f->residual);
  if (family->op == LP_HW_ANY) {
    family->flops_per_us = lp_hw_peak(f->machine, family->dtype) * 1e-6;
    family->bytes_per_us = f->machine->figure[LP_HW_BANDWIDTH] * 1e-6;
  } else {
    family->tick_us = find_tick(&f->samples);
    family->quantum = 1;
    lp_fit_base_law(family, f->machine, &f->samples, f->launch_guess);
    choose_quantum(f);
    lp_fit_pass_law(family, f->machine, &f->samples, f->launch_guess);
  }
  make_points(f);
  choose_kind(f);
  make_curves(f, f->machine->arena);
  judge_unseen(f);
  free(f->points);
  free(f->residual);
}

static bool is_of(const lp_fit_family *family, const lp_hw_sample *sample) {
  if (family->op == LP_HW_ANY) return true;
  bool decode = sample->op == LP_HW_ATTENTION && sample->facts.q_len == 1;
  return family->op == sample->op && family->dtype == sample->facts.dtype && family->decode == decode;
}

/* An estimate of the launch time of a kernel: the median of the shortest pointwise times, else a fifth of the shortest
 * time. */
static double guess_launch(const lp_hw_samples *samples) {
  double least[LP_HW_OP_COUNT], shortest = INFINITY, pointwise[LP_HW_OP_COUNT];
  size_t count = 0;
  for (size_t op = 0; op < LP_HW_OP_COUNT; op++)
    least[op] = INFINITY;
  LP_FOR_VEC(const lp_hw_sample, sample, samples) {
    least[sample->op] = fmin(least[sample->op], sample->time_us);
    shortest = fmin(shortest, sample->time_us);
  }
  for (size_t op = LP_HW_EMBEDDING; op < LP_HW_SAMPLE; op++)
    if (least[op] < INFINITY) pointwise[count++] = least[op];
  return count > 0 ? quantile(pointwise, count, 0.5) : shortest / 5;
}

/* Adds the families of the samples, in their order of first use. */
static void list_families(struct lp_hw_fit *fit, const lp_hw_samples *samples, bool single) {
  LP_FOR_VEC(const lp_hw_sample, sample, samples) {
    int32_t f = 0;
    while (f < fit->count && !is_of(&fit->family[f], sample))
      f++;
    if (f < fit->count) continue;
    fit->family[fit->count++] =
        (lp_fit_family){.op = single ? LP_HW_ANY : sample->op,
                        .dtype = sample->facts.dtype,
                        .decode = !single && sample->op == LP_HW_ATTENTION && sample->facts.q_len == 1};
  }
}

lp_status lp_hw_fit(lp_machine *machine, const lp_hw_samples *samples, const lp_hw_fit_options *options,
                    lp_hw_fit_result *result, lp_diag *diag) {
  *result = (lp_hw_fit_result){0};
  lp_hw_samples good = {0};
  for (size_t i = 0; i < samples->count; i++)
    if (lp_hw_is_possible(machine, &samples->data[i])) lp_vec_push(&good, samples->data[i]);
  result->used = good.count;
  result->impossible = samples->count - good.count;
  if (good.count == 0)
    return lp_error(diag, LP_LOC_NONE, "every measurement is faster than '%s' can be", machine->name);
  struct lp_hw_fit *fit = LP_NEW(machine->arena, struct lp_hw_fit);
  enum { MOST_FAMILIES = (LP_HW_OP_COUNT + 1) * LP_DTYPE_COUNT };
  fit->family = LP_NEW_ARRAY(machine->arena, lp_fit_family, MOST_FAMILIES);
  fit->source = options->source ? lp_arena_strdup(machine->arena, options->source) : NULL;
  fit->kernels = options->kernels ? lp_arena_strdup(machine->arena, options->kernels) : NULL;
  list_families(fit, &good, options->single_curve);
  const lp_hw_sample **of = lp_alloc(good.count * sizeof *of);
  for (int32_t i = 0; i < fit->count; i++) {
    fitter f = {.machine = machine, .options = options, .family = &fit->family[i], .launch_guess = guess_launch(&good)};
    f.samples.sample = of;
    for (size_t s = 0; s < good.count; s++)
      if (is_of(f.family, &good.data[s])) of[f.samples.count++] = &good.data[s];
    fit_family(&f);
    result->curves += (size_t)f.family->count;
    for (int32_t c = 0; c < f.family->count; c++)
      result->knots += (size_t)f.family->curve[c].count;
  }
  free(of);
  lp_vec_free(&good);
  lp_fit_release(machine->fit);
  machine->fit = fit;
  machine->predictor = &lp_hw_fitted;
  return LP_OK;
}

lp_status lp_hw_for_table(const char *path, const lp_hw_samples *samples, lp_machine **out, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *stem = lp_strdup(lp_path_base(path));
  stem[strcspn(stem, ".")] = '\0';
  const char *const *names = NULL;
  size_t count = lp_hw_names(&names);
  lp_status status = LP_OK;
  bool is_known = false;
  for (size_t i = 0; i < count && !is_known; i++)
    is_known = lp_streq(names[i], stem) && !lp_streq(stem, "host");
  if (is_known)
    status = lp_hw_load(stem, out, diag);
  else
    *out = lp_hw_from_samples(stem, stem, samples);
  return status;
}
