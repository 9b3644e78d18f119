/* Generation with early exits: the loop of the device in each mode. docs/exits.md describes the modes. */
#include "runtime/exits/collaborate.h"
#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/trace.h"
#include "runtime/exits/cloud_end.h"
#include "runtime/exits/context.h"
#include "runtime/exits/device_half.h"
#include "runtime/exits/halves.h"
#include "runtime/exits/window.h"
#include "runtime/runtime.h"

typedef struct {
  const lp_collaboration *task;
  const lp_halves *halves;
  lp_cloud_end *cloud; /* NULL: standalone */
  lp_mode mode;
  double theta;
  int32_t last_exit;
  int32_t *text;  /* [capacity]: prompt, tokens, then drafts */
  int64_t count;  /* of prompt and tokens */
  int64_t passed; /* positions in the device's KV caches, of its first layers at least */
  int64_t capacity;
  lp_device_half *device;
  bool ended;
  double started_ms, last_ms;
  /* Of the last pass: */
  lp_sample sample; /* of the exit that was taken, or else of the last exit */
  int32_t exit;     /* the exit that was taken; -1: none was confident enough */
  double pass_ms;
  lp_window window;
  lp_diag *diag;
} collaboration;

/* ---- the device's passes ----------------------------------------------------------------------------------------- */

/* Drafts come from the last exit, which agrees best with the model; threshold mode takes the first confident exit. */
static bool wants_exit(void *user, int32_t exit) {
  const collaboration *run = user;
  return run->mode == LP_MODE_THRESHOLD ? run->exit < 0 : exit == run->last_exit;
}

static void take_exit(void *user, int32_t exit, const lp_sample *samples) {
  collaboration *run = user;
  run->sample = samples[0];
  if (run->mode != LP_MODE_THRESHOLD || samples[0].confidence >= run->theta) run->exit = exit;
}

/* An exit that gives the token needs no later layer. A draft needs all layers: the cloud verifies it with its row. */
static bool may_wait(void *user) {
  const collaboration *run = user;
  return run->mode == LP_MODE_THRESHOLD && run->exit >= 0;
}

static lp_status upload(collaboration *run, const lp_device_rows *rows) {
  if (!run->cloud || rows->count == 0) return LP_OK;
  return lp_cloud_end_upload(run->cloud, rows->first, rows->count, rows->row, run->diag);
}

/* Runs the device's half over text[passed, to) and uploads the rows that are finished. */
static lp_status pass_to(collaboration *run, int64_t to) {
  int64_t count = to - run->passed;
  lp_device_rows rows;
  lp_sample sample;
  lp_device_pass pass = {.token = run->text + run->passed,
                         .past = run->passed,
                         .count = count,
                         .wanted = 1,
                         .samples = &sample,
                         .capacity = run->capacity,
                         .wants = wants_exit,
                         .take = take_exit,
                         .may_wait = may_wait,
                         .user = run};
  double begin = lp_now_ms();
  run->exit = -1;
  LP_TRY(lp_device_half_pass(run->device, &pass, &run->task->options->sampling, &rows, run->diag));
  lp_trace_slice slice = {.name = run->passed == 0 ? "prefill" : "pass",
                          .begin_ms = begin,
                          .end_ms = lp_now_ms(),
                          .position = run->passed,
                          .tokens = count,
                          .bytes = -1};
  lp_trace_put(run->task->options->trace, LP_LANE_DEVICE, &slice);
  run->pass_ms = slice.end_ms - begin;
  if (run->passed == 0) LP_TRY(lp_bundle_await_check(run->halves->bundle, run->diag));
  run->passed = to;
  return upload(run, &rows);
}

/* Finishes the rows that still wait, so that the cloud has the whole text. */
static lp_status pass_waiting(collaboration *run) {
  lp_device_rows rows;
  if (lp_generation_is_stopped(run->task->options)) return LP_OK;
  LP_TRY(lp_device_half_finish(run->device, run->capacity, &rows, run->diag));
  return upload(run, &rows);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static bool is_stop(const collaboration *run, int32_t token) {
  return !run->task->options->ignore_eos && lp_bundle_is_stop(run->halves->bundle, token);
}

bool lp_generation_is_stopped(const lp_generate_options *options) {
  if (options->stop && lp_flag_get(options->stop)) return true;
  return options->is_abandoned && options->is_abandoned(options->abandon_user);
}

static void emit(collaboration *run, const lp_sample *sample, int32_t exit) {
  double now = lp_now_ms();
  const lp_manifest *manifest = &run->halves->bundle->manifest;
  lp_generated token = {.token = sample->token,
                        .side = exit >= 0 ? LP_SIDE_DEVICE : run->halves->chain[run->halves->links - 1],
                        .exit_layer = exit >= 0 ? manifest->exits[exit].layer : -1,
                        .confidence = sample->confidence,
                        .ms = now - run->last_ms};
  if (run->task->out->generated == run->task->out->resumed) run->task->out->ttft_ms = now - run->started_ms;
  run->last_ms = now;
  run->text[run->count++] = sample->token;
  run->task->out->generated++;
  lp_vec_push(&run->task->out->tokens, token);
  lp_trace_token(run->task->options->trace, now, &token);
  if (run->task->sink) run->task->sink(run->task->user, 0, &token);
  run->ended = is_stop(run, sample->token) || run->count - run->task->length >= run->task->most ||
               lp_generation_is_stopped(run->task->options);
}

static lp_status ask(collaboration *run, const lp_question *question, lp_answer *out, lp_diag *diag) {
  double begin = lp_now_ms();
  lp_generation *totals = run->task->out;
  totals->cloud_requests++;
  bool persists = run->mode == LP_MODE_EXACT; /* in threshold mode an exit can give the token instead */
  lp_status status = lp_cloud_end_ask(run->cloud, question, run->task->timeout_ms, persists, out, diag);
  double waited = lp_now_ms() - begin, busy = status == LP_OK ? out->busy_ms : 0;
  if (!run->task->endpoints || busy > waited) busy = waited;
  totals->cloud_ms += busy;
  totals->comm_ms += waited - busy;
  return status;
}

/* ---- threshold and standalone ------------------------------------------------------------------------------------ */

/* Asks the cloud for the token after the last position; without an answer it takes the last exit's token. */
static void ask_for_token(collaboration *run) {
  lp_question question = {.end = run->passed};
  lp_answer answer;
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  if (ask(run, &question, &answer, quiet) == LP_OK) {
    emit(run, &answer.sample, -1);
  } else {
    const lp_diag_entry *entry = lp_diag_get(quiet, 0);
    if (run->task->out->fallbacks++ == 0)
      lp_warning(run->diag, LP_LOC_NONE, "%s; the device continues with its exits", entry ? entry->text : "no answer");
    emit(run, &run->sample, run->last_exit);
  }
}

static lp_status run_threshold(collaboration *run) {
  while (!run->ended) {
    LP_TRY(pass_to(run, run->count));
    if (run->exit >= 0)
      emit(run, &run->sample, run->exit);
    else
      ask_for_token(run);
  }
  return pass_waiting(run);
}

/* ---- exact ------------------------------------------------------------------------------------------------------- */

typedef LP_VEC(lp_sample) drafts;

/* Drafts tokens after those that are certain, while a draft is worth its time. The device runs each draft, so that the
 * cloud can verify it and continue after it. One token of each round comes from the cloud. */
static lp_status make_drafts(collaboration *run, drafts *made) {
  int64_t most = run->task->most - (run->count - run->task->length) - 1;
  double chance = lp_window_chance(&run->window, run->sample.confidence);
  while ((int64_t)made->count < most && lp_window_goes_on(&run->window, chance)) {
    lp_sample draft = run->sample;
    lp_vec_push(made, draft);
    run->text[run->count + (int64_t)made->count - 1] = draft.token;
    if (is_stop(run, draft.token)) {
      LP_TRY(pass_to(run, run->count + (int64_t)made->count));
      break;
    }
    LP_TRY(pass_to(run, run->count + (int64_t)made->count));
    lp_window_note_draft(&run->window, run->pass_ms);
    chance *= lp_window_chance(&run->window, run->sample.confidence);
  }
  return LP_OK;
}

static void note_verdicts(collaboration *run, const drafts *made, int64_t accepted) {
  for (int64_t i = 0; i < (int64_t)made->count && i <= accepted; i++)
    lp_window_note_verdict(&run->window, made->data[i].confidence, i < accepted);
  run->task->out->drafted += (int64_t)made->count;
  run->task->out->accepted += accepted;
}

static lp_status verify(collaboration *run, const drafts *made) {
  lp_tokens ids = {0};
  for (size_t i = 0; i < made->count; i++)
    lp_vec_push(&ids, made->data[i].token);
  lp_question question = {.draft = ids.data, .count = (int64_t)ids.count, .end = run->passed};
  lp_answer answer;
  lp_status status = ask(run, &question, &answer, run->diag);
  lp_vec_free(&ids);
  if (status != LP_OK) return status;
  note_verdicts(run, made, answer.accepted);
  for (int64_t i = 0; i < answer.accepted && i < (int64_t)made->count && !run->ended; i++)
    emit(run, &made->data[i], run->last_exit);
  if (!run->ended) emit(run, &answer.sample, -1);
  return LP_OK;
}

static lp_status run_exact(collaboration *run) {
  LP_OWNED(lp_free_at) drafts made = {0};
  lp_status status = LP_OK;
  lp_window_init(&run->window);
  while (status == LP_OK && !run->ended) {
    double begin = lp_now_ms();
    int64_t before = run->count;
    made.count = 0;
    status = pass_to(run, run->count);
    if (status == LP_OK) status = make_drafts(run, &made);
    if (status == LP_OK) status = verify(run, &made);
    /* The next pass overwrites the rows of refused drafts in the KV cache. */
    if (run->passed > run->count - 1) run->passed = run->count - 1;
    if (before > run->task->length + run->task->out->resumed)
      lp_window_note_round(&run->window, (int64_t)made.count, run->count - before, lp_now_ms() - begin);
  }
  return status;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static lp_codec choose_codec(const lp_generate_options *options) {
  if (options->codec != LP_CODEC_AUTO) return options->codec;
  return options->mode == LP_MODE_EXACT ? LP_CODEC_F32 : LP_CODEC_F16;
}

/* The claim's floor excludes the row of the last certain token: the next question needs the logits of that row again.
 */
static lp_status open_cloud(collaboration *run) {
  const lp_generate_options *given = run->task->options;
  lp_cloud_end_options options = {
      .halves = run->halves,
      .endpoints = run->task->endpoints,
      .pool = run->task->pool,
      .context = {.sampling = given->sampling, .codec = choose_codec(given), .capacity = run->capacity},
      .claim = run->task->claim,
      .drafts = run->mode == LP_MODE_EXACT,
      .reach_ms = run->task->reach_ms,
      .trace = given->trace};
  options.claim.floor = run->count - 1;
  return lp_cloud_end_open(&options, &run->cloud, run->diag);
}

/* Takes over the tokens that an earlier process generated. */
static void take_resumed(collaboration *run) {
  const lp_generation *out = run->task->out;
  for (int64_t i = 0; i < out->resumed; i++)
    run->text[run->count++] = out->tokens.data[i].token;
  run->ended = out->resumed >= run->task->most || (out->resumed > 0 && is_stop(run, run->text[run->count - 1]));
}

/* Runs the text of an earlier process except its last token: the prompt in one pass and then token by token, as it ran
 * there, since a pass over several rows may round differently than passes over one. */
static lp_status pass_resumed(collaboration *run) {
  int64_t to = run->task->out->resumed > 0 ? run->task->length : run->count;
  for (; to < run->count && !run->ended; to++) {
    LP_TRY(pass_to(run, to));
    run->ended = lp_generation_is_stopped(run->task->options);
  }
  return LP_OK;
}

static lp_status generate(collaboration *run) {
  take_resumed(run);
  if (run->ended) return LP_OK;
  if (run->mode != LP_MODE_STANDALONE) LP_TRY(open_cloud(run));
  run->task->out->comm_ms = run->task->out->connect_ms = lp_now_ms() - run->started_ms;
  LP_TRY(pass_resumed(run));
  return run->mode == LP_MODE_EXACT ? run_exact(run) : run_threshold(run);
}

lp_status lp_collaborate(const lp_collaboration *task, lp_diag *diag) {
  collaboration run = {.task = task,
                       .halves = task->halves,
                       .mode = task->options->mode,
                       .theta = task->options->theta,
                       .last_exit = task->halves->bundle->manifest.exit_count - 1,
                       .capacity = task->length + task->most,
                       .count = task->length,
                       .diag = diag};
  run.text = lp_alloc(((size_t)run.capacity + 1) * sizeof *run.text);
  memcpy(run.text, task->prompt, (size_t)task->length * sizeof *run.text);
  run.device = lp_device_half_create(task->halves, task->device);
  run.started_ms = run.last_ms = lp_now_ms();
  task->out->batch = 1;
  lp_status status = generate(&run);
  lp_generation *out = task->out;
  out->total_ms = run.last_ms - run.started_ms;
  out->device_ms = out->total_ms - out->cloud_ms - out->comm_ms;
  int64_t fresh = out->generated - out->resumed;
  if (fresh > 1) out->tpot_ms = (out->total_ms - out->ttft_ms) / (double)(fresh - 1);
  lp_cloud_end_close(run.cloud, out);
  free(run.text);
  lp_device_half_free(run.device);
  return status;
}
