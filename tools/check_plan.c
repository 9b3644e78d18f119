/* llmpart check-plan: confirms the certificate in a report. It shares no code with the planner, only the definition of
 * what a plan comes to: operators' times, one message per turn, what each side holds; and it proves the lower bound anew
 * from the certificate's prices: whatever the placement, it costs at least the shortest path through both stages, less
 * the prices of the limits. */
#include "tools/tools.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LIVE = 8, MOST_HELD = 8, MOST_TURN = 7 };

typedef struct {
  double bytes[2], share[2], ms[2][2], move_bytes; /* share: prefill's of the price, by side */
  bool cache;
  int first[2], last[2]; /* units, by stage; -1: none */
} holding;

typedef struct {
  double ms[2], activation[2], result_bytes;
  int pin, side, *in, *out, *hold;
  size_t in_count, out_count, hold_count;
  bool is_result;
} unit;

typedef struct {
  double *value; /* bytes */
  int *last;     /* unit that reads it last */
  int *maker;    /* unit, -1: an input */
  unit *units;
  size_t value_count, unit_count;
} stage;

typedef struct {
  double busy[2][2], link[2], move, limit_ms[2], limit_bytes[2], message_ms, ms_per_byte[2];
  double price_ms[2], price_bytes[2], residence, value, bound;
  holding *holdings;
  size_t holding_count;
  stage stages[2];
  lp_arena *arena;
} certificate;

/* ---- reading ---------------------------------------------------------------------------------------------------------- */

static double number(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

static void pair(const json_t *object, const char *key, double out[2]) {
  const json_t *list = json_object_get(object, key);
  for (size_t i = 0; i < 2; i++)
    out[i] = json_number_value(json_array_get(list, i));
}

/* Indices below `limit`; false when one is not. */
static bool indices(certificate *c, const json_t *object, const char *key, size_t limit, int **out, size_t *count) {
  const json_t *list = json_object_get(object, key);
  *count = json_array_size(list);
  *out = LP_NEW_ARRAY(c->arena, int, *count);
  for (size_t i = 0; i < *count; i++) {
    json_int_t index = json_integer_value(json_array_get(list, i));
    if (index < 0 || (size_t)index >= limit) return false;
    (*out)[i] = (int)index;
  }
  return true;
}

static void read_holding(const json_t *json, holding *out) {
  pair(json, "bytes", out->bytes);
  pair(json, "prefill_share", out->share);
  pair(json, "prefill_ms", out->ms[0]);
  pair(json, "decode_ms", out->ms[1]);
  out->move_bytes = number(json, "move_bytes");
  out->cache = json_is_true(json_object_get(json, "cache"));
  for (int i = 0; i < 2; i++)
    out->first[i] = out->last[i] = -1;
}

static bool read_unit(certificate *c, const json_t *json, stage *s, unit *out) {
  const json_t *pin = json_object_get(json, "pin"), *result = json_object_get(json, "result_bytes");
  out->pin = pin ? (int)json_integer_value(pin) : -1;
  out->side = json_integer_value(json_object_get(json, "side")) != 0;
  out->is_result = result != NULL;
  out->result_bytes = json_number_value(result);
  pair(json, "ms", out->ms);
  pair(json, "activation", out->activation);
  return indices(c, json, "in", s->value_count, &out->in, &out->in_count) &&
         indices(c, json, "out", s->value_count, &out->out, &out->out_count) &&
         indices(c, json, "hold", c->holding_count, &out->hold, &out->hold_count);
}

static bool read_stage(certificate *c, const json_t *json, int which) {
  stage *s = &c->stages[which];
  const json_t *values = json_object_get(json, "values"), *units = json_object_get(json, "units");
  s->value_count = json_array_size(values);
  s->unit_count = json_array_size(units);
  s->value = LP_NEW_ARRAY(c->arena, double, s->value_count);
  s->last = LP_NEW_ARRAY(c->arena, int, s->value_count);
  s->maker = LP_NEW_ARRAY(c->arena, int, s->value_count);
  s->units = LP_NEW_ARRAY(c->arena, unit, s->unit_count);
  for (size_t i = 0; i < s->value_count; i++) {
    s->value[i] = json_number_value(json_array_get(values, i));
    s->last[i] = s->maker[i] = -1;
  }
  for (size_t i = 0; i < s->unit_count; i++) {
    unit *u = &s->units[i];
    if (!read_unit(c, json_array_get(units, i), s, u)) return false;
    for (size_t k = 0; k < u->in_count; k++)
      s->last[u->in[k]] = (int)i;
    for (size_t k = 0; k < u->out_count; k++)
      s->maker[u->out[k]] = (int)i;
    for (size_t k = 0; k < u->hold_count; k++) {
      holding *h = &c->holdings[u->hold[k]];
      if (h->first[which] < 0) h->first[which] = (int)i;
      h->last[which] = (int)i;
    }
  }
  for (size_t i = 0; i < s->unit_count; i++) /* program order: nothing is read before it is made */
    for (size_t k = 0; k < s->units[i].in_count; k++)
      if (s->maker[s->units[i].in[k]] >= (int)i) return false;
  return true;
}

static bool read_certificate(certificate *c, const json_t *json) {
  const json_t *objective = json_object_get(json, "objective"), *limits = json_object_get(json, "limits");
  const json_t *prices = json_object_get(json, "prices"), *link = json_object_get(json, "link");
  const json_t *holdings = json_object_get(json, "holdings");
  if (!json_is_object(json) || !objective || !limits || !prices || !link) return false;
  pair(objective, "prefill_per_ms", c->busy[0]);
  pair(objective, "decode_per_ms", c->busy[1]);
  pair(objective, "link_per_ms", c->link);
  c->move = number(objective, "move_per_ms");
  pair(limits, "ms", c->limit_ms);
  pair(limits, "bytes", c->limit_bytes);
  pair(prices, "ms", c->price_ms);
  pair(prices, "bytes", c->price_bytes);
  c->residence = number(prices, "residence");
  c->message_ms = number(link, "message_ms");
  pair(link, "ms_per_byte", c->ms_per_byte);
  c->value = number(json, "value");
  c->bound = number(json, "bound");
  c->holding_count = json_array_size(holdings);
  c->holdings = LP_NEW_ARRAY(c->arena, holding, c->holding_count);
  for (size_t i = 0; i < c->holding_count; i++)
    read_holding(json_array_get(holdings, i), &c->holdings[i]);
  return read_stage(c, json_object_get(json, "prefill"), 0) && read_stage(c, json_object_get(json, "decode"), 1);
}

/* ---- what the plan comes to --------------------------------------------------------------------------------------------- */

/* A stage's messages: the turn of a unit is the first of its side's that is not before what it reads. */
static double link_time(const certificate *c, const stage *s) {
  int *turn = LP_NEW_ARRAY(c->arena, int, s->unit_count), last = 0;
  bool *crossed = LP_NEW_ARRAY(c->arena, bool, s->value_count);
  double ms = 0;
  for (size_t i = 0; i < s->unit_count; i++) {
    for (size_t k = 0; k < s->units[i].in_count; k++) {
      int maker = s->maker[s->units[i].in[k]];
      if (maker >= 0 && turn[maker] > turn[i]) turn[i] = turn[maker];
    }
    turn[i] += turn[i] % 2 != s->units[i].side;
    if (turn[i] > last) last = turn[i];
  }
  bool *sent = LP_NEW_ARRAY(c->arena, bool, last + 1);
  for (size_t i = 0; i < s->unit_count; i++) {
    const unit *u = &s->units[i];
    for (size_t k = 0; k < u->in_count; k++) {
      int maker = s->maker[u->in[k]], from = maker < 0 ? 0 : s->units[maker].side;
      if (from == u->side || crossed[u->in[k]]) continue;
      crossed[u->in[k]] = true;
      sent[maker < 0 ? 0 : turn[maker]] = true;
      ms += s->value[u->in[k]] * c->ms_per_byte[from];
    }
    if (!u->is_result || !u->side) continue;
    sent[turn[i]] = true;
    ms += u->result_bytes * c->ms_per_byte[1];
  }
  for (int i = 0; i <= last; i++)
    ms += sent[i] ? c->message_ms : 0;
  return ms;
}

typedef struct {
  double ms[2], bytes[2], value;
  bool pinned, caches; /* all pins kept; all users of a cache on one side */
} totals;

/* Memory, caches and their moves; adds what holdings take of time to busy[stage][side]. */
static void add_holdings(const certificate *c, double busy[2][2], totals *t) {
  unsigned char *held = LP_NEW_ARRAY(c->arena, unsigned char, 2 * c->holding_count);
  double moved[2] = {0, 0}, ms = 0;
  for (size_t w = 0; w < 2; w++)
    for (size_t i = 0; i < c->stages[w].unit_count; i++)
      for (size_t k = 0; k < c->stages[w].units[i].hold_count; k++)
        held[2 * (size_t)c->stages[w].units[i].hold[k] + w] |= (unsigned char)(1 << c->stages[w].units[i].side);
  for (size_t i = 0; i < c->holding_count; i++) {
    const holding *h = &c->holdings[i];
    const unsigned char *on = &held[2 * i];
    for (int side = 0; side < 2; side++) {
      if ((on[0] | on[1]) >> side & 1) t->bytes[side] += h->bytes[side];
      for (int w = 0; w < 2; w++)
        if (on[w] >> side & 1) busy[w][side] += h->ms[w][side];
    }
    if (!h->cache) continue;
    if (on[0] == 3 || on[1] == 3) t->caches = false;
    if (on[0] && on[1] && on[0] != on[1]) moved[on[0] == 2] += h->move_bytes;
  }
  for (int side = 0; side < 2; side++)
    if (moved[side] > 0) ms += c->message_ms + moved[side] * c->ms_per_byte[side];
  t->ms[0] += ms;
  t->value += c->move * ms;
}

static totals add_up(const certificate *c) {
  totals t = {.pinned = true, .caches = true};
  double busy[2][2] = {{0, 0}, {0, 0}}, activation[2] = {0, 0};
  add_holdings(c, busy, &t);
  for (int w = 0; w < 2; w++) {
    const stage *s = &c->stages[w];
    for (size_t i = 0; i < s->unit_count; i++) {
      const unit *u = &s->units[i];
      busy[w][u->side] += u->ms[u->side];
      activation[u->side] = fmax(activation[u->side], u->activation[u->side]);
      if (u->pin >= 0 && u->pin != u->side) t.pinned = false;
    }
    double link = link_time(c, s);
    t.ms[w] += busy[w][0] + busy[w][1] + link;
    t.value += c->busy[w][0] * busy[w][0] + c->busy[w][1] * busy[w][1] + c->link[w] * link;
  }
  for (int side = 0; side < 2; side++)
    t.bytes[side] += 2 * activation[side];
  return t;
}

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
  totals t = add_up(c);
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
  json_error_t error;
  json_t *report = json_load_file(file, JSON_DECODE_ANY, &error);
  if (!report)
    return lp_error(diag, ((lp_loc){.file = file, .line = error.line, .col = error.column}), "%s", error.text);
  certificate c = {.arena = lp_arena_create()};
  const json_t *json = json_object_get(report, "certificate");
  lp_status status;
  if (!json)
    status = lp_error(diag, LP_LOC_FILE(file),
                      "there is no certificate: the plan is not the exact scheduler's, or not feasible");
  else if (!read_certificate(&c, json))
    status = lp_error(diag, LP_LOC_FILE(file), "the certificate lacks a part, or names something that is not there");
  else
    status = judge(&c, file, diag);
  lp_arena_free(c.arena);
  json_decref(report);
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
