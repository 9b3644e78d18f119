/* Checks that a report keeps the promises of its certificate: its value, its lower bound, its figures. */
#include "proof/certificate.h"

#include <math.h>

/* Numbers of the report have 12 digits. */
static const double rounding = 1e-11;

static lp_status refuse(const char *file, lp_diag *diag, const char *what) {
  return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "%s", what);
}

/* Checks that the plan keeps pins and caches and has the value that the certificate states. */
static lp_status check_plan(const lp_certificate *c, const lp_certificate_totals *t, const char *file, lp_diag *diag) {
  if (!t->pinned) return refuse(file, diag, "a pinned operator is elsewhere");
  if (!t->caches) return refuse(file, diag, "a KV cache is used from both sides");
  if (lp_certificate_near(t->value, c->value)) return LP_OK;
  return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "the plan comes to %.12g, the certificate says %.12g",
                     t->value, c->value);
}

/* Checks that the prices prove exactly the bound that the certificate states. */
static lp_status check_bound(const lp_certificate *c, double bound, const char *file, lp_diag *diag) {
  for (int i = 0; i < 2; i++)
    if (c->price_ms[i] < 0 || c->price_bytes[i] < 0)
      return refuse(file, diag, "a price is negative: it proves nothing");
  for (int i = 0; i < 2; i++)
    if ((c->price_ms[i] > 0 && c->limit_ms[i] <= 0) || (c->price_bytes[i] > 0 && c->limit_bytes[i] <= 0))
      return refuse(file, diag, "a price belongs to no limit: it proves nothing");
  if (isnan(bound))
    return refuse(file, diag, "the bound is not proved: reads are charged more than one message along a path");
  if (fabs(bound - c->bound) <= 1e-9 * fmax(fabs(c->bound), fabs(c->value))) return LP_OK;
  return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "the prices prove %.12g, the certificate says %.12g", bound,
                     c->bound);
}

static double prove_one(const lp_certificate *c, double aim, double known) {
  const double bound = lp_certificate_bound(c);
  if (bound >= aim - rounding * fabs(aim)) return aim;
  return fmin(aim, fmax(bound, lp_certificate_search_above(c, aim, fmax(bound, known))));
}

/* What the prices prove, or a search that aims at `aim`: at most that. A search that proves no more than `known` may
 * end early. Placements that stream cost less than in the problem of all, so they are one by themselves. */
static double prove_towards(const lp_certificate *c, double aim, double known) {
  const lp_arena_mark mark = lp_arena_here(c->arena);
  lp_certificate streamed;
  const double proved = prove_one(c, aim, known);
  if (!c->streams || proved <= known) return proved;
  const double stall = c->link[1] * lp_certificate_stall_ms(c);
  const bool any = lp_certificate_stream(c, &streamed);
  const double of_streams = any ? prove_one(&streamed, aim - stall, known - stall) + stall : INFINITY;
  lp_arena_rewind(c->arena, mark);
  return fmin(proved, of_streams);
}

double lp_certificate_prove(const lp_certificate *c, double wanted, double aim) {
  const double proved = prove_towards(c, aim, -INFINITY);
  return proved >= wanted - rounding * fabs(wanted) ? wanted : proved;
}

double lp_certificate_find_bound(const lp_certificate *c, double claimed, double least, double *aim) {
  /* As shares: a gap up to which no better bound is looked for, and what a bound may lack of the claimed one. */
  static const double close = 1e-2, lacks = 1e-3;
  const bool is_close = claimed >= least - close * fabs(least);
  *aim = is_close ? claimed : fmax(claimed, least);
  const double found = prove_towards(c, *aim, -INFINITY);
  if (is_close || found >= claimed - lacks * fabs(claimed)) return found;
  const double proved = prove_towards(c, claimed, found);
  if (proved > found) *aim = claimed;
  return fmax(proved, found);
}

/* The objective of a plan; infinite: the sides do not fit the units. */
static double value_of(const lp_certificate *c, const lp_certificate_sides *sides) {
  const lp_arena_mark mark = lp_arena_here(c->arena);
  int32_t *kept[2];
  for (int w = 0; w < 2; w++) {
    kept[w] = LP_NEW_ARRAY(c->arena, int32_t, c->stages[w].unit_count);
    for (size_t i = 0; i < c->stages[w].unit_count; i++)
      kept[w][i] = c->stages[w].units[i].side;
  }
  const double value = lp_certificate_place(c, sides) ? lp_certificate_add_up(c).value : INFINITY;
  for (int w = 0; w < 2; w++)
    for (size_t i = 0; i < c->stages[w].unit_count; i++)
      c->stages[w].units[i].side = kept[w][i];
  lp_arena_rewind(c->arena, mark);
  return value;
}

double lp_certificate_least_value(const lp_certificate *c) {
  return c->cheapest.name ? fmin(c->value, value_of(c, &c->cheapest)) : c->value;
}

/* Reads the lower bound that the report states, which is at most the plan's value; without one, sets `out` to what the
 * prices prove. */
static lp_status read_claim(const lp_certificate *c, double bound, double value, const char *file, double *out,
                            lp_diag *diag) {
  lp_json report = lp_json_root(file, c->report), plan = lp_json_member(&report, "plan"),
          at = lp_json_member(&plan, "lower_bound");
  *out = fmin(bound, value);
  if (!lp_json_is_given(&at)) {
    if (c->streams) *out = lp_certificate_prove(c, *out, *out);
    return LP_OK;
  }
  LP_TRY(lp_json_number(&at, -INFINITY, INFINITY, out, diag));
  if (*out <= value + rounding * fabs(value)) return LP_OK;
  return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "plan.lower_bound is %.12g, the plan itself comes to %.12g",
                     *out, value);
}

/* The proof comes last, because it takes most of the time. */
lp_status lp_certificate_check(lp_certificate *c, const char *file, lp_certificate_finding *out, lp_diag *diag) {
  const lp_certificate_totals t = lp_certificate_add_up(c);
  const double bound = lp_certificate_bound(c);
  lp_certificate_request request;
  *out = (lp_certificate_finding){.totals = t};
  LP_TRY(check_plan(c, &t, file, diag));
  LP_TRY(check_bound(c, bound, file, diag));
  LP_TRY(lp_certificate_request_check(c, file, &request, diag));
  LP_TRY(lp_certificate_operators_check(c, file, diag));
  LP_TRY(read_claim(c, bound, t.value, file, &out->bound, diag));
  LP_TRY(lp_certificate_figures_check(c, &request, out->bound, out, diag));
  const double proved = lp_certificate_prove(c, out->bound, isnan(c->aim) ? out->bound : c->aim);
  if (proved >= out->bound) return LP_OK;
  return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "plan.lower_bound is %.12g, only %.12g is proved",
                     out->bound, proved);
}

int lp_certificate_move(lp_certificate *c, int which, size_t index, int side) {
  lp_certificate_unit *u = &c->stages[which].units[index];
  int moved = u->side != side;
  u->side = side;
  for (size_t k = 0; k < u->hold_count; k++) {
    if (!c->holdings[u->hold[k]].cache) continue;
    for (size_t i = 0; i < c->stages[which].unit_count; i++) {
      lp_certificate_unit *other = &c->stages[which].units[i];
      for (size_t h = 0; h < other->hold_count; h++) {
        if (other->hold[h] != u->hold[k] || other->side == side) continue;
        other->side = side;
        moved++;
      }
    }
  }
  return moved;
}
