/* Which connections wait, and for how long (connections.h). */
#include "runtime/serve/http/connections.h"

#include <sys/socket.h>

#include "base/clock.h"

static const double first_ms = 30000, next_ms = 120000;

void lp_connections_init(lp_connections *of) {
  *of = (lp_connections){.all = {0}};
  (void)pthread_mutex_init(&of->lock, NULL);
}

void lp_connections_destroy(lp_connections *of) {
  lp_vec_free(&of->all);
  (void)pthread_mutex_destroy(&of->lock);
}

static bool waits(const lp_connection *connection) {
  return !connection->answers && !connection->closing;
}

/* The thread that reads the socket then closes it. */
static void shut_down(lp_connection *connection) {
  connection->closing = true;
  (void)shutdown(connection->fd, SHUT_RDWR);
}

static void make_room(lp_connections *of) {
  size_t waiting = 0;
  lp_connection *oldest = NULL;
  LP_FOR_VEC_REFS(lp_connection, connection, &of->all) {
    if (!waits(connection)) continue;
    waiting++;
    if (!oldest || connection->since_ms < oldest->since_ms) oldest = connection;
  }
  if (oldest && (waiting >= LP_MOST_WAITING || of->all.count >= LP_MOST_CONNECTIONS - 1)) shut_down(oldest);
}

static bool has_too_many(const lp_connections *of, uint64_t host) {
  size_t own = 0;
  for (size_t i = 0; i < of->all.count; i++)
    own += of->all.data[i]->host == host;
  return of->all.count >= LP_MOST_CONNECTIONS || own >= LP_CONNECTIONS_SHARE * (LP_MOST_CONNECTIONS - of->all.count);
}

lp_connection *lp_connections_add(lp_connections *of, int fd, uint64_t host) {
  lp_connection *made = lp_alloc(sizeof *made);
  made->fd = fd;
  made->host = host;
  made->since_ms = lp_now_ms();
  (void)pthread_mutex_lock(&of->lock);
  make_room(of);
  made->beyond = has_too_many(of, host);
  lp_vec_push(&of->all, made);
  (void)pthread_mutex_unlock(&of->lock);
  return made;
}

void lp_connections_remove(lp_connections *of, lp_connection *connection) {
  (void)pthread_mutex_lock(&of->lock);
  for (size_t i = 0; i < of->all.count; i++)
    if (of->all.data[i] == connection) of->all.data[i] = of->all.data[--of->all.count];
  (void)pthread_mutex_unlock(&of->lock);
  free(connection);
}

void lp_connections_answer(lp_connections *of, lp_connection *connection, bool answers) {
  (void)pthread_mutex_lock(&of->lock);
  connection->answers = answers;
  connection->asked = true;
  connection->since_ms = lp_now_ms();
  (void)pthread_mutex_unlock(&of->lock);
}

void lp_connections_end_late(lp_connections *of, double now_ms) {
  (void)pthread_mutex_lock(&of->lock);
  LP_FOR_VEC_REFS(lp_connection, connection, &of->all)
    if (waits(connection) && now_ms - connection->since_ms >= (connection->asked ? next_ms : first_ms))
      shut_down(connection);
  (void)pthread_mutex_unlock(&of->lock);
}
