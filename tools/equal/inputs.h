/* Gives each input of a graph its size and content at a step of a generation. Tokens and caches are
 * given, masks and positions follow from the sizes, and everything else is drawn. */
#pragma once

#include "ir/ir.h"

typedef enum {
  LP_STEP_TOKENS,
  LP_STEP_PAST,
  LP_STEP_MASK,
  LP_STEP_POSITIONS,
  LP_STEP_ZEROS,
  LP_STEP_SWITCH, /* use_cache_branch */
  LP_STEP_LAST,   /* the last position, for each sequence */
  LP_STEP_TOTAL,  /* the number of positions */
  LP_STEP_DATA,   /* any other input: random numbers */
  /* The inputs of an encoder: they are data as well. */
  LP_STEP_SOURCE,
  LP_STEP_SOURCE_MASK /* every second sequence is shorter than the others */
} lp_step_kind;

typedef struct {
  const char *name;
  lp_value *value;
  lp_step_kind kind;
  int32_t present;   /* of a past: the output that continues it */
  int32_t grows;     /* of a past: its axis of positions, -1 if it has none */
  const char *means; /* of a mask of four axes: "shows", "hides", "added" (bind-inputs); else NULL */
  lp_array array;    /* at the last step; of a past after it: the present */
} lp_step_input;

typedef struct {
  const lp_module *module;
  lp_step_input *input;
  int32_t count, tokens; /* the index of the tokens */
  int64_t *sym;          /* the values of the module's symbols, and which of them the step has bound so far */
  bool *bound;
  int64_t batch;
  uint64_t drawn; /* the seed of the drawn numbers */
} lp_step_inputs;

/* Sets the arrays' sizes and the symbols for a step of `fresh` tokens after `past`. Fails where constant sizes do not
 * allow it. */
LP_MUST_USE lp_status lp_step_inputs_size(lp_step_inputs *inputs, int64_t past, int64_t fresh, lp_diag *diag);
/* Sets the arrays' content, in `arena`; the caches of a step after a past stay as they are. `tokens` is
 * [batch][fresh]. */
void lp_step_inputs_fill(lp_step_inputs *inputs, const int64_t *tokens, int64_t past, lp_arena *arena);
