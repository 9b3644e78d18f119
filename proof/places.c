/* Checks the report of a plan over more than two places: adds up its totals from the figures of places and links, and
 * compares them with the limits. */
#include "proof/places.h"

static lp_status same_figure(const places_report *r, const char *key, double wanted) {
  char text[80];
  double found = 0;
  (void)snprintf(text, sizeof text, "plan.%s", key);
  LP_TRY(lp_certificate_places_number(r, &r->plan, key, &found));
  return lp_certificate_places_same(r, text, found, wanted);
}

static double link_ms(const places_report *r, int from, int to, double messages, double bytes) {
  return messages > 0 ? messages * r->message_ms[from][to] + bytes * r->ms_per_byte[from][to] : 0;
}

/* The totals of the plan, from the figures of its places and links. */
static lp_status check_totals(const places_report *r, lp_certificate_places_finding *out) {
  const double steps = lp_certificate_steps(r->osl);
  double links[STAGES] = {0, 0}, busy[STAGES] = {0, 0}, moves = 0, cost = 0, energy = 0;
  for (int from = 0; from < r->count; from++)
    for (int to = 0; to < r->count; to++) {
      for (int which = 0; which < STAGES; which++)
        links[which] += link_ms(r, from, to, r->messages[which][from][to], r->bytes[which][from][to]);
      moves += link_ms(r, from, to, r->moved[from][to] > 0, r->moved[from][to]);
    }
  for (int32_t p = 0; p < r->count; p++) {
    const double runs = p ? r->sessions : 1;
    for (int which = 0; which < STAGES; which++)
      busy[which] += r->busy[which][p];
    LP_TRY(lp_certificate_places_same_of(r, "request_ms", p, r->request_ms[p],
                                         r->busy[0][p] + steps * r->busy[1][p] / runs));
    cost += 1e-3 * r->request_ms[p] * r->price[p];
    energy += 1e-3 * r->request_ms[p] * r->power[p];
  }
  out->ms[0] = busy[0] + links[0] + moves;
  out->ms[1] = busy[1] + links[1];
  out->cost = cost;
  LP_TRY(same_figure(r, "prefill_link_ms", links[0]));
  LP_TRY(same_figure(r, "decode_link_ms", links[1]));
  LP_TRY(same_figure(r, "kv_move_ms", moves));
  LP_TRY(same_figure(r, "ttft_ms", out->ms[0]));
  LP_TRY(same_figure(r, "tpot_ms", out->ms[1]));
  LP_TRY(same_figure(r, "e2e_ms", out->ms[0] + steps * out->ms[1]));
  LP_TRY(same_figure(r, "cost_usd", cost));
  LP_TRY(same_figure(r, "energy_j", energy));
  return same_figure(r, "cost_per_mtok_usd", cost / (r->batch * (r->osl > 0 ? r->osl : 1)) * 1e6);
}

/* A plan that is said to be feasible is within the SLA and each place's memory. */
static lp_status check_limits(const places_report *r, const lp_certificate_places_finding *found) {
  static const char *const keys[STAGES] = {"ttft_ms", "tpot_ms"};
  lp_json sla = lp_json_member(r->root, "sla"), feasible = lp_json_member(&r->plan, "feasible");
  bool claims = false;
  LP_TRY(lp_json_bool(&feasible, &claims, r->diag));
  for (int which = 0; claims && which < STAGES; which++) {
    double limit = 0;
    if (lp_json_is(LP_MEMBER(&sla, keys[which]), LP_JSON_NULL)) continue;
    LP_TRY(lp_certificate_places_number(r, &sla, keys[which], &limit));
    if (found->ms[which] > limit * (1 + 1e-9))
      return lp_error_as(LP_MISMATCH, r->diag, LP_LOC_FILE(r->file), "%s of %.9g is not within the SLA of %.9g",
                         keys[which], found->ms[which], limit);
  }
  for (int32_t p = 0; claims && p < r->count; p++)
    if (r->limit_bytes[p] > 0 && r->memory[p] > r->limit_bytes[p] * (1 + 1e-9))
      return lp_error_as(LP_MISMATCH, r->diag, LP_LOC_FILE(r->file), "%.60s needs %.9g bytes and has %.9g", r->name[p],
                         r->memory[p], r->limit_bytes[p]);
  return LP_OK;
}

static lp_status check(places_report *r, lp_certificate_places_finding *out) {
  LP_TRY(lp_json_object(&r->plan, r->diag));
  LP_TRY(lp_json_object(&r->certificate, r->diag));
  LP_TRY(lp_certificate_places_read(r));
  LP_TRY(check_totals(r, out));
  LP_TRY(check_limits(r, out));
  LP_TRY(lp_certificate_places_parts_check(r, &out->divides));
  return lp_certificate_places_bound_check(r, out);
}

lp_status lp_certificate_places_check(const lp_json *root, const char *file, lp_certificate_places_finding *out,
                                      lp_diag *diag) {
  places_report r = {.root = root, .file = file, .diag = diag, .arena = lp_arena_create()};
  r.plan = lp_json_member(root, "plan");
  r.certificate = lp_json_member(root, "certificate");
  *out = (lp_certificate_places_finding){0};
  lp_status status = check(&r, out);
  lp_arena_free(r.arena);
  return status;
}
