/* Contexts of early exits on the worker. Devices send rows and questions; a question waits until its rows have come. */
#include <math.h>

#include "base/clock.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exits/context.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"
#include "runtime/worker/budget.h"
#include "runtime/worker/context.h"
#include "runtime/worker/figures.h"
#include "runtime/worker/forward.h"
#include "runtime/worker/held.h"
#include "runtime/worker/peer.h"
#include "runtime/worker/reply.h"
#include "runtime/worker/share.h"
#include "runtime/worker/store.h"

/* An idle context is dropped after one idle time and closed after FORGET_AFTER of them. */
enum { MOST_CAPACITY = 1 << 24, FORGET_AFTER = 10 };
/* After this time a waiting question reminds the device of the rows: its connection for rows may be broken. */
static const double remind_ms = 500;

static int64_t most_capacity(const lp_worker *worker) {
  return worker->bundle->manifest.context_length > 0 ? worker->bundle->manifest.context_length : MOST_CAPACITY;
}

/* Tells whether this place has the logits, and answers questions; others pass rows on. */
static bool is_last(const lp_worker *worker) {
  return worker->link + 1 == worker->halves.links;
}

static worker_context *add(lp_worker *worker, uint64_t id, lp_context *context) {
  worker_context *made = lp_alloc(sizeof *made);
  made->id = id;
  made->context = context;
  lp_vec_push(&worker->contexts, made);
  return made;
}

/* Tells whether there is room for a context that was restored. */
static bool fits(lp_worker *worker, const lp_context *context) {
  size_t wanted = 0;
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  return lp_context_bytes_wanted(context, &wanted) && worker_make_room(worker, wanted, NULL, quiet) == LP_OK;
}

/* Finds a context in memory, or else on disk; NULL: it is in neither, or there is no room for it. */
static worker_context *find(lp_worker *worker, uint64_t id) {
  lp_context_record record;
  lp_context *context = NULL;
  for (size_t i = 0; i < worker->contexts.count; i++)
    if (worker->contexts.data[i]->id == id) return worker->contexts.data[i];
  if (!worker_has_place(worker) || !worker_store_restore(worker, id, most_capacity(worker), &record, &context))
    return NULL;
  if (!fits(worker, context)) {
    lp_context_free(context);
    return NULL;
  }
  worker_context *found = add(worker, id, context);
  found->answered = record.answered;
  found->answer = record.answer;
  return found;
}

void worker_context_forget_peer(lp_worker *worker, uint32_t peer) {
  LP_FOR_VEC_REFS(worker_context, context, &worker->contexts) {
    if (context->question.peer == peer) context->question.waits = false;
    if (context->peer == peer) context->peer = 0;
  }
}

/* ---- joining and leaving ----------------------------------------------------------------------------------------- */

static lp_status check_join(lp_worker *worker, const Lp__Wire__Join *join, lp_diag *diag) {
  int64_t most = most_capacity(worker);
  if (worker->whole) return lp_error(diag, LP_LOC_NONE, "the bundle cannot run its halves apart: %s", worker->whole);
  LP_TRY(worker_admit(worker, diag));
  if (join->codec == LP_CODEC_AUTO || join->codec >= LP_CODEC_COUNT)
    return lp_error(diag, LP_LOC_NONE, "codec %" PRIu32 " is unknown here", join->codec);
  if (join->capacity >= 1 && join->capacity <= most && join->floor >= 0) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "a context of %" PRId64 " positions; wanted 1 to %" PRId64, join->capacity, most);
}

static lp_status create(lp_worker *worker, uint32_t peer, const Lp__Wire__Join *join, worker_context **out,
                        lp_diag *diag) {
  LP_TRY(check_join(worker, join, diag));
  lp_context_options options = {
      .sampling = {.temperature = join->temperature, .top_k = join->top_k, .top_p = join->top_p, .seed = join->seed},
      .codec = (lp_codec)join->codec,
      .capacity = join->capacity};
  worker_context *made =
      add(worker, join->context, lp_context_create(&worker->halves, worker->link, &options, worker->pool));
  made->context->time = (lp_context_time){join->epoch, join->floor};
  worker_note_opened(worker, WORKER_OF_CONTEXT);
  size_t wanted = 0;
  lp_status status = lp_context_bytes_wanted(made->context, &wanted)
                         ? LP_OK
                         : lp_error(diag, LP_LOC_NONE, "the KV cache asked for is too large");
  size_t budget = worker_budget(worker);
  if (status == LP_OK && wanted > budget) {
    worker_note_refusal(worker, WORKER_REFUSED_BUDGET);
    status = lp_error(diag, LP_LOC_NONE, "a context of %zu bytes exceeds the context budget of %zu", wanted, budget);
  }
  if (status == LP_OK) status = worker_admit_context(worker, peer, wanted, diag);
  if (status != LP_OK) worker_context_close(worker, made);
  *out = made;
  return status;
}

/* Fails for a context with other options: two devices drew the same number, or the device is not one of ours. */
static lp_status check_same(const worker_context *context, const Lp__Wire__Join *join, lp_diag *diag) {
  const lp_context_options *options = &context->context->options;
  if (join->codec == (uint32_t)options->codec && join->capacity == options->capacity && join->floor >= 0) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "the context is another: it has %" PRId64 " positions in codec %s",
                  options->capacity, lp_codec_name(options->codec));
}

static void handle_join(lp_worker *worker, uint32_t peer, const Lp__Wire__Join *join) {
  worker_context *context = find(worker, join->context);
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  lp_status status = !context ? create(worker, peer, join, &context, diag) : check_same(context, join, diag);
  if (status != LP_OK) {
    worker_refuse_with(worker, peer, 0, diag);
  } else {
    context->used_ms = lp_now_ms();
    context->peer = peer;
    context->who = worker_peer_who(worker, peer);
    (void)lp_context_enter(context->context, (lp_context_time){join->epoch, join->floor});
    Lp__Wire__Joined joined = LP__WIRE__JOINED__INIT;
    Lp__Wire__Times times = LP__WIRE__TIMES__INIT;
    context->times = join->times != 0;
    times.asked = times.began = times.sent = context->used_ms;
    joined.times = context->times ? &times : NULL;
    joined.context = join->context;
    joined.have = context->context->held;
    Lp__Wire__Message message = LP_WIRE_MESSAGE(JOINED, .joined = &joined);
    worker_post(worker, peer, &message);
  }
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static void post_answer(lp_worker *worker, uint32_t peer, const worker_context *context) {
  Lp__Wire__Answer answer = LP__WIRE__ANSWER__INIT;
  answer.context = context->id;
  answer.number = context->answered;
  answer.accepted = (uint32_t)context->answer.accepted;
  answer.token = context->answer.sample.token;
  answer.confidence = context->answer.sample.confidence;
  answer.busy_ms = context->answer.busy_ms;
  Lp__Wire__Times times = LP__WIRE__TIMES__INIT;
  times.asked = context->asked_ms;
  times.began = context->ended_ms - context->answer.busy_ms;
  times.sent = lp_now_ms();
  if (context->times && context->ended_ms > 0) answer.times = &times;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(ANSWER, .answer = &answer);
  worker_post(worker, peer, &message);
}

/* Tells the device which rows are missing, from position `from` on; -1: the worker does not know the context. */
static void post_lack(lp_worker *worker, uint32_t peer, uint64_t context, int64_t from) {
  Lp__Wire__Lack lack = LP__WIRE__LACK__INIT;
  lack.context = context;
  lack.from = from;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(LACK, .lack = &lack);
  worker_post(worker, peer, &message);
}

lp_question worker_context_question(const worker_context *context) {
  return (lp_question){
      .draft = context->question.draft, .count = context->question.count, .end = context->question.end};
}

static lp_status compute_answer(lp_worker *worker, worker_context *context, lp_diag *diag) {
  size_t wanted = 0;
  if (!lp_context_bytes_wanted(context->context, &wanted))
    return lp_error(diag, LP_LOC_NONE, "the KV cache asked for is too large");
  LP_TRY(worker_make_room(worker, wanted, context, diag));
  lp_question question = worker_context_question(context);
  int64_t before = context->context->consumed;
  double begin = lp_now_ms();
  LP_TRY(lp_context_ask(context->context, &question, &context->answer, diag));
  context->answer.busy_ms = lp_now_ms() - begin;
  if (!is_last(worker)) worker_forward_rows(worker, context, before, context->answer.busy_ms);
  worker_note_pass(worker, context->context->consumed - before, context->answer.busy_ms);
  return LP_OK;
}

static void settle(lp_worker *worker, worker_context *context, lp_status status, const lp_diag *diag) {
  context->question.waits = false;
  if (status == LP_OK && !is_last(worker)) {
    context->answered = context->question.number;
  } else if (status == LP_OK) {
    context->answer.busy_ms += context->carried_ms;
    context->carried_ms = 0;
    bool first = context->ended_ms == 0;
    worker_note_answer(worker, WORKER_OF_CONTEXT, first, first ? context->question.asked_ms : context->ended_ms);
    context->answered = context->question.number;
    context->asked_ms = context->question.asked_ms;
    context->ended_ms = lp_now_ms();
    post_answer(worker, context->question.peer, context);
  } else {
    worker_refuse_with(worker, context->question.peer, 0, diag);
  }
  context->used_ms = lp_now_ms();
}

void worker_context_fail(lp_worker *worker, worker_context *context, const lp_diag *diag) {
  settle(worker, context, LP_FAILED, diag);
}

void worker_context_finish(lp_worker *worker, worker_context *context) {
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  lp_question question = worker_context_question(context);
  lp_status status = lp_context_judge(context->context, &question, &context->answer, diag);
  context->answer.busy_ms = context->question.busy_ms;
  settle(worker, context, status, diag);
}

/* Puts a question into the queue once all its rows are here, or answers it at once when there are no batched passes. */
static void answer_if_ready(lp_worker *worker, worker_context *context) {
  if (!context->question.waits || !lp_context_is_ready(context->context, context->question.end)) return;
  if (worker->batch) {
    if (context->question.ticket != 0) return;
    context->question.ticket = ++worker->ticket;
    worker_share_enter(worker, context->question.peer);
    return;
  }
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  settle(worker, context, compute_answer(worker, context, diag), diag);
}

static const char *question_problem(const worker_context *context, const Lp__Wire__Ask *ask) {
  int64_t capacity = context->context->options.capacity;
  if (ask->end < 1 || ask->end > capacity || ask->n_draft >= (size_t)ask->end) return "the question is out of range";
  return ask->number == 0 || ask->floor < 0 ? "the question is out of range" : NULL;
}

/* Tells whether a question is older than another one, or of an older epoch: the device no longer waits for its
 * answer. */
static bool is_late(const worker_context *context, const Lp__Wire__Ask *ask) {
  return ask->number < context->answered || (context->question.waits && ask->number < context->question.number) ||
         ask->epoch < context->context->time.epoch;
}

static void handle_ask(lp_worker *worker, uint32_t peer, worker_context *context, const Lp__Wire__Ask *ask) {
  if (ask->number != 0 && ask->number == context->answered) {
    if (is_last(worker)) post_answer(worker, peer, context);
    return;
  }
  const char *problem = question_problem(context, ask);
  if (problem) {
    worker_refuse(worker, peer, 0, problem);
    return;
  }
  if (is_late(context, ask)) return;
  bool again = context->question.waits && context->question.number == ask->number;
  (void)lp_context_enter(context->context, (lp_context_time){ask->epoch, ask->floor});
  context->question.waits = true;
  context->question.peer = peer;
  context->question.number = ask->number;
  context->question.end = ask->end;
  context->question.count = (int64_t)ask->n_draft;
  context->question.draft = lp_realloc(context->question.draft, (ask->n_draft + 1) * sizeof *ask->draft);
  if (ask->n_draft > 0) memcpy(context->question.draft, ask->draft, ask->n_draft * sizeof *ask->draft);
  context->question.since_ms = lp_now_ms();
  if (!again) {
    context->question.asked_ms = context->question.since_ms;
    context->question.ticket = 0;
    context->question.busy_ms = 0;
  }
  /* Reminds a device that repeats a question of the missing rows: the rows that it sent may be lost. */
  bool ready = lp_context_is_ready(context->context, context->question.end);
  if (context->lost || (again && !ready)) post_lack(worker, peer, context->id, context->context->held);
  context->lost = false;
  answer_if_ready(worker, context);
}

/* The place whose rows this one takes. */
static lp_place giver(const lp_worker *worker) {
  return worker->link > 0 ? worker->halves.chain[worker->link - 1] : LP_SIDE_DEVICE;
}

static void handle_rows(lp_worker *worker, uint32_t peer, worker_context *context, const lp_inbound *in) {
  const Lp__Wire__Rows *rows = in->message->rows;
  const lp_place from = worker_peer_of(worker, peer)->from;
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  lp_context_time time = {rows->epoch, rows->floor};
  lp_status status = LP_OK;
  if (from != giver(worker))
    status = lp_error(diag, LP_LOC_NONE, "this place takes rows from '%s', not from '%s'",
                      worker->bundle->manifest.place_name[giver(worker)], worker->bundle->manifest.place_name[from]);
  if (status == LP_OK)
    status = lp_context_upload(context->context, time, rows->first, rows->count, in->payload, in->payload_size, diag);
  if (status == LP_OK && rows->busy_ms > 0) context->carried_ms += rows->busy_ms;
  if (status == LP_OK)
    answer_if_ready(worker, context);
  else /* a place is not to blame for what its device asks of it */
    worker_refuse_with(worker, from == LP_SIDE_DEVICE ? peer : context->peer, 0, diag);
}

/* The next place lacks rows: sends them again, or runs the text again where they are no longer here. */
static void handle_lack(lp_worker *worker, uint32_t peer, worker_context *context, int64_t from) {
  lp_context *of = context->context;
  int64_t count = 0;
  if (is_last(worker)) {
    worker_refuse(worker, peer, 0, "no place takes rows from this one");
    return;
  }
  if (context->question.waits || worker_forward_is_busy(worker)) return; /* they are under way */
  (void)lp_context_kept(of, from, &count);
  if (count < 0)
    lp_context_drop(of);
  else
    worker_forward_rows(worker, context, from, 0);
  if (of->consumed >= context->question.end) return;
  context->question.waits = true;
  context->question.peer = peer;
  context->question.since_ms = lp_now_ms();
  context->question.ticket = 0;
  context->question.busy_ms = 0;
  context->lost = false;
  if (!lp_context_is_ready(of, context->question.end)) post_lack(worker, peer, context->id, of->held);
  answer_if_ready(worker, context);
}

static void leave(lp_worker *worker, worker_context *context) {
  worker_store_forget(worker, context->id);
  worker_context_close(worker, context);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static uint64_t context_of(const Lp__Wire__Message *message) {
  switch (message->kind_case) {
  case LP__WIRE__MESSAGE__KIND_ROWS:
    return message->rows->context;
  case LP__WIRE__MESSAGE__KIND_ASK:
    return message->ask->context;
  case LP__WIRE__MESSAGE__KIND_LEAVE:
    return message->leave->context;
  case LP__WIRE__MESSAGE__KIND_LACK:
    return message->lack->context;
  default:
    return 0;
  }
}

bool worker_context_handle(lp_worker *worker, const lp_inbound *in) {
  const Lp__Wire__Message *message = in->message;
  uint32_t peer = in->packet.peer;
  Lp__Wire__Message__KindCase kind = message->kind_case;
  if (kind == LP__WIRE__MESSAGE__KIND_JOIN) {
    handle_join(worker, peer, message->join);
    return true;
  }
  bool rows = kind == LP__WIRE__MESSAGE__KIND_ROWS, ask = kind == LP__WIRE__MESSAGE__KIND_ASK;
  bool lack = kind == LP__WIRE__MESSAGE__KIND_LACK;
  if (!rows && !ask && !lack && kind != LP__WIRE__MESSAGE__KIND_LEAVE) return false;
  worker_context *context = find(worker, context_of(message));
  if (!context) {
    if (ask) post_lack(worker, peer, message->ask->context, -1);
    return true; /* these rows came after the context had ended */
  }
  context->used_ms = lp_now_ms();
  if (rows)
    handle_rows(worker, peer, context, in);
  else if (ask)
    handle_ask(worker, peer, context, message->ask);
  else if (lack)
    handle_lack(worker, peer, context, message->lack->from);
  else
    leave(worker, context);
  return true;
}

double worker_context_tend(lp_worker *worker) {
  double now = lp_now_ms(), idle = worker->options->idle_ms, next = INFINITY;
  for (size_t i = worker->contexts.count; i-- > 0;) {
    worker_context *context = worker->contexts.data[i];
    bool lacks = context->question.waits && !lp_context_is_ready(context->context, context->question.end);
    if (lacks && now - context->question.since_ms >= remind_ms) {
      context->question.since_ms = now;
      post_lack(worker, context->question.peer, context->id, context->context->held);
    }
    if (lacks) next = fmin(next, context->question.since_ms + remind_ms);
    if (idle <= 0 || context->question.waits) continue;
    double unused = now - context->used_ms, last = (double)FORGET_AFTER * idle;
    next = fmin(next, context->used_ms + (unused < idle ? idle : last));
    if (unused >= last)
      worker_context_close(worker, context);
    else if (unused >= idle && lp_context_bytes(context->context) > 0) {
      worker_note_dropped(worker, WORKER_OF_CONTEXT, true);
      worker_context_drop(worker, context);
    }
  }
  return next;
}
