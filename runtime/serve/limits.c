/* Limits of keys: see limits.h. */
#include "runtime/serve/limits.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "runtime/exposition/exposition.h"
#include "runtime/http/library.h"

static const double minute_ms = 60000;
/* A request at a time ends after an unknown time; a client may ask again after this. */
static const double ask_again_s = 1;

typedef struct {
  double level, at_ms; /* what is left, at that time */
} bucket;

typedef struct {
  bucket requests, tokens;
  int64_t here;     /* answers at work */
  uint64_t refused; /* requests */
} used;

struct lp_limits {
  const lp_serve_keys *keys;
  pthread_mutex_t lock; /* guards what follows */
  used *of;             /* [keys->count] */
};

lp_limits *lp_limits_create(const lp_serve_config *config) {
  lp_limits *limits = lp_alloc(sizeof *limits);
  limits->keys = &config->keys;
  limits->of = lp_alloc((config->keys.count + 1) * sizeof *limits->of);
  for (size_t i = 0; i < config->keys.count; i++) {
    limits->of[i].requests.level = config->keys.data[i].requests;
    limits->of[i].tokens.level = config->keys.data[i].tokens;
  }
  (void)pthread_mutex_init(&limits->lock, NULL);
  return limits;
}

void lp_limits_free(lp_limits *limits) {
  if (!limits) return;
  (void)pthread_mutex_destroy(&limits->lock);
  free(limits->of);
  free(limits);
}

int32_t lp_limits_find_key(const lp_serve_config *config, const char *given) {
  int32_t found = -1;
  for (size_t i = 0; given && i < config->keys.count; i++)
    if (lp_http_is_key(given, config->keys.data[i].key)) found = (int32_t)i;
  return found;
}

/* ---- buckets ----------------------------------------------------------------------------------------------------- */

static void fill(bucket *b, double a_minute, double now_ms) {
  if (now_ms > b->at_ms) b->level = fmin(a_minute, b->level + a_minute * (now_ms - b->at_ms) / minute_ms);
  b->at_ms = now_ms;
}

/* The seconds until the bucket holds `wanted`. */
static double wait_s(const bucket *b, double a_minute, double wanted) {
  return fmax(0, wanted - b->level) / a_minute * minute_ms / 1000;
}

static const char *refuse(const lp_serve_key *key, int32_t answers, used *of, double *retry_s) {
  *retry_s = INFINITY;
  if (key->parallel > 0 && answers > key->parallel)
    return "the request has more answers than the key may have at a time";
  if (key->requests > 0 && answers > fmax(1, key->requests))
    return "the request has more answers than the key may have in a minute";
  *retry_s = ask_again_s;
  if (key->parallel > 0 && of->here + answers > key->parallel) return "the key has too many requests at a time";
  if (key->requests > 0 && of->requests.level < answers) {
    *retry_s = wait_s(&of->requests, key->requests, answers);
    return "the key has used its requests of this minute";
  }
  if (key->tokens > 0 && of->tokens.level <= 0) {
    *retry_s = wait_s(&of->tokens, key->tokens, 1);
    return "the key has used its tokens of this minute";
  }
  return NULL;
}

const char *lp_limits_begin(lp_limits *limits, int32_t key, int32_t answers, double now_ms, double *retry_s) {
  const lp_serve_key *limit = &limits->keys->data[key];
  used *of = &limits->of[key];
  (void)pthread_mutex_lock(&limits->lock);
  fill(&of->requests, limit->requests, now_ms);
  fill(&of->tokens, limit->tokens, now_ms);
  const char *why = refuse(limit, answers, of, retry_s);
  of->refused += why != NULL;
  if (!why) {
    of->here += answers;
    of->requests.level -= answers;
  }
  (void)pthread_mutex_unlock(&limits->lock);
  return why;
}

void lp_limits_end(lp_limits *limits, int32_t key, int32_t answers, double now_ms, int64_t tokens) {
  used *of = &limits->of[key];
  (void)pthread_mutex_lock(&limits->lock);
  fill(&of->tokens, limits->keys->data[key].tokens, now_ms);
  of->tokens.level -= (double)tokens;
  of->here -= answers;
  (void)pthread_mutex_unlock(&limits->lock);
}

/* ---- for Prometheus ---------------------------------------------------------------------------------------------- */

void lp_limits_print(lp_limits *limits, lp_buf *out) {
  lp_buf refused = {0}, here = {0};
  lp_exposition_head(&refused, "limited_total", "counter", "Requests that a limit of their key refused.");
  lp_exposition_head(&here, "key_requests", "gauge", "Requests at work for each key.");
  bool any = false;
  (void)pthread_mutex_lock(&limits->lock);
  for (size_t i = 0; i < limits->keys->count; i++) {
    const char *name = limits->keys->data[i].name;
    if (!name) continue;
    any = true;
    lp_exposition_labelled(&refused, "limited_total", limits->of[i].refused, "key=\"%s\"", name);
    lp_exposition_labelled(&here, "key_requests", (uint64_t)limits->of[i].here, "key=\"%s\"", name);
  }
  (void)pthread_mutex_unlock(&limits->lock);
  if (any) {
    lp_buf_append(out, refused.data, refused.size);
    lp_buf_append(out, here.data, here.size);
  }
  lp_buf_free(&refused);
  lp_buf_free(&here);
}
