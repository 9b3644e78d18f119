/* Checks the report of a fleet, schema llmpart.fleet/1: adds up its figures, and proves its lower bound from the times
 * of passes and the prices in its certificate.
 *
 * A pass has d tokens and r rows of prompts and lasts T(d, r). Prices a, b, c, m >= 0 with a d + c r <= (1 + m d) T and
 * b d + c r <= T for every pass that S sessions can have are a bound of machine time: of a request's rows and tokens
 * each row takes c and each token b, or a - m L where tokens keep the limit L of TPOT, since the passes of such tokens
 * add up to L each. Sums over requests hold whatever the order of passes. A share `kept` of the tokens keeps the limit:
 * the others belong to the few requests that the percentile lets break it. A machine has at most S sessions; a token of
 * a split holds one for h at its device, and while its pass runs: by the first price, n machines carry per s rows and
 * tokens that cost at most n (1 + m S), with m h more for a token. Machines are whole; classes are divided over pools
 * in the cheapest way. Of spot machines, which come and go independently of each other, a pool has for the share
 * `availability` of the time as many as it is said to need. */
#include "proof/proof.h"

#include <math.h>

enum {
  CLASSES = 8,
  OPTIONS = 2048,
  PRICES = 40,
  KNOTS = 64,
  QUANTILES = 3,
  FIGURES = 3,
  HOURS = 730,     /* of a month */
  SEQUENCES = 256, /* of a pass */
  BESIDE = 240,    /* the most tokens beside a prompt */
  ROWS = 256,      /* of a pass; up to MOST_ROWS where they take SHORT_S */
  MOST_ROWS = 1024,
  SPOT = 1024 /* machines of the spot market in a pool */
};
static const double SHORT_S = 0.02;
static const char *const figure_names[FIGURES] = {"ttft_ms", "tpot_ms", "answer_ms"};
static const char *const places[] = {"split", "cloud", "device", "exits"};
static const char *const quantile_names[QUANTILES] = {"p50", "p95", "p99"};

typedef struct {
  double sessions, kept_s, free_s, row_s, slow;
} price;

typedef struct {
  const char *machine;
  int64_t cut, most, sessions[CLASSES]; /* sessions: that keep the limits of TPOT; 0: the class is not served */
  int64_t spots;                        /* the most spot machines of a pool */
  double usd_per_hour, spot_usd, user_s[CLASSES]; /* spot_usd: per hour */
  double asks;     /* the share of the tokens after the first that it gives, early exits giving the others */
  int32_t *covers; /* [SPOT + 1] covers[n]: of n spot machines, how many are available; NULL: it has no spot price */
  size_t prices;
  price price[PRICES];
} option;

typedef struct {
  const char *file;
  lp_diag *diag;
  double rate, prompt, answer, kept[QUANTILES], share[CLASSES], limit_ms[CLASSES][FIGURES][QUANTILES]; /* 0: none */
  bool alone[CLASSES];
  int32_t runs[CLASSES];                  /* of `places` */
  int64_t pool[CLASSES], layers[CLASSES]; /* pool -1: the device alone; layers: on the device */
  int64_t hidden[CLASSES];                /* layers that stay on the device */
  size_t classes, options;
  int64_t spare;
  double availability;
  lp_arena *arena;
  option *option;
} fleet;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static lp_status refuse(const fleet *f, const char *what, size_t index, double found, double wanted) {
  return lp_error_as(LP_MISMATCH, f->diag, LP_LOC_FILE(f->file), "%s of %zu is %.12g, should be %.12g", what, index,
                     found, wanted);
}

static lp_status same(const fleet *f, const char *what, size_t index, double found, double wanted) {
  if (fabs(found - wanted) <= 1e-7 * (fabs(found) + fabs(wanted))) return LP_OK;
  return refuse(f, what, index, found, wanted);
}

static lp_status number(const fleet *f, const lp_json *of, const char *key, double least, double *out) {
  return lp_json_number(LP_MEMBER(of, key), least, 1e15, out, f->diag);
}

static lp_status integer(const fleet *f, const lp_json *of, const char *key, int64_t least, int64_t *out) {
  return lp_json_i64(LP_MEMBER(of, key), least, INT64_C(1) << 40, out, f->diag);
}

static lp_status numbers(const fleet *f, const lp_json *of, const char *key, size_t count, double *out) {
  const lp_json list = lp_json_member(of, key);
  if (lp_json_count(&list) != count) return lp_json_error(&list, f->diag, "wanted %zu numbers", count);
  for (size_t i = 0; i < count; i++)
    LP_TRY(lp_json_number(LP_ITEM(&list, i), 0, 1e15, &out[i], f->diag));
  return LP_OK;
}

static lp_status list_of(const fleet *f, const lp_json *of, const char *key, size_t least, size_t most, lp_json *out) {
  *out = lp_json_member(of, key);
  LP_TRY(lp_json_array(out, f->diag));
  if (lp_json_count(out) >= least && lp_json_count(out) <= most) return LP_OK;
  return lp_json_error(out, f->diag, "wanted from %zu to %zu items", least, most);
}

/* Limits, and times that keep them and ascend with the percentile. */
static lp_status read_class(fleet *f, const lp_json *at, size_t class) {
  const lp_json times = lp_json_member(at, "times"), limits = lp_json_member(at, "limits");
  LP_TRY(number(f, at, "share", 0, &f->share[class]));
  LP_TRY(integer(f, at, "device_layers", 0, &f->layers[class]));
  LP_TRY(integer(f, at, "private_layers", 0, &f->hidden[class]));
  LP_TRY(lp_json_choice(LP_MEMBER(at, "runs"), places, LP_COUNT(places), &f->runs[class], f->diag));
  f->pool[class] = -1;
  if (lp_json_is_given(LP_MEMBER(at, "pool"))) LP_TRY(integer(f, at, "pool", 0, &f->pool[class]));
  for (int i = 0; i < FIGURES; i++) {
    const lp_json time = lp_json_member(&times, figure_names[i]), limit = lp_json_member(&limits, figure_names[i]);
    double before = 0;
    for (int k = 0; k < QUANTILES; k++) {
      const lp_json given = lp_json_member(&limit, quantile_names[k]), value = lp_json_member(&time, quantile_names[k]);
      double *most = &f->limit_ms[class][i][k], found = before;
      if (lp_json_is_given(&given)) LP_TRY(lp_json_number(&given, 1e-9, 1e15, most, f->diag));
      if (lp_json_is_given(&value) || *most > 0) LP_TRY(lp_json_number(&value, 0, 1e15, &found, f->diag));
      if (found < before) return refuse(f, "a percentile of class", class, found, before);
      if (*most > 0 && found > *most * (1 + 1e-8)) return refuse(f, "a time of class", class, found, *most);
      before = found;
    }
  }
  return LP_OK;
}

static lp_status read_load(fleet *f, const lp_json *root, const lp_json *certificate) {
  lp_json classes, alone;
  double sum = 0;
  LP_TRY(number(f, root, "rate_per_s", 0, &f->rate));
  LP_TRY(number(f, certificate, "prompt_tokens", 1, &f->prompt));
  LP_TRY(number(f, certificate, "answer_tokens", 1, &f->answer));
  LP_TRY(numbers(f, certificate, "kept", QUANTILES, f->kept));
  LP_TRY(list_of(f, root, "classes", 1, CLASSES, &classes));
  f->classes = lp_json_count(&classes);
  LP_TRY(list_of(f, certificate, "alone", f->classes, f->classes, &alone));
  for (size_t i = 0; i < f->classes; i++) {
    LP_TRY(read_class(f, LP_ITEM(&classes, i), i));
    LP_TRY(lp_json_bool(LP_ITEM(&alone, i), &f->alone[i], f->diag));
    sum += f->share[i];
  }
  for (int k = 0; k < QUANTILES; k++)
    if (f->kept[k] > 1) return refuse(f, "the kept share", (size_t)k, f->kept[k], 1);
  return same(f, "the sum of shares", f->classes, sum, 1);
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

static lp_status read_law(const fleet *f, const lp_json *at, law *out) {
  lp_json rows;
  LP_TRY(list_of(f, at, "rows", 2, KNOTS, &rows));
  out->count = lp_json_count(&rows);
  LP_TRY(numbers(f, at, "rows", out->count, out->rows));
  LP_TRY(numbers(f, at, "token_s", out->count, out->token_s));
  LP_TRY(numbers(f, at, "prompt_s", out->count, out->prompt_s));
  out->one_s = fmin(out->token_s[0], out->prompt_s[0]);
  for (size_t i = 1; i < out->count; i++) {
    if (out->rows[i] <= out->rows[i - 1]) return lp_json_error(&rows, f->diag, "wanted ascending numbers");
    if (out->prompt_s[i] < out->one_s) return refuse(f, "prompt_s", i, out->prompt_s[i], out->one_s);
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
static bool pays(const law *l, const price *p, double d, double token_s, double r) {
  const double row_s = r > 0 ? at_rows(l, l->prompt_s, r) : 0;
  const double time = (d > 0 && r > 0 ? token_s + row_s - l->one_s : token_s + row_s) * (1 + 1e-12);
  return p->kept_s * d + p->row_s * r <= (1 + p->slow * d) * time && p->free_s * d + p->row_s * r <= time;
}

/* Tells whether every pass costs at most its time. Between two knots time and cost are linear in the rows, so that what
 * holds at both holds between them. */
static bool holds(const law *l, const price *p) {
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

static lp_status read_prices(const fleet *f, const lp_json *at, const law *l, option *out) {
  lp_json prices;
  LP_TRY(list_of(f, at, "prices", 0, PRICES, &prices));
  out->prices = lp_json_count(&prices);
  LP_FOR_ITEMS(one, &prices) {
    price *p = &out->price[one.index];
    LP_TRY(number(f, &one, "sessions", 0, &p->sessions));
    LP_TRY(number(f, &one, "kept_s", 0, &p->kept_s));
    LP_TRY(number(f, &one, "free_s", 0, &p->free_s));
    LP_TRY(number(f, &one, "row_s", 0, &p->row_s));
    LP_TRY(number(f, &one, "slow", 0, &p->slow));
    if (!holds(l, p))
      return lp_error_as(LP_MISMATCH, f->diag, LP_LOC_FILE(f->file),
                         "certificate: price %zu of %s is more than a pass takes: it proves nothing", one.index,
                         out->machine);
  }
  return LP_OK;
}

/* Sets covers[n]: how many of n spot machines are available for the share `availability` of the time. away[i] is the
 * probability that i machines are away; the loop adds one machine at a time. */
static void count_spot(const fleet *f, double lost, option *out) {
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

static lp_status read_spot(const fleet *f, const lp_json *at, option *out) {
  const lp_json spot = lp_json_member(at, "spot");
  double every, restart;
  if (!lp_json_is_given(&spot)) return LP_OK;
  LP_TRY(integer(f, &spot, "most", 0, &out->spots));
  if (out->spots > SPOT) return lp_json_error(&spot, f->diag, "has more than %d machines", SPOT);
  LP_TRY(number(f, &spot, "usd_per_hour", 0, &out->spot_usd));
  LP_TRY(number(f, &spot, "every_s", 1e-3, &every));
  LP_TRY(number(f, &spot, "restart_s", 0, &restart));
  count_spot(f, restart / (every + restart), out);
  return LP_OK;
}

static lp_status read_option(const fleet *f, const lp_json *at, option *out) {
  const lp_json machine = lp_json_member(at, "machine"), users = lp_json_member(at, "user_s");
  int64_t sessions;
  law l = {0};
  LP_TRY(lp_json_text(&machine, &out->machine, f->diag));
  LP_TRY(integer(f, at, "cut", 0, &out->cut));
  LP_TRY(integer(f, at, "most", 0, &out->most));
  LP_TRY(integer(f, at, "sessions", 0, &sessions));
  LP_TRY(number(f, at, "asks", 1e-3, &out->asks));
  if (out->asks > 1) return refuse(f, "the share of tokens of cut", (size_t)out->cut, out->asks, 1);
  LP_TRY(number(f, at, "usd_per_hour", 0, &out->usd_per_hour));
  LP_TRY(read_spot(f, at, out));
  LP_TRY(read_law(f, at, &l));
  if (lp_json_count(&users) != f->classes) return lp_json_error(&users, f->diag, "wanted a number for each class");
  for (size_t i = 0; i < f->classes; i++) {
    const lp_json user = lp_json_item(&users, i);
    if (!lp_json_is_given(&user)) continue;
    LP_TRY(lp_json_number(&user, 0, 1e15, &out->user_s[i], f->diag));
    out->sessions[i] = sessions < SEQUENCES ? sessions : SEQUENCES;
    if (out->asks < 1) out->sessions[i] = (int64_t)fmin((double)out->sessions[i], floor((double)l.most * out->asks));
    for (int k = 0; k < QUANTILES; k++)
      while (f->limit_ms[i][1][k] > 0 && out->sessions[i] > 0 &&
             out->asks * (at_rows(&l, l.token_s, (double)out->sessions[i]) + out->user_s[i]) >
                 1e-3 * f->limit_ms[i][1][k] * (1 + 1e-9))
        out->sessions[i]--;
  }
  return read_prices(f, at, &l, out);
}

/* ---- the bound --------------------------------------------------------------------------------------------------- */

/* What the tokens after the first of a class cost each. */
static double token_s(const fleet *f, const option *o, const price *p, size_t class) {
  double most = p->free_s;
  for (int k = 0; k < QUANTILES; k++) {
    const double limit_s = 1e-3 * f->limit_ms[class][1][k] / o->asks - o->user_s[class];
    if (f->limit_ms[class][1][k] <= 0) continue;
    most = fmax(most, f->kept[k] * (p->kept_s - p->slow * limit_s) + (1 - f->kept[k]) * p->free_s);
  }
  return most;
}

/* The sessions of a pool of these classes; 0: it cannot serve one. `*busy`: the machines that its requests keep busy at
 * least. */
static int64_t load_of(const fleet *f, const option *o, unsigned classes, double *busy) {
  int64_t sessions = SEQUENCES;
  *busy = 0;
  for (size_t i = 0; i < f->classes; i++)
    if (classes >> i & 1 && o->sessions[i] < sessions) sessions = o->sessions[i];
  LP_FOR_EACH(const price, p, o->price, o->prices) {
    const double last = fmin(p->row_s, p->free_s), rows = (f->prompt - 1) * p->row_s;
    double sum = 0, held = 0;
    for (size_t i = 0; i < f->classes; i++) {
      const double rate = classes >> i & 1 ? f->share[i] * f->rate : 0, tokens = (f->answer - 1) * o->asks;
      sum += rate * (rows + last + tokens * token_s(f, o, p, i));
      held += rate * (rows + fmin(last, p->kept_s) + tokens * (p->kept_s + (o->cut > 0 ? p->slow * o->user_s[i] : 0)));
    }
    if (p->sessions >= (double)sessions) *busy = fmax(*busy, fmax(sum, held / (1 + p->slow * (double)sessions)));
  }
  return sessions;
}

/* USD a month of `firm` machines, which are rented for the whole month, and of `spot` machines. */
static double usd_of(const option *o, double firm, double spot) {
  return (double)HOURS * (o->usd_per_hour * firm + o->spot_usd * spot);
}

/* The lowest price of a mix in which `machines` and the spare machines are available. */
static double least_usd_of(const fleet *f, const option *o, double machines) {
  const double wanted = machines + (double)f->spare;
  double least = usd_of(o, wanted, 0);
  for (int32_t spot = 1; spot <= o->spots; spot++)
    least = fmin(least, usd_of(o, fmax(0, wanted - o->covers[spot]), spot));
  return least;
}

static double bound_of(const fleet *f) {
  double pool[1 << CLASSES] = {0}, best[1 << CLASSES] = {0};
  for (unsigned mask = 1; mask < 1u << f->classes; mask++) {
    pool[mask] = best[mask] = INFINITY;
    bool alone = true;
    for (size_t i = 0; i < f->classes; i++)
      alone = alone && (f->alone[i] || !(mask >> i & 1));
    if (alone) pool[mask] = 0;
    LP_FOR_EACH(const option, o, f->option, f->options) {
      double busy;
      if (load_of(f, o, mask, &busy) == 0) continue;
      const double machines = fmax(1, ceil(busy * (1 - 1e-7)));
      if (o->most == 0 || machines + (double)f->spare <= (double)o->most)
        pool[mask] = fmin(pool[mask], least_usd_of(f, o, machines));
    }
    for (unsigned part = mask; part; part = (part - 1) & mask)
      best[mask] = fmin(best[mask], pool[part] + best[mask & ~part]);
  }
  return best[(1u << f->classes) - 1];
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

typedef struct {
  double usd, busy_usd; /* busy: by the share of the time that the requests need at least */
  int64_t machines;
} sums;

static lp_status check_pool(const fleet *f, const lp_json *at, size_t index, sums *sum) {
  const lp_json machine = lp_json_member(at, "machine");
  int64_t which, count, needed, spot, spare, sessions;
  double hour, month, utilisation, share, busy;
  unsigned classes = 0;
  LP_TRY(integer(f, at, "option", 0, &which));
  if ((size_t)which >= f->options) return refuse(f, "the option of pool", index, (double)which, 0);
  const option *o = &f->option[which];
  if (!lp_json_equals(&machine, o->machine)) return lp_json_error(&machine, f->diag, "wanted '%s'", o->machine);
  LP_TRY(integer(f, at, "count", 1, &count));
  LP_TRY(integer(f, at, "needed", 1, &needed));
  LP_TRY(integer(f, at, "spot", 0, &spot));
  LP_TRY(integer(f, at, "spare", 0, &spare));
  LP_TRY(integer(f, at, "sessions", 1, &sessions));
  LP_TRY(number(f, at, "usd_per_hour", 0, &hour));
  LP_TRY(number(f, at, "usd_per_month", 0, &month));
  LP_TRY(number(f, at, "utilisation", 0, &utilisation));
  LP_TRY(number(f, at, "busy", 0, &share));
  for (size_t i = 0; i < f->classes; i++) {
    if (f->pool[i] != (int64_t)index) continue;
    classes |= 1u << i;
    LP_TRY(same(f, "device_layers of class", i, (double)f->layers[i], fmax(0, (double)o->cut - 1)));
    if (f->layers[i] < f->hidden[i])
      return refuse(f, "the layers of class", i, (double)f->layers[i], (double)f->hidden[i]);
    const int32_t runs = o->cut == 0 ? 1 : o->asks < 1 ? 3 : 0; /* of `places` */
    if (f->runs[i] != runs) return refuse(f, "what runs in the cloud of class", i, f->runs[i], runs);
  }
  const int64_t most = load_of(f, o, classes, &busy);
  const int64_t firm = count - spot, there = firm + (o->covers && spot <= o->spots ? o->covers[spot] : 0);
  if (firm < 0 || there != needed + spare)
    return refuse(f, "the machines that are there of pool", index, (double)there, (double)(needed + spare));
  LP_TRY(same(f, "spare machines of pool", index, (double)spare, (double)f->spare));
  LP_TRY(same(f, "sessions of pool", index, (double)sessions, (double)most));
  LP_TRY(same(f, "usd_per_hour of pool", index, hour, o->usd_per_hour));
  LP_TRY(same(f, "usd_per_month of pool", index, month, usd_of(o, (double)firm, (double)spot)));
  LP_TRY(same(f, "utilisation of pool", index, utilisation, busy / (double)needed));
  if (!(utilisation <= 1 && share <= 1 + 1e-9))
    return refuse(f, "the load of pool", index, fmax(utilisation, share), 1);
  sum->usd += month;
  sum->busy_usd += (double)HOURS * (o->covers ? fmin(o->usd_per_hour, o->spot_usd) : o->usd_per_hour) * busy;
  sum->machines += count;
  return LP_OK;
}

static lp_status check_sums(const fleet *f, const lp_json *root, lp_certificate_fleet_finding *out) {
  const lp_json all = lp_json_member(root, "fleet"), more = lp_json_member(root, "one_more");
  lp_json pools;
  sums sum = {0};
  double gap, machines, share, mean, least, alone = 0;
  LP_TRY(list_of(f, root, "pools", 0, CLASSES, &pools));
  LP_FOR_ITEMS(at, &pools)
    LP_TRY(check_pool(f, &at, at.index, &sum));
  for (size_t i = 0; i < f->classes; i++) {
    if (f->pool[i] >= (int64_t)lp_json_count(&pools)) return refuse(f, "the pool of class", i, (double)f->pool[i], 0);
    if (f->pool[i] < 0 && !(f->alone[i] && f->runs[i] == 2)) return refuse(f, "the pool of class", i, -1, 0);
    if (f->pool[i] < 0) alone += f->share[i];
  }
  LP_TRY(number(f, &all, "usd_per_month", 0, &out->usd));
  LP_TRY(number(f, &all, "lower_bound", 0, &out->bound));
  LP_TRY(number(f, &all, "gap", 0, &gap));
  LP_TRY(number(f, &all, "machines", 0, &machines));
  LP_TRY(number(f, &all, "device_share", 0, &share));
  LP_TRY(same(f, "usd_per_month of classes", f->classes, out->usd, sum.usd));
  LP_TRY(same(f, "machines of classes", f->classes, machines, (double)sum.machines));
  LP_TRY(same(f, "device_share of classes", f->classes, share, alone));
  LP_TRY(number(f, &more, "mean_usd_per_month", 0, &mean));
  LP_TRY(number(f, &more, "least_usd_per_month", 0, &least));
  LP_TRY(same(f, "one_more.least_usd_per_month of classes", f->classes, least * out->usd, mean * sum.busy_usd));
  const double wanted = out->usd > 0 ? 1 - out->bound / out->usd : 0;
  return fabs(gap - wanted) <= 1e-8 ? LP_OK : refuse(f, "gap of classes", f->classes, gap, wanted);
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

bool lp_certificate_is_of_fleet(const lp_certificate *c) {
  const lp_json root = lp_json_root("", c->report), schema = lp_json_member(&root, "schema");
  return lp_json_equals(&schema, "llmpart.fleet/1");
}

static lp_status check(fleet *f, const lp_json *root, lp_arena *arena, lp_certificate_fleet_finding *out) {
  const lp_json certificate = lp_json_member(root, "certificate"), digest = lp_json_member(root, "digest");
  lp_json options;
  char text[20];
  (void)snprintf(text, sizeof text, "%016" PRIx64, lp_json_digest(root, "digest"));
  LP_TRY(lp_json_object(&certificate, f->diag));
  LP_TRY(read_load(f, root, &certificate));
  LP_TRY(integer(f, &certificate, "spare", 0, &f->spare));
  LP_TRY(number(f, &certificate, "availability", 0, &f->availability));
  if (f->availability >= 1) return refuse(f, "the availability", 0, f->availability, 1);
  LP_TRY(list_of(f, &certificate, "options", 0, OPTIONS, &options));
  f->options = lp_json_count(&options);
  f->option = LP_NEW_ARRAY(arena, option, f->options);
  LP_FOR_ITEMS(at, &options)
    LP_TRY(read_option(f, &at, &f->option[at.index]));
  LP_TRY(check_sums(f, root, out));
  const double proved = bound_of(f);
  if (out->bound > proved * (1 + 1e-8))
    return lp_error_as(LP_MISMATCH, f->diag, LP_LOC_FILE(f->file), "fleet.lower_bound is %.12g, only %.12g is proved",
                       out->bound, proved);
  if (lp_json_equals(&digest, text)) return LP_OK;
  return lp_error_as(LP_MISMATCH, f->diag, LP_LOC_FILE(f->file),
                     "the report has the digest %s, its numbers and texts have %s: one of them was changed",
                     lp_json_text_or(&digest, "(none)"), text);
}

lp_status lp_certificate_fleet_check(const lp_json *root, const char *file, lp_certificate_fleet_finding *out,
                                     lp_diag *diag) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  fleet *f = LP_NEW(arena, fleet);
  f->file = file;
  f->arena = arena;
  f->diag = diag;
  *out = (lp_certificate_fleet_finding){0};
  return check(f, root, arena, out);
}
