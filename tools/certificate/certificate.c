/* Reads the certificate of a report and adds up its plan. */
#include "tools/certificate/certificate.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Reads indices below `limit`; false when one is not, or when `list` is no list. */
static bool indices(certificate *c, const json_t *list, size_t limit, int **out, size_t *count) {
  *count = json_array_size(list);
  *out = LP_NEW_ARRAY(c->arena, int, *count);
  for (size_t i = 0; i < *count; i++) {
    json_int_t index = json_integer_value(json_array_get(list, i));
    if (index < 0 || (size_t)index >= limit) return false;
    (*out)[i] = (int)index;
  }
  return json_is_array(list);
}

/* Reads `count` numbers; NULL without a list. */
static double *numbers(certificate *c, const json_t *list, size_t count) {
  double *out = list ? LP_NEW_ARRAY(c->arena, double, count) : NULL;
  for (size_t i = 0; i < count && out; i++)
    out[i] = json_number_value(json_array_get(list, i));
  return out;
}

static bool read_holding(json_t *json, holding *out) {
  *out = (holding){.first = {-1, -1}};
  return json_unpack(json, "{s[FF] s?[FF] s?[FF] s?b s?F}", "bytes", &out->bytes[0], &out->bytes[1], "prefill_ms",
                     &out->ms[0][0], &out->ms[0][1], "decode_ms", &out->ms[1][0], &out->ms[1][1], "cache", &out->cache,
                     "move_bytes", &out->move_bytes) == 0;
}

static bool read_unit(certificate *c, json_t *json, const stage *s, unit *out) {
  json_t *in, *made, *hold, *way, *split;
  *out = (unit){.pin = -1, .result_bytes = -1};
  if (json_unpack(json, "{ss si s?i s[FF] s[FF] so so so s?F s?F so so}", "name", &out->name, "side", &out->side, "pin",
                  &out->pin, "ms", &out->ms[0], &out->ms[1], "activation", &out->activation[0], &out->activation[1],
                  "in", &in, "out", &made, "hold", &hold, "result_bytes", &out->result_bytes, "return_way",
                  &out->return_way, "way", &way, "split", &split))
    return false;
  bool valid = indices(c, in, s->value_count, &out->in, &out->in_count) &&
               indices(c, made, s->value_count, &out->out, &out->out_count) &&
               indices(c, hold, c->holding_count, &out->hold, &out->hold_count);
  out->way = numbers(c, way, out->in_count);
  out->split = numbers(c, split, out->in_count + out->out_count + out->hold_count);
  return valid && out->side / 2 == 0 && out->side >= 0;
}

/* Notes the maker of each value and the first user of each holding; false when a value is read before it is made. */
static bool note_use(certificate *c, stage *s, int which, int index, bool *read) {
  const unit *u = &s->units[index];
  for (size_t k = 0; k < u->in_count; k++)
    read[u->in[k]] = true;
  for (size_t k = 0; k < u->out_count; k++) {
    if (read[u->out[k]] || s->maker[u->out[k]] >= 0) return false;
    s->maker[u->out[k]] = index;
  }
  for (size_t k = 0; k < u->hold_count; k++)
    if (c->holdings[u->hold[k]].first[which] < 0) c->holdings[u->hold[k]].first[which] = index;
  return true;
}

static bool read_stage(certificate *c, json_t *json, int which) {
  stage *s = &c->stages[which];
  json_t *values, *units;
  if (json_unpack(json, "{so so}", "values", &values, "units", &units)) return false;
  s->value_count = json_array_size(values);
  s->unit_count = json_array_size(units);
  s->value = numbers(c, values, s->value_count);
  s->units = LP_NEW_ARRAY(c->arena, unit, s->unit_count);
  s->maker = LP_NEW_ARRAY(c->arena, int, s->value_count);
  for (size_t i = 0; i < s->value_count; i++)
    s->maker[i] = -1;
  bool valid = true, *read = LP_NEW_ARRAY(c->arena, bool, s->value_count);
  for (size_t i = 0; i < s->unit_count && valid; i++)
    valid = read_unit(c, json_array_get(units, i), s, &s->units[i]) && note_use(c, s, which, (int)i, read);
  return valid;
}

static bool read_certificate(certificate *c, json_t *json) {
  json_t *holdings, *stages[2];
  if (json_unpack(json, "{s{s[FF] s[FF] s[FF] sF} s{s[FF] s[FF]} s{s[FF] s[FF]} s{sF s[FF]} sF sF so so so}",
                  "objective", "prefill_per_ms", &c->busy[0][0], &c->busy[0][1], "decode_per_ms", &c->busy[1][0],
                  &c->busy[1][1], "link_per_ms", &c->link[0], &c->link[1], "move_per_ms", &c->move, "limits", "ms",
                  &c->limit_ms[0], &c->limit_ms[1], "bytes", &c->limit_bytes[0], &c->limit_bytes[1], "prices", "ms",
                  &c->price_ms[0], &c->price_ms[1], "bytes", &c->price_bytes[0], &c->price_bytes[1], "link",
                  "message_ms", &c->message_ms, "ms_per_byte", &c->ms_per_byte[0], &c->ms_per_byte[1], "value",
                  &c->value, "bound", &c->bound, "holdings", &holdings, "prefill", &stages[0], "decode", &stages[1]))
    return false;
  c->holding_count = json_array_size(holdings);
  c->holdings = LP_NEW_ARRAY(c->arena, holding, c->holding_count);
  bool valid = true;
  for (size_t i = 0; i < c->holding_count && valid; i++)
    valid = read_holding(json_array_get(holdings, i), &c->holdings[i]);
  return valid && read_stage(c, stages[0], 0) && read_stage(c, stages[1], 1);
}

/* ---- totals of the plan ------------------------------------------------------------------------------------------ */

/* The time of a stage's messages. A unit runs in the first turn of its side that is not before the turns of what it
 * reads. */
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
    if (u->result_bytes < 0 || !u->side) continue;
    sent[turn[i]] = true;
    ms += u->result_bytes * c->ms_per_byte[1];
  }
  for (int i = 0; i <= last; i++)
    ms += sent[i] ? c->message_ms : 0;
  return ms;
}

/* Adds the memory of holdings and the moves of caches; adds their time to busy[stage][side]. */
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

/* ---- the file ---------------------------------------------------------------------------------------------------- */

lp_status certificate_load(const char *file, certificate *out, lp_diag *diag) {
  json_error_t error;
  json_t *report = json_load_file(file, 0, &error);
  *out = (certificate){.arena = lp_arena_create(), .json = report};
  if (!report)
    return lp_error(diag, ((lp_loc){.file = file, .line = error.line, .col = error.column}), "%s", error.text);
  json_t *json = json_object_get(report, "certificate");
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
