/* The limits of a batched pass, and the rows that prompts may have in it: rules of runtime/engine that runtime/simulate
 * follows. */
#ifndef LP_PASS_RULES_H
#define LP_PASS_RULES_H

#include <stdint.h>

/* A pass has at most LP_PASS_MOST_SEQUENCES and LP_PASS_MOST_ROWS, LP_PASS_ROWS of them of one prompt. While prompts
 * wait, sequences that generate leave LP_PASS_PROMPT_SEQUENCES places to them. */
enum {
  LP_PASS_MOST_SEQUENCES = 128,
  LP_PASS_MOST_ROWS = 256,
  LP_PASS_ROWS = 128,
  LP_PASS_PROMPT_SEQUENCES = 16,
  LP_PASS_PROMPT_ROWS = 16
};

/* The default of `prompt_stretch`: a pass may last this many times as long as without the rows of prompts. With the
 * gaps between its tokens, a device's time per token stays within twice the time without them. 1 leaves prompts the
 * least rows; with twice as much, prompts that wait have up to 3.5 times as many rows in a pass. */
#define LP_PROMPT_STRETCH 1.4

/* The rows of `prompts` waiting prompts in a pass beside `decoders` sequences that generate. `paced` of them take the
 * time that `prompt_stretch` allows. They have LP_PASS_PROMPT_ROWS at least, and one for each sequence that generates
 * and for each that waits: so the more wait for their first token, the larger passes are, and the less a row costs. */
static inline int64_t lp_pass_prompt_rows(int64_t decoders, int64_t prompts, int64_t paced) {
  int64_t most = LP_PASS_MOST_ROWS - decoders, rows = paced > LP_PASS_PROMPT_ROWS ? paced : LP_PASS_PROMPT_ROWS;
  if (decoders == 0) return most;
  if (rows < decoders) rows = decoders;
  if (rows < prompts) rows = prompts;
  return rows < most ? rows : most;
}

/* The rows of a prompt, of which `waiting` are left, in a pass that has room for `room`. Prompts run in turns of
 * `whole` rows (0: LP_PASS_ROWS), so that others run between the turns of a longer one. A turn that a pass cuts short
 * goes on in the next one, before others begin: else all prompts would end at the same time, which is when the last one
 * has to. *turn: the rows that are left of the turn, 0: it begins. */
static inline int64_t lp_pass_turn_rows(int64_t waiting, int64_t whole, int64_t room, int64_t *turn) {
  int64_t rows = *turn > 0 ? *turn : whole > 0 ? whole : LP_PASS_ROWS;
  if (rows > waiting) rows = waiting;
  *turn = rows;
  if (rows > LP_PASS_ROWS) rows = LP_PASS_ROWS;
  if (rows > room) rows = room;
  *turn -= rows;
  return rows;
}

#endif
