/* Recomputes every figure of a plan, of the plans that the report compares it with, and of its bound. */
#include "proof/certificate.h"

#include <math.h>

typedef struct {
  const char *key;
  double value;
} figure;

enum { MOST_FIGURES = 56, MOST_UNKNOWN = 16 };
typedef struct {
  figure list[MOST_FIGURES];
  const char *unknown[MOST_UNKNOWN]; /* figures that the machines' and the link's files do not determine: null */
  size_t count, unknown_count;
  const char *binding; /* NULL: feasible */
} figures;

static void add(figures *f, const char *key, double value) {
  f->list[f->count++] = (figure){key, value};
}

static double find(const figures *f, const char *key) {
  size_t i = 0;
  while (i < f->count && !lp_streq(f->list[i].key, key))
    i++;
  return i < f->count ? f->list[i].value : NAN;
}

/* ---- the figures of a placement ---------------------------------------------------------------------------------- */

static void add_times(const lp_certificate_request *r, const lp_certificate_totals *t, double steps, figures *f) {
  add(f, "ttft_ms", t->ms[0]);
  add(f, "tpot_ms", t->ms[1]);
  add(f, "e2e_ms", t->ms[0] + steps * t->ms[1]);
  add(f, "prefill_device_ms", t->busy[0][0]);
  add(f, "prefill_cloud_ms", t->busy[0][1]);
  add(f, "prefill_link_ms", t->link_ms[0]);
  add(f, "decode_device_ms", t->busy[1][0]);
  add(f, "decode_cloud_ms", t->busy[1][1]);
  add(f, "decode_link_ms", t->link_ms[1]);
  add(f, "kv_move_ms", t->move_ms);
  add(f, "device_busy_ms", t->busy[0][0] + steps * t->busy[1][0]);
  add(f, "cloud_busy_ms", t->busy[0][1] + steps * t->busy[1][1] / r->sessions);
}

static void add_traffic(const lp_certificate_totals *t, double steps, figures *f) {
  static const char *const bytes[] = {"bytes_up", "bytes_down"};
  static const char *const crossings[] = {"crossings_prefill", "crossings_decode"};
  static const char *const messages[] = {"messages_prefill", "messages_decode"};
  for (int i = 0; i < 2; i++) {
    add(f, bytes[i], t->sent[0][i] + steps * t->sent[1][i] + t->moved[i]);
    add(f, crossings[i], t->crossings[i]);
    add(f, messages[i], t->messages[i]);
  }
}

static void add_costs(const lp_certificate_request *r, figures *f) {
  const double busy[] = {find(f, "device_busy_ms"), find(f, "cloud_busy_ms")};
  const double cost = 1e-3 * (busy[0] * r->price[0] + busy[1] * r->price[1]);
  add(f, "cost_usd", cost);
  add(f, "cost_per_mtok_usd", cost / (r->batch * fmax(r->osl, 1)) * 1e6);
  add(f, "energy_j", 1e-3 * (busy[0] * r->power[0] + busy[1] * r->power[1]));
}

static void add_known(figures *f, const char *key, double value) {
  if (isnan(value))
    f->unknown[f->unknown_count++] = key;
  else
    add(f, key, value);
}

/* What the device takes besides computing. */
static void add_device(const lp_certificate_request *r, figures *f) {
  const double busy_ms = find(f, "device_busy_ms"), e2e_ms = find(f, "e2e_ms"), up = find(f, "bytes_up"),
               down = find(f, "bytes_down"), waiting_ms = fmax(0, e2e_ms - busy_ms);
  const double busy = 1e-3 * busy_ms * r->power[0], waiting = waiting_ms > 0 ? 1e-3 * waiting_ms * r->idle_w : 0;
  const double awake_ms = find(f, "messages_decode") > 0 ? e2e_ms : find(f, "ttft_ms");
  const double radio = up + down > 0 ? 8 * (up * r->radio_bit_j[0] + down * r->radio_bit_j[1]) +
                                           1e-3 * awake_ms * r->radio_w + r->radio_tail_j
                                     : 0;
  const double years = 1e-3 * (busy_ms + waiting_ms) / (365.25 * 86400), energy = busy + waiting + radio;
  const double purchase = r->purchase_usd > 0 ? years * r->purchase_usd / r->life_years : r->purchase_usd;
  const double price = energy / 3.6e6 * r->usd_per_kwh;
  add_known(f, "device_energy_j", energy);
  add_known(f, "device_busy_j", busy);
  add_known(f, "device_waiting_j", waiting);
  add_known(f, "device_radio_j", radio);
  add(f, "cloud_energy_j", 1e-3 * find(f, "cloud_busy_ms") * r->power[1]);
  add_known(f, "device_purchase_usd", purchase);
  add_known(f, "device_energy_usd", price);
  add_known(f, "device_cost_usd", purchase + price);
  add_known(f, "total_cost_usd", find(f, "cost_usd") + purchase + price);
}

/* The limit that is exceeded most; of equal ones the first in the order of reports. */
static const char *find_binding(const lp_certificate_request *r, const lp_certificate_totals *t) {
  const struct {
    const char *name;
    double value, limit;
  } all[] = {{"device_memory", t->bytes[0], r->memory_limit[0]},
             {"cloud_memory", t->bytes[1], r->memory_limit[1]},
             {"ttft", t->ms[0], r->sla_ms[0]},
             {"tpot", t->ms[1], r->sla_ms[1]}};
  const char *name = NULL;
  double worst = 1 + 1e-12;
  for (size_t i = 0; i < LP_COUNT(all); i++) {
    if (all[i].limit <= 0 || all[i].value / all[i].limit <= worst) continue;
    worst = all[i].value / all[i].limit;
    name = all[i].name;
  }
  return name;
}

/* Adds the TTFT of a request for which weights load, if each machine that has weights states its rate of loading. A GPU
 * computes after its weights came, a processor while they come. */
static void add_cold(const lp_certificate_request *r, const lp_certificate_totals *t, figures *f) {
  double before = 0, beside = 0;
  for (int side = 0; side < 2; side++) {
    if (t->weights[side] <= 0) continue;
    if (r->load[side] <= 0) return;
    double ms = 1e3 * t->weights[side] / r->load[side];
    if (r->is_gpu[side])
      before = fmax(before, ms);
    else
      beside = fmax(beside, ms);
  }
  const double cold_ms = fmax(before + t->ms[0], beside), more_ms = cold_ms - t->ms[0];
  const double loading_ms = fmin(t->weights[0] > 0 ? 1e3 * t->weights[0] / r->load[0] : 0, more_ms);
  add(f, "cold_ttft_ms", cold_ms);
  add_known(f, "cold_device_energy_j",
            find(f, "device_energy_j") + 1e-3 * loading_ms * r->power[0] +
                (more_ms > loading_ms ? 1e-3 * (more_ms - loading_ms) * r->idle_w : 0));
}

static figures figures_of(const lp_certificate_request *r, const lp_certificate_totals *t) {
  figures f = {.binding = find_binding(r, t)};
  const double steps = lp_certificate_steps(r->osl);
  add_times(r, t, steps, &f);
  add_traffic(t, steps, &f);
  add_costs(r, &f);
  add_device(r, &f);
  add(&f, "device_weight_bytes", t->weights[0]);
  add(&f, "cloud_weight_bytes", t->weights[1]);
  add(&f, "device_memory_bytes", t->bytes[0]);
  add(&f, "cloud_memory_bytes", t->bytes[1]);
  return f;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static lp_status differs(const lp_certificate_request *r, const char *name, const char *key, double found,
                         double wanted, lp_diag *diag) {
  return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(r->file), "%s.%s is %.12g, the certificate gives %.12g", name, key,
                     found, wanted);
}

/* Adds "NAME.KEY" to the figures that are not checked. */
static void leave(const lp_certificate *c, lp_certificate_finding *out, const char *name, const char *key) {
  const char *before = out->unchecked;
  out->unchecked = lp_arena_format(c->arena, "%s%s%s%s%s", before ? before : "", before ? ", " : "", name,
                                   key ? "." : "", key ? key : "");
}

static lp_status check_verdict(const lp_certificate_request *r, const char *name, const lp_json *at, const char *wanted,
                               lp_diag *diag) {
  lp_json feasible = lp_json_member(at, "feasible"), binding = lp_json_member(at, "binding");
  const char *found = lp_json_text_or(&binding, NULL);
  bool same = found && wanted ? lp_streq(found, wanted) : !found && !lp_json_is_given(&binding) && !wanted;
  if (same && lp_json_is(&feasible, LP_JSON_BOOL) && lp_json_is_true(&feasible) == !wanted) return LP_OK;
  return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(r->file), "%s is said to be %s, it is bound by %s", name,
                     lp_json_is_true(&feasible) ? "feasible" : "infeasible", wanted ? wanted : "nothing");
}

/* A share of two rounded numbers has the absolute error of these numbers. */
static bool is_same(const char *key, double found, double wanted) {
  return strstr(key, "gap") ? fabs(found - wanted) <= 2e-11 : lp_certificate_near(found, wanted);
}

/* Compares each number of the object `at` with the figure of that name, and records those that have none. */
static lp_status check_numbers(const lp_certificate *c, const lp_certificate_request *r, const char *name,
                               const lp_json *at, const figures *f, lp_certificate_finding *out, lp_diag *diag) {
  size_t seen = 0;
  for (size_t i = 0; i < lp_json_count(at); i++) {
    lp_json entry = lp_json_entry(at, i);
    double found, wanted = find(f, entry.key);
    if (lp_json_number(&entry, -INFINITY, INFINITY, &found, NULL) != LP_OK) continue;
    if (isnan(wanted) && LP_FIND(f->unknown, f->unknown_count, entry.key))
      return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(r->file), "%s.%s is %.12g, the report gives nothing for it",
                         name, entry.key, found);
    if (isnan(wanted)) {
      leave(c, out, name, entry.key);
      continue;
    }
    seen++;
    if (!is_same(entry.key, found, wanted)) return differs(r, name, entry.key, found, wanted, diag);
  }
  if (seen == f->count) return LP_OK;
  return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(r->file), "%s lacks %zu figures", name, f->count - seen);
}

/* Compares a plan for which the certificate states the sides. */
static lp_status check_other(lp_certificate *c, const lp_certificate_request *r, const char *name,
                             const lp_certificate_sides *sides, const lp_json *at, lp_certificate_finding *out,
                             lp_diag *diag) {
  if (!lp_json_is(at, LP_JSON_OBJECT))
    return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(r->file), "%s has no figures", name);
  if (!lp_certificate_place(c, sides)) {
    leave(c, out, name, NULL);
    return LP_OK;
  }
  lp_certificate_totals t = lp_certificate_add_up(c);
  figures f = figures_of(r, &t);
  LP_TRY(check_verdict(r, name, at, f.binding, diag));
  return check_numbers(c, r, name, at, &f, out, diag);
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* Compares a member that is a share of two rounded numbers; `wanted` is NaN for null. */
static lp_status check_share(const lp_certificate_request *r, const char *name, const lp_json *object, const char *key,
                             double wanted, lp_diag *diag) {
  lp_json at = lp_json_member(object, key);
  double found = NAN;
  if (lp_json_is_given(&at)) LP_TRY(lp_json_number(&at, -INFINITY, INFINITY, &found, diag));
  if (isnan(found) && isnan(wanted)) return LP_OK;
  return fabs(found - wanted) <= 2e-11 * (1 + fabs(wanted)) ? LP_OK : differs(r, name, key, found, wanted, diag);
}

/* Adds the plan's statements on its bound, which is the proved one. */
static lp_status add_bound(const lp_certificate_request *r, const lp_json *plan, double value, double bound, figures *f,
                           lp_diag *diag) {
  static const char *const of_bound[] = {"lower_bound_usd", "gap", "proof"};
  lp_json at = lp_json_member(plan, "lower_bound");
  for (size_t i = 0; i < LP_COUNT(of_bound) && !lp_json_is_given(&at); i++)
    if (lp_json_is_given(LP_MEMBER(plan, of_bound[i])))
      return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(r->file), "plan.%s is given without a lower bound",
                         of_bound[i]);
  if (!lp_json_is_given(&at)) return LP_OK;
  add(f, "lower_bound", bound);
  if (r->is_cost) add(f, "lower_bound_usd", bound);
  add(f, "gap", lp_certificate_gap(bound, value));
  return LP_OK;
}

static lp_status check_plan(lp_certificate *c, const lp_certificate_request *r, double bound,
                            lp_certificate_finding *out, lp_diag *diag) {
  double share = NAN;
  LP_TRY(lp_certificate_states_check(c, r, &share, diag));
  lp_json report = lp_json_root(r->file, c->report), plan = lp_json_member(&report, "plan");
  out->totals = lp_certificate_add_up(c);
  lp_certificate_totals t = out->totals;
  lp_json exits = lp_json_member(&report, "exits");
  out->exits = r->exits != NULL;
  double questions = lp_certificate_follow_exits(c, r, &t);
  if (!isnan(questions)) LP_TRY(check_share(r, "exits", &exits, "questions_per_token", questions, diag));
  out->totals = t;
  figures f = figures_of(r, &t);
  out->value =
      r->factor[0] * find(&f, "cost_usd") + r->factor[1] * find(&f, "e2e_ms") + r->factor[2] * find(&f, "energy_j");
  LP_TRY(check_verdict(r, "plan", &plan, f.binding, diag));
  LP_TRY(check_verdict(r, "the report", &report, f.binding, diag));
  LP_TRY(add_bound(r, &plan, out->value, bound, &f, diag));
  if (!isnan(share)) add(&f, "sla_probability", share);
  add_cold(r, &t, &f);
  return check_numbers(c, r, "plan", &plan, &f, out, diag);
}

/* Compares `faster`, and its saving over the plan's objective `value`. */
static lp_status check_faster(lp_certificate *c, const lp_certificate_request *r, const lp_json *report,
                              const lp_json *sides, double value, lp_certificate_finding *out, lp_diag *diag) {
  lp_json faster = lp_json_member(report, "faster"), plan = lp_json_member(&faster, "plan");
  const lp_certificate_sides other = lp_certificate_read_sides(sides, "faster");
  if (!lp_json_is_given(&faster)) return LP_OK;
  LP_TRY(check_other(c, r, "faster.plan", &other, &plan, out, diag));
  double its = lp_certificate_add_up(c).value;
  return check_share(r, "faster", &faster, "saving", its > 0 ? 1 - value / its : 0, diag);
}

/* Compares `cheapest`, the plan of the least objective that was found, and checks that the plan is within the tolerance
 * of it and faster. `value` is the plan's objective. */
static lp_status check_cheapest(lp_certificate *c, const lp_certificate_request *r, const lp_json *report,
                                const lp_json *sides, double value, lp_certificate_finding *out, lp_diag *diag) {
  lp_json cheapest = lp_json_member(report, "cheapest"), at = lp_json_member(report, "tolerance");
  const lp_certificate_sides other = lp_certificate_read_sides(sides, "cheapest");
  double share = 0;
  if (!lp_json_is_given(&cheapest)) return LP_OK;
  LP_TRY(lp_json_number(&at, 0, INFINITY, &share, diag));
  LP_TRY(check_other(c, r, "cheapest", &other, &cheapest, out, diag));
  const lp_certificate_totals t = lp_certificate_add_up(c);
  const double steps = lp_certificate_steps(r->osl), ms = t.ms[0] + steps * t.ms[1];
  if (t.value > value * (1 + 1e-11)) return differs(r, "cheapest", "objective", t.value, value, diag);
  if (value > t.value * (1 + share) * (1 + 1e-11))
    return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(r->file),
                       "the plan comes to %.12g, more than the tolerance of %.6g above the cheapest, %.12g", value,
                       share, t.value);
  if (out->totals.ms[0] + steps * out->totals.ms[1] <= ms * (1 + 1e-11)) return LP_OK;
  return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(r->file), "the plan is slower than the cheapest one");
}

/* Compares the saving over the cloud-only plan, which only a feasible plan has. */
static lp_status check_decrement(const lp_certificate_request *r, const lp_json *report, lp_diag *diag) {
  lp_json plan = lp_json_member(report, "plan"), all = lp_json_member(report, "baselines"),
          cloud = lp_json_member(&all, "cloud_only"), own = lp_json_member(&plan, "cost_usd"),
          whole = lp_json_member(&cloud, "cost_usd"), feasible = lp_json_member(&plan, "feasible");
  double cost = 0, base = 0;
  bool known = lp_json_number(&own, 0, INFINITY, &cost, NULL) == LP_OK &&
               lp_json_number(&whole, 0, INFINITY, &base, NULL) == LP_OK && base > 0 && lp_json_is_true(&feasible);
  return check_share(r, "report", report, "decrement", known ? 1 - cost / base : NAN, diag);
}

lp_status lp_certificate_figures_check(lp_certificate *c, const lp_certificate_request *r, double bound,
                                       lp_certificate_finding *out, lp_diag *diag) {
  lp_json report = lp_json_root(r->file, c->report), baselines = lp_json_member(&report, "baselines"),
          own = lp_json_member(&report, "certificate"), sides = lp_json_member(&own, "baselines"),
          plans = lp_json_member(&report, "plans"), fixes = lp_json_member(&report, "fixes");
  LP_TRY(check_plan(c, r, bound, out, diag));
  LP_TRY(check_decrement(r, &report, diag));
  for (size_t i = 0; i < lp_json_count(&baselines); i++) {
    lp_json entry = lp_json_entry(&baselines, i);
    const lp_certificate_sides other = lp_certificate_read_sides(&sides, entry.key);
    LP_TRY(check_other(c, r, entry.key, &other, &entry, out, diag));
  }
  if (plans.value) leave(c, out, "plans", NULL);
  if (lp_json_count(&fixes) > 0) leave(c, out, "that the fixes suffice and are the smallest", NULL);
  LP_TRY(check_cheapest(c, r, &report, &own, out->value, out, diag));
  return check_faster(c, r, &report, &own, out->value, out, diag);
}
