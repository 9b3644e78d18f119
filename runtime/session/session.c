/* Opens and closes sessions, and walks over a program when both sides are in this process. */

#include "runtime/session/session.h"
#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/state.h"
#include "runtime/exits/halves.h"
#include "runtime/link/link.h"
#include "runtime/link/security.h"
#include "runtime/runtime.h"
#include "runtime/session/walk.h"

/* ---- all sides in this process ----------------------------------------------------------------------------------- */

static lp_status copy_across(lp_executor *from, lp_executor *to, const lp_step *step, lp_diag *diag) {
  lp_span source;
  LP_TRY(lp_executor_buffer(from, step->buffer, &step->tensor, &source, diag));
  return lp_executor_fill(to, step->to_buffer, step, source.data, source.size, diag);
}

static lp_status walk_step(lp_session *session, lp_walk *walk, const lp_step *step, lp_diag *diag) {
  lp_executor *executor = session->executor[step->side];
  switch (step->kind) {
  case LP_STEP_INPUT:
    return lp_walk_fill(walk, executor, step, diag);
  case LP_STEP_RUN:
    return lp_executor_run(executor, step, diag);
  case LP_STEP_GATHER:
    return lp_executor_gather(executor, step, diag);
  case LP_STEP_SEND:
    return copy_across(executor, session->executor[step->to], step, diag);
  case LP_STEP_MOVE:
    return lp_states_copy(&executor->states, &session->executor[step->to]->states, step->state, walk->sym, diag);
  case LP_STEP_OUTPUT:
    return lp_walk_output(session, walk, executor, step, diag);
  }
  return LP_OK;
}

/* A part lasts until the next one begins, the last part until the step ends. Time before the first mark is not
 * attributed. */
static lp_status time_step(lp_session *session, lp_walk *walk, const lp_step *step, lp_diag *diag) {
  lp_stopwatch *watch = session->watch;
  watch->marks = 0;
  session->executor[step->side]->frame.clock = &watch->clock;
  double begin = lp_now_ms();
  lp_status status = walk_step(session, walk, step, diag);
  double end = lp_now_ms();
  session->executor[step->side]->frame.clock = NULL;
  if (status != LP_OK) return status;
  if (watch->marks != step->part_count)
    return lp_error(diag, LP_LOC_FILE(session->bundle->manifest.file), "'%s' marks %d parts; the manifest names %d",
                    step->segment, watch->marks, step->part_count);
  if (step->part_count == 0) watch->part_ms[watch->parts++] = end - begin;
  for (int32_t i = 0; i < step->part_count; i++)
    watch->part_ms[watch->parts++] = (i + 1 < step->part_count ? watch->mark[i + 1] : end) - watch->mark[i];
  return LP_OK;
}

static lp_status walk_here(lp_session *session, lp_walk *walk, lp_diag *diag) {
  const lp_program *program = &session->bundle->manifest.programs[walk->program];
  for (lp_place i = 0; i < session->bundle->manifest.place_count; i++)
    if (program->takes_part[i]) LP_TRY(lp_executor_begin(session->executor[i], walk->program, walk->sym, diag));
  for (int32_t i = 0; i < program->step_count; i++) {
    double begin = lp_now_ms();
    LP_TRY(session->watch ? time_step(session, walk, &program->step[i], diag)
                          : walk_step(session, walk, &program->step[i], diag));
    double now = lp_now_ms(), took = now - begin;
    lp_walk_trace(session, walk, &program->step[i], begin, now);
    if (program->step[i].side != LP_SIDE_DEVICE) session->wait_ms += took, session->cloud_ms += took;
  }
  return LP_OK;
}

lp_status lp_session_walk(lp_session *session, lp_walk *walk, lp_diag *diag) {
  return session->remote ? lp_session_walk_remote(session, walk, diag) : walk_here(session, walk, diag);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static lp_status require_side(const lp_bundle *bundle, lp_place side, lp_diag *diag) {
  if (!bundle->manifest.side[side].present || bundle->side[side].loaded) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(bundle->manifest.file), "the %s side is not loaded",
                  lp_bundle_place_name(bundle, side));
}

static bool takes_part(const lp_bundle *bundle, lp_place side) {
  for (int32_t i = 0; i < bundle->manifest.program_count; i++)
    if (bundle->manifest.programs[i].takes_part[side]) return true;
  return false;
}

/* A generation with early exits makes its own connections, so a session in such a mode connects only when it walks. */
static bool connects_at_once(const lp_session *session) {
  lp_halves halves;
  const char *why = "";
  return session->options.mode == LP_MODE_FULL || !lp_halves_find(session->bundle, &halves, &why);
}

static double or_default(double value, double usual) {
  return value > 0 ? value : usual;
}

static lp_patience patience_of(const lp_patience *given) {
  return (lp_patience){.dial_ms = or_default(given->dial_ms, 5000),
                       .pause_ms = or_default(given->pause_ms, 50),
                       .longest_pause_ms = or_default(given->longest_pause_ms, 2000),
                       .beat_ms = or_default(given->beat_ms, 1000),
                       .silence_ms = or_default(given->silence_ms, 5000),
                       .repeat_ms = or_default(given->repeat_ms, 2000)};
}

lp_status lp_worker_greet(const lp_bundle *bundle, const lp_place_address *worker, const lp_link_security *from,
                          double timeout_ms, lp_diag *diag) {
  const lp_patience usual = {0};
  lp_security security = {0};
  const lp_endpoint endpoint = {.address = worker->address,
                                .place = worker->place,
                                .bundle_hash = bundle->manifest.hash,
                                .patience = patience_of(&usual),
                                .security = &security};
  lp_wire *wire = NULL;
  lp_status status = lp_security_for(worker->address, from, &security, diag);
  if (status == LP_OK) status = lp_wire_dial(&lp_transport_socket, &endpoint, timeout_ms, &wire, diag);
  lp_wire_close(wire);
  lp_security_close(&security);
  return status;
}

static lp_status open_sides(lp_session *session, lp_diag *diag) {
  const lp_bundle *bundle = session->bundle;
  bool alone = session->options.mode == LP_MODE_STANDALONE;
  bool given = session->options.cloud || session->options.cloud_count > 0;
  session->remote = given && lp_bundle_is_split(bundle) && !alone;
  for (lp_place i = 0; i < bundle->manifest.place_count; i++) {
    if (!takes_part(bundle, i) || (i != LP_SIDE_DEVICE && (session->remote || alone))) continue;
    LP_TRY(require_side(bundle, i, diag));
    session->executor[i] = lp_executor_create(bundle, i, session->pool);
  }
  LP_TRY(lp_session_find_workers(session, diag));
  return connects_at_once(session) ? lp_session_reach(session, diag) : LP_OK;
}

lp_status lp_session_open(const lp_bundle *bundle, const lp_generate_options *options, lp_session **out,
                          lp_diag *diag) {
  lp_session *session = lp_alloc(sizeof *session);
  session->bundle = bundle;
  session->options = *options;
  session->id = 1;
  session->patience = patience_of(&options->patience);
  session->wires = (lp_wires){.wire = session->wire, .count = LP_PLACES_MAX, .epoll = -1};
  session->logits = lp_manifest_output(&bundle->manifest, LP_ROLE_LOGITS);
  session->pool = lp_pool_create(options->threads);
  lp_status status = open_sides(session, diag);
  if (status != LP_OK) {
    lp_session_close(session);
    session = NULL;
  }
  *out = session;
  return status;
}

void lp_session_close(lp_session *session) {
  if (!session) return;
  lp_session_disconnect(session);
  lp_session_forget_workers(session);
  for (lp_place i = 0; i < LP_PLACES_MAX; i++)
    lp_executor_free(session->executor[i]);
  lp_batch_free(session->batch);
  lp_pool_free(session->pool);
  lp_buf_free(&session->scratch);
  lp_buf_free(&session->rows);
  free(session);
}
