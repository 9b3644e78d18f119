/* The other ranks of a sharded half: they replay what rank 0 does, each on its own weights and KV caches. They are
 * threads of rank 0's process, which load the bundle once more, or processes that mpirun started. */
#include <pthread.h>

#include "base/cores.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/ranks.h"
#include "runtime/runtime.h"

/* ---- one rank ---------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_bundle *bundle;
  lp_ranks *ranks;
  lp_pool *pool;
  lp_batch *batch;
  LP_VEC(lp_executor *) executors; /* by id - 1; NULL: freed, or not made yet */
  lp_batch_member *member;         /* [member_count] */
  size_t member_count;
  int32_t program; /* of the batch */
  lp_buf payload;
} follower;

static lp_executor *find_executor(follower *f, uint32_t id) {
  while (f->executors.count < id)
    lp_vec_push(&f->executors, NULL);
  lp_executor **place = &f->executors.data[id - 1];
  if (!*place) *place = lp_executor_create(f->bundle, LP_SIDE_CLOUD, f->pool);
  return *place;
}

static lp_status begin_batch(follower *f, const rank_order *order, lp_diag *diag) {
  const rank_member *given = (const rank_member *)f->payload.data;
  f->member_count = order->size / sizeof *given;
  f->member = lp_realloc(f->member, (f->member_count + 1) * sizeof *f->member);
  for (size_t i = 0; i < f->member_count; i++) {
    f->member[i] = (lp_batch_member){
        .states = &find_executor(f, (uint32_t)given[i].id)->states, .first = given[i].first, .of = given[i].of};
    memcpy(f->member[i].sym, given[i].sym, sizeof f->member[i].sym);
  }
  f->program = order->program;
  return lp_batch_begin(f->batch, order->program, f->member, f->member_count, diag);
}

static lp_status begin(follower *f, const rank_order *order, lp_diag *diag) {
  if (order->kind == LP_TELL_MEMBER) return begin_batch(f, order, diag);
  return lp_executor_begin(find_executor(f, order->id), order->program, (const int64_t *)f->payload.data, diag);
}

static const lp_program *program_of(follower *f, const rank_order *order) {
  int32_t program = order->id > 0 ? find_executor(f, order->id)->program : f->program;
  return &f->bundle->manifest.programs[program];
}

static lp_status fill(follower *f, const rank_order *order, lp_diag *diag) {
  const lp_step *step = &program_of(f, order)->step[order->step];
  size_t at = 0;
  if (order->id > 0)
    return lp_executor_fill(find_executor(f, order->id), order->buffer, step, f->payload.data, order->size, diag);
  for (size_t i = 0; i < f->member_count; i++) {
    lp_span to;
    LP_TRY(lp_batch_buffer(f->batch, i, order->buffer, step, &to, diag));
    if (to.size > 0) memcpy(to.data, f->payload.data + at, to.size);
    at += to.size;
  }
  return lp_batch_bring(f->batch, order->buffer, step, diag);
}

static lp_status run(follower *f, const rank_order *order, lp_diag *diag) {
  const lp_program *program = program_of(f, order);
  lp_executor *executor = order->id > 0 ? find_executor(f, order->id) : NULL;
  for (int32_t i = order->step; i < order->until; i++) {
    const lp_step *step = &program->step[i];
    if (step->side != LP_SIDE_CLOUD) continue;
    if (step->kind == LP_STEP_RUN)
      LP_TRY(executor ? lp_executor_run(executor, step, diag) : lp_batch_run(f->batch, step, diag));
    else if (step->kind == LP_STEP_GATHER)
      LP_TRY(executor ? lp_executor_gather(executor, step, diag) : lp_batch_gather(f->batch, step, diag));
  }
  if (!executor) return lp_batch_end(f->batch, diag);
  return executor->gpu_memory ? lp_gpu_wait(executor->states.gpu, executor->gpu_memory, diag) : LP_OK;
}

static lp_status act(follower *f, const rank_order *order, lp_diag *diag) {
  switch ((rank_order_kind)order->kind) {
  case LP_TELL_BEGIN:
  case LP_TELL_MEMBER: {
    lp_status agreed = begin(f, order, diag); /* which has told rank 0 whether it could */
    (void)agreed;
    return LP_OK;
  }
  case LP_TELL_FILL:
    return fill(f, order, diag);
  case LP_TELL_RUN:
    return run(f, order, diag);
  case LP_TELL_FORGET:
    lp_executor_forget(find_executor(f, order->id));
    break;
  case LP_TELL_FREE:
    lp_executor_free(find_executor(f, order->id));
    f->executors.data[order->id - 1] = NULL;
    break;
  case LP_TELL_STOP:
    break;
  }
  return LP_OK;
}

static lp_status follow(follower *f, lp_diag *diag) {
  lp_collective *all = &f->ranks->collective;
  rank_order order;
  while (all->broadcast(all->self, &order, sizeof order) && order.kind != LP_TELL_STOP) {
    lp_buf_clear(&f->payload);
    lp_buf_reserve(&f->payload, order.size + 1);
    if (order.size > 0 && !all->broadcast(all->self, f->payload.data, order.size)) break;
    LP_TRY(act(f, &order, diag));
  }
  return LP_OK;
}

/* With GPUs that have their own memory, NCCL gathers there. */
static lp_status attach(lp_bundle *bundle, const lp_collective *collective, lp_diag *diag) {
  lp_gpu *gpu = bundle->side[LP_SIDE_CLOUD].gpu;
  lp_ranks *ranks = bundle->ranks = lp_alloc(sizeof *bundle->ranks);
  ranks->collective = *collective;
  if (!gpu || !lp_gpu_is_apart(gpu)) return LP_OK;
  if (!lp_gpu_gathers(gpu) || !lp_gpu_enter(gpu))
    return lp_error(diag, LP_LOC_FILE(bundle->manifest.file), "the GPUs of several ranks cannot be used together");
  LP_TRY(lp_nccl_open(collective, &ranks->nccl, &ranks->collective, diag));
  lp_gpu_join(gpu, &ranks->collective);
  return LP_OK;
}

static void detach(lp_bundle *bundle) {
  if (!bundle->ranks) return;
  if (bundle->ranks->nccl) {
    lp_gpu_join(bundle->side[LP_SIDE_CLOUD].gpu, NULL);
    lp_nccl_close(bundle->ranks->nccl);
  }
  free(bundle->ranks->gathered);
  free(bundle->ranks);
  bundle->ranks = NULL;
}

lp_status lp_ranks_follow(lp_bundle *bundle, const lp_collective *collective, int32_t threads, lp_diag *diag) {
  lp_status status = attach(bundle, collective, diag);
  follower f = {.bundle = bundle, .ranks = bundle->ranks, .pool = lp_pool_create(threads)};
  f.batch = lp_batch_create(bundle, LP_SIDE_CLOUD, f.pool);
  if (status == LP_OK) status = lp_ranks_agree(f.ranks, lp_bundle_await_check(bundle, diag), diag);
  if (status == LP_OK) status = follow(&f, diag);
  status = lp_ranks_keep_up(f.ranks, status);
  for (size_t i = 0; i < f.executors.count; i++)
    lp_executor_free(f.executors.data[i]);
  lp_vec_free(&f.executors);
  lp_batch_free(f.batch);
  lp_pool_free(f.pool);
  lp_buf_free(&f.payload);
  free(f.member);
  detach(bundle);
  return status;
}

lp_status lp_ranks_lead(lp_bundle *bundle, const lp_collective *collective, lp_diag *diag) {
  LP_TRY(attach(bundle, collective, diag));
  return lp_ranks_agree(bundle->ranks, LP_OK, diag);
}

/* ---- threads of this process ------------------------------------------------------------------------------------- */

typedef struct {
  pthread_t thread;
  bool started;
  const char *path;
  lp_bundle_options load;
  lp_collective end;
  int32_t threads;
  lp_diag *diag;
} rank_thread;

struct lp_rank_team {
  lp_bundle *bundle;
  int32_t count;
  lp_thread_ranks *shared;
  rank_thread *rank; /* [count]; [0] is the caller */
};

static void *rank_main(void *user) {
  rank_thread *self = user;
  lp_bundle *bundle = NULL;
  lp_status status = lp_bundle_load(self->path, &self->load, &bundle, self->diag);
  if (status == LP_OK)
    status = lp_ranks_follow(bundle, &self->end, self->threads, self->diag);
  else
    self->end.give_up(self->end.self);
  lp_bundle_free(bundle);
  return NULL;
}

static void join_threads(lp_rank_team *team) {
  for (int32_t i = 1; i < team->count; i++) {
    if (team->rank[i].started) (void)pthread_join(team->rank[i].thread, NULL);
    team->rank[i].started = false;
  }
}

/* Ends the other ranks, and reports what all have reported, `own` by rank 0. They may have the same reason. */
static lp_status give_up(lp_rank_team *team, const lp_collective *end, const lp_diag *own, lp_diag *diag) {
  end->give_up(end->self);
  join_threads(team);
  const char *first = lp_diag_count(own) > 0 ? lp_diag_get(own, 0)->text : NULL;
  lp_report_error(diag, LP_LOC_FILE(team->bundle->manifest.file), "the ranks of the half cannot be started");
  for (int32_t i = 1; i < team->count; i++) {
    if (!team->rank[i].diag || lp_diag_count(team->rank[i].diag) == 0) continue;
    const char *text = lp_diag_get(team->rank[i].diag, 0)->text;
    if (!lp_streq(text, first)) lp_note(diag, LP_LOC_NONE, "rank %" PRId32 ": %s", i, text);
  }
  for (size_t i = 0; i < lp_diag_count(own); i++) {
    const lp_diag_entry *entry = lp_diag_get(own, i);
    lp_note(diag, LP_LOC_NONE, "%s%s", entry->severity == LP_ERROR ? "rank 0: " : "", entry->text);
  }
  return LP_FAILED;
}

lp_status lp_ranks_start(lp_bundle *bundle, const lp_bundle_options *load, int32_t threads, lp_rank_team **out,
                         lp_diag *diag) {
  int32_t count = lp_bundle_ranks(bundle);
  *out = NULL;
  if (count < 2 || bundle->ranks) return LP_OK;
  lp_rank_team *team = *out = lp_alloc(sizeof *team);
  LP_OWNED(lp_free_at) lp_collective *end = lp_alloc((size_t)count * sizeof *end);
  *team = (lp_rank_team){.bundle = bundle, .count = count, .rank = lp_alloc((size_t)count * sizeof *team->rank)};
  team->shared = lp_thread_ranks_create(count, end);
  lp_status status = LP_OK;
  for (int32_t i = 1; i < count; i++) {
    rank_thread *rank = &team->rank[i];
    *rank = (rank_thread){.path = bundle->path, .load = *load, .end = end[i], .threads = threads};
    rank->load.load = LP_LOAD_CLOUD;
    rank->load.rank = rank->load.gpu = i;
    rank->diag = lp_diag_create();
    rank->started = pthread_create(&rank->thread, NULL, rank_main, rank) == 0;
    if (!rank->started) end[0].give_up(end[0].self);
  }
  LP_OWNED(lp_diag_free_at) lp_diag *own = lp_diag_create();
  if (lp_ranks_lead(bundle, &end[0], own) != LP_OK) status = give_up(team, &end[0], own, diag);
  return status;
}

void lp_ranks_stop(lp_bundle *bundle, lp_rank_team *team, lp_diag *diag) {
  if (bundle && bundle->ranks) {
    lp_status told = lp_ranks_tell(bundle->ranks, (rank_order){.kind = LP_TELL_STOP}, NULL, NULL);
    (void)told;
    detach(bundle);
  }
  if (!team) return;
  join_threads(team);
  for (int32_t i = 1; i < team->count; i++) {
    if (diag && lp_diag_count(team->rank[i].diag) > 0)
      lp_note(diag, LP_LOC_NONE, "rank %" PRId32 ": %s", i, lp_diag_get(team->rank[i].diag, 0)->text);
    lp_diag_free(team->rank[i].diag);
  }
  lp_thread_ranks_free(team->shared);
  free(team->rank);
  free(team);
}

int32_t lp_ranks_threads(const lp_bundle *bundle, int64_t threads) {
  int32_t cores = lp_machine_threads(), share = cores / lp_bundle_ranks(bundle);
  return threads > 0 ? (int32_t)threads : lp_bundle_ranks(bundle) < 2 ? 0 : share > 1 ? share : 1;
}
