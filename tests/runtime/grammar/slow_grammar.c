/* The oracle: follows all derivations of a grammar byte by byte, and remembers nothing: see slow_grammar.h. */
#include "tests/runtime/grammar/slow_grammar.h"

#include <stdlib.h>

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

struct slow_grammar {
  const lp_grammar *grammar;
  lp_arena *arena; /* frames */
  places now, next, tried;
  int32_t visits; /* nodes of the current expansion */
  bool gave_up;
};

/* A schema may refer to itself without an end. Possibilities beyond these limits are given up. */
enum { MOST_DEPTH = 2000, MOST_VISITS = 100000, MOST_PLACES = 4096 };

static void put(places *to, place found) {
  for (size_t i = 0; i < to->count; i++)
    if (to->data[i].node == found.node && to->data[i].parent == found.parent) return;
  if (to->count < MOST_PLACES) lp_vec_push(to, found);
}

/* Finds or makes a frame. Equal frames of one expansion are the same, so that equal possibilities are found. */
static const frame *push(slow_grammar *state, const places *to, int32_t next, const frame *parent) {
  for (size_t i = to->count; i-- > 0;) {
    const frame *other = to->data[i].parent;
    if (other && other->next == next && other->parent == parent) return other;
  }
  frame *made = LP_NEW(state->arena, frame);
  *made = (frame){next, parent};
  return made;
}

static void expand(slow_grammar *state, int32_t node, const frame *parent, places *to, int depth) {
  if (depth > MOST_DEPTH || ++state->visits > MOST_VISITS) state->gave_up = true;
  if (depth > MOST_DEPTH || state->visits > MOST_VISITS) return;
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
static void step(slow_grammar *state, const places *from, uint8_t byte, places *to) {
  to->count = 0;
  state->visits = 0;
  for (size_t i = 0; i < from->count; i++) {
    if (from->data[i].node < 0) continue;
    const lp_node *at = &state->grammar->nodes.data[from->data[i].node];
    if (byte >= at->low && byte <= at->high) expand(state, at->next, from->data[i].parent, to, 0);
  }
}

slow_grammar *slow_grammar_begin(const lp_grammar *grammar) {
  slow_grammar *state = lp_alloc(sizeof *state);
  state->grammar = grammar;
  state->arena = lp_arena_create();
  expand(state, grammar->root, NULL, &state->now, 0);
  return state;
}

bool slow_grammar_gave_up(const slow_grammar *state) {
  return state->gave_up;
}

void slow_grammar_free(slow_grammar *state) {
  if (!state) return;
  lp_arena_free(state->arena);
  lp_vec_free(&state->now);
  lp_vec_free(&state->next);
  lp_vec_free(&state->tried);
  free(state);
}

bool slow_grammar_allows(slow_grammar *state, const char *bytes, size_t size) {
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

void slow_grammar_take(slow_grammar *state, const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    step(state, &state->now, (uint8_t)bytes[i], &state->next);
    places taken = state->now;
    state->now = state->next;
    state->next = taken;
  }
}

bool slow_grammar_can_end(const slow_grammar *state) {
  for (size_t i = 0; i < state->now.count; i++)
    if (state->now.data[i].node < 0) return true;
  return false;
}
