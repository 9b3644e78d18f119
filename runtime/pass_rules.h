/* The limits of a batched pass, and the rows that prompts may have in it: rules of runtime/engine that runtime/simulate
 * follows. */
#pragma once

#include <stdint.h>

/* A pass has at most LP_PASS_MOST_SEQUENCES. It has at most LP_PASS_ROWS rows, or on a fast machine as many as take
 * LP_PASS_SHORT_MS, up to LP_PASS_MOST_ROWS: the more rows share the reading of weights, the less each costs, and
 * nobody waits for such a pass for longer. While prompts wait, sequences that generate leave LP_PASS_PROMPT_SEQUENCES
 * places to them. */
enum {
  LP_PASS_MOST_SEQUENCES = 256,
  LP_PASS_ROWS = 256,
  LP_PASS_TURN = LP_PASS_ROWS / 2, /* of one prompt, if others wait */
  LP_PASS_MOST_ROWS = 1024,
  LP_PROMPT_WHOLE = 1 << 20, /* a turn that no prompt exceeds: prompts run one after the other */
  LP_PASS_PROMPT_SEQUENCES = 16,
  LP_PASS_PROMPT_ROWS = 16
};

#define LP_PASS_SHORT_MS 20.0

/* The default of `prompt_stretch`: a pass may last this many times as long as without the rows of prompts. With the
 * gaps between its tokens, a device's time per token stays within twice the time without them. 1 leaves prompts the
 * least rows; with twice as much, prompts that wait have up to 3.5 times as many rows in a pass. */
#define LP_PROMPT_STRETCH 1.4

/* The rows of `prompts` waiting prompts in a pass of at most `most` rows, beside `decoders` sequences that generate.
 * `paced` of them take the time that `prompt_stretch` allows. They have LP_PASS_PROMPT_ROWS at least, and one for each
 * sequence that generates and for each that waits: so the more wait for their first token, the larger passes are, and
 * the less a row costs. */
static inline int64_t lp_pass_prompt_rows(int64_t most, int64_t decoders, int64_t prompts, int64_t paced) {
  int64_t room = most - decoders, rows = paced > LP_PASS_PROMPT_ROWS ? paced : LP_PASS_PROMPT_ROWS;
  if (decoders == 0) return room;
  if (rows < decoders) rows = decoders;
  if (rows < prompts) rows = prompts;
  return rows < room ? rows : room;
}

/* The rows of a prompt's turn, after which others run: `turn` (0: half of the `most` rows of a pass), or an equal share
 * of the `room` of this pass, if that is more. */
static inline int64_t lp_pass_turn(int64_t most, int64_t turn, int64_t room, int64_t prompts) {
  int64_t rows = turn > 0 ? turn : most / 2, share = prompts > 0 ? room / prompts : 0;
  return rows > share ? rows : share;
}

/* The rows of a prompt, of which `waiting` are left, in a pass that has room for `room`. Prompts run in turns of
 * `whole` rows. A turn that a pass cuts short goes on in the next one, before others begin: else all prompts would end
 * at the same time, which is when the last one has to. *turn: the rows that are left of the turn, 0: it begins. */
static inline int64_t lp_pass_turn_rows(int64_t waiting, int64_t whole, int64_t room, int64_t *turn) {
  int64_t rows = *turn > 0 ? *turn : whole;
  if (rows > waiting) rows = waiting;
  *turn = rows;
  if (rows > room) rows = room;
  *turn -= rows;
  return rows;
}
