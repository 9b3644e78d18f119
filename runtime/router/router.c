/* The in-context learner: it writes experiences into a prompt, asks a decider, may explore instead, and adds the
 * outcomes to the experiences. */
#include <pthread.h>

#include "base/map.h"
#include "runtime/router/router.h"

enum { MOST_CLASSES = 1024 }; /* with keywords by the model */

/* The decider's answer to a prompt. If two prompts hash to one entry, the later one replaces the earlier. */
typedef struct {
  char *prompt; /* its text; NULL: free */
  unsigned offered;
  double probability[LP_ROUTE_COUNT];
} cached;

typedef struct {
  lp_policy policy;
  lp_router_options options;
  cached *cache; /* [options.cache] */
  lp_decider *decider;
  lp_replay *replay;
  lp_explorer explorer;
  lp_map *keywords;     /* of classes: texts, owned */
  pthread_mutex_t lock; /* guards cache, replay, explorer and keywords */
  pthread_mutex_t turn; /* of a decider that is not parallel */
} router;

static lp_route most_probable(const double probability[LP_ROUTE_COUNT], unsigned offered) {
  lp_route best = LP_ROUTE_COUNT;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(offered, route) && (best == LP_ROUTE_COUNT || probability[route] > probability[best]))
      best = route;
  return best;
}

/* Decides by the rule because the model failed; `diag` has the reason. */
static lp_route fall_back(const lp_router_request *request, const lp_diag *diag, lp_decision *out) {
  const char *why = lp_diag_count(diag) > 0 ? lp_diag_get(diag, 0)->text : "the model gave no answer";
  (void)snprintf(out->reason, sizeof out->reason, "%s", why);
  memset(out->probability, 0, sizeof out->probability);
  lp_route route = lp_route_offered(request->offered, request->rule)
                       ? request->rule
                       : most_probable(out->probability, request->offered);
  out->probability[route] = 1;
  return route;
}

static lp_status score(router *self, const lp_prompt *prompt, lp_decision *out, lp_diag *diag) {
  if (!self->decider->parallel) (void)pthread_mutex_lock(&self->turn);
  lp_status status = self->decider->score(self->decider, prompt, out->probability, diag);
  if (!self->decider->parallel) (void)pthread_mutex_unlock(&self->turn);
  return status;
}

static cached *place_of(router *self, const lp_buf *text, unsigned offered) {
  return &self->cache[lp_hash_bytes(text->data, text->size, offered) % self->options.cache];
}

static bool find_cached(router *self, const lp_buf *text, unsigned offered, lp_decision *out) {
  (void)pthread_mutex_lock(&self->lock);
  const cached *at = place_of(self, text, offered);
  bool found = at->offered == offered && lp_streq(at->prompt, text->data);
  if (found) memcpy(out->probability, at->probability, sizeof at->probability);
  (void)pthread_mutex_unlock(&self->lock);
  return found;
}

static void keep(router *self, const lp_buf *text, unsigned offered, const lp_decision *made) {
  (void)pthread_mutex_lock(&self->lock);
  cached *at = place_of(self, text, offered);
  free(at->prompt);
  *at = (cached){.prompt = lp_strdup(text->data), .offered = offered};
  memcpy(at->probability, made->probability, sizeof at->probability);
  (void)pthread_mutex_unlock(&self->lock);
}

/* Asks the decider, or returns its earlier answer to the same prompt. Failures are not kept. */
static lp_status ask(router *self, const lp_prompt *prompt, lp_decision *out, lp_diag *diag) {
  out->source = LP_DECIDED_MODEL;
  if (self->options.cache == 0) return score(self, prompt, out, diag);
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_status status = LP_OK;
  lp_prompt_text(prompt, &text);
  if (find_cached(self, &text, prompt->offered, out)) {
    out->source = LP_DECIDED_CACHE;
  } else {
    status = score(self, prompt, out, diag);
    if (status == LP_OK) keep(self, &text, prompt->offered, out);
  }
  return status;
}

/* Selects the examples, with copies of their texts: other threads may change the pool meanwhile. */
static size_t select_examples(router *self, const lp_router_request *request, lp_arena *arena, lp_experience *out) {
  (void)pthread_mutex_lock(&self->lock);
  size_t count = lp_replay_select(self->replay, request->owner, request->keywords, self->options.examples, out);
  for (size_t i = 0; i < count; i++)
    out[i].keywords = lp_arena_strdup(arena, out[i].keywords);
  (void)pthread_mutex_unlock(&self->lock);
  return count;
}

static void decide(lp_policy *policy, const lp_router_request *request, lp_decision *out) {
  router *self = (router *)policy;
  *out = (lp_decision){0};
  lp_experience examples[LP_PROMPT_EXAMPLES];
  lp_replay_mode mode = self->options.replay;
  lp_prompt prompt = {.keywords = request->keywords,
                      .offered = request->offered,
                      .examples = examples,
                      .best_only = mode == LP_REPLAY_REWARD || mode == LP_REPLAY_STRICT};
  lp_arena *arena = lp_arena_create();
  lp_diag *diag = lp_diag_create();
  lp_route best;
  prompt.count = select_examples(self, request, arena, examples);
  if (ask(self, &prompt, out, diag) == LP_OK) {
    best = most_probable(out->probability, request->offered);
  } else {
    best = fall_back(request, diag, out);
    out->source = LP_DECIDED_FALLBACK;
  }
  lp_diag_free(diag);
  lp_arena_free(arena);
  (void)pthread_mutex_lock(&self->lock);
  lp_explorer_draw(&self->explorer, request->offered, best, out->source, out);
  (void)pthread_mutex_unlock(&self->lock);
}

/* False: the class has no keywords yet. */
static bool find_keywords(router *self, const char *class, lp_buf *out) {
  (void)pthread_mutex_lock(&self->lock);
  const char *known = lp_map_get(self->keywords, class);
  if (known) lp_buf_puts(out, known);
  (void)pthread_mutex_unlock(&self->lock);
  return known != NULL;
}

/* Keeps the keywords of a class, unless another thread has been faster, whose keywords then count. */
static void keep_keywords(router *self, const char *class, const char *made) {
  (void)pthread_mutex_lock(&self->lock);
  if (!lp_map_get(self->keywords, class) && lp_map_count(self->keywords) < MOST_CLASSES)
    (void)lp_map_put(self->keywords, class, lp_strdup(made));
  (void)pthread_mutex_unlock(&self->lock);
}

/* Without the lock while the model writes. */
static bool describe(lp_policy *policy, const char *class, const char *request, lp_buf *out) {
  router *self = (router *)policy;
  if (find_keywords(self, class, out)) return true;
  LP_OWNED(lp_buf_free) lp_buf prompt = {0}, answer = {0}, made = {0};
  lp_diag *quiet = lp_diag_create(); /* the class itself describes the request then */
  lp_keywords_prompt(request, &prompt);
  if (!self->decider->parallel) (void)pthread_mutex_lock(&self->turn);
  bool good = self->decider->write(self->decider, lp_buf_text(&prompt), &answer, quiet) == LP_OK;
  if (!self->decider->parallel) (void)pthread_mutex_unlock(&self->turn);
  good = good && lp_keywords_take(lp_buf_text(&answer), &made);
  if (good) keep_keywords(self, class, lp_buf_text(&made));
  if (good && !find_keywords(self, class, out)) lp_buf_puts(out, lp_buf_text(&made));
  lp_diag_free(quiet);
  return good;
}

static void learn(lp_policy *policy, const lp_router_request *request, lp_route route, double reward, bool good) {
  router *self = (router *)policy;
  (void)pthread_mutex_lock(&self->lock);
  (void)lp_replay_add(self->replay, request->owner, &(lp_experience){request->keywords, route, reward, good, 1});
  (void)pthread_mutex_unlock(&self->lock);
}

static void close_router(lp_policy *policy) {
  LP_OWNED(lp_free_at) router *self = (router *)policy;
  self->decider->close(self->decider);
  lp_replay_free(self->replay);
  for (size_t i = 0; i < self->options.cache; i++)
    free(self->cache[i].prompt);
  free(self->cache);
  for (size_t i = 0; i < lp_map_count(self->keywords); i++)
    free(lp_map_value_at(self->keywords, i));
  lp_map_free(self->keywords);
  (void)pthread_mutex_destroy(&self->lock);
  (void)pthread_mutex_destroy(&self->turn);
}

lp_policy *lp_router_create(const lp_router_options *options, lp_decider *decider) {
  router *self = lp_alloc(sizeof *self);
  *self = (router){.policy = {"router", decide, learn, close_router, true, decider->write ? describe : NULL},
                   .options = *options,
                   .decider = decider,
                   .keywords = lp_map_create()};
  if (self->options.examples == 0 || self->options.examples > LP_PROMPT_EXAMPLES)
    self->options.examples = LP_PROMPT_EXAMPLES;
  double rate = options->rate > 0 ? options->rate : 0.1;
  (void)pthread_mutex_init(&self->lock, NULL);
  (void)pthread_mutex_init(&self->turn, NULL);
  self->replay = lp_replay_create(options->replay, rate);
  self->explorer.options = options->exploration;
  self->cache = lp_alloc(options->cache * sizeof *self->cache);
  return &self->policy;
}
