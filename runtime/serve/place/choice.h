/* The choice of a worker for a request: one that has computed the beginning of its prompt, unless too many requests
 * wait there. Pure; any thread. */
#ifndef LP_SERVE_CHOICE_H
#define LP_SERVE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/serve/place/site.h"

/* A worker that may be chosen. */
typedef struct {
  int64_t rows;    /* the first rows of the prompt that it has in KV caches */
  int64_t visited; /* those that the same conversation had when another server sent it there last */
  int requests;    /* of all servers, as far as is known */
} lp_worker_offer;

/* Tells whether a worker is a better choice than another one. Each row that needs no computing counts, and each request
 * there as many as ROWS_OF_REQUEST rows that it lacks. Among equal workers the one with fewer requests is better. */
bool lp_worker_is_better(const lp_worker_offer *a, const lp_worker_offer *b);
/* Why `chosen` of offer[count] was chosen. */
lp_choice_reason lp_worker_reason(const lp_worker_offer *offer, const bool *may, int count, int chosen);

#endif
