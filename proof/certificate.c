/* Reads the certificate of a report. */
#include "proof/certificate.h"

#include <math.h>

#include "base/json/reader.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Leaves the report of an error to lp_certificate_load, which reports it once. */
static bool read_number(const lp_json *object, const char *key, double *out) {
  return lp_json_number(LP_MEMBER(object, key), -INFINITY, INFINITY, out, NULL) == LP_OK;
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

/* Reads indices below `limit`; false when one is not, or when `key` is not a list. */
static bool read_indices(lp_certificate *c, const lp_json *object, const char *key, size_t limit, int **out,
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
static bool read_numbers(lp_certificate *c, const lp_json *list, size_t count, double **out) {
  if (lp_json_array(list, NULL) != LP_OK) return false;
  *out = LP_NEW_ARRAY(c->arena, double, count);
  for (size_t i = 0; i < count && i < lp_json_count(list); i++)
    if (lp_json_number(LP_ITEM(list, i), -INFINITY, INFINITY, &(*out)[i], NULL) != LP_OK) return false;
  return true;
}

static bool read_holding(const lp_json *json, lp_certificate_holding *out) {
  lp_json cache = lp_json_member(json, "cache");
  *out = (lp_certificate_holding){0};
  if (cache.value && lp_json_bool(&cache, &out->cache, NULL) != LP_OK) return false;
  return read_pair(json, "bytes", out->bytes) && read_pair_if(json, "prefill_ms", out->ms[0]) &&
         read_pair_if(json, "decode_ms", out->ms[1]) && read_number_if(json, "move_bytes", &out->move_bytes);
}

static bool read_unit(lp_certificate *c, const lp_json *json, const lp_certificate_stage *s, lp_certificate_unit *out) {
  lp_json name = lp_json_member(json, "name"), side = lp_json_member(json, "side"), way = lp_json_member(json, "way"),
          split = lp_json_member(json, "split");
  *out = (lp_certificate_unit){.pin = -1, .result_bytes = -1};
  return lp_json_text(&name, &out->name, NULL) == LP_OK && lp_json_i32(&side, 0, 1, &out->side, NULL) == LP_OK &&
         read_index_if(json, "pin", &out->pin) && read_pair(json, "ms", out->ms) &&
         read_pair(json, "activation", out->activation) && read_number_if(json, "result_bytes", &out->result_bytes) &&
         read_number_if(json, "return_way", &out->return_way) &&
         read_indices(c, json, "operators", SIZE_MAX, &out->rows, &out->row_count) &&
         read_indices(c, json, "in", s->value_count, &out->in, &out->in_count) &&
         read_indices(c, json, "out", s->value_count, &out->out, &out->out_count) &&
         read_indices(c, json, "hold", c->holding_count, &out->hold, &out->hold_count) &&
         read_numbers(c, &way, out->in_count, &out->way) &&
         read_numbers(c, &split, out->in_count + out->out_count + out->hold_count, &out->split);
}

static bool read_stage(lp_certificate *c, const lp_json *json, const char *key, int which) {
  lp_certificate_stage *s = &c->stages[which];
  lp_json at = lp_json_member(json, key), values = lp_json_member(&at, "values"), units = lp_json_member(&at, "units");
  s->value_count = lp_json_count(&values);
  if (!read_numbers(c, &values, s->value_count, &s->value) || lp_json_array(&units, NULL) != LP_OK) return false;
  s->unit_count = lp_json_count(&units);
  s->units = LP_NEW_ARRAY(c->arena, lp_certificate_unit, s->unit_count);
  bool valid = true;
  for (size_t i = 0; i < s->unit_count && valid; i++)
    valid = read_unit(c, LP_ITEM(&units, i), s, &s->units[i]);
  return valid;
}

static bool read_holdings(lp_certificate *c, const lp_json *json) {
  lp_json holdings = lp_json_member(json, "holdings");
  bool valid = lp_json_array(&holdings, NULL) == LP_OK;
  c->holding_count = lp_json_count(&holdings);
  c->holdings = LP_NEW_ARRAY(c->arena, lp_certificate_holding, c->holding_count);
  for (size_t i = 0; i < c->holding_count && valid; i++)
    valid = read_holding(LP_ITEM(&holdings, i), &c->holdings[i]);
  return valid;
}

static bool read_aim(const lp_json *json, double *out) {
  *out = NAN;
  return !lp_json_is_given(LP_MEMBER(json, "aim")) || read_number(json, "aim", out);
}

lp_certificate_sides lp_certificate_read_sides(const lp_json *json, const char *name) {
  lp_json at = lp_json_member(json, name), prefill = lp_json_member(&at, "prefill"),
          decode = lp_json_member(&at, "decode");
  if (!lp_json_is_given(&at)) return (lp_certificate_sides){0};
  return (lp_certificate_sides){name, {lp_json_text_or(&prefill, NULL), lp_json_text_or(&decode, NULL)}};
}

static bool read_streams(const lp_json *link, bool *out) {
  const lp_json at = lp_json_member(link, "streams");
  *out = lp_json_is_true(&at);
  return !lp_json_is_given(&at) || lp_json_is(&at, LP_JSON_BOOL);
}

static bool read_certificate(lp_certificate *c, const lp_json *json) {
  lp_json objective = lp_json_member(json, "objective"), limits = lp_json_member(json, "limits"),
          prices = lp_json_member(json, "prices"), link = lp_json_member(json, "link");
  c->cheapest = lp_certificate_read_sides(json, "cheapest");
  return read_pair(&objective, "prefill_per_ms", c->busy[0]) && read_pair(&objective, "decode_per_ms", c->busy[1]) &&
         read_pair(&objective, "link_per_ms", c->link) && read_number(&objective, "move_per_ms", &c->move) &&
         read_pair(&limits, "ms", c->limit_ms) && read_pair(&limits, "bytes", c->limit_bytes) &&
         read_pair(&prices, "ms", c->price_ms) && read_pair(&prices, "bytes", c->price_bytes) &&
         read_number(&link, "message_ms", &c->message_ms) && read_streams(&link, &c->streams) &&
         read_pair(&link, "ms_per_byte", c->ms_per_byte) && read_number(json, "value", &c->value) &&
         read_aim(json, &c->aim) && read_number(json, "bound", &c->bound) && read_holdings(c, json) &&
         read_stage(c, json, "prefill", 0) && read_stage(c, json, "decode", 1) && lp_certificate_resolve(c);
}

/* ---- what follows from it ---------------------------------------------------------------------------------------- */

/* Records the maker of each value and the first user of each holding; false when a value is read before it is made. */
static bool note_use(lp_certificate *c, int which, int index, bool *read) {
  lp_certificate_stage *s = &c->stages[which];
  const lp_certificate_unit *u = &s->units[index];
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

bool lp_certificate_resolve(lp_certificate *c) {
  bool valid = true;
  for (int which = 0; which < 2; which++) {
    lp_certificate_stage *s = &c->stages[which];
    bool *read = LP_NEW_ARRAY(c->arena, bool, s->value_count);
    s->maker = LP_NEW_ARRAY(c->arena, int32_t, s->value_count);
    for (size_t i = 0; i < s->value_count; i++)
      s->maker[i] = -1;
    for (size_t i = 0; i < c->holding_count; i++)
      c->holdings[i].first[which] = -1;
    for (size_t i = 0; i < s->unit_count && valid; i++)
      valid = note_use(c, which, (int)i, read);
  }
  return valid;
}

/* ---- effort ------------------------------------------------------------------------------------------------------ */

const lp_certificate_effort *lp_certificate_effort_of(const lp_certificate *c) {
  static const lp_certificate_effort usual = {.frontiers = 60000,
                                              .frontiers_in_all = 10000000,
                                              .potentials = 8000000,
                                              .short_labels = 200000,
                                              .long_labels = 2000000,
                                              .all_labels = 6000000,
                                              .most_width = 80000,
                                              .least_width = 400,
                                              .few_units = 400,
                                              .near = 5e-3,
                                              .close = 1e-2,
                                              .rest = 1e-3,
                                              .far = 0.05};
  return c->effort ? c->effort : &usual;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

bool lp_certificate_is_over_places(const lp_certificate *c) {
  const lp_json root = lp_json_root("", c->report), schema = lp_json_member(&root, "schema");
  return lp_json_equals(&schema, "llmpart.places/1");
}

static lp_status read_report(const char *file, lp_certificate *out, lp_diag *diag) {
  lp_json root = lp_json_root(file, out->report), json = lp_json_member(&root, "certificate"),
          schema = lp_json_member(&root, "schema");
  if (!lp_json_equals(&schema, "llmpart.report/1"))
    return lp_error(diag, LP_LOC_FILE(file), "this is no report: found the schema '%s', wanted llmpart.report/1",
                    lp_json_text_or(&schema, ""));
  if (!json.value)
    return lp_error(diag, LP_LOC_FILE(file),
                    "there is no certificate: this is no report, or one whose module has changed since");
  if (!read_certificate(out, &json))
    return lp_error(diag, LP_LOC_FILE(file), "the certificate lacks a part, or names something that is not there");
  return LP_OK;
}

lp_status lp_certificate_load(const char *file, lp_certificate *out, lp_diag *diag) {
  *out = (lp_certificate){0};
  LP_TRY(lp_json_load(file, 0, &out->report, diag));
  out->arena = lp_arena_create();
  const bool other = lp_certificate_is_over_places(out) || lp_certificate_is_of_fleet(out);
  return other ? LP_OK : read_report(file, out, diag);
}

void lp_certificate_free(lp_certificate *c) {
  lp_json_free(c->report);
  lp_arena_free(c->arena);
}
