/* Turns of a place, of which each request needs one to run. They are given in the order in which requests came, so that
 * none waits for more requests than were there before it. Any number of threads may use them. */
#ifndef LP_SERVE_TURNS_H
#define LP_SERVE_TURNS_H

#include <pthread.h>
#include <stdbool.h>

typedef struct lp_turn lp_turn;

typedef struct {
  pthread_mutex_t lock;  /* guards what follows */
  int free;              /* turns that nobody has; 0 while requests wait */
  int waiting;           /* requests */
  lp_turn *first, *last; /* these, in order; NULL: none */
} lp_turns;

void lp_turns_init(lp_turns *turns, int count);
void lp_turns_destroy(lp_turns *turns); /* nobody may wait */
/* Waits for a turn until lp_now_ms is `until_ms`; false: none came. Each true must be followed by lp_turns_give. */
bool lp_turns_take(lp_turns *turns, double until_ms);
void lp_turns_give(lp_turns *turns);

#endif
