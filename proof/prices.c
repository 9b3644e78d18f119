/* Prices of the limits, and the potentials of frontiers at these prices. */
#include "base/level.h"
#include "base/number.h"
#include "proof/seeker.h"

#include <math.h>

static double priced(const seeker *s, const frontier_arc *arc) {
  double cost = arc->objective;
  for (int i = 0; i < LIMIT_COUNT; i++)
    cost += s->price[i] * arc->amount[i];
  return cost;
}

static double limits_price(const seeker *s) {
  double price = 0;
  for (int i = 0; i < LIMIT_COUNT; i++)
    price += s->price[i] * s->limit[i];
  return price;
}

/* The number of potentials of a frontier. */
int32_t seeker_stride(const seeker *s) {
  return (s->most + 1) * (s->counted + 1);
}

double *seeker_potentials(const seeker *s, size_t step, int32_t frontier) {
  return s->potential + (size_t)(s->first[step] + frontier) * (size_t)seeker_stride(s);
}

/* Adds what an arc caches and sends; false when the search does not look for so many messages. */
bool seeker_count(const seeker *s, const frontier_arc *arc, int32_t *cached, int32_t *sent) {
  if (s->most > 0) *cached += arc->cached;
  *sent += arc->sent;
  if (*sent > s->counted && s->or_more) *sent = s->counted;
  return *sent <= s->counted && *cached <= s->most;
}

/* The numbers of caches at a step between which potentials can be finite and are needed. Below them they are infinite,
 * above them they are not filled. */
typedef struct {
  int32_t low, high;
} span;

/* Sets potentials to those of the rest and a price, or lowers them to these. */
static void set_row(double *restrict own, const double *restrict rest, double price, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    own[i] = price + rest[i];
}

static void lower_row(double *restrict own, const double *restrict rest, double price, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    const double sum = price + rest[i];
    own[i] = sum < own[i] ? sum : own[i];
  }
}

static void set_infinite(double *row, int32_t from, int32_t to) {
  for (int32_t i = from; i < to; i++)
    row[i] = INFINITY;
}

/* Sets the potentials `to` of a frontier to those by way of an arc with this price, or lowers them to these:
 * seeker_count for all of them. */
static void follow_arc(const seeker *s, const frontier_arc *arc, double price, const double *from, span at,
                       bool is_first, double *to) {
  const int32_t shift = s->most > 0 ? arc->cached : 0;
  const int32_t end = at.high < s->most - shift ? at.high + 1 : s->most - shift + 1;
  for (int32_t sent = 0; sent <= s->counted; sent++) {
    int32_t after = sent + arc->sent;
    if (after > s->counted && s->or_more) after = s->counted;
    const int32_t count = after > s->counted || end < at.low ? 0 : end - at.low;
    double *row = to + seeker_index(s, 0, sent);
    const double *rest = from + seeker_index(s, at.low + shift, after);
    if (!is_first) {
      lower_row(row + at.low, rest, price, count);
      continue;
    }
    set_infinite(row, 0, at.low);
    set_row(row + at.low, rest, price, count);
    set_infinite(row, at.low + count, at.high + 1);
  }
}

/* Fills the ways. */
static void price_ways(seeker *s) {
  for (size_t i = 0; i < s->graph.step_count; i++) {
    const frontier_step *step = &s->graph.step[i];
    if (s->alike[i] != (int32_t)i) continue;
    for (int32_t f = 0; f < step->count; f++)
      for (int side = 0; side < LP_SIDE_COUNT; side++) {
        const frontier_arc *arc = &step->arc[f][side];
        seeker_way *way = &s->way[s->first_way[i] + f];
        way->price[side] = arc->to < 0 ? INFINITY : priced(s, arc);
        way->to[side] = arc->to < 0 ? 0 : arc->to;
      }
  }
}

/* Fills the potentials where neither caches nor messages are counted, which leaves one for each frontier. */
static void fill_plain(seeker *s, double ending) {
  const frontier_graph *g = &s->graph;
  for (int32_t f = 0; f < g->last_count; f++)
    s->potential[s->first[g->step_count] + f] = ending;
  for (size_t i = g->step_count; i-- > 0;) {
    const seeker_way *way = &s->way[s->first_way[i]];
    const double *restrict rest = &s->potential[s->first[i + 1]];
    double *restrict own = &s->potential[s->first[i]];
    for (int32_t f = 0; f < g->step[i].count; f++) {
      const double device = way[f].price[0] + rest[way[f].to[0]], cloud = way[f].price[1] + rest[way[f].to[1]];
      own[f] = cloud < device ? cloud : device;
    }
  }
}

/* Fills the potentials. `ending`: [cached in all] the price after the last step. `is_any`: for any number of caches
 * before the first step, else for none. */
static void fill(seeker *s, const double *ending, bool is_any) {
  const frontier_graph *g = &s->graph;
  const int32_t n = seeker_stride(s);
  price_ways(s);
  if (n == 1 && s->or_more) {
    fill_plain(s, ending[0]);
    return;
  }
  int32_t least = 0;
  while (least < s->most && isinf(ending[least]))
    least++;
  for (int32_t f = 0; f < g->last_count; f++) {
    double *to = seeker_potentials(s, g->step_count, f);
    set_infinite(to, 0, n);
    memcpy(to + seeker_index(s, 0, s->counted), ending, (size_t)(s->most + 1) * sizeof *to);
  }
  for (size_t i = g->step_count; i-- > 0;) {
    const int32_t before = s->cached_before[i], after = s->cached_before[g->step_count] - before;
    const span at = {.low = least > after ? least - after : 0, .high = is_any || before > s->most ? s->most : before};
    for (int32_t f = 0; f < g->step[i].count; f++) {
      double *to = seeker_potentials(s, i, f);
      bool is_first = true;
      for (int side = 0; side < 2; side++) {
        const frontier_arc *arc = &g->step[i].arc[f][side];
        if (arc->to < 0) continue;
        const double price = s->way[s->first_way[i] + f].price[side];
        follow_arc(s, arc, price, seeker_potentials(s, i + 1, arc->to), at, is_first, to);
        is_first = false;
      }
      if (is_first) set_infinite(to, 0, n);
    }
  }
}

void seeker_fill(seeker *s, const double *ending) {
  fill(s, ending, false);
}

/* Fills the least amount `of` to the end. */
static void fill_least(seeker *s, int of) {
  const frontier_graph *g = &s->graph;
  for (size_t i = g->step_count; i-- > 0;)
    for (int32_t f = 0; f < g->step[i].count; f++) {
      double least = INFINITY;
      for (int side = 0; side < 2; side++) {
        const frontier_arc *arc = &g->step[i].arc[f][side];
        if (arc->to >= 0) least = fmin(least, arc->amount[of] + s->least[of][s->first[i + 1] + arc->to]);
      }
      s->least[of][s->first[i] + f] = least;
    }
}

/* Walks the cheapest path from the start with `cached` caches already on the device; sets the sums along it, and
 * returns the number of caches at its end. */
static int32_t walk_path(seeker *s, int32_t cached) {
  int32_t at = 0, sent = 0;
  memset(s->sum, 0, sizeof s->sum);
  for (size_t i = 0; i < s->graph.step_count; i++) {
    const frontier_arc *arc = s->graph.step[i].arc[at], *best = NULL;
    double least = INFINITY;
    int32_t then[2] = {0, 0};
    for (int side = 0; side < 2; side++) {
      int32_t k = cached, m = sent;
      if (arc[side].to < 0 || !seeker_count(s, &arc[side], &k, &m)) continue;
      const double price = priced(s, &arc[side]) + seeker_potentials(s, i + 1, arc[side].to)[seeker_index(s, k, m)];
      if (best && price >= least) continue;
      best = &arc[side];
      least = price;
      then[0] = k;
      then[1] = m;
    }
    if (!best) return cached;
    for (int k = 0; k < LIMIT_COUNT; k++)
      s->sum[k] += best->amount[k];
    cached = then[0];
    sent = then[1];
    at = best->to;
  }
  return cached;
}

/* ---- both stages at prices --------------------------------------------------------------------------------------- */

moves moves_list(const lp_certificate *c) {
  double *bytes = LP_NEW_ARRAY(c->arena, double, c->holding_count), sum = 0;
  moves m = {0};
  for (size_t i = 0; i < c->holding_count; i++)
    if (frontiers_can_move(&c->holdings[i])) bytes[m.most++] = c->holdings[i].move_bytes;
  if (m.most) qsort(bytes, (size_t)m.most, sizeof *bytes, lp_compare_doubles);
  if (!(c->limit_ms[0] > 0) && !(c->move > 0)) m.most = 0; /* moves are free */
  m.ms = LP_NEW_ARRAY(c->arena, double, 2 * m.most + 1);
  for (int32_t i = 1; i <= m.most; i++) {
    sum += bytes[i - 1];
    m.ms[m.most + i] = c->message_ms + sum * c->ms_per_byte[0];
    m.ms[m.most - i] = c->message_ms + sum * c->ms_per_byte[1];
  }
  return m;
}

/* Fills, for each number of caches that prefill has on the device, the least cost of decode, cost[number], with the
 * moves at a price per ms. Sets in `other` decode's number. */
void moves_pair(const moves *m, const double *cost, double per_ms, double *out, int32_t *other) {
  for (int32_t n = 0; n <= m->most; n++) {
    out[n] = INFINITY;
    for (int32_t k = 0; k <= m->most; k++) {
      const double sum = cost[k] + per_ms * m->ms[m->most + n - k];
      if (sum >= out[n]) continue;
      out[n] = sum;
      if (other) other[n] = k;
    }
  }
}

/* Sets cost[number] to the least price of a stage with that number of caches on the device, less that of the limits. */
void seeker_costs(seeker *s, double *cost) {
  for (int32_t k = 0; k <= s->most; k++)
    cost[k] = INFINITY;
  cost[s->most] = 0; /* as an ending */
  fill(s, cost, true);
  for (int32_t k = 0; k <= s->most; k++)
    cost[k] = s->potential[seeker_index(s, s->most - k, 0)] - limits_price(s);
}

/* Sets the sums of both stages' cheapest paths; returns the bound. */
static double solve_pair(seeker s[2], const moves *m) {
  const lp_certificate *c = s[0].c;
  const lp_arena_mark mark = lp_arena_here(c->arena);
  double *cost = LP_NEW_ARRAY(c->arena, double, m->most + 1), *ending = LP_NEW_ARRAY(c->arena, double, m->most + 1);
  int32_t *other = LP_NEW_ARRAY(c->arena, int32_t, m->most + 1);
  seeker_costs(&s[1], cost);
  moves_pair(m, cost, c->move + s[0].price[0], ending, other);
  seeker_fill(&s[0], ending);
  const double bound = s[0].potential[0] - limits_price(&s[0]);
  if (!isinf(bound)) {
    const int32_t own = walk_path(&s[0], 0), its = other[own];
    (void)walk_path(&s[1], m->most - its);
    s[0].sum[0] += m->ms[m->most + own - its];
  }
  lp_arena_rewind(c->arena, mark);
  return bound;
}

/* The bound that the prices prove; infinite: there is no placement. Sets the sums. */
static double solve(seeker *s, int count, const moves *m) {
  static const double nothing = 0;
  if (count == 2) return solve_pair(s, m);
  seeker_fill(s, &nothing);
  (void)walk_path(s, 0);
  return s->potential[0] - limits_price(s);
}

/* The prices of all limits, each times its limit; returns their number. */
static int list_prices(const seeker *s, int count, double *x) {
  int size = 0;
  for (int k = 0; k < count; k++)
    for (int i = 0; i < LIMIT_COUNT; i++)
      if (s[k].limit[i] > 0) x[size++] = s[k].price[i] * s[k].limit[i];
  return size;
}

static void set_prices(seeker *s, int count, const double *x) {
  for (int k = 0; k < count; k++)
    for (int i = 0; i < LIMIT_COUNT; i++)
      if (s[k].limit[i] > 0) s[k].price[i] = *x++ / s[k].limit[i];
}

/* The shares by which the cheapest paths exceed the limits. */
static void list_excess(const seeker *s, int count, double *out) {
  for (int k = 0; k < count; k++)
    for (int i = 0; i < LIMIT_COUNT; i++)
      if (s[k].limit[i] > 0) *out++ = s[k].sum[i] / s[k].limit[i] - 1;
}

/* Searches for prices with a high bound, in at most `most` steps, and leaves them in the seekers. Stops when the bound
 * is `enough`. */
static double improve(seeker *s, int count, const moves *m, double enough, int most) {
  double x[LP_LEVEL_PRICES] = {0}, excess[LP_LEVEL_PRICES] = {0};
  lp_level_method method;
  lp_level_begin(&method, list_prices(s, count, x), enough);
  for (int i = 0; i < most; i++) {
    const double bound = solve(s, count, m);
    if (isinf(bound)) return bound;
    list_excess(s, count, excess);
    lp_level_add(&method, x, bound, excess);
    if (method.best >= enough || !lp_level_next(&method, x)) break;
    set_prices(s, count, x);
  }
  set_prices(s, count, method.at);
  return method.best;
}

double seeker_improve(seeker *s, int count, const moves *m, double enough) {
  enum { STEPS_OF_PAIR = 40, STEPS_OF_ONE = 80, STEPS_OF_MANY = 24, MANY_FRONTIERS = 300000 };
  const bool is_large = s->first[s->graph.step_count + 1] > MANY_FRONTIERS;
  return improve(s, count, m, enough, is_large ? STEPS_OF_MANY : count == 1 ? STEPS_OF_ONE : STEPS_OF_PAIR);
}

double seeker_quick_bound(seeker *s, int count, const moves *m, double enough) {
  enum { STEPS = 6 };
  return improve(s, count, m, enough, STEPS);
}

/* ---- the seeker -------------------------------------------------------------------------------------------------- */

/* Makes the potentials for placements with so many messages, or more; false when they are too many. */
bool seeker_count_messages(seeker *s, int32_t counted, bool or_more) {
  const size_t count = (size_t)s->first[s->graph.step_count + 1] * (size_t)(s->most + 1) * (size_t)(counted + 1);
  if (count > lp_certificate_effort_of(s->c)->potentials && counted > 0) return false;
  s->counted = counted;
  s->or_more = or_more;
  free(s->potential);
  s->potential = lp_alloc((count + 1) * sizeof *s->potential); /* forbidden arcs may lead to the end of an empty step */
  return true;
}

/* The most caches that an arc of a step puts on the device. */
static int32_t most_cached(const frontier_step *step) {
  int32_t most = 0;
  for (int32_t f = 0; f < step->count; f++)
    for (int side = 0; side < 2; side++) {
      const frontier_arc *arc = &step->arc[f][side];
      if (arc->to >= 0 && arc->cached > most) most = arc->cached;
    }
  return most;
}

/* Finds the steps that share their arcs. */
static void find_alike(seeker *s) {
  const frontier_graph *g = &s->graph;
  int32_t ways = 0;
  s->alike = LP_NEW_ARRAY(s->c->arena, int32_t, g->step_count);
  s->first_way = LP_NEW_ARRAY(s->c->arena, int32_t, g->step_count);
  for (size_t i = 0; i < g->step_count; i++) {
    int32_t k = 0;
    while (g->step[k].arc != g->step[i].arc)
      k++;
    s->alike[i] = k;
    s->first_way[i] = k < (int32_t)i ? s->first_way[k] : ways;
    if (k == (int32_t)i) ways += g->step[i].count;
  }
  s->way = LP_NEW_ARRAY(s->c->arena, seeker_way, ways);
}

bool seeker_create(const lp_certificate *c, unsigned stages, int32_t most, size_t *left, seeker *s) {
  *s = (seeker){.c = c, .most = most, .left = left};
  if (!frontiers_build(c, stages, &s->graph)) return false;
  const frontier_graph *g = &s->graph;
  s->first = LP_NEW_ARRAY(c->arena, int32_t, g->step_count + 2);
  for (size_t i = 0; i <= g->step_count; i++)
    s->first[i + 1] = s->first[i] + (i < g->step_count ? g->step[i].count : g->last_count);
  find_alike(s);
  s->cached_before = LP_NEW_ARRAY(c->arena, int32_t, g->step_count + 1);
  for (size_t i = 0; i < g->step_count; i++)
    s->cached_before[i + 1] = s->cached_before[i] + most_cached(&g->step[i]);
  for (int i = 0; i < LIMIT_COUNT; i++) {
    const bool counts = i >= 2 || stages >> i & 1;
    s->limit[i] = !counts ? 0 : i < 2 ? c->limit_ms[i] : c->limit_bytes[i - 2];
    s->price[i] = !(s->limit[i] > 0) ? 0 : i < 2 ? c->price_ms[i] : c->price_bytes[i - 2];
    if (!(s->limit[i] > 0)) continue;
    s->least[i] = LP_NEW_ARRAY(c->arena, double, s->first[g->step_count + 1]);
    fill_least(s, i);
  }
  return seeker_count_messages(s, 0, true);
}
