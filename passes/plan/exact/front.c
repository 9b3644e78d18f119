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

/* Adds the next point unless a faster one beats it, or its price is too great; it replaces one that is as fast. Has no
 * branch, which would be mispredicted at every other point. `out` has room for a point more than it keeps. */
static inline void keep_point(const point_limits *limits, double ms, double price, double *least, point_list *out) {
  const bool is_kept = (price < *least) & !(price + limits->per_ms * ms > limits->most);
  const int32_t at = out->count - !(out->ms[out->count - 1] < ms);
  out->ms[is_kept ? at : out->count] = ms;
  out->price[is_kept ? at : out->count] = price;
  out->count = is_kept ? at + 1 : out->count;
  *least = is_kept ? price : *least;
}

static inline double next_ms(const shifted_front *f) {
  return f->front->ms[f->at] + f->ms;
}

static inline bool has_next(const shifted_front *f) {
  return f->at < f->front->count;
}

/* Merges two fronts; keeps the points that no faster one beats. */
static void merge_fronts(shifted_front from[LP_SIDE_COUNT], const point_limits *limits, point_list *out) {
  double least = INFINITY;
  out->ms[-1] = -INFINITY; /* before the first one */
  out->count = 0;
  while (has_next(&from[0]) && has_next(&from[1])) {
    const double ms[] = {next_ms(&from[0]), next_ms(&from[1])};
    const bool second = ms[1] < ms[0];
    const double price[] = {from[0].front->price[from[0].at] + from[0].price,
                            from[1].front->price[from[1].at] + from[1].price};
    if (!((second ? ms[1] : ms[0]) <= limits->most_ms)) return;
    from[0].at += !second;
    from[1].at += second;
    keep_point(limits, second ? ms[1] : ms[0], second ? price[1] : price[0], &least, out);
  }
  shifted_front *rest = &from[!has_next(&from[0])];
  for (; has_next(rest) && next_ms(rest) <= limits->most_ms; rest->at++)
    keep_point(limits, next_ms(rest), rest->front->price[rest->at] + rest->price, &least, out);
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
  const size_t count = (size_t)from->count, before = r->point.count;
  r->front[index].count = from->count;
  while (r->point.capacity < before + 2 * count)
    r->point.data = lp_vec_grow(r->point.data, &r->point.capacity, sizeof *r->point.data);
  if (!count) return;
  memcpy(r->point.data + before, from->ms, count * sizeof *from->ms);
  memcpy(r->point.data + before + count, from->price, count * sizeof *from->price);
  r->point.count += 2 * count;
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
  static const lp_exact_front nothing = {0};
  shifted_front from[LP_SIDE_COUNT] = {{.front = &nothing}, {.front = &nothing}};
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
  double *room[] = {lp_alloc((2 * (size_t)task->points + 2) * sizeof(double)),
                    lp_alloc((2 * (size_t)task->points + 2) * sizeof(double))};
  point_list merged = {room[0] + 1, room[1] + 1, 0};
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
  free(room[0]);
  free(room[1]);
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
