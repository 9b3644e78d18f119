/* Decides which requests of browsers the server takes. */
#include "runtime/serve/http/guard.h"

#include <strings.h>

#include "runtime/http/library.h"

static bool is_listed(const lp_serve_texts *list, const char *text) {
  for (size_t i = 0; i < list->count; i++)
    if (lp_streq(list->texts[i], "*") || strcasecmp(list->texts[i], text) == 0) return true;
  return false;
}

static bool is_own_host(const lp_serve_config *config, const char *host) {
  LP_OWNED(lp_buf_free) lp_buf name = {0};
  lp_buf_append(&name, host, lp_http_host_length(host));
  return lp_http_is_loopback(lp_buf_text(&name)) || is_listed(&config->hosts, lp_buf_text(&name));
}

/* Tells whether the page came from this server: "http://HOST" with the host of the request. */
static bool is_same_site(const char *origin, const char *host) {
  const char *at = strstr(origin, "://");
  return at && host && strcasecmp(at + 3, host) == 0;
}

static bool is_json(const char *type) {
  static const char json[] = "application/json";
  if (!type || strncasecmp(type, json, strlen(json)) != 0) return false;
  return strchr("; \t", type[strlen(json)]) != NULL; /* the end, or parameters */
}

unsigned lp_guard_refuses(const lp_serve_config *config, const lp_guard_request *request, const char **why) {
  if (config->keys.count == 0 && request->host && !is_own_host(config, request->host)) {
    *why = "the request is for another host: a server without a key is for this machine only; 'hosts' lists other "
           "names of it";
    return 403;
  }
  if (request->origin && !is_same_site(request->origin, request->host) && !lp_guard_shares(config, request->origin)) {
    *why = "the request comes from a web page of another site, which 'origins' does not list";
    return 403;
  }
  if (lp_streq(request->method, "POST") && !is_json(request->content_type)) {
    *why = "the body must be JSON: Content-Type: application/json";
    return 415;
  }
  return 0;
}

bool lp_guard_shares(const lp_serve_config *config, const char *origin) {
  return is_listed(&config->origins, origin);
}
