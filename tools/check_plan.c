/* llmpart check-plan: confirms the certificate in a report. It shares no code with the planner, only the definition of
 * what a plan comes to: operators' times, one message per turn, what each side holds; and it proves the lower bound anew
 * from the certificate's prices: whatever the placement, it costs at least the shortest path through both stages, less
 * the prices of the limits. */
#include "tools/certificate.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_LIVE = 8, MOST_HELD = 8, MOST_TURN = 7 };

/* ---- the bound ----------------------------------------------------------------------------------------------------------- */

/* A situation between two units, packed: 4 bits per live value (turn and whether it crossed), 16 for paid turns, 2 per
 * live holding. Turns count from the oldest that is live. */
typedef struct {
  uint64_t key;
  double price;
} situation;

typedef struct {
  situation *slot; /* hash table; price INFINITY: empty */
  size_t count, slots;
} table;

typedef struct {
  const certificate *c;
  const stage *s;
  int which, value[MOST_LIVE], held[MOST_HELD];
  size_t value_count, held_count;
  int anchor; /* the last unit that reads nothing: until then turns are absolute */
} path;

static void put(table *t, uint64_t key, double price);

static void grow(table *t) {
  table old = *t;
  t->slots = old.slots ? 2 * old.slots : 256;
  t->slot = lp_alloc(t->slots * sizeof *t->slot);
  t->count = 0;
  for (size_t i = 0; i < t->slots; i++)
    t->slot[i].price = INFINITY;
  for (size_t i = 0; i < old.slots; i++)
    if (!isinf(old.slot[i].price)) put(t, old.slot[i].key, old.slot[i].price);
  free(old.slot);
}

static void put(table *t, uint64_t key, double price) {
  if (2 * (t->count + 1) > t->slots) grow(t);
  size_t at = (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (t->slots - 1);
  while (!isinf(t->slot[at].price) && t->slot[at].key != key)
    at = (at + 1) & (t->slots - 1);
  t->count += isinf(t->slot[at].price) ? 1 : 0;
  if (price < t->slot[at].price) t->slot[at] = (situation){key, price};
}

static size_t find(const int *list, size_t count, int item) {
  size_t i = 0;
  while (i < count && list[i] != item)
    i++;
  return i;
}

/* What a stage pays for a holding that a side begins to hold; caches also for not being where the other stage has them,
 * as far as moving them costs that much. */
static double holding_price(const certificate *c, const holding *h, int which, int side) {
  bool alone = h->first[1 - which] < 0;
  double share = alone ? 1 : fmin(fmax(h->share[side], 0), 1);
  double price = c->price_bytes[side] * h->bytes[side] * (alone || !which ? share : 1 - share);
  if (!h->cache || alone || side) return price;
  double per_ms = c->move + c->price_ms[0];
  double residence = fmin(c->residence, per_ms * h->move_bytes * c->ms_per_byte[0]);
  residence = fmax(residence, -per_ms * h->move_bytes * c->ms_per_byte[1]);
  return which ? price - residence : price + residence;
}

/* Puts unit `index` on `side` in one situation. False when it does not fit the packing. */
static bool step(const path *p, const path *after, int index, int side, const situation *from, table *out) {
  const certificate *c = p->c;
  const unit *u = &p->s->units[index];
  unsigned turn[MOST_LIVE + 1] = {0}, crossed = 0, oldest = 16, made = 0;
  uint64_t paid = from->key >> 32 & 0xffff, held = from->key >> 48;
  double ms = u->ms[side], link = 0, price = from->price;
  if (u->pin >= 0 && u->pin != side) return true;
  for (size_t i = 0; i < p->value_count; i++) {
    turn[i] = from->key >> (4 * i) & 7;
    crossed |= (unsigned)(from->key >> (4 * i + 3) & 1) << i;
  }
  for (size_t i = 0; i < u->in_count; i++) {
    unsigned at = turn[find(p->value, p->value_count, u->in[i])];
    if (at > made) made = at;
  }
  made += made % 2 != (unsigned)side;
  for (size_t i = 0; i < u->in_count; i++) {
    size_t at = find(p->value, p->value_count, u->in[i]);
    if (turn[at] % 2 == (unsigned)side || crossed >> at & 1) continue;
    crossed |= 1u << at;
    link += p->s->value[u->in[i]] * c->ms_per_byte[!side] + (paid >> turn[at] & 1 ? 0 : c->message_ms);
    paid |= 1u << turn[at];
  }
  if (u->is_result && side) {
    link += u->result_bytes * c->ms_per_byte[1] + (paid >> made & 1 ? 0 : c->message_ms);
    paid |= 1u << made;
  }
  uint64_t held_now = 0, key = 0;
  for (size_t i = 0; i < u->hold_count; i++) {
    const holding *h = &c->holdings[u->hold[i]];
    size_t at = find(p->held, p->held_count, u->hold[i]);
    unsigned mask = at < p->held_count ? held >> (2 * at) & 3 : 0;
    if (h->cache && mask && !(mask >> side & 1)) return true;
    if (!(mask >> side & 1)) {
      ms += h->ms[p->which][side];
      price += holding_price(c, h, p->which, side);
    }
    at = find(after->held, after->held_count, u->hold[i]);
    if (at < after->held_count) held_now |= (uint64_t)(mask | 1u << side) << (2 * at);
  }
  for (size_t i = 0; i < after->held_count; i++) {
    size_t at = find(p->held, p->held_count, after->held[i]);
    if (at < p->held_count && !(held_now >> (2 * i) & 3)) held_now |= (held >> (2 * at) & 3) << (2 * i);
  }
  for (size_t i = 0; i < after->value_count; i++) {
    size_t at = find(p->value, p->value_count, after->value[i]);
    unsigned t = at < p->value_count ? turn[at] : made;
    if (t < oldest) oldest = t;
  }
  oldest = index < p->anchor ? 0 : oldest & ~1u;
  for (size_t i = 0; i < after->value_count; i++) {
    size_t at = find(p->value, p->value_count, after->value[i]);
    unsigned t = (at < p->value_count ? turn[at] : made) - oldest, bit = at < p->value_count ? crossed >> at & 1 : 0;
    if (t > MOST_TURN) return false;
    key |= (uint64_t)(t | bit << 3) << (4 * i);
  }
  if (after->value_count) key |= (paid >> oldest & 0xffff) << 32;
  price += (c->busy[p->which][side] + c->price_ms[p->which]) * ms + (c->link[p->which] + c->price_ms[p->which]) * link;
  put(out, key | held_now << 48, price);
  return true;
}

/* What is live behind unit `index`. */
static bool move_on(const path *p, int index, path *out) {
  const unit *u = &p->s->units[index];
  *out = *p;
  out->value_count = out->held_count = 0;
  for (size_t i = 0; i < p->value_count + u->out_count; i++) {
    int value = i < p->value_count ? p->value[i] : u->out[i - p->value_count];
    if (p->s->last[value] <= index) continue;
    if (out->value_count == MOST_LIVE) return false;
    out->value[out->value_count++] = value;
  }
  for (size_t i = 0; i < p->held_count + u->hold_count; i++) {
    int held = i < p->held_count ? p->held[i] : u->hold[i - p->held_count];
    const holding *h = &p->c->holdings[held];
    if (h->first[p->which] == h->last[p->which] || h->last[p->which] <= index ||
        find(out->held, out->held_count, held) < out->held_count)
      continue;
    if (out->held_count == MOST_HELD) return false;
    out->held[out->held_count++] = held;
  }
  return true;
}

/* The least price of a stage; NaN when its situations do not fit the packing. */
static double least_price(const certificate *c, int which) {
  path now = {.c = c, .s = &c->stages[which], .which = which, .anchor = -1}, next;
  table table_now = {0}, table_next = {0};
  bool fits = true;
  for (size_t i = 0; i < now.s->value_count && fits; i++) {
    if (now.s->maker[i] >= 0 || now.s->last[i] < 0) continue;
    fits = now.value_count < MOST_LIVE;
    if (fits) now.value[now.value_count++] = (int)i;
  }
  for (size_t i = 0; i < now.s->unit_count; i++)
    if (!now.s->units[i].in_count) now.anchor = (int)i;
  put(&table_now, 0, 0);
  for (int i = 0; i < (int)now.s->unit_count && fits; i++) {
    fits = move_on(&now, i, &next);
    for (size_t k = 0; k < table_now.slots && fits; k++)
      for (int side = 0; side < 2 && fits; side++)
        if (!isinf(table_now.slot[k].price)) fits = step(&now, &next, i, side, &table_now.slot[k], &table_next);
    free(table_now.slot);
    table_now = table_next;
    table_next = (table){0};
    now = next;
  }
  double least = INFINITY;
  for (size_t k = 0; k < table_now.slots; k++)
    least = fmin(least, table_now.slot[k].price);
  free(table_now.slot);
  free(table_next.slot);
  return fits ? least : NAN;
}

static double prove_bound(const certificate *c) {
  double bound = least_price(c, 0) + least_price(c, 1);
  for (int i = 0; i < 2; i++)
    bound -= c->price_ms[i] * c->limit_ms[i] + c->price_bytes[i] * c->limit_bytes[i];
  return bound;
}

/* ---- the command ------------------------------------------------------------------------------------------------------------ */

static bool near(double a, double b) {
  return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-15;
}

static lp_status judge(const certificate *c, const char *file, lp_diag *diag) {
  static const char *const times[] = {"TTFT", "TPOT"}, *const sides[] = {"device", "cloud"};
  totals t = certificate_add_up(c);
  double bound = prove_bound(c);
  lp_status status = LP_OK;
  for (int i = 0; i < 2; i++) {
    if (c->limit_ms[i] > 0 && t.ms[i] > c->limit_ms[i] * (1 + 1e-12))
      status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "%s comes to %.9g ms, the limit is %.9g ms", times[i],
                           t.ms[i], c->limit_ms[i]);
    if (c->limit_bytes[i] > 0 && t.bytes[i] > c->limit_bytes[i])
      status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "the %s holds %.0f bytes, the limit is %.0f", sides[i],
                           t.bytes[i], c->limit_bytes[i]);
    if (c->price_ms[i] < 0 || c->price_bytes[i] < 0)
      status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "a price is negative: it proves nothing");
  }
  if (!t.pinned || !t.caches)
    status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file),
                         t.pinned ? "a KV cache is used from both sides" : "a pinned operator is elsewhere");
  if (!near(t.value, c->value))
    status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "the plan comes to %.12g, the report says %.12g",
                         t.value, c->value);
  if (isnan(bound))
    status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file),
                         "the bound cannot be confirmed: too much lives between two operators");
  else if (bound < c->bound - 1e-9 * fabs(c->bound) - 1e-15)
    status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "the prices prove %.12g, the report says %.12g", bound,
                         c->bound);
  if (status == LP_OK)
    printf("%s: plan %.9g, at least %.9g is proved, gap %.3g %%; TTFT %.6g ms, TPOT %.6g ms\n", file, t.value,
           fmin(bound, t.value), t.value > 0 ? 100 * fmax(0, 1 - bound / t.value) : 0, t.ms[0], t.ms[1]);
  return status;
}

static lp_status check_file(const char *file, lp_diag *diag) {
  certificate c;
  lp_status status = certificate_load(file, &c, diag);
  if (status == LP_OK) status = judge(&c, file, diag);
  certificate_free(&c);
  return status;
}

int lp_tool_check_plan(int argc, char **argv) {
  const lp_command command = {.usage = "llmpart check-plan REPORT.json",
                              .summary =
                                  "Recomputes a plan's objective and limits from the certificate in its report, and\n"
                                  "proves its lower bound anew. Exit status 4: the report does not hold.",
                              .min_args = 1,
                              .max_args = 1};
  lp_diag *diag = lp_tool_diag();
  lp_texts args = {0};
  bool done = false;
  lp_status status = lp_options_read(&command, argc, argv, &args, &done, diag);
  if (status == LP_OK && !done) status = check_file(args.data[0], diag);
  lp_vec_free(&args);
  lp_diag_free(diag);
  return (int)status;
}
