/* The HTTP server: its requests, its signals, and its end. */
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/serve/http/listener.h"
#include "runtime/serve/http/paths.h"
#include "runtime/serve/states.h"

enum { POLL_MS = 50, LOOK_POLLS = 4, JUDGE_POLLS = 20, END_MS = 3000 };

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
static void reply_in_the_middle(const lp_exchange *a, struct MHD_Connection *connection) {
  static const char reply[] = "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
  const union MHD_ConnectionInfo *info =
      a->server->http->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (info && !a->with->config->cert)
    (void)!send(info->connect_fd, reply, sizeof reply - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
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
    if (a->body.size + *size > (size_t)a->with->config->max_body) {
      reply_in_the_middle(a, connection);
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

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static void close_settings(lp_settings *settings) {
  if (settings->dispatcher) lp_dispatcher_close(settings->dispatcher);
  lp_log_close(settings->log);
  lp_serve_config_free(settings->config);
  free(settings);
}

/* Takes the configuration. */
static lp_status open_settings(lp_serve_config *config, const lp_settings *earlier, lp_settings **out, lp_buf *opened,
                               lp_diag *diag) {
  lp_settings *self = lp_alloc(sizeof *self);
  *self = (lp_settings){.config = config};
  lp_status status = lp_http_listener_check(config, diag);
  if (status == LP_OK && config->log) status = lp_log_open(config->log, &self->log, diag);
  if (status == LP_OK)
    status = lp_dispatcher_open(config, earlier ? earlier->dispatcher : NULL, &self->dispatcher, opened, diag);
  *out = status == LP_OK ? self : NULL;
  if (status != LP_OK) close_settings(self);
  return status;
}

/* Closes the settings of earlier configurations that no request has any more. */
static void tend_settings(lp_http_server *of) {
  for (lp_settings *newer = of->settings; newer->earlier;) {
    lp_settings *at = newer->earlier;
    (void)pthread_mutex_lock(&of->lock);
    const bool is_used = at->users > 0;
    (void)pthread_mutex_unlock(&of->lock);
    if (is_used) {
      newer = at;
    } else {
      newer->earlier = at->earlier;
      close_settings(at);
    }
  }
}

/* Keeps what cannot change while the server runs, and says so. */
static void keep_listening(const lp_serve_config *now, lp_serve_config *next, lp_diag *diag) {
  if (!lp_streq(now->listen, next->listen))
    lp_warning(diag, LP_LOC_NONE, "SIGHUP: 'listen' stays '%s' until the server is started anew", now->listen);
  next->listen = lp_arena_strdup(next->arena, now->listen);
  if (!now->cert == !next->cert) return;
  lp_warning(diag, LP_LOC_NONE, "SIGHUP: TLS ('cert') stays %s until the server is started anew",
             now->cert ? "on" : "off");
  next->cert = now->cert ? lp_arena_strdup(next->arena, now->cert) : NULL;
  next->cert_key = now->cert ? lp_arena_strdup(next->arena, now->cert_key) : NULL;
}

static lp_status open_next(const lp_http_server *of, const lp_serve_caller *caller, lp_settings **out, lp_buf *opened,
                           lp_diag *diag) {
  lp_serve_config *config = NULL;
  LP_TRY(caller->load(caller->user, &config, diag));
  keep_listening(of->settings->config, config, diag);
  return open_settings(config, of->settings, out, opened, diag);
}

/* Reads the configuration and the certificate again, for requests and connections to come. After a failure all stays as
 * it was. */
static void reload(lp_http_server *of, const lp_serve_caller *caller, lp_http_listener *listener, lp_diag *diag) {
  lp_settings *next = NULL;
  lp_buf opened = {0};
  lp_status status = open_next(of, caller, &next, &opened, diag);
  if (status == LP_OK) {
    next->earlier = of->settings;
    (void)pthread_mutex_lock(&of->lock);
    of->settings = next;
    (void)pthread_mutex_unlock(&of->lock);
    lp_note(diag, LP_LOC_NONE, "SIGHUP: the configuration was read again%s%s",
            opened.size > 0 ? "; these changed: " : "", lp_buf_text(&opened));
    if (lp_http_listener_renew(listener, diag) != LP_OK)
      lp_warning(diag, LP_LOC_NONE, "SIGHUP: the certificate stays as it was");
  } else {
    lp_warning(diag, LP_LOC_NONE, "SIGHUP: the configuration stays as it was");
  }
  lp_buf_free(&opened);
  lp_diag_clear(diag); /* it was printed */
}

/* Ends the current answers; streams end with an error event, which clients that read get before their connection
 * ends. */
static void wait_for_end(lp_http_server *of, const lp_serve_caller *caller, lp_http_listener *listener,
                         const lp_serve_signals *signals, lp_diag *diag) {
  lp_workers_seen seen = {0};
  for (int64_t polls = 1; !lp_flag_get(signals->stop); polls++) {
    (void)usleep(POLL_MS * 1000);
    const lp_settings *now = of->settings;
    if (now->log && polls % LOOK_POLLS == 0) lp_states_log(now->dispatcher, now->log, &seen);
    if (polls % JUDGE_POLLS == 1) lp_states_judge(now->dispatcher, diag);
    if (signals->reload && lp_flag_take(signals->reload)) {
      reload(of, caller, listener, diag);
      seen = (lp_workers_seen){0};
    }
    tend_settings(of);
    lp_http_listener_tend(listener);
    lp_connections_end_late(&of->connections, lp_now_ms());
  }
  lp_http_listener_stop(listener);
  lp_flag_set(&of->drains);
  for (double since_ms = lp_now_ms(); open_requests(of) > 0 && lp_now_ms() - since_ms < of->settings->config->drain_ms;)
    (void)usleep(POLL_MS * 1000);
  lp_flag_set(&of->stop);
  (void)pthread_mutex_lock(&of->lock);
  while (of->answers > 0)
    (void)pthread_cond_wait(&of->changed, &of->lock);
  (void)pthread_mutex_unlock(&of->lock);
  for (double since_ms = lp_now_ms(); open_requests(of) > 0 && lp_now_ms() - since_ms < (double)END_MS;)
    (void)usleep(POLL_MS * 1000);
}

static lp_status serve(lp_http_server *of, const lp_serve_caller *caller, const lp_serve_signals *signals,
                       lp_diag *diag) {
  LP_OWNED(lp_free_at) char *host = NULL;
  int port = 0;
  lp_http_listener *listener = NULL;
  lp_serve_config *config = NULL;
  const lp_http_callbacks callbacks = {handle, forget, note_connection};
  LP_TRY(caller->load(caller->user, &config, diag));
  LP_TRY(open_settings(config, NULL, &of->settings, NULL, diag));
  lp_status status = lp_http_listener_open(of, callbacks, &listener, &host, &port, diag);
  if (status == LP_OK) {
    caller->ready(caller->user, host, port);
    wait_for_end(of, caller, listener, signals, diag);
  }
  lp_http_listener_close(listener);
  tend_settings(of);
  close_settings(of->settings);
  return status;
}

lp_status lp_serve(const lp_serve_caller *caller, const lp_serve_signals *signals, lp_diag *diag) {
  const lp_http_library *http = NULL;
  LP_TRY(lp_http_library_load(&http, diag));
  lp_http_server of = {.http = http, .limits = lp_limits_create(), .kept = lp_kept_create()};
  (void)signal(SIGPIPE, SIG_IGN); /* a client that leaves ends its answer, not the server */
  (void)pthread_mutex_init(&of.lock, NULL);
  (void)pthread_cond_init(&of.changed, NULL);
  lp_connections_init(&of.connections);
  lp_status status = serve(&of, caller, signals, diag);
  lp_connections_destroy(&of.connections);
  (void)pthread_cond_destroy(&of.changed);
  (void)pthread_mutex_destroy(&of.lock);
  lp_limits_free(of.limits);
  lp_kept_free(of.kept);
  return status;
}
