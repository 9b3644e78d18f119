/* runtime/serve: an OpenAI-compatible HTTP API over places: a compiled bundle at the edge, a bundle that is split
 * between this machine and workers, and another API in the cloud, with the router between them.
 *
 * POST /v1/chat/completions and /v1/completions (streamed or not), /v1/embeddings, GET /v1/models; /v1/router/... for
 * clients that only ask where a request should go; /metrics, /healthz, /readyz, and a page at / with /v1/status. A
 * request's `model` names a place ("edge", "split", "cloud"), the model of a place, or is "auto", with which the router
 * decides. If the chosen place cannot answer and no piece of the answer has been sent, another place answers. Each
 * connection has a thread; requests run at the same time, at the edge in batched passes (engine/). */
#pragma once

#include "runtime/router/router.h"
#include "runtime/runtime.h"
#include "runtime/serve/tracking.h"

typedef struct {
  const char **texts;
  size_t count;
} lp_serve_texts;

/* A bearer token of clients, and what it may use; a limit of 0 is none. */
typedef struct {
  const char *name; /* for the log and the metrics; NULL: none */
  const char *key;
  const char *tenant;      /* keys of one tenant share rows of prompts; NULL: this key alone */
  double requests, tokens; /* per minute; tokens: of prompts and answers */
  int64_t parallel;        /* requests at a time */
  double up_bps, down_bps; /* of its users' link; 0: as that of `user` */
  int64_t user;            /* of the radio profile of the backends, from 1; 0: as the link of the backends */
} lp_serve_key;
typedef struct {
  lp_serve_key *data;
  size_t count;
} lp_serve_keys;

enum { LP_MOST_WORKERS = 64 };

/* The database over which servers that share workers tell each other about them (place/fleet.h). */
typedef struct {
  const char *redis;    /* HOST:PORT of Redis or Valkey; NULL: none */
  const char *password; /* NULL: none is asked for */
  const char *name;     /* of this server, unlike the others'; NULL: one from its host and process number */
} lp_serve_fleet;

/* A bundle that this process runs, with or without workers. */
typedef struct {
  const char *bundle, *trust; /* bundle NULL: there is no such place; trust: as in lp_bundle_options */
  const char *model;          /* the name in the API; NULL: the bundle's */
  lp_serve_texts workers;    /* HOST:PORT of each, up to LP_MOST_WORKERS; none: one is started if the bundle is split */
  lp_link_security security; /* of the connections to these workers */
  lp_serve_fleet fleet;      /* other servers of these workers */
  double theta;              /* early exits give tokens with this confidence; 0: the full model gives all */
  double prompt_stretch;     /* how many times as long a pass may last for prompts; 0: 1.4 */
  int64_t prompt_turn;       /* rows of a prompt that run before the next prompt's; 0: half of a pass */
  int64_t threads;           /* 0: the machine's cores */
  int64_t parallel, queue;   /* requests that run at a time; that may wait beyond these */
  int64_t kv_bytes;          /* the budget of KV caches; 0: none */
  double total_ms;           /* the longest time that a whole answer may take, waiting included */
  uint64_t digest;           /* of its section of the file: another one says something else */
} lp_serve_bundle;

typedef struct {
  lp_arena *arena;    /* owns the texts */
  const char *listen; /* HOST:PORT; port 0 takes a free one */
  lp_loc listen_loc;  /* of the value in the file, if it has one */
  lp_serve_keys keys; /* requests must carry one of them; none: they need no key */
  /* Names of this machine in the requests' header Host beside the loopback addresses, without a port; needed only
   * without a key. Origins of web pages (https://app.example) that may send requests; "*": any. */
  lp_serve_texts hosts, origins;
  const char *cert, *cert_key; /* files in PEM for TLS; NULL: HTTP without it */
  int64_t max_body;            /* bytes of a request */
  int64_t max_tokens;          /* tokens of an answer: the most that a request may ask for, and the default */
  lp_serve_bundle edge, split;
  lp_serve_bundle embeddings; /* gives embeddings, all of it in this process; no route */
  /* The base of the cloud's API; NULL: there is none. */
  const char *url, *model, *cloud_key;
  double timeout_ms;               /* the longest time that its answer may make no progress, from the beginning on */
  double total_ms;                 /* the longest time that a whole answer may take */
  lp_policy_spec policy;           /* for "auto", if there are several places */
  bool model_keywords;             /* the policy's language model describes requests */
  lp_route rule;                   /* the route if the model cannot decide */
  const char *pool;                /* an SQLite file; NULL: experience is lost when the server ends */
  double target_s;                 /* reward: target - delay */
  const char *backends;            /* limits and figures of the places, as lp_backends_load reads; NULL: none */
  const char *traces, *traces_key; /* the URL of an OpenTelemetry collector, and its bearer token; NULL: none */
  const char *log;                 /* a file for a line of each request, "-": stderr; NULL: none */
  lp_serve_prediction prediction;  /* of all requests */
  double drain_ms;                 /* at the end: the time that current answers get to complete */
  uint64_t cloud_digest, router_digest, traces_digest; /* of sections of the file */
  int shares;                                          /* owners beside the first */
} lp_serve_config;

/* Reads a configuration, and keys from the environment variables that it names. Release with lp_serve_config_free. */
LP_MUST_USE lp_status lp_serve_config_load(const char *path, lp_serve_config **out, lp_diag *diag);
/* The configuration without a file: a bundle at the edge, and the bearer token of clients (NULL: none is needed). Both
 * are borrowed. */
lp_serve_config *lp_serve_config_of_bundle(const char *bundle, const char *key);
/* Another owner, which releases it as the first does. One thread counts owners. */
lp_serve_config *lp_serve_config_share(lp_serve_config *config);
void lp_serve_config_free(lp_serve_config *config); /* NULL is allowed */

/* What the caller does for the server: makes the configuration, which the server frees, at the start and whenever it is
 * to be read again; and takes the address. */
typedef struct {
  lp_status (*load)(void *user, lp_serve_config **out, lp_diag *diag);
  void (*ready)(void *user, const char *host, int port);
  void *user;
} lp_serve_caller;
/* Flags that signal handlers set. */
typedef struct {
  const volatile int *stop;
  volatile int *reload; /* the server clears it, and reads configuration and certificate again; NULL: never */
} lp_serve_signals;
/* Serves until `*signals->stop` is set, then ends the current answers. Beyond loopback a key is required. */
LP_MUST_USE lp_status lp_serve(const lp_serve_caller *caller, const lp_serve_signals *signals, lp_diag *diag);
