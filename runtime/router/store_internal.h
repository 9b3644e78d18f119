/* The struct that the files of the store share. */
#ifndef LP_STORE_INTERNAL_H
#define LP_STORE_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>

#include "runtime/router/store.h"

typedef enum {
  STORE_BEGIN,
  STORE_COMMIT,
  STORE_ROLLBACK,
  STORE_DECISION,
  STORE_OUTCOME,
  STORE_GET,
  STORE_EACH,
  STORE_STATEMENTS
} lp_store_statement;

typedef struct lp_store_line lp_store_line; /* store_write.c */

struct lp_store {
  sqlite3 *db;
  sqlite3_stmt *statement[STORE_STATEMENTS];
  pthread_mutex_t lock; /* of the connection */
  char *path;
  /* Rows that wait for the next transaction. */
  pthread_mutex_t queue_lock;
  pthread_cond_t written;
  lp_store_line *first, *last;
  bool writing; /* a thread is at it */
};

#endif
