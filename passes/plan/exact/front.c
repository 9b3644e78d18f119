/* Fronts of the exact scheduler: the least price of the rest of a stage for each time that it may take. Unlike a price
 * of time, a front does not mix placements, so it counts each crossing in full. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A limit that is exceeded by less than this share counts as met; found placements are evaluated exactly. */
static const double allowance = 1e-9;

/* The points of a front. */
typedef struct {
  double *ms, *price;
  int32_t count;
} point_list;

/* A front that is a row's next one after an arc. */
typedef struct {
  const lp_exact_front *front;
  double ms, price; /* of the arc */
  int32_t at;       /* the next point */
} shifted_front;

/* What a point must keep: a time of at most most_ms, and a price at the pruning prices of at most `most`. */
typedef struct {
  double most_ms, per_ms, most; /* per_ms: the pruning price of time, less that of the fronts */
} point_limits;

static double next_ms(const shifted_front *f) {
  return f->front && f->at < f->front->count ? f->front->ms[f->at] + f->ms : INFINITY;
}

static double next_price(const shifted_front *f) {
  return f->front->price[f->at] + f->price;
}

/* Merges two fronts; keeps the points that no faster one beats. */
static void merge_fronts(shifted_front from[LP_SIDE_COUNT], const point_limits *limits, point_list *out) {
  out->count = 0;
  double least = INFINITY;
  for (;;) {
    double ms[] = {next_ms(&from[0]), next_ms(&from[1])};
    shifted_front *first = &from[ms[1] < ms[0]];
    double own = fmin(ms[0], ms[1]);
    if (!(own <= limits->most_ms)) return;
    double price = next_price(first);
    first->at++;
    if (!(price < least) || price + limits->per_ms * own > limits->most) continue;
    least = price;
    int32_t at = out->count && !(out->ms[out->count - 1] < own) ? out->count - 1 : out->count;
    out->ms[at] = own;
    out->price[at] = price;
    out->count = at + 1;
  }
}

/* Joins neighbours with about the same price until at most `points` are left. The joined point is as fast as the first
 * and as cheap as the last. */
static void thin_out(point_list *list, int points) {
  if (list->count <= points) return;
  double width = (list->price[0] - list->price[list->count - 1]) / (points / 2);
  int32_t count = 0;
  for (int32_t i = 0; i < list->count; count++) {
    double ms = list->ms[i], least = list->price[i] - width;
    while (i + 1 < list->count && list->price[i + 1] >= least)
      i++;
    list->ms[count] = ms;
    list->price[count] = list->price[i++];
  }
  list->count = count;
}

/* The fronts of one place. The points of each follow one another: times, then prices. */
typedef struct {
  lp_exact_front *front;
  LP_VEC(double) point;
} row;

static void add_front(row *r, const point_list *from, int32_t index) {
  r->front[index].count = from->count;
  for (int32_t i = 0; i < from->count; i++)
    lp_vec_push(&r->point, from->ms[i]);
  for (int32_t i = 0; i < from->count; i++)
    lp_vec_push(&r->point, from->price[i]);
}

/* Sets the pointers of `count` fronts into points. */
static void point_fronts(lp_exact_front *front, int32_t count, double *points) {
  for (int32_t i = 0; i < count; i++) {
    front[i].ms = points;
    front[i].price = points + front[i].count;
    points += 2 * front[i].count;
  }
}

static lp_exact_front *keep_row(const lp_exact *x, const row *r, int32_t count) {
  lp_exact_front *out = LP_NEW_ARRAY(x->arena, lp_exact_front, count);
  memcpy(out, r->front, (size_t)count * sizeof *out);
  if (r->point.count) point_fronts(out, count, lp_arena_copy(x->arena, r->point.data, r->point.count * sizeof(double)));
  return out;
}

static void free_row(row *r) {
  free(r->front);
  lp_vec_free(&r->point);
}

/* The least pruning price from the stage's start to each frontier; infinite: none leads there. The caller frees it. */
static double **find_before(const lp_exact_front_task *task) {
  const lp_exact *x = task->x;
  int32_t units = x->unit_count[task->stage];
  size_t total = 0;
  for (int32_t i = 0; i <= units; i++)
    total += (size_t)task->graph->count[i];
  double **before = lp_alloc(((size_t)units + 1) * sizeof *before), *own = lp_alloc((total + 1) * sizeof *own);
  for (size_t i = 0; i < total; i++)
    own[i] = i ? INFINITY : 0;
  for (int32_t i = 0; i <= units; i++) {
    before[i] = own;
    own += task->graph->count[i];
  }
  for (int32_t i = 0; i < units; i++)
    for (int32_t f = 0; f < task->graph->count[i]; f++)
      for (int side = 0; side < LP_SIDE_COUNT; side++) {
        const lp_exact_arc *arc = &task->graph->arc[i][f][side];
        if (arc->to < 0 || isinf(before[i][f])) continue;
        double price = lp_exact_arc_price(x, task->stage, task->pruning, &x->unit[task->stage][i], side, arc);
        before[i + 1][arc->to] = fmin(before[i + 1][arc->to], before[i][f] + price);
      }
  return before;
}

/* Merges the fronts after both arcs of a frontier. `most` is the greatest pruning price from there to the end. */
static void make_front(const lp_exact_front_task *task, int32_t index, int32_t frontier, double most,
                       const lp_exact_front *next, point_list *out) {
  const lp_exact *x = task->x;
  const lp_exact_unit *unit = &x->unit[task->stage][index];
  bool limited = x->limit_ms[task->stage] > 0;
  double per_ms = task->pruning->duals.per_ms[task->stage] - task->prices->duals.per_ms[task->stage];
  point_limits limits = {.most_ms = limited ? x->limit_ms[task->stage] * (1 + allowance) : 0,
                         .per_ms = limited ? per_ms : 0,
                         .most = most};
  shifted_front from[LP_SIDE_COUNT] = {{0}};
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    const lp_exact_arc *arc = &task->graph->arc[index][frontier][side];
    if (arc->to < 0) continue;
    from[side].front = &next[arc->to];
    if (limited) from[side].ms = lp_exact_arc_ms(x, task->stage, unit, side, arc->fresh) + arc->link_ms;
    from[side].price = lp_exact_arc_price(x, task->stage, task->prices, unit, side, arc);
  }
  merge_fronts(from, &limits, out);
  if (task->work) *task->work += from[0].at + from[1].at + 1;
  thin_out(out, task->points);
}

void lp_exact_fronts(const lp_exact_front_task *task, lp_exact_front **front) {
  const lp_exact *x = task->x;
  const lp_exact_graph *graph = task->graph;
  int32_t units = x->unit_count[task->stage], most = 0;
  for (int32_t i = 0; i <= units; i++)
    if (graph->count[i] > most) most = graph->count[i];
  row next = {.front = lp_alloc(((size_t)most + 1) * sizeof *next.front)};
  row now = {.front = lp_alloc(((size_t)most + 1) * sizeof *now.front)};
  point_list merged = {lp_alloc(2 * (size_t)task->points * sizeof(double)),
                       lp_alloc(2 * (size_t)task->points * sizeof(double)), 0};
  for (int32_t f = 0; f < graph->count[units]; f++)
    add_front(&next, &(point_list){(double[]){0}, (double[]){0}, 1}, f);
  point_fronts(next.front, graph->count[units], next.point.data);
  front[units] = keep_row(x, &next, graph->count[units]);
  double **before = find_before(task), *const *after = task->pruning->potential[task->stage];
  double most_price = after[0][0] + task->slack;
  for (int32_t i = units; i-- > 0;) {
    now.point.count = 0;
    for (int32_t f = 0; f < graph->count[i]; f++) {
      merged.count = 0;
      if (before[i][f] + after[i][f] <= most_price)
        make_front(task, i, f, most_price - before[i][f], next.front, &merged);
      add_front(&now, &merged, f);
    }
    point_fronts(now.front, graph->count[i], now.point.data);
    if (task->keep[i]) front[i] = keep_row(x, &now, graph->count[i]);
    row swap = now;
    now = next;
    next = swap;
  }
  free(before[0]);
  free(before);
  free(merged.ms);
  free(merged.price);
  free_row(&now);
  free_row(&next);
}

double lp_exact_front_price(const lp_exact_front *front, double ms) {
  const double *at = front->ms; /* finds the last point that takes no longer */
  int32_t count = front->count;
  if (!count || at[0] > ms) return INFINITY;
  while (count > 1) {
    int32_t half = count / 2;
    at = at[half] <= ms ? at + half : at;
    count -= half;
  }
  return front->price[at - front->ms];
}
