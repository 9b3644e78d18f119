/* Sends rows of hidden states: see uploader.h. */
#include "runtime/exits/uploader.h"
#include "base/clock.h"
#include "runtime/exec/trace.h"
#include "runtime/exits/context.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/runtime.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

/* The most bytes of rows in one message: enough to be cheap, and few enough that a change of epoch need not wait
 * long. */
enum { MESSAGE_BYTES = 256 << 10 };

struct lp_uploader {
  lp_uploader_options options;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t news;
  /* Guarded by the mutex: */
  uint8_t *row;             /* [room][row_bytes], every row of the generation */
  int64_t room, have, sent; /* numbers of rows: that fit, were put, and were sent */
  lp_context_time time;
  int64_t skips;  /* number of first rows that the cloud already holds */
  int64_t lacked; /* the row that the cloud last requested; -1: none since the connection was made */
  bool anew;      /* the thread must make a new connection */
  bool down;      /* the last attempt to connect failed */
  bool stop;
  uint64_t bytes_up, bytes_down, row_bytes_up;
  /* Used by the thread only: */
  lp_wire *wire;
  double pause_ms;
};

/* ---- joining a context ------------------------------------------------------------------------------------------- */

lp_cloud_times lp_cloud_times_of(const Lp__Wire__Times *times) {
  if (!times) return (lp_cloud_times){.asked_ms = NAN};
  return (lp_cloud_times){.asked_ms = times->asked, .began_ms = times->began, .sent_ms = times->sent};
}

static bool send_join(lp_wire *wire, const lp_uploader_options *options, lp_context_time time, const char **why) {
  const lp_context_options *context = &options->options;
  Lp__Wire__Join join = LP__WIRE__JOIN__INIT;
  join.context = options->context;
  join.temperature = context->sampling.temperature;
  join.top_k = context->sampling.top_k;
  join.top_p = context->sampling.top_p;
  join.seed = context->sampling.seed;
  join.codec = (uint32_t)context->codec;
  join.capacity = context->capacity;
  join.epoch = time.epoch;
  join.floor = time.floor;
  join.times = options->trace != NULL;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(JOIN, .join = &join);
  return lp_wire_send(wire, LP_ONLY_PEER, &message, NULL, 0, why);
}

static lp_status take_joined(lp_wire *wire, const lp_uploader_options *options, const lp_inbound *in,
                             lp_cloud_times *times, int64_t *have, lp_diag *diag) {
  const Lp__Wire__Message *message = in->message;
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE)
    return lp_error(diag, LP_LOC_NONE, "%s at %s refuses: %s", lp_endpoint_name(options->endpoint), wire->address,
                    message->failure->text);
  if (message->kind_case != LP__WIRE__MESSAGE__KIND_JOINED || message->joined->context != options->context ||
      message->joined->have < 0)
    return lp_error(diag, LP_LOC_NONE, "%s at %s sent an unexpected answer", lp_endpoint_name(options->endpoint),
                    wire->address);
  *have = message->joined->have;
  *times = lp_cloud_times_of(message->joined->times);
  return LP_OK;
}

static lp_status join(lp_wire *wire, const lp_uploader_options *options, lp_context_time time, lp_trace_lane lane,
                      double timeout_ms, int64_t *have, bool *refused, lp_diag *diag) {
  const char *why = "";
  lp_inbound in;
  lp_cloud_times times = {0};
  lp_trace_slice slice = {.name = "join", .begin_ms = lp_now_ms(), .position = -1, .tokens = -1, .bytes = -1};
  if (!send_join(wire, options, time, &why))
    return lp_error(diag, LP_LOC_NONE, "cannot reach %s at %s: %s", lp_endpoint_name(options->endpoint), wire->address,
                    why);
  double until = lp_now_ms() + timeout_ms;
  lp_recv_outcome outcome;
  do
    outcome = lp_wire_receive(wire, until - lp_now_ms(), &in, &why);
  while (outcome == LP_RECV_TIMEOUT && lp_now_ms() < until);
  if (outcome != LP_RECV_FRAME)
    return lp_error(diag, LP_LOC_NONE, "cannot reach %s at %s: it does not answer", lp_endpoint_name(options->endpoint),
                    wire->address);
  lp_status status = take_joined(wire, options, &in, &times, have, diag);
  *refused = status != LP_OK;
  lp_inbound_release(&in);
  slice.end_ms = lp_now_ms();
  if (status == LP_OK) lp_trace_request(options->trace, lane, &slice, &times);
  return status;
}

lp_status lp_context_dial(const lp_uploader_options *options, lp_context_time time, lp_trace_lane lane,
                          double timeout_ms, lp_wire **out, int64_t *have, bool *refused, lp_diag *diag) {
  lp_trace_slice slice = {.name = "connect", .begin_ms = lp_now_ms(), .position = -1, .tokens = -1, .bytes = -1};
  LP_TRY(lp_wire_try_dial(&lp_transport_socket, options->endpoint, timeout_ms, out, refused, diag));
  slice.end_ms = lp_now_ms();
  lp_trace_put(options->trace, lane, &slice);
  lp_status status = join(*out, options, time, lane, timeout_ms, have, refused, diag);
  if (status == LP_OK) return LP_OK;
  lp_wire_close(*out);
  *out = NULL;
  return status;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* Copies the rows to send next, so that they are sent without the mutex. */
typedef struct {
  lp_context_time time;
  int64_t first, count;
  uint8_t *data;
} piece;

static void lock(lp_uploader *uploader) {
  pthread_mutex_lock(&uploader->mutex);
}

static void unlock(lp_uploader *uploader) {
  pthread_mutex_unlock(&uploader->mutex);
}

/* The caller holds the mutex. */
static void wait_for(lp_uploader *uploader, double ms) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  int64_t ns = at.tv_nsec + (int64_t)(ms * 1e6);
  at.tv_sec += (time_t)(ns / 1000000000);
  at.tv_nsec = (long)(ns % 1000000000);
  (void)pthread_cond_timedwait(&uploader->news, &uploader->mutex, &at);
}

static void add_traffic(lp_uploader *uploader) {
  uploader->bytes_up += uploader->wire->bytes_sent;
  uploader->bytes_down += uploader->wire->bytes_received;
  uploader->wire->bytes_sent = uploader->wire->bytes_received = 0;
}

static void hang_up(lp_uploader *uploader) {
  if (!uploader->wire) return;
  lock(uploader);
  add_traffic(uploader);
  unlock(uploader);
  lp_wire_close(uploader->wire);
  uploader->wire = NULL;
}

/* Pauses after a failed attempt, twice as long each time, so as not to flood a cloud that is down. */
static void pause_after_failure(lp_uploader *uploader) {
  const lp_patience *patience = &uploader->options.endpoint->patience;
  uploader->pause_ms = uploader->pause_ms > 0 ? 2 * uploader->pause_ms : patience->pause_ms;
  if (uploader->pause_ms > patience->longest_pause_ms) uploader->pause_ms = patience->longest_pause_ms;
  double until = lp_now_ms() + uploader->pause_ms;
  lock(uploader);
  uploader->down = true;
  pthread_cond_broadcast(&uploader->news);
  for (double left = uploader->pause_ms; left > 0 && !uploader->stop; left = until - lp_now_ms())
    wait_for(uploader, left);
  unlock(uploader);
}

/* Makes a connection unless there is one; false: the attempt failed. A new connection sends only rows that the cloud
 * lacks. */
static bool connect_wire(lp_uploader *uploader) {
  if (uploader->wire) return true;
  lock(uploader);
  lp_context_time time = uploader->time;
  unlock(uploader);
  int64_t have = 0;
  bool refused = false;
  lp_diag *diag = lp_diag_create(); /* the connection for questions reports lasting failures */
  double limit = uploader->options.endpoint->patience.dial_ms;
  bool good =
      lp_context_dial(&uploader->options, time, LP_LANE_UPLOAD, limit, &uploader->wire, &have, &refused, diag) == LP_OK;
  lp_diag_free(diag);
  if (!good) {
    pause_after_failure(uploader);
    return false;
  }
  uploader->pause_ms = 0;
  lock(uploader);
  uploader->down = uploader->anew = false;
  uploader->lacked = -1;
  int64_t known = uploader->have > uploader->skips ? uploader->have : uploader->skips;
  uploader->sent = have < known ? have : known;
  unlock(uploader);
  return true;
}

/* The caller holds the mutex. */
static piece next_piece(const lp_uploader *uploader) {
  size_t row = uploader->options.row_bytes;
  int64_t most = row < MESSAGE_BYTES ? (int64_t)(MESSAGE_BYTES / row) : 1;
  piece next = {.time = uploader->time, .first = uploader->sent, .count = uploader->have - uploader->sent};
  if (next.count > most) next.count = most;
  if (next.count < 0) next.count = 0;
  next.data = lp_alloc((size_t)next.count * row + 1);
  memcpy(next.data, uploader->row + (size_t)next.first * row, (size_t)next.count * row);
  return next;
}

static bool send_piece(lp_uploader *uploader, const piece *next) {
  Lp__Wire__Rows rows = LP__WIRE__ROWS__INIT;
  rows.context = uploader->options.context;
  rows.epoch = next->time.epoch;
  rows.floor = next->time.floor;
  rows.first = next->first;
  rows.count = next->count;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(ROWS, .rows = &rows);
  const char *why = "";
  size_t bytes = (size_t)next->count * uploader->options.row_bytes;
  lp_trace_slice slice = {
      .name = "rows", .begin_ms = lp_now_ms(), .position = next->first, .tokens = next->count, .bytes = (int64_t)bytes};
  bool good = lp_wire_send(uploader->wire, LP_ONLY_PEER, &message, next->data, bytes, &why);
  slice.end_ms = lp_now_ms();
  lp_trace_put(uploader->options.trace, LP_LANE_UPLOAD, &slice);
  return good;
}

/* Advances `sent`, unless it has moved back while the rows were sent. */
static void note_sent(lp_uploader *uploader, const piece *next) {
  lock(uploader);
  uploader->row_bytes_up += (uint64_t)next->count * uploader->options.row_bytes;
  add_traffic(uploader);
  if (uploader->time.epoch == next->time.epoch && uploader->sent == next->first)
    uploader->sent = next->first + next->count;
  pthread_cond_broadcast(&uploader->news);
  unlock(uploader);
}

static void *upload(void *user) {
  lp_uploader *uploader = user;
  (void)connect_wire(uploader); /* connecting takes round trips: begin before there are rows */
  for (;;) {
    lock(uploader);
    while (!uploader->stop && uploader->sent >= uploader->have)
      pthread_cond_wait(&uploader->news, &uploader->mutex);
    bool stop = uploader->stop, anew = uploader->anew;
    unlock(uploader);
    if (stop) break;
    if (anew) hang_up(uploader);
    if (!connect_wire(uploader)) continue;
    lock(uploader);
    piece next = next_piece(uploader);
    unlock(uploader);
    bool good = next.count == 0 || send_piece(uploader, &next);
    if (!good)
      hang_up(uploader);
    else if (next.count > 0)
      note_sent(uploader, &next);
    free(next.data);
  }
  hang_up(uploader);
  return NULL;
}

/* ---- from the device's thread ------------------------------------------------------------------------------------ */

static void release(lp_uploader *uploader) {
  pthread_cond_destroy(&uploader->news);
  pthread_mutex_destroy(&uploader->mutex);
  free(uploader->row);
  free(uploader);
}

lp_uploader *lp_uploader_start(const lp_uploader_options *options) {
  lp_uploader *uploader = lp_alloc(sizeof *uploader);
  uploader->options = *options;
  uploader->lacked = -1;
  uploader->time = options->begin;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&uploader->mutex, NULL);
  pthread_cond_init(&uploader->news, &attributes);
  pthread_condattr_destroy(&attributes);
  if (pthread_create(&uploader->thread, NULL, upload, uploader) == 0) return uploader;
  release(uploader);
  return NULL;
}

void lp_uploader_put(lp_uploader *uploader, lp_context_time time, int64_t position, const uint8_t *row) {
  size_t bytes = uploader->options.row_bytes;
  lock(uploader);
  if (position >= uploader->room) {
    uploader->room = 2 * position + 64;
    uploader->row = lp_realloc(uploader->row, (size_t)uploader->room * bytes);
  }
  memcpy(uploader->row + (size_t)position * bytes, row, bytes);
  uploader->time = time;
  uploader->have = position + 1;
  if (uploader->sent > position && position >= uploader->skips) uploader->sent = position;
  pthread_cond_broadcast(&uploader->news);
  unlock(uploader);
}

void lp_uploader_skip(lp_uploader *uploader, int64_t count) {
  lock(uploader);
  uploader->skips = count;
  if (uploader->sent < count) uploader->sent = count;
  unlock(uploader);
}

void lp_uploader_send_again(lp_uploader *uploader, int64_t from) {
  lock(uploader);
  if (uploader->sent > from) uploader->sent = from;
  if (uploader->lacked == from) uploader->anew = true;
  uploader->lacked = from;
  pthread_cond_broadcast(&uploader->news);
  unlock(uploader);
}

bool lp_uploader_reaches(lp_uploader *uploader) {
  lock(uploader);
  bool reaches = !uploader->down;
  unlock(uploader);
  return reaches;
}

void lp_uploader_flush(lp_uploader *uploader, double timeout_ms) {
  double patience = uploader->options.endpoint->patience.silence_ms, now = lp_now_ms();
  double until = now + timeout_ms, moved = now;
  lock(uploader);
  for (int64_t seen = uploader->sent; uploader->sent < uploader->have && !uploader->down; now = lp_now_ms()) {
    if (uploader->sent != seen) moved = now;
    seen = uploader->sent;
    double limit = moved + patience < until ? moved + patience : until;
    if (now >= limit) break;
    wait_for(uploader, limit - now);
  }
  unlock(uploader);
}

void lp_uploader_stop(lp_uploader *uploader, uint64_t *bytes_up, uint64_t *bytes_down, uint64_t *row_bytes) {
  lock(uploader);
  uploader->stop = true;
  pthread_cond_broadcast(&uploader->news);
  unlock(uploader);
  pthread_join(uploader->thread, NULL);
  *bytes_up += uploader->bytes_up;
  *bytes_down += uploader->bytes_down;
  *row_bytes += uploader->row_bytes_up;
  release(uploader);
}
