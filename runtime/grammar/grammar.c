/* Follows all derivations of a grammar byte by byte, and finds the tokens that may come next. */
#include "runtime/grammar/grammar.h"

#include <stdlib.h>

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static int32_t add(lp_grammar *grammar, lp_node node) {
  lp_vec_push(&grammar->nodes, node);
  return (int32_t)grammar->nodes.count - 1;
}

int32_t lp_grammar_byte(lp_grammar *grammar, uint8_t low, uint8_t high, int32_t next) {
  return add(grammar, (lp_node){.kind = LP_NODE_BYTE, .low = low, .high = high, .next = next});
}

int32_t lp_grammar_call(lp_grammar *grammar, int32_t to, int32_t next) {
  return add(grammar, (lp_node){.kind = LP_NODE_CALL, .to = to, .next = next});
}

int32_t lp_grammar_split(lp_grammar *grammar, int32_t next, int32_t other) {
  return add(grammar, (lp_node){.kind = LP_NODE_SPLIT, .next = next, .other = other});
}

int32_t lp_grammar_return(lp_grammar *grammar) {
  return add(grammar, (lp_node){.kind = LP_NODE_RETURN});
}

int32_t lp_grammar_text(lp_grammar *grammar, const char *text, size_t size, int32_t next) {
  for (size_t i = size; i-- > 0;)
    next = lp_grammar_byte(grammar, (uint8_t)text[i], (uint8_t)text[i], next);
  return next;
}

void lp_grammar_free(lp_grammar *grammar) {
  if (!grammar) return;
  lp_vec_free(&grammar->nodes);
  free(grammar);
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

/* A call that has not returned. Frames are shared between possibilities and never change. */
typedef struct frame {
  int32_t next;
  const struct frame *parent;
} frame;

/* A possibility: the byte node that comes next; -1: the text is complete. */
typedef struct {
  int32_t node;
  const frame *parent;
} place;
typedef LP_VEC(place) places;

struct lp_grammar_state {
  const lp_grammar *grammar;
  lp_arena *arena; /* frames */
  places now, next, tried;
  int32_t visits; /* nodes of the current expansion */
};

/* A schema may refer to itself without an end. Possibilities beyond these limits are given up. */
enum { MOST_DEPTH = 2000, MOST_VISITS = 100000, MOST_PLACES = 4096 };

static void put(places *to, place found) {
  for (size_t i = 0; i < to->count; i++)
    if (to->data[i].node == found.node && to->data[i].parent == found.parent) return;
  if (to->count < MOST_PLACES) lp_vec_push(to, found);
}

/* Finds or makes a frame. Equal frames of one expansion are the same, so that equal possibilities are found. */
static const frame *push(lp_grammar_state *state, const places *to, int32_t next, const frame *parent) {
  for (size_t i = to->count; i-- > 0;) {
    const frame *other = to->data[i].parent;
    if (other && other->next == next && other->parent == parent) return other;
  }
  frame *made = LP_NEW(state->arena, frame);
  *made = (frame){next, parent};
  return made;
}

static void expand(lp_grammar_state *state, int32_t node, const frame *parent, places *to, int depth) {
  if (depth > MOST_DEPTH || ++state->visits > MOST_VISITS) return;
  const lp_node *at = &state->grammar->nodes.data[node];
  switch (at->kind) {
  case LP_NODE_BYTE:
    put(to, (place){node, parent});
    return;
  case LP_NODE_SPLIT:
    expand(state, at->next, parent, to, depth + 1);
    if (at->other != at->next) expand(state, at->other, parent, to, depth + 1);
    return;
  case LP_NODE_CALL: /* the last call of a rule needs no frame of its own */
    if (state->grammar->nodes.data[at->next].kind != LP_NODE_RETURN) parent = push(state, to, at->next, parent);
    expand(state, at->to, parent, to, depth + 1);
    return;
  case LP_NODE_RETURN:
    if (parent)
      expand(state, parent->next, parent->parent, to, depth + 1);
    else
      put(to, (place){-1, NULL});
    return;
  }
}

/* Sets `to` to the possibilities after a byte. */
static void step(lp_grammar_state *state, const places *from, uint8_t byte, places *to) {
  to->count = 0;
  state->visits = 0;
  for (size_t i = 0; i < from->count; i++) {
    if (from->data[i].node < 0) continue;
    const lp_node *at = &state->grammar->nodes.data[from->data[i].node];
    if (byte >= at->low && byte <= at->high) expand(state, at->next, from->data[i].parent, to, 0);
  }
}

lp_grammar_state *lp_grammar_begin(const lp_grammar *grammar) {
  lp_grammar_state *state = lp_alloc(sizeof *state);
  state->grammar = grammar;
  state->arena = lp_arena_create();
  expand(state, grammar->root, NULL, &state->now, 0);
  return state;
}

void lp_grammar_state_free(lp_grammar_state *state) {
  if (!state) return;
  lp_arena_free(state->arena);
  lp_vec_free(&state->now);
  lp_vec_free(&state->next);
  lp_vec_free(&state->tried);
  free(state);
}

bool lp_grammar_allows(lp_grammar_state *state, const char *bytes, size_t size) {
  lp_arena_mark mark = lp_arena_here(state->arena);
  const places *from = &state->now;
  for (size_t i = 0; i < size && from->count > 0; i++) {
    places *to = from == &state->next ? &state->tried : &state->next;
    step(state, from, (uint8_t)bytes[i], to);
    from = to;
  }
  lp_arena_rewind(state->arena, mark);
  return from->count > 0;
}

void lp_grammar_take(lp_grammar_state *state, const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    step(state, &state->now, (uint8_t)bytes[i], &state->next);
    places taken = state->now;
    state->now = state->next;
    state->next = taken;
  }
}

bool lp_grammar_can_end(const lp_grammar_state *state) {
  for (size_t i = 0; i < state->now.count; i++)
    if (state->now.data[i].node < 0) return true;
  return false;
}

void lp_grammar_first_bytes(const lp_grammar_state *state, bool out[256]) {
  for (int byte = 0; byte < 256; byte++)
    out[byte] = false;
  for (size_t i = 0; i < state->now.count; i++) {
    if (state->now.data[i].node < 0) continue;
    const lp_node *at = &state->grammar->nodes.data[state->now.data[i].node];
    for (int byte = at->low; byte <= at->high; byte++)
      out[byte] = true;
  }
}
