/* Reads the request of a report, and compares it with the basis of the certificate: objective, limits, link. */
#include "proof/certificate.h"

#include <math.h>

static const char *const sides[] = {"device", "cloud"};

static double number_of(const lp_json *object, const char *key) {
  double value = 0;
  return lp_json_number(LP_MEMBER(object, key), -INFINITY, INFINITY, &value, NULL) == LP_OK ? value : 0;
}

static double known_or_nan(const lp_json *object, const char *key) {
  double value = NAN;
  return lp_json_number(LP_MEMBER(object, key), -INFINITY, INFINITY, &value, NULL) == LP_OK ? value : NAN;
}

static void read_device(const lp_json *report, lp_certificate_request *r) {
  const lp_json device = lp_json_member(report, "device"), link = lp_json_member(report, "link");
  r->idle_w = known_or_nan(&device, "idle_power_w");
  r->purchase_usd = known_or_nan(&device, "purchase_usd");
  r->life_years = known_or_nan(&device, "life_years");
  r->usd_per_kwh = known_or_nan(&device, "energy_usd_per_kwh");
  r->radio_bit_j[0] = known_or_nan(&link, "radio_up_j_per_bit");
  r->radio_bit_j[1] = known_or_nan(&link, "radio_down_j_per_bit");
  r->radio_w = known_or_nan(&link, "radio_awake_w");
  r->radio_tail_j = known_or_nan(&link, "radio_tail_j");
}

bool lp_certificate_objective_read(const char *text, double factor[3]) {
  static const char *const names[] = {"cost", "latency", "energy"};
  for (;;) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '*')
      value = 1;
    else
      text = end + 1;
    size_t length = strcspn(text, "+"), i = 0;
    while (i < 3 && !(strlen(names[i]) == length && strncmp(text, names[i], length) == 0))
      i++;
    if (i == 3) return false;
    factor[i] += value;
    if (!text[length]) return true;
    text += length + 1;
  }
}

double lp_certificate_steps(double osl) {
  return osl > 1 ? osl - 1 : 0;
}

double lp_certificate_per_ms(const double factor[3], double steps, double sessions, double price, double power) {
  return steps * (1e-3 / sessions * (factor[0] * price + factor[2] * power) + factor[1]);
}

static void read_request(const lp_json *report, lp_certificate_request *r) {
  read_device(report, r);
  lp_json workload = lp_json_member(report, "workload"), sla = lp_json_member(report, "sla"),
          link = lp_json_member(report, "link");
  lp_json exits = lp_json_member(report, "exits"), mode = lp_json_member(&exits, "mode");
  r->exits = lp_json_equals(&mode, "full") ? NULL : lp_json_text_or(&mode, NULL);
  r->exit_rate = number_of(&exits, "rate");
  r->row_share = number_of(&exits, "row_share");
  r->drafts = number_of(&exits, "drafts");
  r->layer_runs = number_of(&exits, "layer_runs_per_token");
  r->isl = number_of(&workload, "isl");
  r->osl = number_of(&workload, "osl");
  r->batch = number_of(&workload, "batch");
  r->sessions = number_of(&workload, "sessions");
  r->sla_ms[0] = number_of(&sla, "ttft_ms");
  r->sla_ms[1] = number_of(&sla, "tpot_ms");
  r->has_link = lp_json_is(&link, LP_JSON_OBJECT);
  r->rtt_ms = number_of(&link, "rtt_ms");
  r->bps[0] = number_of(&link, "up_bps");
  r->bps[1] = number_of(&link, "down_bps");
  r->loss = number_of(&link, "loss");
  r->quantile = number_of(&link, "quantile");
  for (int side = 0; side < 2; side++) {
    lp_json machine = lp_json_member(report, sides[side]), kind = lp_json_member(&machine, "kind");
    r->price[side] = number_of(&machine, "price_usd_per_s");
    r->power[side] = number_of(&machine, "power_w");
    r->memory[side] = number_of(&machine, "memory_bytes");
    r->memory_limit[side] = number_of(&machine, "memory_limit_bytes");
    r->load[side] = number_of(&machine, "load_bandwidth_bytes_per_s");
    r->is_gpu[side] = lp_json_equals(&kind, "gpu");
  }
}

static lp_status differ(const lp_certificate_request *r, lp_diag *diag, const char *what, double found, double wanted) {
  return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(r->file), "certificate: %s is %.12g, the request gives %.12g", what,
                     found, wanted);
}

static lp_status check_objective(const lp_certificate *c, const lp_certificate_request *r, lp_diag *diag) {
  const double steps[] = {1, lp_certificate_steps(r->osl)};
  for (int w = 0; w < 2; w++) {
    if (!lp_certificate_near(c->link[w], r->factor[1] * steps[w]))
      return differ(r, diag, "the objective per ms of the link", c->link[w], r->factor[1] * steps[w]);
    for (int side = 0; side < 2; side++) {
      const double wanted =
          lp_certificate_per_ms(r->factor, steps[w], w && side ? r->sessions : 1, r->price[side], r->power[side]);
      if (!lp_certificate_near(c->busy[w][side], wanted))
        return differ(r, diag, "the objective per ms of a machine", c->busy[w][side], wanted);
    }
  }
  return lp_certificate_near(c->move, r->factor[1])
             ? LP_OK
             : differ(r, diag, "the objective per ms of moving caches", c->move, r->factor[1]);
}

/* A limit of memory that everything together does not reach may be absent. Only the device's limit can be another than
 * its memory. */
static lp_status check_limits(const lp_certificate *c, const lp_certificate_request *r, lp_diag *diag) {
  if (!lp_certificate_near(r->memory_limit[1], r->memory[1]))
    return differ(r, diag, "the cloud's limit of memory", r->memory_limit[1], r->memory[1]);
  for (int i = 0; i < 2; i++) {
    bool may_be_absent = r->memory_limit[i] <= 0 || lp_certificate_most_bytes(c, i) <= r->memory_limit[i];
    if (!lp_certificate_near(c->limit_ms[i], r->sla_ms[i]))
      return differ(r, diag, i ? "the limit of TPOT" : "the limit of TTFT", c->limit_ms[i], r->sla_ms[i]);
    if (!lp_certificate_near(c->limit_bytes[i], r->memory_limit[i]) && !(c->limit_bytes[i] == 0 && may_be_absent))
      return differ(r, diag, "the limit of memory", c->limit_bytes[i], r->memory_limit[i]);
  }
  return LP_OK;
}

static lp_status check_link(const lp_certificate *c, const lp_certificate_request *r, lp_diag *diag) {
  if (!lp_certificate_near(c->message_ms, r->rtt_ms / 2))
    return differ(r, diag, "the time of a message", c->message_ms, r->rtt_ms / 2);
  for (int side = 0; side < 2; side++) {
    if (r->has_link && !(r->bps[side] > 0))
      return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(r->file), "link: there is no bandwidth %s",
                         side ? "down" : "up");
    double wanted = r->has_link ? 8e3 / (r->bps[side] * (1 - r->loss)) : 0;
    if (fabs(c->ms_per_byte[side] - wanted) > 1e-9 * wanted) /* a difference of two times of messages */
      return differ(r, diag, "the time of a byte", c->ms_per_byte[side], wanted);
  }
  return LP_OK;
}

/* The figure of the request that a fix changes; NaN: a fix does not change it. */
static double figure_of(const lp_certificate_request *r, const lp_json *change) {
  const struct {
    const char *name;
    double value;
  } figures[] = {{"ttft_ms", r->sla_ms[0]}, {"tpot_ms", r->sla_ms[1]}, {"device_memory_bytes", r->memory_limit[0]},
                 {"rtt_ms", r->rtt_ms},     {"up_bps", r->bps[0]},     {"down_bps", r->bps[1]}};
  for (size_t i = 0; i < LP_COUNT(figures); i++)
    if (lp_json_equals(change, figures[i].name)) return figures[i].value;
  return NAN;
}

/* Checks that the fixes begin at figures of the request and relax them. Fixes of weight types have texts in place of
 * numbers. */
static lp_status check_fixes(const lp_json *report, const lp_certificate_request *r, lp_diag *diag) {
  lp_json fixes = lp_json_member(report, "fixes");
  for (size_t i = 0; i < lp_json_count(&fixes); i++) {
    lp_json fix = lp_json_item(&fixes, i), change = lp_json_member(&fix, "change"), from = lp_json_member(&fix, "from"),
            to = lp_json_member(&fix, "to");
    double before, after, wanted = figure_of(r, &change);
    if (isnan(wanted) && lp_json_text_or(&from, NULL) && lp_json_text_or(&to, NULL)) continue;
    if (lp_json_number(&from, 0, INFINITY, &before, NULL) == LP_OK &&
        lp_json_number(&to, 0, INFINITY, &after, NULL) == LP_OK && lp_certificate_near(before, wanted) &&
        (lp_json_equals(&change, "rtt_ms") ? after < before : after > before))
      continue;
    return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(r->file), "fixes[%zu] does not relax a figure of the request", i);
  }
  return LP_OK;
}

lp_status lp_certificate_request_check(const lp_certificate *c, const char *file, lp_certificate_request *out,
                                       lp_diag *diag) {
  lp_json report = lp_json_root(file, c->report), objective = lp_json_member(&report, "objective");
  const char *text = lp_json_text_or(&objective, "cost");
  *out = (lp_certificate_request){.file = file, .is_cost = lp_streq(text, "cost")};
  read_request(&report, out);
  if (!lp_certificate_objective_read(text, out->factor))
    return lp_error(diag, LP_LOC_FILE(file), "'%s' is no sum of cost, latency and energy", text);
  if (!(out->batch >= 1) || !(out->sessions >= 1) || !(out->isl >= 1) || !(out->osl >= 0))
    return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "the workload has no tokens, sequences or sessions");
  if (!(out->loss >= 0) || !(out->loss < 1))
    return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "the link loses a share of %g", out->loss);
  LP_TRY(check_objective(c, out, diag));
  LP_TRY(check_limits(c, out, diag));
  LP_TRY(check_link(c, out, diag));
  if (c->streams && (!out->has_link || !lp_certificate_may_stream(c)))
    return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "certificate: no decode streams with this request");
  if (out->exits && lp_streq(out->exits, "threshold") && out->drafts != 1)
    return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "exits.drafts is %g in a mode without drafts",
                       out->drafts);
  if (out->exits && lp_streq(out->exits, "threshold") && !(out->layer_runs > 0 && out->layer_runs <= 1))
    return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "exits.layer_runs_per_token is %g, wanted a share",
                       out->layer_runs);
  return check_fixes(&report, out, diag);
}
