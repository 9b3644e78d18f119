/* The device's end of its context: opening and closing it, and questions with their answers. uploader.c sends the
 * rows. */
#include "runtime/exits/cloud_end.h"
#include "base/clock.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exec/trace.h"
#include "runtime/exits/codec.h"
#include "runtime/exits/context.h"
#include "runtime/exits/halves.h"
#include "runtime/exits/uploader.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const double flush_ms = 30000;

struct lp_cloud_end {
  const lp_halves *halves;
  lp_uploader_options options;
  lp_context_time time;
  lp_context *here;      /* the context, when the cloud is this process; NULL: a worker has it */
  lp_uploader *uploader; /* keeps the connection for rows */
  lp_wire *wire;         /* the connection for questions; NULL: lost */
  uint64_t number;       /* of the last question */
  double asked_ms;       /* when it was first sent; 0: not yet */
  lp_cloud_times times;  /* of its answer, by the worker's clock */
  uint64_t bytes_up, bytes_down, row_bytes;
  uint8_t *row;
};

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

uint64_t lp_context_draw(void) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) number = (uint64_t)(lp_now_ms() * 1e6);
  return number;
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

/* With drafts the epoch grows with each answer, and a killed process may have asked more than its session file
 * records, so each incarnation has its own range of epochs. Without drafts the epoch does not grow, and an
 * incarnation is one epoch, so that its floor is right for what the cloud holds. */
static lp_context_time begin_of(const lp_cloud_end_options *options) {
  uint64_t incarnation = options->claim.incarnation;
  return (lp_context_time){.epoch = options->drafts ? incarnation << 32 : incarnation, .floor = options->claim.floor};
}

lp_status lp_cloud_end_open(const lp_cloud_end_options *options, lp_cloud_end **out, lp_diag *diag) {
  lp_cloud_end *end = lp_alloc(sizeof *end);
  end->halves = options->halves;
  end->time = begin_of(options);
  end->number = (uint64_t)options->claim.incarnation << 32;
  end->options = (lp_uploader_options){.endpoint = options->endpoint,
                                       .context = options->claim.context,
                                       .options = options->context,
                                       .row_bytes = lp_codec_row_bytes(options->context.codec, options->halves->width),
                                       .begin = end->time,
                                       .trace = options->trace};
  end->row = lp_alloc(end->options.row_bytes);
  lp_status status = LP_OK;
  if (options->endpoint)
    status = open_remote(end, diag);
  else
    end->here = lp_context_create(options->halves, &options->context, options->pool);
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
  (void)send(end, &message, &why); /* a worker that misses it drops the idle context later */
}

void lp_cloud_end_close(lp_cloud_end *end, lp_generation *totals) {
  if (!end) return;
  if (end->uploader) {
    /* Without a connection there is nothing to wait for. */
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
  if (answer->number < end->number) return REPLY_OTHER; /* an answer to an earlier question that timed out */
  int32_t vocab = end->halves->bundle->manifest.vocab;
  if ((int64_t)answer->accepted > question->count || answer->token < 0 || answer->token >= vocab) return REPLY_BAD;
  end->times = lp_cloud_times_of(answer->times);
  *out = (lp_answer){.accepted = answer->accepted,
                     .sample = {.token = answer->token, .confidence = answer->confidence},
                     .busy_ms = answer->busy_ms};
  return REPLY_ANSWER;
}

/* Waits once for a message. LP_FAILED, without a diagnostic: the connection is broken, for the reason in `why`.
 * `refusal` receives the text of a worker that refuses. */
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
  case LP_RECV_STRAINED:
    return LP_FAILED;
  }
  reply got = REPLY_BAD;
  if (in.message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE)
    lp_buf_puts(refusal, in.message->failure->text);
  else
    got = take_reply(end, question, in.message, out);
  lp_inbound_release(&in);
  *answered = got == REPLY_ANSWER;
  *why = "it sent an unexpected answer";
  return got == REPLY_BAD ? LP_FAILED : LP_OK;
}

/* Asks over one connection until there is an answer or a refusal, the connection breaks, or the time is over. It
 * repeats a question without an answer, since the question or the answer may be lost; the worker computes an answer
 * only once. */
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
  /* The worker may have lost the context, which the connection for rows does not notice. */
  if (good) lp_uploader_send_again(end->uploader, have);
  return good;
}

/* Makes a connection for questions unless there is one. False: the attempt failed, or (without `persists`) it made
 * none, since the uploader cannot reach the cloud either. */
static bool connect_wire(lp_cloud_end *end, bool persists, double left_ms) {
  if (end->wire) return true;
  if (!persists && !lp_uploader_reaches(end->uploader)) return false;
  return redial(end, left_ms);
}

/* Asks until there is an answer or a refusal or the time is over; without `persists`, also until the link is down. */
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
  lp_trace_slice slice = {.name = question->count > 0 ? "verify" : "ask",
                          .begin_ms = end->asked_ms,
                          .end_ms = lp_now_ms(),
                          .position = question->end - question->count,
                          .tokens = question->count + 1,
                          .bytes = -1};
  if (answered) lp_trace_request(end->options.trace, LP_LANE_LINK, &slice, &end->times);
  if (refusal.size > 0)
    status = lp_error(diag, LP_LOC_NONE, "the cloud at %s failed at position %" PRId64 ": %s",
                      end->options.endpoint->address, question->end, lp_buf_text(&refusal));
  else if (!answered)
    status = lost(end, question, why, diag);
  lp_buf_free(&refusal);
  return status;
}

static lp_status ask_here(lp_cloud_end *end, const lp_question *question, lp_answer *out, lp_diag *diag) {
  lp_trace_slice slice = {.name = "compute",
                          .begin_ms = lp_now_ms(),
                          .position = question->end - question->count,
                          .tokens = question->count + 1,
                          .bytes = -1};
  LP_TRY(lp_context_ask(end->here, question, out, diag));
  slice.end_ms = lp_now_ms();
  lp_trace_put(end->options.trace, LP_LANE_CLOUD, &slice);
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
