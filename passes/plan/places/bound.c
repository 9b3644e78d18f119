/* Lower bounds: shortest paths through the parts at prices of the limits, and subgradient steps on the prices.
 *
 * A path gives each part a state: a place or "divided" in each stage. A divided part counts the least price of each of
 * its operators by itself and one message, so that the bound holds for every placement. What several parts share is
 * counted once, in the first part that uses it. */
#include "passes/plan/places/model.h"

#include <math.h>

static int states_of(const lp_places_paths *s) {
  return (s->model->count + 1) * (s->model->count + 1);
}

lp_places_paths *lp_places_paths_create(const lp_places_model *model, bool divides) {
  lp_places_paths *s = LP_NEW(model->arena, lp_places_paths);
  *s = (lp_places_paths){.model = model, .divides = divides, .objective = 1};
  const size_t parts = (size_t)model->part_count, size = LP_PLACES_STATES * sizeof(double);
  s->price = lp_arena_array(model->arena, parts, size);
  s->from_start = lp_arena_array(model->arena, parts, size);
  s->to_end = lp_arena_array(model->arena, parts, size);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    s->path[stage] = LP_NEW_ARRAY(model->arena, uint8_t, parts);
  return s;
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

static double busy_price(const lp_places_paths *s, int stage, int place) {
  return s->objective * s->model->busy[stage][place] + s->duals.per_ms[stage];
}

static double link_price(const lp_places_paths *s, int stage) {
  return s->objective * s->model->link[stage] + s->duals.per_ms[stage];
}

/* The price of a stage of an operator by itself, without what both stages use. */
static double op_price(const lp_places_paths *s, int stage, int32_t op, int place) {
  const int32_t at = op * LP_PLACES_MAX + place;
  return busy_price(s, stage, place) * s->model->op_ms[stage][at] +
         s->duals.per_byte[place] * s->model->op_bytes[stage][at];
}

static double both_price(const lp_places_paths *s, int32_t op, int place) {
  return s->duals.per_byte[place] * s->model->op_both[op * LP_PLACES_MAX + place];
}

/* The price per byte of KV caches that move, without the constant of a message, which other parts' caches share. */
static double move_price(const lp_places_paths *s, int from, int to) {
  if (from == to) return 0;
  return (s->objective * s->model->move + s->duals.per_ms[LP_STAGE_PREFILL]) * s->model->ms_per_byte[from][to];
}

/* The least price of an operator by itself where its pins let it be. at[stage] is its place, or `count`: any; then it
 * becomes the cheapest. */
static double cheapest(const lp_places_paths *s, int32_t op, int at[LP_STAGE_COUNT]) {
  const lp_places_model *m = s->model;
  const int given[] = {at[0], at[1]};
  const unsigned allowed[] = {lp_places_allowed(m->problem, 0, op), lp_places_allowed(m->problem, 1, op)};
  double stage_price[LP_STAGE_COUNT][LP_PLACES_MAX], both[LP_PLACES_MAX], least = INFINITY;
  for (int p = 0; p < m->count; p++) {
    stage_price[0][p] = op_price(s, 0, op, p);
    stage_price[1][p] = op_price(s, 1, op, p);
    both[p] = both_price(s, op, p);
  }
  for (int p = 0; p < m->count; p++)
    for (int d = 0; d < m->count; d++) {
      if ((given[0] < m->count && given[0] != p) || (given[1] < m->count && given[1] != d)) continue;
      if (!(allowed[0] >> p & 1) || !(allowed[1] >> d & 1)) continue;
      double price = stage_price[0][p] + stage_price[1][d] + both[p];
      if (p != d) price += both[d] + m->op_moves[op] * move_price(s, p, d);
      if (price >= least) continue;
      least = price;
      at[0] = p;
      at[1] = d;
    }
  return least;
}

/* The price of a part that is divided in a stage, where at[stage] is `count`, or in both. */
static double divided_price(const lp_places_paths *s, const lp_places_part *part, const int at[LP_STAGE_COUNT]) {
  double price = 0;
  for (int32_t op = part->first_op; op < part->end_op; op++)
    price += cheapest(s, op, (int[]){at[0], at[1]});
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (at[stage] == s->model->count) price += link_price(s, stage) * part->inner_ms[stage];
  return price;
}

/* The price of a part that is in a place in each stage. */
static double whole_price(const lp_places_paths *s, const lp_places_part *part, const int at[LP_STAGE_COUNT]) {
  double price = part->move_bytes * move_price(s, at[0], at[1]);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const int p = at[stage];
    double bytes = part->weight_bytes[stage][p];
    if (stage == 0 || at[0] != at[1]) bytes += part->weight_bytes[LP_PLACES_BOTH][p] + part->cache_bytes[p];
    price += busy_price(s, stage, p) * part->ms[stage][p] + s->duals.per_byte[p] * bytes;
  }
  return price;
}

/* The price of what the part is the first to use. */
static double shared_price(const lp_places_paths *s, int32_t index, const int at[LP_STAGE_COUNT]) {
  const lp_places_model *m = s->model;
  double price = 0;
  LP_FOR_EACH(const lp_places_holding, holding, m->holding, m->holding_count) {
    bool first = true; /* of its bytes */
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      first = first && (holding->first[stage] < 0 || holding->first[stage] >= index);
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      if (holding->first[stage] != index || at[stage] == m->count) continue;
      price += busy_price(s, stage, at[stage]) * holding->ms[stage][at[stage]];
      if (first) price += s->duals.per_byte[at[stage]] * holding->bytes[at[stage]];
      first = false;
    }
  }
  return price;
}

/* Without divided parts, a part that its pins divide may be anywhere: such a path is not a plan, but leads to one. */
static bool is_allowed(const lp_places_paths *s, const lp_places_part *part, int stage, int place) {
  if (place < s->model->count) return part->allowed[stage] ? part->allowed[stage] >> place & 1 : !s->divides;
  return s->divides && part->divides[stage];
}

static void price_part(lp_places_paths *s, int32_t index) {
  const lp_places_model *m = s->model;
  const lp_places_part *part = &m->part[index];
  const int width = m->count + 1;
  for (int p = 0; p < width; p++)
    for (int d = 0; d < width; d++) {
      const int at[] = {p, d};
      double *price = &s->price[index][p * width + d];
      *price = INFINITY;
      if (!is_allowed(s, part, 0, p) || !is_allowed(s, part, 1, d)) continue;
      *price = p < m->count && d < m->count ? whole_price(s, part, at) : divided_price(s, part, at);
      *price += shared_price(s, index, at);
    }
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

/* The price of a message into part `index`; none to or from a divided part. */
static double hop_price(const lp_places_paths *s, int stage, int32_t index, int from, int to) {
  const lp_places_model *m = s->model;
  if (from == to || from == m->count || to == m->count) return 0;
  if (index == 0 && !m->has_input[stage]) return 0;
  return link_price(s, stage) * lp_places_hop_ms(m, from, to, m->part[index].hop_bytes[stage]);
}

static double end_price(const lp_places_paths *s, int p, int d) {
  const lp_places_model *m = s->model;
  const int at[LP_STAGE_COUNT] = {p, d};
  double price = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (m->has_result[stage] && at[stage] < m->count)
      price += link_price(s, stage) * lp_places_hop_ms(m, at[stage], 0, m->result_bytes[stage]);
  return price;
}

/* Fills into[state]: the least price up to the border before part `index`, with the messages across it. */
static void cross(const lp_places_paths *s, int32_t index, const double *before, double *into) {
  const int width = s->model->count + 1;
  double half[LP_PLACES_STATES], hop[LP_STAGE_COUNT][LP_PLACES_STATES];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int a = 0; a < width; a++)
      for (int b = 0; b < width; b++)
        hop[stage][a * width + b] = hop_price(s, stage, index, a, b);
  for (int p = 0; p < width; p++)
    for (int to = 0; to < width; to++) {
      double least = INFINITY;
      for (int d = 0; d < width; d++)
        least = fmin(least, before[p * width + d] + hop[1][d * width + to]);
      half[p * width + to] = least;
    }
  for (int to = 0; to < width; to++)
    for (int d = 0; d < width; d++) {
      double least = INFINITY;
      for (int p = 0; p < width; p++)
        least = fmin(least, half[p * width + d] + hop[0][p * width + to]);
      into[to * width + d] = least;
    }
}

/* Before the first part all values are on the device. */
static void start(const lp_places_paths *s, double *into) {
  const int width = s->model->count + 1;
  for (int p = 0; p < width; p++)
    for (int d = 0; d < width; d++)
      into[p * width + d] = hop_price(s, LP_STAGE_PREFILL, 0, 0, p) + hop_price(s, LP_STAGE_DECODE, 0, 0, d);
}

static void set_offset(lp_places_paths *s) {
  const lp_places_model *m = s->model;
  s->offset = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    s->offset += s->duals.per_ms[stage] * m->limit_ms[stage];
  for (int p = 0; p < m->count; p++)
    s->offset += s->duals.per_byte[p] * (m->limit_bytes[p] - (s->divides ? 0 : m->least_activation[p]));
}

/* Adds the sums of one operator of a divided part. */
static void add_op_sums(lp_places_paths *s, int32_t op, const int given[LP_STAGE_COUNT]) {
  const lp_places_model *m = s->model;
  int at[] = {given[0], given[1]};
  (void)cheapest(s, op, at);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    s->ms[stage] += m->op_ms[stage][op * LP_PLACES_MAX + at[stage]];
    s->bytes[at[stage]] += m->op_bytes[stage][op * LP_PLACES_MAX + at[stage]];
    if (stage == 0 || at[0] != at[1]) s->bytes[at[stage]] += m->op_both[op * LP_PLACES_MAX + at[stage]];
  }
  if (at[0] != at[1]) s->ms[0] += m->op_moves[op] * m->ms_per_byte[at[0]][at[1]];
}

/* Adds the sums of a part on the path. */
static void add_sums(lp_places_paths *s, const lp_places_part *part, const int at[LP_STAGE_COUNT]) {
  const lp_places_model *m = s->model;
  if (at[0] == m->count || at[1] == m->count) {
    for (int32_t op = part->first_op; op < part->end_op; op++)
      add_op_sums(s, op, at);
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      if (at[stage] == m->count) s->ms[stage] += part->inner_ms[stage];
    return;
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const int p = at[stage];
    s->ms[stage] += part->ms[stage][p];
    s->bytes[p] += part->weight_bytes[stage][p];
    if (stage == 0 || at[0] != at[1]) s->bytes[p] += part->weight_bytes[LP_PLACES_BOTH][p] + part->cache_bytes[p];
  }
  if (at[0] != at[1]) s->ms[0] += part->move_bytes * m->ms_per_byte[at[0]][at[1]];
}

static void add_path_sums(lp_places_paths *s) {
  const lp_places_model *m = s->model;
  int before[LP_STAGE_COUNT] = {0, 0};
  memset(s->ms, 0, sizeof s->ms);
  memset(s->bytes, 0, sizeof s->bytes);
  for (int32_t i = 0; i < m->part_count; i++) {
    const int at[] = {s->path[0][i], s->path[1][i]};
    add_sums(s, &m->part[i], at);
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      if (before[stage] < m->count && at[stage] < m->count && (i > 0 || m->has_input[stage]))
        s->ms[stage] += lp_places_hop_ms(m, before[stage], at[stage], m->part[i].hop_bytes[stage]);
      before[stage] = at[stage];
    }
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (m->has_result[stage] && before[stage] < m->count)
      s->ms[stage] += lp_places_hop_ms(m, before[stage], 0, m->result_bytes[stage]);
}

/* Follows the shortest path from the last part back to the first. */
static void trace_path(lp_places_paths *s, int state) {
  const int width = s->model->count + 1;
  for (int32_t i = s->model->part_count; i-- > 0;) {
    const int to[] = {state / width, state % width};
    s->path[0][i] = (uint8_t)to[0];
    s->path[1][i] = (uint8_t)to[1];
    double least = INFINITY;
    for (int from = 0; i > 0 && from < width * width; from++) {
      const double price = s->from_start[i - 1][from] + hop_price(s, 0, i, from / width, to[0]) +
                           hop_price(s, 1, i, from % width, to[1]);
      if (price >= least) continue;
      least = price;
      state = from;
    }
  }
}

void lp_places_paths_solve(lp_places_paths *s) {
  const lp_places_model *m = s->model;
  const int width = m->count + 1, states = states_of(s);
  double into[LP_PLACES_STATES];
  int last = 0;
  for (int32_t i = 0; i < m->part_count; i++) {
    price_part(s, i);
    if (i == 0)
      start(s, into);
    else
      cross(s, i, s->from_start[i - 1], into);
    for (int k = 0; k < states; k++)
      s->from_start[i][k] = into[k] + s->price[i][k];
  }
  s->least = INFINITY;
  for (int k = 0; k < states; k++) {
    const double price = s->from_start[m->part_count - 1][k] + end_price(s, k / width, k % width);
    if (price >= s->least) continue;
    s->least = price;
    last = k;
  }
  set_offset(s);
  trace_path(s, last);
  add_path_sums(s);
}

void lp_places_paths_back(lp_places_paths *s) {
  const lp_places_model *m = s->model;
  const int width = m->count + 1, states = states_of(s);
  for (int k = 0; k < states; k++)
    s->to_end[m->part_count - 1][k] = end_price(s, k / width, k % width);
  for (int32_t i = m->part_count - 1; i > 0; i--)
    for (int from = 0; from < states; from++) {
      double least = INFINITY;
      for (int to = 0; to < states; to++)
        least = fmin(least, hop_price(s, 0, i, from / width, to / width) +
                                hop_price(s, 1, i, from % width, to % width) + s->price[i][to] + s->to_end[i][to]);
      s->to_end[i - 1][from] = least;
    }
}

double lp_places_paths_bound(const lp_places_paths *s) {
  return s->least - s->offset;
}

double lp_places_divided_bound(const lp_places_paths *s) {
  const lp_places_model *m = s->model;
  const int width = m->count + 1;
  double least = INFINITY;
  for (int32_t i = 0; i < m->part_count; i++)
    for (int k = 0; k < width * width; k++)
      if (k / width == m->count || k % width == m->count) least = fmin(least, s->from_start[i][k] + s->to_end[i][k]);
  return least - s->offset;
}
