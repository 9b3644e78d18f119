/* The router's API for clients that send their requests themselves: decide, report the outcome, explain. */
#include "runtime/serve/router_api.h"

#include <math.h>

#include "base/units.h"
#include "runtime/serve/answer.h"

static lp_status wrong(lp_diag *diag, const char *text) {
  return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "%s", text);
}

/* Opens the object; the caller closes it. */
static lp_json_writer describe(int64_t id, const lp_router_request *request, const lp_decision *decision, lp_buf *out) {
  lp_json_writer json = lp_answer_begin(out);
  lp_json_put_object(&json, NULL);
  lp_json_put_integer(&json, "id", id);
  lp_json_put_text(&json, "keywords", request->keywords);
  lp_json_put_text(&json, "route", lp_route_name(decision->route));
  lp_json_put_text(&json, "source", lp_decision_source_name(decision->source));
  lp_json_put_number(&json, "propensity", decision->propensity);
  lp_json_put_object(&json, "probability");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(request->offered, route))
      lp_json_put_number(&json, lp_route_name(route), decision->probability[route]);
  lp_json_put_end(&json);
  return json;
}

/* Reads "offered": the sites that may be chosen; without it, all sites of the server. */
static lp_status read_offered(const lp_json *body, unsigned *offered, lp_diag *diag) {
  lp_json list = lp_json_member(body, "offered");
  unsigned given = 0;
  if (!list.value) return LP_OK;
  for (size_t i = 0; lp_json_is(&list, LP_JSON_ARRAY) && i < lp_json_count(&list); i++) {
    lp_json name = lp_json_item(&list, i);
    lp_route route;
    if (!lp_route_parse(lp_json_text_or(&name, ""), &route) || !lp_route_offered(*offered, route))
      return wrong(diag, "'offered' must be a list of places that the server has");
    given |= 1u << route;
  }
  if (given == 0) return wrong(diag, "'offered' must be a list of places that the server has");
  *offered = given;
  return LP_OK;
}

static lp_status decide(lp_dispatcher *self, const lp_json *body, char **out, lp_diag *diag) {
  lp_json keywords = lp_json_member(body, "keywords");
  lp_router_request request = {.keywords = lp_json_text_or(&keywords, NULL), .offered = lp_dispatcher_offered(self)};
  lp_decision decision;
  lp_buf text = {0};
  int64_t id = 0;
  if (!request.keywords) return wrong(diag, "'keywords' must be text");
  LP_TRY(read_offered(body, &request.offered, diag));
  LP_TRY(lp_dispatcher_decide(self, &request, &decision, &id, diag));
  lp_json_writer json = describe(id, &request, &decision, &text);
  lp_json_put_end(&json);
  *out = text.data;
  return LP_OK;
}

static lp_status note_outcome(lp_dispatcher *self, const lp_json *body, char **out, lp_diag *diag) {
  lp_json id_at = lp_json_member(body, "id"), reward_at = lp_json_member(body, "reward"),
          good = lp_json_member(body, "good");
  int64_t id = 0;
  double reward = 0;
  lp_buf text = {0};
  if (lp_json_i64(&id_at, 1, INT64_MAX, &id, NULL) != LP_OK) return wrong(diag, "'id' must be a decision's number");
  if (lp_json_number(&reward_at, -INFINITY, INFINITY, &reward, NULL) != LP_OK)
    return wrong(diag, "'reward' must be a number of seconds");
  if (good.value && !lp_json_is(&good, LP_JSON_BOOL)) return wrong(diag, "'good' must be true or false");
  LP_TRY(lp_dispatcher_outcome(self, id, reward, !good.value || lp_json_is_true(&good), diag));
  lp_json_writer json = lp_answer_begin(&text);
  lp_json_put_object(&json, NULL);
  lp_json_put_integer(&json, "id", id);
  lp_json_put_end(&json);
  *out = text.data;
  return LP_OK;
}

lp_status lp_router_post(lp_dispatcher *self, bool decides, const char *body, size_t size, char **out, lp_diag *diag) {
  lp_json_document *document = NULL;
  if (lp_body_parse(body, size, &document, diag) != LP_OK) return LP_USAGE;
  lp_json root = lp_json_root("the request", document);
  lp_status status = decides ? decide(self, &root, out, diag) : note_outcome(self, &root, out, diag);
  lp_json_free(document);
  return status;
}

static char *describe_stored(const lp_stored *stored) {
  lp_buf text = {0};
  lp_json_writer json = describe(stored->id, &stored->request, &stored->decision, &text);
  if (stored->has_outcome) {
    lp_json_put_number(&json, "reward", stored->reward);
    lp_json_put_bool(&json, "good", stored->good);
  } else {
    lp_json_put_null(&json, "reward");
    lp_json_put_null(&json, "good");
  }
  lp_json_put_end(&json);
  return text.data;
}

lp_status lp_router_explain(lp_dispatcher *self, const char *number, char **out, lp_diag *diag) {
  int64_t id = 0;
  lp_stored stored;
  if (lp_parse_i64(number, 1, INT64_MAX, &id, NULL, LP_LOC_NONE) != LP_OK)
    return wrong(diag, "the path must end in a decision's number");
  lp_arena *arena = lp_arena_create();
  lp_status status = lp_dispatcher_stored(self, id, arena, &stored, diag);
  if (status == LP_OK) *out = describe_stored(&stored);
  lp_arena_free(arena);
  return status;
}
