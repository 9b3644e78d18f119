/* Serves devices: takes messages, hands each to the file for its kind, and runs passes in between. */
#include <math.h>

#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/ranks.h"
#include "runtime/exits/halves.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"
#include "runtime/worker/budget.h"
#include "runtime/worker/context.h"
#include "runtime/worker/figures.h"
#include "runtime/worker/forward.h"
#include "runtime/worker/held.h"
#include "runtime/worker/mail.h"
#include "runtime/worker/pass.h"
#include "runtime/worker/peer.h"
#include "runtime/worker/queue.h"
#include "runtime/worker/reply.h"
#include "runtime/worker/session.h"
#include "runtime/worker/store.h"
#include "runtime/worker/stream.h"
#include "runtime/worker/worker.h"

static const double stop_ms = 1000; /* the longest time until a stop without a signal is noticed */
enum { MOST_MESSAGES = 256 };       /* between two passes */

static lp_status open_link(lp_worker *worker, int *port, char **host, lp_diag *diag) {
  LP_TRY(lp_address_split(worker->options->listen, host, port, diag));
  bool loopback = lp_address_is_loopback(*host);
  LP_TRY(lp_security_open(&worker->options->security, LP_SIDE_CLOUD, loopback, &worker->security, diag));
  return lp_wire_listen(&lp_transport_socket, worker->options->listen, &worker->security, &worker->wire, port, diag);
}

/* Reads certificates and keys again, if that was asked for. */
static void renew_security(lp_worker *worker, bool loopback) {
  lp_security fresh;
  if (!worker->options->renew || !lp_flag_take(worker->options->renew)) return;
  if (!worker->security.tls) {
    lp_warning(worker->diag, LP_LOC_NONE, "SIGHUP: there are no certificates or keys to read again");
    return;
  }
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  if (lp_security_open(&worker->options->security, LP_SIDE_CLOUD, loopback, &fresh, diag) == LP_OK) {
    lp_vec_push(&worker->earlier, worker->security);
    worker->security = fresh;
    lp_wire_renew(worker->wire, &worker->security);
  } else {
    lp_security_close(&fresh);
    lp_warning(worker->diag, LP_LOC_NONE, "the certificates and keys stay: %s", lp_diag_get(diag, 0)->text);
  }
}

/* A peer that TLS refuses sends no message: the worker sees only that it has disconnected. */
static void note_uncertified(const lp_worker *worker, uint32_t peer) {
  if (!worker->security.certified) return;
  for (size_t i = 0; i < worker->peers.count; i++)
    if (worker->peers.data[i].id == peer) return;
  worker_note_refusal(worker, WORKER_REFUSED_KEY);
  lp_warning(worker->diag, LP_LOC_NONE, "refused a device: it showed no certificate that --client-ca trusts");
}

void worker_forget(lp_worker *worker, uint32_t peer) {
  note_uncertified(worker, peer);
  worker_peer_forget(worker, peer);
  for (size_t i = worker->sessions.count; i-- > 0;)
    if (worker->sessions.data[i]->peer == peer) worker_session_close(worker, worker->sessions.data[i]);
  worker_context_forget_peer(worker, peer);
}

static void tell_opened(lp_worker *worker, uint32_t peer, uint64_t session) {
  Lp__Wire__Opened opened = LP__WIRE__OPENED__INIT;
  opened.session = session;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(OPENED, .opened = &opened);
  worker_post(worker, peer, &message);
}

static void handle_open(lp_worker *worker, uint32_t peer, const Lp__Wire__Open *open) {
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  lp_status status = worker_session_open(worker, peer, open, diag);
  const worker_session *session = worker_session_find(worker, peer, open->session);
  if (status != LP_OK && session)
    worker_refuse_session(worker, session, diag);
  else if (status != LP_OK)
    worker_refuse_with(worker, peer, open->session, diag);
  else if (open->route != 0)
    tell_opened(worker, peer, open->session);
}

static void handle_step(lp_worker *worker, uint32_t peer, lp_inbound *in) {
  worker_session *session = worker_session_find(worker, peer, in->message->step->session);
  if (!session) {
    worker_refuse(worker, peer, in->message->step->session, "the session is not open");
    return;
  }
  if (session->route != 0) {
    worker_mail_take_step(worker, session, in);
    return;
  }
  if (session->next < 0 && session->stream.goes_on) { /* the device goes on by itself */
    worker_stream_end(session);
    worker_queue_drop(session);
  }
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  if (worker_session_step(worker, session, in->message->step, in, diag) != LP_OK)
    worker_refuse_session(worker, session, diag);
}

/* Goes on with a stream as its device would. */
static void draw_one(lp_worker *worker, worker_session *session, const Lp__Wire__Step *step, const lp_buf *tokens) {
  const lp_inbound in = {.payload = tokens->data, .payload_size = tokens->size};
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  if (worker_session_step(worker, session, step, &in, diag) != LP_OK) worker_session_fail(worker, session, diag);
}

bool worker_draw_on(lp_worker *worker) {
  Lp__Wire__Step step;
  int64_t sym[LP_MAX_SYMBOLS];
  LP_OWNED(lp_buf_free) lp_buf tokens = {0};
  bool any = false;
  LP_FOR_VEC_REFS(worker_session, session, &worker->sessions) {
    if (!worker_stream_next(worker, session, &step, sym, &tokens)) continue;
    draw_one(worker, session, &step, &tokens);
    any = true;
  }
  return any;
}

static void take_taken(const lp_worker *worker, uint32_t peer, const Lp__Wire__Taken *taken) {
  worker_session *session = worker_session_find(worker, peer, taken->session);
  if (session) worker_stream_take(session, taken->draws);
}

/* Handles the messages of another worker, besides rows; false: the connection is a device's. */
static bool handle_forward(lp_worker *worker, lp_inbound *in) {
  const Lp__Wire__Message *message = in->message;
  uint32_t peer = in->packet.peer;
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_FORWARD)
    worker_mail_take_forward(worker, in);
  else if (message->kind_case == LP__WIRE__MESSAGE__KIND_PEER)
    worker_mail_take_peer(worker, peer, message->peer);
  else if (worker_peer_of(worker, peer)->from != LP_SIDE_DEVICE && message->kind_case != LP__WIRE__MESSAGE__KIND_ROWS)
    worker_peer_reject(worker, peer, WORKER_REFUSED_PLACE, "a place only forwards");
  else
    return false;
  return true;
}

void worker_handle(lp_worker *worker, lp_inbound *in) {
  uint32_t peer = in->packet.peer;
  const Lp__Wire__Message *message = in->message;
  if (!worker_peer_admits(worker, in)) return;
  if (handle_forward(worker, in)) return;
  if (worker_context_handle(worker, in)) return;
  switch (message->kind_case) {
  case LP__WIRE__MESSAGE__KIND_OPEN:
    handle_open(worker, peer, message->open);
    break;
  case LP__WIRE__MESSAGE__KIND_STEP:
    handle_step(worker, peer, in);
    break;
  case LP__WIRE__MESSAGE__KIND_TAKEN:
    take_taken(worker, peer, message->taken);
    break;
  case LP__WIRE__MESSAGE__KIND_CLOSE: {
    worker_session *session = worker_session_find(worker, peer, message->close->session);
    if (session) worker_session_close(worker, session);
    break;
  }
  case LP__WIRE__MESSAGE__KIND_PROBE:
    worker_post(worker, peer, message); /* the device measures the time until this message returns */
    break;
  default:
    worker_refuse(worker, peer, 0, "not a message for the cloud");
    break;
  }
}

/* Waits for one message and handles it. False: there was none. */
static bool take_message(lp_worker *worker, double wait_ms) {
  lp_inbound in;
  const char *why = "";
  switch (lp_wire_receive(worker->wire, wait_ms, &in, &why)) {
  case LP_RECV_FRAME:
    worker_handle(worker, &in);
    lp_inbound_release(&in);
    break;
  case LP_RECV_GONE:
    worker_forget(worker, in.packet.peer);
    break;
  case LP_RECV_GARBAGE:
    worker_peer_reject(worker, in.packet.peer, WORKER_REFUSED_HANDSHAKE, why);
    break;
  case LP_RECV_STRAINED:
    lp_warning(worker->diag, LP_LOC_NONE, "%s: %s", worker->options->listen, why);
    return false;
  case LP_RECV_TIMEOUT:
    return false;
  }
  return true;
}

static void note_now(const lp_worker *worker) {
  if (!worker->options->figures) return;
  worker_figures_now now = {.open = {worker->sessions.count, worker->contexts.count},
                            .connections = worker->peers.count,
                            .held = worker_bytes_held(worker, NULL),
                            .budget = worker_budget(worker),
                            .received = worker->wire->bytes_received,
                            .sent = worker->wire->bytes_sent,
                            .full = worker_is_full(worker)};
  for (size_t i = 0; i < worker->sessions.count; i++)
    now.waiting += worker->sessions.data[i]->queued.waits;
  for (size_t i = 0; i < worker->contexts.count; i++)
    now.waiting += worker->contexts.data[i]->question.waits;
  worker_note_now(worker, &now);
}

/* Takes the messages that have come before it runs a pass, so that the pass serves all waiting requests. Ends with the
 * ranks of a sharded half too: nothing can run without one, and whoever started the worker can start it again. */
static lp_status serve(lp_worker *worker, bool loopback, const volatile int *stop) {
  int taken = 0;
  while (!lp_flag_get(stop) && !lp_ranks_have_ended(worker->bundle)) {
    renew_security(worker, loopback);
    bool due = worker_draw_on(worker);
    due = worker_pass_is_due(worker) || due;
    worker_forward_tend(worker);
    worker_tell_held(worker);
    note_now(worker);
    double next = fmin(worker_session_drop_idle(worker), worker_context_tend(worker)) - lp_now_ms();
    bool news = take_message(worker, due ? 0 : fmax(0, fmin(next, stop_ms)));
    taken = news ? taken + 1 : 0;
    if (!due || (news && taken < MOST_MESSAGES)) continue;
    double begin = lp_now_ms();
    int64_t rows = worker_pass_run(worker);
    worker_mail_deliver(worker);
    if (rows > 0) {
      lp_pace_note(&worker->pace, rows, lp_now_ms() - begin);
      worker_note_pass(worker, rows, lp_now_ms() - begin);
    }
    taken = 0;
  }
  if (!lp_ranks_have_ended(worker->bundle)) return LP_OK;
  return lp_error(worker->diag, LP_LOC_FILE(worker->bundle->manifest.file),
                  "a rank of the half has ended, and so does the worker");
}

static lp_status check_bundle(const lp_bundle *bundle, lp_place place, lp_diag *diag) {
  if (place > LP_SIDE_DEVICE && place < bundle->manifest.place_count && bundle->side[place].loaded)
    return lp_ranks_check(bundle, place, diag);
  return lp_error(diag, LP_LOC_FILE(bundle->manifest.file), "the bundle has no cloud side to serve");
}

static void prepare_passes(lp_worker *worker) {
  int32_t count = worker->bundle->manifest.program_count;
  worker->batch = lp_batch_create(worker->bundle, worker->place, worker->pool);
  worker->code = lp_alloc(((size_t)count + 1) * sizeof *worker->code);
  for (int32_t i = 0; i < count; i++)
    worker->code[i] = lp_program_code(worker->bundle, worker->place, i);
}

lp_status lp_worker_serve(const lp_bundle *bundle, const lp_worker_options *options, const volatile int *stop,
                          lp_diag *diag) {
  lp_place place = options->place > 0 ? options->place : LP_SIDE_CLOUD;
  LP_TRY(check_bundle(bundle, place, diag));
  lp_worker worker = {
      .bundle = bundle, .place = place, .options = options, .diag = diag, .pace.stretch = options->prompt_stretch};
  worker.self = (lp_endpoint){.bundle_hash = bundle->manifest.hash, .security = &worker.security};
  if (bundle->manifest.place_count > LP_SIDE_COUNT) worker.self.place = bundle->manifest.place_name[place];
  if (lp_halves_find(bundle, &worker.halves, &worker.whole)) {
    worker.link = lp_halves_link(&worker.halves, place);
    worker.whole = worker.link < 0 ? "this place has no part in them" : NULL;
  }
  LP_OWNED(lp_free_at) char *host = NULL;
  int port = 0;
  lp_status status = worker_store_open(&worker, diag);
  if (status == LP_OK) status = open_link(&worker, &port, &host, diag);
  if (status == LP_OK) status = worker_forward_start(&worker, diag);
  if (status == LP_OK) {
    worker.pool = lp_pool_create(options->threads);
    prepare_passes(&worker);
    if (options->on_listening) options->on_listening(options->user, host, port);
    status = lp_bundle_await_check(bundle, diag);
    if (status == LP_OK) status = serve(&worker, lp_address_is_loopback(host), stop);
  }
  worker_note_end(&worker);
  while (worker.sessions.count > 0)
    worker_session_close(&worker, worker.sessions.data[0]);
  worker_context_close_all(&worker);
  lp_vec_free(&worker.sessions);
  lp_vec_free(&worker.contexts);
  lp_vec_free(&worker.peers);
  worker_forward_stop(&worker);
  lp_wire_close(worker.wire);
  lp_security_close(&worker.security);
  for (size_t i = 0; i < worker.earlier.count; i++)
    lp_security_close(&worker.earlier.data[i]);
  lp_vec_free(&worker.earlier);
  worker_pass_free(&worker);
  lp_batch_free(worker.batch);
  lp_pool_free(worker.pool);
  free(worker.code);
  lp_buf_free(&worker.scratch);
  lp_buf_free(&worker.rows);
  free(worker.sample);
  return status;
}
