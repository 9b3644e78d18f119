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
#include "runtime/link/wires.h"
#include "runtime/runtime.h"

#include <sys/random.h>

static const double flush_ms = 30000;

struct lp_cloud_end {
  const lp_halves *halves;
  const lp_endpoint *const *endpoints; /* [links]; NULL: the cloud is this process */
  lp_uploader_options options;         /* of the first link */
  lp_context_time time;
  lp_context *here[LP_PLACES_MAX]; /* [links] the contexts, when the cloud is this process */
  lp_uploader *uploader;           /* keeps the connection for rows */
  lp_wire *wire[LP_PLACES_MAX];    /* [links] the connections for questions; NULL: lost */
  lp_wires wires;                  /* all of them */
  double retry_ms[LP_PLACES_MAX];  /* a device that can do without an answer does not dial earlier */
  uint64_t number;                 /* of the last question */
  double asked_ms;                 /* when it was first sent; 0: not yet */
  lp_cloud_times times;            /* of its answer, by the worker's clock */
  uint64_t bytes_up, bytes_down, row_bytes;
  uint8_t *row;
};

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

uint64_t lp_context_draw(void) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) number = (uint64_t)(lp_now_ms() * 1e6);
  return number;
}

static lp_status dial(lp_cloud_end *end, int32_t link, double timeout_ms, int64_t *have, bool *refused, lp_diag *diag) {
  lp_uploader_options options = end->options;
  options.endpoint = end->endpoints[link];
  return lp_context_dial(&options, end->time, LP_LANE_LINK, timeout_ms, &end->wire[link], have, refused, diag);
}

typedef struct {
  lp_cloud_end *end;
  int64_t have; /* the rows of the first link */
  bool refused;
} opening;

/* Makes the connections for questions that an earlier attempt did not make. */
static lp_status dial_all(void *user, bool *refused, lp_diag *diag) {
  opening *of = user;
  lp_cloud_end *end = of->end;
  lp_status status = LP_OK;
  for (int32_t i = end->halves->links - 1; status == LP_OK && i >= 0; i--)
    if (!end->wire[i]) status = dial(end, i, end->endpoints[i]->patience.dial_ms, &of->have, &of->refused, diag);
  *refused = of->refused;
  return status;
}

/* Without drafts an exit gives the token while a worker is away, so that a generation need not wait for it. */
static lp_status open_remote(lp_cloud_end *end, const lp_cloud_end_options *options, lp_diag *diag) {
  const lp_patience *patience = &end->options.endpoint->patience;
  opening of = {.end = end};
  end->uploader = lp_uploader_start(&end->options);
  if (!end->uploader) return lp_error(diag, LP_LOC_NONE, "cannot start a thread");
  lp_diag *failure = lp_diag_create();
  lp_status status = lp_reach(patience, options->drafts ? options->reach_ms : 0, dial_all, &of, failure);
  if (status != LP_OK && !options->drafts && !of.refused)
    status = LP_OK;
  else
    lp_diag_append(diag, failure);
  lp_diag_free(failure);
  LP_TRY(status);
  if (!lp_wires_open(&end->wires, end->wire, (size_t)end->halves->links))
    return lp_error(diag, LP_LOC_NONE, "no descriptors are left for the connections to the places");
  if (of.have > 0) lp_uploader_skip(end->uploader, of.have < end->time.floor ? of.have : end->time.floor);
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
  end->endpoints = options->endpoints;
  end->wires.epoll = -1;
  end->time = begin_of(options);
  end->number = (uint64_t)options->claim.incarnation << 32;
  end->options =
      (lp_uploader_options){.endpoint = options->endpoints ? options->endpoints[0] : NULL,
                            .context = options->claim.context,
                            .options = options->context,
                            .row_bytes = lp_codec_row_bytes(options->context.codec, options->halves->width[0]),
                            .begin = end->time,
                            .trace = options->trace};
  end->row = lp_alloc(end->options.row_bytes);
  lp_status status = LP_OK;
  for (int32_t i = 0; i < end->halves->links && !end->endpoints; i++)
    end->here[i] = lp_context_create(options->halves, i, &options->context, options->pool);
  if (end->endpoints) status = open_remote(end, options, diag);
  if (status != LP_OK) {
    lp_cloud_end_close(end, NULL);
    end = NULL;
  }
  *out = end;
  return status;
}

static bool send(lp_cloud_end *end, int32_t link, const Lp__Wire__Message *message, const char **why) {
  return lp_wire_send(end->wire[link], LP_ONLY_PEER, message, NULL, 0, why);
}

static void hang_up(lp_cloud_end *end, int32_t link) {
  if (!end->wire[link]) return;
  lp_wires_close(&end->wires);
  end->bytes_up += end->wire[link]->bytes_sent;
  end->bytes_down += end->wire[link]->bytes_received;
  lp_wire_close(end->wire[link]);
  end->wire[link] = NULL;
}

static void leave(lp_cloud_end *end, int32_t link) {
  if (!end->wire[link]) return;
  Lp__Wire__Leave body = LP__WIRE__LEAVE__INIT;
  body.context = end->options.context;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(LEAVE, .leave = &body);
  const char *why = "";
  (void)send(end, link, &message, &why); /* a worker that misses it drops the idle context later */
}

void lp_cloud_end_close(lp_cloud_end *end, lp_generation *totals) {
  if (!end) return;
  if (end->uploader) {
    /* Without a connection there is nothing to wait for. */
    if (totals && end->wire[0]) lp_uploader_flush(end->uploader, flush_ms);
    lp_uploader_stop(end->uploader, &end->bytes_up, &end->bytes_down, &end->row_bytes);
  }
  for (int32_t i = 0; i < end->halves->links; i++) {
    leave(end, i);
    hang_up(end, i);
    lp_context_free(end->here[i]);
  }
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
  size_t width = end->halves->width[0];
  for (int64_t i = 0; i < count; i++) {
    lp_codec_encode(end->options.options.codec, rows + (size_t)i * width, width, end->row);
    if (!end->endpoints)
      LP_TRY(lp_context_upload(end->here[0], end->time, first + i, 1, end->row, end->options.row_bytes, diag));
    else
      lp_uploader_put(end->uploader, end->time, first + i, end->row);
  }
  return LP_OK;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static int32_t last_link(const lp_cloud_end *end) {
  return end->halves->links - 1;
}

static bool send_question(lp_cloud_end *end, const lp_question *question, int32_t link, const char **why) {
  Lp__Wire__Ask ask = LP__WIRE__ASK__INIT;
  ask.context = end->options.context;
  if (end->asked_ms <= 0) end->asked_ms = lp_now_ms();
  ask.number = end->number;
  ask.epoch = end->time.epoch;
  ask.floor = end->time.floor;
  ask.end = question->end;
  ask.n_draft = (size_t)question->count;
  ask.draft = (int32_t *)(uintptr_t)question->draft; /* protobuf-c reads it only */
  Lp__Wire__Message message = LP_WIRE_MESSAGE(ASK, .ask = &ask);
  return send(end, link, &message, why);
}

/* A link lacks rows from `from` on: who made them sends them again. */
static void send_again(lp_cloud_end *end, int32_t link, int64_t from) {
  if (link == 0) {
    lp_uploader_send_again(end->uploader, from);
    return;
  }
  if (!end->wire[link - 1]) return; /* it will be told when the link says so again */
  Lp__Wire__Lack lack = LP__WIRE__LACK__INIT;
  lack.context = end->options.context;
  lack.from = from;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(LACK, .lack = &lack);
  const char *why = "";
  if (!send(end, link - 1, &message, &why)) hang_up(end, link - 1);
}

typedef enum { REPLY_ANSWER, REPLY_OTHER, REPLY_BAD } reply;

static reply take_reply(lp_cloud_end *end, const lp_question *question, int32_t link, const Lp__Wire__Message *message,
                        lp_answer *out) {
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_LACK) {
    int64_t from = message->lack->from;
    if (message->lack->context != end->options.context || from < 0) return REPLY_BAD; /* joins again */
    send_again(end, link, from);
    return REPLY_OTHER;
  }
  if (message->kind_case != LP__WIRE__MESSAGE__KIND_ANSWER || link != last_link(end)) return REPLY_BAD;
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

/* The course of a question: the reason why it has no answer, and the link that is to blame for that. */
typedef struct {
  const lp_question *question;
  lp_answer *out;
  bool answered;
  lp_buf refusal; /* the text of a worker that refuses */
  int32_t link;
  const char *why;
} course;

static bool is_over(const course *of) {
  return of->answered || of->refusal.size > 0;
}

/* Waits once for a message. LP_FAILED, without a diagnostic: the connection to the course's link is broken. */
static lp_status await_reply(lp_cloud_end *end, course *of, double left_ms) {
  lp_inbound in;
  size_t from = 0;
  lp_recv_outcome outcome = lp_wires_receive(&end->wires, left_ms, &from, &in, &of->why);
  if (outcome == LP_RECV_TIMEOUT) return LP_OK;
  of->link = (int32_t)from;
  if (outcome != LP_RECV_FRAME) return LP_FAILED;
  reply got = REPLY_BAD;
  if (in.message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE)
    lp_buf_puts(&of->refusal, in.message->failure->text);
  else
    got = take_reply(end, of->question, of->link, in.message, of->out);
  lp_inbound_release(&in);
  of->answered = got == REPLY_ANSWER;
  of->why = "it sent an unexpected answer";
  return got == REPLY_BAD ? LP_FAILED : LP_OK;
}

static bool has_all_wires(const lp_cloud_end *end) {
  for (int32_t i = 0; i < end->halves->links; i++)
    if (!end->wire[i]) return false;
  return true;
}

/* Sends the question to all links, in their order. */
static lp_status send_questions(lp_cloud_end *end, course *of) {
  for (int32_t i = 0; i < end->halves->links; i++) {
    of->link = i;
    if (!send_question(end, of->question, i, &of->why)) return LP_FAILED;
  }
  return LP_OK;
}

/* Asks over these connections until there is an answer or a refusal, one of them breaks, or the time is over. It
 * repeats a question without an answer, since the question or the answer may be lost; the worker computes an answer
 * only once. */
static lp_status ask_once(lp_cloud_end *end, course *of, double until) {
  double every = end->options.endpoint->patience.repeat_ms;
  while (!is_over(of) && lp_now_ms() < until) {
    LP_TRY(send_questions(end, of));
    double again = lp_now_ms() + every < until ? lp_now_ms() + every : until;
    every *= 2;
    for (double left = again - lp_now_ms(); left > 0 && !is_over(of); left = again - lp_now_ms()) {
      LP_TRY(await_reply(end, of, left));
      if (!has_all_wires(end)) return LP_OK;
    }
  }
  return LP_OK;
}

static bool redial(lp_cloud_end *end, int32_t link, double left_ms) {
  int64_t have = 0;
  bool refused = false;
  lp_diag *quiet = lp_diag_create();
  double begin = lp_now_ms(), limit = end->endpoints[link]->patience.dial_ms;
  if (left_ms < limit) limit = left_ms;
  bool good = dial(end, link, limit, &have, &refused, quiet) == LP_OK;
  lp_diag_free(quiet);
  /* The worker may have lost the context, which the connection for rows does not notice. */
  if (good) send_again(end, link, have);
  if (!good) end->retry_ms[link] = lp_now_ms() + 4 * (lp_now_ms() - begin) + end->endpoints[link]->patience.pause_ms;
  return good;
}

/* Makes the connections for questions that there are not. False: an attempt failed, or (without `persists`) it made
 * none, since the uploader cannot reach the cloud either, or the last attempt was a moment ago. */
static bool connect_wires(lp_cloud_end *end, bool persists, double until, course *of) {
  if (has_all_wires(end)) return true;
  if (!persists && !lp_uploader_reaches(end->uploader)) {
    of->link = 0;
    return false;
  }
  for (int32_t i = last_link(end); i >= 0; i--) {
    if (end->wire[i]) continue;
    of->link = i;
    if (!persists && lp_now_ms() < end->retry_ms[i]) return false;
    if (!redial(end, i, until - lp_now_ms())) return false;
  }
  lp_wires_close(&end->wires);
  return has_all_wires(end) && lp_wires_open(&end->wires, end->wire, (size_t)end->halves->links);
}

/* Asks until there is an answer or a refusal or the time is over; without `persists`, also until the link is down. */
static void ask_until(lp_cloud_end *end, course *of, double until, bool persists) {
  lp_backoff backoff = lp_backoff_begin(&end->options.endpoint->patience, until - lp_now_ms());
  while (!is_over(of) && lp_now_ms() < until) {
    if (connect_wires(end, persists, until, of)) {
      if (ask_once(end, of, until) != LP_OK) hang_up(end, of->link);
      continue;
    }
    of->why = "it cannot be reached";
    if (!persists || !lp_backoff_wait(&backoff)) break;
  }
}

static lp_status ask_remote(lp_cloud_end *end, const lp_question *question, double timeout_ms, bool persists,
                            lp_answer *out, lp_diag *diag) {
  course of = {.question = question, .out = out, .link = last_link(end), .why = "no answer in time"};
  end->number++;
  end->asked_ms = 0;
  ask_until(end, &of, lp_now_ms() + timeout_ms, persists);
  lp_status status = LP_OK;
  lp_trace_slice slice = {.name = question->count > 0 ? "verify" : "ask",
                          .begin_ms = end->asked_ms,
                          .end_ms = lp_now_ms(),
                          .position = question->end - question->count,
                          .tokens = question->count + 1,
                          .bytes = -1};
  const lp_endpoint *endpoint = end->endpoints[of.link];
  if (of.answered) lp_trace_request(end->options.trace, LP_LANE_LINK, &slice, &end->times);
  if (of.refusal.size > 0)
    status = lp_error(diag, LP_LOC_NONE, "%s at %s failed at position %" PRId64 ": %s", lp_endpoint_name(endpoint),
                      endpoint->address, question->end, lp_buf_text(&of.refusal));
  else if (!of.answered)
    status = lp_error(diag, LP_LOC_NONE, "%s at %s was lost at position %" PRId64 ": %s", lp_endpoint_name(endpoint),
                      endpoint->address, question->end, of.why);
  lp_buf_free(&of.refusal);
  return status;
}

/* Hands the rows that a link has made to the next one. */
static lp_status pass_on(lp_cloud_end *end, int32_t link, lp_diag *diag) {
  lp_context *from = end->here[link], *to = end->here[link + 1];
  int64_t count = 0;
  (void)lp_context_enter(to, end->time);
  const int64_t first = to->held > to->consumed ? to->held : to->consumed;
  const uint8_t *rows = lp_context_kept(from, first, &count);
  size_t row = lp_codec_row_bytes(from->options.codec, lp_halves_made_width(end->halves, link));
  return count > 0 ? lp_context_upload(to, end->time, first, count, rows, (size_t)count * row, diag) : LP_OK;
}

static lp_status ask_here(lp_cloud_end *end, const lp_question *question, lp_answer *out, lp_diag *diag) {
  for (int32_t i = 0; i < end->halves->links; i++) {
    lp_trace_slice slice = {.name = "compute",
                            .begin_ms = lp_now_ms(),
                            .place = end->halves->chain[i],
                            .position = question->end - question->count,
                            .tokens = question->count + 1,
                            .bytes = -1};
    LP_TRY(lp_context_ask(end->here[i], question, out, diag));
    slice.end_ms = lp_now_ms();
    lp_trace_put(end->options.trace, LP_LANE_CLOUD, &slice);
    if (i < last_link(end)) LP_TRY(pass_on(end, i, diag));
  }
  return LP_OK;
}

lp_status lp_cloud_end_ask(lp_cloud_end *end, const lp_question *question, double timeout_ms, bool persists,
                           lp_answer *out, lp_diag *diag) {
  LP_TRY(end->endpoints ? ask_remote(end, question, timeout_ms, persists, out, diag)
                        : ask_here(end, question, out, diag));
  if (question->count > 0)
    end->time =
        (lp_context_time){.epoch = end->time.epoch + 1, .floor = question->end - question->count + out->accepted};
  return LP_OK;
}
