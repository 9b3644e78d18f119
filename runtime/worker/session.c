/* Sessions of devices: opening them, running the place's steps of a program, and replies. */
#include <math.h>

#include "base/clock.h"
#include "base/poly.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/sampler.h"
#include "runtime/exec/state.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"
#include "runtime/worker/budget.h"
#include "runtime/worker/figures.h"
#include "runtime/worker/forward.h"
#include "runtime/worker/held.h"
#include "runtime/worker/queue.h"
#include "runtime/worker/reply.h"
#include "runtime/worker/session.h"
#include "runtime/worker/stream.h"

/* Limits on the requests of a device; the memory available sets tighter ones. */
enum { MOST_BATCH = 1 << 16, MOST_TOKENS = 1 << 24 };

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

worker_session *worker_session_find(const lp_worker *worker, uint32_t peer, uint64_t id) {
  LP_FOR_VEC_REFS(worker_session, session, &worker->sessions)
    if (session->peer == peer && session->id == id) return session;
  return NULL;
}

worker_session *worker_session_routed(const lp_worker *worker, uint64_t route) {
  for (size_t i = 0; route != 0 && i < worker->sessions.count; i++)
    if (worker->sessions.data[i]->route == route) return worker->sessions.data[i];
  return NULL;
}

/* With two places, a device of an earlier version gives neither a route nor a place. */
static lp_status check_route(const lp_worker *worker, const worker_session *session, const Lp__Wire__Open *open,
                             lp_diag *diag) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  const worker_session *other = worker_session_routed(worker, open->route);
  if (manifest->place_count > LP_SIDE_COUNT && open->route == 0)
    return lp_error(diag, LP_LOC_NONE, "a session at %" PRId32 " places needs a route", manifest->place_count);
  if (open->route != 0 && !lp_streq(open->place, manifest->place_name[worker->place]))
    return lp_error(diag, LP_LOC_NONE, "this worker serves the place '%s', not '%.60s'",
                    manifest->place_name[worker->place], open->place);
  return other && other != session ? lp_error(diag, LP_LOC_NONE, "another session has this route") : LP_OK;
}

/* Tells whether the session has rows [0, rows) that another one may copy. */
static bool has_rows(const lp_worker *worker, const worker_session *session, int64_t rows) {
  const lp_executor *executor = session->executor;
  return !session->dropped && rows >= 1 && rows <= session->position && executor->states.batch <= 1 &&
         !executor->ranks && lp_states_have_rows(&worker->bundle->manifest, worker->place);
}

/* Begins with rows of another session, whose prompt begins alike. */
static lp_status begin_like(lp_worker *worker, worker_session *session, const Lp__Wire__Open *open, lp_diag *diag) {
  worker_session *other = worker_session_find(worker, session->peer, open->like);
  int64_t sym[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_P] = open->rows, [LP_SYM_C] = open->capacity};
  if (open->route != 0 || !other || other == session || !has_rows(worker, other, open->rows) ||
      open->capacity < open->rows || open->capacity > MOST_TOKENS)
    return lp_error(diag, LP_LOC_NONE, "session %" PRIu64 " has no %" PRId64 " rows for another one", open->like,
                    open->rows);
  sym[LP_SYM_C] = lp_states_whole_pages(&session->executor->states, sym);
  LP_TRY(worker_admit_run(worker, session, sym, 0, diag));
  other->used_ms = lp_now_ms(); /* room is made of others first */
  LP_TRY(worker_make_session_room(worker, session, sym, NULL, diag));
  if (other->dropped) return lp_error(diag, LP_LOC_NONE, "there is no room for rows of two sessions");
  LP_TRY(lp_states_reserve(&session->executor->states, sym, diag));
  LP_TRY(lp_states_copy_rows(&other->executor->states, &session->executor->states, open->rows, diag));
  session->position = open->rows;
  session->dropped = false;
  session->keeps = true;
  return LP_OK;
}

/* The budget counts the pages of a session that yields. */
static void set_paged(worker_session *session) {
  lp_states *states = &session->executor->states;
  bool paged = session->yields && !states->gpu;
  if (states->paged != paged && states->region) lp_executor_forget(session->executor);
  states->paged = paged;
}

lp_status worker_session_open(lp_worker *worker, uint32_t peer, const Lp__Wire__Open *open, lp_diag *diag) {
  worker_session *session = worker_session_find(worker, peer, open->session);
  LP_TRY(check_route(worker, session, open, diag));
  if (!session) {
    LP_TRY(worker_admit(worker, diag));
    LP_TRY(worker_admit_peer(worker, peer, diag));
    session = lp_alloc(sizeof *session);
    session->executor = lp_executor_create(worker->bundle, worker->place, worker->pool);
    lp_vec_push(&worker->sessions, session);
  }
  worker_note_opened(worker, WORKER_OF_SESSION);
  session->peer = peer;
  session->id = open->session;
  session->number = ++worker->opened;
  session->yields = open->yields && open->route == 0;
  set_paged(session);
  worker_forward_begin(session, open->route);
  session->sampling =
      (lp_sampling){.temperature = open->temperature, .top_k = open->top_k, .top_p = open->top_p, .seed = open->seed};
  session->times = open->times != 0;
  (void)snprintf(session->traceparent, sizeof session->traceparent, "%s", open->traceparent);
  session->opened_ms = lp_now_ms();
  session->run_ms = session->answered_ms = NAN;
  session->spent_ms = 0;
  session->replies = 0;
  session->next = -1;
  worker_queue_drop(session);
  worker_stream_end(session);
  session->position = 0;
  session->used_ms = lp_now_ms();
  return open->like != 0 ? begin_like(worker, session, open, diag) : LP_OK;
}

double worker_session_drop_idle(lp_worker *worker) {
  double idle = worker->options->idle_ms, now = lp_now_ms(), next = INFINITY;
  if (idle <= 0) return next;
  LP_FOR_VEC_REFS(worker_session, session, &worker->sessions) {
    if (session->dropped || session->queued.waits) continue;
    if (now - session->used_ms < idle) {
      next = fmin(next, session->used_ms + idle);
      continue;
    }
    worker_note_dropped(worker, WORKER_OF_SESSION, true);
    worker_session_drop(session);
  }
  return next;
}

/* ---- replies ----------------------------------------------------------------------------------------------------- */

static lp_status post(lp_worker *worker, const worker_session *session, const Lp__Wire__Message *message,
                      const void *payload, size_t size, lp_diag *diag) {
  const char *why = "";
  if (lp_wire_send(worker->wire, session->peer, message, payload, size, &why)) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "the device cannot be reached: %s", why);
}

/* Fills `times` and sets *out to it if replies carry times. `began_ms`: when the computation of this reply began. */
static void take_times(const worker_session *session, double began_ms, Lp__Wire__Times *times, Lp__Wire__Times **out) {
  lp__wire__times__init(times);
  times->sent = lp_now_ms();
  times->asked = times->began = began_ms;
  if (session->queued.waits) times->asked = session->queued.asked_ms;
  if (session->times) *out = times;
}

/* Notes the first answer to a run: to one at position 0, or to one that continues it by a token. */
static void note_answer(const lp_worker *worker, worker_session *session, double busy_ms) {
  bool first = session->sym[LP_SYM_P] == 0;
  if (isnan(session->run_ms)) return; /* it has another output */
  if (!session->queued.waits)         /* no pass has taken it: it ran by itself */
    worker_note_pass(worker, session->sym[LP_SYM_B] * session->sym[LP_SYM_S], busy_ms);
  if (first || session->sym[LP_SYM_S] == 1)
    worker_note_answer(worker, WORKER_OF_SESSION, first, first ? session->run_ms : session->answered_ms);
  session->run_ms = NAN;
  session->answered_ms = lp_now_ms();
}

/* The time since the last reply, or since the run began, and that of other places since the device's last message. */
static double take_busy_ms(const lp_worker *worker, worker_session *session) {
  double from = session->busy_from, carried = session->carried_ms;
  session->busy_from = lp_now_ms();
  session->spent_ms += session->busy_from - from;
  note_answer(worker, session, session->busy_from - from);
  session->replies++;
  session->carried_ms = 0;
  return session->busy_from - from + carried;
}

static const lp_program *program_of(const lp_worker *worker, const worker_session *session) {
  return &worker->bundle->manifest.programs[session->program];
}

/* Sends the result of a step to the device, or to the place that the step names. */
static lp_status post_result(lp_worker *worker, worker_session *session, int32_t step, const void *payload, size_t size,
                             lp_diag *diag) {
  const lp_step *of = &program_of(worker, session)->step[step];
  if (of->kind != LP_STEP_OUTPUT && of->to != LP_SIDE_DEVICE) {
    worker_forward(worker, session, step, payload, size, take_busy_ms(worker, session));
    return LP_OK;
  }
  Lp__Wire__Result result = LP__WIRE__RESULT__INIT;
  result.session = session->id;
  result.step = step;
  const double began_ms = session->busy_from;
  result.busy_ms = take_busy_ms(worker, session);
  Lp__Wire__Times times;
  take_times(session, began_ms, &times, &result.times);
  Lp__Wire__Message message = LP_WIRE_MESSAGE(RESULT, .result = &result);
  return post(worker, session, &message, payload, size, diag);
}

static lp_status post_state(lp_worker *worker, worker_session *session, int32_t index, const lp_step *step,
                            lp_diag *diag) {
  const lp_states *states = &session->executor->states;
  const int64_t *sym = session->executor->sym;
  size_t size = 0;
  if (!lp_states_rows_bytes(states, step->state, sym, &size))
    return lp_error(diag, LP_LOC_NONE, "a KV cache is too large to move");
  lp_buf_reserve(&worker->rows, size);
  LP_TRY(lp_states_pack(states, step->state, sym, worker->rows.data, diag));
  return post_result(worker, session, index, worker->rows.data, size, diag);
}

static lp_sample *room_for_samples(lp_worker *worker, size_t batch) {
  if (batch > worker->sample_count) {
    worker->sample = lp_realloc(worker->sample, batch * sizeof *worker->sample);
    worker->sample_count = batch;
  }
  return worker->sample;
}

static lp_status post_tokens(lp_worker *worker, worker_session *session, int32_t index, const lp_sample *sample,
                             size_t batch, lp_diag *diag) {
  Lp__Wire__Tokens tokens = LP__WIRE__TOKENS__INIT;
  tokens.session = session->id;
  tokens.step = index;
  const double began_ms = session->busy_from;
  tokens.busy_ms = take_busy_ms(worker, session);
  Lp__Wire__Times times;
  take_times(session, began_ms, &times, &tokens.times);
  tokens.draw = worker_stream_note(session, sample, batch);
  tokens.n_token = tokens.n_confidence = batch;
  tokens.token = lp_alloc(batch * sizeof *tokens.token);
  tokens.confidence = lp_alloc(batch * sizeof *tokens.confidence);
  for (size_t i = 0; i < batch; i++) {
    tokens.token[i] = sample[i].token;
    tokens.confidence[i] = sample[i].confidence;
  }
  Lp__Wire__Message message = LP_WIRE_MESSAGE(TOKENS, .tokens = &tokens);
  lp_status status = post(worker, session, &message, NULL, 0, diag);
  free(tokens.token);
  free(tokens.confidence);
  return status;
}

/* ---- the run through a program ----------------------------------------------------------------------------------- */

bool worker_session_draws(const lp_worker *worker, const worker_session *session, const lp_step *step) {
  return step->kind == LP_STEP_OUTPUT && !session->want_outputs &&
         step->port == lp_manifest_output(&worker->bundle->manifest, LP_ROLE_LOGITS);
}

bool worker_session_sends(const worker_session *session, const lp_step *step) {
  return step->kind != LP_STEP_OUTPUT || session->want_outputs;
}

static bool is_whole(const worker_session *session, const lp_batch_member *part) {
  return session->queued.done == 0 && worker_queue_ends(session, part);
}

lp_status worker_session_emit(lp_worker *worker, worker_session *session, int32_t index, const lp_batch_member *part,
                              const lp_span *made, lp_diag *diag) {
  if (is_whole(session, part)) return post_result(worker, session, index, made->data, made->size, diag);
  lp_buf *all = worker_queue_result(worker, session, index);
  if (made->size > 0) lp_buf_append(all, made->data, made->size);
  return worker_queue_ends(session, part) ? post_result(worker, session, index, all->data, all->size, diag) : LP_OK;
}

lp_status worker_session_draw(lp_worker *worker, worker_session *session, int32_t index, const lp_batch_member *part,
                              const lp_logits *logits, lp_diag *diag) {
  size_t batch = (size_t)part->sym[LP_SYM_B];
  lp_sample *sample = room_for_samples(worker, batch);
  lp_logits_sample(logits, part->sym, part->first, &session->sampling, sample, &worker->scratch);
  if (is_whole(session, part)) return post_tokens(worker, session, index, sample, batch, diag);
  lp_buf *all = worker_queue_result(worker, session, index);
  lp_buf_append(all, (const char *)sample, batch * sizeof *sample);
  if (!worker_queue_ends(session, part)) return LP_OK;
  const void *samples = all->data;
  return post_tokens(worker, session, index, samples, all->size / sizeof *sample, diag);
}

static lp_status emit_own(lp_worker *worker, worker_session *session, int32_t index, lp_diag *diag) {
  const lp_step *step = &program_of(worker, session)->step[index];
  lp_span span;
  if (worker_session_draws(worker, session, step)) {
    size_t batch = (size_t)session->executor->sym[LP_SYM_B];
    LP_TRY(lp_executor_sample(session->executor, step, &session->sampling, room_for_samples(worker, batch),
                              &worker->scratch, diag));
    return post_tokens(worker, session, index, worker->sample, batch, diag);
  }
  if (!worker_session_sends(session, step)) return LP_OK;
  LP_TRY(lp_executor_buffer(session->executor, step->buffer, &step->tensor, &span, diag));
  return post_result(worker, session, index, span.data, span.size, diag);
}

void worker_session_fail(lp_worker *worker, worker_session *session, const lp_diag *diag) {
  if (session->dropped && !session->yields)
    worker_tell_lost(worker, session->peer, session->id, "the context was dropped: idle, or over the budget");
  else
    worker_refuse_session(worker, session, diag);
  session->next = -1;
  session->broken = session->route != 0;
  worker_queue_drop(session);
  worker_stream_end(session);
}

static lp_status do_step(lp_worker *worker, worker_session *session, int32_t index, lp_diag *diag) {
  const lp_step *step = &program_of(worker, session)->step[index];
  if (step->side != worker->place) return LP_OK;
  switch (step->kind) {
  case LP_STEP_INPUT:
    return LP_OK; /* take_payload has done it */
  case LP_STEP_RUN:
    return lp_executor_run(session->executor, step, diag);
  case LP_STEP_GATHER:
    return lp_executor_gather(session->executor, step, diag);
  case LP_STEP_SEND:
  case LP_STEP_OUTPUT:
    return emit_own(worker, session, index, diag);
  case LP_STEP_MOVE:
    return post_state(worker, session, index, step, diag);
  }
  return LP_OK;
}

/* Runs from step `from` to the next that takes a payload, or to the end of the program. */
static lp_status advance(lp_worker *worker, worker_session *session, int32_t from, lp_diag *diag) {
  const lp_program *program = program_of(worker, session);
  for (int32_t i = from; i < program->step_count; i++) {
    session->next = i;
    if (worker_step_takes_payload(worker, &program->step[i])) return LP_OK;
    LP_TRY(do_step(worker, session, i, diag));
  }
  session->next = -1;
  const int64_t *sym = session->executor->sym;
  session->position = sym[LP_SYM_P] + sym[LP_SYM_S];
  return LP_OK;
}

lp_status worker_session_check(const lp_worker *worker, const Lp__Wire__Step *step, lp_diag *diag) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  if (step->program >= (uint32_t)manifest->program_count || step->n_symbols != (size_t)manifest->symbol_count)
    return lp_error(diag, LP_LOC_NONE, "no such program, or not its symbols");
  const int64_t *sym = step->symbols;
  for (size_t i = 0; i < step->n_symbols; i++)
    if (sym[i] < 0 || sym[i] > MOST_TOKENS)
      return lp_error(diag, LP_LOC_NONE, "size '%s' = %" PRId64 " is out of range",
                      lp_symbols_name(&manifest->symbols, (lp_symbol)(i + 1)), sym[i]);
  int64_t end = sym[LP_SYM_P] + sym[LP_SYM_S];
  bool good = sym[LP_SYM_B] >= 1 && sym[LP_SYM_B] <= MOST_BATCH && sym[LP_SYM_S] >= 1 && sym[LP_SYM_R] >= 1 &&
              sym[LP_SYM_R] <= sym[LP_SYM_S] && (sym[LP_SYM_C] >= end || manifest->state_count == 0) &&
              (manifest->context_length == 0 || end <= manifest->context_length);
  if (good) return LP_OK;
  return lp_error(diag, LP_LOC_NONE,
                  "sizes b = %" PRId64 ", s = %" PRId64 ", p = %" PRId64 ", r = %" PRId64 ", c = %" PRId64
                  " do not go together or exceed the context of %" PRId64,
                  sym[LP_SYM_B], sym[LP_SYM_S], sym[LP_SYM_P], sym[LP_SYM_R], sym[LP_SYM_C], manifest->context_length);
}

/* Tells whether the prefill before this decode runs nothing here. */
static bool begins_without(const lp_manifest *manifest, lp_place place, int32_t decode) {
  for (int32_t i = 0; i < manifest->plan_count; i++)
    if (manifest->plans[i].decode == decode && !manifest->programs[manifest->plans[i].prefill].takes_part[place])
      return true;
  return manifest->plan_count == 0;
}

/* A run must begin where the KV cache ends. The worker cannot check this after a prefill that runs nothing here. */
static lp_status check_position(const lp_worker *worker, const worker_session *session, const Lp__Wire__Step *step,
                                lp_diag *diag) {
  int64_t past = step->symbols[LP_SYM_P];
  if (past == 0) return LP_OK;
  if (session->dropped)
    return lp_error(diag, LP_LOC_NONE, "the context of session %" PRIu64 " was dropped: idle, or over the budget",
                    session->id);
  if (past == session->position || begins_without(&worker->bundle->manifest, worker->place, (int32_t)step->program))
    return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "position %" PRId64 " asked for; the context ends at %" PRId64, past,
                  session->position);
}

static lp_status check_quotas(lp_worker *worker, worker_session *session, const lp_program *program, const int64_t *sym,
                              lp_diag *diag) {
  size_t payload = 0, more = 0;
  bool known = true;
  for (int32_t i = 0; known && i < program->step_count; i++)
    if (worker_step_takes_payload(worker, &program->step[i]) && program->step[i].kind != LP_STEP_MOVE)
      known = lp_tensor_bytes(&program->step[i].tensor, sym, worker->bundle->manifest.symbol_count, &more) &&
              lp_size_add(payload, more, &payload);
  if (!known) return lp_error(diag, LP_LOC_NONE, "the KV cache or the payload asked for is too large");
  return worker_admit_run(worker, session, sym, payload, diag);
}

/* What is given counts as a message that waits for its turn. */
static lp_status begin_stream(lp_worker *worker, worker_session *session, const Lp__Wire__Step *step, lp_diag *diag) {
  LP_TRY(worker_admit_letter(worker, session, step->stream->n_given * sizeof *step->stream->given, diag));
  return worker_stream_begin(worker, session, step, diag);
}

static lp_status begin(lp_worker *worker, worker_session *session, const Lp__Wire__Step *step, lp_diag *diag) {
  LP_TRY(worker_session_check(worker, step, diag));
  LP_TRY(check_position(worker, session, step, diag));
  const lp_manifest *manifest = &worker->bundle->manifest;
  if (!manifest->programs[step->program].takes_part[worker->place])
    return lp_error(diag, LP_LOC_NONE, "the %s has no part in program '%s'", manifest->place_name[worker->place],
                    manifest->programs[step->program].name);
  session->dropped = session->keeps = false;
  int64_t sym[LP_MAX_SYMBOLS] = {0};
  memcpy(sym, step->symbols, step->n_symbols * sizeof *sym);
  sym[LP_SYM_C] = lp_states_whole_pages(&session->executor->states, sym);
  LP_TRY(check_quotas(worker, session, &manifest->programs[step->program], sym, diag));
  if (step->stream) LP_TRY(begin_stream(worker, session, step, diag));
  session->program = (int32_t)step->program;
  session->want_outputs = step->want_outputs != 0;
  session->run_ms = session->used_ms;
  memcpy(session->sym, step->symbols, step->n_symbols * sizeof *session->sym);
  if (step->symbols[LP_SYM_P] == 0) session->position = 0; /* even if this run fails */
  if (worker_queue_fits(worker, session->program)) {
    worker_queue_begin(worker, session, sym);
    return LP_OK;
  }
  LP_TRY(worker_make_session_room(worker, session, sym, NULL, diag));
  LP_TRY(lp_executor_begin(session->executor, session->program, sym, diag));
  return advance(worker, session, 0, diag);
}

static lp_status take_payload(worker_session *session, const lp_step *step, const lp_inbound *in, lp_diag *diag) {
  if (step->kind != LP_STEP_MOVE) {
    int32_t buffer = step->kind == LP_STEP_INPUT ? step->buffer : step->to_buffer;
    return lp_executor_fill(session->executor, buffer, step, in->payload, in->payload_size, diag);
  }
  const int64_t *sym = session->executor->sym;
  size_t size = 0;
  if (!lp_states_rows_bytes(&session->executor->states, step->state, sym, &size) || size != in->payload_size)
    return lp_error(diag, LP_LOC_NONE, "KV rows of %zu bytes came; wanted %zu", in->payload_size, size);
  return lp_states_unpack(&session->executor->states, step->state, sym, in->payload, diag);
}

static lp_status step_or_fail(lp_worker *worker, worker_session *session, const Lp__Wire__Step *step,
                              const lp_inbound *in, lp_diag *diag) {
  if (session->queued.waits)
    return lp_error(diag, LP_LOC_NONE, "a step came before the answer to the one that is under way");
  if (session->next < 0) LP_TRY(begin(worker, session, step, diag));
  if (step->step < 0) return LP_OK;
  if (session->next != step->step)
    return lp_error(diag, LP_LOC_NONE, "a payload for step %" PRId32 " came; step %" PRId32 " is waited for",
                    step->step, session->next);
  const lp_step *at = &program_of(worker, session)->step[step->step];
  if (session->queued.gathers) return worker_queue_take(worker, session, at, in, diag);
  LP_TRY(take_payload(session, at, in, diag));
  return advance(worker, session, step->step + 1, diag);
}

lp_status worker_session_step(lp_worker *worker, worker_session *session, const Lp__Wire__Step *step,
                              const lp_inbound *in, lp_diag *diag) {
  session->used_ms = session->busy_from = lp_now_ms();
  lp_status status = step_or_fail(worker, session, step, in, diag);
  if (status != LP_OK) {
    session->next = -1;
    worker_queue_drop(session);
    worker_stream_end(session);
  }
  session->used_ms = lp_now_ms();
  return status;
}
