/* Builds the automaton of a grammar where it is walked: see automaton.h. */
#include "runtime/grammar/automaton.h"

#include "base/random.h"

/* Limits of an automaton. A schema with 1,024 alternatives has 5 places in each of them at most before one is chosen,
 * but those within strings have 13. Between two tokens an automaton forgets its states where they take more than
 * SOFT_BYTES; HARD_BYTES let a token of 128 bytes walk through 128 states of the most places. All automata of a pool
 * may have POOL_BYTES, and SMALL_BYTES each even then. */
enum { MOST_PLACES = 8192, MOST_VISITS = 1 << 18, SOFT_BYTES = 8 << 20, HARD_BYTES = 32 << 20 };
enum { POOL_BYTES = 256 << 20, SMALL_BYTES = 512 << 10, MOST_PLAIN_STATES = 64 };
enum { EXPLORED_STATES = 256, EXPLORED_STEPS = 100000 };

/* A call that has not returned. Equal ones are the same. Number 0 is no call. */
typedef struct {
  int32_t next;
  uint32_t parent;
  uint64_t hash[2];
} frame;

/* A byte node that comes next, or -1: the text is complete; and the calls that it is in. */
typedef struct {
  int32_t node;
  uint32_t frame;
} place;

static const uint32_t unknown = UINT32_MAX; /* all bytes are 0xFF */
typedef struct {
  uint64_t hash[2];
  uint32_t place, count; /* of `places` */
  uint32_t *row;         /* [256] the states after each byte, or unknown; NULL: none is known */
  int8_t plain;          /* a bit for each question about plain characters that was asked, and one for its answer */
  bool can_end;
} state;

/* A hash table of numbers from 1 on; 0: free. Its owner compares what they stand for. */
typedef struct {
  uint32_t *slot;
  size_t size, count; /* size: a power of two, or 0 */
} table;

struct lp_automaton {
  const lp_grammar *grammar;
  lp_match_pool *pool;
  int64_t left, slice; /* steps: of all calls, and of this one */
  bool whole, failed;
  lp_match_state now;
  size_t counted; /* bytes in the pool's counter */
  LP_VEC(frame) frames;
  LP_VEC(state) states;
  LP_VEC(place) places;
  size_t rows; /* of states */
  table frame_of, state_of, visit_of;
  LP_VEC(place) visits, found; /* of the current expansion: the nodes, and those of them that are places */
};

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void table_put(table *t, uint64_t hash, uint32_t number) {
  size_t at = hash & (t->size - 1);
  while (t->slot[at] != 0)
    at = (at + 1) & (t->size - 1);
  t->slot[at] = number;
  t->count++;
}

/* Makes room for one more; true: the table is empty, and its owner puts all numbers again. */
static bool table_grow(table *t) {
  if (2 * (t->count + 1) <= t->size) return false;
  free(t->slot);
  *t = (table){.size = t->size > 0 ? 4 * t->size : 64};
  t->slot = lp_alloc(t->size * sizeof *t->slot);
  return true;
}

static void table_free(table *t) {
  free(t->slot);
  *t = (table){0};
}

/* ---- frames and states ------------------------------------------------------------------------------------------- */

static uint64_t key_of(const lp_automaton *m) {
  return m->pool ? m->pool->key : 0;
}

static uint32_t find_frame(lp_automaton *m, int32_t next, uint32_t parent) {
  const uint64_t *above = m->frames.data[parent].hash;
  frame made = {.next = next, .parent = parent};
  made.hash[0] = lp_random_bits(key_of(m), above[0], (uint64_t)next);
  made.hash[1] = lp_random_bits(~key_of(m), above[1], (uint64_t)next);
  if (table_grow(&m->frame_of))
    for (size_t i = 1; i < m->frames.count; i++)
      table_put(&m->frame_of, m->frames.data[i].hash[0], (uint32_t)i);
  const table *t = &m->frame_of;
  for (size_t at = made.hash[0] & (t->size - 1); t->slot[at] != 0; at = (at + 1) & (t->size - 1)) {
    const frame *other = &m->frames.data[t->slot[at]];
    if (other->next == next && other->parent == parent) return t->slot[at];
  }
  lp_vec_push(&m->frames, made);
  table_put(&m->frame_of, made.hash[0], (uint32_t)m->frames.count - 1);
  return (uint32_t)m->frames.count - 1;
}

/* The state of the places found. The order of places does not count, so their hashes are added. */
static lp_match_state find_state(lp_automaton *m) {
  state made = {.place = (uint32_t)m->places.count, .count = (uint32_t)m->found.count};
  for (size_t i = 0; i < m->found.count; i++) {
    const place *at = &m->found.data[i];
    const uint64_t *calls = m->frames.data[at->frame].hash;
    made.hash[0] += lp_random_bits(key_of(m), (uint64_t)at->node, calls[0]);
    made.hash[1] += lp_random_bits(~key_of(m), (uint64_t)at->node, calls[1]);
    made.can_end |= at->node < 0;
  }
  if (table_grow(&m->state_of))
    for (size_t i = 0; i < m->states.count; i++)
      table_put(&m->state_of, m->states.data[i].hash[0], (uint32_t)i + 1);
  const table *t = &m->state_of;
  for (size_t at = made.hash[0] & (t->size - 1); t->slot[at] != 0; at = (at + 1) & (t->size - 1)) {
    const state *other = &m->states.data[t->slot[at] - 1];
    if (other->count == made.count && memcmp(other->hash, made.hash, sizeof made.hash) == 0) return t->slot[at] - 1;
  }
  for (size_t i = 0; i < m->found.count; i++)
    lp_vec_push(&m->places, m->found.data[i]);
  lp_vec_push(&m->states, made);
  table_put(&m->state_of, made.hash[0], (uint32_t)m->states.count);
  return (uint32_t)m->states.count - 1;
}

/* ---- expansion --------------------------------------------------------------------------------------------------- */

static uint64_t visit_hash(const place *at) {
  return lp_random_mix((uint64_t)at->node << 32 | at->frame);
}

/* Notes that a node is to be visited, once. */
static void visit(lp_automaton *m, int32_t node, uint32_t in) {
  const place wanted = {node, in};
  if (table_grow(&m->visit_of))
    for (size_t i = 0; i < m->visits.count; i++)
      table_put(&m->visit_of, visit_hash(&m->visits.data[i]), (uint32_t)i + 1);
  const table *t = &m->visit_of;
  for (size_t at = visit_hash(&wanted) & (t->size - 1); t->slot[at] != 0; at = (at + 1) & (t->size - 1)) {
    const place *other = &m->visits.data[t->slot[at] - 1];
    if (other->node == node && other->frame == in) return;
  }
  lp_vec_push(&m->visits, wanted);
  table_put(&m->visit_of, visit_hash(&wanted), (uint32_t)m->visits.count);
}

static void visit_next(lp_automaton *m, place from) {
  const lp_node *nodes = m->grammar->nodes.data, *at = &nodes[from.node];
  switch (at->kind) {
  case LP_NODE_BYTE:
    lp_vec_push(&m->found, from);
    return;
  case LP_NODE_SPLIT:
    visit(m, at->next, from.frame);
    visit(m, at->other, from.frame);
    return;
  case LP_NODE_CALL: /* the last call of a rule needs no frame of its own */
    visit(m, at->to, nodes[at->next].kind == LP_NODE_RETURN ? from.frame : find_frame(m, at->next, from.frame));
    return;
  case LP_NODE_RETURN:
    if (from.frame > 0)
      visit(m, m->frames.data[from.frame].next, m->frames.data[from.frame].parent);
    else
      lp_vec_push(&m->found, ((place){-1, 0}));
    return;
  }
}

size_t lp_automaton_bytes(const lp_automaton *m) {
  return m->frames.capacity * sizeof(frame) + m->states.capacity * sizeof(state) +
         (m->places.capacity + m->visits.capacity + m->found.capacity) * sizeof(place) +
         (256 * m->rows + m->frame_of.size + m->state_of.size + m->visit_of.size) * sizeof(uint32_t);
}

static void count_bytes(lp_automaton *m, size_t bytes) {
  if (m->pool) (void)atomic_fetch_add(&m->pool->bytes, bytes - m->counted);
  m->counted = bytes;
}

/* Tells whether a limit is exceeded. */
static bool is_too_much(lp_automaton *m) {
  const size_t bytes = lp_automaton_bytes(m);
  if (bytes != m->counted) count_bytes(m, bytes);
  const bool shared = m->pool && atomic_load(&m->pool->bytes) > POOL_BYTES && bytes > SMALL_BYTES;
  m->failed |= m->left <= 0 || shared || bytes > HARD_BYTES || m->found.count > MOST_PLACES;
  return m->failed;
}

/* Clears the table of visits by its entries, since it is as large as the largest expansion needed. */
static void begin_expansion(lp_automaton *m) {
  table *t = &m->visit_of;
  for (size_t i = 0; i < m->visits.count; i++)
    for (size_t at = visit_hash(&m->visits.data[i]) & (t->size - 1); t->slot[at] != 0; at = (at + 1) & (t->size - 1))
      t->slot[at] = 0;
  t->count = m->visits.count = m->found.count = 0;
}

/* Finds the places that follow from the visited nodes. */
static lp_match expand(lp_automaton *m, lp_match_state *to) {
  for (size_t i = 0; i < m->visits.count; i++) {
    visit_next(m, m->visits.data[i]);
    if (m->visits.count > MOST_VISITS) m->failed = true;
    m->left--;
    if (--m->slice <= 0 && !m->whole) return LP_MATCH_LATER;
    if (m->failed || m->left <= 0) break;
  }
  if (is_too_much(m)) return LP_MATCH_TOO_MUCH;
  *to = find_state(m);
  return LP_MATCH_YES;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

enum { ROW_BYTES = 256 * sizeof(uint32_t) };

static uint32_t *row_of(lp_automaton *m, lp_match_state from) {
  state *at = &m->states.data[from];
  if (!at->row) {
    at->row = lp_alloc(ROW_BYTES);
    memset(at->row, 0xFF, ROW_BYTES);
    m->rows++;
  }
  return at->row;
}

/* Makes a step that is not known. The bytes around this one that the same places take lead to the same state. */
static lp_match make_step(lp_automaton *m, lp_match_state from, uint8_t byte, lp_match_state *to) {
  int low = 0, high = 255;
  if (m->failed) return LP_MATCH_TOO_MUCH;
  if (m->slice <= 0) return LP_MATCH_LATER;
  begin_expansion(m);
  const state here = m->states.data[from];
  for (size_t i = here.place; i < (size_t)here.place + here.count; i++) {
    const place at = m->places.data[i];
    if (at.node < 0) continue;
    const lp_node *node = &m->grammar->nodes.data[at.node];
    const bool takes = byte >= node->low && byte <= node->high;
    if (takes) visit(m, node->next, at.frame);
    const int from_low = takes ? node->low : byte > node->high ? node->high + 1 : 0;
    const int to_high = takes ? node->high : byte < node->low ? node->low - 1 : 255;
    if (from_low > low) low = from_low;
    if (to_high < high) high = to_high;
  }
  m->left -= here.count / 8, m->slice -= here.count / 8;
  const lp_match match = expand(m, to);
  if (match != LP_MATCH_YES) return match;
  uint32_t *row = row_of(m, from);
  for (int i = low; i <= high; i++)
    row[i] = *to;
  return LP_MATCH_YES;
}

lp_match lp_automaton_follow(lp_automaton *m, lp_match_state from, uint8_t byte, lp_match_state *to) {
  const uint32_t *row = m->states.data[from].row;
  if (!row || row[byte] == unknown) return make_step(m, from, byte, to);
  *to = row[byte];
  return LP_MATCH_YES;
}

static lp_match walk(lp_automaton *m, const char *bytes, size_t size, lp_match_state *to) {
  *to = m->now;
  lp_match match = m->failed ? LP_MATCH_TOO_MUCH : LP_MATCH_YES;
  for (size_t i = 0; match == LP_MATCH_YES && i < size && *to != LP_MATCH_DEAD; i++)
    match = lp_automaton_follow(m, *to, (uint8_t)bytes[i], to);
  return match == LP_MATCH_YES && *to == LP_MATCH_DEAD ? LP_MATCH_NO : match;
}

lp_match lp_automaton_allows(lp_automaton *m, const char *bytes, size_t size) {
  lp_match_state to;
  return walk(m, bytes, size, &to);
}

lp_match lp_automaton_spend(lp_automaton *m, int64_t steps) {
  m->left -= steps;
  m->slice -= steps;
  m->failed |= m->left <= 0;
  return m->failed ? LP_MATCH_TOO_MUCH : m->slice <= 0 ? LP_MATCH_LATER : LP_MATCH_YES;
}

/* ---- plain characters -------------------------------------------------------------------------------------------- */

typedef struct {
  lp_match_state of[MOST_PLAIN_STATES];
  size_t count;
} state_set;

/* LP_MATCH_NO: there are too many. */
static lp_match add_state(state_set *set, lp_match_state of) {
  for (size_t i = 0; i < set->count; i++)
    if (set->of[i] == of) return LP_MATCH_YES;
  if (set->count == MOST_PLAIN_STATES) return LP_MATCH_NO;
  set->of[set->count++] = of;
  return LP_MATCH_YES;
}

/* Adds the states after each byte of a range. LP_MATCH_NO: some byte leads to none. */
static lp_match follow_range(lp_automaton *m, const state_set *from, int low, int high, state_set *to) {
  for (size_t i = 0; i < from->count; i++) {
    lp_match_state before = LP_MATCH_DEAD, next = LP_MATCH_DEAD;
    for (int byte = low; byte <= high; byte++, before = next) {
      lp_match match = lp_automaton_follow(m, from->of[i], (uint8_t)byte, &next);
      if (match == LP_MATCH_YES && next == LP_MATCH_DEAD) return LP_MATCH_NO;
      if (match == LP_MATCH_YES && next != before) match = add_state(to, next);
      if (match != LP_MATCH_YES) return match;
    }
  }
  return LP_MATCH_YES;
}

/* Adds the states after each plain character. The forms are those of UTF-8 (RFC 3629, section 4). */
static lp_match follow_plain(lp_automaton *m, const state_set *from, state_set *to) {
  lp_match match = LP_MATCH_YES;
  for (int i = 0; i < LP_PLAIN_FORMS && match == LP_MATCH_YES; i++) {
    state_set within[2] = {*from};
    const int *range = lp_plain_forms[i];
    int last = 0;
    while (last < 3 && range[2 * last + 2] != 0)
      last++;
    for (int k = 0; k <= last && match == LP_MATCH_YES; k++) {
      state_set *next = k == last ? to : &within[(k + 1) % 2];
      if (k < last) next->count = 0;
      match = follow_range(m, &within[k % 2], range[2 * k], range[2 * k + 1], next);
    }
  }
  return match;
}

lp_match lp_automaton_takes_plain(lp_automaton *m, lp_match_state from, int32_t most) {
  state_set now = {.of = {from}, .count = 1}, all = now;
  lp_match match = LP_MATCH_YES;
  for (int32_t i = 0; i < most && match == LP_MATCH_YES; i++) {
    state_set next = {.count = 0};
    const size_t before = all.count;
    match = follow_plain(m, &now, &next);
    for (size_t k = 0; match == LP_MATCH_YES && k < next.count; k++)
      match = add_state(&all, next.of[k]);
    if (all.count == before) break; /* the same again */
    now = next;
  }
  return match;
}

/* ---- automata ---------------------------------------------------------------------------------------------------- */

static void free_states(lp_automaton *m) {
  for (size_t i = 0; i < m->states.count; i++)
    free(m->states.data[i].row);
  m->rows = 0;
  lp_vec_free(&m->states);
  lp_vec_free(&m->places);
}

/* Forgets all states but the current one, whose places are then in `found`, and whose frames are made anew. */
static void forget(lp_automaton *m) {
  LP_VEC(uint32_t) calls = {0};
  const state now = m->states.data[m->now];
  frame *old = m->frames.data;
  m->frames.data = NULL;
  m->frames.count = m->frames.capacity = m->found.count = m->visits.count = 0;
  lp_vec_push(&m->frames, old[0]);
  for (size_t i = 0; i < now.count; i++)
    lp_vec_push(&m->found, m->places.data[now.place + i]);
  free_states(m);
  lp_vec_free(&m->visits);
  table_free(&m->frame_of);
  table_free(&m->state_of);
  table_free(&m->visit_of);
  for (size_t i = 0; i < m->found.count; i++) {
    uint32_t made = 0;
    calls.count = 0;
    for (uint32_t at = m->found.data[i].frame; at > 0; at = old[at].parent)
      lp_vec_push(&calls, at);
    m->left -= (int64_t)calls.count + 1;
    while (calls.count > 0)
      made = find_frame(m, old[calls.data[--calls.count]].next, made);
    m->found.data[i].frame = made;
  }
  free(old);
  lp_vec_free(&calls);
}

/* The state without places comes first. */
static void begin_states(lp_automaton *m) {
  size_t count = m->found.count;
  m->found.count = 0;
  (void)find_state(m);
  m->found.count = count;
}

lp_match lp_automaton_take(lp_automaton *m, const char *bytes, size_t size) {
  lp_match_state to;
  const lp_match match = walk(m, bytes, size, &to);
  if (match == LP_MATCH_LATER || match == LP_MATCH_TOO_MUCH) return match;
  m->now = to;
  m->left = m->left > LP_MATCH_SAVED - LP_MATCH_GAINED ? LP_MATCH_SAVED : m->left + LP_MATCH_GAINED;
  const bool scarce = m->pool && atomic_load(&m->pool->bytes) > POOL_BYTES / 2;
  if (lp_automaton_bytes(m) > (scarce ? SMALL_BYTES : SOFT_BYTES)) {
    forget(m);
    begin_states(m);
    m->now = find_state(m);
    count_bytes(m, lp_automaton_bytes(m));
  }
  return match;
}

bool lp_automaton_can_end(const lp_automaton *m) {
  return m->states.data[m->now].can_end;
}

lp_match_state lp_automaton_now(const lp_automaton *m) {
  return m->now;
}

lp_match_name lp_automaton_name(const lp_automaton *m, lp_match_state of) {
  const uint64_t *grammar = m->grammar->digest, *hash = m->states.data[of].hash;
  return (lp_match_name){{grammar[0], grammar[1], hash[0], hash[1]}};
}

void lp_automaton_grant(lp_automaton *m, int64_t steps, bool whole) {
  m->slice = steps;
  m->whole = whole;
}

lp_automaton *lp_automaton_create(const lp_grammar *grammar, lp_match_pool *pool) {
  lp_automaton *m = lp_alloc(sizeof *m);
  *m = (lp_automaton){.grammar = grammar, .pool = pool, .left = LP_MATCH_SAVED};
  lp_vec_push(&m->frames, ((frame){.next = -1}));
  begin_states(m);
  begin_expansion(m);
  visit(m, grammar->root, 0);
  lp_automaton_grant(m, INT64_MAX, true);
  (void)expand(m, &m->now); /* beyond the limits it stays dead */
  m->slice = 0;
  return m;
}

void lp_automaton_free(lp_automaton *m) {
  if (!m) return;
  count_bytes(m, 0);
  lp_vec_free(&m->frames);
  free_states(m);
  lp_vec_free(&m->visits);
  lp_vec_free(&m->found);
  table_free(&m->frame_of);
  table_free(&m->state_of);
  table_free(&m->visit_of);
  free(m);
}

lp_match lp_grammar_explore(const lp_grammar *grammar) {
  lp_automaton *m = lp_automaton_create(grammar, NULL);
  lp_match_state to;
  lp_match match = m->failed ? LP_MATCH_TOO_MUCH : m->now == LP_MATCH_DEAD ? LP_MATCH_NO : LP_MATCH_YES;
  lp_automaton_grant(m, EXPLORED_STEPS, true);
  for (size_t i = m->now; match == LP_MATCH_YES && i < m->states.count && i < EXPLORED_STATES; i++)
    for (int byte = 0; match == LP_MATCH_YES && byte < 256; byte++)
      match = lp_automaton_follow(m, (lp_match_state)i, (uint8_t)byte, &to);
  lp_automaton_free(m);
  return match == LP_MATCH_LATER ? LP_MATCH_YES : match;
}
