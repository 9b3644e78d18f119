/* Order in the messages of sessions with a route: see mail.h. */
#include "runtime/worker/mail.h"

#include "runtime/bundle/bundle.h"
#include "runtime/exec/state.h"
#include "runtime/worker/budget.h"
#include "runtime/worker/held.h"
#include "runtime/worker/peer.h"
#include "runtime/worker/queue.h"
#include "runtime/worker/reply.h"
#include "runtime/worker/session.h"

/* The most letters that wait: a device has one run under way, and at most another one that is not over everywhere. */
enum { MOST_LETTERS = 1024 };

static const Lp__Wire__Step *step_of(const lp_inbound *in) {
  const Lp__Wire__Message *message = in->message;
  return message->kind_case == LP__WIRE__MESSAGE__KIND_STEP ? message->step : message->forward->step;
}

/* Ends the session's run; the device opens another session. */
static void break_off(lp_worker *worker, worker_session *session, const char *text, bool lost) {
  if (lost)
    worker_tell_lost(worker, session->peer, session->id, text);
  else
    worker_refuse(worker, session->peer, session->id, text);
  session->broken = true;
  session->next = -1;
  worker_queue_drop(session);
  worker_session_drop_mail(session);
}

/* ---- deliveries -------------------------------------------------------------------------------------------------- */

static void remove_letter(worker_session *session, size_t index) {
  worker_letter *gone = &session->mail.data[index];
  session->mail_bytes -= gone->in.payload_size;
  lp_inbound_release(&gone->in);
  *gone = session->mail.data[--session->mail.count];
}

/* Begins the run of a letter. */
static lp_status begin(lp_worker *worker, worker_session *session, const worker_letter *letter, lp_diag *diag) {
  const Lp__Wire__Step *step = step_of(&letter->in);
  Lp__Wire__Step bare = *step;
  bare.step = -1;
  session->run = letter->run;
  memcpy(session->last, step->last, step->n_last * sizeof *session->last);
  return worker_session_step(worker, session, &bare, &letter->in, diag);
}

/* The payload belongs to the run that its first message described. */
static bool fits(const worker_session *session, const Lp__Wire__Step *step) {
  return step->program == (uint32_t)session->program && (step->want_outputs != 0) == session->want_outputs &&
         memcmp(step->symbols, session->sym, step->n_symbols * sizeof *step->symbols) == 0;
}

static lp_status take(lp_worker *worker, worker_session *session, const worker_letter *letter, lp_diag *diag) {
  const Lp__Wire__Step *step = step_of(&letter->in);
  if (!fits(session, step)) return lp_error(diag, LP_LOC_NONE, "the messages of a run differ in program or sizes");
  session->carried_ms += letter->busy_ms;
  return worker_session_step(worker, session, step, &letter->in, diag);
}

static bool begins(const lp_worker *worker, const worker_session *session, const worker_letter *letter) {
  return letter->run > session->run && step_of(&letter->in)->last[worker->place] == session->run;
}

/* Removes the letters of runs that are over, and those that would begin the run that has begun. */
static void clear_old(worker_session *session) {
  for (size_t i = session->mail.count; i-- > 0;) {
    const worker_letter *letter = &session->mail.data[i];
    bool over = session->next < 0 || letter->step < 0;
    if (letter->run < session->run || (letter->run == session->run && over)) remove_letter(session, i);
  }
}

/* Handles one letter whose turn has come; false: there is none. */
static bool deliver_one(lp_worker *worker, worker_session *session) {
  bool rests = session->next < 0;
  if (session->queued.waits || session->broken || (rests && session->stream.goes_on)) return false;
  clear_old(session);
  for (size_t i = 0; i < session->mail.count; i++) {
    const worker_letter *letter = &session->mail.data[i];
    bool first = rests && begins(worker, session, letter);
    if (!first && (rests || letter->run != session->run || letter->step != session->next)) continue;
    bool lost = session->dropped && step_of(&letter->in)->symbols[LP_SYM_P] > 0;
    LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
    lp_status status = first ? begin(worker, session, letter, diag) : take(worker, session, letter, diag);
    if (status != LP_OK)
      break_off(worker, session, lp_diag_count(diag) > 0 ? lp_diag_get(diag, 0)->text : "unknown failure", lost);
    else if (!first)
      remove_letter(session, i);
    return status == LP_OK;
  }
  return false;
}

static void deliver(lp_worker *worker, worker_session *session) {
  while (deliver_one(worker, session))
    ;
}

void worker_mail_deliver(lp_worker *worker) {
  for (size_t i = 0; i < worker->sessions.count; i++)
    if (worker->sessions.data[i]->mail.count > 0) deliver(worker, worker->sessions.data[i]);
}

/* ---- letters that come ------------------------------------------------------------------------------------------- */

/* Tells whether the letter is of a run that is over, of a step that has its payload, or here already. */
static bool is_late(const worker_session *session, uint64_t run, int32_t step) {
  if (session->broken || run < session->run) return true;
  bool under_way = session->next >= 0;
  if (run == session->run && (step < 0 || (under_way && step < session->next))) return true;
  if (run == session->run && !under_way && !session->dropped) return true;
  for (size_t i = 0; i < session->mail.count; i++)
    if (session->mail.data[i].run == run && session->mail.data[i].step == step) return true;
  return false;
}

/* Checks a letter before it is kept; its payload has the size that the step takes. `from`: the place that sends it. */
static lp_status check(const lp_worker *worker, const worker_session *session, const lp_inbound *in, lp_place from,
                       lp_diag *diag) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  const Lp__Wire__Step *step = step_of(in);
  size_t wanted = 0;
  LP_TRY(worker_session_check(worker, step, diag));
  if (step->run == 0 || step->n_last != (size_t)manifest->place_count || step->last[worker->place] >= step->run)
    return lp_error(diag, LP_LOC_NONE, "a message without the numbers of its run");
  if (session->mail.count >= MOST_LETTERS) return lp_error(diag, LP_LOC_NONE, "too many messages before their turn");
  if (step->step < 0) return LP_OK;
  if (step->step >= manifest->programs[step->program].step_count)
    return lp_error(diag, LP_LOC_NONE, "there is no step %" PRId32, step->step);
  const lp_step *at = &manifest->programs[step->program].step[step->step];
  lp_place sender = at->kind == LP_STEP_INPUT ? LP_SIDE_DEVICE : at->side;
  if (!worker_step_takes_payload(worker, at) || sender != from)
    return lp_error(diag, LP_LOC_NONE, "step %" PRId32 " takes nothing from '%s' here", step->step,
                    manifest->place_name[from]);
  bool known = at->kind == LP_STEP_MOVE
                   ? lp_states_rows_bytes(&session->executor->states, at->state, step->symbols, &wanted)
                   : lp_tensor_bytes(&at->tensor, step->symbols, manifest->symbol_count, &wanted);
  if (!known || wanted != in->payload_size)
    return lp_error(diag, LP_LOC_NONE, "a payload of %zu bytes came for step %" PRId32 "; wanted %zu", in->payload_size,
                    step->step, wanted);
  return worker_admit_letter(worker, session, in->payload_size, diag);
}

static void file(lp_worker *worker, worker_session *session, lp_inbound *in, lp_place from, double busy_ms) {
  const Lp__Wire__Step *step = step_of(in);
  if (is_late(session, step->run, step->step)) return;
  if (session->dropped && session->run > 0 && step->run == session->run) {
    break_off(worker, session, "the context was dropped: idle, or over the budget", true);
    return;
  }
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  if (check(worker, session, in, from, diag) == LP_OK) {
    worker_letter letter = {.run = step->run, .step = step->step, .busy_ms = busy_ms, .in = *in};
    *in = (lp_inbound){0};
    session->mail_bytes += letter.in.payload_size;
    lp_vec_push(&session->mail, letter);
    deliver(worker, session);
  } else {
    break_off(worker, session, lp_diag_count(diag) > 0 ? lp_diag_get(diag, 0)->text : "unknown failure", false);
  }
}

void worker_mail_take_step(lp_worker *worker, worker_session *session, lp_inbound *in) {
  file(worker, session, in, LP_SIDE_DEVICE, 0);
}

void worker_mail_take_forward(lp_worker *worker, lp_inbound *in) {
  const Lp__Wire__Forward *forward = in->message->forward;
  worker_peer *peer = worker_peer_of(worker, in->packet.peer);
  if (peer->from == LP_SIDE_DEVICE || !forward->step) {
    worker_peer_reject(worker, peer->id, WORKER_REFUSED_PLACE, "it forwards, and has not said for which place");
    return;
  }
  worker_session *session = worker_session_routed(worker, forward->route);
  if (session) file(worker, session, in, peer->from, forward->busy_ms);
}

void worker_mail_take_peer(lp_worker *worker, uint32_t id, const Lp__Wire__Peer *message) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  worker_peer *peer = worker_peer_of(worker, id);
  lp_place from = lp_place_find(manifest->place_name, manifest->place_count, message->from);
  if (from <= LP_SIDE_DEVICE || from == worker->place || peer->from != LP_SIDE_DEVICE)
    worker_peer_reject(worker, id, WORKER_REFUSED_PLACE, "it says to be a place that it cannot be");
  else if (!lp_streq(message->to, manifest->place_name[worker->place]))
    worker_peer_reject(worker, id, WORKER_REFUSED_PLACE, "it wants another place than this worker serves");
  else
    peer->from = from;
}
