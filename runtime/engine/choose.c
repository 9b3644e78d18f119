/* Chooses the sequences of the next pass. */

#include "runtime/engine/job.h"
#include "runtime/engine/memory.h"
#include "runtime/engine/prefix.h"
#include "runtime/engine/remote.h"
#include "runtime/exec/fair.h"

static int64_t waiting_rows(const engine_job *job) {
  return (int64_t)job->text.count - job->done;
}

static int by_turn(const void *a, const void *b) {
  const engine_job *x = *(engine_job *const *)a, *y = *(engine_job *const *)b;
  if ((x->turn > 0) != (y->turn > 0)) return x->turn > 0 ? -1 : 1;
  return lp_fair_compare(x->served, x->ticket, y->served, y->ticket);
}

/* Sorts the jobs by their turn, and notes the turn: a client that comes back after a pause begins there. */
static void sort(lp_engine *engine) {
  engine->turn = INT64_MAX;
  for (size_t i = 0; i < engine->clients.count; i++)
    if (engine->clients.data[i].served < engine->turn) engine->turn = engine->clients.data[i].served;
  if (engine->clients.count == 0) engine->turn = 0;
  LP_FOR_VEC_REFS(engine_job, job, &engine->jobs)
    job->served = engine_client_of(engine, job->call->request->client)->served;
  if (engine->jobs.count > 1) qsort(engine->jobs.data, engine->jobs.count, sizeof(engine_job *), by_turn);
}

static void drop_cancelled(lp_engine *engine) {
  for (size_t i = engine->jobs.count; i-- > 0;)
    if (engine->jobs.data[i]->cancelled && engine->jobs.data[i] != engine->drawing)
      engine_job_end(engine, engine->jobs.data[i]);
}

static int32_t program_of(const engine_job *job) {
  return job->done == 0 ? job->call->prefill : job->call->decode;
}

static void take(lp_engine *engine, engine_job *job, int64_t rows) {
  lp_batch_member member = {.states = &job->executor->states};
  member.sym[LP_SYM_B] = 1;
  member.sym[LP_SYM_S] = rows;
  member.sym[LP_SYM_P] = job->done;
  member.sym[LP_SYM_R] = 1;
  member.sym[LP_SYM_C] = job->call->capacity;
  job->rows = rows;
  bool is_first = job->text.count == job->call->request->length; /* it was not preempted after its first token */
  if (job->stage != ENGINE_RUNNING && is_first) engine->reused += job->reused = job->done;
  engine_job_enter(job, ENGINE_RUNNING);
  lp_vec_push(&engine->chosen, job);
  lp_vec_push(&engine->member, member);
}

/* The code that the next pass runs: that of the first job. -1: there is no job. */
static int32_t code_of_pass(const lp_engine *engine, uint64_t *prompts) {
  int32_t code = -1;
  uint64_t first = UINT64_MAX;
  LP_FOR_VEC_REFS(engine_job, job, &engine->jobs) {
    if (!engine_job_may_run(job)) continue;
    *prompts += waiting_rows(job) > 1;
    if (job->ticket < first) first = job->ticket, code = engine->code[program_of(job)];
  }
  return code;
}

static bool is_candidate(const lp_engine *engine, const engine_job *job, int32_t code, bool prompt) {
  return engine_job_may_run(job) && (waiting_rows(job) > 1) == prompt && engine->code[program_of(job)] == code;
}

/* How many times as long a pass may last for the generating sequences of one client while others generate, too. */
static const double client_stretch = 2;

/* The rows of decode that a pass takes of each client. */
static void share_rows(lp_engine *engine, int32_t code) {
  int64_t all = 0;
  LP_FOR_VEC(engine_client, client, &engine->clients)
    client->most = 0;
  LP_FOR_VEC_REFS(engine_job, job, &engine->jobs) {
    if (!is_candidate(engine, job, code, false)) continue;
    engine_client_of(engine, job->call->request->client)->most++;
    all++;
  }
  LP_FOR_VEC(engine_client, client, &engine->clients) {
    int64_t others = all - client->most;
    int64_t rows = others > 0 ? lp_pace_rows_stretched(&engine->pace, others, client_stretch) - others : all;
    if (client->most > rows) client->most = rows > 1 ? rows : 1;
  }
}

/* Tells whether the text has tokens that were made in passes of one row each, and may be rounded so: by an earlier
 * request (engine.h), or before the worker took the memory of their rows. */
static bool has_answer(const lp_engine *engine, const engine_job *job) {
  return job->call->request->answered > 0 || (engine->remote && job->text.count > job->call->request->length);
}

static void take_prompts(lp_engine *engine, int32_t code, int64_t prompts) {
  int64_t decoders = (int64_t)engine->chosen.count;
  int64_t paced = decoders > 0 ? lp_pace_rows(&engine->pace, decoders) - decoders : 0;
  int64_t most = lp_pace_most(&engine->pace), left = lp_pass_prompt_rows(most, decoders, prompts, paced);
  int64_t turn = lp_pass_turn(most, engine->prompt_turn, left, prompts);
  for (size_t i = 0; i < engine->jobs.count && left > 0 && engine->chosen.count < LP_PASS_MOST_SEQUENCES; i++) {
    engine_job *job = engine->jobs.data[i];
    if (!is_candidate(engine, job, code, true)) continue;
    int64_t rows = lp_pass_turn_rows(waiting_rows(job), turn, left, &job->turn);
    int64_t fresh = (int64_t)(job->call->request->length - job->call->request->answered) - job->done;
    if (has_answer(engine, job) && rows > fresh) rows = fresh > 0 ? fresh : 1;
    take(engine, job, rows);
    left -= rows;
  }
}

bool engine_choose(lp_engine *engine) {
  engine->chosen.count = engine->member.count = 0;
  drop_cancelled(engine);
  sort(engine);
  engine_memory_share(engine);
  if (engine->remote && engine_remote_has_forgotten(engine->remote)) return false; /* it frees room there first */
  engine_prefix_find(engine);
  uint64_t prompts = 0;
  int32_t code = code_of_pass(engine, &prompts);
  size_t most = prompts > 0 ? LP_PASS_MOST_SEQUENCES - LP_PASS_PROMPT_SEQUENCES : LP_PASS_MOST_SEQUENCES;
  share_rows(engine, code);
  for (size_t i = 0; i < engine->jobs.count && engine->chosen.count < most; i++) {
    engine_job *job = engine->jobs.data[i];
    if (is_candidate(engine, job, code, false) && engine_client_of(engine, job->call->request->client)->most-- > 0)
      take(engine, job, 1);
  }
  take_prompts(engine, code, (int64_t)prompts);
  return engine->chosen.count > 0;
}
