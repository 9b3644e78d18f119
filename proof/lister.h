/* The listing of frontiers (frontiers.c): what is live between two units (lives.c), and what a unit on a side does
 * (arcs.c). */
#pragma once

#include "proof/frontiers.h"

enum { MOST_SLOTS = 96, MOST_TURNS = 60, MOST_LEVELS = 3, NO_SLOT = -1 };

/* Slots hold the bytes of live values (twice the turn, and 1 if it has crossed) and of live holdings (bit 2 * stage +
 * side for each use). Turns of a stage count from `base`, an even turn, if `rebased`; the message of turn 0, which
 * carries inputs, is then paid if `paid_first`. */
typedef struct {
  uint64_t paid[2]; /* bit t: turn t has sent its message */
  unsigned char slot[MOST_SLOTS];
  unsigned char rebased[2], paid_first[2], level[2], moved[2]; /* level: of the largest activation, by side */
} frontier;

typedef struct {
  int32_t stage, unit;
} place;

typedef struct {
  const lp_certificate *c;
  unsigned stages;
  bool by_blocks;                                     /* the order of both stages is that of blocks, not of units */
  bool counts_link[2], counts_turns[2], counts_bytes; /* whether the objective or a limit depends on them */
  place *order;
  size_t count;
  int32_t *value_slot[2], *holding_slot; /* NO_SLOT: not live */
  int32_t *last_reader[2];               /* [value] unit; -1: none */
  int32_t live[2][MOST_SLOTS];           /* values with slots */
  int32_t live_count[2];
  int32_t *holding_first, *holding_last; /* [holding] places in `order`; -1: none */
  int32_t anchor[2];                     /* the last unit that reads no value of another unit */
  int32_t last_input[2];                 /* the last unit that reads an input */
  bool taken[MOST_SLOTS];
  double level[2][MOST_LEVELS]; /* activations by side, ascending from 0 */
  int32_t level_count[2];
} lister;

/* Fills the rest of a lister of `c` and `stages`. */
void lister_prepare(lister *l);
/* Gives slots to what becomes live with a unit; false when there are none left. */
bool lister_open(lister *l, size_t index);
/* Takes the slots from what is not used after it. */
void lister_close(lister *l, size_t index);
/* Puts unit `index` of the order on a side, after the frontier `f`, which becomes the one after it. False when a pin or
 * a cache forbids it. Sets `fits` to false when there are too many turns. */
bool lister_step(const lister *l, size_t index, int side, frontier *f, frontier_arc *arc, bool *fits);
