/* The server's connections, so that silent and slow ones shut nobody out. A connection waits while the server has no
 * complete request of it: then it may be closed, at its deadline or for a newer connection when there are many. */
#pragma once

#include <pthread.h>

#include "base/base.h"

/* Connections; of these the most that wait. The rest is for those that wait only a moment. */
enum { LP_MOST_CONNECTIONS = 256, LP_MOST_WAITING = 192 };
/* A host gets further connections while it has less than this times those that are free. */
enum { LP_CONNECTIONS_SHARE = 7 };
/* Connections beyond these, which are only told that there are too many. */
enum { LP_MORE_CONNECTIONS = 64 };

typedef struct {
  int fd;
  bool answers;    /* a request of it is complete and not answered to its last byte */
  bool asked;      /* it has sent a request before */
  bool closing;    /* it was told to end */
  bool beyond;     /* there were too many before it, of all or of its host: its request is refused */
  uint64_t host;   /* a number for it */
  double since_ms; /* when it began to wait */
} lp_connection;

typedef struct {
  pthread_mutex_t lock; /* guards what follows */
  LP_VEC(lp_connection *) all;
} lp_connections;

void lp_connections_init(lp_connections *of);
void lp_connections_destroy(lp_connections *of);
/* A connection has been accepted. If too many wait, it shuts down the one that has waited for longest. */
lp_connection *lp_connections_add(lp_connections *of, int fd, uint64_t host);
void lp_connections_remove(lp_connections *of, lp_connection *connection); /* before its socket is closed */
void lp_connections_answer(lp_connections *of, lp_connection *connection, bool answers);
/* Shuts down those that have waited too long: 30 s for a first request, 120 s for another. */
void lp_connections_end_late(lp_connections *of, double now_ms);
