/* Sites, which answer requests at the edge or in the cloud. */
#ifndef LP_SERVE_SITE_H
#define LP_SERVE_SITE_H

#include "runtime/serve/request.h"

/* Takes a piece of an answer's text; false: the client wants no more. */
typedef bool lp_piece_sink(void *user, const char *text);

typedef struct {
  int64_t prompt_tokens, tokens; /* prompt_tokens -1: unknown */
  bool cut;                      /* by max_tokens */
} lp_usage;

typedef struct lp_site_server lp_site_server;
struct lp_site_server {
  /* Any number of threads may call this. Another thread may set `stop`. LP_USAGE: the request is wrong, and no other
   * site would take it. */
  lp_status (*complete)(lp_site_server *self, const lp_completion *request, const volatile int *stop,
                        lp_piece_sink *sink, void *user, lp_usage *usage, lp_diag *diag);
  bool (*is_up)(const lp_site_server *self); /* any thread may ask; NULL: always, as far as is known */
  void (*close)(lp_site_server *self);
};

/* The configuration's bundle, run in this process (site_bundle.c), and its API (site_api.c). The configuration must
 * outlive the site. */
LP_MUST_USE lp_status lp_site_bundle(const lp_serve_config *config, lp_site_server **out, lp_diag *diag);
LP_MUST_USE lp_status lp_site_api(const lp_serve_config *config, lp_site_server **out, lp_diag *diag);

#endif
