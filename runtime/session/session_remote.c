/* Walks over a program when a worker has the cloud's side, and connects to that worker. */
#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/state.h"
#include "runtime/exec/trace.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"
#include "runtime/session/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double default_timeout_ms = 120000;

typedef struct {
  lp_session *session;
  lp_walk *walk;
  const lp_program *program;
  lp_executor *device;
  bool begun;     /* the worker has heard of this walk */
  double sent_ms; /* when the last message was sent to it */
  lp_diag *diag;
} remote_walk;

static lp_status broken(const remote_walk *remote, const char *why) {
  const int64_t *sym = remote->walk->sym;
  remote->session->lost = true;
  return lp_error(remote->diag, LP_LOC_NONE, "the cloud at %s was lost at position %" PRId64 ": %s",
                  remote->session->wire->address, sym[LP_SYM_P] + sym[LP_SYM_S], why);
}

static lp_trace_slice slice_of(const remote_walk *remote, const char *name, double begin_ms) {
  const int64_t *sym = remote->walk->sym;
  return (lp_trace_slice){
      .name = name, .begin_ms = begin_ms, .position = sym[LP_SYM_P], .tokens = sym[LP_SYM_S], .bytes = -1};
}

/* ---- to the worker ----------------------------------------------------------------------------------------------- */

static lp_status send_step(remote_walk *remote, int32_t step, const void *payload, size_t size) {
  Lp__Wire__Step body = LP__WIRE__STEP__INIT;
  body.session = remote->session->id;
  body.program = (uint32_t)remote->walk->program;
  body.step = step;
  body.n_symbols = (size_t)remote->session->bundle->manifest.symbol_count;
  body.symbols = remote->walk->sym;
  body.want_outputs = remote->walk->output != NULL;
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_STEP;
  message.step = &body;
  const char *why = "";
  lp_trace_slice slice = slice_of(remote, "rows", remote->sent_ms = lp_now_ms());
  if (!lp_wire_send(remote->session->wire, LP_ONLY_PEER, &message, payload, size, &why)) return broken(remote, why);
  slice.end_ms = lp_now_ms();
  slice.bytes = (int64_t)size;
  lp_trace_put(remote->session->options.trace, LP_LANE_UPLOAD, &slice);
  remote->begun = true;
  return LP_OK;
}

static lp_status send_tensor(remote_walk *remote, int32_t index, const lp_step *step) {
  lp_span span;
  LP_TRY(lp_executor_buffer(remote->device, step->buffer, &step->tensor, &span, remote->diag));
  return send_step(remote, index, span.data, span.size);
}

static lp_status send_state(remote_walk *remote, int32_t index, const lp_step *step) {
  size_t size = 0;
  if (!lp_states_rows_bytes(&remote->device->states, step->state, remote->walk->sym, &size))
    return lp_error(remote->diag, LP_LOC_NONE, "a KV cache is too large to move");
  lp_buf *rows = &remote->session->rows;
  lp_buf_reserve(rows, size);
  LP_TRY(lp_states_pack(&remote->device->states, step->state, remote->walk->sym, rows->data, remote->diag));
  return send_step(remote, index, rows->data, size);
}

double lp_session_timeout_ms(const lp_session *session) {
  double given = session->options.cloud_timeout_ms;
  return given > 0 ? given : default_timeout_ms;
}

/* ---- from the worker --------------------------------------------------------------------------------------------- */

static lp_status await_frame(remote_walk *remote, lp_inbound *in) {
  lp_session *session = remote->session;
  double limit = lp_session_timeout_ms(session);
  double until = lp_now_ms() + limit;
  const char *why = "";
  session->waits++;
  do {
    switch (lp_wire_receive(session->wire, limit, in, &why)) {
    case LP_RECV_FRAME:
      return LP_OK;
    case LP_RECV_GONE:
      return broken(remote, why);
    case LP_RECV_TIMEOUT:
      break;
    case LP_RECV_GARBAGE:
    case LP_RECV_STRAINED:
      return broken(remote, why);
    }
    limit = until - lp_now_ms();
  } while (limit > 0);
  return broken(remote, "no answer in time");
}

static int32_t step_of(const Lp__Wire__Message *message) {
  return message->kind_case == LP__WIRE__MESSAGE__KIND_RESULT ? message->result->step : message->tokens->step;
}

static double busy_ms_of(const Lp__Wire__Message *message) {
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_RESULT) return message->result->busy_ms;
  return message->kind_case == LP__WIRE__MESSAGE__KIND_TOKENS ? message->tokens->busy_ms : 0;
}

/* The cloud may have begun to compute before the device began to wait; only time that the device waited counts. */
static void note_wait(lp_session *session, double waited_ms, double busy_ms) {
  session->wait_ms += waited_ms;
  session->cloud_ms += busy_ms < waited_ms ? busy_ms : waited_ms;
}

static lp_cloud_times times_of(const Lp__Wire__Message *message) {
  const Lp__Wire__Times *times = NULL;
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_RESULT) times = message->result->times;
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_TOKENS) times = message->tokens->times;
  if (!times) return (lp_cloud_times){.asked_ms = NAN};
  return (lp_cloud_times){times->asked, times->began, times->sent};
}

static void trace_reply(const remote_walk *remote, const lp_inbound *in) {
  lp_cloud_times times = times_of(in->message);
  lp_trace_slice slice = slice_of(remote, "ask", remote->sent_ms);
  slice.end_ms = lp_now_ms();
  slice.bytes = (int64_t)in->payload_size;
  lp_trace_request(remote->session->options.trace, LP_LANE_LINK, &slice, &times);
}

/* Waits for the result of step `index` on the worker. After success the caller releases `in`. */
static lp_status await_kind(remote_walk *remote, int32_t index, Lp__Wire__Message__KindCase kind, lp_inbound *in) {
  if (!remote->begun) LP_TRY(send_step(remote, -1, NULL, 0));
  double begin = lp_now_ms();
  LP_TRY(await_frame(remote, in));
  const Lp__Wire__Message *message = in->message;
  note_wait(remote->session, lp_now_ms() - begin, busy_ms_of(message));
  trace_reply(remote, in);
  lp_status status;
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE) {
    status = lp_error(remote->diag, LP_LOC_NONE, "the cloud at %s failed at position %" PRId64 ": %s",
                      remote->session->wire->address, remote->walk->sym[LP_SYM_P] + remote->walk->sym[LP_SYM_S],
                      message->failure->text);
  } else {
    if (message->kind_case == kind && step_of(message) == index) return LP_OK;
    status = broken(remote, "it sent an unexpected answer");
  }
  lp_inbound_release(in);
  return status;
}

static lp_status take_state(remote_walk *remote, const lp_step *step, const lp_inbound *in) {
  size_t size = 0;
  lp_states *states = &remote->device->states;
  if (!lp_states_rows_bytes(states, step->state, remote->walk->sym, &size) || size != in->payload_size)
    return lp_error(remote->diag, LP_LOC_NONE, "KV rows of %zu bytes came; wanted %zu", in->payload_size, size);
  return lp_states_unpack(states, step->state, remote->walk->sym, in->payload, remote->diag);
}

static lp_status take_output(remote_walk *remote, const lp_step *step, const lp_inbound *in) {
  const lp_manifest *manifest = &remote->session->bundle->manifest;
  size_t size = 0;
  if (!lp_tensor_bytes(&step->tensor, remote->walk->sym, manifest->symbol_count, &size) || size != in->payload_size)
    return lp_error(remote->diag, LP_LOC_NONE, "output '%.80s' of %zu bytes came; wanted %zu", step->tensor.name,
                    in->payload_size, size);
  lp_span *out = &remote->walk->output[step->port];
  free(out->data);
  *out = (lp_span){.data = lp_alloc(in->payload_size + 1), .size = in->payload_size};
  if (in->payload_size > 0) memcpy(out->data, in->payload, in->payload_size);
  return LP_OK;
}

static lp_status take_result(remote_walk *remote, int32_t index, const lp_step *step) {
  lp_inbound in;
  LP_TRY(await_kind(remote, index, LP__WIRE__MESSAGE__KIND_RESULT, &in));
  lp_status status = LP_OK;
  if (step->kind == LP_STEP_MOVE)
    status = take_state(remote, step, &in);
  else if (step->kind == LP_STEP_OUTPUT)
    status = take_output(remote, step, &in);
  else
    status = lp_executor_fill(remote->device, step->to_buffer, step, in.payload, in.payload_size, remote->diag);
  lp_inbound_release(&in);
  return status;
}

static lp_status take_tokens(remote_walk *remote, int32_t index) {
  lp_inbound in;
  LP_TRY(await_kind(remote, index, LP__WIRE__MESSAGE__KIND_TOKENS, &in));
  const Lp__Wire__Tokens *tokens = in.message->tokens;
  size_t batch = (size_t)remote->walk->sym[LP_SYM_B];
  int32_t vocab = remote->session->bundle->manifest.vocab;
  bool good = tokens->n_token == batch && tokens->n_confidence == batch;
  for (size_t i = 0; good && i < batch; i++) {
    good = tokens->token[i] >= 0 && tokens->token[i] < vocab;
    remote->walk->sample[i] = (lp_sample){.token = tokens->token[i], .confidence = tokens->confidence[i]};
  }
  remote->walk->sampled_on = LP_SIDE_CLOUD;
  lp_inbound_release(&in);
  return good ? LP_OK : broken(remote, "its tokens are not in the model's vocabulary");
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static lp_status device_step(remote_walk *remote, int32_t index, const lp_step *step) {
  switch (step->kind) {
  case LP_STEP_INPUT:
    return lp_walk_fill(remote->walk, remote->device, step, remote->diag);
  case LP_STEP_RUN: {
    double begin = lp_now_ms();
    LP_TRY(lp_executor_run(remote->device, step, remote->diag));
    lp_walk_trace(remote->session, remote->walk, step, begin, lp_now_ms());
    return LP_OK;
  }
  case LP_STEP_SEND:
    return send_tensor(remote, index, step);
  case LP_STEP_MOVE:
    return send_state(remote, index, step);
  case LP_STEP_OUTPUT:
    return lp_walk_output(remote->session, remote->walk, remote->device, step, remote->diag);
  }
  return LP_OK;
}

/* Handles the device's part of a step of the cloud: sends its input or receives its result. */
static lp_status cloud_step(remote_walk *remote, int32_t index, const lp_step *step) {
  switch (step->kind) {
  case LP_STEP_INPUT: {
    lp_span input = remote->walk->input[step->port];
    return send_step(remote, index, input.data, input.size);
  }
  case LP_STEP_RUN:
    return LP_OK;
  case LP_STEP_SEND:
  case LP_STEP_MOVE:
    return take_result(remote, index, step);
  case LP_STEP_OUTPUT:
    if (!lp_walk_wants(remote->session, remote->walk, step)) return LP_OK;
    return remote->walk->output ? take_result(remote, index, step) : take_tokens(remote, index);
  }
  return LP_OK;
}

lp_status lp_session_walk_remote(lp_session *session, lp_walk *walk, lp_diag *diag) {
  remote_walk remote = {.session = session,
                        .walk = walk,
                        .program = &session->bundle->manifest.programs[walk->program],
                        .device = session->executor[LP_SIDE_DEVICE],
                        .diag = diag};
  if (remote.program->takes_part[LP_SIDE_DEVICE])
    LP_TRY(lp_executor_begin(remote.device, walk->program, walk->sym, diag));
  for (int32_t i = 0; i < remote.program->step_count; i++) {
    const lp_step *step = &remote.program->step[i];
    LP_TRY(step->side == LP_SIDE_DEVICE ? device_step(&remote, i, step) : cloud_step(&remote, i, step));
  }
  if (remote.program->takes_part[LP_SIDE_CLOUD] && !remote.begun) return send_step(&remote, -1, NULL, 0);
  return LP_OK;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

lp_status lp_session_connect(lp_session *session, lp_diag *diag) {
  if (!session->remote || session->wire) return LP_OK;
  LP_TRY(
      lp_wire_dial(&lp_transport_socket, &session->endpoint, session->endpoint.patience.dial_ms, &session->wire, diag));
  Lp__Wire__Open open = LP__WIRE__OPEN__INIT;
  open.session = session->id;
  open.temperature = session->options.sampling.temperature;
  open.top_k = session->options.sampling.top_k;
  open.top_p = session->options.sampling.top_p;
  open.seed = session->options.sampling.seed;
  open.times = session->options.trace != NULL;
  if (session->options.traceparent) open.traceparent = (char *)(uintptr_t)session->options.traceparent;
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_OPEN;
  message.open = &open;
  const char *why = "";
  if (lp_wire_send(session->wire, LP_ONLY_PEER, &message, NULL, 0, &why)) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "cannot reach the cloud at %s: %s", session->wire->address, why);
}

void lp_session_disconnect(lp_session *session) {
  if (!session->wire) return;
  Lp__Wire__Close close = LP__WIRE__CLOSE__INIT;
  close.session = session->id;
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_CLOSE;
  message.close = &close;
  const char *why = "";
  /* If sending fails, the end of the connection closes the worker's session too. */
  (void)lp_wire_send(session->wire, LP_ONLY_PEER, &message, NULL, 0, &why);
  session->bytes_up += session->wire->bytes_sent;
  session->bytes_down += session->wire->bytes_received;
  lp_wire_close(session->wire);
  session->wire = NULL;
}
