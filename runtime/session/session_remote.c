/* Walks over a program when workers have the sides of all places but the device. */
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

static const double default_timeout_ms = 120000;
/* The most tokens that a place draws ahead of the device, which says four times in a window what it has. A link of
 * 190 ms stalls a place that draws a token in 1 ms; half as many, one of 95 ms. After a device disappears, the place
 * draws no more than this for nobody. */
static const int64_t usual_window = 256;
/* What a place takes: tokens drawn ahead, and tokens that end a text. */
enum { MOST_WINDOW = 4096, MOST_ENDS = 256 };

typedef struct {
  lp_session *session;
  lp_walk *walk;
  const lp_program *program;
  lp_executor *device;
  uint64_t last[LP_PLACES_MAX]; /* the last run of each place before this one */
  double begun_ms;              /* when the walk began */
  double sent_ms;               /* when the last message was sent */
  bool streams;                 /* the walk asks for a stream, or continues one */
  lp_place streams_at;          /* the place that is still to be asked for it; LP_SIDE_DEVICE: none */
  lp_diag *diag;
} remote_walk;

static int64_t position_of(const remote_walk *remote) {
  return remote->walk->sym[LP_SYM_P] + remote->walk->sym[LP_SYM_S];
}

static lp_status broken(const remote_walk *remote, lp_place place, const char *why) {
  const lp_endpoint *endpoint = &remote->session->place[place].endpoint;
  remote->session->lost = true;
  return lp_error(remote->diag, LP_LOC_NONE, "%s at %s was lost at position %" PRId64 ": %s",
                  lp_endpoint_name(endpoint), endpoint->address, position_of(remote), why);
}

static lp_trace_slice slice_of(const remote_walk *remote, const char *name, double begin_ms) {
  const int64_t *sym = remote->walk->sym;
  return (lp_trace_slice){
      .name = name, .begin_ms = begin_ms, .position = sym[LP_SYM_P], .tokens = sym[LP_SYM_S], .bytes = -1};
}

/* ---- to a worker ------------------------------------------------------------------------------------------------- */

static int64_t window_of(const lp_session *session) {
  const int64_t wanted = session->options.ahead > 0 ? session->options.ahead : usual_window;
  return wanted < MOST_WINDOW ? wanted : MOST_WINDOW;
}

/* The draws that the walk asks for. Tokens that end a text follow it. */
static void describe_stream(const remote_walk *remote, Lp__Wire__Stream *out, int32_t *end) {
  const lp_bundle *bundle = remote->session->bundle;
  const lp_walk_stream *stream = remote->walk->stream;
  lp__wire__stream__init(out);
  out->program = (uint32_t)stream->program;
  out->most = stream->most;
  out->window = window_of(remote->session);
  out->given = (int32_t *)(uintptr_t)stream->given; /* protobuf-c only reads it */
  out->n_given = stream->given_count;
  out->end = end;
  for (int32_t i = 0; stream->ends && i < bundle->manifest.stop_count && out->n_end + 1 < MOST_ENDS; i++)
    end[out->n_end++] = bundle->manifest.stops[i];
  if (stream->ends && bundle->eos >= 0) end[out->n_end++] = bundle->eos;
}

/* Sends the payload of a step to the place that takes it; step -1 only begins the walk there. */
static lp_status send_step(remote_walk *remote, lp_place to, int32_t step, const void *payload, size_t size) {
  Lp__Wire__Step body = LP__WIRE__STEP__INIT;
  body.session = remote->session->id;
  body.program = (uint32_t)remote->walk->program;
  body.step = step;
  body.n_symbols = (size_t)remote->session->bundle->manifest.symbol_count;
  body.symbols = remote->walk->sym;
  body.want_outputs = remote->walk->output != NULL;
  if (remote->session->route != 0) {
    body.run = remote->session->run;
    body.n_last = (size_t)remote->session->bundle->manifest.place_count;
    body.last = remote->last;
  }
  Lp__Wire__Stream stream;
  int32_t end[MOST_ENDS];
  if (remote->streams_at == to) {
    describe_stream(remote, &stream, end);
    body.stream = &stream;
    remote->streams_at = LP_SIDE_DEVICE;
  }
  Lp__Wire__Message message = LP_WIRE_MESSAGE(STEP, .step = &body);
  const char *why = "";
  lp_trace_slice slice = slice_of(remote, "rows", remote->sent_ms = lp_now_ms());
  if (!lp_wire_send(remote->session->wire[to], LP_ONLY_PEER, &message, payload, size, &why))
    return broken(remote, to, why);
  slice.end_ms = lp_now_ms();
  slice.bytes = (int64_t)size;
  lp_trace_put(remote->session->options.trace, LP_LANE_UPLOAD, &slice);
  return LP_OK;
}

static lp_status send_tensor(remote_walk *remote, int32_t index, const lp_step *step) {
  lp_span span;
  LP_TRY(lp_executor_buffer(remote->device, step->buffer, &step->tensor, &span, remote->diag));
  return send_step(remote, step->to, index, span.data, span.size);
}

static lp_status send_state(remote_walk *remote, int32_t index, const lp_step *step) {
  size_t size = 0;
  if (!lp_states_rows_bytes(&remote->device->states, step->state, remote->walk->sym, &size))
    return lp_error(remote->diag, LP_LOC_NONE, "a KV cache is too large to move");
  lp_buf *rows = &remote->session->rows;
  lp_buf_reserve(rows, size);
  LP_TRY(lp_states_pack(&remote->device->states, step->state, remote->walk->sym, rows->data, remote->diag));
  return send_step(remote, step->to, index, rows->data, size);
}

double lp_session_timeout_ms(const lp_session *session) {
  double given = session->options.cloud_timeout_ms;
  return given > 0 ? given : default_timeout_ms;
}

/* ---- from a worker ----------------------------------------------------------------------------------------------- */

static lp_status failed(const remote_walk *remote, lp_place place, const Lp__Wire__Failure *failure) {
  const lp_endpoint *endpoint = &remote->session->place[place].endpoint;
  remote->session->lost |= failure->lost != 0;
  return lp_error(remote->diag, LP_LOC_NONE, "%s at %s failed at position %" PRId64 ": %s", lp_endpoint_name(endpoint),
                  endpoint->address, position_of(remote), failure->text);
}

/* Waits for a message of the place; any other place may fail meanwhile. */
static lp_status await_frame(remote_walk *remote, lp_place place, lp_inbound *in) {
  lp_session *session = remote->session;
  double limit = lp_session_timeout_ms(session);
  double until = lp_now_ms() + limit;
  const char *why = "";
  lp_place from = place;
  session->waits += session->stream.place == LP_SIDE_DEVICE;
  do {
    switch (lp_session_receive(session, place, limit, &from, in, &why)) {
    case LP_RECV_FRAME: {
      if (in->message->kind_case != LP__WIRE__MESSAGE__KIND_FAILURE) return LP_OK;
      lp_status status = failed(remote, from, in->message->failure);
      lp_inbound_release(in);
      return status;
    }
    case LP_RECV_TIMEOUT:
      break;
    case LP_RECV_GONE:
    case LP_RECV_GARBAGE:
    case LP_RECV_STRAINED:
      return broken(remote, from, why);
    }
    limit = until - lp_now_ms();
  } while (limit > 0);
  return broken(remote, place, "no answer in time");
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
  return (lp_cloud_times){.asked_ms = times->asked, .began_ms = times->began, .sent_ms = times->sent};
}

/* Another place may have asked the worker before the device sent its last message, but no place did before the walk. */
static void trace_reply(const remote_walk *remote, lp_place place, const lp_inbound *in) {
  lp_cloud_times times = times_of(in->message);
  const lp_session_stream *stream = &remote->session->stream;
  times.place = place;
  if (remote->session->route != 0) times.since_ms = remote->begun_ms;
  if (stream->place != LP_SIDE_DEVICE) times.since_ms = stream->since_ms;
  lp_trace_slice slice = slice_of(remote, stream->place != LP_SIDE_DEVICE ? "stream" : "ask", remote->sent_ms);
  slice.end_ms = lp_now_ms();
  slice.bytes = (int64_t)in->payload_size;
  lp_trace_request(remote->session->options.trace, LP_LANE_LINK, &slice, &times);
}

/* Waits for the result of step `index` at the place. After success the caller releases `in`. */
static lp_status await_kind(remote_walk *remote, lp_place place, int32_t index, Lp__Wire__Message__KindCase kind,
                            lp_inbound *in) {
  double begin = lp_now_ms();
  LP_TRY(await_frame(remote, place, in));
  const Lp__Wire__Message *message = in->message;
  note_wait(remote->session, lp_now_ms() - begin, busy_ms_of(message));
  trace_reply(remote, place, in);
  bool known =
      message->kind_case == LP__WIRE__MESSAGE__KIND_RESULT || message->kind_case == LP__WIRE__MESSAGE__KIND_TOKENS;
  if (known && message->kind_case == kind && step_of(message) == index) return LP_OK;
  lp_status status = broken(remote, place, "it sent an unexpected answer");
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
  LP_TRY(await_kind(remote, step->side, index, LP__WIRE__MESSAGE__KIND_RESULT, &in));
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

/* Notes a draw; false: it is not the one that is due. A place that knows no streams draws once. */
static bool note_draw(remote_walk *remote, lp_place place, int64_t draw) {
  lp_session *session = remote->session;
  lp_session_stream *stream = &session->stream;
  const lp_walk_stream *asked = remote->walk->stream;
  if (!remote->streams) return draw == 0;
  if (stream->place == LP_SIDE_DEVICE) {
    session->draws_singly = draw == 0;
    if (draw != 1) return draw == 0;
    *stream = (lp_session_stream){.place = place, .most = asked->most, .since_ms = remote->sent_ms};
    const lp_program *program = &session->bundle->manifest.programs[asked->program];
    while (program->step[stream->step].kind != LP_STEP_OUTPUT || program->step[stream->step].port != session->logits)
      stream->step++;
  }
  if (draw != ++stream->drawn) return false;
  stream->end = position_of(remote);
  if (stream->drawn == stream->most) *stream = (lp_session_stream){0};
  return true;
}

static lp_status tell_taken(remote_walk *remote) {
  lp_session *session = remote->session;
  lp_session_stream *stream = &session->stream;
  if (4 * (stream->drawn - stream->told) < window_of(session) || stream->place == LP_SIDE_DEVICE) return LP_OK;
  Lp__Wire__Taken taken = LP__WIRE__TAKEN__INIT;
  taken.session = session->id;
  taken.draws = stream->told = stream->drawn;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(TAKEN, .taken = &taken);
  const char *why = "";
  if (lp_wire_send(session->wire[stream->place], LP_ONLY_PEER, &message, NULL, 0, &why)) return LP_OK;
  return broken(remote, stream->place, why);
}

static lp_status take_tokens(remote_walk *remote, int32_t index, const lp_step *step) {
  lp_inbound in;
  LP_TRY(await_kind(remote, step->side, index, LP__WIRE__MESSAGE__KIND_TOKENS, &in));
  const Lp__Wire__Tokens *tokens = in.message->tokens;
  if (!note_draw(remote, step->side, tokens->draw)) {
    lp_inbound_release(&in);
    return broken(remote, step->side, "a token is missing, or came twice");
  }
  size_t batch = (size_t)remote->walk->sym[LP_SYM_B];
  int32_t vocab = remote->session->bundle->manifest.vocab;
  bool good = tokens->n_token == batch && tokens->n_confidence == batch;
  for (size_t i = 0; good && i < batch; i++) {
    good = tokens->token[i] >= 0 && tokens->token[i] < vocab;
    remote->walk->sample[i] = (lp_sample){.token = tokens->token[i], .confidence = tokens->confidence[i]};
  }
  remote->walk->sampled_on = step->side;
  lp_inbound_release(&in);
  return good ? tell_taken(remote) : broken(remote, step->side, "its tokens are not in the model's vocabulary");
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static bool draws_at(const lp_session *session, int32_t program, lp_place place) {
  const lp_program *of = &session->bundle->manifest.programs[program];
  for (int32_t i = 0; i < of->step_count; i++)
    if (of->step[i].kind == LP_STEP_OUTPUT && of->step[i].port == session->logits) return of->step[i].side == place;
  return false;
}

/* With a route, what other places send to this one may come before the device's message. */
lp_place lp_session_streams_at(const lp_session *session, int32_t program, int32_t decode) {
  const lp_manifest *manifest = &session->bundle->manifest;
  if (!session->remote || session->draws_singly || session->stream.place != LP_SIDE_DEVICE) return LP_SIDE_DEVICE;
  lp_place at = lp_manifest_streams(manifest, decode);
  bool good = session->route == 0 ? draws_at(session, program, at) : lp_manifest_streams(manifest, program) == at;
  return good ? at : LP_SIDE_DEVICE;
}

void lp_session_end_stream(lp_session *session, bool ended) {
  if (session->stream.place != LP_SIDE_DEVICE && !(ended && session->bundle->manifest.stop_count < MOST_ENDS))
    lp_session_disconnect(session);
  session->stream = (lp_session_stream){0};
}

/* The place makes the walk without being asked. */
static lp_status take_draw(remote_walk *remote) {
  const lp_session_stream *stream = &remote->session->stream;
  const lp_step *step = &remote->program->step[stream->step];
  remote->streams = true;
  remote->sent_ms = lp_now_ms();
  return take_tokens(remote, stream->step, step);
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
  case LP_STEP_GATHER: /* only the cloud's half is sharded */
    break;
  }
  return LP_OK;
}

/* Handles the device's part of a step of another place: sends its input or receives its result. */
static lp_status other_step(remote_walk *remote, int32_t index, const lp_step *step) {
  switch (step->kind) {
  case LP_STEP_INPUT: {
    lp_span input = remote->walk->input[step->port];
    return send_step(remote, step->side, index, input.data, input.size);
  }
  case LP_STEP_RUN:
  case LP_STEP_GATHER:
    return LP_OK;
  case LP_STEP_SEND:
  case LP_STEP_MOVE:
    return step->to == LP_SIDE_DEVICE ? take_result(remote, index, step) : LP_OK;
  case LP_STEP_OUTPUT:
    if (!lp_walk_wants(remote->session, remote->walk, step)) return LP_OK;
    return remote->walk->output ? take_result(remote, index, step) : take_tokens(remote, index, step);
  }
  return LP_OK;
}

/* Tells whether the place, which takes part, waits for a payload, which begins the walk there, before it does anything.
 */
static bool begins_with_payload(const lp_program *program, lp_place place) {
  const lp_step *step = program->step;
  while (step->side != place && step->to != place)
    step++;
  return step->side != place || step->kind == LP_STEP_INPUT;
}

/* Numbers the walk, and begins it at places that take no payload first. */
static lp_status begin(remote_walk *remote) {
  lp_session *session = remote->session;
  lp_place count = session->bundle->manifest.place_count;
  session->run++;
  remote->begun_ms = lp_now_ms();
  for (lp_place i = LP_SIDE_DEVICE + 1; i < count; i++) {
    remote->last[i] = session->place[i].run;
    if (remote->program->takes_part[i]) session->place[i].run = session->run;
  }
  for (lp_place i = LP_SIDE_DEVICE + 1; i < count; i++)
    if (remote->program->takes_part[i] && !begins_with_payload(remote->program, i))
      LP_TRY(send_step(remote, i, -1, NULL, 0));
  return LP_OK;
}

static lp_status walk_steps(remote_walk *remote) {
  LP_TRY(begin(remote));
  if (remote->program->takes_part[LP_SIDE_DEVICE])
    LP_TRY(lp_executor_begin(remote->device, remote->walk->program, remote->walk->sym, remote->diag));
  for (int32_t i = 0; i < remote->program->step_count; i++) {
    const lp_step *step = &remote->program->step[i];
    LP_TRY(step->side == LP_SIDE_DEVICE ? device_step(remote, i, step) : other_step(remote, i, step));
  }
  return LP_OK;
}

lp_status lp_session_walk_remote(lp_session *session, lp_walk *walk, lp_diag *diag) {
  remote_walk remote = {.session = session,
                        .walk = walk,
                        .program = &session->bundle->manifest.programs[walk->program],
                        .device = session->executor[LP_SIDE_DEVICE],
                        .diag = diag};
  if (session->stream.place != LP_SIDE_DEVICE && walk->sym[LP_SYM_P] == session->stream.end) return take_draw(&remote);
  LP_TRY(lp_session_connect(session, diag));
  if (walk->stream) remote.streams_at = lp_session_streams_at(session, walk->program, walk->stream->program);
  remote.streams = remote.streams_at != LP_SIDE_DEVICE;
  lp_status status = walk_steps(&remote);
  /* Some places may wait for the rest of the walk: the next one begins anew at all of them. */
  if (status != LP_OK && session->route != 0) lp_session_disconnect(session);
  return status;
}
