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
 * in the cheapest way. With `by_hour` each hour of the day is a load like this one. A machine of those that an hour
 * wants stays all month, or is rented in the hours that want it and paid for a start more each time that it comes. Of
 * spot machines, which come and go independently of each other, a pool has for the share `availability` of the time as
 * many as it is said to need. */
#include "proof/fleet.h"

#include <math.h>

/* ---- the bound --------------------------------------------------------------------------------------------------- */

/* What the tokens after the first of a class cost each. */
static double token_s(const lp_fleet_proof *f, const lp_fleet_proof_option *o, const lp_fleet_proof_price *p,
                      size_t class) {
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
static int64_t load_of(const lp_fleet_proof *f, const lp_fleet_proof_option *o, unsigned classes, double *busy) {
  int64_t sessions = SEQUENCES;
  *busy = 0;
  for (size_t i = 0; i < f->classes; i++)
    if (classes >> i & 1 && o->sessions[i] < sessions) sessions = o->sessions[i];
  LP_FOR_EACH(const lp_fleet_proof_price, p, o->price, o->prices) {
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

/* The hours that are paid for the machines from the `from`-th to the `to`-th, each in the hours that want it. */
static double paid_hours(const lp_fleet_proof *f, const double *wanted, double from, double to) {
  double sum = 0;
  for (int32_t h = 0; h < f->hours; h++) {
    const double now = fmax(from, fmin(to, wanted[h])),
                 before = fmax(from, fmin(to, wanted[h > 0 ? h - 1 : f->hours - 1]));
    sum += now - from + f->start_hours * fmax(0, now - before);
  }
  return sum;
}

/* Machines that are wanted in the same hours, and what one costs in a day: without the spot market, and with it. */
typedef struct {
  double count, firm, saving;
} layer;

static int32_t layers_of(const lp_fleet_proof *f, const lp_fleet_proof_option *o, const double *wanted, layer *out) {
  int32_t count = 0;
  for (double below = 0, next; count < DAY; below = next) {
    next = INFINITY;
    for (int32_t h = 0; h < f->hours; h++)
      if (wanted[h] > below) next = fmin(next, wanted[h]);
    if (isinf(next)) break;
    const double paid = paid_hours(f, wanted, below, below + 1);
    const layer one = {next - below, fmin(o->usd_per_hour * f->hours, o->usd_by_hour * paid), 0};
    int32_t at = count++;
    out[at] = one;
    out[at].saving = one.firm - o->spot_usd * paid;
    for (; at > 0 && out[at].saving > out[at - 1].saving; at--) {
      const layer other = out[at - 1];
      out[at - 1] = out[at];
      out[at] = other;
    }
  }
  return count;
}

/* The lowest price a month of machines of which wanted[f->hours] are available by hour. */
static double least_usd_of(const lp_fleet_proof *f, const lp_fleet_proof_option *o, const double *wanted) {
  layer layers[DAY];
  const int32_t count = layers_of(f, o, wanted, layers);
  double firm = 0, least;
  for (int32_t i = 0; i < count; i++)
    firm += layers[i].count * layers[i].firm;
  least = firm;
  for (int32_t spot = 1; spot <= o->spots; spot++) {
    double left = o->covers[spot], usd = firm + o->spot_usd * f->hours * (spot - left);
    for (int32_t i = 0; i < count && layers[i].saving > 0; i++) {
      const double taken = fmin(left, layers[i].count);
      usd -= taken * layers[i].saving;
      left -= taken;
    }
    least = fmin(least, usd);
  }
  return least * (double)HOURS / f->hours;
}

/* kWh a month of the devices of these classes. */
static double devices_kwh(const lp_fleet_proof *f, const double *joules, unsigned classes) {
  double watts = 0;
  for (size_t i = 0; i < f->classes; i++)
    if (classes >> i & 1) watts += f->share[i] * f->rate * f->mean * joules[i];
  return watts * (double)HOURS / 1000;
}

/* The least kWh a month of a pool and its devices. `busy` machines run passes in the mean of the hours, and those that
 * an hour wants are rented in it. */
static double least_kwh_of(const lp_fleet_proof *f, const lp_fleet_proof_option *o, unsigned classes,
                           const double *wanted, double busy) {
  double most = 0;
  for (int32_t h = 0; h < f->hours; h++)
    most = fmax(most, wanted[h]);
  const double rented = isinf(o->usd_by_hour) ? most : paid_hours(f, wanted, 0, INFINITY) / f->hours;
  const double watts = o->idle_w * rented + (o->power_w - o->idle_w) * busy;
  return watts * (double)HOURS / 1000 + devices_kwh(f, o->device_j, classes);
}

/* The least cost of a pool: USD, or with `energy` kWh; INFINITY: it is impossible. */
static double least_of(const lp_fleet_proof *f, const lp_fleet_proof_option *o, unsigned classes, bool energy) {
  double busy, wanted[DAY], most = 0;
  if (load_of(f, o, classes, &busy) == 0) return INFINITY;
  for (int32_t h = 0; h < f->hours; h++) {
    wanted[h] = fmax(1, ceil(f->hour[h] * busy * (1 - 1e-7))) + (double)f->spare;
    most = fmax(most, wanted[h]);
  }
  if (o->most > 0 && most > (double)o->most) return INFINITY;
  return energy ? least_kwh_of(f, o, classes, wanted, busy * f->mean) : least_usd_of(f, o, wanted);
}

/* NAN: a power that it takes is unknown. */
static double bound_of(const lp_fleet_proof *f, bool energy) {
  double pool[1 << CLASSES] = {0}, best[1 << CLASSES] = {0};
  for (unsigned mask = 1; mask < 1u << f->classes; mask++) {
    pool[mask] = best[mask] = INFINITY;
    bool alone = true;
    for (size_t i = 0; i < f->classes; i++)
      alone = alone && (f->alone[i] || !(mask >> i & 1));
    if (alone) pool[mask] = energy ? devices_kwh(f, f->alone_j, mask) : 0;
    LP_FOR_EACH(const lp_fleet_proof_option, o, f->option, f->options) {
      const double least = least_of(f, o, mask, energy);
      if (isnan(least) || isnan(pool[mask])) return NAN;
      pool[mask] = fmin(pool[mask], least);
    }
    for (unsigned part = mask; part; part = (part - 1) & mask)
      best[mask] = fmin(best[mask], pool[part] + best[mask & ~part]);
  }
  return best[(1u << f->classes) - 1];
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

typedef struct {
  double passes_kwh, idle_kwh, devices_kwh; /* a month; NAN: a power is unknown */
  double rented_kwh;                        /* if all were idle; 0 where that is unknown */
  double usd, busy_usd;                     /* busy: by the share of the time that the requests need at least */
  int64_t machines;
} sums;

/* USD a month of a pool, and the machines that are needed and that are rented in the mean. `stay` of its machines stay,
 * the next are of the spot market, the others come and go. */
static lp_status price_pool(const lp_fleet_proof *f, const lp_json *at, const lp_fleet_proof_option *o, int64_t firm,
                            int64_t spot, double *usd, double *mean, double *rented) {
  double wanted[DAY], most = 0;
  int64_t stay, needed;
  LP_TRY(lp_fleet_proof_integer(f, at, "needed", 1, &needed));
  LP_TRY(lp_fleet_proof_integer(f, at, "stay", 0, &stay));
  LP_TRY(lp_fleet_proof_numbers(f, at, "by_hour", (size_t)f->hours, wanted));
  *mean = 0;
  for (int32_t h = 0; h < f->hours; h++) {
    if (wanted[h] < 1 || wanted[h] != floor(wanted[h]))
      return lp_fleet_proof_refuse(f, "machines of hour", (size_t)h, wanted[h], 1);
    *mean += wanted[h] / f->hours;
    most = fmax(most, wanted[h]);
    wanted[h] += (double)f->spare;
  }
  if (most != (double)needed) return lp_fleet_proof_refuse(f, "the busiest hour of pool", 0, most, (double)needed);
  const double first = (double)stay, last = most + (double)f->spare - (double)(firm - stay); /* of the spot market */
  if (stay > firm || (stay < firm && isinf(o->usd_by_hour)))
    return lp_fleet_proof_refuse(f, "the machines that stay of pool", 0, first, (double)firm);
  const double comes = firm > stay ? o->usd_by_hour * paid_hours(f, wanted, last, INFINITY) : 0;
  const double spots = paid_hours(f, wanted, first, last) + ((double)spot - last + first) * f->hours;
  *rented = first + (spots + (firm > stay ? paid_hours(f, wanted, last, INFINITY) : 0)) / f->hours;
  *usd = (o->usd_per_hour * first * f->hours + o->spot_usd * spots + comes) * (double)HOURS / f->hours;
  return LP_OK;
}

static lp_status check_pool(const lp_fleet_proof *f, const lp_json *at, size_t index, sums *sum) {
  const lp_json machine = lp_json_member(at, "machine");
  int64_t which, count, needed, spot, spare, sessions;
  double hour, month, utilisation, share, busy, wanted = 0, mean = 1, rented = 0;
  unsigned classes = 0;
  LP_TRY(lp_fleet_proof_integer(f, at, "option", 0, &which));
  if ((size_t)which >= f->options) return lp_fleet_proof_refuse(f, "the option of pool", index, (double)which, 0);
  const lp_fleet_proof_option *o = &f->option[which];
  if (!lp_json_equals(&machine, o->machine)) return lp_json_error(&machine, f->diag, "wanted '%s'", o->machine);
  LP_TRY(lp_fleet_proof_integer(f, at, "count", 1, &count));
  LP_TRY(lp_fleet_proof_integer(f, at, "needed", 1, &needed));
  LP_TRY(lp_fleet_proof_integer(f, at, "spot", 0, &spot));
  LP_TRY(lp_fleet_proof_integer(f, at, "spare", 0, &spare));
  LP_TRY(lp_fleet_proof_integer(f, at, "sessions", 1, &sessions));
  LP_TRY(lp_fleet_proof_number(f, at, "usd_per_hour", 0, &hour));
  LP_TRY(lp_fleet_proof_number(f, at, "usd_per_month", 0, &month));
  LP_TRY(lp_fleet_proof_number(f, at, "utilisation", 0, &utilisation));
  LP_TRY(lp_fleet_proof_number(f, at, "busy", 0, &share));
  for (size_t i = 0; i < f->classes; i++) {
    if (f->pool[i] != (int64_t)index) continue;
    classes |= 1u << i;
    LP_TRY(lp_fleet_proof_same(f, "device_layers of class", i, (double)f->layers[i], fmax(0, (double)o->cut - 1)));
    if (f->layers[i] < f->hidden[i])
      return lp_fleet_proof_refuse(f, "the layers of class", i, (double)f->layers[i], (double)f->hidden[i]);
    const int32_t runs = o->cut == 0                             ? 1
                         : o->asks >= 1                          ? 0
                         : o->question_rows * o->asks > 1 + 1e-9 ? 4
                                                                 : 3; /* of `places` */
    if (f->runs[i] != runs) return lp_fleet_proof_refuse(f, "what runs in the cloud of class", i, f->runs[i], runs);
  }
  const int64_t most = load_of(f, o, classes, &busy);
  const int64_t firm = count - spot, there = firm + (o->covers && spot <= o->spots ? o->covers[spot] : 0);
  if (firm < 0 || there != needed + spare)
    return lp_fleet_proof_refuse(f, "the machines that are there of pool", index, (double)there,
                                 (double)(needed + spare));
  LP_TRY(lp_fleet_proof_same(f, "spare machines of pool", index, (double)spare, (double)f->spare));
  LP_TRY(lp_fleet_proof_same(f, "sessions of pool", index, (double)sessions, (double)most));
  LP_TRY(lp_fleet_proof_same(f, "usd_per_hour of pool", index, hour, o->usd_per_hour));
  LP_TRY(price_pool(f, at, o, firm, spot, &wanted, &mean, &rented));
  LP_TRY(lp_fleet_proof_same(f, "usd_per_month of pool", index, month, wanted));
  LP_TRY(lp_fleet_proof_same(f, "utilisation of pool", index, utilisation, busy * f->mean / mean));
  if (!(utilisation <= 1 && share <= 1 + 1e-9))
    return lp_fleet_proof_refuse(f, "the load of pool", index, fmax(utilisation, share), 1);
  if (lp_json_is_given(LP_MEMBER(at, "region"))) {
    const char *region;
    LP_TRY(lp_json_text(LP_MEMBER(at, "region"), &region, f->diag));
  }
  sum->passes_kwh += o->power_w * share * mean * (double)HOURS / 1000;
  sum->rented_kwh += isnan(o->idle_w) ? 0 : o->idle_w * rented * (double)HOURS / 1000;
  sum->idle_kwh += o->idle_w * (rented - share * mean) * (double)HOURS / 1000;
  sum->devices_kwh += devices_kwh(f, o->device_j, classes);
  sum->usd += month;
  sum->busy_usd +=
      (double)HOURS * (o->covers ? fmin(o->usd_per_hour, o->spot_usd) : o->usd_per_hour) * busy * f->rented_mean;
  sum->machines += count;
  return LP_OK;
}

static lp_status check_energy(const lp_fleet_proof *f, const lp_json *all, const sums *sum) {
  static const char *const keys[] = {"kwh_per_month", "idle_kwh_per_month", "device_kwh_per_month"};
  const double wanted[] = {sum->passes_kwh, sum->idle_kwh, sum->devices_kwh};
  double found, proved;
  for (size_t i = 0; i < LP_COUNT(keys); i++) {
    LP_TRY(lp_fleet_proof_known(f, LP_MEMBER(all, keys[i]), &found));
    if (isnan(found) != isnan(wanted[i])) return lp_fleet_proof_refuse(f, keys[i], i, found, wanted[i]);
    if (fabs(found - wanted[i]) > 1e-7 * (wanted[i] + sum->rented_kwh))
      return lp_fleet_proof_refuse(f, keys[i], i, found, wanted[i]);
  }
  LP_TRY(lp_fleet_proof_known(f, LP_MEMBER(all, "kwh_lower_bound"), &found));
  if (isnan(found)) return LP_OK;
  proved = bound_of(f, true);
  if (found <= proved * (1 + 1e-8)) return LP_OK;
  return lp_error_as(LP_MISMATCH, f->diag, LP_LOC_FILE(f->file), "fleet.kwh_lower_bound is %.12g, only %.12g is proved",
                     found, proved);
}

static lp_status check_sums(const lp_fleet_proof *f, const lp_json *root, lp_certificate_fleet_finding *out) {
  const lp_json all = lp_json_member(root, "fleet"), more = lp_json_member(root, "one_more");
  lp_json pools;
  sums sum = {0};
  double gap, machines, share, mean, least, alone = 0;
  LP_TRY(lp_fleet_proof_list(f, root, "pools", 0, CLASSES, &pools));
  LP_FOR_ITEMS(at, &pools)
    LP_TRY(check_pool(f, &at, at.index, &sum));
  for (size_t i = 0; i < f->classes; i++) {
    if (f->pool[i] >= (int64_t)lp_json_count(&pools))
      return lp_fleet_proof_refuse(f, "the pool of class", i, (double)f->pool[i], 0);
    if (f->pool[i] < 0 && !(f->alone[i] && f->runs[i] == 2))
      return lp_fleet_proof_refuse(f, "the pool of class", i, -1, 0);
    if (f->pool[i] >= 0) continue;
    alone += f->share[i];
    sum.devices_kwh += devices_kwh(f, f->alone_j, 1u << i);
  }
  LP_TRY(lp_fleet_proof_number(f, &all, "usd_per_month", 0, &out->usd));
  LP_TRY(lp_fleet_proof_number(f, &all, "lower_bound", 0, &out->bound));
  LP_TRY(lp_fleet_proof_number(f, &all, "gap", 0, &gap));
  LP_TRY(lp_fleet_proof_number(f, &all, "machines", 0, &machines));
  LP_TRY(lp_fleet_proof_number(f, &all, "device_share", 0, &share));
  LP_TRY(lp_fleet_proof_same(f, "usd_per_month of classes", f->classes, out->usd, sum.usd));
  LP_TRY(lp_fleet_proof_same(f, "machines of classes", f->classes, machines, (double)sum.machines));
  LP_TRY(lp_fleet_proof_same(f, "device_share of classes", f->classes, share, alone));
  LP_TRY(check_energy(f, &all, &sum));
  LP_TRY(lp_fleet_proof_number(f, &more, "mean_usd_per_month", 0, &mean));
  LP_TRY(lp_fleet_proof_number(f, &more, "least_usd_per_month", 0, &least));
  LP_TRY(lp_fleet_proof_same(f, "one_more.least_usd_per_month of classes", f->classes, least * out->usd,
                             mean * sum.busy_usd));
  const double wanted = out->usd > 0 ? 1 - out->bound / out->usd : 0;
  return fabs(gap - wanted) <= 1e-8 ? LP_OK : lp_fleet_proof_refuse(f, "gap of classes", f->classes, gap, wanted);
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

bool lp_certificate_is_of_fleet(const lp_certificate *c) {
  const lp_json root = lp_json_root("", c->report), schema = lp_json_member(&root, "schema");
  return lp_json_equals(&schema, "llmpart.fleet/1");
}

static lp_status check(lp_fleet_proof *f, const lp_json *root, lp_certificate_fleet_finding *out) {
  const lp_json digest = lp_json_member(root, "digest");
  char text[20];
  (void)snprintf(text, sizeof text, "%016" PRIx64, lp_json_digest(root, "digest"));
  LP_TRY(lp_fleet_proof_read(f, root));
  LP_TRY(check_sums(f, root, out));
  const double proved = bound_of(f, false);
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
  lp_fleet_proof *f = LP_NEW(arena, lp_fleet_proof);
  f->file = file;
  f->arena = arena;
  f->diag = diag;
  *out = (lp_certificate_fleet_finding){0};
  return check(f, root, out);
}
