/* Protects the server from web pages. A browser sends the requests of any page that its user visits to any address,
 * also to 127.0.0.1, and a page can give its own host name that address (DNS rebinding). */
#pragma once

#include "runtime/serve/serve.h"

/* The headers of a request that tell where it comes from; NULL: absent. */
typedef struct {
  const char *method, *host, *origin, *content_type;
} lp_guard_request;

/* Returns the HTTP status of the refusal, and sets *why to a static text; 0: the request is taken.
 *
 * 403: no key is configured, and `host` is neither a loopback address nor in config->hosts.
 * 403: `origin` is another site, which config->origins does not name.
 * 415: the body of a POST is not JSON. Pages can send other bodies to other sites without asking the server first.
 * Pure. */
unsigned lp_guard_refuses(const lp_serve_config *config, const lp_guard_request *request, const char **why);
/* Tells whether config->origins names the origin, so that answers carry Access-Control-Allow-Origin. Pure. */
bool lp_guard_shares(const lp_serve_config *config, const char *origin);
