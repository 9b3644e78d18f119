/* Walks the trie of a vocabulary and the automaton of a grammar together, and remembers masks. */
#include "runtime/grammar/masks.h"

#include <pthread.h>
#include <sys/random.h>

enum { MOST_MASKS = 4096, LEAST_MASKS = 16, GRAMMAR_SHARE = 4, NODES_A_STEP = 4 };

typedef struct {
  lp_match_name name;
  lp_mask *mask;
  uint64_t used; /* the time of the last use */
  int32_t next;  /* with the same hash; -1: none */
} entry;

struct lp_masks {
  lp_vocabulary *vocabulary;
  lp_match_pool pool;
  pthread_mutex_t lock; /* guards what follows, and the users of masks */
  uint64_t time;
  int32_t most, count;
  entry entries[MOST_MASKS];
  int32_t first[MOST_MASKS]; /* by hash; -1: none */
};

lp_masks *lp_masks_create(lp_vocabulary *vocabulary) {
  lp_masks *masks = lp_alloc(sizeof *masks);
  masks->vocabulary = vocabulary;
  if (getrandom(&masks->pool.key, sizeof masks->pool.key, 0) < 0) masks->pool.key = 0;
  const size_t fit = LP_MASKS_BYTES / (sizeof(lp_mask) + vocabulary->words * sizeof(uint64_t));
  masks->most = fit > MOST_MASKS ? MOST_MASKS : fit < LEAST_MASKS ? LEAST_MASKS : (int32_t)fit;
  for (int32_t i = 0; i < MOST_MASKS; i++)
    masks->first[i] = -1;
  (void)pthread_mutex_init(&masks->lock, NULL);
  return masks;
}

void lp_masks_free(lp_masks *masks) {
  if (!masks) return;
  for (int32_t i = 0; i < masks->count; i++)
    free(masks->entries[i].mask);
  lp_vocabulary_free(masks->vocabulary);
  (void)pthread_mutex_destroy(&masks->lock);
  free(masks);
}

const lp_vocabulary *lp_masks_vocabulary(const lp_masks *masks) {
  return masks->vocabulary;
}

lp_match_pool *lp_masks_pool(lp_masks *masks) {
  return &masks->pool;
}

static size_t size_of_mask(const lp_masks *masks) {
  return sizeof(lp_mask) + masks->vocabulary->words * sizeof(uint64_t);
}

size_t lp_masks_held(lp_masks *masks) {
  (void)pthread_mutex_lock(&masks->lock);
  const size_t held = (size_t)masks->count * size_of_mask(masks);
  (void)pthread_mutex_unlock(&masks->lock);
  return held;
}

/* ---- the cache, with the lock held ------------------------------------------------------------------------------- */

static int32_t *chain_of(lp_masks *masks, const lp_match_name *name) {
  return &masks->first[(name->of[0] ^ name->of[2]) % MOST_MASKS];
}

static entry *find(lp_masks *masks, const lp_match_name *name) {
  for (int32_t i = *chain_of(masks, name); i >= 0; i = masks->entries[i].next)
    if (memcmp(&masks->entries[i].name, name, sizeof *name) == 0) return &masks->entries[i];
  return NULL;
}

static bool is_of_grammar(const entry *at, const lp_match_name *name) {
  return memcmp(at->name.of, name->of, 2 * sizeof name->of[0]) == 0;
}

/* The entry for another mask: a free one, or the one that was used longest ago; of the same grammar, if that has its
 * share. */
static entry *choose(lp_masks *masks, const lp_match_name *name) {
  int32_t own = 0, oldest = -1, oldest_own = -1;
  for (int32_t i = 0; i < masks->count; i++) {
    const entry *at = &masks->entries[i];
    const bool is_own = is_of_grammar(at, name);
    own += is_own;
    if (oldest < 0 || at->used < masks->entries[oldest].used) oldest = i;
    if (is_own && (oldest_own < 0 || at->used < masks->entries[oldest_own].used)) oldest_own = i;
  }
  if (own >= masks->most / GRAMMAR_SHARE) return &masks->entries[oldest_own];
  return masks->count < masks->most ? &masks->entries[masks->count++] : &masks->entries[oldest];
}

static void drop(lp_mask *mask) {
  if (--mask->users == 0) free(mask);
}

static void forget(lp_masks *masks, entry *at) {
  int32_t *link = chain_of(masks, &at->name);
  while (&masks->entries[*link] != at)
    link = &masks->entries[*link].next;
  *link = at->next;
  drop(at->mask);
}

static void remember(lp_masks *masks, const lp_match_name *name, lp_mask *mask) {
  entry *at = choose(masks, name);
  int32_t *first = chain_of(masks, name);
  if (at->mask) forget(masks, at);
  *at = (entry){.name = *name, .mask = mask, .used = ++masks->time, .next = *first};
  *first = (int32_t)(at - masks->entries);
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

void lp_masks_return(lp_masks *masks, lp_mask *mask) {
  (void)pthread_mutex_lock(&masks->lock);
  drop(mask);
  (void)pthread_mutex_unlock(&masks->lock);
}

static lp_mask *take(lp_masks *masks, const lp_match_name *name) {
  (void)pthread_mutex_lock(&masks->lock);
  entry *at = find(masks, name);
  if (at) at->mask->users++, at->used = ++masks->time;
  (void)pthread_mutex_unlock(&masks->lock);
  return at ? at->mask : NULL;
}

static void add(lp_mask *mask, int32_t token) {
  mask->bits[token / 64] |= UINT64_C(1) << token % 64;
}

/* Begins with the longest plain tokens that the state takes, whichever they are. */
static lp_match begin(const lp_masks *masks, lp_automaton *automaton, lp_masking *masking) {
  const lp_vocabulary *v = masks->vocabulary;
  const lp_slice *slice = v->slice;
  for (; slice->most > 0; slice++) {
    const lp_match match = lp_automaton_takes_plain(automaton, lp_automaton_now(automaton), slice->most);
    if (match == LP_MATCH_YES) break;
    if (match != LP_MATCH_NO) return match;
  }
  masking->slice = slice;
  masking->node = 0;
  masking->mask = lp_alloc(size_of_mask(masks));
  if (!masking->state) masking->state = lp_alloc((v->depth + 1) * sizeof *masking->state);
  masking->state[0] = lp_automaton_now(automaton);
  memcpy(masking->mask->bits, slice->tokens, v->words * sizeof *slice->tokens);
  for (size_t i = 0; lp_automaton_can_end(automaton) && i < v->last.count; i++)
    add(masking->mask, v->last.data[i]);
  return LP_MATCH_YES;
}

/* Walks on. A subtree whose first byte leads nowhere is left out. */
static lp_match walk(const lp_vocabulary *v, lp_automaton *automaton, lp_masking *masking) {
  const lp_slice *slice = masking->slice;
  size_t visited = 0, i = masking->node;
  lp_match match = LP_MATCH_YES;
  for (; i < slice->other.count; visited++) {
    const lp_trie_node *node = &slice->other.data[i];
    lp_match_state *to = &masking->state[node->depth + 1];
    if (visited % 1024 == 1023) match = lp_automaton_spend(automaton, 1024 / NODES_A_STEP);
    if (match == LP_MATCH_YES)
      match = lp_automaton_follow(automaton, masking->state[node->depth], (uint8_t)node->byte, to);
    if (match != LP_MATCH_YES) break;
    for (int32_t token = *to != LP_MATCH_DEAD ? node->token : -1; token >= 0; token = v->same[token])
      add(masking->mask, token);
    i = *to == LP_MATCH_DEAD ? node->end : i + 1;
  }
  masking->node = i;
  return match;
}

lp_match lp_masks_find(lp_masks *masks, lp_automaton *automaton, lp_masking *masking, lp_mask **out) {
  const lp_match_name name = lp_automaton_name(automaton, lp_automaton_now(automaton));
  *out = take(masks, &name);
  if (*out) {
    free(masking->mask);
    masking->mask = NULL;
    return LP_MATCH_YES;
  }
  if (!masking->mask) {
    const lp_match match = begin(masks, automaton, masking);
    if (match != LP_MATCH_YES) return match;
  }
  const lp_match match = walk(masks->vocabulary, automaton, masking);
  if (match != LP_MATCH_YES) return match;
  *out = masking->mask;
  masking->mask = NULL;
  (*out)->users = 2; /* this one and the cache */
  (void)pthread_mutex_lock(&masks->lock);
  if (find(masks, &name))
    (*out)->users = 1; /* another thread has found it meanwhile */
  else
    remember(masks, &name, *out);
  (void)pthread_mutex_unlock(&masks->lock);
  return LP_MATCH_YES;
}

void lp_masking_release(lp_masking *masking) {
  free(masking->mask);
  free(masking->state);
  *masking = (lp_masking){0};
}
