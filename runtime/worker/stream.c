/* The draws of streams: see stream.h. */
#include "runtime/worker/stream.h"

#include "runtime/bundle/bundle.h"
#include "runtime/worker/queue.h"

/* The most draws ahead of the device, whatever it asks for, and the most tokens that end a sequence. */
enum { MOST_WINDOW = 4096, MOST_ENDS = 256 };

/* ---- the begin --------------------------------------------------------------------------------------------------- */

/* Tells whether tokens are drawn here from what the program computes. */
static bool draws_here(const lp_worker *worker, uint32_t program) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  const lp_program *of = &manifest->programs[program];
  for (int32_t i = 0; i < of->step_count; i++)
    if (of->step[i].kind == LP_STEP_OUTPUT && of->step[i].port == lp_manifest_output(manifest, LP_ROLE_LOGITS))
      return of->step[i].side == worker->place;
  return false;
}

static lp_status check(const lp_worker *worker, const Lp__Wire__Step *step, lp_diag *diag) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  const Lp__Wire__Stream *stream = step->stream;
  const int64_t *sym = step->symbols;
  if (stream->program >= (uint32_t)manifest->program_count || step->want_outputs ||
      lp_manifest_streams(manifest, (int32_t)stream->program) != worker->place || !draws_here(worker, step->program))
    return lp_error(diag, LP_LOC_NONE, "no such program draws on here");
  /* The last draw follows the row before it. */
  int64_t first = sym[LP_SYM_P] + sym[LP_SYM_S], most = sym[LP_SYM_C];
  if (manifest->context_length > 0 && manifest->context_length < most) most = manifest->context_length;
  if (stream->most < 1 || stream->most - 1 > most - first || stream->window < 1)
    return lp_error(diag, LP_LOC_NONE, "%" PRId64 " draws from position %" PRId64 " on, %" PRId64 " ahead, do not go",
                    stream->most, first, stream->window);
  if (stream->n_end > MOST_ENDS || stream->n_given % (size_t)sym[LP_SYM_B] != 0 ||
      stream->n_given / (size_t)sym[LP_SYM_B] >= (size_t)stream->most)
    return lp_error(diag, LP_LOC_NONE, "%zu tokens that end a text, %zu given", stream->n_end, stream->n_given);
  return LP_OK;
}

lp_status worker_stream_begin(const lp_worker *worker, worker_session *session, const Lp__Wire__Step *step,
                              lp_diag *diag) {
  const Lp__Wire__Stream *from = step->stream;
  const size_t batch = (size_t)step->symbols[LP_SYM_B];
  worker_stream_end(session);
  LP_TRY(check(worker, step, diag));
  worker_stream *to = &session->stream;
  *to = (worker_stream){.goes_on = true, .program = (int32_t)from->program, .most = from->most};
  to->window = from->window < MOST_WINDOW ? from->window : MOST_WINDOW;
  for (size_t i = 0; i < from->n_end; i++)
    lp_vec_push(&to->end, from->end[i]);
  for (size_t i = 0; i < from->n_given; i++)
    lp_vec_push(&to->given, from->given[i]);
  to->token = lp_alloc(batch * sizeof *to->token);
  to->ended = lp_alloc(batch * sizeof *to->ended);
  return LP_OK;
}

void worker_stream_end(worker_session *session) {
  worker_stream *stream = &session->stream;
  lp_vec_free(&stream->end);
  lp_vec_free(&stream->given);
  free(stream->token);
  free(stream->ended);
  *stream = (worker_stream){0};
}

/* ---- draws ------------------------------------------------------------------------------------------------------- */

static bool ends(const worker_stream *stream, int32_t token) {
  for (size_t i = 0; i < stream->end.count; i++)
    if (stream->end.data[i] == token) return true;
  return false;
}

int64_t worker_stream_note(worker_session *session, const lp_sample *sample, size_t batch) {
  worker_stream *stream = &session->stream;
  if (!stream->goes_on) return 0;
  const size_t at = (size_t)stream->drawn * batch;
  bool all = true;
  for (size_t i = 0; i < batch; i++) {
    stream->token[i] = at + i < stream->given.count ? stream->given.data[at + i] : sample[i].token;
    stream->ended[i] = stream->ended[i] || ends(stream, stream->token[i]);
    all = all && stream->ended[i];
  }
  const int64_t draw = ++stream->drawn;
  if (draw == stream->most || all) worker_stream_end(session);
  return draw;
}

void worker_stream_take(worker_session *session, int64_t draws) {
  worker_stream *stream = &session->stream;
  if (draws > stream->taken && draws <= stream->drawn) stream->taken = draws;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static int32_t tokens_step(const lp_worker *worker, int32_t program) {
  int32_t index = 0;
  while (!worker_step_takes_payload(worker, &worker->bundle->manifest.programs[program].step[index]))
    index++; /* lp_manifest_streams has found it */
  return index;
}

bool worker_stream_next(const lp_worker *worker, const worker_session *session, Lp__Wire__Step *step,
                        int64_t sym[LP_MAX_SYMBOLS], lp_buf *payload) {
  const worker_stream *stream = &session->stream;
  if (!stream->goes_on || stream->drawn == 0 || stream->drawn - stream->taken >= stream->window) return false;
  if (session->next >= 0 || session->queued.waits || session->broken) return false;
  memcpy(sym, session->sym, sizeof session->sym);
  sym[LP_SYM_P] += sym[LP_SYM_S];
  sym[LP_SYM_S] = sym[LP_SYM_R] = 1;
  lp__wire__step__init(step);
  step->session = session->id;
  step->program = (uint32_t)stream->program;
  step->step = tokens_step(worker, stream->program);
  step->n_symbols = (size_t)worker->bundle->manifest.symbol_count;
  step->symbols = sym;
  bool is_short = worker->bundle->manifest.programs[step->program].step[step->step].tensor.dtype == LP_DT_I32;
  lp_buf_clear(payload);
  for (int64_t i = 0; i < sym[LP_SYM_B]; i++) {
    int64_t token = stream->token[i];
    lp_buf_append(payload, is_short ? (const void *)&stream->token[i] : (const void *)&token,
                  is_short ? sizeof stream->token[i] : sizeof token);
  }
  return true;
}
