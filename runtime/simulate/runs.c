/* Hands out runs and collects their tallies. A process other than 0 sends the message `result`, which holds a run's
 * tally, or in its first message its key; process 0 answers with the number of the next run, or -1: there is none. */
#include "runtime/simulate/runs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is to be done, and what has been ----------------------------------------------------------------------- */

typedef struct {
  lp_sim_tally *tally;   /* [runs]; NULL before the first run begins and after the last has ended */
  lp_sim_delays *delays; /* of all runs */
  int64_t left;          /* runs that have not ended */
} point_state;

typedef struct {
  const lp_sim_work *work;
  pthread_mutex_t lock; /* of all below */
  int64_t next;         /* the next run, counted over all points */
  point_state *point;
} board;

/* Returns the next run; -1: there is none. */
static int64_t take(board *b) {
  (void)pthread_mutex_lock(&b->lock);
  const int64_t runs = b->work->runs, unit = b->next < b->work->points * runs ? b->next++ : -1;
  if (unit >= 0 && unit % runs == 0) {
    b->point[unit / runs] = (point_state){.tally = lp_alloc((size_t)runs * sizeof(lp_sim_tally)),
                                          .delays = lp_alloc(sizeof(lp_sim_delays)),
                                          .left = runs};
  }
  (void)pthread_mutex_unlock(&b->lock);
  return unit;
}

/* No further run begins. */
static void stop(board *b) {
  (void)pthread_mutex_lock(&b->lock);
  b->next = b->work->points * b->work->runs;
  (void)pthread_mutex_unlock(&b->lock);
}

static void release(const board *b, point_state *p) {
  for (int64_t i = 0; p->tally && i < b->work->runs; i++)
    lp_sim_tally_end(&p->tally[i]);
  free(p->tally);
  free(p->delays);
  *p = (point_state){0};
}

/* Takes the result of a run; the board releases the tally. */
static void give(board *b, int64_t unit, const lp_sim_tally *tally, const lp_sim_delays *delays) {
  (void)pthread_mutex_lock(&b->lock);
  const int64_t runs = b->work->runs, point = unit / runs;
  point_state *p = &b->point[point];
  p->tally[unit % runs] = *tally;
  lp_sim_delays_merge(p->delays, delays);
  if (--p->left == 0) {
    b->work->finish(b->work->user, point, p->tally, p->delays);
    release(b, p);
  }
  (void)pthread_mutex_unlock(&b->lock);
}

static void compute(const lp_sim_work *work, int64_t unit, lp_sim_tally *tally, lp_sim_delays *delays) {
  lp_sim_tally_begin(tally, work->tasks);
  memset(delays, 0, sizeof *delays);
  work->run(work->user, unit / work->runs, unit % work->runs, tally, delays);
}

static void *compute_all(void *user) {
  board *b = user;
  lp_sim_delays *delays = lp_alloc(sizeof *delays);
  for (int64_t unit; (unit = take(b)) >= 0;) {
    lp_sim_tally tally;
    compute(b->work, unit, &tally, delays);
    give(b, unit, &tally, delays);
  }
  free(delays);
  return NULL;
}

/* ---- other processes --------------------------------------------------------------------------------------------- */

/* Followed by the tally's sums and counts. Processes of one key have one layout. */
typedef struct {
  int64_t unit;
  lp_sim_tally tally;
  lp_sim_delays delays;
} result;

static size_t cells(const lp_sim_work *work) {
  return (size_t)LP_SIM_PARTS * (size_t)(SIM_TASKS + work->tasks);
}

static size_t result_size(const lp_sim_work *work) {
  return sizeof(result) + cells(work) * (sizeof(double) + sizeof(int64_t));
}

/* Computes the run into a message for process 0. */
static void compute_message(const lp_sim_work *work, int64_t unit, result *message) {
  compute(work, unit, &message->tally, &message->delays);
  message->unit = unit;
  char *after = (char *)(message + 1);
  memcpy(after, message->tally.sum, cells(work) * sizeof(double));
  memcpy(after + cells(work) * sizeof(double), message->tally.count, cells(work) * sizeof(int64_t));
  lp_sim_tally_end(&message->tally);
}

static void give_message(board *b, const result *message) {
  const lp_sim_work *work = b->work;
  lp_sim_tally tally, sent = message->tally;
  const char *after = (const char *)(message + 1);
  lp_sim_tally_begin(&tally, work->tasks);
  memcpy(tally.sum, after, cells(work) * sizeof(double));
  memcpy(tally.count, after + cells(work) * sizeof(double), cells(work) * sizeof(int64_t));
  sent.sum = tally.sum;
  sent.count = tally.count;
  give(b, message->unit, &sent, &message->delays);
}

static void follow(const lp_sim_work *work, const lp_peers *peers, const char *key) {
  result *message = lp_alloc(result_size(work));
  peers->send(0, key, strlen(key) + 1);
  for (;;) {
    int64_t unit = -1;
    size_t size;
    int32_t from = peers->wait(&size);
    if (size == sizeof unit) peers->receive(from, &unit, size);
    if (unit < 0) break;
    compute_message(work, unit, message);
    peers->send(0, message, result_size(work));
  }
  free(message);
}

/* Serves the other processes until each has been told that no run is left. */
static bool lead(board *b, const lp_peers *peers, const char *key) {
  bool good = true;
  for (int32_t left = 1; left < peers->count;) {
    size_t size;
    int32_t from = peers->wait(&size);
    char *message = lp_alloc(size + 1);
    peers->receive(from, message, size);
    const void *content = message;
    if (size == result_size(b->work))
      give_message(b, content);
    else
      good = lp_streq(message, key) && good;
    if (!good) stop(b);
    int64_t unit = take(b);
    peers->send(from, &unit, sizeof unit);
    left += unit < 0;
    free(message);
  }
  return good;
}

bool lp_sim_runs_compute(const lp_sim_work *work, int32_t threads, const lp_peers *peers, const char *key) {
  if (peers && peers->rank != 0) {
    follow(work, peers, key);
    return true;
  }
  board b = {.work = work, .point = lp_alloc((size_t)work->points * sizeof(point_state))};
  (void)pthread_mutex_init(&b.lock, NULL);
  const bool leads = peers && peers->count > 1;
  size_t count = leads ? 1 : (size_t)(threads > 1 ? threads - 1 : 0), started = 0;
  pthread_t *thread = lp_alloc((count + 1) * sizeof *thread);
  while (started < count && pthread_create(&thread[started], NULL, compute_all, &b) == 0)
    started++;
  const bool good = !leads || lead(&b, peers, key);
  (void)compute_all(&b);
  for (size_t i = 0; i < started; i++)
    (void)pthread_join(thread[i], NULL);
  for (int64_t i = 0; i < work->points; i++)
    release(&b, &b.point[i]);
  free(thread);
  free(b.point);
  (void)pthread_mutex_destroy(&b.lock);
  return good;
}
