/* Sites: what answers a request, at the edge or in the cloud. */
#ifndef LP_SERVE_SITE_H
#define LP_SERVE_SITE_H

#include "runtime/serve/request.h"

/* Takes the pieces of an answer's text; false: the client wants no more. */
typedef bool lp_piece_sink(void *user, const char *text);

typedef struct {
  int64_t prompt_tokens, tokens; /* prompt_tokens -1: not known */
  bool cut;                      /* by max_tokens */
} lp_usage;

typedef struct lp_site_server lp_site_server;
struct lp_site_server {
  /* Any number of threads. `stop` may be set by another thread. LP_USAGE: the request is wrong, and no other site would
   * take it. */
  lp_status (*complete)(lp_site_server *self, const lp_completion *request, const volatile int *stop,
                        lp_piece_sink *sink, void *user, lp_usage *usage, lp_diag *diag);
  void (*close)(lp_site_server *self);
};

/* The bundle of the configuration, in this process (site_bundle.c), and its API (site_api.c). The configuration
 * outlives the site. */
LP_MUST_USE lp_status lp_site_bundle(const lp_serve_config *config, lp_site_server **out, lp_diag *diag);
LP_MUST_USE lp_status lp_site_api(const lp_serve_config *config, lp_site_server **out, lp_diag *diag);

#endif
