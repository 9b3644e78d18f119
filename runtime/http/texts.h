/* A small HTTP server of texts, for the figures of a program whose own work is something else. One thread of its own
 * serves all connections. On loopback it needs no key, and refuses requests for a host name that is not a loopback
 * address, as a browser sends them for a page of another site; beyond loopback a bearer token is required. */
#pragma once

#include "base/base.h"

typedef struct {
  const char *path, *type; /* "/metrics", and the Content-Type */
  /* Appends the text, and returns the status of the reply. Called on the server's thread. */
  unsigned (*write)(void *user, lp_buf *out);
  bool open; /* anyone may ask, without the key and for any host: for probes */
} lp_http_text;

typedef struct {
  const char *listen;       /* HOST:PORT; port 0 takes a free one */
  const char *key;          /* the bearer token; NULL: none */
  const lp_http_text *text; /* [count] */
  size_t count;
  void *user;
} lp_http_texts_options;

typedef struct lp_http_texts lp_http_texts;
/* `options` and all in it are borrowed until the server is closed. *host is to be freed, also after a failure. */
LP_MUST_USE lp_status lp_http_texts_open(const lp_http_texts_options *options, lp_http_texts **out, char **host,
                                         int *port, lp_diag *diag);
void lp_http_texts_close(lp_http_texts *texts); /* NULL is allowed */
