/* A bundle in this process. If all of its layers run here, an engine answers in batched passes; if some run on workers,
 * each worker has an engine (those of the configuration: remotes.h) or, where that cannot be, as with more than two
 * places, each request a session. */
#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/serve/place/listener.h"
#include "runtime/serve/place/remotes.h"
#include "runtime/serve/place/site.h"
#include "runtime/serve/place/turns.h"
#include "runtime/serve/place/watcher.h"

/* A text that has begun waits this long for a worker, after it has lost one. */
static const double await_worker_ms = 30000;

typedef struct {
  lp_site_server site;
  const lp_serve_bundle *config;
  lp_sides sides;
  lp_engine *engine; /* NULL: layers run on workers */
  const char *why;   /* the reason why requests have sessions; NULL: they share passes */
  lp_engine *own;    /* with the worker that `sides` started; NULL: requests have sessions, or there is none */
  lp_supervisor supervisor[LP_PLACES_MAX]; /* of the workers that `sides` started */
  lp_remotes *remotes;                     /* NULL: the configuration names no workers */
  lp_turns turns;                          /* of requests that may run at a time */
  atomic_int here;
} bundle_site;

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* Makes `count` choices from `first` on, which have the same text so far, in passes. *lost: the worker was lost. */
static lp_status run_passes(lp_engine *engine, int32_t first, int32_t count, lp_listener *to, lp_usage *usage,
                            bool *lost, lp_diag *diag) {
  LP_OWNED(lp_free_at) lp_tokens text = lp_listener_text(to, first);
  size_t made = to->choice[first].made.count;
  lp_engine_outcome outcome[LP_MOST_CHOICES] = {{0}};
  const lp_engine_request request = {.prompt = text.data,
                                     .length = text.count,
                                     .answered = made,
                                     .max_tokens = to->most - (int64_t)made,
                                     .choices = count,
                                     .first_choice = first,
                                     .client = to->request->client_id,
                                     .tenant = to->request->tenant,
                                     .traceparent = to->traceparent,
                                     .decoding = to->decoding,
                                     .sink = lp_listener_take_drawn,
                                     .is_abandoned = lp_listener_is_abandoned,
                                     .user = to};
  double queue_ms = 0;
  lp_status status = lp_engine_generate(engine, &request, outcome, &queue_ms, diag);
  for (int32_t i = 0; i < count; i++) {
    *lost |= outcome[i].lost;
    to->choice[first + i].too_much |= outcome[i].too_much;
  }
  if (first == 0 && made == 0) {
    usage->queue_ms += queue_ms;
    usage->cached_tokens = outcome[0].reused;
  }
  return status;
}

/* Choices that a worker has begun, and lost, have different texts: they go on one by one. */
static lp_status generate_in_passes(lp_engine *engine, lp_listener *to, lp_usage *usage, bool *lost, lp_diag *diag) {
  const int32_t choices = to->request->choices;
  if (!to->begun) return run_passes(engine, 0, choices, to, usage, lost, diag);
  for (int32_t i = 0; i < choices; i++)
    if (!lp_listener_has_all_of(to, i)) LP_TRY(run_passes(engine, i, 1, to, usage, lost, diag));
  return LP_OK;
}

/* Continues the text. *lost: the worker was lost. */
static lp_status generate_in_session(const bundle_site *self, const lp_generate_options *options, lp_listener *to,
                                     bool *lost, lp_diag *diag) {
  lp_session *session = NULL;
  lp_generation made = {0};
  *lost = true;
  LP_TRY(lp_session_open(self->sides.bundle, options, &session, diag));
  LP_OWNED(lp_free_at) lp_tokens text = lp_listener_text(to, 0);
  lp_status status =
      lp_session_generate(session, text.data, 1, (int64_t)text.count, lp_listener_take_generated, to, &made, diag);
  *lost = made.lost;
  lp_generation_free(&made);
  lp_session_close(session);
  return status;
}

/* Who answers an attempt. */
typedef struct {
  lp_remote *remote;        /* NULL: what `sides` started */
  lp_engine *engine;        /* NULL: in a session */
  const char *address;      /* of the worker, or of the group of workers */
  lp_place_addresses cloud; /* the same for a session */
} helper;

static lp_status generate_split(const bundle_site *self, const helper *by, bool gives_up, lp_listener *to,
                                lp_usage *usage, bool *lost, lp_diag *diag) {
  lp_engine *engine = by->engine;
  const lp_generate_options options = {.cloud = by->cloud.only,
                                       .clouds = by->cloud.place,
                                       .cloud_count = by->cloud.count,
                                       .sampling = to->decoding.sampling,
                                       .max_tokens = to->most - (int64_t)to->choice[0].made.count,
                                       .threads = (int32_t)self->config->threads,
                                       .security = self->config->security,
                                       .patience = {.beat_ms = 500, .silence_ms = gives_up ? 2000 : 0},
                                       .cloud_timeout_ms = gives_up ? 30000 : 0,
                                       .gives_up = gives_up,
                                       .stop = &to->choice[0].enough,
                                       .traceparent = to->traceparent,
                                       .is_abandoned = lp_listener_is_abandoned,
                                       .abandon_user = to};
  to->machine = engine && !lp_engine_draws_remotely(engine) ? "device" : by->address;
  return engine ? generate_in_passes(engine, to, usage, lost, diag)
                : generate_in_session(self, &options, to, lost, diag);
}

/* The workers that `sides` started. */
static helper own_workers(const bundle_site *self) {
  const lp_sides *sides = &self->sides;
  helper own = {.engine = self->own, .address = sides->cloud ? sides->cloud : "device", .cloud.only = sides->cloud};
  for (; own.cloud.count < sides->cloud_count; own.cloud.count++)
    own.cloud.place[own.cloud.count] = sides->clouds[own.cloud.count];
  return own;
}

static bool own_workers_are_up(const bundle_site *self) {
  for (lp_place i = 0; i < LP_PLACES_MAX; i++)
    if (!lp_supervisor_is_up(&self->supervisor[i])) return false;
  return true;
}

static bool choose(bundle_site *self, const lp_listener *to, uint64_t *tried, helper *out) {
  *out = own_workers(self);
  if (self->own) return own_workers_are_up(self);
  lp_remote *remote = lp_remotes_choose(self->remotes, to->request->tenant, &to->prompt, tried);
  if (!remote) return false;
  *out = (helper){remote, lp_remote_engine(remote), lp_remote_address(remote), *lp_remote_addresses(remote)};
  return true;
}

/* Makes one attempt. *again: another one may follow. */
static lp_status attempt(bundle_site *self, const helper *worker, lp_listener *to, lp_usage *usage, bool *again,
                         lp_diag *why) {
  bool lost = false;
  lp_diag_clear(why);
  lp_status status = generate_split(self, worker, true, to, usage, &lost, why);
  /* The last token of a text may come before its worker is lost. */
  if (status == LP_FAILED && lp_listener_has_all(to)) status = LP_OK;
  *again = worker->remote || lost || (to->request->waits && !own_workers_are_up(self));
  if (worker->remote) lp_remote_end(worker->remote, status == LP_OK ? LP_OUTCOME_GOOD : LP_OUTCOME_FAILED, lost);
  return status;
}

/* Reports why the last attempt failed, or why there was none. */
static lp_status report_end(const bundle_site *self, const lp_diag *why, lp_diag *diag) {
  const lp_diag_entry *entry = lp_diag_get(why, 0);
  char reason[LP_WORKER_REASON] = "";
  if (entry) return lp_error(diag, LP_LOC_NONE, "%s", entry->text);
  if (self->remotes) lp_remotes_reason(self->remotes, reason);
  return lp_error(diag, LP_LOC_NONE, "no worker answers%s%s; they are asked again soon", reason[0] ? ": " : "", reason);
}

/* Asks workers one after the other until the answer is complete. Another worker continues the text of one that was
 * lost, and draws the same tokens, which depend only on the text, the positions, the seed and the rounding. Before the
 * first token another place can answer: a text waits for a worker to come back if it has begun, or if there is no other
 * place; the worker that this process started comes back soon, and every text waits for it. */
static lp_status generate_on_workers(bundle_site *self, lp_listener *to, lp_usage *usage, lp_diag *diag) {
  uint64_t tried = 0;
  double until_ms = self->own ? lp_now_ms() + await_worker_ms : INFINITY;
  bool again = true;
  LP_OWNED(lp_diag_free_at) lp_diag *why = lp_diag_create();
  lp_status status = LP_FAILED;
  while (status == LP_FAILED && again && !lp_listener_is_abandoned(to) && lp_now_ms() < until_ms) {
    helper worker;
    bool found = choose(self, to, &tried, &worker);
    lp_listener_count(to, usage);
    int64_t before = usage->tokens;
    bool waits = to->begun || self->own || (to->request->waits && lp_remotes_come_back(self->remotes, await_worker_ms));
    if (!found && !waits) break;
    if (found) status = attempt(self, &worker, to, usage, &again, why);
    lp_listener_count(to, usage);
    if (found && (until_ms == INFINITY || usage->tokens > before)) until_ms = lp_now_ms() + await_worker_ms;
    if (!found) tried = 0;
    if (status == LP_FAILED && again && (!found || self->own)) (void)usleep(50000);
  }
  if (status != LP_OK) status = report_end(self, why, diag);
  return status;
}

static lp_status generate(bundle_site *self, lp_listener *to, lp_usage *usage, lp_diag *diag) {
  bool lost = false;
  if (self->engine) return generate_in_passes(self->engine, to, usage, &lost, diag);
  if (to->request->only_engine && self->why)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'%s' is not supported here: %s", to->request->only_engine,
                       self->why);
  if (self->remotes || self->own) return generate_on_workers(self, to, usage, diag);
  const helper own = own_workers(self);
  return generate_split(self, &own, false, to, usage, &lost, diag);
}

static lp_status take_turn(bundle_site *self, lp_listener *to, lp_usage *usage, lp_diag *diag) {
  const lp_completion *request = to->request;
  const lp_turns_request wanted = {.client = request->client_id,
                                   .tokens = (int64_t)to->prompt.count + to->most * request->choices,
                                   .turns = request->choices};
  lp_status status = LP_OK;
  double began_ms = lp_now_ms();
  lp_turns_result turn = lp_turns_take(&self->turns, &wanted, to->until_ms);
  usage->queue_ms = lp_now_ms() - began_ms;
  usage->is_busy = turn == LP_TURNS_FULL;
  if (usage->is_busy)
    return lp_error(diag, LP_LOC_NONE, "the %s is saturated: %" PRId64 " answers run, and %" PRId64 " wait",
                    self->site.name, self->config->parallel, self->config->queue);
  to->late = turn == LP_TURNS_LATE;
  if (!to->late) {
    if (!lp_listener_is_abandoned(to)) status = generate(self, to, usage, diag);
    lp_listener_count(to, usage);
    lp_turns_give(&self->turns, &wanted);
  }
  if (status != LP_OK || !to->late) return status;
  return lp_error(diag, LP_LOC_NONE, "the answer has taken more than %g s", self->config->total_ms / 1000);
}

static lp_status complete(lp_site_server *site, const lp_completion *request, const volatile int *stop,
                          lp_piece_sink *sink, void *user, lp_usage *usage, lp_diag *diag) {
  bundle_site *self = (bundle_site *)site;
  const lp_serve_bundle *config = self->config;
  lp_status status = LP_FAILED;
  *usage = (lp_usage){.prompt_tokens = -1};
  (void)atomic_fetch_add(&self->here, 1);
  if (!request->waits && !own_workers_are_up(self)) {
    lp_report_error(diag, LP_LOC_NONE, "the worker does not answer; another one is started if it stays silent");
  } else {
    lp_listener to = {.bundle = self->sides.bundle,
                      .request = request,
                      .sink = sink,
                      .user = user,
                      .stop = stop,
                      .machine = site->name,
                      .until_ms = lp_now_ms() + config->total_ms,
                      .most = request->max_tokens};
    lp_traceparent_write(request->trace, request->of_place, to.traceparent);
    status = lp_listener_begin(&to, usage, diag);
    if (status == LP_OK && !request->only_counts) status = take_turn(self, &to, usage, diag);
    lp_listener_free(&to);
  }
  (void)atomic_fetch_sub(&self->here, 1);
  return status;
}

/* ---- the site ---------------------------------------------------------------------------------------------------- */

static void close_bundle(lp_site_server *site) {
  LP_OWNED(lp_free_at) bundle_site *self = (bundle_site *)site;
  lp_engine_close(self->engine);
  lp_engine_close(self->own);
  for (lp_place i = 0; i < LP_PLACES_MAX; i++)
    lp_supervisor_end(&self->supervisor[i]);
  lp_remotes_close(self->remotes);
  lp_sides_close(&self->sides);
  lp_turns_destroy(&self->turns);
}

/* Opens the engine for all layers, or the one with the worker that `sides` started. */
static lp_status open_engine(bundle_site *self, lp_diag *diag) {
  const lp_bundle *bundle = self->sides.bundle;
  const char *why = NULL;
  lp_engine_options options = {.threads = (int32_t)self->config->threads,
                               .kv_bytes = self->config->kv_bytes,
                               .theta = self->config->theta,
                               .prompt_stretch = self->config->prompt_stretch,
                               .prompt_turn = self->config->prompt_turn};
  if (options.theta > 0 && !lp_engine_fits_exits(bundle, &why))
    return lp_error(diag, LP_LOC_FILE(self->config->bundle), "early exits cannot give tokens ('theta'): %s", why);
  if (lp_engine_fits(bundle, &self->why)) return lp_engine_open(bundle, &options, &self->engine, diag);
  options.cloud = self->sides.cloud;
  if (lp_bundle_is_split(bundle) && !lp_engine_fits_worker(bundle, &self->why)) return LP_OK;
  if (self->remotes || self->why) return LP_OK;
  return lp_engine_open(bundle, &options, &self->own, diag);
}

/* Watches the workers that `sides` started. With more than two places, each of them knows those of the others. */
static void watch_own_workers(bundle_site *self) {
  lp_sides *sides = &self->sides;
  for (lp_place i = LP_SIDE_CLOUD; i < lp_bundle_place_count(sides->bundle); i++) {
    lp_worker_request request = {
        .bundle = self->config->bundle, .trust = self->config->trust, .threads = (int32_t)self->config->threads};
    if (sides->worker[i].pid <= 0) continue;
    if (sides->cloud_count > 0) {
      request.place = lp_bundle_place_name(sides->bundle, i);
      request.peers = sides->clouds;
      request.peer_count = sides->cloud_count;
    }
    lp_supervisor_start(&self->supervisor[i], &sides->worker[i], &request);
  }
}

static lp_status open_bundle(bundle_site *self, lp_diag *diag) {
  const lp_serve_bundle *config = self->config;
  const char *first = config->workers.count > 0 ? config->workers.texts[0] : NULL;
  lp_sides_options options = {
      .bundle = config->bundle, .cloud = first, .trust = config->trust, .threads = (int32_t)config->threads};
  LP_TRY(lp_sides_open(&options, &self->sides, diag));
  lp_loc loc = LP_LOC_FILE(config->bundle);
  if (lp_bundle_reads_source(self->sides.bundle))
    return lp_error(diag, loc, "the model has an encoder, which cannot be served; use 'llmpart run'");
  LP_TRY(lp_bundle_check_generates(self->sides.bundle, diag));
  if (!lp_bundle_tokenizer(self->sides.bundle))
    return lp_error(diag, loc, "the bundle has no tokenizer; compile it with --tokenizer=FILE");
  self->site.model = config->model ? config->model : lp_bundle_name(self->sides.bundle);
  watch_own_workers(self);
  if (first) LP_TRY(lp_remotes_open(self->sides.bundle, config, &self->remotes, diag));
  return open_engine(self, diag);
}

static void tell(lp_site_server *site, lp_site_state *out) {
  bundle_site *self = (bundle_site *)site;
  *out = (lp_site_state){.requests = atomic_load(&self->here), .generating = -1};
  lp_engine *engine = self->engine ? self->engine : self->own;
  if (engine) {
    lp_engine_load load = lp_engine_now(engine);
    out->generating = load.running;
    out->waiting = load.waiting;
    out->kv_bytes = load.kv_bytes;
    out->kept_bytes = load.kept_bytes;
    out->preempted = load.preempted;
    out->busy_s = load.busy_s;
  }
  if (self->remotes) lp_remotes_tell(self->remotes, out);
  size_t up = 0;
  for (size_t i = 0; i < out->workers; i++)
    up += out->worker[i].up;
  out->up = own_workers_are_up(self) && (out->workers == 0 || up > 0);
}

lp_status lp_site_bundle(const lp_serve_bundle *config, lp_route route, lp_site_server **out, lp_diag *diag) {
  bundle_site *self = lp_alloc(sizeof *self);
  *self =
      (bundle_site){.site = {.name = lp_route_name(route), .complete = complete, .tell = tell, .close = close_bundle},
                    .config = config};
  lp_turns_init(&self->turns, (int)config->parallel, (int)config->queue);
  lp_status status = open_bundle(self, diag);
  if (status == LP_OK)
    *out = &self->site;
  else
    close_bundle(&self->site);
  return status;
}
