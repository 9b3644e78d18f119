/* What the files of the store share: a queue of rows to write (store_write.c), a table of functions for each kind of
 * pool (store_sqlite.c, store_postgres.c), and what these say of rows (store_row.c). */
#pragma once

#include <pthread.h>

#include "runtime/router/store.h"

/* A row to write. */
typedef struct lp_store_line lp_store_line;
struct lp_store_line {
  lp_store_line *next;
  const lp_router_request *request; /* the decision to write; NULL: an outcome */
  const lp_decision *decision;
  int64_t id; /* number of the decision: set by the pool, or given by the caller */
  double reward;
  bool good, done;
  char error[160]; /* empty: it was written */
};
void lp_store_line_fail(lp_store_line *line, const char *error);
void lp_store_line_lacks_decision(lp_store_line *line);
void lp_store_line_has_outcome(lp_store_line *line);

/* Outcomes: of those after sequence number `after`, the newest `most`, or all for 0. */
typedef struct {
  int64_t after, most;
} lp_store_range;

/* A pool's functions. The caller holds the lock. */
typedef struct {
  lp_status (*open)(lp_store *store, lp_diag *diag);
  void (*close)(lp_store *store); /* also after `open` failed */
  /* Writes the rows in one transaction and sets their `error` and the `id` of decisions. A row that fails does not
   * affect the others; a transaction that fails fails all its rows. */
  void (*write)(lp_store *store, lp_store_line *first);
  lp_status (*count)(lp_store *store, int64_t *out, lp_diag *diag);
  /* Visits the decision, if there is one. */
  lp_status (*get)(lp_store *store, int64_t id, lp_store_visit *visit, void *user, lp_diag *diag);
  lp_status (*each)(lp_store *store, lp_store_range range, lp_store_visit *visit, void *user, lp_diag *diag);
} lp_store_kind;
extern const lp_store_kind lp_store_sqlite, lp_store_postgres;

struct lp_store {
  const lp_store_kind *kind;
  void *own;            /* the kind's */
  char *pool, *name;    /* as it was given, and for messages */
  pthread_mutex_t lock; /* of the connection and of the members below */
  int64_t seen;         /* the sequence number of the last outcome that was visited */
  bool follows;
  LP_VEC(int64_t) written; /* decisions whose outcomes this object added after `seen`, while it follows */
  size_t met;              /* of these, the ones that were read again */
  /* Rows that wait for the next transaction. */
  pthread_mutex_t queue_lock;
  pthread_cond_t changed;
  lp_store_line *first, *last;
  bool writing; /* a thread is at it */
};

/* Sets rule, route and source from a row; fails if they are none. `out->id` is set. */
LP_MUST_USE lp_status lp_store_read_row(const lp_store *store, const char *rule, const char *route, int64_t source,
                                        lp_stored *out, lp_diag *diag);
