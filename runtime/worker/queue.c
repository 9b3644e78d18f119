/* Runs of sessions that wait for a batched pass: their payloads, and the tokens that each pass takes of them. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/executor.h"
#include "runtime/link/link.h"
#include "runtime/worker/queue.h"

bool worker_step_takes_payload(const lp_step *step) {
  if (step->to != LP_SIDE_CLOUD) return false;
  return step->kind == LP_STEP_INPUT || (step->side == LP_SIDE_DEVICE);
}

static const lp_program *program_of(const lp_worker *worker, int32_t program) {
  return &worker->bundle->manifest.programs[program];
}

/* Runs can be queued if the program moves no KV cache and takes no payload after its first segment on the cloud, or
 * after its first answer: the device would wait for the answer, and the queue for the payload. */
bool worker_queue_fits(const lp_worker *worker, int32_t program) {
  const lp_program *desc = program_of(worker, program);
  bool begun = false;
  for (int32_t i = 0; i < desc->step_count; i++) {
    const lp_step *step = &desc->step[i];
    if (step->kind == LP_STEP_MOVE || (begun && worker_step_takes_payload(step))) return false;
    begun |= step->kind != LP_STEP_INPUT && step->side == LP_SIDE_CLOUD;
  }
  return worker->batch != NULL;
}

void worker_queue_drop(worker_session *session) {
  session->queued.gathers = session->queued.waits = false;
  lp_buf_free(&session->queued.payload);
}

/* Finds the next step that takes a payload, from step `from` on. After the last payload the run enters the queue. */
static void advance(lp_worker *worker, worker_session *session, int32_t from) {
  const lp_program *program = program_of(worker, session->program);
  while (from < program->step_count && !worker_step_takes_payload(&program->step[from]))
    from++;
  session->next = from < program->step_count ? from : -1;
  if (session->next >= 0) return;
  session->queued.waits = true;
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

/* ---- parts of a long prompt -------------------------------------------------------------------------------------- */

/* Tells whether the program has the same code as a program for decoding, which can begin at any position. */
static bool goes_on(const lp_worker *worker, int32_t program) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  for (int32_t i = 0; i < manifest->plan_count; i++)
    if (worker->code[manifest->plans[i].decode] == worker->code[program]) return true;
  int32_t decode = lp_manifest_program(manifest, "decode");
  return decode >= 0 && worker->code[decode] == worker->code[program];
}

/* Tells whether the run can be divided: it has one sequence and gives one token, and its payloads have a row per
 * token. */
static bool divides(const lp_worker *worker, const worker_session *session) {
  const int64_t *sym = session->queued.sym;
  const lp_program *program = program_of(worker, session->program);
  if (sym[LP_SYM_B] != 1 || sym[LP_SYM_R] != 1 || session->want_outputs) return false;
  for (int32_t i = 0; i < program->step_count; i++) {
    const lp_step *step = &program->step[i];
    if (worker_step_takes_payload(step) && step->rows != LP_ROWS_NEW) return false;
    if (step->side == LP_SIDE_CLOUD && step->kind == LP_STEP_SEND) return false;
  }
  return goes_on(worker, session->program);
}

void worker_queue_part(const lp_worker *worker, const worker_session *session, int64_t sym[LP_MAX_SYMBOLS]) {
  const worker_queued_run *run = &session->queued;
  memcpy(sym, run->sym, sizeof run->sym);
  int64_t left = run->sym[LP_SYM_S] - run->done;
  sym[LP_SYM_P] += run->done;
  sym[LP_SYM_S] = left > LP_PASS_ROWS && divides(worker, session) ? LP_PASS_ROWS : left;
}

lp_status worker_queue_fill(const lp_worker *worker, const worker_session *session, const lp_step *step,
                            const int64_t *sym, size_t *at, lp_span to, lp_diag *diag) {
  const worker_queued_run *run = &session->queued;
  size_t all = 0;
  bool known = payload_bytes(worker, step, run->sym, &all);
  size_t row = known && run->sym[LP_SYM_S] > 0 ? all / (size_t)run->sym[LP_SYM_S] : 0;
  size_t first = *at + row * (size_t)run->done;
  bool part = sym[LP_SYM_S] != run->sym[LP_SYM_S];
  if (!known || to.size != (part ? row * (size_t)sym[LP_SYM_S] : all) || first + to.size > run->payload.size)
    return lp_error(diag, LP_LOC_NONE, "'%.80s' is not what its buffer takes", step->tensor.name);
  if (to.size > 0) memcpy(to.data, run->payload.data + first, to.size);
  *at += all;
  return LP_OK;
}

bool worker_queue_ends(const worker_session *session, const int64_t *sym) {
  return session->queued.done + sym[LP_SYM_S] == session->queued.sym[LP_SYM_S];
}

void worker_queue_passed(lp_worker *worker, worker_session *session, const int64_t *sym, double ms) {
  worker_queued_run *run = &session->queued;
  bool ends = worker_queue_ends(session, sym);
  run->done += sym[LP_SYM_S];
  run->busy_ms += ms;
  run->ticket = ++worker->ticket;
  session->used_ms = lp_now_ms();
  if (!ends) return;
  session->position = run->sym[LP_SYM_P] + run->sym[LP_SYM_S];
  worker_queue_drop(session);
}
