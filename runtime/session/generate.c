/* Generation: a prefill, then one decode step per token. Each token is sampled on the side that has its logits. */
#include <math.h>

#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/trace.h"
#include "runtime/exits/collaborate.h"
#include "runtime/exits/halves.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"
#include "runtime/session/session_file.h"
#include "runtime/session/source.h"
#include "runtime/session/walk.h"

/* In threshold mode an exit can give the token, so the device waits for the cloud only this long. */
static const double threshold_timeout_ms = 10000;

typedef struct {
  lp_session *session;
  const int32_t *prompts;
  int64_t batch, length, capacity;
  lp_token_sink *sink;
  void *user;
  lp_generation *out;
  lp_keeper *keeper;
  lp_diag *diag;
  int32_t prefill, decode, tokens_input;
  int64_t part;            /* the most tokens of the prompt in one pass */
  bool stopped;            /* the generation ends here */
  lp_sample *sample;       /* [batch]: of the last walk */
  bool *ended;             /* [batch] */
  void *ids;               /* the content of the tokens input, in its dtype */
  lp_source_inputs source; /* the content of the encoder's inputs */
  lp_span *input;          /* [inputs] */
  LP_VEC(int32_t) given;   /* tokens for a stream: see lp_walk_stream */
  double started_ms, last_ms;
} generation_run;

static lp_loc loc_of(const generation_run *run) {
  return LP_LOC_FILE(run->session->bundle->manifest.file);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static lp_status check_model(generation_run *run) {
  const lp_manifest *manifest = &run->session->bundle->manifest;
  LP_TRY(lp_bundle_check_generates(run->session->bundle, run->diag));
  int32_t plan = run->session->options.plan;
  if (run->session->options.fixes_plan && (plan < 0 || plan >= manifest->plan_count))
    return lp_error(run->diag, loc_of(run), "there is no plan %" PRId32 "; the last one is plan %" PRId32, plan,
                    manifest->plan_count - 1);
  if (lp_bundle_reads_source(run->session->bundle) && run->session->options.session_file)
    return lp_error(run->diag, loc_of(run), "a generation of a model with an encoder cannot be saved to be resumed");
  run->tokens_input = lp_manifest_input(manifest, LP_ROLE_TOKENS);
  return LP_OK;
}

static lp_status check_lengths(generation_run *run) {
  const lp_manifest *manifest = &run->session->bundle->manifest;
  int64_t limit = manifest->context_length > 0 ? manifest->context_length : INT64_C(1) << 40;
  if (run->batch < 1 || run->batch > INT32_MAX)
    return lp_error(run->diag, loc_of(run), "a batch of %" PRId64 " sequences", run->batch);
  if (run->length < 1) return lp_error(run->diag, loc_of(run), "the prompt is empty");
  int64_t most = run->session->options.max_tokens;
  if (most < 0) return lp_error(run->diag, loc_of(run), "%" PRId64 " tokens to generate", most);
  if (run->length > limit || most > limit - run->length)
    return lp_error(run->diag, loc_of(run),
                    "a prompt of %" PRId64 " tokens and %" PRId64 " to generate exceed the model's context of %" PRId64,
                    run->length, most, limit);
  for (int64_t i = 0; i < run->batch * run->length; i++)
    if (run->prompts[i] < 0 || run->prompts[i] >= manifest->vocab)
      return lp_error(run->diag, loc_of(run), "token %" PRId32 " lies outside of the vocabulary of %" PRId32,
                      run->prompts[i], manifest->vocab);
  return LP_OK;
}

/* ---- a walk ------------------------------------------------------------------------------------------------------ */

static void put_id(const generation_run *run, size_t index, int32_t token) {
  const lp_port *port = &run->session->bundle->manifest.inputs[run->tokens_input];
  if (port->tensor.dtype == LP_DT_I32)
    ((int32_t *)run->ids)[index] = token;
  else
    ((int64_t *)run->ids)[index] = token;
}

/* Doubles a capacity that is too small, up to the most that this generation can need. */
static void grow_capacity(generation_run *run, int64_t needed) {
  int64_t most = run->length + run->session->options.max_tokens;
  while (run->capacity < needed)
    run->capacity *= 2;
  if (run->capacity > most) run->capacity = most;
}

/* The token at a position of the whole text. Tokens after the end of a sequence do not matter. */
static int32_t token_at(const generation_run *run, int64_t sequence, int64_t position) {
  if (position < run->length) return run->prompts[sequence * run->length + position];
  int32_t token = run->out->tokens.data[(position - run->length) * run->batch + sequence].token;
  return token >= 0 ? token : 0;
}

/* Describes what the place may draw after a pass up to `end`, where a place has all of decode. False: nothing. */
static bool describe_stream(generation_run *run, int32_t program, int64_t end, lp_walk_stream *out) {
  int64_t most = run->length + run->session->options.max_tokens - end;
  if (end < run->length || most < 2) return false;
  if (lp_session_streams_at(run->session, program, run->decode) == LP_SIDE_DEVICE) return false;
  run->given.count = 0;
  for (int64_t at = end; at < run->length + run->out->generated; at++)
    for (int64_t i = 0; i < run->batch; i++)
      lp_vec_push(&run->given, token_at(run, i, at));
  *out = (lp_walk_stream){.program = run->decode,
                          .most = most,
                          .ends = !run->session->options.ignore_eos,
                          .given = run->given.data,
                          .given_count = run->given.count};
  return true;
}

/* Runs the program over `count` tokens per sequence, which `ids` holds, and samples the next token of each sequence. */
static lp_status compute(generation_run *run, int32_t program, int64_t past, int64_t count, lp_place *sampled_on,
                         lp_diag *diag) {
  lp_session *session = run->session;
  lp_walk_stream stream;
  bool streams = describe_stream(run, program, past + count, &stream);
  grow_capacity(run, streams ? past + count + stream.most - 1 : past + count);
  size_t width = lp_element_size(session->bundle->manifest.inputs[run->tokens_input].tensor.dtype);
  for (int32_t i = 0; i < session->bundle->manifest.input_count; i++)
    run->input[i] = run->source.input[i];
  run->input[run->tokens_input] = (lp_span){.data = run->ids, .size = (size_t)(run->batch * count) * width};
  lp_walk walk = {.program = program, .input = run->input, .sample = run->sample, .stream = streams ? &stream : NULL};
  memcpy(walk.sym, run->source.sym, sizeof walk.sym);
  walk.sym[LP_SYM_B] = run->batch;
  walk.sym[LP_SYM_S] = count;
  walk.sym[LP_SYM_P] = past;
  walk.sym[LP_SYM_R] = 1;
  walk.sym[LP_SYM_C] = run->capacity;
  if (run->out->generated == 0) walk.logits = &run->out->first_logits; /* of the prompt's last part in the end */
  LP_TRY(lp_session_walk(session, &walk, diag));
  *sampled_on = walk.sampled_on;
  return LP_OK;
}

/* ---- after the loss of the worker, or of an earlier process ------------------------------------------------------ */

/* Puts `count` tokens of every sequence into `ids`, from the position `from` of the whole text. */
static void put_part(generation_run *run, int64_t from, int64_t count) {
  run->ids = lp_realloc(run->ids, (size_t)(run->batch * count) * sizeof(int64_t));
  for (int64_t i = 0; i < run->batch; i++)
    for (int64_t k = 0; k < count; k++)
      put_id(run, (size_t)(i * count + k), token_at(run, i, from + k));
}

static bool is_stopped(generation_run *run) {
  run->stopped = run->stopped || lp_generation_is_stopped(&run->session->options);
  return run->stopped;
}

/* The tokens of the pass at a position of the whole text: the prompt runs in parts, and the answer token by token. A
 * pass over several rows may round differently than passes over one, so a text that runs again takes the same passes.
 */
static int64_t pass_tokens(const generation_run *run, int64_t past) {
  int64_t left = run->length - past;
  return left < 1 ? 1 : left < run->part ? left : run->part;
}

static int32_t pass_program(const generation_run *run, int64_t past) {
  return past == 0 ? run->prefill : run->decode;
}

/* Makes one attempt: connects again, and runs both sides over the text up to `end`, which restores their KV caches.
 * Ends early when the generation is stopped. */
static lp_status rebuild(generation_run *run, int64_t end, lp_place *sampled_on, lp_diag *diag) {
  lp_session_disconnect(run->session);
  LP_TRY(lp_session_connect(run->session, diag));
  for (int64_t past = 0; past < end && !is_stopped(run); past += pass_tokens(run, past)) {
    int64_t count = pass_tokens(run, past);
    put_part(run, past, count);
    LP_TRY(compute(run, pass_program(run, past), past, count, sampled_on, diag));
  }
  return LP_OK;
}

/* Computes the text up to `end` again after the worker was lost, until an attempt succeeds or the time is over. Then it
 * reports the first failure. */
static lp_status persist(generation_run *run, lp_status status, int64_t end, const lp_diag *first,
                         lp_place *sampled_on) {
  lp_backoff backoff = lp_backoff_begin(&run->session->patience, lp_session_timeout_ms(run->session));
  while (status != LP_OK && run->session->lost && !run->session->options.gives_up) {
    lp_diag *quiet = lp_diag_create();
    status = rebuild(run, end, sampled_on, quiet);
    lp_diag_free(quiet);
    if (status == LP_OK || !lp_backoff_wait(&backoff)) break;
  }
  const lp_diag_entry *entry = lp_diag_get(first, 0);
  if (status == LP_OK || !entry) return status;
  return lp_error_as(status, run->diag, entry->loc, "%s", entry->text);
}

static lp_status compute_or_persist(generation_run *run, int64_t past, int64_t count, lp_place *sampled_on) {
  int32_t program = pass_program(run, past);
  if (!run->session->remote) return compute(run, program, past, count, sampled_on, run->diag);
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  run->session->lost = false;
  lp_status status = compute(run, program, past, count, sampled_on, quiet);
  if (status != LP_OK) status = persist(run, status, past + count, quiet, sampled_on);
  return status;
}

static bool is_stop(const generation_run *run, int32_t token) {
  return !run->session->options.ignore_eos && lp_bundle_is_stop(run->session->bundle, token);
}

/* Makes one token of each sequence: runs the pass over `count` tokens and hands on the sampled tokens. */
static lp_status make_tokens(generation_run *run, int64_t past, int64_t count) {
  lp_session *session = run->session;
  lp_place sampled_on = LP_SIDE_DEVICE;
  LP_TRY(compute_or_persist(run, past, count, &sampled_on));
  if (run->stopped) return LP_OK;
  if (run->out->generated == run->out->resumed) LP_TRY(lp_bundle_await_check(session->bundle, run->diag));
  double now = lp_now_ms();
  for (int64_t i = 0; i < run->batch; i++) {
    lp_generated token = {.token = run->ended[i] ? -1 : run->sample[i].token,
                          .side = sampled_on,
                          .exit_layer = -1,
                          .confidence = run->sample[i].confidence,
                          .ms = now - run->last_ms};
    lp_vec_push(&run->out->tokens, token);
    if (!run->ended[i]) lp_trace_token(session->options.trace, now, &token);
    if (run->sink && !run->ended[i]) run->sink(run->user, i, &token);
    if (is_stop(run, run->sample[i].token)) run->ended[i] = true;
  }
  run->last_ms = now;
  run->out->generated++;
  lp_keeper_note(run->keeper, run->out, run->diag);
  return LP_OK;
}

static lp_status choose_programs(generation_run *run) {
  lp_session *session = run->session;
  /* Another plan may round differently, so a resumed generation keeps its plan. */
  int32_t before = run->out->plan;
  if (run->out->resumed > 0 && before >= 0 && before < run->out->plan_count) {
    session->options.fixes_plan = true;
    session->options.plan = before;
  }
  LP_TRY(lp_session_choose_plan(session, run->length, session->options.max_tokens, run->out, run->diag));
  const lp_plan_desc *plan = &session->bundle->manifest.plans[run->out->plan];
  run->prefill = plan->prefill;
  run->decode = plan->decode;
  run->part = lp_session_prompt_part(session, run->prefill, run->decode);
  return LP_OK;
}

static bool all_ended(const generation_run *run) {
  for (int64_t i = 0; i < run->batch; i++)
    if (!run->ended[i]) return false;
  return true;
}

/* Marks the sequences that ended before this process began. */
static void note_ended(generation_run *run) {
  for (int64_t i = 0; i < run->batch && run->out->generated > 0; i++) {
    int32_t last = run->out->tokens.data[(run->out->generated - 1) * run->batch + i].token;
    run->ended[i] = last < 0 || is_stop(run, last);
  }
}

/* Runs all passes over the text except the last one, and leaves the tokens of that one in `ids`. Sets *past to
 * the positions that ran; leaves early when the generation is stopped. */
static lp_status run_parts(generation_run *run, int64_t *past) {
  int64_t length = run->length + run->out->resumed;
  lp_place sampled_on;
  for (*past = 0; *past + pass_tokens(run, *past) < length && !is_stopped(run); *past += pass_tokens(run, *past)) {
    put_part(run, *past, pass_tokens(run, *past));
    LP_TRY(compute_or_persist(run, *past, pass_tokens(run, *past), &sampled_on));
  }
  put_part(run, *past, pass_tokens(run, *past));
  return LP_OK;
}

static lp_status make_all_tokens(generation_run *run) {
  int64_t most = run->session->options.max_tokens, before = run->out->resumed, past = 0;
  note_ended(run);
  if (before >= most || all_ended(run)) return LP_OK;
  LP_TRY(run_parts(run, &past));
  if (is_stopped(run)) return LP_OK;
  LP_TRY(make_tokens(run, past, pass_tokens(run, past)));
  run->out->ttft_ms = run->last_ms - run->started_ms;
  for (int64_t made = before + 1; made < most && !all_ended(run) && !is_stopped(run); made++) {
    for (int64_t i = 0; i < run->batch; i++)
      put_id(run, (size_t)i, run->sample[i].token);
    LP_TRY(make_tokens(run, run->length + made - 1, 1));
  }
  return LP_OK;
}

/* Turns the tokens from [step][sequence], the order in which they were made, to [sequence][step]. */
static void transpose(lp_generation *out) {
  size_t batch = (size_t)out->batch, steps = (size_t)out->generated;
  if (batch < 2 || steps < 2) return;
  lp_generated *by_sequence = lp_alloc(out->tokens.count * sizeof *by_sequence);
  for (size_t i = 0; i < batch; i++)
    for (size_t j = 0; j < steps; j++)
      by_sequence[i * steps + j] = out->tokens.data[j * batch + i];
  free(out->tokens.data);
  out->tokens.data = by_sequence;
  out->tokens.capacity = out->tokens.count;
}

/* Reports the bytes that have crossed since the last generation, connecting included. */
static void take_traffic(lp_session *session, lp_generation *out) {
  uint64_t up, down;
  lp_session_count_bytes(session, &up, &down);
  out->bytes_up = up - session->told_up;
  out->bytes_down = down - session->told_down;
  session->told_up = up;
  session->told_down = down;
}

static void add_totals(generation_run *run, const lp_session *before) {
  lp_generation *out = run->out;
  const lp_session *session = run->session;
  out->total_ms = run->last_ms - run->started_ms;
  int64_t fresh = out->generated - out->resumed;
  if (fresh > 1) out->tpot_ms = (out->total_ms - out->ttft_ms) / (double)(fresh - 1);
  out->cloud_requests += session->waits - before->waits;
  out->cloud_ms = session->cloud_ms - before->cloud_ms;
  out->comm_ms = session->wait_ms - before->wait_ms - out->cloud_ms;
  out->device_ms = out->total_ms - out->cloud_ms - out->comm_ms;
  take_traffic(run->session, out);
}

/* Tells whether to use early exits. Exact mode runs without them when the bundle has none or there are several
 * sequences; other modes then fail. */
static lp_status uses_exits(const generation_run *run, lp_halves *halves, bool *out) {
  lp_mode mode = run->session->options.mode;
  const char *why = "";
  *out = false;
  if (mode == LP_MODE_FULL) return LP_OK;
  bool apart = lp_halves_find(run->session->bundle, halves, &why);
  if (apart && run->batch > 1) why = "the exits serve one sequence at a time";
  *out = apart && run->batch == 1;
  return *out || mode == LP_MODE_EXACT ? LP_OK : lp_error(run->diag, loc_of(run), "not in this mode: %s", why);
}

/* Hands a token on to the caller, and to the session file. */
static void take_token(void *user, int64_t index, const lp_generated *token) {
  generation_run *run = user;
  if (run->sink) run->sink(run->user, index, token);
  lp_keeper_note(run->keeper, run->out, run->diag);
}

static lp_status generate_with_exits(generation_run *run, const lp_halves *halves) {
  lp_session *session = run->session;
  const lp_endpoint *endpoints[LP_PLACES_MAX];
  for (int32_t i = 0; i < halves->links; i++)
    endpoints[i] = &session->place[halves->chain[i]].endpoint;
  bool short_wait = session->options.mode == LP_MODE_THRESHOLD && session->options.cloud_timeout_ms <= 0;
  lp_collaboration task = {.halves = halves,
                           .options = &session->options,
                           .device = session->executor[LP_SIDE_DEVICE],
                           .pool = session->pool,
                           .endpoints = session->remote ? endpoints : NULL,
                           .reach_ms = lp_session_reach_ms(session),
                           .timeout_ms = short_wait ? threshold_timeout_ms : lp_session_timeout_ms(session),
                           .prompt = run->prompts,
                           .length = run->length,
                           .most = session->options.max_tokens,
                           .sink = take_token,
                           .user = run,
                           .out = run->out};
  if (!lp_keeper_claim(run->keeper, &task.claim)) task.claim = (lp_context_claim){.context = lp_context_draw()};
  lp_status status = lp_collaborate(&task, run->diag);
  lp_keeper_finish(run->keeper, run->out, run->diag);
  return status;
}

static lp_status generate_step_by_step(generation_run *run) {
  lp_session *session = run->session;
  size_t batch = (size_t)run->batch;
  int64_t most = session->options.max_tokens;
  lp_session before = *session;
  LP_TRY(lp_session_reach(session, run->diag));
  run->capacity = session->options.capacity > 0 ? session->options.capacity : run->length + most;
  run->sample = lp_alloc(batch * sizeof *run->sample);
  run->ended = lp_alloc(batch * sizeof *run->ended);
  run->input = lp_alloc(((size_t)session->bundle->manifest.input_count + 1) * sizeof *run->input);
  run->started_ms = run->last_ms = lp_now_ms();
  run->out->batch = run->batch;
  lp_status status = lp_source_read(session, run->batch, &run->source, run->diag);
  if (status == LP_OK) status = choose_programs(run);
  if (status == LP_OK) status = make_all_tokens(run);
  lp_session_end_stream(session, status == LP_OK && all_ended(run));
  lp_keeper_finish(run->keeper, run->out, run->diag);
  transpose(run->out);
  add_totals(run, &before);
  free(run->sample);
  free(run->ended);
  free(run->ids);
  lp_vec_free(&run->given);
  free(run->input);
  lp_source_inputs_free(&run->source);
  return status;
}

/* Hands the tokens of an earlier process to the caller. */
static void give_resumed(const generation_run *run) {
  const lp_generation *out = run->out;
  for (int64_t i = 0; run->sink && i < out->resumed * run->batch; i++)
    if (out->tokens.data[i].token >= 0) run->sink(run->user, i % run->batch, &out->tokens.data[i]);
}

lp_status lp_session_generate(lp_session *session, const int32_t *prompts, int64_t batch, int64_t length,
                              lp_token_sink *sink, void *user, lp_generation *out, lp_diag *diag) {
  generation_run run = {.session = session,
                        .prompts = prompts,
                        .batch = batch,
                        .length = length,
                        .sink = sink,
                        .user = user,
                        .out = out,
                        .diag = diag};
  lp_keeper_task task = {.prompts = prompts, .batch = batch, .length = length};
  LP_TRY(lp_keeper_check(session, &task, diag));
  LP_TRY(check_model(&run));
  LP_TRY(check_lengths(&run));
  lp_halves halves;
  bool with_exits = false;
  LP_TRY(uses_exits(&run, &halves, &with_exits));
  out->plan_count = session->bundle->manifest.plan_count;
  out->rtt_ms = out->up_bps = NAN;
  LP_TRY(lp_keeper_create(session, &task, out, &run.keeper, diag));
  give_resumed(&run);
  lp_status status = with_exits ? generate_with_exits(&run, &halves) : generate_step_by_step(&run);
  out->lost = status != LP_OK && session->lost;
  lp_keeper_free(run.keeper);
  return status;
}

void lp_generation_free(lp_generation *generation) {
  lp_vec_free(&generation->tokens);
  lp_buf_free(&generation->first_logits);
}
