/* Reads the certificate of a report and adds up its plan. */
#include "tools/certificate/certificate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/reader.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* What is wrong is told once, by certificate_load. */
static bool read_number(const lp_json *object, const char *key, double *out) {
  lp_json at = lp_json_member(object, key);
  return lp_json_number(&at, -INFINITY, INFINITY, out, NULL) == LP_OK;
}

static bool read_number_if(const lp_json *object, const char *key, double *out) {
  lp_json at = lp_json_member(object, key);
  return !at.value || lp_json_number(&at, -INFINITY, INFINITY, out, NULL) == LP_OK;
}

static bool read_index_if(const lp_json *object, const char *key, int *out) {
  lp_json at = lp_json_member(object, key);
  return !at.value || lp_json_i32(&at, INT32_MIN, INT32_MAX, out, NULL) == LP_OK;
}

/* Two numbers. */
static bool read_pair(const lp_json *object, const char *key, double out[2]) {
  lp_json list = lp_json_member(object, key), first = lp_json_item(&list, 0), second = lp_json_item(&list, 1);
  return lp_json_number(&first, -INFINITY, INFINITY, &out[0], NULL) == LP_OK &&
         lp_json_number(&second, -INFINITY, INFINITY, &out[1], NULL) == LP_OK;
}

static bool read_pair_if(const lp_json *object, const char *key, double out[2]) {
  return !lp_json_member(object, key).value || read_pair(object, key, out);
}

/* Reads indices below `limit`; false when one is not, or when `key` is no list. */
static bool read_indices(certificate *c, const lp_json *object, const char *key, size_t limit, int **out,
                         size_t *count) {
  lp_json list = lp_json_member(object, key);
  if (lp_json_array(&list, NULL) != LP_OK) return false;
  *count = lp_json_count(&list);
  *out = LP_NEW_ARRAY(c->arena, int, *count);
  for (size_t i = 0; i < *count; i++) {
    lp_json at = lp_json_item(&list, i);
    if (lp_json_i32(&at, 0, INT32_MAX, &(*out)[i], NULL) != LP_OK || (size_t)(*out)[i] >= limit) return false;
  }
  return true;
}

/* Reads the first `count` numbers of a list; those that it lacks are 0. */
static bool read_numbers(certificate *c, const lp_json *list, size_t count, double **out) {
  if (lp_json_array(list, NULL) != LP_OK) return false;
  *out = LP_NEW_ARRAY(c->arena, double, count);
  for (size_t i = 0; i < count && i < lp_json_count(list); i++) {
    lp_json at = lp_json_item(list, i);
    if (lp_json_number(&at, -INFINITY, INFINITY, &(*out)[i], NULL) != LP_OK) return false;
  }
  return true;
}

static bool read_holding(const lp_json *json, holding *out) {
  lp_json cache = lp_json_member(json, "cache");
  bool is_cache = false;
  *out = (holding){.first = {-1, -1}};
  if (cache.value && lp_json_bool(&cache, &is_cache, NULL) != LP_OK) return false;
  out->cache = is_cache;
  return read_pair(json, "bytes", out->bytes) && read_pair_if(json, "prefill_ms", out->ms[0]) &&
         read_pair_if(json, "decode_ms", out->ms[1]) && read_number_if(json, "move_bytes", &out->move_bytes);
}

static bool read_unit(certificate *c, const lp_json *json, const stage *s, unit *out) {
  lp_json name = lp_json_member(json, "name"), side = lp_json_member(json, "side"), way = lp_json_member(json, "way"),
          split = lp_json_member(json, "split");
  *out = (unit){.pin = -1, .result_bytes = -1};
  return lp_json_text(&name, &out->name, NULL) == LP_OK && lp_json_i32(&side, 0, 1, &out->side, NULL) == LP_OK &&
         read_index_if(json, "pin", &out->pin) && read_pair(json, "ms", out->ms) &&
         read_pair(json, "activation", out->activation) && read_number_if(json, "result_bytes", &out->result_bytes) &&
         read_number_if(json, "return_way", &out->return_way) &&
         read_indices(c, json, "in", s->value_count, &out->in, &out->in_count) &&
         read_indices(c, json, "out", s->value_count, &out->out, &out->out_count) &&
         read_indices(c, json, "hold", c->holding_count, &out->hold, &out->hold_count) &&
         read_numbers(c, &way, out->in_count, &out->way) &&
         read_numbers(c, &split, out->in_count + out->out_count + out->hold_count, &out->split);
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

static bool read_stage(certificate *c, const lp_json *json, const char *key, int which) {
  stage *s = &c->stages[which];
  lp_json at = lp_json_member(json, key), values = lp_json_member(&at, "values"), units = lp_json_member(&at, "units");
  s->value_count = lp_json_count(&values);
  if (!read_numbers(c, &values, s->value_count, &s->value) || lp_json_array(&units, NULL) != LP_OK) return false;
  s->unit_count = lp_json_count(&units);
  s->units = LP_NEW_ARRAY(c->arena, unit, s->unit_count);
  s->maker = LP_NEW_ARRAY(c->arena, int, s->value_count);
  for (size_t i = 0; i < s->value_count; i++)
    s->maker[i] = -1;
  bool valid = true, *read = LP_NEW_ARRAY(c->arena, bool, s->value_count);
  for (size_t i = 0; i < s->unit_count && valid; i++) {
    lp_json item = lp_json_item(&units, i);
    valid = read_unit(c, &item, s, &s->units[i]) && note_use(c, s, which, (int)i, read);
  }
  return valid;
}

static bool read_holdings(certificate *c, const lp_json *json) {
  lp_json holdings = lp_json_member(json, "holdings");
  bool valid = lp_json_array(&holdings, NULL) == LP_OK;
  c->holding_count = lp_json_count(&holdings);
  c->holdings = LP_NEW_ARRAY(c->arena, holding, c->holding_count);
  for (size_t i = 0; i < c->holding_count && valid; i++) {
    lp_json item = lp_json_item(&holdings, i);
    valid = read_holding(&item, &c->holdings[i]);
  }
  return valid;
}

static bool read_certificate(certificate *c, const lp_json *json) {
  lp_json objective = lp_json_member(json, "objective"), limits = lp_json_member(json, "limits"),
          prices = lp_json_member(json, "prices"), link = lp_json_member(json, "link");
  return read_pair(&objective, "prefill_per_ms", c->busy[0]) && read_pair(&objective, "decode_per_ms", c->busy[1]) &&
         read_pair(&objective, "link_per_ms", c->link) && read_number(&objective, "move_per_ms", &c->move) &&
         read_pair(&limits, "ms", c->limit_ms) && read_pair(&limits, "bytes", c->limit_bytes) &&
         read_pair(&prices, "ms", c->price_ms) && read_pair(&prices, "bytes", c->price_bytes) &&
         read_number(&link, "message_ms", &c->message_ms) && read_pair(&link, "ms_per_byte", c->ms_per_byte) &&
         read_number(json, "value", &c->value) && read_number(json, "bound", &c->bound) && read_holdings(c, json) &&
         read_stage(c, json, "prefill", 0) && read_stage(c, json, "decode", 1);
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
  char *text = NULL;
  size_t size = 0;
  *out = (certificate){.arena = lp_arena_create()};
  LP_TRY(lp_file_read(file, &text, &size, diag));
  lp_status status = lp_json_parse(file, text, size, 0, &out->report, diag);
  free(text);
  LP_TRY(status);
  lp_json root = lp_json_root(file, out->report), json = lp_json_member(&root, "certificate");
  if (!json.value)
    return lp_error(diag, LP_LOC_FILE(file),
                    "there is no certificate: the plan is not the exact scheduler's, or not feasible");
  if (!read_certificate(out, &json))
    return lp_error(diag, LP_LOC_FILE(file), "the certificate lacks a part, or names something that is not there");
  return LP_OK;
}

void certificate_free(certificate *c) {
  lp_json_free(c->report);
  lp_arena_free(c->arena);
}
