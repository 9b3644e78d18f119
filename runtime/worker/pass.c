/* Runs passes. Requests (runs and questions) wait in one queue: first those of the peer that was served least
 * (share.h), then by tickets, which are numbered in order. A pass takes the first request and others with the same
 * code, up to lp_pace_most rows. A request that the pass did not finish takes a new ticket, so that a long prompt
 * delays others by no more than a pass. A pass never waits for further requests. */
#include "runtime/worker/pass.h"
#include "base/clock.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/fair.h"
#include "runtime/exec/pace.h"
#include "runtime/exec/sampler.h"
#include "runtime/exec/state.h"
#include "runtime/exits/context.h"
#include "runtime/exits/halves.h"
#include "runtime/runtime.h"
#include "runtime/worker/budget.h"
#include "runtime/worker/context.h"
#include "runtime/worker/figures.h"
#include "runtime/worker/forward.h"
#include "runtime/worker/peer.h"
#include "runtime/worker/queue.h"
#include "runtime/worker/session.h"
#include "runtime/worker/share.h"

static int64_t rows_of(const lp_batch_member *part) {
  return part->sym[LP_SYM_B] * part->sym[LP_SYM_S];
}

/* A queued run of a session, or the question of a context. The other pointer is NULL. */
typedef struct {
  worker_session *session;
  worker_context *context;
  uint32_t peer;
  uint64_t ticket;
  int64_t served; /* rows that passes have run for the peer */
  int32_t program;
  lp_cloud_pass part; /* of a context: the rows that this pass runs */
  size_t taken;       /* taken by earlier steps: bytes of a session's payload, or floats of each row of a context */
  size_t given;       /* floats of each row that earlier steps of a context gave for the next place */
  bool failed;
} entry;

typedef LP_VEC(entry) entries;

typedef struct worker_pass {
  lp_worker *worker;
  const lp_program *program;
  entries all;
  int64_t most; /* rows. A run that cannot be divided may have more; then it is the only one. */
  lp_batch_member member[LP_PASS_MOST_SEQUENCES];
  size_t count; /* the first `count` entries of `all` take part */
} pass;

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

static bool context_waits(const lp_worker *worker, const worker_context *context) {
  return worker->batch && context->question.waits && context->question.ticket != 0 &&
         lp_context_is_ready(context->context, context->question.end);
}

bool worker_pass_is_due(const lp_worker *worker) {
  for (size_t i = 0; i < worker->sessions.count; i++)
    if (worker->sessions.data[i]->queued.waits) return true;
  for (size_t i = 0; i < worker->contexts.count; i++)
    if (context_waits(worker, worker->contexts.data[i])) return true;
  return false;
}

static int by_turn(const void *a, const void *b) {
  const entry *x = a, *y = b;
  return lp_fair_compare(x->served, x->ticket, y->served, y->ticket);
}

static void append(pass *p, entry found) {
  found.served = worker_share_served(p->worker, found.peer);
  lp_vec_push(&p->all, found);
}

static void collect(pass *p) {
  lp_worker *worker = p->worker;
  worker_share_begin(worker);
  LP_FOR_VEC_REFS(worker_session, session, &worker->sessions) {
    entry found = {.session = session, .peer = session->peer};
    found.ticket = session->queued.ticket;
    found.program = session->program;
    if (session->queued.waits) append(p, found);
  }
  LP_FOR_VEC_REFS(worker_context, context, &worker->contexts) {
    entry found = {.context = context, .peer = context->question.peer, .ticket = context->question.ticket};
    found.program = lp_halves_program(&worker->halves, context->context->consumed);
    if (context_waits(worker, context)) append(p, found);
  }
  if (p->all.count > 1) qsort(p->all.data, p->all.count, sizeof(entry), by_turn);
}

static void fail(pass *p, entry *e, const lp_diag *diag) {
  if (e->session)
    worker_session_fail(p->worker, e->session, diag);
  else
    worker_context_fail(p->worker, e->context, diag);
  e->failed = true;
}

static lp_states *states_of(const entry *e) {
  return e->session ? &e->session->executor->states : &e->context->context->executor->states;
}

/* Reserves the KV cache of an entry under the budget: that of the whole run, of which the pass may run a part. Those
 * that take part are never dropped for it. *later: it may have room after this pass. */
static lp_status make_room(pass *p, const entry *e, const lp_batch_member *part, bool *later, lp_diag *diag) {
  size_t wanted = 0;
  *later = false;
  if (e->session) {
    LP_TRY(worker_make_session_room(p->worker, e->session, e->session->queued.sym, later, diag));
    return lp_states_reserve(states_of(e), e->session->queued.sym, diag);
  }
  if (!lp_context_bytes_wanted(e->context->context, &wanted))
    return lp_error(diag, LP_LOC_NONE, "the KV cache asked for is too large");
  LP_TRY(worker_make_room(p->worker, wanted, e->context, diag));
  return lp_states_reserve(states_of(e), part->sym, diag);
}

/* Gives an entry's part of this pass, of at most `most` rows if it can be divided; false: there is nothing left to
 * run. */
static bool next_part(const pass *p, entry *e, int64_t most, lp_batch_member *part) {
  *part = (lp_batch_member){0};
  if (e->session) {
    worker_queue_part(p->worker, e->session, most, part);
    return true;
  }
  lp_question question = worker_context_question(e->context);
  if (!lp_context_next(e->context->context, &question, most, &e->part)) {
    worker_context_finish(p->worker, e->context); /* an earlier question has computed the samples */
    return false;
  }
  lp_cloud_pass_symbols(&e->part, part->sym);
  return true;
}

/* The rows that the entries chosen so far have of the peer's client. */
static int64_t rows_of_peer(const pass *p, uint32_t peer) {
  int64_t rows = 0;
  for (size_t i = 0; i < p->count; i++)
    if (worker_peer_same(p->worker, p->all.data[i].peer, peer)) rows += rows_of(&p->member[i]);
  return rows;
}

/* The most rows of the next entry, where the pass has `rows` and may have `all`: so many that each other peer can have
 * one. */
static int64_t most_rows(const pass *p, uint32_t peer, int64_t all, int64_t rows) {
  int64_t own = rows_of_peer(p, peer), left = all - (p->worker->waiting - 1) - own, room = all - rows;
  if (room < 1) room = own == 0;
  if (left > room) left = room;
  return left < p->most / 2 ? left : p->most / 2;
}

/* Chooses the entries that take part, moves them to the front of `all`, and returns their rows. */
static int64_t choose(pass *p) {
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  int32_t code = p->worker->code[p->all.data[0].program];
  const int64_t waiting = p->worker->waiting, full = p->most > waiting ? p->most : waiting;
  int64_t rows = 0, all = worker_share_most(p->worker, lp_now_ms());
  if (all > full) all = full;
  p->worker->turn = p->all.data[0].served;
  for (size_t i = 0; i < p->all.count && p->count < LP_PASS_MOST_SEQUENCES; i++) {
    entry e = p->all.data[i];
    if (e.session && !e.session->queued.waits) continue; /* it gave way to one before it */
    lp_batch_member *member = &p->member[p->count];
    int64_t most = most_rows(p, e.peer, all, rows);
    if (p->worker->code[e.program] != code || most <= 0 || !next_part(p, &e, most, member)) continue;
    int64_t more = rows_of(member);
    if (p->count > 0 && rows + more > p->most) continue;
    lp_diag_clear(diag);
    bool later;
    if (make_room(p, &e, member, &later, diag) != LP_OK) {
      if (!later) fail(p, &e, diag);
      continue;
    }
    if (e.session) e.session->chosen = true;
    member->states = states_of(&e);
    rows += more;
    p->all.data[p->count++] = e; /* p->count <= i */
  }
  return rows;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static int32_t buffer_of(const pass *p, const lp_step *step) {
  return worker_step_takes_payload(p->worker, step) && step->kind != LP_STEP_INPUT ? step->to_buffer : step->buffer;
}

static lp_status fill(pass *p, size_t i, const lp_step *step, lp_diag *diag) {
  entry *e = &p->all.data[i];
  lp_span to;
  LP_TRY(lp_batch_buffer(p->worker->batch, i, buffer_of(p, step), step, &to, diag));
  if (e->session) return worker_queue_fill(p->worker, e->session, step, &p->member[i], &e->taken, to, diag);
  (void)lp_cloud_pass_fill(&p->worker->halves, &e->part, step, &e->taken, to.data);
  return LP_OK;
}

/* The part of a step's result that an entry needs. */
typedef enum { NOTHING, DRAWN, WHOLE } share;

static share share_of(const pass *p, size_t i, const lp_step *step) {
  const lp_worker *worker = p->worker;
  const entry *e = &p->all.data[i];
  if (e->failed) return NOTHING;
  if (!e->session && step->kind == LP_STEP_SEND) return WHOLE;
  if (!e->session)
    return e->part.wanted > 0 && step->port == lp_manifest_output(&worker->bundle->manifest, LP_ROLE_LOGITS) ? DRAWN
                                                                                                             : NOTHING;
  bool last = worker_queue_has_last(e->session, &p->member[i]);
  if (worker_session_draws(worker, e->session, step)) return last ? DRAWN : NOTHING;
  return worker_session_sends(e->session, step) && (last || step->rows == LP_ROWS_NEW) ? WHOLE : NOTHING;
}

/* The number of greatest logits from which an entry draws; 0: it draws from all logits. */
static int32_t draws_from(const pass *p, size_t i) {
  const entry *e = &p->all.data[i];
  const lp_sampling *sampling = e->session ? &e->session->sampling : &e->context->context->options.sampling;
  return lp_sampler_wants(sampling, p->worker->bundle->manifest.vocab);
}

static bool draws_from_top(const pass *p, size_t i, const lp_step *step) {
  return share_of(p, i, step) == DRAWN && lp_batch_finds_top(p->worker->batch, step) && draws_from(p, i) > 0;
}

/* Fetches the part of the step's result that the entries need: the greatest logits, or the whole result. */
static lp_status fetch(pass *p, const lp_step *step, lp_diag *diag) {
  bool selected[LP_PASS_MOST_SEQUENCES], any = false;
  int32_t most = 0;
  for (size_t i = 0; i < p->count; i++) {
    bool top = draws_from_top(p, i, step);
    selected[i] = !top && share_of(p, i, step) != NOTHING;
    any |= selected[i];
    if (top && draws_from(p, i) > most) most = draws_from(p, i);
  }
  if (most > 0) LP_TRY(lp_batch_find_top(p->worker->batch, step, most, diag));
  return any ? lp_batch_fetch(p->worker->batch, step->buffer, step, selected, diag) : LP_OK;
}

static lp_status emit(pass *p, size_t i, int32_t index, double begin, lp_diag *diag) {
  entry *e = &p->all.data[i];
  const lp_step *step = &p->program->step[index];
  lp_worker *worker = p->worker;
  lp_logits logits;
  lp_span made;
  share wants = share_of(p, i, step);
  if (wants == NOTHING) return LP_OK;
  if (e->session) e->session->busy_from = begin - e->session->queued.busy_ms;
  if (wants == WHOLE) {
    LP_TRY(lp_batch_buffer(worker->batch, i, step->buffer, step, &made, diag));
    if (!e->session) {
      lp_cloud_pass_take(&worker->halves, &e->part, step, &e->given, made.data);
      return LP_OK;
    }
    return worker_session_emit(worker, e->session, index, &p->member[i], &made, diag);
  }
  LP_TRY(lp_batch_logits(worker->batch, i, step, draws_from_top(p, i, step), &logits, diag));
  if (e->session) return worker_session_draw(worker, e->session, index, &p->member[i], &logits, diag);
  lp_context *context = e->context->context;
  lp_cloud_pass_sample(&e->part, &context->options.sampling, &logits, lp_context_samples(context, &e->part),
                       &context->scratch);
  return LP_OK;
}

static bool gives(const pass *p, const lp_step *step) {
  return step->side == p->worker->place && (step->kind == LP_STEP_SEND || step->kind == LP_STEP_OUTPUT);
}

/* Executes an entry's part of a step. False: its payload could not be copied in, so the segments that follow cannot
 * run. */
static bool do_step(pass *p, size_t i, int32_t index, double begin, lp_diag *diag) {
  const lp_step *step = &p->program->step[index];
  bool takes = worker_step_takes_payload(p->worker, step);
  if (p->all.data[i].failed) return true;
  lp_diag_clear(diag);
  lp_status status = takes ? fill(p, i, step, diag) : gives(p, step) ? emit(p, i, index, begin, diag) : LP_OK;
  if (status != LP_OK) fail(p, &p->all.data[i], diag);
  return status == LP_OK || !takes;
}

/* Handles the status of an operation on all entries: a failure fails all of them, and the function returns false. */
static bool together(pass *p, lp_status status, const lp_diag *diag) {
  for (size_t i = 0; status != LP_OK && i < p->count; i++)
    if (!p->all.data[i].failed) fail(p, &p->all.data[i], diag);
  return status == LP_OK;
}

/* False: the pass was given up. The entries that did not fail keep their tickets. */
static bool run_steps(pass *p, double begin, lp_diag *diag) {
  lp_batch *batch = p->worker->batch;
  for (int32_t k = 0; k < p->program->step_count; k++) {
    const lp_step *step = &p->program->step[k];
    lp_diag_clear(diag);
    if (step->kind == LP_STEP_RUN && step->side == p->worker->place &&
        !together(p, lp_batch_run(batch, step, diag), diag))
      return false;
    if (step->kind == LP_STEP_GATHER && !together(p, lp_batch_gather(batch, step, diag), diag)) return false;
    if (gives(p, step) && !together(p, fetch(p, step, diag), diag)) return false;
    for (size_t i = 0; i < p->count; i++)
      if (!do_step(p, i, k, begin, diag)) return false;
    if (worker_step_takes_payload(p->worker, step) &&
        !together(p, lp_batch_bring(batch, buffer_of(p, step), step, diag), diag))
      return false;
  }
  return true;
}

static void finish(pass *p, size_t i, double ms) {
  entry *e = &p->all.data[i];
  worker_share_charge(p->worker, e->peer, rows_of(&p->member[i]));
  if (e->failed) return;
  if (e->session) {
    worker_queue_passed(p->worker, e->session, &p->member[i], ms);
    return;
  }
  lp_context_passed(e->context->context, &e->part);
  if (e->part.made) worker_forward_rows(p->worker, e->context, e->part.past, ms);
  e->context->question.busy_ms += ms;
  e->context->question.ticket = ++p->worker->ticket;
  lp_question question = worker_context_question(e->context);
  if (!lp_context_next(e->context->context, &question, LP_PASS_TURN, &e->part))
    worker_context_finish(p->worker, e->context);
}

/* Notes how long those have waited that no pass has taken before. */
static void note_queued(const pass *p) {
  LP_FOR_EACH(const entry, e, p->all.data, p->count) {
    if (e->session && e->session->queued.done == 0)
      worker_note_queued(p->worker, WORKER_OF_SESSION, e->session->queued.asked_ms);
    if (e->context && e->context->question.busy_ms == 0)
      worker_note_queued(p->worker, WORKER_OF_CONTEXT, e->context->question.asked_ms);
  }
}

static void run(pass *p) {
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  double begin = lp_now_ms();
  note_queued(p);
  int32_t program = p->all.data[0].program;
  p->program = &p->worker->bundle->manifest.programs[program];
  bool ran = together(p, lp_batch_begin(p->worker->batch, program, p->member, p->count, diag), diag) &&
             run_steps(p, begin, diag);
  lp_diag_clear(diag);
  ran = together(p, lp_batch_end(p->worker->batch, diag), diag) && ran;
  double ms = lp_now_ms() - begin;
  for (size_t i = 0; ran && i < p->count; i++)
    finish(p, i, ms);
}

int64_t worker_pass_run(lp_worker *worker) {
  int64_t rows = 0;
  if (!worker->pass) worker->pass = lp_alloc(sizeof *worker->pass);
  pass *p = worker->pass;
  p->worker = worker;
  p->count = p->all.count = 0;
  p->most = lp_pace_most(&worker->pace);
  collect(p);
  if (p->all.count > 0) rows = choose(p);
  if (p->count > 0) run(p);
  for (size_t i = 0; i < p->count; i++)
    if (p->all.data[i].session) p->all.data[i].session->chosen = false;
  return rows;
}

void worker_pass_free(lp_worker *worker) {
  if (!worker->pass) return;
  lp_vec_free(&worker->pass->all);
  free(worker->pass);
  worker->pass = NULL;
}
