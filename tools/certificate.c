/* Reading a report's certificate, and adding up what its plan comes to. */
#include "tools/certificate.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

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
  out->name = json_string_value(json_object_get(json, "name"));
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

totals certificate_add_up(const certificate *c) {
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

/* ---- the file ----------------------------------------------------------------------------------------------------------- */

lp_status certificate_load(const char *file, certificate *out, lp_diag *diag) {
  json_error_t error;
  json_t *report = json_load_file(file, 0, &error);
  *out = (certificate){.arena = lp_arena_create(), .json = report};
  if (!report)
    return lp_error(diag, ((lp_loc){.file = file, .line = error.line, .col = error.column}), "%s", error.text);
  const json_t *json = json_object_get(report, "certificate");
  if (!json)
    return lp_error(diag, LP_LOC_FILE(file),
                    "there is no certificate: the plan is not the exact scheduler's, or not feasible");
  if (!read_certificate(out, json))
    return lp_error(diag, LP_LOC_FILE(file), "the certificate lacks a part, or names something that is not there");
  return LP_OK;
}

void certificate_free(certificate *c) {
  json_decref(c->json);
  lp_arena_free(c->arena);
}
