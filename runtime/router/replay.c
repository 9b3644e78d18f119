/* The experience pool: keeps experiences, and selects the examples of a prompt. */

#include "base/map.h"
#include "runtime/router/router.h"
#include "runtime/router/words.h"

typedef struct {
  double reward, count; /* the mean, and the number of its rewards; count 0: nothing is kept */
  uint64_t newest;      /* the pool's clock when it last changed */
  bool good;
} memory;

/* The experiences of one kind of request, of one owner. */
typedef struct kind kind;
struct kind {
  const char *keywords; /* the map's */
  uint64_t owner;
  memory of[LP_ROUTE_COUNT];
  uint64_t seen; /* number of experiences, kept or not */
  kind *next;    /* of another owner */
};

struct lp_replay {
  lp_replay_mode mode;
  double rate;
  lp_map *kinds;
  uint64_t clock;
};

bool lp_replay_mode_parse(const char *name, lp_replay_mode *out) {
  static const char *const names[] = {"ema", "reward", "strict", "latest"};
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    if (strcmp(name, names[i]) != 0) continue;
    *out = (lp_replay_mode)i;
    return true;
  }
  return false;
}

lp_replay *lp_replay_create(lp_replay_mode mode, double rate) {
  lp_replay *replay = lp_alloc(sizeof *replay);
  *replay = (lp_replay){.mode = mode, .rate = rate, .kinds = lp_map_create()};
  return replay;
}

void lp_replay_free(lp_replay *replay) {
  if (!replay) return;
  for (size_t i = 0; i < lp_map_count(replay->kinds); i++)
    for (kind *at = lp_map_value_at(replay->kinds, i), *next; at; at = next) {
      next = at->next;
      free(at);
    }
  lp_map_free(replay->kinds);
  free(replay);
}

static kind *of_owner(kind *first, uint64_t owner) {
  while (first && first->owner != owner)
    first = first->next;
  return first;
}

static kind *find_or_make(lp_replay *replay, const char *keywords, uint64_t owner) {
  kind *first = lp_map_get(replay->kinds, keywords), *found = of_owner(first, owner);
  if (found) return found;
  found = lp_alloc(sizeof *found);
  *found = (kind){.owner = owner};
  if (first) {
    found->keywords = first->keywords;
    found->next = first->next;
    first->next = found;
  } else {
    lp_map_put(replay->kinds, keywords, found);
    found->keywords = lp_map_key_at(replay->kinds, lp_map_count(replay->kinds) - 1);
  }
  return found;
}

static void average(lp_replay *replay, memory *into, const lp_experience *experience) {
  into->count += 1;
  double step = 1 / into->count;
  if (step < replay->rate) step = replay->rate;
  into->reward += step * (experience->reward - into->reward);
}

static void replace(kind *of, const lp_experience *experience) {
  for (lp_route i = 0; i < LP_ROUTE_COUNT; i++)
    of->of[i].count = 0;
  of->of[experience->route].count = 1;
  of->of[experience->route].reward = experience->reward;
}

/* P3's second rule: only a greater reward replaces the one that is kept. */
static bool is_beaten(const kind *of, double reward) {
  for (lp_route i = 0; i < LP_ROUTE_COUNT; i++)
    if (of->of[i].count > 0 && of->of[i].reward >= reward) return false;
  return true;
}

bool lp_replay_add(lp_replay *replay, uint64_t owner, const lp_experience *experience) {
  if (replay->mode == LP_REPLAY_STRICT && !experience->good) return false;
  kind *of = find_or_make(replay, experience->keywords, owner);
  of->seen++;
  if (replay->mode == LP_REPLAY_EMA)
    average(replay, &of->of[experience->route], experience);
  else if (replay->mode == LP_REPLAY_LATEST || is_beaten(of, experience->reward))
    replace(of, experience);
  else
    return false;
  of->of[experience->route].newest = ++replay->clock;
  of->of[experience->route].good = experience->good;
  return true;
}

bool lp_replay_find(const lp_replay *replay, const char *keywords, lp_route route, double *reward) {
  const kind *of = of_owner(lp_map_get(replay->kinds, keywords), 0);
  if (!of || of->of[route].count == 0) return false;
  *reward = of->of[route].reward;
  return true;
}

/* ---- selection --------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_experience of;
  uint64_t newest;
  int shared; /* words in common with the query; more than any other number if all are equal */
} candidate;

static bool is_nearer(const candidate *a, const candidate *b) {
  return a->shared != b->shared ? a->shared > b->shared : a->newest > b->newest;
}

/* Inserts `c` into the `*count` nearest, which are in descending order, and drops the farthest when there are
 * `most`. */
static void keep_nearest(candidate *nearest, size_t *count, size_t most, candidate c) {
  if (*count == most && !is_nearer(&c, &nearest[most - 1])) return;
  size_t at = *count < most ? (*count)++ : most - 1;
  for (; at > 0 && is_nearer(&c, &nearest[at - 1]); at--)
    nearest[at] = nearest[at - 1];
  nearest[at] = c;
}

static uint64_t rewards_of(const lp_replay *replay, const kind *of, lp_route route) {
  switch (replay->mode) {
  case LP_REPLAY_EMA:
    return (uint64_t)of->of[route].count;
  case LP_REPLAY_LATEST:
    return 1;
  case LP_REPLAY_REWARD:
  case LP_REPLAY_STRICT:
    return of->seen;
  }
  return 1;
}

/* What the owner knows of a route, or else all others: the mean over these, of which the newest says how it went.
 * False: nothing. */
static bool recall(const lp_replay *replay, kind *first, uint64_t owner, lp_route route, candidate *out) {
  const kind *own = of_owner(first, owner);
  const bool knows = own && own->of[route].count > 0;
  double owners = 0;
  out->of = (lp_experience){.keywords = first->keywords, .route = route};
  out->newest = 0;
  for (const kind *at = knows ? own : first; at; at = knows ? NULL : at->next) {
    const memory *m = &at->of[route];
    if (m->count == 0) continue;
    out->of.reward += (m->reward - out->of.reward) / ++owners;
    out->of.seen += rewards_of(replay, at, route);
    if (m->newest < out->newest) continue;
    out->newest = m->newest;
    out->of.good = m->good;
  }
  return owners > 0;
}

size_t lp_replay_select(const lp_replay *replay, uint64_t owner, const char *keywords, size_t most,
                        lp_experience *out) {
  if (most == 0) return 0;
  LP_OWNED(lp_free_at) candidate *nearest = lp_alloc(most * sizeof *nearest);
  size_t count = 0;
  for (size_t i = 0; i < lp_map_count(replay->kinds); i++) {
    kind *first = lp_map_value_at(replay->kinds, i);
    candidate found = {.shared = lp_words_shared(keywords, first->keywords)};
    for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
      if (recall(replay, first, owner, route, &found)) keep_nearest(nearest, &count, most, found);
  }
  for (size_t i = 0; i < count; i++)
    out[i] = nearest[count - 1 - i].of;
  return count;
}
