/* Runs of sessions that wait for a pass: their payloads, and the tokens that a pass takes of them. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/executor.h"
#include "runtime/link/link.h"
#include "runtime/worker/internal.h"

static const lp_program *program_of(const lp_worker *worker, int32_t program) {
  return &worker->bundle->manifest.programs[program];
}

/* One turn of the cloud, without rows of a KV cache on the way: what it makes is sent, and nothing is waited for in between. */
bool worker_request_fits(const lp_worker *worker, int32_t program) {
  const lp_program *desc = program_of(worker, program);
  bool computes = false;
  for (int32_t i = 0; i < desc->step_count; i++) {
    const lp_step *step = &desc->step[i];
    if (step->kind == LP_STEP_MOVE || (computes && worker_step_takes_payload(step))) return false;
    computes |= step->kind == LP_STEP_RUN && step->side == LP_SIDE_CLOUD;
  }
  return worker->batch != NULL;
}

void worker_request_drop(worker_session *session) {
  session->request.gathers = session->request.waits = false;
  lp_buf_free(&session->request.payload);
}

void worker_request_begin(lp_worker *worker, worker_session *session, const int64_t *sym) {
  worker_request *request = &session->request;
  size_t count = (size_t)worker->bundle->manifest.symbol_count;
  memcpy(request->sym, sym, count * sizeof *sym);
  request->done = 0;
  request->busy_ms = 0;
  lp_buf_clear(&request->payload);
  request->gathers = true;
  worker_request_advance(worker, session, 0);
}

void worker_request_advance(lp_worker *worker, worker_session *session, int32_t from) {
  const lp_program *program = program_of(worker, session->program);
  while (from < program->step_count && !worker_step_takes_payload(&program->step[from]))
    from++;
  session->next = from < program->step_count ? from : -1;
  if (session->next >= 0) return;
  session->request.waits = true;
  session->request.turn = ++worker->turn;
  session->request.asked_ms = lp_now_ms();
}

static bool payload_bytes(const lp_worker *worker, const lp_step *step, const int64_t *sym, size_t *bytes) {
  return lp_tensor_bytes(&step->tensor, sym, worker->bundle->manifest.symbol_count, bytes);
}

lp_status worker_request_take(lp_worker *worker, worker_session *session, const lp_step *step, const lp_inbound *in,
                              lp_diag *diag) {
  size_t wanted = 0;
  if (!payload_bytes(worker, step, session->request.sym, &wanted))
    return lp_error(diag, LP_LOC_NONE, "the size of '%.80s' is negative or too large", step->tensor.name);
  LP_TRY(lp_payload_check(&worker->bundle->manifest, step, wanted, in->payload, in->payload_size, diag));
  if (wanted > 0) lp_buf_append(&session->request.payload, in->payload, wanted);
  worker_request_advance(worker, session, session->next + 1);
  return LP_OK;
}

/* ---- a long prompt by parts ------------------------------------------------------------------------------------------- */

/* Is some program that goes on behind others the same code? */
static bool goes_on(const lp_worker *worker, int32_t program) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  for (int32_t i = 0; i < manifest->plan_count; i++)
    if (worker->code[manifest->plans[i].decode] == worker->code[program]) return true;
  int32_t decode = lp_manifest_program(manifest, "decode");
  return decode >= 0 && worker->code[decode] == worker->code[program];
}

/* The run of one sequence that gives one token, and takes a row for each of its own. */
static bool divides(const lp_worker *worker, const worker_session *session) {
  const int64_t *sym = session->request.sym;
  const lp_program *program = program_of(worker, session->program);
  if (sym[LP_SYM_B] != 1 || sym[LP_SYM_R] != 1 || session->want_outputs) return false;
  for (int32_t i = 0; i < program->step_count; i++) {
    const lp_step *step = &program->step[i];
    if (worker_step_takes_payload(step) && step->rows != LP_ROWS_NEW) return false;
    if (step->side == LP_SIDE_CLOUD && step->kind == LP_STEP_SEND) return false;
  }
  return goes_on(worker, session->program);
}

void worker_request_part(const lp_worker *worker, const worker_session *session, int64_t sym[]) {
  const worker_request *request = &session->request;
  memcpy(sym, request->sym, sizeof request->sym);
  int64_t left = request->sym[LP_SYM_S] - request->done;
  sym[LP_SYM_P] += request->done;
  sym[LP_SYM_S] = left > LP_PASS_ROWS && divides(worker, session) ? LP_PASS_ROWS : left;
}

lp_status worker_request_fill(const lp_worker *worker, const worker_session *session, const lp_step *step,
                              const int64_t *sym, size_t *at, lp_span to, lp_diag *diag) {
  const worker_request *request = &session->request;
  size_t all = 0;
  bool known = payload_bytes(worker, step, request->sym, &all);
  size_t row = known && request->sym[LP_SYM_S] > 0 ? all / (size_t)request->sym[LP_SYM_S] : 0;
  size_t first = *at + row * (size_t)request->done;
  bool part = sym[LP_SYM_S] != request->sym[LP_SYM_S];
  if (!known || to.size != (part ? row * (size_t)sym[LP_SYM_S] : all) || first + to.size > request->payload.size)
    return lp_error(diag, LP_LOC_NONE, "'%.80s' is not what its buffer takes", step->tensor.name);
  if (to.size > 0) memcpy(to.data, request->payload.data + first, to.size);
  *at += all;
  return LP_OK;
}

bool worker_request_ends(const worker_session *session, const int64_t *sym) {
  return session->request.done + sym[LP_SYM_S] == session->request.sym[LP_SYM_S];
}

void worker_request_passed(lp_worker *worker, worker_session *session, const int64_t *sym, double ms) {
  worker_request *request = &session->request;
  bool ends = worker_request_ends(session, sym);
  request->done += sym[LP_SYM_S];
  request->busy_ms += ms;
  request->turn = ++worker->turn;
  session->used_ms = lp_now_ms();
  if (!ends) return;
  session->position = request->sym[LP_SYM_P] + request->sym[LP_SYM_S];
  worker_request_drop(session);
}
