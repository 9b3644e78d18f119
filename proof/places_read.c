/* Reads the report of a plan over more than two places, with its certificate, and says where its numbers differ from
 * others. */
#include "proof/places.h"

#include <math.h>

/* "prefill", "decode" */
static const char *const stages[STAGES] = {"prefill", "decode"};

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static bool is_same(double found, double wanted) {
  return fabs(found - wanted) <= 1e-9 * (fabs(found) + fabs(wanted)) + 1e-15;
}

lp_status lp_certificate_places_same(const places_report *r, const char *what, double found, double wanted) {
  if (is_same(found, wanted)) return LP_OK;
  return lp_error_as(LP_MISMATCH, r->diag, LP_LOC_FILE(r->file), "%s is %.12g, should be %.12g", what, found, wanted);
}

lp_status lp_certificate_places_same_of(const places_report *r, const char *what, int32_t place, double found,
                                        double wanted) {
  char text[120];
  (void)snprintf(text, sizeof text, "%s of %.60s", what, r->name[place]);
  return lp_certificate_places_same(r, text, found, wanted);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

lp_status lp_certificate_places_number(const places_report *r, const lp_json *object, const char *key, double *out) {
  return lp_json_number(LP_MEMBER(object, key), -INFINITY, INFINITY, out, r->diag);
}

static lp_status numbers(const places_report *r, const lp_json *object, const char *key, int32_t count, double *out) {
  lp_json list = lp_json_member(object, key);
  LP_TRY(lp_json_array(&list, r->diag));
  if (lp_json_count(&list) != (size_t)count) return lp_json_error(&list, r->diag, "wanted %" PRId32 " numbers", count);
  for (int32_t i = 0; i < count; i++)
    LP_TRY(lp_json_number(LP_ITEM(&list, (size_t)i), 0, INFINITY, &out[i], r->diag));
  return LP_OK;
}

static lp_status flags(const places_report *r, const char *key, bool out[STAGES]) {
  lp_json list = lp_json_member(&r->certificate, key);
  for (size_t i = 0; i < STAGES; i++)
    LP_TRY(lp_json_bool(LP_ITEM(&list, i), &out[i], r->diag));
  return LP_OK;
}

/* ---- places and links -------------------------------------------------------------------------------------------- */

static lp_status read_places(places_report *r) {
  lp_json places = lp_json_member(r->root, "places"), of_plan = lp_json_member(&r->plan, "places");
  LP_TRY(lp_json_array(&places, r->diag));
  if (lp_json_count(&places) < 1 || lp_json_count(&places) > MOST || lp_json_count(&of_plan) != lp_json_count(&places))
    return lp_json_error(&of_plan, r->diag, "wanted the places of the report, at most %d", MOST);
  r->count = (int32_t)lp_json_count(&places);
  for (int32_t p = 0; p < r->count; p++) {
    lp_json place = lp_json_item(&places, (size_t)p), own = lp_json_item(&of_plan, (size_t)p);
    lp_json name = lp_json_member(&place, "name"), again = lp_json_member(&own, "name");
    LP_TRY(lp_json_text(&name, &r->name[p], r->diag));
    if (!lp_json_equals(&again, r->name[p])) return lp_json_error(&again, r->diag, "wanted '%.40s'", r->name[p]);
    LP_TRY(lp_certificate_places_number(r, &place, "price_usd_per_s", &r->price[p]));
    LP_TRY(lp_certificate_places_number(r, &place, "power_w", &r->power[p]));
    if (!lp_json_is(LP_MEMBER(&place, "memory_limit_bytes"), LP_JSON_NULL))
      LP_TRY(lp_certificate_places_number(r, &place, "memory_limit_bytes", &r->limit_bytes[p]));
    LP_TRY(lp_certificate_places_number(r, &own, "prefill_ms", &r->busy[0][p]));
    LP_TRY(lp_certificate_places_number(r, &own, "decode_ms", &r->busy[1][p]));
    LP_TRY(lp_certificate_places_number(r, &own, "request_ms", &r->request_ms[p]));
    LP_TRY(lp_certificate_places_number(r, &own, "memory_bytes", &r->memory[p]));
  }
  return LP_OK;
}

static lp_status read_ends(const places_report *r, const lp_json *link, int32_t *from, int32_t *to) {
  LP_TRY(lp_json_choice(LP_MEMBER(link, "from"), r->name, (size_t)r->count, from, r->diag));
  return lp_json_choice(LP_MEMBER(link, "to"), r->name, (size_t)r->count, to, r->diag);
}

static lp_status read_links(places_report *r) {
  lp_json links = lp_json_member(r->root, "links"), used = lp_json_member(&r->plan, "links");
  LP_TRY(lp_json_array(&links, r->diag));
  LP_TRY(lp_json_array(&used, r->diag));
  LP_FOR_ITEMS(link, &links) {
    int32_t from = 0, to = 0;
    LP_TRY(read_ends(r, &link, &from, &to));
    LP_TRY(lp_certificate_places_number(r, &link, "message_ms", &r->message_ms[from][to]));
    LP_TRY(lp_certificate_places_number(r, &link, "ms_per_byte", &r->ms_per_byte[from][to]));
  }
  LP_FOR_ITEMS(link, &used) {
    int32_t from = 0, to = 0;
    LP_TRY(read_ends(r, &link, &from, &to));
    LP_TRY(lp_certificate_places_number(r, &link, "messages_prefill", &r->messages[0][from][to]));
    LP_TRY(lp_certificate_places_number(r, &link, "messages_decode", &r->messages[1][from][to]));
    LP_TRY(lp_certificate_places_number(r, &link, "bytes_prefill", &r->bytes[0][from][to]));
    LP_TRY(lp_certificate_places_number(r, &link, "bytes_decode", &r->bytes[1][from][to]));
    LP_TRY(lp_certificate_places_number(r, &link, "kv_move_bytes", &r->moved[from][to]));
  }
  return LP_OK;
}

static lp_status read_workload(places_report *r) {
  lp_json workload = lp_json_member(r->root, "workload");
  LP_TRY(lp_certificate_places_number(r, &workload, "osl", &r->osl));
  LP_TRY(lp_certificate_places_number(r, &workload, "batch", &r->batch));
  LP_TRY(lp_certificate_places_number(r, &workload, "sessions", &r->sessions));
  if (!(r->sessions >= 1) || !(r->batch >= 1)) return lp_json_error(&workload, r->diag, "wanted counts of 1 or more");
  return LP_OK;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static lp_status read_operator(const places_report *r, const lp_json *from, places_operator *out) {
  lp_json allowed = lp_json_member(from, "allowed");
  LP_TRY(numbers(r, from, "prefill_ms", r->count, out->ms[0]));
  LP_TRY(numbers(r, from, "decode_ms", r->count, out->ms[1]));
  LP_TRY(numbers(r, from, "prefill_bytes", r->count, out->bytes[0]));
  LP_TRY(numbers(r, from, "decode_bytes", r->count, out->bytes[1]));
  LP_TRY(numbers(r, from, "bytes", r->count, out->both_bytes));
  for (size_t i = 0; i < STAGES; i++)
    LP_TRY(lp_json_i32(LP_ITEM(&allowed, i), 1, (1 << r->count) - 1, &out->allowed[i], r->diag));
  return lp_certificate_places_number(r, from, "move_bytes", &out->move_bytes);
}

static lp_status read_stage(const places_report *r, const lp_json *from, int which, places_shape *out) {
  lp_json own = lp_json_member(from, stages[which]), allowed = lp_json_member(&own, "allowed");
  LP_TRY(numbers(r, &own, "ms", r->count, out->ms[which]));
  LP_TRY(numbers(r, &own, "weight_bytes", r->count, out->weight_bytes[which]));
  LP_TRY(numbers(r, &own, "activation_bytes", r->count, out->activation[which]));
  LP_TRY(lp_certificate_places_number(r, &own, "read_bytes", &out->read_bytes[which]));
  LP_TRY(lp_certificate_places_number(r, &own, "inner_ms", &out->inner_ms[which]));
  LP_TRY(lp_json_i32(&allowed, 0, (1 << r->count) - 1, &out->allowed[which], r->diag));
  return lp_json_bool(LP_MEMBER(&own, "divides"), &out->divides[which], r->diag);
}

static lp_status read_shape(const places_report *r, const lp_json *from, places_shape *out) {
  lp_json operators = lp_json_member(from, "operators");
  for (int which = 0; which < STAGES; which++)
    LP_TRY(read_stage(r, from, which, out));
  LP_TRY(numbers(r, from, "weight_bytes", r->count, out->both_bytes));
  LP_TRY(numbers(r, from, "cache_bytes", r->count, out->cache_bytes));
  LP_TRY(lp_certificate_places_number(r, from, "move_bytes", &out->move_bytes));
  LP_TRY(lp_json_array(&operators, r->diag));
  out->operator_count = lp_json_count(&operators);
  out->operator= lp_arena_array(r->arena, out->operator_count + 1, sizeof *out->operator);
  LP_FOR_ITEMS(item, &operators)
    LP_TRY(read_operator(r, &item, &out->operator[item.index]));
  return LP_OK;
}

static lp_status read_shapes(places_report *r) {
  lp_json shapes = lp_json_member(&r->certificate, "shapes");
  LP_TRY(lp_json_array(&shapes, r->diag));
  r->shape_count = lp_json_count(&shapes);
  r->shape = lp_arena_array(r->arena, r->shape_count + 1, sizeof *r->shape);
  LP_FOR_ITEMS(item, &shapes)
    LP_TRY(read_shape(r, &item, &r->shape[item.index]));
  return LP_OK;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static lp_status read_part(const places_report *r, const lp_json *from, places_part *out) {
  static const char *const names[STAGES] = {"prefill_shared", "decode_shared"};
  int32_t index = 0;
  LP_TRY(lp_json_i32(LP_MEMBER(from, "shape"), 0, (int32_t)r->shape_count - 1, &index, r->diag));
  out->shape = &r->shape[index];
  for (int which = 0; which < STAGES; which++) {
    lp_json at = lp_json_member(from, stages[which]), shared = lp_json_member(from, names[which]);
    LP_TRY(lp_json_i32(&at, -1, r->count - 1, &out->at[which], r->diag));
    if (out->at[which] >= 0 && !(out->shape->allowed[which] >> out->at[which] & 1))
      return lp_error_as(LP_MISMATCH, r->diag, LP_LOC_FILE(r->file),
                         "a part is at %.60s, where its pins do not let it be", r->name[out->at[which]]);
    LP_FOR_ITEMS(item, &shared) {
      LP_TRY(lp_json_i32(&item, 0, (int32_t)r->shared_count - 1, &index, r->diag));
      out->shared[which] |= 1U << index;
    }
  }
  return LP_OK;
}

static lp_status read_parts(places_report *r) {
  lp_json parts = lp_json_member(&r->certificate, "parts"), shared = lp_json_member(&r->certificate, "shared");
  LP_TRY(lp_json_array(&shared, r->diag));
  r->shared_count = lp_json_count(&shared);
  if (r->shared_count > MOST) return lp_json_error(&shared, r->diag, "wanted at most %d", MOST);
  LP_FOR_ITEMS(item, &shared) {
    LP_TRY(numbers(r, &item, "bytes", r->count, r->shared[item.index].bytes));
    LP_TRY(numbers(r, &item, "prefill_ms", r->count, r->shared[item.index].ms[0]));
    LP_TRY(numbers(r, &item, "decode_ms", r->count, r->shared[item.index].ms[1]));
  }
  LP_TRY(lp_json_array(&parts, r->diag));
  r->part_count = lp_json_count(&parts);
  if (r->part_count == 0) return lp_json_error(&parts, r->diag, "wanted the parts of the model");
  r->part = lp_arena_array(r->arena, r->part_count, sizeof *r->part);
  LP_FOR_ITEMS(item, &parts)
    LP_TRY(read_part(r, &item, &r->part[item.index]));
  return LP_OK;
}

lp_status lp_certificate_places_read(places_report *r) {
  lp_json objective = lp_json_member(&r->certificate, "objective"), limits = lp_json_member(&r->certificate, "limits");
  lp_json prices = lp_json_member(&r->certificate, "prices");
  LP_TRY(read_workload(r));
  LP_TRY(read_places(r));
  LP_TRY(read_links(r));
  LP_TRY(numbers(r, &objective, "prefill_per_ms", r->count, r->busy_per_ms[0]));
  LP_TRY(numbers(r, &objective, "decode_per_ms", r->count, r->busy_per_ms[1]));
  LP_TRY(numbers(r, &objective, "link_per_ms", STAGES, r->link_per_ms));
  LP_TRY(lp_certificate_places_number(r, &objective, "move_per_ms", &r->move_per_ms));
  LP_TRY(numbers(r, &limits, "ms", STAGES, r->limit_ms));
  LP_TRY(numbers(r, &limits, "bytes", r->count, r->certified_bytes));
  LP_TRY(numbers(r, &prices, "per_ms", STAGES, r->price_ms));
  LP_TRY(numbers(r, &prices, "per_byte", r->count, r->price_byte));
  LP_TRY(numbers(r, &r->certificate, "result_bytes", STAGES, r->result_bytes));
  LP_TRY(flags(r, "has_input", r->has_input));
  LP_TRY(flags(r, "has_result", r->has_result));
  LP_TRY(read_shapes(r));
  return read_parts(r);
}
