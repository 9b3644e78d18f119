/* The HTTP server: its requests, its signals, and its end. */
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/serve/http/listener.h"
#include "runtime/serve/http/paths.h"
#include "runtime/serve/states.h"

enum { POLL_MS = 50, LOOK_POLLS = 4, END_MS = 3000 };

/* Called when a connection begins and before it ends. *own stays with the connection. */
static void note_connection(void *user, struct MHD_Connection *connection, void **own,
                            enum MHD_ConnectionNotificationCode code) {
  lp_http_server *of = user;
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    const union MHD_ConnectionInfo *info = of->http->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *own = lp_connections_add(&of->connections, info ? info->connect_fd : -1, lp_peer_host(of->http, connection));
  } else if (*own) {
    lp_connections_remove(&of->connections, *own);
    *own = NULL;
  }
}

static void note_request(lp_http_server *of, struct MHD_Connection *connection, bool answers) {
  const union MHD_ConnectionInfo *info = of->http->get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  if (info && info->socket_context) lp_connections_answer(&of->connections, info->socket_context, answers);
}

static bool is_beyond(const lp_http_server *of, struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = of->http->get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  const lp_connection *own = info ? info->socket_context : NULL;
  return own && own->beyond;
}

/* A body of unknown length has become too long. The library takes no reply while a body comes, so that one is
 * written to the socket, and the connection ends; with TLS it only ends. */
static void reply_in_the_middle(const lp_http_server *of, struct MHD_Connection *connection) {
  static const char reply[] = "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
  const union MHD_ConnectionInfo *info = of->http->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (info && !of->config->cert) (void)!send(info->connect_fd, reply, sizeof reply - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Called for the head, for each part of the body, and at its end. */
static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **context) {
  lp_http_server *of = user;
  lp_exchange *a = *context;
  if (!a) {
    enum MHD_Result result = MHD_YES;
    *context = a = lp_exchange_create(of);
    const lp_request_head head = {url, method, version, is_beyond(of, connection)};
    (void)lp_paths_refuse(connection, &head, a, &result);
    return result;
  }
  if (*size > 0) {
    if (a->body.size + *size > (size_t)of->config->max_body) {
      reply_in_the_middle(of, connection);
      return MHD_NO;
    }
    lp_buf_append(&a->body, data, *size);
    *size = 0;
    return MHD_YES;
  }
  bool taken = false;
  note_request(of, connection, true);
  enum MHD_Result result = lp_paths_reply(connection, url, method, a, &taken);
  if (taken) *context = NULL;
  return result;
}

static void forget(void *user, struct MHD_Connection *connection, void **context,
                   enum MHD_RequestTerminationCode code) {
  lp_http_server *of = user;
  (void)code;
  note_request(of, connection, false);
  (void)pthread_mutex_lock(&of->lock);
  of->requests--;
  (void)pthread_mutex_unlock(&of->lock);
  if (*context) lp_exchange_free(*context);
  *context = NULL;
}

static int open_requests(lp_http_server *of) {
  (void)pthread_mutex_lock(&of->lock);
  int requests = of->requests;
  (void)pthread_mutex_unlock(&of->lock);
  return requests;
}

static void renew(const lp_http_server *of, lp_http_listener *listener, lp_diag *diag) {
  if (!of->config->cert) {
    lp_warning(diag, LP_LOC_NONE,
               "SIGHUP: there is no certificate to read again, and the configuration counts until "
               "the server is started anew");
    return;
  }
  lp_diag *found = lp_diag_create();
  if (lp_http_listener_renew(listener, found) != LP_OK)
    lp_warning(diag, LP_LOC_FILE(of->config->cert), "the certificate stays: %s", lp_diag_get(found, 0)->text);
  lp_diag_free(found);
}

/* Ends the current answers; streams end with an error event, which clients that read get before their connection
 * ends. */
static void wait_for_end(lp_http_server *of, lp_http_listener *listener, const lp_serve_signals *signals,
                         lp_diag *diag) {
  lp_workers_seen seen = {0};
  for (int64_t polls = 1; !lp_flag_get(signals->stop); polls++) {
    (void)usleep(POLL_MS * 1000);
    if (of->log && polls % LOOK_POLLS == 0) lp_states_log(of->dispatcher, of->log, &seen);
    if (signals->renew && lp_flag_take(signals->renew)) renew(of, listener, diag);
    lp_http_listener_tend(listener);
    lp_connections_end_late(&of->connections, lp_now_ms());
  }
  lp_http_listener_stop(listener);
  lp_flag_set(&of->drains);
  for (double since_ms = lp_now_ms(); open_requests(of) > 0 && lp_now_ms() - since_ms < of->config->drain_ms;)
    (void)usleep(POLL_MS * 1000);
  lp_flag_set(&of->stop);
  (void)pthread_mutex_lock(&of->lock);
  while (of->answers > 0)
    (void)pthread_cond_wait(&of->changed, &of->lock);
  (void)pthread_mutex_unlock(&of->lock);
  for (double since_ms = lp_now_ms(); open_requests(of) > 0 && lp_now_ms() - since_ms < (double)END_MS;)
    (void)usleep(POLL_MS * 1000);
}

static lp_status serve(lp_http_server *of, const lp_serve_signals *signals, lp_serve_ready *ready, void *user,
                       lp_diag *diag) {
  char *host = NULL;
  int port = 0;
  lp_http_listener *listener = NULL;
  const lp_http_callbacks callbacks = {handle, forget, note_connection};
  lp_status status = lp_http_listener_check(of->config, diag);
  if (status == LP_OK && of->config->log) status = lp_log_open(of->config->log, &of->log, diag);
  if (status == LP_OK) status = lp_dispatcher_open(of->config, &of->dispatcher, diag);
  if (status == LP_OK) status = lp_http_listener_open(of, callbacks, &listener, &host, &port, diag);
  if (status == LP_OK) {
    ready(user, host, port);
    wait_for_end(of, listener, signals, diag);
  }
  lp_http_listener_close(listener);
  if (of->dispatcher) lp_dispatcher_close(of->dispatcher);
  lp_log_close(of->log);
  free(host);
  return status;
}

lp_status lp_serve(const lp_serve_config *config, const lp_serve_signals *signals, lp_serve_ready *ready, void *user,
                   lp_diag *diag) {
  const lp_http_library *http = NULL;
  LP_TRY(lp_http_library_load(&http, diag));
  lp_http_server of = {.http = http, .config = config, .limits = lp_limits_create(config), .kept = lp_kept_create()};
  (void)signal(SIGPIPE, SIG_IGN); /* a client that leaves ends its answer, not the server */
  (void)pthread_mutex_init(&of.lock, NULL);
  (void)pthread_cond_init(&of.changed, NULL);
  lp_connections_init(&of.connections);
  lp_status status = serve(&of, signals, ready, user, diag);
  lp_connections_destroy(&of.connections);
  (void)pthread_cond_destroy(&of.changed);
  (void)pthread_mutex_destroy(&of.lock);
  lp_limits_free(of.limits);
  lp_kept_free(of.kept);
  return status;
}
