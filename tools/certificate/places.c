/* Checks the report of a plan over more than two places: the totals from the figures of places and links, and where the
 * plan divides no part, those figures from the certificate's parts. */
#include "tools/certificate/certificate.h"

#include <math.h>
#include <string.h>

enum { MOST = 8, STAGES = 2 };

static const char *const stage_names[STAGES] = {"prefill", "decode"};

typedef struct {
  const lp_json *root;
  lp_json plan, certificate;
  const char *file;
  lp_diag *diag;
  int32_t count;
  const char *name[MOST];
  double price[MOST], power[MOST], limit_bytes[MOST]; /* limit 0: none */
  double message_ms[MOST][MOST], ms_per_byte[MOST][MOST];
  double osl, batch, sessions;
  double busy[STAGES][MOST], request_ms[MOST], memory[MOST];
  double messages[STAGES][MOST][MOST], bytes[STAGES][MOST][MOST], moved[MOST][MOST];
} report;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static lp_status number(const report *r, const lp_json *object, const char *key, double *out) {
  lp_json at = lp_json_member(object, key);
  return lp_json_number(&at, -INFINITY, INFINITY, out, r->diag);
}

static lp_status number_at(const report *r, const lp_json *object, const char *key, int32_t index, double *out) {
  lp_json list = lp_json_member(object, key), at = lp_json_item(&list, (size_t)index);
  return lp_json_number(&at, -INFINITY, INFINITY, out, r->diag);
}

static lp_status read_places(report *r) {
  lp_json places = lp_json_member(r->root, "places"), of_plan = lp_json_member(&r->plan, "places");
  LP_TRY(lp_json_array(&places, r->diag));
  if (lp_json_count(&places) < 1 || lp_json_count(&places) > MOST || lp_json_count(&of_plan) != lp_json_count(&places))
    return lp_json_error(&of_plan, r->diag, "wanted the places of the report, at most %d", MOST);
  r->count = (int32_t)lp_json_count(&places);
  for (int32_t p = 0; p < r->count; p++) {
    lp_json place = lp_json_item(&places, (size_t)p), own = lp_json_item(&of_plan, (size_t)p);
    lp_json name = lp_json_member(&place, "name"), again = lp_json_member(&own, "name");
    lp_json limit = lp_json_member(&place, "memory_limit_bytes");
    LP_TRY(lp_json_text(&name, &r->name[p], r->diag));
    if (!lp_json_equals(&again, r->name[p])) return lp_json_error(&again, r->diag, "wanted '%.40s'", r->name[p]);
    LP_TRY(number(r, &place, "price_usd_per_s", &r->price[p]));
    LP_TRY(number(r, &place, "power_w", &r->power[p]));
    if (!lp_json_is(&limit, LP_JSON_NULL)) LP_TRY(number(r, &place, "memory_limit_bytes", &r->limit_bytes[p]));
    LP_TRY(number(r, &own, "prefill_ms", &r->busy[0][p]));
    LP_TRY(number(r, &own, "decode_ms", &r->busy[1][p]));
    LP_TRY(number(r, &own, "request_ms", &r->request_ms[p]));
    LP_TRY(number(r, &own, "memory_bytes", &r->memory[p]));
  }
  return LP_OK;
}

static lp_status read_ends(const report *r, const lp_json *link, int32_t *from, int32_t *to) {
  lp_json first = lp_json_member(link, "from"), second = lp_json_member(link, "to");
  LP_TRY(lp_json_choice(&first, r->name, (size_t)r->count, from, r->diag));
  return lp_json_choice(&second, r->name, (size_t)r->count, to, r->diag);
}

static lp_status read_links(report *r) {
  lp_json links = lp_json_member(r->root, "links"), used = lp_json_member(&r->plan, "links");
  LP_TRY(lp_json_array(&links, r->diag));
  LP_TRY(lp_json_array(&used, r->diag));
  for (size_t i = 0; i < lp_json_count(&links); i++) {
    lp_json link = lp_json_item(&links, i);
    int32_t from = 0, to = 0;
    LP_TRY(read_ends(r, &link, &from, &to));
    LP_TRY(number(r, &link, "message_ms", &r->message_ms[from][to]));
    LP_TRY(number(r, &link, "ms_per_byte", &r->ms_per_byte[from][to]));
  }
  for (size_t i = 0; i < lp_json_count(&used); i++) {
    lp_json link = lp_json_item(&used, i);
    int32_t from = 0, to = 0;
    LP_TRY(read_ends(r, &link, &from, &to));
    LP_TRY(number(r, &link, "messages_prefill", &r->messages[0][from][to]));
    LP_TRY(number(r, &link, "messages_decode", &r->messages[1][from][to]));
    LP_TRY(number(r, &link, "bytes_prefill", &r->bytes[0][from][to]));
    LP_TRY(number(r, &link, "bytes_decode", &r->bytes[1][from][to]));
    LP_TRY(number(r, &link, "kv_move_bytes", &r->moved[from][to]));
  }
  return LP_OK;
}

static lp_status read_report(report *r) {
  lp_json workload = lp_json_member(r->root, "workload");
  LP_TRY(number(r, &workload, "osl", &r->osl));
  LP_TRY(number(r, &workload, "batch", &r->batch));
  LP_TRY(number(r, &workload, "sessions", &r->sessions));
  if (!(r->sessions >= 1) || !(r->batch >= 1)) return lp_json_error(&workload, r->diag, "wanted counts of 1 or more");
  LP_TRY(read_places(r));
  return read_links(r);
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static bool is_same(double found, double wanted) {
  return fabs(found - wanted) <= 1e-9 * (fabs(found) + fabs(wanted)) + 1e-15;
}

static lp_status same(const report *r, const char *what, double found, double wanted) {
  if (is_same(found, wanted)) return LP_OK;
  return lp_error_as(LP_MISMATCH, r->diag, LP_LOC_FILE(r->file), "%s is %.12g, should be %.12g", what, found, wanted);
}

static lp_status same_of(const report *r, const char *what, int32_t place, double found, double wanted) {
  char text[120];
  (void)snprintf(text, sizeof text, "%s of %.60s", what, r->name[place]);
  return same(r, text, found, wanted);
}

static lp_status same_figure(const report *r, const char *key, double wanted) {
  char text[80];
  double found = 0;
  (void)snprintf(text, sizeof text, "plan.%s", key);
  LP_TRY(number(r, &r->plan, key, &found));
  return same(r, text, found, wanted);
}

static double link_ms(const report *r, int from, int to, double messages, double bytes) {
  return messages > 0 ? messages * r->message_ms[from][to] + bytes * r->ms_per_byte[from][to] : 0;
}

/* The totals of the plan, from the figures of its places and links. */
static lp_status check_totals(const report *r, certificate_places_finding *out) {
  const double steps = r->osl > 1 ? r->osl - 1 : 0;
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
    LP_TRY(same_of(r, "request_ms", p, r->request_ms[p], r->busy[0][p] + steps * r->busy[1][p] / runs));
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
static lp_status check_limits(const report *r, const certificate_places_finding *found) {
  static const char *const keys[STAGES] = {"ttft_ms", "tpot_ms"};
  lp_json sla = lp_json_member(r->root, "sla"), feasible = lp_json_member(&r->plan, "feasible");
  bool claims = false;
  LP_TRY(lp_json_bool(&feasible, &claims, r->diag));
  for (int which = 0; claims && which < STAGES; which++) {
    lp_json at = lp_json_member(&sla, keys[which]);
    double limit = 0;
    if (lp_json_is(&at, LP_JSON_NULL)) continue;
    LP_TRY(number(r, &sla, keys[which], &limit));
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

/* ---- the parts --------------------------------------------------------------------------------------------------- */

typedef struct {
  double busy[STAGES][MOST], bytes[STAGES][MOST][MOST];
  unsigned used[STAGES][MOST]; /* [place] bits of what parts share */
  int32_t last[STAGES];        /* the place of the part before */
} sums;

static lp_status add_part(const report *r, const lp_json *part, bool is_first, sums *s, bool *divides) {
  lp_json shapes = lp_json_member(&r->certificate, "shapes"), at = lp_json_member(part, "shape");
  lp_json inputs = lp_json_member(&r->certificate, "has_input");
  int32_t index = 0;
  LP_TRY(lp_json_i32(&at, 0, (int32_t)lp_json_count(&shapes) - 1, &index, r->diag));
  lp_json shape = lp_json_item(&shapes, (size_t)index);
  for (int which = 0; which < STAGES; which++) {
    static const char *const shared_names[STAGES] = {"prefill_shared", "decode_shared"};
    lp_json own = lp_json_member(&shape, stage_names[which]), where = lp_json_member(part, stage_names[which]);
    lp_json shared = lp_json_member(part, shared_names[which]), reads_input = lp_json_item(&inputs, (size_t)which);
    double ms = 0, bytes = 0;
    int32_t place = 0;
    bool reads = !is_first;
    LP_TRY(lp_json_i32(&where, -1, r->count - 1, &place, r->diag));
    if (place < 0) {
      *divides = true;
      return LP_OK;
    }
    LP_TRY(number_at(r, &own, "ms", place, &ms));
    LP_TRY(number(r, &own, "read_bytes", &bytes));
    if (is_first) LP_TRY(lp_json_bool(&reads_input, &reads, r->diag));
    s->busy[which][place] += ms;
    if (reads && s->last[which] != place) s->bytes[which][s->last[which]][place] += bytes;
    s->last[which] = place;
    for (size_t i = 0; i < lp_json_count(&shared); i++) {
      lp_json item = lp_json_item(&shared, i);
      int32_t number = 0;
      LP_TRY(lp_json_i32(&item, 0, MOST - 1, &number, r->diag));
      s->used[which][place] |= 1U << number;
    }
  }
  return LP_OK;
}

static lp_status add_shared(const report *r, sums *s) {
  static const char *const keys[STAGES] = {"prefill_ms", "decode_ms"};
  lp_json shared = lp_json_member(&r->certificate, "shared");
  for (size_t i = 0; i < lp_json_count(&shared) && i < MOST; i++) {
    lp_json own = lp_json_item(&shared, i);
    for (int which = 0; which < STAGES; which++)
      for (int32_t p = 0; p < r->count; p++) {
        double ms = 0;
        if (!(s->used[which][p] >> i & 1)) continue;
        LP_TRY(number_at(r, &own, keys[which], p, &ms));
        s->busy[which][p] += ms;
      }
  }
  return LP_OK;
}

static lp_status add_results(const report *r, sums *s) {
  lp_json has = lp_json_member(&r->certificate, "has_result");
  for (int which = 0; which < STAGES; which++) {
    lp_json item = lp_json_item(&has, (size_t)which);
    bool crosses = false;
    double bytes = 0;
    LP_TRY(lp_json_bool(&item, &crosses, r->diag));
    LP_TRY(number_at(r, &r->certificate, "result_bytes", which, &bytes));
    if (crosses && s->last[which]) s->bytes[which][s->last[which]][0] += bytes;
  }
  return LP_OK;
}

static lp_status compare_sums(const report *r, const sums *s) {
  static const char *const names[STAGES] = {"prefill_ms", "decode_ms"};
  for (int which = 0; which < STAGES; which++)
    for (int32_t p = 0; p < r->count; p++) {
      LP_TRY(same_of(r, names[which], p, r->busy[which][p], s->busy[which][p]));
      for (int32_t to = 0; to < r->count; to++)
        LP_TRY(same_of(r, which ? "bytes_decode from and to others" : "bytes_prefill from and to others", p,
                       r->bytes[which][p][to], s->bytes[which][p][to]));
    }
  return LP_OK;
}

/* The times of places and the bytes between them, from the parts. A plan that divides a part has none of the figures
 * of its halves in the certificate. */
static lp_status check_parts(const report *r, bool *divides) {
  sums s = {0};
  lp_json parts = lp_json_member(&r->certificate, "parts");
  LP_TRY(lp_json_array(&parts, r->diag));
  *divides = false;
  for (size_t i = 0; i < lp_json_count(&parts) && !*divides; i++) {
    lp_json part = lp_json_item(&parts, i);
    LP_TRY(add_part(r, &part, i == 0, &s, divides));
  }
  if (*divides) return LP_OK;
  LP_TRY(add_shared(r, &s));
  LP_TRY(add_results(r, &s));
  return compare_sums(r, &s);
}

lp_status certificate_places_check(const lp_json *root, const char *file, certificate_places_finding *out,
                                   lp_diag *diag) {
  report r = {.root = root, .file = file, .diag = diag};
  r.plan = lp_json_member(root, "plan");
  r.certificate = lp_json_member(root, "certificate");
  *out = (certificate_places_finding){0};
  LP_TRY(lp_json_object(&r.plan, diag));
  LP_TRY(lp_json_object(&r.certificate, diag));
  LP_TRY(read_report(&r));
  LP_TRY(check_totals(&r, out));
  LP_TRY(check_limits(&r, out));
  return check_parts(&r, &out->divides);
}
