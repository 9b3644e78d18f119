/* A circuit breaker of a place or a worker: after failures in a row it refuses requests for a while, then lets a single
 * one through as a probe. Any number of threads may use it. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

typedef struct {
  pthread_mutex_t lock; /* guards what follows */
  int failures;         /* in a row */
  double until_ms;      /* open: requests are refused until then */
  bool probes;          /* a request was let through, and its outcome is awaited */
} lp_breaker;

void lp_breaker_init(lp_breaker *breaker);
void lp_breaker_destroy(lp_breaker *breaker);
/* Tells whether a request may go to the place. Each true must be followed by lp_breaker_note. */
bool lp_breaker_admits(lp_breaker *breaker);
typedef enum { LP_OUTCOME_GOOD, LP_OUTCOME_FAILED, LP_OUTCOME_UNKNOWN } lp_outcome;
void lp_breaker_note(lp_breaker *breaker, lp_outcome outcome); /* unknown: it says nothing of the place */
bool lp_breaker_is_open(lp_breaker *breaker);
