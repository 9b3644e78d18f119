/* Runs of sessions that wait for a batched pass: their payloads, and the tokens that each pass takes of them. */

#include "runtime/worker/queue.h"
#include "base/clock.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/executor.h"
#include "runtime/link/link.h"
#include "runtime/worker/share.h"

bool worker_step_takes_payload(const lp_worker *worker, const lp_step *step) {
  return step->to == worker->place && (step->kind == LP_STEP_INPUT || step->side != worker->place);
}

static const lp_program *program_of(const lp_worker *worker, int32_t program) {
  return &worker->bundle->manifest.programs[program];
}

/* Runs can be queued if the program moves no KV cache from here or to here, and takes no payload after its first
 * segment at this place, or after its first answer: the device would wait for the answer, and the queue for the
 * payload. */
bool worker_queue_fits(const lp_worker *worker, int32_t program) {
  const lp_program *desc = program_of(worker, program);
  bool begun = false;
  LP_FOR_EACH(const lp_step, step, desc->step, desc->step_count) {
    bool here = step->side == worker->place || step->to == worker->place;
    if ((here && step->kind == LP_STEP_MOVE) || (begun && worker_step_takes_payload(worker, step))) return false;
    begun |= step->kind != LP_STEP_INPUT && step->side == worker->place;
  }
  return worker->batch != NULL;
}

void worker_queue_drop(worker_session *session) {
  worker_queued_run *run = &session->queued;
  run->gathers = run->waits = false;
  lp_buf_free(&run->payload);
  for (int32_t i = 0; i < run->result_count; i++)
    lp_buf_free(&run->result[i]);
  free(run->result);
  run->result = NULL;
  run->result_count = 0;
}

/* Finds the next step that takes a payload, from step `from` on. After the last payload the run enters the queue. */
static void advance(lp_worker *worker, worker_session *session, int32_t from) {
  const lp_program *program = program_of(worker, session->program);
  while (from < program->step_count && !worker_step_takes_payload(worker, &program->step[from]))
    from++;
  session->next = from < program->step_count ? from : -1;
  if (session->next >= 0) return;
  session->queued.waits = true;
  worker_share_enter(worker, session->peer);
  session->queued.ticket = ++worker->ticket;
  session->queued.asked_ms = lp_now_ms();
}

void worker_queue_begin(lp_worker *worker, worker_session *session, const int64_t *sym) {
  worker_queued_run *run = &session->queued;
  size_t count = (size_t)worker->bundle->manifest.symbol_count;
  memcpy(run->sym, sym, count * sizeof *sym);
  run->done = 0;
  run->busy_ms = 0;
  lp_buf_clear(&run->payload);
  run->gathers = true;
  advance(worker, session, 0);
}

static bool payload_bytes(const lp_worker *worker, const lp_step *step, const int64_t *sym, size_t *bytes) {
  return lp_tensor_bytes(&step->tensor, sym, worker->bundle->manifest.symbol_count, bytes);
}

lp_status worker_queue_take(lp_worker *worker, worker_session *session, const lp_step *step, const lp_inbound *in,
                            lp_diag *diag) {
  size_t wanted = 0;
  if (!payload_bytes(worker, step, session->queued.sym, &wanted))
    return lp_error(diag, LP_LOC_NONE, "the size of '%.80s' is negative or too large", step->tensor.name);
  LP_TRY(lp_payload_check(&worker->bundle->manifest, step, wanted, in->payload, in->payload_size, diag));
  if (wanted > 0) lp_buf_append(&session->queued.payload, in->payload, wanted);
  advance(worker, session, session->next + 1);
  return LP_OK;
}

/* ---- parts of a run ---------------------------------------------------------------------------------------------- */

/* Tells whether the program has the same code as a program for decoding, which can begin at any position. */
static bool goes_on(const lp_worker *worker, int32_t program) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  for (int32_t i = 0; i < manifest->plan_count; i++)
    if (worker->code[manifest->plans[i].decode] == worker->code[program]) return true;
  int32_t decode = lp_manifest_program(manifest, "decode");
  return decode >= 0 && worker->code[decode] == worker->code[program];
}

/* Tells whether the payloads have a row per token, and what the device wants has rows of tokens. */
static bool is_row_wise(const lp_worker *worker, const worker_session *session) {
  const lp_program *program = program_of(worker, session->program);
  LP_FOR_EACH(const lp_step, step, program->step, program->step_count) {
    if (worker_step_takes_payload(worker, step) && step->rows != LP_ROWS_NEW) return false;
    bool gives = step->kind == LP_STEP_SEND || (step->kind == LP_STEP_OUTPUT && session->want_outputs);
    if (step->side == worker->place && gives && step->rows == LP_ROWS_NONE) return false;
  }
  return true;
}

/* Tells whether the tokens of a sequence may pass one after the other: the run gives one row of logits for each. */
static bool divides_tokens(const lp_worker *worker, const worker_session *session) {
  return session->queued.sym[LP_SYM_R] == 1 && goes_on(worker, session->program);
}

void worker_queue_part(const lp_worker *worker, const worker_session *session, int64_t most, lp_batch_member *part) {
  const worker_queued_run *run = &session->queued;
  int64_t batch = run->sym[LP_SYM_B], length = run->sym[LP_SYM_S];
  int64_t sequence = run->done / length, token = run->done % length, tokens = length - token;
  bool some = is_row_wise(worker, session) && (batch == 1 || lp_batch_takes_part(worker->batch));
  *part = (lp_batch_member){0};
  memcpy(part->sym, run->sym, sizeof run->sym);
  if (!some || (run->done == 0 && batch * length <= most)) return;
  int64_t sequences = token > 0 ? 1 : batch - sequence;
  if (sequences * tokens > most) sequences = tokens < most ? most / tokens : 1;
  if (tokens > most && divides_tokens(worker, session)) tokens = most;
  part->first = sequence;
  part->of = batch > 1 ? batch : 0;
  part->sym[LP_SYM_B] = sequences;
  part->sym[LP_SYM_P] += token;
  part->sym[LP_SYM_S] = tokens;
}

static int64_t rows_of(const int64_t *sym) {
  return sym[LP_SYM_B] * sym[LP_SYM_S];
}

lp_status worker_queue_fill(const lp_worker *worker, const worker_session *session, const lp_step *step,
                            const lp_batch_member *part, size_t *at, lp_span to, lp_diag *diag) {
  const worker_queued_run *run = &session->queued;
  size_t all = 0;
  bool known = payload_bytes(worker, step, run->sym, &all);
  size_t row = known && rows_of(run->sym) > 0 ? all / (size_t)rows_of(run->sym) : 0;
  size_t first = *at + row * (size_t)run->done;
  bool some = rows_of(part->sym) != rows_of(run->sym);
  if (!known || to.size != (some ? row * (size_t)rows_of(part->sym) : all) || first + to.size > run->payload.size)
    return lp_error(diag, LP_LOC_NONE, "'%.80s' is not what its buffer takes", step->tensor.name);
  if (to.size > 0) memcpy(to.data, run->payload.data + first, to.size);
  *at += all;
  return LP_OK;
}

bool worker_queue_has_last(const worker_session *session, const lp_batch_member *part) {
  const int64_t *whole = session->queued.sym;
  return part->sym[LP_SYM_P] + part->sym[LP_SYM_S] == whole[LP_SYM_P] + whole[LP_SYM_S];
}

bool worker_queue_ends(const worker_session *session, const lp_batch_member *part) {
  return session->queued.done + rows_of(part->sym) == rows_of(session->queued.sym);
}

lp_buf *worker_queue_result(const lp_worker *worker, worker_session *session, int32_t index) {
  worker_queued_run *run = &session->queued;
  if (!run->result) {
    run->result_count = program_of(worker, session->program)->step_count;
    run->result = lp_alloc((size_t)run->result_count * sizeof *run->result);
  }
  return &run->result[index];
}

void worker_queue_passed(lp_worker *worker, worker_session *session, const lp_batch_member *part, double ms) {
  worker_queued_run *run = &session->queued;
  bool ends = worker_queue_ends(session, part);
  run->done += rows_of(part->sym);
  run->busy_ms += ms;
  run->ticket = ++worker->ticket;
  session->used_ms = lp_now_ms();
  if (!ends) return;
  session->position = run->sym[LP_SYM_P] + run->sym[LP_SYM_S];
  worker_queue_drop(session);
}
