/* Writes what the places tell of themselves. */
#include "runtime/serve/states.h"

#include "runtime/serve/answer.h"

static size_t workers_up(const lp_site_state *state) {
  size_t up = 0;
  for (size_t i = 0; i < state->workers; i++)
    up += state->worker[i].up;
  return up;
}

static void put_place(lp_json_writer *json, lp_route route, const lp_site_state *state) {
  lp_json_put_object(json, lp_route_name(route));
  lp_json_put_text(json, "state", state->up ? "up" : "down");
  if (state->workers > 0) {
    lp_json_put_integer(json, "workers", (int64_t)state->workers);
    lp_json_put_integer(json, "workers_up", (int64_t)workers_up(state));
  }
  lp_json_put_end(json);
}

/* Degraded: a place or a worker is away, or the pool did not keep the last decision. */
static const char *word_of(const lp_site_state state[LP_ROUTE_COUNT], unsigned offered, bool kept) {
  bool whole = kept;
  unsigned up = 0;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    if (!lp_route_offered(offered, route)) continue;
    up += state[route].up;
    whole = whole && state[route].up && workers_up(&state[route]) == state[route].workers;
  }
  return up == 0 ? "down" : whole ? "ready" : "degraded";
}

char *lp_states_ready(lp_dispatcher *dispatcher, bool *ready) {
  lp_site_state state[LP_ROUTE_COUNT];
  unsigned offered = lp_dispatcher_offered(dispatcher);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(offered, route)) lp_dispatcher_tell(dispatcher, route, &state[route]);
  bool kept = !lp_metrics_degraded(lp_dispatcher_metrics(dispatcher));
  const char *word = word_of(state, offered, kept);
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "status", word);
  lp_json_put_object(&json, "places");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(offered, route)) put_place(&json, route, &state[route]);
  lp_json_put_end(&json);
  lp_json_put_bool(&json, "pool_kept", kept);
  lp_json_put_end(&json);
  *ready = !lp_streq(word, "down");
  return out.data;
}
