/* Writes with group commit. A row waits in a queue; the first thread that finds no writer writes all waiting rows in
 * one transaction and wakes their threads. Thus concurrent calls share one durable commit, and no call returns before
 * its row is durable. */
#include "runtime/router/store_internal.h"

static void write_all(lp_store *store, lp_store_line *first) {
  (void)pthread_mutex_lock(&store->lock);
  store->kind->write(store, first);
  for (const lp_store_line *line = first; store->follows && line; line = line->next)
    if (!line->request && line->error[0] == '\0') lp_vec_push(&store->written, line->id);
  (void)pthread_mutex_unlock(&store->lock);
}

static void append(lp_store *store, lp_store_line *line) {
  if (!store->first)
    store->first = line;
  else
    store->last->next = line;
  store->last = line;
}

/* Returns when the row is on the disk or has failed. */
static lp_status write_durably(lp_store *store, lp_store_line *line, lp_diag *diag) {
  (void)pthread_mutex_lock(&store->queue_lock);
  append(store, line);
  while (!line->done) {
    if (store->writing) {
      (void)pthread_cond_wait(&store->changed, &store->queue_lock);
      continue;
    }
    lp_store_line *batch = store->first;
    store->first = NULL;
    store->writing = true;
    (void)pthread_mutex_unlock(&store->queue_lock);
    write_all(store, batch);
    (void)pthread_mutex_lock(&store->queue_lock);
    store->writing = false;
    for (lp_store_line *next; batch; batch = next) {
      next = batch->next; /* its thread may free a row as soon as it is done */
      batch->done = true;
    }
    (void)pthread_cond_broadcast(&store->changed);
  }
  (void)pthread_mutex_unlock(&store->queue_lock);
  return line->error[0] == 0 ? LP_OK : lp_error(diag, (lp_loc){.file = store->name}, "%s", line->error);
}

lp_status lp_store_decision(lp_store *store, const lp_router_request *request, const lp_decision *decision, int64_t *id,
                            lp_diag *diag) {
  lp_store_line line = {.request = request, .decision = decision};
  lp_status status = write_durably(store, &line, diag);
  *id = status == LP_OK ? line.id : 0;
  return status;
}

lp_status lp_store_outcome(lp_store *store, int64_t id, double reward, bool good, lp_diag *diag) {
  lp_store_line line = {.id = id, .reward = reward, .good = good};
  return write_durably(store, &line, diag);
}
