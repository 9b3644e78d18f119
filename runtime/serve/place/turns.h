/* Turns limit how many answers of a place run at a time; a request takes one for each of its answers. The next turn is
 * for the client whose requests asked for the fewest tokens so far. A client that comes starts at the count of the
 * client with the least (start-time fair queueing, as in exec/fair.h). One client cannot take all turns. Any number of
 * threads may use the functions. */
#pragma once

#include <pthread.h>

#include "base/base.h"

typedef struct lp_turn lp_turn;

/* What a client has: one that has nothing is forgotten. */
typedef struct {
  uint64_t id;
  int64_t served;    /* tokens asked for by its requests that have begun, or more */
  int held, waiting; /* turns */
} lp_turns_client;

typedef struct {
  pthread_mutex_t lock;    /* guards what follows */
  int count, free;         /* turns in all; turns that no request has */
  int queue;               /* the most turns that requests may wait for */
  int waiting;             /* turns that are waited for */
  LP_VEC(lp_turn *) turns; /* that wait, in the order in which they came */
  LP_VEC(lp_turns_client) clients;
} lp_turns;

typedef struct {
  uint64_t client;
  int64_t tokens; /* of its prompt and of its answers at most */
  int turns;      /* its answers; those beyond all turns of the place count no more */
} lp_turns_request;

/* LATE: none came in time. FULL: too many wait, and of these this request's client has the most. */
typedef enum { LP_TURNS_TAKEN, LP_TURNS_LATE, LP_TURNS_FULL } lp_turns_result;

void lp_turns_init(lp_turns *turns, int count, int queue);
void lp_turns_destroy(lp_turns *turns); /* nobody may wait */
/* Waits for turns until lp_now_ms is `until_ms`. LP_TURNS_TAKEN must be followed by lp_turns_give with the same
 * request. */
lp_turns_result lp_turns_take(lp_turns *turns, const lp_turns_request *request, double until_ms);
void lp_turns_give(lp_turns *turns, const lp_turns_request *request);
