/* A session of the device: opening, closing, and the walk over a program when both sides run in this process. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/state.h"
#include "runtime/exec/trace.h"
#include "runtime/exits/halves.h"
#include "runtime/link/link.h"
#include "runtime/link/link_emulator.h"
#include "runtime/link/link_security.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"

/* ---- steps that are alike whether the other side is here or not -------------------------------------------------- */

lp_status lp_walk_fill(lp_walk *walk, lp_executor *executor, const lp_step *step, lp_diag *diag) {
  lp_span input = walk->input[step->port];
  return lp_executor_fill(executor, step->buffer, step, input.data, input.size, diag);
}

/* A program may give several outputs (early exits); tokens come from the first logits. */
bool lp_walk_wants(const lp_session *session, const lp_walk *walk, const lp_step *step) {
  if (walk->output) return true;
  return step->port == session->logits;
}

static void keep_logits(lp_walk *walk, const lp_executor *executor, const lp_span *span) {
  size_t rows = (size_t)executor->sym[LP_SYM_R];
  size_t row = (size_t)executor->bundle->manifest.vocab * sizeof(float);
  lp_buf_clear(walk->logits);
  lp_buf_append(walk->logits, (const char *)span->data + (rows - 1) * row, row);
}

lp_status lp_walk_output(lp_session *session, lp_walk *walk, lp_executor *executor, const lp_step *step,
                         lp_diag *diag) {
  if (!lp_walk_wants(session, walk, step)) return LP_OK;
  if (walk->output) {
    lp_span span;
    LP_TRY(lp_executor_buffer(executor, step->buffer, &step->tensor, &span, diag));
    lp_span *out = &walk->output[step->port];
    free(out->data);
    *out = (lp_span){.data = lp_alloc(span.size + 1), .size = span.size};
    if (span.size > 0) memcpy(out->data, span.data, span.size);
    return LP_OK;
  }
  LP_TRY(lp_executor_sample(executor, step, &session->options.sampling, walk->sample, &session->scratch, diag));
  walk->sampled_on = executor->side;
  if (!walk->logits) return LP_OK;
  lp_span span;
  LP_TRY(lp_executor_buffer(executor, step->buffer, &step->tensor, &span, diag));
  keep_logits(walk, executor, &span);
  return LP_OK;
}

/* ---- both sides in this process ---------------------------------------------------------------------------------- */

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
  case LP_STEP_SEND:
    return copy_across(executor, session->executor[step->to], step, diag);
  case LP_STEP_MOVE:
    return lp_states_copy(&executor->states, &session->executor[step->to]->states, step->state, walk->sym, diag);
  case LP_STEP_OUTPUT:
    return lp_walk_output(session, walk, executor, step, diag);
  }
  return LP_OK;
}

/* A part lasts until the next begins, the last until the step ends. What comes before the first is nobody's. */
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

void lp_walk_trace(const lp_session *session, const lp_walk *walk, const lp_step *step, double begin_ms,
                   double end_ms) {
  if (!session->options.trace || step->kind != LP_STEP_RUN) return;
  lp_trace_span span = {.name = walk->sym[LP_SYM_P] == 0 ? "prefill" : "pass",
                        .begin_ms = begin_ms,
                        .end_ms = end_ms,
                        .position = walk->sym[LP_SYM_P],
                        .tokens = walk->sym[LP_SYM_S],
                        .bytes = -1};
  lp_trace_put(session->options.trace, step->side == LP_SIDE_CLOUD ? LP_LANE_CLOUD : LP_LANE_DEVICE, &span);
}

static lp_status walk_here(lp_session *session, lp_walk *walk, lp_diag *diag) {
  const lp_program *program = &session->bundle->manifest.programs[walk->program];
  for (int i = 0; i < LP_SIDE_COUNT; i++)
    if (program->takes_part[i]) LP_TRY(lp_executor_begin(session->executor[i], walk->program, walk->sym, diag));
  for (int32_t i = 0; i < program->step_count; i++) {
    double begin = lp_now_ms();
    LP_TRY(session->watch ? time_step(session, walk, &program->step[i], diag)
                          : walk_step(session, walk, &program->step[i], diag));
    double now = lp_now_ms(), took = now - begin;
    lp_walk_trace(session, walk, &program->step[i], begin, now);
    if (program->step[i].side == LP_SIDE_CLOUD) session->wait_ms += took, session->cloud_ms += took;
  }
  return LP_OK;
}

lp_status lp_session_walk(lp_session *session, lp_walk *walk, lp_diag *diag) {
  return session->link ? lp_session_walk_remote(session, walk, diag) : walk_here(session, walk, diag);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static lp_status require_side(const lp_bundle *bundle, lp_side side, lp_diag *diag) {
  if (!bundle->manifest.side[side].present || bundle->side[side].loaded) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(bundle->manifest.file), "the %s side is not loaded", lp_side_name(side));
}

static bool takes_part(const lp_bundle *bundle, lp_side side) {
  for (int32_t i = 0; i < bundle->manifest.program_count; i++)
    if (bundle->manifest.programs[i].takes_part[side]) return true;
  return false;
}

/* Generations with exits make connections of their own; until another needs it there is none. */
static bool connects_at_once(const lp_session *session) {
  lp_halves halves;
  const char *why = "";
  return session->options.mode == LP_MODE_FULL || !lp_halves_find(session->bundle, &halves, &why);
}

static double or_default(double value, double usual) {
  return value > 0 ? value : usual;
}

static lp_status find_worker(lp_session *session, lp_diag *diag) {
  const lp_generate_options *options = &session->options;
  session->endpoint =
      (lp_endpoint){.address = options->cloud,
                    .bundle_hash = session->bundle->manifest.hash,
                    .patience = {.dial_ms = or_default(options->patience.dial_ms, 5000),
                                 .pause_ms = or_default(options->patience.pause_ms, 50),
                                 .longest_pause_ms = or_default(options->patience.longest_pause_ms, 2000),
                                 .beat_ms = or_default(options->patience.beat_ms, 1000),
                                 .silence_ms = or_default(options->patience.silence_ms, 5000),
                                 .repeat_ms = or_default(options->patience.repeat_ms, 2000)}};
  session->endpoint.security = session->security = lp_alloc(sizeof *session->security);
  if (!session->remote) return LP_OK;
  char *host = NULL;
  int port = 0;
  LP_TRY(lp_address_split(options->cloud, &host, &port, diag));
  bool loopback = lp_address_is_loopback(host);
  free(host);
  LP_TRY(lp_security_open(&options->security, LP_SIDE_DEVICE, loopback, session->security, diag));
  if (!options->link) return LP_OK;
  LP_TRY(lp_link_emulator_start(options->cloud, options->link, &session->emulator, diag));
  session->endpoint.via = lp_link_emulator_address(session->emulator);
  return LP_OK;
}

static lp_status open_sides(lp_session *session, lp_diag *diag) {
  const lp_bundle *bundle = session->bundle;
  bool alone = session->options.mode == LP_MODE_STANDALONE;
  session->remote = session->options.cloud && takes_part(bundle, LP_SIDE_CLOUD) && !alone;
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    if (!takes_part(bundle, (lp_side)i) || (i == LP_SIDE_CLOUD && (session->remote || alone))) continue;
    LP_TRY(require_side(bundle, (lp_side)i, diag));
    session->executor[i] = lp_executor_create(bundle, (lp_side)i, session->pool);
  }
  LP_TRY(find_worker(session, diag));
  return connects_at_once(session) ? lp_session_connect(session, diag) : LP_OK;
}

lp_status lp_session_open(const lp_bundle *bundle, const lp_generate_options *options, lp_session **out,
                          lp_diag *diag) {
  lp_session *session = lp_alloc(sizeof *session);
  session->bundle = bundle;
  session->options = *options;
  session->id = 1;
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
  lp_link_emulator_stop(session->emulator);
  if (session->security) lp_security_close(session->security);
  free(session->security);
  for (int i = 0; i < LP_SIDE_COUNT; i++)
    lp_executor_free(session->executor[i]);
  lp_pool_free(session->pool);
  lp_buf_free(&session->scratch);
  lp_buf_free(&session->rows);
  free(session);
}
