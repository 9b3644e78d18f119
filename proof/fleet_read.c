/* Reads the report of a fleet, and checks the prices of its certificate: see fleet.c. */
#include "proof/fleet.h"

#include <math.h>

static const double SHORT_S = 0.02;
static const char *const figure_names[FIGURES] = {"ttft_ms", "tpot_ms", "answer_ms"};
static const char *const places[] = {"split", "cloud", "device", "exits", "drafts"};
static const char *const quantile_names[QUANTILES] = {"p50", "p95", "p99"};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

lp_status lp_fleet_proof_refuse(const lp_fleet_proof *f, const char *what, size_t index, double found, double wanted) {
  return lp_error_as(LP_MISMATCH, f->diag, LP_LOC_FILE(f->file), "%s of %zu is %.12g, should be %.12g", what, index,
                     found, wanted);
}

lp_status lp_fleet_proof_same(const lp_fleet_proof *f, const char *what, size_t index, double found, double wanted) {
  if (fabs(found - wanted) <= 1e-7 * (fabs(found) + fabs(wanted))) return LP_OK;
  return lp_fleet_proof_refuse(f, what, index, found, wanted);
}

lp_status lp_fleet_proof_number(const lp_fleet_proof *f, const lp_json *of, const char *key, double least,
                                double *out) {
  return lp_json_number(LP_MEMBER(of, key), least, 1e15, out, f->diag);
}

lp_status lp_fleet_proof_integer(const lp_fleet_proof *f, const lp_json *of, const char *key, int64_t least,
                                 int64_t *out) {
  return lp_json_i64(LP_MEMBER(of, key), least, INT64_C(1) << 40, out, f->diag);
}

lp_status lp_fleet_proof_numbers(const lp_fleet_proof *f, const lp_json *of, const char *key, size_t count,
                                 double *out) {
  const lp_json list = lp_json_member(of, key);
  if (lp_json_count(&list) != count) return lp_json_error(&list, f->diag, "wanted %zu numbers", count);
  for (size_t i = 0; i < count; i++)
    LP_TRY(lp_json_number(LP_ITEM(&list, i), 0, 1e15, &out[i], f->diag));
  return LP_OK;
}

/* A number, or NAN where it is null. */
lp_status lp_fleet_proof_known(const lp_fleet_proof *f, const lp_json *at, double *out) {
  *out = NAN;
  return lp_json_is_given(at) ? lp_json_number(at, 0, 1e15, out, f->diag) : LP_OK;
}

static lp_status read_joules(const lp_fleet_proof *f, const lp_json *of, const char *key, double *out) {
  const lp_json list = lp_json_member(of, key);
  if (lp_json_count(&list) != f->classes) return lp_json_error(&list, f->diag, "wanted a number for each class");
  for (size_t i = 0; i < f->classes; i++)
    LP_TRY(lp_fleet_proof_known(f, LP_ITEM(&list, i), &out[i]));
  return LP_OK;
}

lp_status lp_fleet_proof_list(const lp_fleet_proof *f, const lp_json *of, const char *key, size_t least, size_t most,
                              lp_json *out) {
  *out = lp_json_member(of, key);
  LP_TRY(lp_json_array(out, f->diag));
  if (lp_json_count(out) >= least && lp_json_count(out) <= most) return LP_OK;
  return lp_json_error(out, f->diag, "wanted from %zu to %zu items", least, most);
}

/* Limits, and times that keep them and ascend with the percentile. */
static lp_status read_class(lp_fleet_proof *f, const lp_json *at, size_t class) {
  const lp_json times = lp_json_member(at, "times"), limits = lp_json_member(at, "limits");
  LP_TRY(lp_fleet_proof_number(f, at, "share", 0, &f->share[class]));
  LP_TRY(lp_fleet_proof_integer(f, at, "device_layers", 0, &f->layers[class]));
  LP_TRY(lp_fleet_proof_integer(f, at, "private_layers", 0, &f->hidden[class]));
  LP_TRY(lp_json_choice(LP_MEMBER(at, "runs"), places, LP_COUNT(places), &f->runs[class], f->diag));
  f->pool[class] = -1;
  if (lp_json_is_given(LP_MEMBER(at, "pool"))) LP_TRY(lp_fleet_proof_integer(f, at, "pool", 0, &f->pool[class]));
  for (int i = 0; i < FIGURES; i++) {
    const lp_json time = lp_json_member(&times, figure_names[i]), limit = lp_json_member(&limits, figure_names[i]);
    double before = 0;
    for (int k = 0; k < QUANTILES; k++) {
      const lp_json given = lp_json_member(&limit, quantile_names[k]), value = lp_json_member(&time, quantile_names[k]);
      double *most = &f->limit_ms[class][i][k], found = before;
      if (lp_json_is_given(&given)) LP_TRY(lp_json_number(&given, 1e-9, 1e15, most, f->diag));
      if (lp_json_is_given(&value) || *most > 0) LP_TRY(lp_json_number(&value, 0, 1e15, &found, f->diag));
      if (found < before) return lp_fleet_proof_refuse(f, "a percentile of class", class, found, before);
      if (*most > 0 && found > *most * (1 + 1e-8))
        return lp_fleet_proof_refuse(f, "a time of class", class, found, *most);
      before = found;
    }
  }
  return LP_OK;
}

/* The rates of the hours, of which the fleet's is the highest. */
static lp_status read_hours(lp_fleet_proof *f, const lp_json *root) {
  const lp_json at = lp_json_member(root, "by_hour");
  double mean, cold, drain, most = 0;
  LP_TRY(lp_fleet_proof_number(f, root, "mean_rate_per_s", 0, &mean));
  f->hours = 1;
  f->hour[0] = f->rented_mean = 1;
  f->mean = mean / f->rate;
  if (mean > f->rate * (1 + 1e-8)) return lp_fleet_proof_refuse(f, "the mean rate", 0, mean, f->rate);
  if (!lp_json_is_given(&at)) return LP_OK;
  f->hours = DAY;
  f->mean = 0;
  LP_TRY(lp_fleet_proof_numbers(f, &at, "rate_per_s", DAY, f->hour));
  LP_TRY(lp_fleet_proof_number(f, &at, "cold_start_s", 0, &cold));
  LP_TRY(lp_fleet_proof_number(f, &at, "drain_s", 0, &drain));
  f->start_hours = (cold + drain) / 3600;
  if (f->start_hours >= 1) return lp_fleet_proof_refuse(f, "the hours of a start", 0, f->start_hours, 1);
  for (int h = 0; h < DAY; h++) {
    most = fmax(most, f->hour[h]);
    f->hour[h] /= f->rate;
    f->mean += f->hour[h] / (double)DAY;
  }
  f->rented_mean = f->mean;
  LP_TRY(lp_fleet_proof_same(f, "the busiest hour", 0, most, f->rate));
  return lp_fleet_proof_same(f, "the mean rate", 0, mean, f->mean * f->rate);
}

static lp_status read_load(lp_fleet_proof *f, const lp_json *root, const lp_json *certificate) {
  lp_json classes, alone;
  double sum = 0;
  LP_TRY(lp_fleet_proof_number(f, root, "rate_per_s", 0, &f->rate));
  LP_TRY(lp_fleet_proof_number(f, certificate, "prompt_tokens", 1, &f->prompt));
  LP_TRY(lp_fleet_proof_number(f, certificate, "answer_tokens", 1, &f->answer));
  LP_TRY(lp_fleet_proof_numbers(f, certificate, "kept", QUANTILES, f->kept));
  LP_TRY(lp_fleet_proof_list(f, root, "classes", 1, CLASSES, &classes));
  f->classes = lp_json_count(&classes);
  LP_TRY(lp_fleet_proof_list(f, certificate, "alone", f->classes, f->classes, &alone));
  for (size_t i = 0; i < f->classes; i++) {
    LP_TRY(read_class(f, LP_ITEM(&classes, i), i));
    LP_TRY(lp_json_bool(LP_ITEM(&alone, i), &f->alone[i], f->diag));
    sum += f->share[i];
  }
  LP_TRY(read_joules(f, certificate, "alone_j", f->alone_j));
  LP_TRY(read_hours(f, root));
  for (int k = 0; k < QUANTILES; k++)
    if (f->kept[k] > 1) return lp_fleet_proof_refuse(f, "the kept share", (size_t)k, f->kept[k], 1);
  return lp_fleet_proof_same(f, "the sum of shares", f->classes, sum, 1);
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

/* The times of passes, which are linear between these numbers of rows. */
typedef struct {
  size_t count;
  double rows[KNOTS], token_s[KNOTS], prompt_s[KNOTS];
  int64_t most; /* rows of a pass */
  double one_s; /* of one row */
} law;

static double at_rows(const law *l, const double *seconds, double rows) {
  size_t i = 1;
  while (i + 1 < l->count && l->rows[i] < rows)
    i++;
  const double slope = (seconds[i] - seconds[i - 1]) / (l->rows[i] - l->rows[i - 1]);
  return seconds[i - 1] + slope * (rows - l->rows[i - 1]);
}

static lp_status read_law(const lp_fleet_proof *f, const lp_json *at, law *out) {
  lp_json rows;
  LP_TRY(lp_fleet_proof_list(f, at, "rows", 2, KNOTS, &rows));
  out->count = lp_json_count(&rows);
  LP_TRY(lp_fleet_proof_numbers(f, at, "rows", out->count, out->rows));
  LP_TRY(lp_fleet_proof_numbers(f, at, "token_s", out->count, out->token_s));
  LP_TRY(lp_fleet_proof_numbers(f, at, "prompt_s", out->count, out->prompt_s));
  out->one_s = fmin(out->token_s[0], out->prompt_s[0]);
  for (size_t i = 1; i < out->count; i++) {
    if (out->rows[i] <= out->rows[i - 1]) return lp_json_error(&rows, f->diag, "wanted ascending numbers");
    if (out->prompt_s[i] < out->one_s) return lp_fleet_proof_refuse(f, "prompt_s", i, out->prompt_s[i], out->one_s);
  }
  if (out->rows[0] != 1 || out->rows[out->count - 1] < (double)MOST_ROWS)
    return lp_json_error(&rows, f->diag, "wanted numbers from 1 to %d", MOST_ROWS);
  out->most = ROWS;
  while (out->most < MOST_ROWS && at_rows(out, out->prompt_s, (double)out->most) <= SHORT_S * (1 + 1e-12) &&
         at_rows(out, out->prompt_s, (double)out->most + 1) <= SHORT_S * (1 + 1e-12))
    out->most++;
  return LP_OK;
}

/* Tells whether a pass over d tokens, which take `token_s`, and r rows of prompts, costs at most its time. */
static bool pays(const law *l, const lp_fleet_proof_price *p, double d, double token_s, double r) {
  const double row_s = r > 0 ? at_rows(l, l->prompt_s, r) : 0;
  const double time = (d > 0 && r > 0 ? token_s + row_s - l->one_s : token_s + row_s) * (1 + 1e-12);
  return p->kept_s * d + p->row_s * r <= (1 + p->slow * d) * time && p->free_s * d + p->row_s * r <= time;
}

/* Tells whether every pass costs at most its time. Between two knots time and cost are linear in the rows, so that what
 * holds at both holds between them. */
static bool holds(const law *l, const lp_fleet_proof_price *p) {
  const int64_t sessions = (int64_t)p->sessions;
  for (int64_t d = 0; d <= sessions && d <= SEQUENCES; d++) {
    const double token_s = d > 0 ? at_rows(l, l->token_s, (double)d) : 0;
    const double most = d > BESIDE || d == sessions ? 0 : (double)(l->most - d);
    if (!pays(l, p, (double)d, token_s, 0) || !pays(l, p, (double)d, token_s, most)) return false;
    for (size_t i = 0; i < l->count && l->rows[i] < most; i++)
      if (!pays(l, p, (double)d, token_s, l->rows[i])) return false;
  }
  return true;
}

static lp_status read_prices(const lp_fleet_proof *f, const lp_json *at, const law *l, lp_fleet_proof_option *out) {
  lp_json prices;
  LP_TRY(lp_fleet_proof_list(f, at, "prices", 0, PRICES, &prices));
  out->prices = lp_json_count(&prices);
  LP_FOR_ITEMS(one, &prices) {
    lp_fleet_proof_price *p = &out->price[one.index];
    LP_TRY(lp_fleet_proof_number(f, &one, "sessions", 0, &p->sessions));
    LP_TRY(lp_fleet_proof_number(f, &one, "kept_s", 0, &p->kept_s));
    LP_TRY(lp_fleet_proof_number(f, &one, "free_s", 0, &p->free_s));
    LP_TRY(lp_fleet_proof_number(f, &one, "row_s", 0, &p->row_s));
    LP_TRY(lp_fleet_proof_number(f, &one, "slow", 0, &p->slow));
    if (!holds(l, p))
      return lp_error_as(LP_MISMATCH, f->diag, LP_LOC_FILE(f->file),
                         "certificate: price %zu of %s is more than a pass takes: it proves nothing", one.index,
                         out->machine);
  }
  return LP_OK;
}

/* Sets covers[n]: how many of n spot machines are available for the share `availability` of the time. away[i] is the
 * probability that i machines are away; the loop adds one machine at a time. */
static void count_spot(const lp_fleet_proof *f, double lost, lp_fleet_proof_option *out) {
  double away[SPOT + 2] = {1};
  out->covers = LP_NEW_ARRAY(f->arena, int32_t, SPOT + 1);
  for (int32_t spot = 1; spot <= SPOT; spot++) {
    double sum = 0;
    int32_t most = 0;
    for (int32_t i = spot; i > 0; i--)
      away[i] = away[i] * (1 - lost) + away[i - 1] * lost;
    away[0] *= 1 - lost;
    while (most <= spot && (sum += away[most]) < f->availability * (1 - 1e-9))
      most++;
    out->covers[spot] = most < spot ? spot - most : 0;
  }
}

static lp_status read_spot(const lp_fleet_proof *f, const lp_json *at, lp_fleet_proof_option *out) {
  const lp_json spot = lp_json_member(at, "spot");
  double every, restart;
  if (!lp_json_is_given(&spot)) return LP_OK;
  LP_TRY(lp_fleet_proof_integer(f, &spot, "most", 0, &out->spots));
  if (out->spots > SPOT) return lp_json_error(&spot, f->diag, "has more than %d machines", SPOT);
  LP_TRY(lp_fleet_proof_number(f, &spot, "usd_per_hour", 0, &out->spot_usd));
  LP_TRY(lp_fleet_proof_number(f, &spot, "every_s", 1e-3, &every));
  LP_TRY(lp_fleet_proof_number(f, &spot, "restart_s", 0, &restart));
  count_spot(f, restart / (every + restart), out);
  return LP_OK;
}

static lp_status read_option(const lp_fleet_proof *f, const lp_json *at, lp_fleet_proof_option *out) {
  const lp_json machine = lp_json_member(at, "machine"), users = lp_json_member(at, "user_s");
  int64_t sessions;
  law l = {0};
  LP_TRY(lp_json_text(&machine, &out->machine, f->diag));
  LP_TRY(lp_fleet_proof_integer(f, at, "cut", 0, &out->cut));
  LP_TRY(lp_fleet_proof_integer(f, at, "most", 0, &out->most));
  LP_TRY(lp_fleet_proof_integer(f, at, "sessions", 0, &sessions));
  LP_TRY(lp_fleet_proof_number(f, at, "asks", 1e-3, &out->asks));
  LP_TRY(lp_fleet_proof_number(f, at, "question_rows", 1, &out->question_rows));
  if (out->question_rows * out->asks < 1 - 1e-9 || (out->asks >= 1 && out->question_rows > 1))
    return lp_fleet_proof_refuse(f, "the rows of a question of cut", (size_t)out->cut, out->question_rows,
                                 1 / out->asks);
  if (out->asks > 1) return lp_fleet_proof_refuse(f, "the share of tokens of cut", (size_t)out->cut, out->asks, 1);
  LP_TRY(lp_fleet_proof_number(f, at, "usd_per_hour", 0, &out->usd_per_hour));
  out->usd_by_hour = INFINITY;
  if (lp_json_is_given(LP_MEMBER(at, "usd_by_hour")))
    LP_TRY(lp_fleet_proof_number(f, at, "usd_by_hour", 0, &out->usd_by_hour));
  LP_TRY(lp_fleet_proof_known(f, LP_MEMBER(at, "power_w"), &out->power_w));
  LP_TRY(lp_fleet_proof_known(f, LP_MEMBER(at, "idle_power_w"), &out->idle_w));
  LP_TRY(read_joules(f, at, "device_j", out->device_j));
  LP_TRY(read_spot(f, at, out));
  LP_TRY(read_law(f, at, &l));
  if (lp_json_count(&users) != f->classes) return lp_json_error(&users, f->diag, "wanted a number for each class");
  for (size_t i = 0; i < f->classes; i++) {
    const lp_json user = lp_json_item(&users, i);
    if (!lp_json_is_given(&user)) continue;
    LP_TRY(lp_json_number(&user, 0, 1e15, &out->user_s[i], f->diag));
    out->sessions[i] = sessions < SEQUENCES ? sessions : SEQUENCES;
    if (out->asks < 1)
      out->sessions[i] = (int64_t)fmin((double)out->sessions[i], floor((double)l.most / out->question_rows));
    for (int k = 0; k < QUANTILES; k++)
      while (f->limit_ms[i][1][k] > 0 && out->sessions[i] > 0 &&
             out->asks * (at_rows(&l, l.token_s, (double)out->sessions[i]) + out->user_s[i]) >
                 1e-3 * f->limit_ms[i][1][k] * (1 + 1e-9))
        out->sessions[i]--;
  }
  return read_prices(f, at, &l, out);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

lp_status lp_fleet_proof_read(lp_fleet_proof *f, const lp_json *root) {
  const lp_json certificate = lp_json_member(root, "certificate");
  lp_json options;
  LP_TRY(lp_json_object(&certificate, f->diag));
  LP_TRY(read_load(f, root, &certificate));
  LP_TRY(lp_fleet_proof_integer(f, &certificate, "spare", 0, &f->spare));
  LP_TRY(lp_fleet_proof_number(f, &certificate, "availability", 0, &f->availability));
  if (f->availability >= 1) return lp_fleet_proof_refuse(f, "the availability", 0, f->availability, 1);
  LP_TRY(lp_fleet_proof_list(f, &certificate, "options", 0, OPTIONS, &options));
  f->options = lp_json_count(&options);
  f->option = LP_NEW_ARRAY(f->arena, lp_fleet_proof_option, f->options);
  LP_FOR_ITEMS(at, &options)
    LP_TRY(read_option(f, &at, &f->option[at.index]));
  return LP_OK;
}
