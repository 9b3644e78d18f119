/* Limits of keys: see limits.h. */
#include "runtime/serve/limits.h"

#include <math.h>
#include <pthread.h>

#include "base/map.h"
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
  pthread_mutex_t lock; /* guards what follows */
  lp_map *of;           /* a key: its `used`, owned */
};

lp_limits *lp_limits_create(void) {
  lp_limits *limits = lp_alloc(sizeof *limits);
  limits->of = lp_map_create();
  (void)pthread_mutex_init(&limits->lock, NULL);
  return limits;
}

void lp_limits_free(lp_limits *limits) {
  if (!limits) return;
  (void)pthread_mutex_destroy(&limits->lock);
  for (size_t i = 0; i < lp_map_count(limits->of); i++)
    free(lp_map_value_at(limits->of, i));
  lp_map_free(limits->of);
  free(limits);
}

/* With the lock held. A key that is new has full buckets. */
static used *used_by(lp_limits *limits, const lp_serve_key *key) {
  used *of = lp_map_get(limits->of, key->key);
  if (of) return of;
  of = lp_alloc(sizeof *of);
  of->requests.level = of->tokens.level = INFINITY;
  (void)lp_map_put(limits->of, key->key, of);
  return of;
}

const lp_serve_key *lp_limits_find_key(const lp_serve_config *config, const char *given) {
  const lp_serve_key *found = NULL;
  for (size_t i = 0; given && i < config->keys.count; i++)
    if (lp_http_is_key(given, config->keys.data[i].key)) found = &config->keys.data[i];
  return found;
}

/* ---- buckets ----------------------------------------------------------------------------------------------------- */

/* Without a limit the bucket is full: a limit that the key gets later begins with nothing used. */
static void fill(bucket *b, double a_minute, double now_ms) {
  const double came = a_minute * fmax(0, now_ms - b->at_ms) / minute_ms;
  b->level = a_minute > 0 ? fmin(a_minute, b->level + came) : INFINITY;
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

const char *lp_limits_begin(lp_limits *limits, const lp_serve_key *key, int32_t answers, double now_ms,
                            double *retry_s) {
  (void)pthread_mutex_lock(&limits->lock);
  used *of = used_by(limits, key);
  fill(&of->requests, key->requests, now_ms);
  fill(&of->tokens, key->tokens, now_ms);
  const char *why = refuse(key, answers, of, retry_s);
  of->refused += why != NULL;
  if (!why) {
    of->here += answers;
    of->requests.level -= answers;
  }
  (void)pthread_mutex_unlock(&limits->lock);
  return why;
}

void lp_limits_end(lp_limits *limits, const lp_serve_key *key, int32_t answers, double now_ms, int64_t tokens) {
  (void)pthread_mutex_lock(&limits->lock);
  used *of = used_by(limits, key);
  fill(&of->tokens, key->tokens, now_ms);
  of->tokens.level -= (double)tokens;
  of->here -= answers;
  (void)pthread_mutex_unlock(&limits->lock);
}

/* ---- for Prometheus ---------------------------------------------------------------------------------------------- */

void lp_limits_print(lp_limits *limits, const lp_serve_keys *keys, lp_buf *out) {
  LP_OWNED(lp_buf_free) lp_buf refused = {0}, here = {0};
  lp_exposition_head(&refused, "limited_total", "counter", "Requests that a limit of their key refused.");
  lp_exposition_head(&here, "key_requests", "gauge", "Requests at work for each key.");
  bool any = false;
  (void)pthread_mutex_lock(&limits->lock);
  for (size_t i = 0; i < keys->count; i++) {
    const char *name = keys->data[i].name;
    if (!name) continue;
    any = true;
    const used *of = used_by(limits, &keys->data[i]);
    lp_exposition_labelled(&refused, "limited_total", of->refused, "key=\"%s\"", name);
    lp_exposition_labelled(&here, "key_requests", (uint64_t)of->here, "key=\"%s\"", name);
  }
  (void)pthread_mutex_unlock(&limits->lock);
  if (any) {
    lp_buf_append(out, refused.data, refused.size);
    lp_buf_append(out, here.data, here.size);
  }
}
