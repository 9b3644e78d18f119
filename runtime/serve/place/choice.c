#include "runtime/serve/place/choice.h"

/* The rows that a request in flight is worth: about the prompt that it still has to compute. */
enum { ROWS_OF_REQUEST = 64 };

static int64_t rows_of(const lp_worker_offer *offer) {
  return offer->rows > offer->visited ? offer->rows : offer->visited;
}

bool lp_worker_is_better(const lp_worker_offer *a, const lp_worker_offer *b) {
  const int64_t of_a = rows_of(a) - (int64_t)ROWS_OF_REQUEST * a->requests;
  const int64_t of_b = rows_of(b) - (int64_t)ROWS_OF_REQUEST * b->requests;
  return of_a != of_b ? of_a > of_b : a->requests < b->requests;
}

lp_choice_reason lp_worker_reason(const lp_worker_offer *offer, const bool *may, int count, int chosen) {
  const lp_worker_offer *of = &offer[chosen];
  if (of->rows > 0 && of->rows >= of->visited) return LP_CHOICE_PREFIX;
  if (of->visited > 0) return LP_CHOICE_VISITED;
  for (int i = 0; i < count; i++)
    if (may[i] && rows_of(&offer[i]) > 0) return LP_CHOICE_QUEUE;
  return LP_CHOICE_FEWEST;
}
