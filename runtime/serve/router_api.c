/* The router for clients that send their requests themselves: decide, tell what came of it, explain. */
#include <errno.h>
#include <stdlib.h>

#include "base/units.h"
#include "runtime/router/store.h"
#include "runtime/serve/serve_internal.h"

#define NONE ((lp_loc){0})

static lp_status wrong(lp_diag *diag, const char *text) {
  return lp_error_as(LP_USAGE, diag, NONE, "%s", text);
}

static json_t *describe(int64_t id, const lp_router_request *request, const lp_decision *decision) {
  json_t *probability = json_object();
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(request->offered, route))
      json_object_set_new(probability, lp_route_name(route), json_real(decision->probability[route]));
  return json_pack("{s:I, s:s, s:s, s:s, s:f, s:o}", "id", (json_int_t)id, "keywords", request->keywords, "route",
                   lp_route_name(decision->route), "source", lp_decision_source_name(decision->source), "propensity",
                   decision->propensity, "probability", probability);
}

static char *dump(json_t *root) {
  char *text = json_dumps(root, JSON_COMPACT);
  json_decref(root);
  return text;
}

/* "offered": what of the server's sites may be chosen; all of them where it is left out. */
static lp_status read_offered(const json_t *body, unsigned *offered, lp_diag *diag) {
  const json_t *list = json_object_get(body, "offered"), *name;
  unsigned given = 0;
  size_t index;
  lp_route route;
  if (!list) return LP_OK;
  json_array_foreach(list, index, name) {
    const char *text = json_string_value(name);
    if (!text || !lp_route_parse(text, &route) || !lp_route_offered(*offered, route))
      return wrong(diag, "'offered' must be a list of places that the server has");
    given |= 1u << route;
  }
  if (given == 0) return wrong(diag, "'offered' must be a list of places that the server has");
  *offered = given;
  return LP_OK;
}

static lp_status decide(lp_dispatcher *self, const json_t *body, char **out, lp_diag *diag) {
  lp_router_request request = {.keywords = json_string_value(json_object_get(body, "keywords")),
                               .offered = lp_dispatcher_offered(self)};
  lp_decision decision;
  int64_t id = 0;
  if (!request.keywords) return wrong(diag, "'keywords' must be text");
  LP_TRY(read_offered(body, &request.offered, diag));
  LP_TRY(lp_dispatcher_decide(self, &request, &decision, &id, diag));
  *out = dump(describe(id, &request, &decision));
  return LP_OK;
}

static lp_status note_outcome(lp_dispatcher *self, const json_t *body, char **out, lp_diag *diag) {
  const json_t *id = json_object_get(body, "id"), *reward = json_object_get(body, "reward"),
               *good = json_object_get(body, "good");
  if (!json_is_integer(id) || json_integer_value(id) < 1) return wrong(diag, "'id' must be a decision's number");
  if (!json_is_number(reward)) return wrong(diag, "'reward' must be a number of seconds");
  if (good && !json_is_boolean(good)) return wrong(diag, "'good' must be true or false");
  LP_TRY(lp_dispatcher_outcome(self, json_integer_value(id), json_number_value(reward), !json_is_false(good), diag));
  *out = dump(json_pack("{s:I}", "id", json_integer_value(id)));
  return LP_OK;
}

lp_status lp_router_post(lp_dispatcher *self, bool decides, const char *body, size_t size, char **out, lp_diag *diag) {
  json_error_t error;
  json_t *root = json_loadb(body, size, JSON_REJECT_DUPLICATES, &error);
  if (!json_is_object(root)) {
    json_decref(root);
    return wrong(diag, "the body must be a JSON object");
  }
  lp_status status = decides ? decide(self, root, out, diag) : note_outcome(self, root, out, diag);
  json_decref(root);
  return status;
}

lp_status lp_router_explain(lp_dispatcher *self, const char *number, char **out, lp_diag *diag) {
  int64_t id = 0;
  lp_stored stored;
  if (lp_parse_i64(number, 1, INT64_MAX, &id, NULL, NONE) != LP_OK)
    return wrong(diag, "the path must end in a decision's number");
  lp_arena *arena = lp_arena_create();
  lp_status status = lp_dispatcher_stored(self, id, arena, &stored, diag);
  if (status == LP_OK) {
    json_t *root = describe(stored.id, &stored.request, &stored.decision);
    json_object_set_new(root, "reward", stored.has_outcome ? json_real(stored.reward) : json_null());
    json_object_set_new(root, "good", stored.has_outcome ? json_boolean(stored.good) : json_null());
    *out = dump(root);
  }
  lp_arena_free(arena);
  return status;
}
