/* Writes with group commit. A row waits in a queue; the first thread that finds no writer writes all waiting rows in
 * one transaction and wakes their threads. Thus concurrent calls share one durable commit, and no call returns before
 * its row is durable. */
#include <stdio.h>
#include <string.h>

#include "runtime/router/store_internal.h"

struct lp_store_line {
  lp_store_line *next;
  const lp_router_request *request; /* the decision to write; NULL: an outcome */
  const lp_decision *decision;
  int64_t id; /* number of the decision: returned by SQLite, or given by the caller */
  double reward;
  bool good, done;
  char error[160]; /* empty: it was written */
};

static void bind_text(sqlite3_stmt *statement, int at, const char *text) {
  (void)sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
}

static void bind_decision(sqlite3_stmt *statement, const lp_store_line *line) {
  const lp_decision *decision = line->decision;
  bind_text(statement, 1, line->request->keywords);
  (void)sqlite3_bind_int(statement, 2, (int)line->request->offered);
  bind_text(statement, 3, lp_route_name(line->request->rule));
  bind_text(statement, 4, lp_route_name(decision->route));
  (void)sqlite3_bind_int(statement, 5, (int)decision->source);
  (void)sqlite3_bind_double(statement, 6, decision->propensity);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    (void)sqlite3_bind_double(statement, 7 + (int)route, decision->probability[route]);
  bind_text(statement, 10, decision->reason);
}

static void bind_outcome(sqlite3_stmt *statement, const lp_store_line *line) {
  (void)sqlite3_bind_double(statement, 1, line->reward);
  (void)sqlite3_bind_int(statement, 2, line->good);
  (void)sqlite3_bind_int64(statement, 3, line->id);
}

/* Runs a statement that yields no rows and makes it ready for the next use; false: it failed, and the connection has
 * the reason. */
static bool run(lp_store *store, lp_store_statement id) {
  bool done = sqlite3_step(store->statement[id]) == SQLITE_DONE;
  (void)sqlite3_reset(store->statement[id]);
  return done;
}

static void note_error(const lp_store *store, lp_store_line *line) {
  (void)snprintf(line->error, sizeof line->error, "%s", sqlite3_errmsg(store->db));
}

static void write_line(lp_store *store, lp_store_line *line) {
  if (line->request) {
    bind_decision(store->statement[STORE_DECISION], line);
    if (!run(store, STORE_DECISION)) note_error(store, line);
    line->id = sqlite3_last_insert_rowid(store->db);
    return;
  }
  bind_outcome(store->statement[STORE_OUTCOME], line);
  if (run(store, STORE_OUTCOME)) {
    if (sqlite3_changes(store->db) == 0)
      (void)snprintf(line->error, sizeof line->error, "no decision %lld", (long long)line->id);
  } else if (sqlite3_errcode(store->db) == SQLITE_CONSTRAINT) {
    (void)snprintf(line->error, sizeof line->error, "decision %lld has an outcome already", (long long)line->id);
  } else {
    note_error(store, line);
  }
}

/* A row that fails does not affect the others; a transaction that fails fails all its rows. */
static void write_all(lp_store *store, lp_store_line *first) {
  (void)pthread_mutex_lock(&store->lock);
  bool begun = run(store, STORE_BEGIN), written = begun;
  for (lp_store_line *line = first; begun && line; line = line->next)
    write_line(store, line);
  if (begun) written = run(store, STORE_COMMIT);
  for (lp_store_line *line = first; !written && line; line = line->next)
    note_error(store, line);
  if (begun && !written) (void)run(store, STORE_ROLLBACK);
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
      (void)pthread_cond_wait(&store->written, &store->queue_lock);
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
    (void)pthread_cond_broadcast(&store->written);
  }
  (void)pthread_mutex_unlock(&store->queue_lock);
  return line->error[0] == 0 ? LP_OK : lp_error(diag, (lp_loc){.file = store->path}, "%s", line->error);
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
