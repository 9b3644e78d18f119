/* Figures of a worker, for Prometheus. The worker's thread notes them, and any thread prints. */
#include "runtime/worker/figures.h"

#include <pthread.h>

#include "base/clock.h"
#include "runtime/exposition/exposition.h"

struct lp_worker_figures {
  pthread_mutex_t lock; /* guards all members */
  bool serves;          /* it takes messages */
  worker_figures_now now;
  uint64_t opened[WORKER_OF_COUNT], dropped[WORKER_OF_COUNT][2], refused[WORKER_REFUSED_COUNT], failures;
  lp_histogram queue[WORKER_OF_COUNT], first[WORKER_OF_COUNT], between[WORKER_OF_COUNT], pass, rows;
};

lp_worker_figures *lp_worker_figures_create(void) {
  lp_worker_figures *self = lp_alloc(sizeof *self);
  *self = (lp_worker_figures){.rows.bounds = LP_BOUNDS_ROWS};
  (void)pthread_mutex_init(&self->lock, NULL);
  return self;
}

void lp_worker_figures_free(lp_worker_figures *self) {
  if (!self) return;
  (void)pthread_mutex_destroy(&self->lock);
  free(self);
}

const char *lp_worker_figures_unready(lp_worker_figures *self) {
  (void)pthread_mutex_lock(&self->lock);
  const char *why = !self->serves ? "it does not serve" : self->now.full ? "it has as many sessions as it may" : NULL;
  (void)pthread_mutex_unlock(&self->lock);
  return why;
}

/* ---- notes ------------------------------------------------------------------------------------------------------- */

/* Gives the figures with their lock held; NULL: none are kept. */
static lp_worker_figures *take(const lp_worker *worker) {
  lp_worker_figures *self = worker->options->figures;
  if (self) (void)pthread_mutex_lock(&self->lock);
  return self;
}

static void give_back(lp_worker_figures *self) {
  (void)pthread_mutex_unlock(&self->lock);
}

void worker_note_refusal(const lp_worker *worker, worker_refusal reason) {
  lp_worker_figures *self = take(worker);
  if (!self) return;
  self->refused[reason]++;
  give_back(self);
}

void worker_note_failure(const lp_worker *worker) {
  lp_worker_figures *self = take(worker);
  if (!self) return;
  self->failures++;
  give_back(self);
}

void worker_note_opened(const lp_worker *worker, worker_of of) {
  lp_worker_figures *self = take(worker);
  if (!self) return;
  self->opened[of]++;
  give_back(self);
}

void worker_note_dropped(const lp_worker *worker, worker_of of, bool idle) {
  lp_worker_figures *self = take(worker);
  if (!self) return;
  self->dropped[of][idle]++;
  give_back(self);
}

void worker_note_queued(const lp_worker *worker, worker_of of, double asked_ms) {
  lp_worker_figures *self = take(worker);
  if (!self) return;
  lp_histogram_observe(&self->queue[of], (lp_now_ms() - asked_ms) / 1000);
  give_back(self);
}

void worker_note_pass(const lp_worker *worker, int64_t rows, double ms) {
  lp_worker_figures *self = take(worker);
  if (!self) return;
  lp_histogram_observe(&self->pass, ms / 1000);
  lp_histogram_observe(&self->rows, (double)rows);
  give_back(self);
}

void worker_note_answer(const lp_worker *worker, worker_of of, bool first, double from_ms) {
  lp_worker_figures *self = take(worker);
  if (!self) return;
  lp_histogram_observe(first ? &self->first[of] : &self->between[of], (lp_now_ms() - from_ms) / 1000);
  give_back(self);
}

void worker_note_now(const lp_worker *worker, const worker_figures_now *now) {
  lp_worker_figures *self = take(worker);
  if (!self) return;
  self->serves = true;
  self->now = *now;
  give_back(self);
}

void worker_note_end(const lp_worker *worker) {
  lp_worker_figures *self = take(worker);
  if (!self) return;
  self->serves = false;
  self->now = (worker_figures_now){.received = self->now.received, .sent = self->now.sent};
  give_back(self);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static const char *const owner[WORKER_OF_COUNT] = {
    [WORKER_OF_SESSION] = "of=\"sessions\"", [WORKER_OF_CONTEXT] = "of=\"contexts\""};

static void put_histograms(lp_buf *out, const char *name, const char *help, const lp_histogram of[WORKER_OF_COUNT]) {
  lp_exposition_head(out, name, "histogram", help);
  for (int i = 0; i < WORKER_OF_COUNT; i++)
    lp_exposition_histogram(out, name, owner[i], &of[i]);
}

static void put_counts(lp_buf *out, const lp_worker_figures *self) {
  static const char *const reasons[WORKER_REFUSED_COUNT] = {
      [WORKER_REFUSED_HANDSHAKE] = "handshake", [WORKER_REFUSED_KEY] = "key",
      [WORKER_REFUSED_PLACE] = "place",         [WORKER_REFUSED_FULL] = "full",
      [WORKER_REFUSED_SESSIONS] = "sessions",   [WORKER_REFUSED_ROWS] = "rows",
      [WORKER_REFUSED_MEMORY] = "memory",       [WORKER_REFUSED_BUDGET] = "budget"};
  lp_exposition_head(out, "worker_opened_total", "counter", "Sessions, and contexts of early exits, that were opened.");
  for (int i = 0; i < WORKER_OF_COUNT; i++)
    lp_exposition_count(out, "worker_opened_total", owner[i], self->opened[i]);
  lp_exposition_head(out, "worker_dropped_total", "counter", "Those whose KV caches were dropped, by the reason.");
  for (int i = 0; i < WORKER_OF_COUNT; i++)
    for (int idle = 0; idle < 2; idle++)
      lp_exposition_labelled(out, "worker_dropped_total", self->dropped[i][idle], "%s,reason=\"%s\"", owner[i],
                             idle ? "idle" : "budget");
  lp_exposition_head(out, "worker_refused_total", "counter", "Peers, sessions and runs that were refused.");
  for (int i = 0; i < WORKER_REFUSED_COUNT; i++)
    lp_exposition_labelled(out, "worker_refused_total", self->refused[i], "reason=\"%s\"", reasons[i]);
  lp_exposition_single(out, "worker_failures_total", "counter",
                       "Failures that devices were told of, those refusals included.", self->failures);
  lp_exposition_head(out, "worker_bytes_total", "counter", "Bytes of messages from and to devices.");
  lp_exposition_count(out, "worker_bytes_total", "direction=\"received\"", self->now.received);
  lp_exposition_count(out, "worker_bytes_total", "direction=\"sent\"", self->now.sent);
}

static void put_state(lp_buf *out, const lp_worker_figures *self) {
  lp_exposition_single(out, "worker_up", "gauge", "Whether the worker takes messages.", self->serves);
  lp_exposition_head(out, "worker_open", "gauge", "Sessions, and contexts of early exits, that are open.");
  for (int i = 0; i < WORKER_OF_COUNT; i++)
    lp_exposition_count(out, "worker_open", owner[i], self->now.open[i]);
  lp_exposition_single(out, "worker_connections", "gauge", "Connections of devices and other workers.",
                       self->now.connections);
  lp_exposition_single(out, "worker_waiting", "gauge", "Runs and questions that wait for a pass.", self->now.waiting);
  lp_exposition_single(out, "worker_kv_bytes", "gauge", "Bytes of KV caches and of rows of contexts.", self->now.held);
  if (self->now.budget != SIZE_MAX) /* SIZE_MAX: no limit but a GPU's memory */
    lp_exposition_single(out, "worker_kv_budget_bytes", "gauge", "The most of those bytes.", self->now.budget);
}

void lp_worker_figures_print(lp_worker_figures *self, lp_buf *out) {
  (void)pthread_mutex_lock(&self->lock);
  put_counts(out, self);
  put_state(out, self);
  put_histograms(out, "worker_queue_seconds",
                 "Time from what was asked, or of a context from its question, until a pass took it up.", self->queue);
  lp_exposition_head(out, "worker_pass_seconds", "histogram", "Time of a pass.");
  lp_exposition_histogram(out, "worker_pass_seconds", "", &self->pass);
  lp_exposition_head(out, "worker_pass_rows", "histogram", "Rows (sequences times tokens) of a pass.");
  lp_exposition_histogram(out, "worker_pass_rows", "", &self->rows);
  put_histograms(out, "worker_first_answer_seconds", "Time from a prompt, or its first part, to the answer to it.",
                 self->first);
  put_histograms(out, "worker_between_answers_seconds",
                 "Time between two answers to a session or context that generates, device and link included.",
                 self->between);
  (void)pthread_mutex_unlock(&self->lock);
}
