/* The HTTP server: its address, its connections, and its end. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/library.h"
#include "runtime/link/address.h"
#include "runtime/serve/http/paths.h"

enum { POLL_MS = 50, IDLE_S = 120, END_MS = 3000 };

/* Called when a connection begins and before it ends. *own stays with the connection. */
static void note_connection(void *user, struct MHD_Connection *connection, void **own,
                            enum MHD_ConnectionNotificationCode code) {
  lp_http_server *of = user;
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    const union MHD_ConnectionInfo *info = of->http->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *own = lp_connections_add(&of->connections, info ? info->connect_fd : -1);
  } else if (*own) {
    lp_connections_remove(&of->connections, *own);
    *own = NULL;
  }
}

static void note_request(lp_http_server *of, struct MHD_Connection *connection, bool answers) {
  const union MHD_ConnectionInfo *info = of->http->get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  if (info && info->socket_context) lp_connections_answer(&of->connections, info->socket_context, answers);
}

/* Called for the head, for each part of the body, and at its end. */
static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **context) {
  lp_http_server *of = user;
  lp_exchange *a = *context;
  (void)version;
  if (!a) {
    *context = lp_exchange_create(of);
    return MHD_YES;
  }
  if (*size > 0) {
    a->too_long |= a->body.size + *size > (size_t)of->config->max_body;
    if (!a->too_long) lp_buf_append(&a->body, data, *size);
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

/* Reads a host that is a number, "127.0.0.1" or "[::1]", or localhost. */
static bool read_host(const char *host, int port, struct sockaddr_storage *out) {
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  size_t length = strlen(host);
  if (length < 2 || host[0] != '[' || host[length - 1] != ']') {
    bool good = inet_pton(AF_INET, lp_streq(host, "localhost") ? "127.0.0.1" : host, &four.sin_addr) == 1;
    memcpy(out, &four, sizeof four);
    return good;
  }
  lp_buf inner = {0};
  lp_buf_append(&inner, host + 1, length - 2);
  bool good = inet_pton(AF_INET6, lp_buf_text(&inner), &six.sin6_addr) == 1;
  lp_buf_free(&inner);
  memcpy(out, &six, sizeof six);
  return good;
}

static lp_status find_address(const lp_serve_config *config, struct sockaddr_storage *out, char **host, lp_diag *diag) {
  int port = 0;
  lp_diag *quiet = lp_diag_create();
  lp_status status = lp_address_split(config->listen, host, &port, quiet);
  lp_diag_free(quiet);
  if (status != LP_OK || !read_host(*host, port, out))
    return lp_error(diag, LP_LOC_NONE,
                    "'%s' is no address: wanted HOST:PORT with a number, as 127.0.0.1:8080 or [::]:8080",
                    config->listen);
  if (!lp_address_is_loopback(*host) && !config->key)
    return lp_error(diag, LP_LOC_NONE, "'%s' is not a loopback address, so a key is required: 'key_env'",
                    config->listen);
  return LP_OK;
}

/* An IPv6 socket of [::] takes IPv4 connections as well. */
static struct MHD_Daemon *start(lp_http_server *of, const struct sockaddr_storage *address) {
  unsigned flags = MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION;
  if (address->ss_family == AF_INET6) flags |= MHD_USE_DUAL_STACK;
  return of->http->start_daemon(flags, 0, NULL, NULL, handle, of, MHD_OPTION_SOCK_ADDR, address,
                                MHD_OPTION_NOTIFY_COMPLETED, forget, of, MHD_OPTION_NOTIFY_CONNECTION, note_connection,
                                of, MHD_OPTION_CONNECTION_LIMIT, (unsigned)LP_MOST_CONNECTIONS,
                                MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_END);
}

static int open_requests(lp_http_server *of) {
  (void)pthread_mutex_lock(&of->lock);
  int requests = of->requests;
  (void)pthread_mutex_unlock(&of->lock);
  return requests;
}

/* Ends the current answers; streams end with an error event, which clients that read get before their connection
 * ends. */
static void wait_for_end(lp_http_server *of, struct MHD_Daemon *daemon, const volatile int *stop) {
  while (!lp_flag_get(stop)) {
    (void)usleep(POLL_MS * 1000);
    lp_connections_end_late(&of->connections, lp_now_ms());
  }
  int listener = of->http->quiesce_daemon(daemon); /* no new connections */
  if (listener >= 0) (void)close(listener);
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

static lp_status serve(lp_http_server *of, const volatile int *stop, lp_serve_ready *ready, void *user, lp_diag *diag) {
  struct sockaddr_storage address = {0};
  char *host = NULL;
  lp_status status = find_address(of->config, &address, &host, diag);
  if (status == LP_OK && of->config->log) status = lp_log_open(of->config->log, &of->log, diag);
  if (status == LP_OK) status = lp_dispatcher_open(of->config, &of->dispatcher, diag);
  struct MHD_Daemon *daemon = status == LP_OK ? start(of, &address) : NULL;
  if (status == LP_OK && !daemon)
    status = lp_error(diag, LP_LOC_NONE, "cannot listen on %s: %s", of->config->listen, strerror(errno));
  int port = daemon ? of->http->get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port : 0;
  if (status == LP_OK && port == 0) /* a port that the kernel chose */
    status = lp_error(diag, LP_LOC_NONE, "cannot find the port of %s", of->config->listen);
  if (status == LP_OK) {
    ready(user, host, port);
    wait_for_end(of, daemon, stop);
  }
  if (daemon) of->http->stop_daemon(daemon);
  if (of->dispatcher) lp_dispatcher_close(of->dispatcher);
  lp_log_close(of->log);
  free(host);
  return status;
}

/* The library; NULL: it is not installed. The first call may not run on two threads at once. */
static const lp_http_library *load_library(void) {
  static lp_http_library library;
  const lp_library_function functions[] = {{"MHD_start_daemon", &library.start_daemon},
                                           {"MHD_get_daemon_info", &library.get_daemon_info},
                                           {"MHD_quiesce_daemon", &library.quiesce_daemon},
                                           {"MHD_stop_daemon", &library.stop_daemon},
                                           {"MHD_get_connection_info", &library.get_connection_info},
                                           {"MHD_lookup_connection_value", &library.lookup_connection_value},
                                           {"MHD_create_response_from_buffer", &library.create_response_from_buffer},
                                           {"MHD_create_response_from_pipe", &library.create_response_from_pipe},
                                           {"MHD_add_response_header", &library.add_response_header},
                                           {"MHD_queue_response", &library.queue_response},
                                           {"MHD_destroy_response", &library.destroy_response}};
  return lp_library_load("libmicrohttpd.so.12", functions, LP_COUNT(functions)) ? &library : NULL;
}

lp_status lp_serve(const lp_serve_config *config, const volatile int *stop, lp_serve_ready *ready, void *user,
                   lp_diag *diag) {
  const lp_http_library *http = load_library();
  if (!http) {
    lp_status absent = lp_error(diag, LP_LOC_NONE, "there is no libmicrohttpd.so.12 to serve with");
    lp_note(diag, LP_LOC_NONE, "install it (Debian: libmicrohttpd12)");
    return absent;
  }
  lp_http_server of = {.http = http, .config = config};
  (void)signal(SIGPIPE, SIG_IGN); /* a client that leaves ends its answer, not the server */
  (void)pthread_mutex_init(&of.lock, NULL);
  (void)pthread_cond_init(&of.changed, NULL);
  lp_connections_init(&of.connections);
  lp_status status = serve(&of, stop, ready, user, diag);
  lp_connections_destroy(&of.connections);
  (void)pthread_cond_destroy(&of.changed);
  (void)pthread_mutex_destroy(&of.lock);
  return status;
}
