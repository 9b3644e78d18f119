/* The order in which clients share passes, of engines and of workers: start-time fair queueing by rows (Goyal, Vin and
 * Cheng, 1996). Each client counts the rows that passes have run for it, and the one with the fewest goes first. One
 * that comes back after a pause counts as served as much as the client whose turn it is: pauses earn no credit. */
#pragma once

#include <stdint.h>

/* The count of a client that enters the queue, when the turn is at a client that was served `turn` rows. */
static inline int64_t lp_fair_enter(int64_t served, int64_t turn) {
  return served < turn ? turn : served;
}

/* Orders two requests for qsort: by the rows served to their clients, then by their tickets. */
static inline int lp_fair_compare(int64_t served_a, uint64_t ticket_a, int64_t served_b, uint64_t ticket_b) {
  if (served_a != served_b) return served_a < served_b ? -1 : 1;
  return ticket_a < ticket_b ? -1 : ticket_a > ticket_b;
}
