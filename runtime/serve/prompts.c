/* Several prompts of one request, side by side: see prompts.h. */
#include "runtime/serve/prompts.h"

#include <math.h>
#include <pthread.h>

/* The prompts of a request that are under way at the same time; others wait. */
enum { MOST_THREADS = 32 };

typedef struct {
  lp_dispatcher *dispatcher;
  const lp_completion *request;
  const volatile int *stop;
  const lp_prompts_taker *taker;
  pthread_mutex_t lock; /* guards the rest, and the taker */
  size_t next;          /* the first prompt that nobody has taken */
  size_t running;       /* threads that answer prompts */
  LP_VEC(size_t) again; /* prompts that wait, since the place had no room for them beside the others */
  bool begun;           /* `out` has the course of a prompt */
  lp_dispatched *out;
  lp_dispatched sum; /* of the `counted` prompts that have ended */
  size_t counted;
  lp_status status;
  lp_diag *diag;
} prompts;

/* One of them. */
typedef struct {
  prompts *all;
  int32_t first; /* its first choice */
  lp_dispatched course;
} one_prompt;

static bool take(void *user, const lp_piece *piece) {
  one_prompt *one = user;
  prompts *all = one->all;
  lp_piece numbered = *piece;
  numbered.choice += one->first;
  (void)pthread_mutex_lock(&all->lock);
  if (!all->begun) *all->out = one->course;
  all->begun = true;
  bool more = all->status == LP_OK && all->taker->sink(all->taker->user, &numbered);
  (void)pthread_mutex_unlock(&all->lock);
  return more;
}

static void forget(void *user) {
  const one_prompt *one = user;
  prompts *all = one->all;
  (void)pthread_mutex_lock(&all->lock);
  all->taker->forget(all->taker->user, one->first, all->request->choices);
  (void)pthread_mutex_unlock(&all->lock);
}

/* The later of two times, of which either may be unknown. */
static double later(double a, double b) {
  return isnan(a) ? b : isnan(b) ? a : fmax(a, b);
}

static void add(lp_dispatched *to, const lp_dispatched *of) {
  bool known = to->usage.prompt_tokens >= 0 && of->usage.prompt_tokens >= 0;
  to->usage.prompt_tokens = known ? to->usage.prompt_tokens + of->usage.prompt_tokens : -1;
  to->usage.tokens += of->usage.tokens;
  to->usage.cached_tokens += of->usage.cached_tokens;
  to->usage.queue_ms = fmax(to->usage.queue_ms, of->usage.queue_ms);
  to->fell_back |= of->fell_back;
  to->too_long |= of->too_long;
  to->no_model |= of->no_model;
  for (lp_time time = 0; time < LP_TIME_COUNT; time++)
    to->seconds[time] = later(to->seconds[time], of->seconds[time]);
}

/* Counts a prompt that has ended. With the lock held. */
static void conclude(prompts *all, const one_prompt *one, lp_status status, const lp_diag *diag) {
  for (int32_t i = 0; i < all->request->choices; i++)
    all->taker->end(all->taker->user, one->first + i, one->course.usage.finish[i]);
  if (all->counted++ == 0)
    all->sum = one->course;
  else
    add(&all->sum, &one->course);
  if (status == LP_OK || all->status != LP_OK) return;
  all->status = status;
  lp_diag_append(all->diag, diag);
}

/* Takes a prompt that nobody answers; false: none is left, or one has failed. With the lock held. */
static bool take_prompt(prompts *all, size_t *index) {
  if (all->status != LP_OK) return false;
  if (all->again.count > 0)
    *index = all->again.data[--all->again.count];
  else if (all->next < all->request->prompts)
    *index = all->next++;
  else
    return false;
  return true;
}

/* Answers prompts. If the place has no room for another one, a thread that has a prompt there answers it later. */
static void *answer(void *user) {
  prompts *all = user;
  size_t index = 0;
  bool crowded = false;
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  (void)pthread_mutex_lock(&all->lock);
  all->running++;
  while (!crowded && take_prompt(all, &index)) {
    one_prompt one = {.all = all, .first = (int32_t)index * all->request->choices};
    lp_completion alone = *all->request; /* borrows all but its tokens */
    const lp_taker taker = {.sink = take, .forget = all->taker->forget ? forget : NULL, .user = &one};
    (void)pthread_mutex_unlock(&all->lock);
    alone.prompt_tokens = (lp_tokens){0};
    lp_diag_clear(diag);
    lp_status status = alone.chat ? LP_OK : lp_completion_take_prompt(&alone, index, diag);
    if (status == LP_OK) status = lp_dispatch(all->dispatcher, &alone, all->stop, &taker, &one.course, diag);
    lp_vec_free(&alone.prompt_tokens);
    (void)pthread_mutex_lock(&all->lock);
    crowded = status == LP_FAILED && one.course.usage.is_busy && all->running > 1;
    if (crowded)
      lp_vec_push(&all->again, index);
    else
      conclude(all, &one, status, diag);
  }
  all->running--;
  (void)pthread_mutex_unlock(&all->lock);
  return NULL;
}

lp_status lp_prompts_answer(lp_dispatcher *dispatcher, const lp_completion *request, const volatile int *stop,
                            const lp_prompts_taker *taker, lp_dispatched *out, lp_diag *diag) {
  prompts all = {.dispatcher = dispatcher, .request = request, .stop = stop, .taker = taker, .out = out, .diag = diag};
  pthread_t thread[MOST_THREADS];
  size_t started = 0;
  (void)pthread_mutex_init(&all.lock, NULL);
  while (started < MOST_THREADS && started + 1 < request->prompts &&
         pthread_create(&thread[started], NULL, answer, &all) == 0)
    started++;
  (void)answer(&all);
  while (started > 0)
    (void)pthread_join(thread[--started], NULL);
  (void)pthread_mutex_destroy(&all.lock);
  lp_vec_free(&all.again);
  if (!all.begun) *out = all.sum;
  out->usage = all.sum.usage;
  out->fell_back = all.sum.fell_back;
  out->too_long = all.sum.too_long;
  out->no_model = all.sum.no_model;
  memcpy(out->seconds, all.sum.seconds, sizeof out->seconds);
  return all.status;
}
