/* The state that all threads of the HTTP server share. Private to http/. */
#pragma once

#include <pthread.h>

#include "runtime/http/library.h"
#include "runtime/serve/dialects/kept.h"
#include "runtime/serve/dispatch.h"
#include "runtime/serve/http/connections.h"
#include "runtime/serve/limits.h"
#include "runtime/serve/log.h"

/* What the configuration says, and what was opened for it. A request keeps those that it began with, which end with
 * the last such request once the configuration was read again. */
typedef struct lp_settings lp_settings;
struct lp_settings {
  lp_serve_config *config;
  lp_dispatcher *dispatcher;
  lp_log *log;          /* NULL: none */
  int users;            /* requests; guarded by the server's lock */
  lp_settings *earlier; /* that still have requests; only the thread of lp_serve follows it */
};

typedef struct {
  const lp_http_library *http;
  lp_settings *settings; /* of requests that begin now; guarded by `lock`, and only the thread of lp_serve sets it */
  lp_limits *limits;
  lp_kept *kept;        /* histories of answers; owners are lp_exchange.client */
  volatile int drains;  /* no new request is taken */
  volatile int stop;    /* answers end at the next piece */
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t changed;
  int answers;  /* threads that stream */
  int requests; /* that are not answered to their last byte */
  uint64_t count;
  lp_connections connections; /* has a lock of its own */
} lp_http_server;
