#include "runtime/serve/dispatch.h"

#include <math.h>

#include "base/clock.h"
#include "runtime/serve/answer.h"
#include "runtime/serve/estimates.h"
#include "runtime/serve/parts.h"
#include "runtime/serve/stop.h"
#include "runtime/serve/tools.h"

struct lp_dispatcher {
  const lp_serve_config *config;
  lp_parts parts;
  lp_estimates *estimates;
};

unsigned lp_dispatcher_offered(const lp_dispatcher *self) {
  unsigned routes = 0;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (self->parts.place[route]) routes |= 1u << route;
  return routes;
}

void lp_dispatcher_tell(lp_dispatcher *self, lp_route route, lp_site_state *out) {
  self->parts.place[route]->site->tell(self->parts.place[route]->site, out);
  out->up = out->up && !lp_breaker_is_open(&self->parts.place[route]->breaker);
}

unsigned lp_dispatcher_up(lp_dispatcher *self) {
  unsigned routes = lp_dispatcher_offered(self);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    lp_site_state state;
    if (!self->parts.place[route]) continue;
    lp_dispatcher_tell(self, route, &state);
    if (!state.up) routes &= ~(1u << route);
  }
  return routes;
}

const char *lp_dispatcher_model(const lp_dispatcher *self, lp_route route) {
  return self->parts.place[route] ? self->parts.place[route]->site->model : NULL;
}

lp_status lp_dispatcher_open(lp_serve_config *config, const lp_dispatcher *earlier, lp_dispatcher **out, lp_buf *opened,
                             lp_diag *diag) {
  lp_dispatcher *self = lp_alloc(sizeof *self);
  *self = (lp_dispatcher){.config = config};
  lp_status status = lp_estimates_open(config, &self->estimates, diag);
  if (status == LP_OK) status = lp_parts_open(config, earlier ? &earlier->parts : NULL, &self->parts, opened, diag);
  if (status == LP_OK)
    *out = self;
  else
    lp_dispatcher_close(self);
  return status;
}

void lp_dispatcher_close(lp_dispatcher *self) {
  lp_parts_close(&self->parts);
  lp_estimates_close(self->estimates);
  free(self);
}

lp_embedder *lp_dispatcher_embedder(const lp_dispatcher *self) {
  return self->parts.embedder;
}

lp_spans *lp_dispatcher_spans(const lp_dispatcher *self) {
  return self->parts.spans;
}

lp_metrics *lp_dispatcher_metrics(lp_dispatcher *self) {
  return self->parts.metrics;
}

const lp_serve_prediction *lp_dispatcher_prediction(const lp_dispatcher *self) {
  return self->config->prediction.window_s > 0 ? &self->config->prediction : NULL;
}

/* ---- decisions and outcomes -------------------------------------------------------------------------------------- */

lp_status lp_dispatcher_decide(lp_dispatcher *self, lp_router_request *request, lp_decision *decision, int64_t *id,
                               lp_diag *diag) {
  *id = 0;
  request->rule = self->config->rule;
  lp_learner_decide(self->parts.learner, request, decision);
  return self->parts.learner->store ? lp_store_decision(self->parts.learner->store, request, decision, id, diag)
                                    : LP_OK;
}

lp_status lp_dispatcher_stored(lp_dispatcher *self, uint64_t owner, int64_t id, lp_arena *arena, lp_stored *out,
                               lp_diag *diag) {
  if (!self->parts.learner->store)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "no decision is kept: the server has no pool");
  if (lp_store_get(self->parts.learner->store, id, arena, out, diag) != LP_OK) return LP_USAGE;
  return out->request.owner == owner ? LP_OK : lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "no decision %" PRId64, id);
}

lp_status lp_dispatcher_outcome(lp_dispatcher *self, uint64_t owner, int64_t id, double reward, bool good,
                                lp_diag *diag) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_stored stored;
  lp_status status = lp_dispatcher_stored(self, owner, id, arena, &stored, diag);
  if (status == LP_OK && lp_store_outcome(self->parts.learner->store, id, reward, good, diag) != LP_OK)
    status = LP_USAGE;
  if (status == LP_OK) lp_learner_learn(self->parts.learner, &stored.request, stored.decision.route, reward, good);
  return status;
}

/* ---- one request ------------------------------------------------------------------------------------------------- */

/* Notes the first piece that was passed on: after it another place may answer only if the taker forgets. */
typedef struct {
  const lp_taker *taker;
  double first_ms; /* 0: none was passed on */
} counted;

static bool hand_on(void *user, const lp_piece *piece) {
  counted *to = user;
  if (to->first_ms == 0) to->first_ms = lp_now_ms();
  return to->taker->sink(to->taker->user, piece);
}

static lp_status refuse_model(const lp_dispatcher *self, const char *id, lp_diag *diag) {
  const char *model[LP_ROUTE_COUNT];
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    model[route] = lp_dispatcher_model(self, route);
  lp_answer_name_models(model, NULL, id, &text);
  return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "%s", lp_buf_text(&text));
}

/* Sets the route that the request names, or the routes from which the router may choose; out->allowed: also those that
 * are down. */
static lp_status offer(lp_dispatcher *self, const lp_completion *asked, lp_router_request *request, lp_dispatched *out,
                       lp_diag *diag) {
  lp_route named;
  unsigned all = lp_dispatcher_offered(self), up = lp_dispatcher_up(self), of_model = 0;
  *request = (lp_router_request){.keywords = asked->keywords, .offered = up ? up : all, .owner = asked->owner};
  out->allowed = all;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(all, route) && lp_streq(self->parts.place[route]->site->model, asked->model))
      of_model |= 1u << route;
  if (lp_route_parse(asked->model, &named)) {
    out->no_model = !lp_route_offered(all, named);
    if (out->no_model) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "the server has no '%s'", asked->model);
    request->offered = out->allowed = 1u << named;
  } else if (of_model != 0) {
    request->offered = of_model & up ? of_model & up : of_model;
    out->allowed = of_model;
  } else if (!lp_streq(asked->model, "auto")) {
    out->no_model = true;
    return refuse_model(self, asked->model, diag);
  } else if (asked->prompt_tokens.count > 0 && (all & (all - 1)) != 0) {
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE,
                       "'prompt' is a list of token numbers, which belong to one model: name it instead of 'auto'");
  }
  return LP_OK;
}

/* Appends the keywords of the request: those of its own, or of the policy's language model, or else its class. The text
 * of a request that may not leave the edge is not shown to a model. */
static void put_keywords(lp_dispatcher *self, const lp_completion *asked, const lp_router_request *request,
                         lp_buf *out) {
  const char *text = asked->count > 0 ? asked->messages[asked->count - 1].content : asked->prompt;
  bool choice = (request->offered & (request->offered - 1)) != 0;
  bool describes = self->config->model_keywords && asked->described.size > 0 && !asked->local_only && choice;
  if (describes && text && text[0] &&
      self->parts.learner->policy->describe(self->parts.learner->policy, asked->keywords, text, out))
    return;
  lp_buf_puts(out, asked->keywords);
}

/* Applies the hard constraints and estimates the delays; `keywords` is the text that the router reads. */
static lp_status weigh(lp_dispatcher *self, const lp_completion *asked, lp_demand *demand, lp_router_request *request,
                       lp_buf *keywords, lp_dispatched *out, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf why = {0};
  put_keywords(self, asked, request, keywords);
  out->allowed &= lp_estimates_weigh(self->estimates, asked, demand, request, keywords, &why);
  request->keywords = lp_buf_text(keywords);
  lp_status status = LP_OK;
  out->too_long = request->offered == 0 && lp_estimates_is_too_long(self->estimates, demand);
  if (request->offered == 0)
    status = lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "no place may answer: %s", lp_buf_text(&why));
  return status;
}

/* A failure of a site has the reward of an answer that came too late. */
static void conclude(lp_dispatcher *self, const lp_router_request *request, lp_route route, int64_t id, double delay_s,
                     bool good) {
  double reward = good ? self->config->target_s - delay_s : -self->config->target_s;
  lp_learner_learn(self->parts.learner, request, route, reward, good);
  if (id <= 0) return;
  lp_diag *quiet = lp_diag_create(); /* if the pool cannot be written, only the experience is lost */
  lp_metrics_keep(self->parts.metrics, lp_store_outcome(self->parts.learner->store, id, reward, good, quiet) == LP_OK);
  lp_diag_free(quiet);
}

/* Adds a span of the request under `parent`, with an id of its own unless it has one. */
static void add_span(const lp_dispatcher *self, const lp_completion *asked, const char *parent,
                     const lp_span_record *from) {
  char id[LP_SPAN_ID + 1];
  lp_span_record record = *from;
  if (!self->parts.spans) return;
  lp_span_draw_id(id);
  record.trace = asked->trace;
  record.parent = parent;
  if (!record.id) record.id = id;
  if (record.kind == 0) record.kind = LP_SPAN_INTERNAL;
  lp_spans_add(self->parts.spans, &record);
}

/* Decides. A request is answered even if the pool, as on a full disk, does not take the decision, which then has the
 * number 0. */
static void decide(lp_dispatcher *self, const lp_completion *asked, lp_router_request *request, lp_dispatched *out) {
  lp_diag *quiet = lp_diag_create();
  double begun_ms = lp_now_ms();
  bool kept = lp_dispatcher_decide(self, request, &out->decided, &out->decision, quiet) == LP_OK;
  if (!kept) out->decision = 0;
  if (self->parts.learner->store) lp_metrics_keep(self->parts.metrics, kept);
  lp_diag_free(quiet);
  double ended_ms = lp_now_ms();
  out->seconds[LP_TIME_DECISION] = (ended_ms - begun_ms) / 1000;
  const lp_span_attribute route = {.key = "llmpart.route", .text = lp_route_name(out->decided.route)};
  add_span(
      self, asked, asked->span,
      &(lp_span_record){.name = "decide", .begin_ms = begun_ms, .end_ms = ended_ms, .attribute = &route, .count = 1});
}

/* Lets one site answer, up to a stop sequence. */
static lp_status ask_site(lp_site_server *site, const lp_completion *asked, const volatile int *stop, counted *to,
                          lp_usage *usage, lp_diag *diag) {
  lp_tool_reader reader = {.request = asked, .sink = hand_on, .user = to, .usage = usage};
  lp_stopper stopper = {.request = asked, .sink = lp_tool_reader_put, .user = &reader};
  lp_status status = site->complete(site, asked, stop, lp_stopper_put, &stopper, usage, diag);
  for (int32_t i = 0; i < asked->choices; i++)
    if (stopper.choice[i].stopped) usage->finish[i] = LP_FINISH_STOP;
  usage->stopped_by = stopper.choice[0].by;
  lp_stopper_end(&stopper, status == LP_OK);
  lp_tool_reader_end(&reader, status == LP_OK);
  return status;
}

/* Adds the spans of a place: as a whole, its queue, the prompt, and the tokens after the first. The first has the name
 * and the attributes of OpenTelemetry's conventions for generative AI (version 1.37). */
static void trace_place(const lp_dispatcher *self, const lp_completion *asked, lp_route route, lp_status status,
                        double begun_ms, const counted *to, const lp_usage *usage, const lp_diag *diag) {
  double now_ms = lp_now_ms(), queued_ms = begun_ms + usage->queue_ms;
  const lp_diag_entry *why = status == LP_OK ? NULL : lp_diag_get(diag, 0);
  const char *finish[LP_MOST_CHOICES], *operation = asked->chat ? "chat" : "text_completion",
                                       *model = self->parts.place[route]->site->model;
  for (int32_t i = 0; i < asked->choices; i++)
    finish[i] = lp_finish_name(usage->finish[i]);
  lp_buf name = {0};
  lp_buf_printf(&name, "%s %s", operation, model);
  const lp_span_attribute attributes[] = {
      {.key = "gen_ai.operation.name", .text = operation},
      {.key = "gen_ai.provider.name", .text = "llmpart"},
      {.key = "gen_ai.request.model", .text = model},
      {.key = "gen_ai.request.max_tokens", .number = asked->max_tokens},
      {.key = "gen_ai.request.choice.count", .number = asked->choices},
      {.key = "gen_ai.response.model", .text = model},
      {.key = "llmpart.route", .text = lp_route_name(route)},
      {.key = "gen_ai.usage.input_tokens", .number = usage->prompt_tokens > 0 ? usage->prompt_tokens : 0},
      {.key = "llmpart.cached_tokens", .number = usage->cached_tokens},
      {.key = "gen_ai.usage.output_tokens", .number = usage->tokens},
      {.key = "gen_ai.response.finish_reasons", .list = finish, .count = (size_t)asked->choices}};
  const lp_span_record whole = {.id = asked->of_place,
                                .name = lp_buf_text(&name),
                                .kind = route == LP_ROUTE_EDGE ? LP_SPAN_INTERNAL : LP_SPAN_CLIENT,
                                .begin_ms = begun_ms,
                                .end_ms = now_ms,
                                .error = status == LP_OK ? NULL
                                         : why           ? why->text
                                                         : "no answer",
                                .attribute = attributes,
                                .count = LP_COUNT(attributes) - (status != LP_OK)};
  add_span(self, asked, asked->span, &whole);
  lp_buf_free(&name);
  if (to->first_ms < queued_ms) return;
  const lp_span_record parts[] = {{.name = "queue", .begin_ms = begun_ms, .end_ms = queued_ms},
                                  {.name = "first token", .begin_ms = queued_ms, .end_ms = to->first_ms},
                                  {.name = "further tokens", .begin_ms = to->first_ms, .end_ms = now_ms}};
  for (size_t i = 0; i < LP_COUNT(parts); i++)
    add_span(self, asked, asked->of_place, &parts[i]);
}

/* Asks the place of a route, unless its circuit breaker is open. `left`: others that may be asked after it. */
static lp_status ask(lp_dispatcher *self, lp_route route, unsigned left, const lp_completion *asked,
                     const lp_demand *demand, const volatile int *stop, counted *to, lp_dispatched *out,
                     lp_diag *diag) {
  out->route = route;
  out->model = self->parts.place[route]->site->model;
  out->usage = (lp_usage){.prompt_tokens = -1};
  if (!lp_breaker_admits(&self->parts.place[route]->breaker))
    return lp_error(diag, LP_LOC_NONE, "it has failed several times, and is asked again soon");
  double begun_ms = lp_now_ms();
  lp_completion of_place = *asked; /* borrows all */
  of_place.waits = (left & lp_dispatcher_up(self)) == 0;
  lp_span_draw_id(of_place.of_place);
  lp_estimates_begin(self->estimates, demand, route);
  lp_status status = ask_site(self->parts.place[route]->site, &of_place, stop, to, &out->usage, diag);
  trace_place(self, &of_place, route, status, begun_ms, to, &out->usage, diag);
  double service_s = status == LP_OK ? (lp_now_ms() - begun_ms - out->usage.queue_ms) / 1000 : -1;
  lp_estimates_end(self->estimates, asked, demand, route, &out->usage, service_s);
  bool unknown = status == LP_USAGE || out->usage.is_busy || out->usage.is_too_long || lp_flag_get(stop);
  lp_breaker_note(&self->parts.place[route]->breaker, unknown           ? LP_OUTCOME_UNKNOWN
                                                      : status == LP_OK ? LP_OUTCOME_GOOD
                                                                        : LP_OUTCOME_FAILED);
  return status;
}

/* The next place to ask after others have failed: one that is up, if there is one. */
static bool next_route(lp_dispatcher *self, unsigned left, lp_route *out) {
  unsigned up = left & lp_dispatcher_up(self);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(up ? up : left, route)) {
      *out = route;
      return true;
    }
  return false;
}

static void measure(const counted *to, double begun_ms, lp_dispatched *out) {
  double now_ms = lp_now_ms();
  out->seconds[LP_TIME_TOTAL] = (now_ms - begun_ms) / 1000;
  out->seconds[LP_TIME_QUEUE] = out->usage.queue_ms / 1000;
  if (to->first_ms == 0) return;
  out->seconds[LP_TIME_TTFT] = (to->first_ms - begun_ms) / 1000;
  if (out->usage.tokens > 1)
    out->seconds[LP_TIME_TPOT] = (now_ms - to->first_ms) / 1000 / (double)(out->usage.tokens - 1);
}

/* Tells whether another place may answer: the client has nothing of this answer. */
static bool may_fall_back(const counted *to, lp_status status, const volatile int *stop) {
  return status == LP_FAILED && !lp_flag_get(stop) && (to->first_ms == 0 || to->taker->forget);
}

static void begin_again(counted *to) {
  if (to->first_ms != 0) to->taker->forget(to->taker->user);
  to->first_ms = 0;
}

/* Asks the places, from the one of the decision on, until one answers, or has begun to where the client sees it. A
 * prompt that is too long for all that may answer is a fault of the request; while one of them is down or fails
 * otherwise, another attempt may succeed. */
static lp_status ask_places(lp_dispatcher *self, const lp_completion *asked, const lp_router_request *request,
                            const lp_demand *demand, const volatile int *stop, counted *to, double begun_ms,
                            lp_dispatched *out, lp_diag *why) {
  lp_route route = out->decided.route;
  unsigned left = request->offered & ~(1u << route), fit = out->allowed;
  lp_status status = ask(self, route, left, asked, demand, stop, to, out, why);
  const bool good = status == LP_OK, tells = status != LP_USAGE && !lp_flag_get(stop);
  const double delay_s = (lp_now_ms() - begun_ms) / 1000;
  if (out->usage.is_too_long) fit &= ~(1u << route);
  while (may_fall_back(to, status, stop) && next_route(self, left, &route)) {
    lp_diag_clear(why);
    begin_again(to);
    left &= ~(1u << route);
    out->fell_back = true;
    status = ask(self, route, left, asked, demand, stop, to, out, why);
    if (out->usage.is_too_long) fit &= ~(1u << route);
  }
  out->too_long = status == LP_FAILED && fit == 0;
  if (tells && !out->too_long) conclude(self, request, out->decided.route, out->decision, delay_s, good);
  return out->too_long ? LP_USAGE : status;
}

static void count(lp_dispatcher *self, const lp_router_request *request, lp_status status, const lp_dispatched *out) {
  lp_recent recent = {.route = out->route,
                      .good = status == LP_OK,
                      .refused = status == LP_USAGE,
                      .fell_back = out->fell_back,
                      .decided = out->decided,
                      .decision = out->decision,
                      .offered = request->offered,
                      .prompt_tokens = out->usage.prompt_tokens,
                      .cached_tokens = out->usage.cached_tokens,
                      .tokens = out->usage.tokens};
  memcpy(recent.delay_s, request->delay_s, sizeof recent.delay_s);
  memcpy(recent.seconds, out->seconds, sizeof recent.seconds);
  lp_metrics_end(self->parts.metrics, &recent);
}

static lp_status answer(lp_dispatcher *self, const lp_completion *asked, lp_router_request *request,
                        const lp_demand *demand, const volatile int *stop, counted *to, double begun_ms,
                        lp_dispatched *out, lp_diag *diag) {
  lp_diag *why = lp_diag_create();
  decide(self, asked, request, out);
  lp_metrics_begin(self->parts.metrics);
  lp_status status = ask_places(self, asked, request, demand, stop, to, begun_ms, out, why);
  const lp_diag_entry *entry = lp_diag_get(why, 0);
  if (status != LP_OK)
    status =
        lp_error_as(status, diag, LP_LOC_NONE, "%s: %s", lp_route_name(out->route), entry ? entry->text : "no answer");
  lp_diag_free(why);
  measure(to, begun_ms, out);
  count(self, request, status, out);
  return status;
}

lp_status lp_dispatch(lp_dispatcher *self, const lp_completion *asked, const volatile int *stop, const lp_taker *taker,
                      lp_dispatched *out, lp_diag *diag) {
  lp_router_request request;
  lp_demand demand;
  LP_OWNED(lp_buf_free) lp_buf keywords = {0};
  counted to = {taker, 0};
  double begun_ms = lp_now_ms();
  *out = (lp_dispatched){.usage = {.prompt_tokens = -1}};
  for (lp_time time = 0; time < LP_TIME_COUNT; time++)
    out->seconds[time] = NAN;
  LP_TRY(offer(self, asked, &request, out, diag));
  LP_TRY(weigh(self, asked, &demand, &request, &keywords, out, diag));
  return answer(self, asked, &request, &demand, stop, &to, begun_ms, out, diag);
}
