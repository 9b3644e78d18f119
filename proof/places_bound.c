/* Proves the bound of a plan over more than two places anew: the least sum, over all ways through the parts, of the
 * objective and the prices of the limits. It holds for every placement, because the limits that a feasible plan keeps
 * make the prices' share at most that of the limits themselves.
 *
 * A part is at a place in each stage, or divided. A divided part counts each operator by itself where it is cheapest,
 * and one message where the operators hang together; messages to and from it count nothing, nor does what it shares
 * with other parts. */
#include "proof/places.h"

#include <math.h>

/* Numbers of the report have 12 digits, and sums differ with the order of their terms. */
static const double rounding = 1e-9, digits = 1e-11;

/* A way: prefill's place and decode's, `MOST` is divided. */
enum { WIDTH = MOST + 1 };

typedef struct {
  const places_report *r;
  double objective;            /* its weight: 1, or 0 to prove that the limits cannot be met */
  int32_t first[STAGES][MOST]; /* [shared] the first part that uses it */
} prover;

static lp_status refuse(const places_report *r, const char *what) {
  return lp_error_as(LP_MISMATCH, r->diag, LP_LOC_FILE(r->file), "%s", what);
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

static double of_place(const prover *s, int which, int place) {
  return s->objective * s->r->busy_per_ms[which][place] + s->r->price_ms[which];
}

static double of_link(const prover *s, int which) {
  return s->objective * s->r->link_per_ms[which] + s->r->price_ms[which];
}

static double of_move(const prover *s, int from, int to, double bytes) {
  return (s->objective * s->r->move_per_ms + s->r->price_ms[0]) * s->r->ms_per_byte[from][to] * bytes;
}

/* An operator by itself at the cheapest of the places that `at` leaves it: one, or all that its pins allow. */
static double price_operator(const prover *s, const places_operator *o, const int at[STAGES]) {
  const places_report *r = s->r;
  double least = INFINITY;
  for (int way = 0; way < r->count * r->count; way++) {
    const int here[] = {way / r->count, way % r->count};
    double price = r->price_byte[here[0]] * o->both_bytes[here[0]];
    bool possible = true;
    for (int which = 0; which < STAGES; which++) {
      possible = possible && (at[which] == MOST || at[which] == here[which]) && (o->allowed[which] >> here[which] & 1);
      price += of_place(s, which, here[which]) * o->ms[which][here[which]] +
               r->price_byte[here[which]] * o->bytes[which][here[which]];
    }
    if (here[0] != here[1])
      price += r->price_byte[here[1]] * o->both_bytes[here[1]] + of_move(s, here[0], here[1], o->move_bytes);
    if (possible) least = fmin(least, price);
  }
  return least;
}

static double price_whole(const prover *s, const places_shape *shape, const int at[STAGES]) {
  const places_report *r = s->r;
  double price = r->price_byte[at[0]] * (shape->both_bytes[at[0]] + shape->cache_bytes[at[0]]);
  for (int which = 0; which < STAGES; which++)
    price += of_place(s, which, at[which]) * shape->ms[which][at[which]] +
             r->price_byte[at[which]] * shape->weight_bytes[which][at[which]];
  if (at[0] == at[1]) return price;
  return price + r->price_byte[at[1]] * (shape->both_bytes[at[1]] + shape->cache_bytes[at[1]]) +
         of_move(s, at[0], at[1], shape->move_bytes);
}

/* What the part is the first to use. Its bytes count once, for the first stage in which the part is whole: what a stage
 * of a divided part uses may be anywhere. */
static double price_shared(const prover *s, int32_t index, const int at[STAGES]) {
  const places_report *r = s->r;
  double price = 0;
  for (size_t h = 0; h < r->shared_count; h++) {
    bool paid = false;
    for (int which = 0; which < STAGES; which++)
      paid = paid || (s->first[which][h] >= 0 && s->first[which][h] < index);
    for (int which = 0; which < STAGES; which++) {
      if (s->first[which][h] != index || at[which] == MOST) continue;
      price += of_place(s, which, at[which]) * r->shared[h].ms[which][at[which]];
      if (!paid) price += r->price_byte[at[which]] * r->shared[h].bytes[at[which]];
      paid = true;
    }
  }
  return price;
}

/* Infinite: the part cannot be there. */
static double price_part(const prover *s, int32_t index, const int at[STAGES]) {
  const places_shape *shape = s->r->part[index].shape;
  bool divided = false;
  double price = 0;
  for (int which = 0; which < STAGES; which++) {
    const bool possible = at[which] == MOST ? shape->divides[which] : shape->allowed[which] >> at[which] & 1;
    if (!possible) return INFINITY;
    if (at[which] != MOST) continue;
    divided = true;
    price += of_link(s, which) * shape->inner_ms[which];
  }
  for (size_t i = 0; divided && i < shape->operator_count; i++)
    price += price_operator(s, &shape->operator[i], at);
  if (!divided) price = price_whole(s, shape, at);
  return price + price_shared(s, index, at);
}

static double price_message(const prover *s, int which, int from, int to, double bytes) {
  if (from == to || from == MOST || to == MOST) return 0;
  return of_link(s, which) * (s->r->message_ms[from][to] + bytes * s->r->ms_per_byte[from][to]);
}

/* ---- the least sum ----------------------------------------------------------------------------------------------- */

static void find_first(prover *s) {
  for (int which = 0; which < STAGES; which++)
    for (size_t h = 0; h < s->r->shared_count; h++) {
      s->first[which][h] = -1;
      for (size_t i = s->r->part_count; i-- > 0;)
        if (s->r->part[i].shared[which] >> h & 1) s->first[which][h] = (int32_t)i;
    }
}

/* Whether a state is one of this report's, which may have fewer places than `MOST`. */
static bool exists(const places_report *r, int place) {
  return place < r->count || place == MOST;
}

/* Moves `sum` over the messages that one stage's values need to get into part `index`. */
static void pass(const prover *s, int32_t index, int which, double sum[WIDTH][WIDTH]) {
  const double bytes = s->r->part[index].shape->read_bytes[which];
  double next[WIDTH][WIDTH];
  for (int a = 0; a < WIDTH; a++)
    for (int b = 0; b < WIDTH; b++) {
      next[a][b] = INFINITY;
      for (int from = 0; from < WIDTH; from++) {
        const double before = which ? sum[a][from] : sum[from][b];
        if (!isinf(before)) next[a][b] = fmin(next[a][b], before + price_message(s, which, from, which ? b : a, bytes));
      }
    }
  for (int a = 0; a < WIDTH; a++)
    for (int b = 0; b < WIDTH; b++)
      sum[a][b] = next[a][b];
}

/* Before the first part a stage that has no input may begin anywhere. */
static void begin(const prover *s, double sum[WIDTH][WIDTH]) {
  for (int a = 0; a < WIDTH; a++)
    for (int b = 0; b < WIDTH; b++)
      sum[a][b] = (a == 0 || !s->r->has_input[0]) && (b == 0 || !s->r->has_input[1]) ? 0 : INFINITY;
}

static double end(const prover *s, double sum[WIDTH][WIDTH]) {
  double least = INFINITY;
  for (int a = 0; a < WIDTH; a++)
    for (int b = 0; b < WIDTH; b++) {
      const int at[] = {a, b};
      double total = sum[a][b];
      for (int which = 0; which < STAGES; which++)
        if (s->r->has_result[which]) total += price_message(s, which, at[which], 0, s->r->result_bytes[which]);
      least = fmin(least, total);
    }
  return least;
}

/* The prices of the limits, which a plan that keeps them does not exceed. */
static double price_limits(const places_report *r) {
  double sum = 0;
  for (int which = 0; which < STAGES; which++)
    sum += r->price_ms[which] * r->limit_ms[which];
  for (int32_t p = 0; p < r->count; p++)
    sum += r->price_byte[p] * r->certified_bytes[p];
  return sum;
}

static double prove(const places_report *r, double objective) {
  prover s = {.r = r, .objective = objective};
  double sum[WIDTH][WIDTH];
  find_first(&s);
  begin(&s, sum);
  for (size_t i = 0; i < r->part_count; i++) {
    for (int which = 0; which < STAGES; which++)
      if (i > 0 || r->has_input[which]) pass(&s, (int32_t)i, which, sum);
    for (int a = 0; a < WIDTH; a++)
      for (int b = 0; b < WIDTH; b++)
        sum[a][b] = exists(r, a) && exists(r, b) ? sum[a][b] + price_part(&s, (int32_t)i, (int[]){a, b}) : INFINITY;
  }
  return end(&s, sum) - price_limits(r);
}

/* ---- the request ------------------------------------------------------------------------------------------------- */

static lp_status check_objective(const places_report *r) {
  const char *text = NULL;
  double factor[3] = {0}, objective = 0;
  LP_TRY(lp_json_text(LP_MEMBER(r->root, "objective"), &text, r->diag));
  if (!lp_certificate_objective_read(text, factor))
    return refuse(r, "the objective is no sum of cost, latency and energy");
  const double steps[STAGES] = {1, lp_certificate_steps(r->osl)};
  for (int which = 0; which < STAGES; which++) {
    LP_TRY(lp_certificate_places_same(r, "the objective per ms of links", r->link_per_ms[which],
                                      factor[1] * steps[which]));
    for (int32_t p = 0; p < r->count; p++) {
      const double wanted =
          lp_certificate_per_ms(factor, steps[which], which && p ? r->sessions : 1, r->price[p], r->power[p]);
      LP_TRY(lp_certificate_places_same_of(r, "the objective per ms", p, r->busy_per_ms[which][p], wanted));
      objective += r->busy_per_ms[which][p] * r->busy[which][p];
    }
  }
  LP_TRY(lp_certificate_places_same(r, "the objective per ms of moving caches", r->move_per_ms, factor[1]));
  double links[3] = {0};
  static const char *const keys[] = {"prefill_link_ms", "decode_link_ms", "kv_move_ms"};
  for (int i = 0; i < 3; i++)
    LP_TRY(lp_certificate_places_number(r, &r->plan, keys[i], &links[i]));
  objective += r->link_per_ms[0] * links[0] + r->link_per_ms[1] * links[1] + r->move_per_ms * links[2];
  double stated = 0, value = 0;
  LP_TRY(lp_certificate_places_number(r, &r->plan, "objective", &stated));
  LP_TRY(lp_certificate_places_number(r, &r->certificate, "value", &value));
  LP_TRY(lp_certificate_places_same(r, "plan.objective", stated, objective));
  return lp_certificate_places_same(r, "the certificate's value", value, objective);
}

/* The limits are those of the request, and a price belongs to a limit. */
static lp_status check_limits(const places_report *r) {
  static const char *const keys[STAGES] = {"ttft_ms", "tpot_ms"};
  lp_json sla = lp_json_member(r->root, "sla");
  for (int which = 0; which < STAGES; which++) {
    lp_json at = lp_json_member(&sla, keys[which]);
    double limit = 0;
    if (!lp_json_is(&at, LP_JSON_NULL)) LP_TRY(lp_certificate_places_number(r, &sla, keys[which], &limit));
    LP_TRY(lp_certificate_places_same(r, "the certificate's limit of a time", r->limit_ms[which], limit));
    if (r->price_ms[which] > 0 && !(limit > 0)) return refuse(r, "a price belongs to no limit: it proves nothing");
  }
  for (int32_t p = 0; p < r->count; p++) {
    LP_TRY(lp_certificate_places_same_of(r, "the certificate's limit of memory", p, r->certified_bytes[p],
                                         r->limit_bytes[p]));
    if (r->price_byte[p] > 0 && !(r->limit_bytes[p] > 0))
      return refuse(r, "a price belongs to no limit: it proves nothing");
  }
  return LP_OK;
}

/* No part counts more for the message that divides it than the fastest message takes. */
static lp_status check_inner(const places_report *r) {
  double least = INFINITY;
  for (int from = 0; from < r->count; from++)
    for (int to = 0; to < r->count; to++)
      if (from != to) least = fmin(least, r->message_ms[from][to]);
  for (size_t i = 0; i < r->shape_count; i++)
    for (int which = 0; which < STAGES; which++)
      if (r->shape[i].inner_ms[which] > least * (1 + rounding))
        return refuse(r, "a divided part counts more than the fastest message");
  return LP_OK;
}

/* ---- the claims -------------------------------------------------------------------------------------------------- */

/* Reads a number that may be null: infinite. */
static lp_status read_bound(const places_report *r, const lp_json *object, const char *key, double *out) {
  *out = INFINITY;
  return lp_json_is(LP_MEMBER(object, key), LP_JSON_NULL) ? LP_OK : lp_certificate_places_number(r, object, key, out);
}

static lp_status check_gap(const places_report *r, const char *key, double bound, double value, bool feasible) {
  double found = 0;
  if (!feasible) return LP_OK;
  LP_TRY(lp_certificate_places_number(r, &r->plan, key, &found));
  const double wanted = lp_certificate_gap(bound, value);
  if (fabs(found - wanted) <= rounding) return LP_OK;
  return lp_certificate_places_same(r, key, found, wanted);
}

static lp_status check_claims(const places_report *r, const lp_certificate_places_finding *found, double slack) {
  const double proved = found->proved, lower = found->claimed, value = found->objective;
  double stated = 0, certified = 0;
  LP_TRY(read_bound(r, &r->plan, "proved_lower_bound", &stated));
  LP_TRY(read_bound(r, &r->certificate, "bound", &certified));
  if (!(isinf(stated) && isinf(certified)))
    LP_TRY(lp_certificate_places_same(r, "plan.proved_lower_bound", stated, certified));
  if (stated > proved + slack && !(isinf(stated) && isinf(proved)))
    return lp_error_as(LP_MISMATCH, r->diag, LP_LOC_FILE(r->file),
                       "plan.proved_lower_bound is %.12g, only %.12g is proved", stated, proved);
  if (lower < stated - slack) return refuse(r, "plan.lower_bound is below plan.proved_lower_bound");
  if (found->feasible && lower > value + slack)
    return lp_error_as(LP_MISMATCH, r->diag, LP_LOC_FILE(r->file),
                       "plan.lower_bound is %.12g, the plan itself comes to %.12g", lower, value);
  LP_TRY(check_gap(r, "proved_gap", stated, value, found->feasible));
  return check_gap(r, "gap", lower, value, found->feasible);
}

lp_status lp_certificate_places_bound_check(const places_report *r, lp_certificate_places_finding *out) {
  lp_json at = lp_json_member(&r->plan, "proved_lower_bound");
  const double limits = price_limits(r);
  double *proved = &out->proved;
  LP_TRY(lp_json_bool(LP_MEMBER(&r->plan, "feasible"), &out->feasible, r->diag));
  LP_TRY(check_objective(r));
  LP_TRY(check_limits(r));
  LP_TRY(check_inner(r));
  LP_TRY(lp_certificate_places_number(r, &r->plan, "objective", &out->objective));
  LP_TRY(read_bound(r, &r->plan, "lower_bound", &out->claimed));
  *proved = prove(r, 1);
  /* Prices at which even the cheapest way costs more than the limits, without the objective, prove that no plan keeps
   * them. */
  if (lp_json_is(&at, LP_JSON_NULL) && prove(r, 0) > rounding * limits) *proved = INFINITY;
  return check_claims(r, out,
                      rounding * fmax(fabs(out->objective), isinf(*proved) ? 0 : fabs(*proved)) + digits * limits);
}
