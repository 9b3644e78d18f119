/* Writes what the places tell of themselves. */
#include "runtime/serve/states.h"

#include <math.h>

#include "runtime/exposition/exposition.h"
#include "runtime/serve/answer.h"

static size_t workers_up(const lp_site_state *state) {
  size_t up = 0;
  for (size_t i = 0; i < state->workers; i++)
    up += state->worker[i].up;
  return up;
}

/* Each reason why workers are not up, once. */
static void put_reasons(lp_json_writer *json, const lp_site_state *state) {
  if (workers_up(state) == state->workers) return;
  lp_json_put_array(json, "reasons");
  for (size_t i = 0; i < state->workers; i++) {
    bool again = state->worker[i].reason[0] == '\0';
    for (size_t k = 0; k < i && !again; k++)
      again = lp_streq(state->worker[i].reason, state->worker[k].reason);
    if (!again) lp_json_put_text(json, NULL, state->worker[i].reason);
  }
  lp_json_put_end(json);
}

static void put_place(lp_json_writer *json, lp_route route, const lp_site_state *state) {
  lp_json_put_object(json, lp_route_name(route));
  lp_json_put_text(json, "state", state->up ? "up" : "down");
  if (state->workers > 0) {
    lp_json_put_integer(json, "workers", (int64_t)state->workers);
    lp_json_put_integer(json, "workers_up", (int64_t)workers_up(state));
    if (state->servers > 0) lp_json_put_integer(json, "servers", state->servers);
    put_reasons(json, state);
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

/* The bundle of embeddings runs in this process, so it is up while the server is. */
static void put_embedder(lp_json_writer *json, lp_embedder *embedder) {
  if (!embedder) return;
  lp_json_put_object(json, "embeddings");
  lp_json_put_text(json, "state", "up");
  lp_json_put_end(json);
}

typedef struct {
  unsigned offered;
  lp_site_state of[LP_ROUTE_COUNT];
  bool kept;
  const char *word;
} places;

static places look(lp_dispatcher *dispatcher) {
  places now = {.offered = lp_dispatcher_offered(dispatcher)};
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(now.offered, route)) lp_dispatcher_tell(dispatcher, route, &now.of[route]);
  now.kept = !lp_metrics_degraded(lp_dispatcher_metrics(dispatcher));
  now.word = now.offered == 0 ? "ready" : word_of(now.of, now.offered, now.kept); /* only embeddings: ready */
  return now;
}

char *lp_states_ready(lp_dispatcher *dispatcher, bool *ready) {
  const places now = look(dispatcher);
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "status", now.word);
  lp_json_put_object(&json, "places");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(now.offered, route)) put_place(&json, route, &now.of[route]);
  put_embedder(&json, lp_dispatcher_embedder(dispatcher));
  lp_json_put_end(&json);
  lp_json_put_bool(&json, "pool_kept", now.kept);
  lp_json_put_end(&json);
  *ready = !lp_streq(now.word, "down");
  return out.data;
}

/* ---- for Prometheus ---------------------------------------------------------------------------------------------- */

static void print_places(const places *now, lp_buf *out) {
  lp_exposition_head(out, "kv_bytes", "gauge", "Bytes of KV caches: of requests that run, and of earlier prompts.");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    if (!lp_route_offered(now->offered, route) || now->of[route].generating < 0) continue;
    const char *name = lp_route_name(route);
    lp_exposition_labelled(out, "kv_bytes", (uint64_t)now->of[route].kv_bytes, "route=\"%s\",of=\"requests\"", name);
    lp_exposition_labelled(out, "kv_bytes", (uint64_t)now->of[route].kept_bytes, "route=\"%s\",of=\"prompts\"", name);
  }
  lp_exposition_head(out, "kv_preempted_total", "counter",
                     "Sequences that gave their KV caches to others and began again.");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(now->offered, route) && now->of[route].generating >= 0)
      lp_exposition_labelled(out, "kv_preempted_total", (uint64_t)now->of[route].preempted, "route=\"%s\"",
                             lp_route_name(route));
}

/* Passes of a split include waits for its workers, so that only those of the edge are told. */
static void print_passes(const places *now, lp_buf *out) {
  const lp_site_state *edge = &now->of[LP_ROUTE_EDGE];
  if (!lp_route_offered(now->offered, LP_ROUTE_EDGE) || edge->generating < 0) return;
  lp_exposition_head(out, "pass_seconds_total", "counter", "Time in passes; its rate is the share of the time.");
  lp_exposition_number(out, "pass_seconds_total", "route=\"edge\"", edge->busy_s);
}

static void print_choices(const places *now, lp_buf *out) {
  static const char *const names[LP_CHOICE_COUNT] = {[LP_CHOICE_PREFIX] = "prefix",
                                                     [LP_CHOICE_VISITED] = "visited",
                                                     [LP_CHOICE_QUEUE] = "queue",
                                                     [LP_CHOICE_FEWEST] = "fewest"};
  lp_exposition_head(out, "worker_choices_total", "counter", "Workers chosen for requests, by the reason.");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    for (int reason = 0;
         lp_route_offered(now->offered, route) && now->of[route].workers > 0 && reason < LP_CHOICE_COUNT; reason++)
      lp_exposition_labelled(out, "worker_choices_total", now->of[route].choices[reason], "route=\"%s\",reason=\"%s\"",
                             lp_route_name(route), names[reason]);
}

static void print_embedder(lp_embedder *embedder, lp_buf *out) {
  if (!embedder) return;
  const lp_embedder_load load = lp_embedder_now(embedder);
  lp_exposition_head(out, "embeddings_total", "counter", "Finished requests for embeddings.");
  lp_exposition_count(out, "embeddings_total", "outcome=\"answered\"", (uint64_t)load.answered);
  lp_exposition_count(out, "embeddings_total", "outcome=\"failed\"", (uint64_t)load.failed);
  lp_exposition_single(out, "embedded_texts_total", "counter", "Texts that were turned into vectors.",
                       (uint64_t)load.texts);
  lp_exposition_single(out, "embedded_tokens_total", "counter", "Tokens of these texts.", (uint64_t)load.tokens);
  lp_exposition_single(out, "embedding_passes_total", "counter", "Passes over one text or several.",
                       (uint64_t)load.passes);
  lp_exposition_single(out, "embeddings_in_flight", "gauge", "Requests for embeddings that run or wait.",
                       (uint64_t)load.requests);
}

static void print_spans(lp_spans *spans, lp_buf *out) {
  int64_t sent = 0, dropped = 0;
  if (!spans) return;
  lp_spans_count(spans, &sent, &dropped);
  lp_exposition_head(out, "spans_total", "counter", "Spans of traces, by whether the collector took them.");
  lp_exposition_count(out, "spans_total", "outcome=\"sent\"", (uint64_t)sent);
  lp_exposition_count(out, "spans_total", "outcome=\"dropped\"", (uint64_t)dropped);
}

void lp_states_print(lp_dispatcher *dispatcher, lp_buf *out) {
  const places now = look(dispatcher);
  unsigned up = 0;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (now.of[route].up) up |= 1u << route;
  lp_metrics_print(lp_dispatcher_metrics(dispatcher), lp_dispatcher_prediction(dispatcher), now.offered, up, out);
  print_passes(&now, out);
  print_places(&now, out);
  print_choices(&now, out);
  print_embedder(lp_dispatcher_embedder(dispatcher), out);
  print_spans(lp_dispatcher_spans(dispatcher), out);
}

/* ---- the prediction ---------------------------------------------------------------------------------------------- */

void lp_states_judge(lp_dispatcher *dispatcher, lp_diag *diag) {
  const lp_serve_prediction *prediction = lp_dispatcher_prediction(dispatcher);
  lp_site_state edge = {0};
  lp_buf says = {0};
  if (!prediction) return;
  if (lp_route_offered(lp_dispatcher_offered(dispatcher), LP_ROUTE_EDGE))
    lp_dispatcher_tell(dispatcher, LP_ROUTE_EDGE, &edge);
  if (!lp_metrics_judge(lp_dispatcher_metrics(dispatcher), prediction, edge.busy_s)) return;
  if (lp_metrics_say(lp_dispatcher_metrics(dispatcher), prediction, &says))
    lp_note(diag, LP_LOC_NONE, "%s", lp_buf_text(&says));
  else
    lp_warning(diag, LP_LOC_NONE, "%s", lp_buf_text(&says));
  lp_buf_free(&says);
  lp_diag_clear(diag); /* it was printed */
}

static void put_prediction(lp_json_writer *json, lp_dispatcher *dispatcher) {
  const lp_serve_prediction *prediction = lp_dispatcher_prediction(dispatcher);
  LP_OWNED(lp_buf_free) lp_buf says = {0};
  if (!prediction) return;
  lp_json_put_object(json, "prediction");
  lp_json_put_bool(json, "fits", lp_metrics_say(lp_dispatcher_metrics(dispatcher), prediction, &says));
  lp_json_put_text(json, "says", lp_buf_text(&says));
  lp_json_put_end(json);
}

/* ---- for the log ------------------------------------------------------------------------------------------------- */

void lp_states_log(lp_dispatcher *dispatcher, lp_log *log, lp_workers_seen *seen) {
  unsigned offered = lp_dispatcher_offered(dispatcher);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    lp_site_state state;
    if (!lp_route_offered(offered, route)) continue;
    lp_dispatcher_tell(dispatcher, route, &state);
    for (size_t i = 0; i < state.workers; i++) {
      bool down = !state.worker[i].up;
      if (down == seen->down[route][i]) continue;
      seen->down[route][i] = down;
      lp_log_worker(log, lp_route_name(route), &state.worker[i]);
    }
  }
}

/* ---- the status -------------------------------------------------------------------------------------------------- */

static void put_workers(lp_json_writer *json, const lp_site_state *state) {
  lp_json_put_array(json, "workers");
  for (size_t i = 0; i < state->workers; i++) {
    lp_json_put_object(json, NULL);
    lp_json_put_text(json, "address", state->worker[i].address);
    lp_json_put_text(json, "state", state->worker[i].up ? "up" : "down");
    if (state->worker[i].reason[0]) lp_json_put_text(json, "reason", state->worker[i].reason);
    lp_json_put_integer(json, "requests", state->worker[i].requests);
    lp_json_put_end(json);
  }
  lp_json_put_end(json);
}

static void put_site(lp_json_writer *json, lp_route route, const char *model, const lp_site_state *state,
                     const lp_metrics_now *metrics) {
  lp_json_put_object(json, NULL);
  lp_json_put_text(json, "route", lp_route_name(route));
  lp_json_put_text(json, "model", model);
  lp_json_put_text(json, "state", state->up ? "up" : "down");
  lp_json_put_integer(json, "requests", state->requests);
  if (state->generating >= 0) {
    lp_json_put_integer(json, "generating", state->generating);
    lp_json_put_integer(json, "waiting", state->waiting);
    lp_json_put_integer(json, "kv_bytes", state->kv_bytes);
    lp_json_put_integer(json, "kept_bytes", state->kept_bytes);
    lp_json_put_integer(json, "preempted", state->preempted);
  }
  lp_json_put_integer(json, "answered", (int64_t)metrics->answers[route][true]);
  lp_json_put_integer(json, "failed", (int64_t)metrics->answers[route][false]);
  lp_json_put_integer(json, "tokens", (int64_t)metrics->tokens[route]);
  put_workers(json, state);
  lp_json_put_end(json);
}

static void put_ms(lp_json_writer *json, const char *key, double seconds) {
  if (isfinite(seconds)) lp_json_put_fixed(json, key, seconds * 1000, 3);
}

static void put_choices(lp_json_writer *json, const lp_recent *recent) {
  lp_json_put_array(json, "offered");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    if (!lp_route_offered(recent->offered, route)) continue;
    lp_json_put_object(json, NULL);
    lp_json_put_text(json, "route", lp_route_name(route));
    lp_json_put_number(json, "probability", recent->decided.probability[route]);
    if (recent->delay_s[route] > 0) put_ms(json, "expected_ms", recent->delay_s[route]);
    lp_json_put_end(json);
  }
  lp_json_put_end(json);
}

static void put_recent(lp_json_writer *json, const lp_recent *recent) {
  lp_json_put_object(json, NULL);
  lp_json_put_integer(json, "number", (int64_t)recent->number);
  lp_json_put_fixed(json, "ended_s", recent->at_s, 3);
  lp_json_put_text(json, "route", lp_route_name(recent->route));
  lp_json_put_bool(json, "answered", recent->good);
  lp_json_put_text(json, "decided", lp_route_name(recent->decided.route));
  lp_json_put_text(json, "decided_by", lp_decision_source_name(recent->decided.source));
  lp_json_put_text(json, "reason", recent->decided.reason);
  lp_json_put_number(json, "propensity", recent->decided.propensity);
  put_choices(json, recent);
  if (recent->decision > 0) lp_json_put_integer(json, "decision", recent->decision);
  lp_json_put_bool(json, "fell_back", recent->fell_back);
  lp_json_put_integer(json, "prompt_tokens", recent->prompt_tokens);
  lp_json_put_integer(json, "cached_tokens", recent->cached_tokens);
  lp_json_put_integer(json, "tokens", recent->tokens);
  put_ms(json, "decision_ms", recent->seconds[LP_TIME_DECISION]);
  put_ms(json, "queue_ms", recent->seconds[LP_TIME_QUEUE]);
  put_ms(json, "ttft_ms", recent->seconds[LP_TIME_TTFT]);
  put_ms(json, "tpot_ms", recent->seconds[LP_TIME_TPOT]);
  put_ms(json, "total_ms", recent->seconds[LP_TIME_TOTAL]);
  lp_json_put_end(json);
}

char *lp_states_status(lp_dispatcher *dispatcher) {
  const places now = look(dispatcher);
  LP_OWNED(lp_free_at) lp_metrics_now *metrics = lp_alloc(sizeof *metrics);
  lp_metrics_read(lp_dispatcher_metrics(dispatcher), metrics);
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "schema", "llmpart.status/1");
  lp_json_put_text(&json, "status", now.word);
  lp_json_put_bool(&json, "pool_kept", now.kept);
  lp_json_put_integer(&json, "in_flight", metrics->in_flight);
  lp_json_put_integer(&json, "fallbacks", (int64_t)metrics->fallbacks);
  put_prediction(&json, dispatcher);
  lp_json_put_array(&json, "places");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(now.offered, route))
      put_site(&json, route, lp_dispatcher_model(dispatcher, route), &now.of[route], metrics);
  lp_json_put_end(&json);
  lp_json_put_array(&json, "recent");
  for (size_t i = 0; i < metrics->count; i++)
    put_recent(&json, &metrics->recent[i]);
  lp_json_put_end(&json);
  lp_json_put_end(&json);
  return out.data;
}
