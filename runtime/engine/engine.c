/* The thread that runs passes, and the threads that wait for tokens. */
#include "runtime/engine/engine.h"

#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "runtime/bundle/bundle.h"
#include "runtime/engine/exits.h"
#include "runtime/engine/job.h"
#include "runtime/engine/late.h"
#include "runtime/engine/memory.h"
#include "runtime/engine/prefix.h"
#include "runtime/engine/remote.h"

enum { ASK_MS = 100, MOST_REFUSALS = 8 };

static bool fits(const lp_bundle *bundle, const char **why) {
  *why = lp_bundle_reads_source(bundle)            ? "the model has an encoder"
         : !lp_bundle_has_caches(bundle)           ? "the model has no KV caches"
         : !bundle->side[LP_SIDE_DEVICE].sequences ? "the code runs one sequence at a time"
                                                   : NULL;
  return *why == NULL;
}

bool lp_engine_fits(const lp_bundle *bundle, const char **why) {
  *why = "some layers run on a worker";
  return !lp_bundle_is_split(bundle) && fits(bundle, why);
}

bool lp_engine_fits_worker(const lp_bundle *bundle, const char **why) {
  const bool two = bundle->manifest.place_count == LP_SIDE_COUNT;
  *why = two ? "all layers run here" : "the bundle has more than two places";
  return two && lp_bundle_is_split(bundle) && fits(bundle, why) && engine_remote_fits(bundle, why);
}

bool lp_engine_fits_exits(const lp_bundle *bundle, const char **why) {
  return lp_engine_fits_worker(bundle, why) && engine_exits_fits(bundle, why);
}

bool lp_engine_draws_remotely(const lp_engine *engine) {
  return engine->draws_remotely;
}

static bool has_logits_there(const lp_manifest *manifest) {
  const lp_program *program = &manifest->programs[manifest->plans[0].decode];
  for (int32_t k = 0; k < program->step_count; k++)
    if (program->step[k].kind == LP_STEP_OUTPUT && program->step[k].side == LP_SIDE_CLOUD &&
        program->step[k].port == lp_manifest_output(manifest, LP_ROLE_LOGITS))
      return true;
  return false;
}

/* ---- the engine's thread ----------------------------------------------------------------------------------------- */

/* The job begins again without rows of other prompts: the worker has dropped those that it kept, or they take the room
 * of the job. False: that is not why it failed. With the lock held. */
static bool begin_again(lp_engine *engine, engine_job *job) {
  bool none = job->text.count == job->call->request->length; /* no token was drawn */
  if (!engine->remote || engine_remote_is_lost(engine->remote) || job->own_rows || !none) return false;
  if (job->reused == 0 && engine->kept.count == 0) return false;
  engine_prefix_free(engine);
  if (job->reused > 0 && ++engine->refusals >= MOST_REFUSALS) engine->shares = false;
  lp_executor_free(job->executor);
  engine_memory_begin_again(engine, job);
  engine_job_forget_failure(job);
  engine->reused -= job->reused;
  job->reused = 0;
  job->own_rows = true;
  return true;
}

/* Hands the result of a draw to the job's thread. With the lock held. */
static void take_result(lp_engine *engine, engine_job *job) {
  const lp_engine_request *request = job->call->request;
  if (job->result == ENGINE_TOO_MUCH) job->end = ENGINE_END_TOO_MUCH;
  if (engine_job_has_failed(job) || job->result == ENGINE_COMPLETE || job->result == ENGINE_TOO_MUCH) {
    engine_job_end(engine, job);
  } else if (job->result == ENGINE_DRAWN) {
    lp_vec_push(&job->text, job->drawn.token);
    lp_vec_push(&job->out, job->drawn);
    bool stops = lp_bundle_is_stop(engine->bundle, job->drawn.token);
    bool full = (int64_t)(job->text.count - request->length) >= request->max_tokens;
    if (full && !stops) job->end = ENGINE_END_CUT;
    if (stops || full)
      engine_job_end(engine, job);
    else
      (void)pthread_cond_signal(&job->call->changed);
  }
}

/* Takes the draws that were late and are done. With the lock held. */
static void take_late(lp_engine *engine) {
  for (size_t i = engine->jobs.count; i-- > 0;) {
    engine_job *job = engine->jobs.data[i];
    if (job->late != ENGINE_LATE_DONE) continue;
    job->late = ENGINE_NOT_LATE;
    take_result(engine, job);
  }
}

/* Takes the result of a pass. With the lock held. */
static void publish(lp_engine *engine, engine_job *job) {
  const lp_engine_request *request = job->call->request;
  engine_client_of(engine, request->client)->served += job->rows;
  const bool failed = engine_job_has_failed(job);
  job->done += failed ? 0 : job->rows;
  if (job->turn == 0) job->ticket = ++engine->ticket;
  if (failed && (engine_memory_await_room(engine, job) || begin_again(engine, job))) return;
  if (!failed && job->reused > 0) engine->refusals = 0;
  if (failed && engine->remote && engine_remote_is_lost(engine->remote)) job->end = ENGINE_END_LOST;
  if (job->result == ENGINE_LATE)
    engine_late_put(engine, job);
  else
    take_result(engine, job);
}

/* All jobs with a session at a worker that was lost end. With the lock held. */
static void end_lost(lp_engine *engine) {
  if (!engine->remote || !engine_remote_is_lost(engine->remote)) return;
  for (size_t i = engine->jobs.count; i-- > 0;) {
    engine_job *job = engine->jobs.data[i];
    if (job->session == 0) continue;
    engine_late_withdraw(engine, job);
    if (!job->error) job->error = lp_strdup("the worker was lost");
    job->end = ENGINE_END_LOST;
    engine_job_end(engine, job);
  }
  engine_prefix_free(engine);
}

/* Closes sessions of jobs that have ended. With the lock held, which it releases meanwhile; tells whether there were
 * any. */
static bool tidy(lp_engine *engine) {
  if (!engine->remote || !engine_remote_has_forgotten(engine->remote)) return false;
  (void)pthread_mutex_unlock(&engine->lock);
  engine_remote_tidy(engine->remote);
  (void)pthread_mutex_lock(&engine->lock);
  return true;
}

/* The time at which waiting for `ms` ends. */
static struct timespec after_ms(double ms) {
  struct timespec until;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  int64_t ns = until.tv_nsec + (int64_t)(ms > 0 ? ms * 1e6 : 0);
  return (struct timespec){.tv_sec = until.tv_sec + ns / 1000000000, .tv_nsec = ns % 1000000000};
}

/* Waits for a change, or until the worker may have room. With the lock held. */
static void await_work(lp_engine *engine) {
  double until_ms = engine_memory_next_ms(engine);
  if (isinf(until_ms)) {
    (void)pthread_cond_wait(&engine->work, &engine->lock);
  } else {
    const struct timespec until = after_ms(until_ms - lp_now_ms());
    (void)pthread_cond_timedwait(&engine->work, &engine->lock, &until);
  }
}

static void *work(void *user) {
  lp_engine *engine = user;
  (void)pthread_mutex_lock(&engine->lock);
  while (!engine->ends) {
    take_late(engine);
    bool chosen = engine_choose(engine);
    if (tidy(engine)) continue;
    if (!chosen) {
      await_work(engine);
      continue;
    }
    (void)pthread_mutex_unlock(&engine->lock);
    const double begun_ms = lp_now_ms();
    engine_pass_run(engine);
    (void)pthread_mutex_lock(&engine->lock);
    engine->busy_ms += lp_now_ms() - begun_ms;
    for (size_t i = 0; i < engine->chosen.count; i++)
      publish(engine, engine->chosen.data[i]);
    end_lost(engine);
  }
  (void)pthread_mutex_unlock(&engine->lock);
  return NULL;
}

lp_status lp_engine_open(const lp_bundle *bundle, const lp_engine_options *options, lp_engine **out, lp_diag *diag) {
  const char *why;
  if (options->cloud ? !lp_engine_fits_worker(bundle, &why) : !lp_engine_fits(bundle, &why))
    return lp_error(diag, LP_LOC_FILE(bundle->manifest.file), "no passes: %s", why);
  if (options->theta > 0 && !(options->cloud && lp_engine_fits_exits(bundle, &why)))
    return lp_error(diag, LP_LOC_FILE(bundle->manifest.file), "no early exits: %s", options->cloud ? why : "no worker");
  LP_TRY(lp_bundle_check_generates(bundle, diag));
  engine_remote *remote = NULL;
  if (options->cloud) LP_TRY(engine_remote_open(bundle, options, &remote, diag));
  lp_engine *engine = lp_alloc(sizeof *engine);
  engine->remote = remote;
  engine->draws_remotely = remote && has_logits_there(&bundle->manifest);
  engine->bundle = bundle;
  engine->kv_bytes = options->kv_bytes;
  engine->most_remote = SIZE_MAX;
  engine->theta = options->theta;
  engine->pace.stretch = options->prompt_stretch;
  engine->prompt_turn = options->prompt_turn;
  /* With exits a worker lacks rows that the device has. */
  engine->shares = engine->theta == 0 && engine_prefix_fits(bundle, remote != NULL);
  lp_states_init(&engine->shape, &bundle->manifest, LP_SIDE_DEVICE);
  engine->shape.paged = !bundle->side[LP_SIDE_DEVICE].gpu;
  engine->pool = lp_pool_create(options->threads);
  engine->batch = lp_batch_create(bundle, LP_SIDE_DEVICE, engine->pool);
  engine->code = lp_alloc((size_t)bundle->manifest.program_count * sizeof *engine->code);
  for (int32_t i = 0; i < bundle->manifest.program_count; i++)
    engine->code[i] = remote ? i : lp_program_code(bundle, LP_SIDE_DEVICE, i);
  (void)pthread_mutex_init(&engine->lock, NULL);
  (void)pthread_mutex_init(&engine->making_masks, NULL);
  (void)pthread_cond_init(&engine->work, NULL);
  (void)pthread_cond_init(&engine->late, NULL);
  (void)pthread_cond_init(&engine->drawn, NULL);
  engine->runs = pthread_create(&engine->thread, NULL, work, engine) == 0;
  *out = engine;
  if (engine->runs) return LP_OK;
  lp_engine_close(engine);
  *out = NULL;
  return lp_error(diag, LP_LOC_NONE, "the system starts no thread");
}

void lp_engine_close(lp_engine *engine) {
  if (!engine) return;
  engine_late_stop(engine);
  (void)pthread_mutex_lock(&engine->lock);
  (void)pthread_cond_signal(&engine->work);
  (void)pthread_mutex_unlock(&engine->lock);
  if (engine->runs) (void)pthread_join(engine->thread, NULL);
  engine_prefix_free(engine);
  engine_remote_close(engine->remote);
  lp_batch_free(engine->batch);
  lp_pool_free(engine->pool);
  lp_states_free(&engine->shape);
  free(engine->code);
  lp_vec_free(&engine->chosen);
  lp_vec_free(&engine->member);
  lp_vec_free(&engine->jobs);
  lp_vec_free(&engine->clients);
  lp_masks_free(engine->masks);
  (void)pthread_cond_destroy(&engine->work);
  (void)pthread_cond_destroy(&engine->late);
  (void)pthread_cond_destroy(&engine->drawn);
  (void)pthread_mutex_destroy(&engine->making_masks);
  (void)pthread_mutex_destroy(&engine->lock);
  free(engine);
}

lp_engine_load lp_engine_now(lp_engine *engine) {
  lp_engine_load load = {0};
  (void)pthread_mutex_lock(&engine->lock);
  for (size_t i = 0; i < engine->jobs.count; i++)
    *(engine_job_is_admitted(engine->jobs.data[i]) ? &load.running : &load.waiting) += 1;
  load.kv_bytes = (int64_t)engine->held;
  load.kept_bytes = (int64_t)engine->kept_bytes;
  load.reused = engine->reused;
  load.preempted = engine->preempted;
  load.busy_s = engine->busy_ms / 1000;
  (void)pthread_mutex_unlock(&engine->lock);
  return load;
}

int64_t lp_engine_rows_of(lp_engine *engine, uint64_t tenant, const int32_t *prompt, size_t length) {
  (void)pthread_mutex_lock(&engine->lock);
  const int64_t rows = engine_prefix_rows_of(engine, tenant, prompt, length);
  (void)pthread_mutex_unlock(&engine->lock);
  return rows;
}

/* ---- a request --------------------------------------------------------------------------------------------------- */

static lp_status check(const lp_engine *engine, const lp_engine_request *request, lp_diag *diag) {
  const lp_manifest *manifest = &engine->bundle->manifest;
  int64_t limit = manifest->context_length > 0 ? manifest->context_length : INT64_C(1) << 40;
  if (request->answered >= request->length && request->answered > 0)
    return lp_error(diag, LP_LOC_NONE, "%zu of %zu tokens were made before", request->answered, request->length);
  if (request->length < 1) return lp_error(diag, LP_LOC_NONE, "the prompt is empty");
  if (request->max_tokens < 1 || request->choices < 1)
    return lp_error(diag, LP_LOC_NONE, "%" PRId64 " tokens of %" PRId32 " sequences", request->max_tokens,
                    request->choices);
  if ((int64_t)request->length > limit || request->max_tokens > limit - (int64_t)request->length)
    return lp_error(diag, LP_LOC_NONE,
                    "a prompt of %zu tokens and %" PRId64 " to generate exceed the model's context of %" PRId64,
                    request->length, request->max_tokens, limit);
  for (size_t i = 0; i < request->length; i++)
    if (request->prompt[i] < 0 || request->prompt[i] >= manifest->vocab)
      return lp_error(diag, LP_LOC_NONE, "token %" PRId32 " lies outside of the vocabulary of %" PRId32,
                      request->prompt[i], manifest->vocab);
  return LP_OK;
}

/* Chooses the plan and computes the size of the KV cache of each job. */
static lp_status size_up(const lp_engine *engine, engine_call *call, lp_diag *diag) {
  const lp_engine_request *request = call->request;
  const lp_manifest *manifest = &engine->bundle->manifest;
  const double at[LP_PLAN_AXES] = {
      [LP_PLAN_PROMPT] = (double)request->length, [LP_PLAN_GENERATED] = (double)request->max_tokens};
  const lp_plan_desc *plan = &manifest->plans[manifest->plan_count > 1 ? lp_manifest_plan(manifest, at) : 0];
  call->prefill = plan->prefill;
  call->decode = plan->decode;
  return engine_memory_size(engine, call, diag);
}

static void init_job(const lp_engine *engine, engine_call *call, int32_t choice) {
  const lp_engine_request *request = call->request;
  engine_job *job = &call->job[choice];
  job->call = call;
  job->connection = engine->connection;
  for (size_t i = 0; i < request->length; i++)
    lp_vec_push(&job->text, request->prompt[i]);
  job->decoder = (engine_decoder){.how = &request->decoding,
                                  .bundle = engine->bundle,
                                  .masks = request->decoding.grammar ? engine->masks : NULL,
                                  .vocab = engine->bundle->manifest.vocab,
                                  .choice = request->first_choice + choice};
  engine_decoder_init(&job->decoder, request->prompt, request->length, request->answered);
}

/* Reads the vocabulary for the first request with a grammar, while passes go on. */
static lp_status need_masks(lp_engine *engine, lp_diag *diag) {
  if (!lp_bundle_tokenizer(engine->bundle))
    return lp_error(diag, LP_LOC_NONE, "the bundle has no tokenizer, which a grammar needs");
  (void)pthread_mutex_lock(&engine->making_masks);
  if (!engine->masks) engine->masks = lp_masks_create(engine_vocabulary_create(engine->bundle));
  const lp_status status = engine_late_start(engine, diag);
  (void)pthread_mutex_unlock(&engine->making_masks);
  return status;
}

static void submit(lp_engine *engine, engine_call *call) {
  (void)pthread_mutex_lock(&engine->lock);
  engine_client_enter(engine, call->request->client, call->request->choices);
  LP_FOR_EACH(engine_job, job, call->job, call->request->choices) {
    job->ticket = ++engine->ticket;
    lp_vec_push(&engine->jobs, job);
  }
  (void)pthread_cond_signal(&engine->work);
  (void)pthread_mutex_unlock(&engine->lock);
}

/* Cancels a job, or with choice -1 all of them. With the lock held. */
static void cancel(lp_engine *engine, engine_call *call, int32_t choice) {
  for (int32_t i = 0; i < call->request->choices; i++)
    if (choice < 0 || choice == i) call->job[i].cancelled = true;
  (void)pthread_cond_signal(&engine->work);
}

/* Takes a job's tokens that are there, and releases the lock while it hands them on. */
static void hand_on(lp_engine *engine, engine_call *call, int32_t choice) {
  engine_job *job = &call->job[choice];
  for (size_t i = 0; i < job->out.count && !job->cancelled; i++) {
    lp_drawn drawn = job->out.data[i];
    (void)pthread_mutex_unlock(&engine->lock);
    bool more = call->request->sink(call->request->user, call->request->first_choice + choice, &drawn);
    (void)pthread_mutex_lock(&engine->lock);
    job->handed++;
    if (!more) cancel(engine, call, choice);
  }
  job->out.count = 0;
}

/* Hands tokens on. With the lock held; tells whether all jobs have ended. */
static bool take_news(lp_engine *engine, engine_call *call) {
  bool all = true;
  for (int32_t i = 0; i < call->request->choices; i++) {
    if (call->job[i].out.count > 0) hand_on(engine, call, i);
    all &= call->job[i].stage == ENGINE_ENDED && call->job[i].out.count == 0;
  }
  return all;
}

static void await_news(lp_engine *engine, engine_call *call) {
  const struct timespec until = after_ms(ASK_MS);
  (void)pthread_cond_timedwait(&call->changed, &engine->lock, &until);
}

static bool has_news(const engine_call *call) {
  for (int32_t i = 0; i < call->request->choices; i++)
    if (call->job[i].out.count > 0) return true;
  return false;
}

static void attend(lp_engine *engine, engine_call *call) {
  const lp_engine_request *request = call->request;
  bool all = false;
  while (!all) {
    bool abandoned = request->is_abandoned && request->is_abandoned(request->user);
    (void)pthread_mutex_lock(&engine->lock);
    if (abandoned) cancel(engine, call, -1);
    all = take_news(engine, call);
    if (!all && !has_news(call)) await_news(engine, call);
    (void)pthread_mutex_unlock(&engine->lock);
  }
}

static lp_status conclude(engine_call *call, lp_engine_outcome *outcome, lp_diag *diag) {
  lp_status status = LP_OK;
  for (int32_t i = 0; i < call->request->choices; i++) {
    engine_job *job = &call->job[i];
    outcome[i] = (lp_engine_outcome){.tokens = job->handed,
                                     .reused = job->reused,
                                     .cut = job->end == ENGINE_END_CUT && !job->cancelled,
                                     .lost = job->end == ENGINE_END_LOST,
                                     .too_much = job->end == ENGINE_END_TOO_MUCH};
    if (job->error && status == LP_OK) status = lp_error(diag, LP_LOC_NONE, "%s", job->error);
    free(job->error);
    free(job->logits);
    engine_job_free_crossing(job);
    engine_decoder_free(&job->decoder);
    lp_vec_free(&job->text);
    lp_vec_free(&job->out);
  }
  return status;
}

lp_status lp_engine_generate(lp_engine *engine, const lp_engine_request *request, lp_engine_outcome *outcome,
                             double *queue_ms, lp_diag *diag) {
  engine_call call = {.request = request};
  LP_TRY(check(engine, request, diag));
  LP_TRY(size_up(engine, &call, diag));
  if (request->decoding.grammar) LP_TRY(need_masks(engine, diag));
  LP_TRY(lp_bundle_await_check(engine->bundle, diag)); /* no token may leave before that */
  double submitted_ms = lp_now_ms();
  (void)pthread_cond_init(&call.changed, NULL);
  call.job = lp_alloc((size_t)request->choices * sizeof *call.job);
  for (int32_t i = 0; i < request->choices; i++)
    init_job(engine, &call, i);
  submit(engine, &call);
  attend(engine, &call);
  *queue_ms = (call.begun_ms > 0 ? call.begun_ms : lp_now_ms()) - submitted_ms;
  lp_status status = conclude(&call, outcome, diag);
  free(call.job);
  (void)pthread_cond_destroy(&call.changed);
  return status;
}
