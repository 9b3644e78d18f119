/* The device's end of its context in the cloud: in this process, or at a worker, over one connection for rows (uploader.c)
 * and one for questions. */
#include "runtime/exits/cloud_end.h"
#include "base/clock.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exec/trace.h"
#include "runtime/exits/codec.h"
#include "runtime/exits/context.h"
#include "runtime/exits/halves.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double flush_ms = 30000;

struct lp_cloud_end {
  const lp_halves *halves;
  lp_uploader_options options;
  lp_context_time time;
  lp_context *here;      /* in this process; else */
  lp_uploader *uploader; /* the rows' connection */
  lp_wire *wire;         /* the questions' connection; NULL: lost */
  uint64_t number;       /* of the last question */
  double asked_ms;       /* it was first sent; 0: not yet */
  lp_cloud_times times;  /* of its answer */
  uint64_t bytes_up, bytes_down, row_bytes;
  uint8_t *row;
};

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static lp_codec choose_codec(const lp_generate_options *options) {
  if (options->codec != LP_CODEC_AUTO) return options->codec;
  return options->mode == LP_MODE_EXACT ? LP_CODEC_F32 : LP_CODEC_F16;
}

static lp_status open_remote(lp_cloud_end *end, lp_diag *diag) {
  int64_t have = 0;
  end->uploader = lp_uploader_start(&end->options);
  if (!end->uploader) return lp_error(diag, LP_LOC_NONE, "cannot start a thread");
  LP_TRY(lp_context_dial(&end->options, end->time, LP_LANE_LINK, end->options.endpoint->patience.dial_ms, &end->wire,
                         &have, diag));
  if (have > 0) lp_uploader_skip(end->uploader, have < end->time.floor ? have : end->time.floor);
  return LP_OK;
}

/* Epochs of exact mode grow with each answer, and a killed process may have asked for more than its file knows: each incarnation has a
 * range of its own. In threshold mode they do not grow, so that the next one's floor is right for what the cloud holds. */
static lp_context_time begin_of(const lp_context_claim *claim, lp_mode mode) {
  uint64_t incarnation = claim->incarnation;
  return (lp_context_time){.epoch = mode == LP_MODE_EXACT ? incarnation << 32 : incarnation, .floor = claim->floor};
}

lp_status lp_cloud_end_open(lp_session *session, const lp_halves *halves, int64_t capacity,
                            const lp_context_claim *claim, lp_cloud_end **out, lp_diag *diag) {
  lp_cloud_end *end = lp_alloc(sizeof *end);
  lp_codec codec = choose_codec(&session->options);
  end->halves = halves;
  end->time = begin_of(claim, session->options.mode);
  end->number = (uint64_t)claim->incarnation << 32;
  end->options =
      (lp_uploader_options){.endpoint = &session->endpoint,
                            .context = claim->context,
                            .options = {.sampling = session->options.sampling, .codec = codec, .capacity = capacity},
                            .row_bytes = lp_codec_row_bytes(codec, halves->width),
                            .begin = end->time,
                            .trace = session->options.trace};
  end->row = lp_alloc(end->options.row_bytes);
  lp_status status = LP_OK;
  if (!session->options.cloud)
    end->here = lp_context_create(halves, &end->options.options, session->pool);
  else
    status = open_remote(end, diag);
  if (status != LP_OK) {
    lp_cloud_end_close(end, NULL);
    end = NULL;
  }
  *out = end;
  return status;
}

static bool send(lp_cloud_end *end, const Lp__Wire__Message *message, const char **why) {
  return lp_wire_send(end->wire, LP_ONLY_PEER, message, NULL, 0, why);
}

static void hang_up(lp_cloud_end *end) {
  if (!end->wire) return;
  end->bytes_up += end->wire->bytes_sent;
  end->bytes_down += end->wire->bytes_received;
  lp_wire_close(end->wire);
  end->wire = NULL;
}

static void leave(lp_cloud_end *end) {
  if (!end->wire) return;
  Lp__Wire__Leave body = LP__WIRE__LEAVE__INIT;
  body.context = end->options.context;
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_LEAVE;
  message.leave = &body;
  const char *why = "";
  (void)send(end, &message, &why); /* a worker that has gone, or forgets an idle context, needs no goodbye */
}

void lp_cloud_end_close(lp_cloud_end *end, lp_generation *totals) {
  if (!end) return;
  if (end->uploader) {
    /* A connection that is down holds nobody up. */
    if (totals && end->wire) lp_uploader_flush(end->uploader, flush_ms);
    lp_uploader_stop(end->uploader, &end->bytes_up, &end->bytes_down, &end->row_bytes);
  }
  leave(end);
  hang_up(end);
  lp_context_free(end->here);
  if (totals) {
    totals->bytes_up += end->bytes_up;
    totals->bytes_down += end->bytes_down;
    totals->hidden_bytes_up += end->row_bytes;
  }
  free(end->row);
  free(end);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

lp_status lp_cloud_end_upload(lp_cloud_end *end, int64_t first, int64_t count, const float *rows, lp_diag *diag) {
  size_t width = end->halves->width;
  for (int64_t i = 0; i < count; i++) {
    lp_codec_encode(end->options.options.codec, rows + (size_t)i * width, width, end->row);
    if (end->here)
      LP_TRY(lp_context_upload(end->here, end->time, first + i, 1, end->row, end->options.row_bytes, diag));
    else
      lp_uploader_put(end->uploader, end->time, first + i, end->row);
  }
  return LP_OK;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static lp_status lost(const lp_cloud_end *end, const lp_question *question, const char *why, lp_diag *diag) {
  return lp_error(diag, LP_LOC_NONE, "the cloud at %s was lost at position %" PRId64 ": %s",
                  end->options.endpoint->address, question->end, why);
}

static bool send_question(lp_cloud_end *end, const lp_question *question, const char **why) {
  Lp__Wire__Ask ask = LP__WIRE__ASK__INIT;
  ask.context = end->options.context;
  if (end->asked_ms <= 0) end->asked_ms = lp_now_ms();
  ask.number = end->number;
  ask.epoch = end->time.epoch;
  ask.floor = end->time.floor;
  ask.end = question->end;
  ask.n_draft = (size_t)question->count;
  ask.draft = (int32_t *)(uintptr_t)question->draft; /* protobuf-c reads it only */
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_ASK;
  message.ask = &ask;
  return send(end, &message, why);
}

typedef enum { REPLY_ANSWER, REPLY_OTHER, REPLY_BAD } reply;

static reply take_reply(lp_cloud_end *end, const lp_question *question, const Lp__Wire__Message *message,
                        lp_answer *out) {
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_LACK) {
    int64_t from = message->lack->from;
    if (message->lack->context != end->options.context || from < 0) return REPLY_BAD; /* joins again */
    lp_uploader_send_again(end->uploader, from);
    return REPLY_OTHER;
  }
  if (message->kind_case != LP__WIRE__MESSAGE__KIND_ANSWER) return REPLY_BAD;
  const Lp__Wire__Answer *answer = message->answer;
  if (answer->context != end->options.context || answer->number > end->number) return REPLY_BAD;
  if (answer->number < end->number) return REPLY_OTHER; /* to a question that was given up */
  int32_t vocab = end->halves->bundle->manifest.vocab;
  if ((int64_t)answer->accepted > question->count || answer->token < 0 || answer->token >= vocab) return REPLY_BAD;
  end->times = (lp_cloud_times){.asked_ms = NAN};
  (void)lp_cloud_times_of(answer->times, &end->times);
  *out = (lp_answer){.accepted = answer->accepted,
                     .sample = {.token = answer->token, .confidence = answer->confidence},
                     .busy_ms = answer->busy_ms};
  return REPLY_ANSWER;
}

/* One wait for a message. LP_FAILED: the connection is no good any more, `why` says it. `refusal` gets what a worker that
 * refuses says. */
static lp_status await_reply(lp_cloud_end *end, const lp_question *question, double left_ms, lp_answer *out,
                             bool *answered, lp_buf *refusal, const char **why) {
  lp_inbound in;
  switch (lp_wire_receive(end->wire, left_ms, &in, why)) {
  case LP_RECV_FRAME:
    break;
  case LP_RECV_TIMEOUT:
    return LP_OK;
  case LP_RECV_GONE:
  case LP_RECV_GARBAGE:
  case LP_RECV_FAILED:
    return LP_FAILED;
  }
  reply got = REPLY_BAD;
  if (in.message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE)
    lp_buf_puts(refusal, in.message->failure->text);
  else
    got = take_reply(end, question, in.message, out);
  lp_inbound_release(&in);
  *answered = got == REPLY_ANSWER;
  *why = "it answered what was not asked";
  return got == REPLY_BAD ? LP_FAILED : LP_OK;
}

/* Over one connection, until it breaks, refuses or the time is over. A question that stays without an answer is put again: it
 * or the answer may be lost, and the worker answers it once. */
static lp_status ask_once(lp_cloud_end *end, const lp_question *question, double until, lp_answer *out, bool *answered,
                          lp_buf *refusal, const char **why) {
  double every = end->options.endpoint->patience.repeat_ms;
  while (!*answered && refusal->size == 0 && lp_now_ms() < until) {
    if (!send_question(end, question, why)) return LP_FAILED;
    double again = lp_now_ms() + every < until ? lp_now_ms() + every : until;
    every *= 2;
    for (double left = again - lp_now_ms(); left > 0 && !*answered && refusal->size == 0; left = again - lp_now_ms())
      LP_TRY(await_reply(end, question, left, out, answered, refusal, why));
  }
  return LP_OK;
}

static bool redial(lp_cloud_end *end, double left_ms) {
  int64_t have = 0;
  lp_diag *quiet = lp_diag_create();
  double limit = end->options.endpoint->patience.dial_ms;
  if (left_ms < limit) limit = left_ms;
  bool good = lp_context_dial(&end->options, end->time, LP_LANE_LINK, limit, &end->wire, &have, quiet) == LP_OK;
  lp_diag_free(quiet);
  /* A worker that has forgotten the context says so; the rows' connection may not have noticed. */
  if (good) lp_uploader_send_again(end->uploader, have);
  return good;
}

/* Is there a connection to ask on? If not one is made, once; then false means: not now. */
static bool connect_wire(lp_cloud_end *end, bool persists, double left_ms) {
  if (end->wire) return true;
  if (!persists && !lp_uploader_reaches(end->uploader)) return false;
  return redial(end, left_ms);
}

/* Until an answer, a refusal or the end of the time; without persistence until the link is seen to be down. */
static bool ask_until(lp_cloud_end *end, const lp_question *question, double until, bool persists, lp_answer *out,
                      lp_buf *refusal, const char **why) {
  lp_backoff backoff = lp_backoff_begin(&end->options.endpoint->patience, until - lp_now_ms());
  bool answered = false;
  while (!answered && refusal->size == 0 && lp_now_ms() < until) {
    if (connect_wire(end, persists, until - lp_now_ms())) {
      if (ask_once(end, question, until, out, &answered, refusal, why) != LP_OK) hang_up(end);
      continue;
    }
    *why = "it cannot be reached";
    if (!persists || !lp_backoff_wait(&backoff)) break;
  }
  return answered;
}

static lp_status ask_remote(lp_cloud_end *end, const lp_question *question, double timeout_ms, bool persists,
                            lp_answer *out, lp_diag *diag) {
  const char *why = "no answer in time";
  lp_buf refusal = {0};
  end->number++;
  end->asked_ms = 0;
  bool answered = ask_until(end, question, lp_now_ms() + timeout_ms, persists, out, &refusal, &why);
  lp_status status = LP_OK;
  lp_trace_span span = {.name = question->count > 0 ? "verify" : "ask",
                        .begin_ms = end->asked_ms,
                        .end_ms = lp_now_ms(),
                        .position = question->end - question->count,
                        .tokens = question->count + 1,
                        .bytes = -1};
  if (answered) lp_trace_request(end->options.trace, LP_LANE_LINK, &span, &end->times);
  if (refusal.size > 0)
    status = lp_error(diag, LP_LOC_NONE, "the cloud at %s failed at position %" PRId64 ": %s",
                      end->options.endpoint->address, question->end, lp_buf_text(&refusal));
  else if (!answered)
    status = lost(end, question, why, diag);
  lp_buf_free(&refusal);
  return status;
}

static lp_status ask_here(lp_cloud_end *end, const lp_question *question, lp_answer *out, lp_diag *diag) {
  lp_trace_span span = {.name = "compute",
                        .begin_ms = lp_now_ms(),
                        .position = question->end - question->count,
                        .tokens = question->count + 1,
                        .bytes = -1};
  LP_TRY(lp_context_ask(end->here, question, out, diag));
  span.end_ms = lp_now_ms();
  lp_trace_put(end->options.trace, LP_LANE_CLOUD, &span);
  return LP_OK;
}

lp_status lp_cloud_end_ask(lp_cloud_end *end, const lp_question *question, double timeout_ms, bool persists,
                           lp_answer *out, lp_diag *diag) {
  LP_TRY(end->here ? ask_here(end, question, out, diag) : ask_remote(end, question, timeout_ms, persists, out, diag));
  if (question->count > 0)
    end->time =
        (lp_context_time){.epoch = end->time.epoch + 1, .floor = question->end - question->count + out->accepted};
  return LP_OK;
}
