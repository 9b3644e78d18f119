/* The choice of a worker by the rows that it has of a prompt, and by its requests; and the beginnings of prompts that
 * servers tell each other of. */
#include "runtime/serve/place/visits.h"
#include "tests/suite.h"

/* Chooses as lp_remotes_choose does: the first of the best ones. */
static int best_of(const lp_worker_offer *offer, const bool *may, int count) {
  int best = -1;
  for (int i = 0; i < count; i++)
    if (may[i] && (best < 0 || lp_worker_is_better(&offer[i], &offer[best]))) best = i;
  return best;
}

static const bool all[] = {true, true, true};

static void chooses(const lp_worker_offer offer[3], int wanted, lp_choice_reason reason) {
  const int best = best_of(offer, all, 3);
  ck_assert_int_eq(best, wanted);
  ck_assert_int_eq(lp_worker_reason(offer, all, 3, best), reason);
}

LP_TEST(without_rows_the_fewest_requests_count) {
  chooses((lp_worker_offer[]){{.requests = 2}, {.requests = 1}, {.requests = 1}}, 1, LP_CHOICE_FEWEST);
  chooses((lp_worker_offer[]){{0}, {0}, {0}}, 0, LP_CHOICE_FEWEST);
}

LP_TEST(rows_of_the_prompt_count) {
  chooses((lp_worker_offer[]){{0}, {.rows = 32}, {.rows = 96}}, 2, LP_CHOICE_PREFIX);
  chooses((lp_worker_offer[]){{.rows = 96}, {.rows = 32}, {0}}, 0, LP_CHOICE_PREFIX);
}

/* A request is worth 64 rows. */
LP_TEST(a_queue_outweighs_rows) {
  chooses((lp_worker_offer[]){{0}, {.rows = 96, .requests = 1}, {0}}, 1, LP_CHOICE_PREFIX);
  chooses((lp_worker_offer[]){{0}, {.rows = 96, .requests = 2}, {0}}, 0, LP_CHOICE_QUEUE);
  chooses((lp_worker_offer[]){{.rows = 64, .requests = 1}, {0}, {.requests = 1}}, 1, LP_CHOICE_QUEUE);
  chooses((lp_worker_offer[]){{.rows = 65, .requests = 1}, {0}, {.requests = 1}}, 0, LP_CHOICE_PREFIX);
  chooses((lp_worker_offer[]){{.rows = 64, .requests = 3}, {.requests = 3}, {.rows = 128, .requests = 5}}, 0,
          LP_CHOICE_PREFIX);
}

LP_TEST(visits_count_as_rows) {
  chooses((lp_worker_offer[]){{0}, {.visited = 64}, {0}}, 1, LP_CHOICE_VISITED);
  chooses((lp_worker_offer[]){{.rows = 32}, {.visited = 64}, {0}}, 1, LP_CHOICE_VISITED);
  chooses((lp_worker_offer[]){{.rows = 96}, {.visited = 64}, {0}}, 0, LP_CHOICE_PREFIX);
  chooses((lp_worker_offer[]){{.rows = 32, .visited = 64}, {0}, {.rows = 32}}, 0, LP_CHOICE_VISITED);
  chooses((lp_worker_offer[]){{.rows = 96, .visited = 64}, {0}, {0}}, 0, LP_CHOICE_PREFIX); /* not their sum */
  chooses((lp_worker_offer[]){{.rows = 64, .visited = 64}, {.rows = 96}, {0}}, 1, LP_CHOICE_PREFIX);
  chooses((lp_worker_offer[]){{0}, {.visited = 64, .requests = 2}, {0}}, 0, LP_CHOICE_QUEUE);
}

/* A worker that may not be chosen gives no reason. */
LP_TEST(workers_that_are_away) {
  const lp_worker_offer offer[] = {{.rows = 320}, {.requests = 1}, {.requests = 2}};
  const bool may[] = {false, true, true};
  ck_assert_int_eq(best_of(offer, may, 3), 1);
  ck_assert_int_eq(lp_worker_reason(offer, may, 3, 1), LP_CHOICE_FEWEST);
}

LP_TEST(beginnings_of_prompts) {
  int32_t prompt[4096];
  lp_visit a[LP_MOST_VISITS], b[LP_MOST_VISITS];
  for (int i = 0; i < 4096; i++)
    prompt[i] = i % 97;
  ck_assert_int_eq(lp_visits_of("m", prompt, 47, a), 0); /* it computes at least 16 of its own */
  ck_assert_int_eq(lp_visits_of("m", prompt, 48, a), 1);
  ck_assert_int_eq(lp_visits_of("m", prompt, 144, a), 3);
  ck_assert_int_eq(a[0].rows, 32);
  ck_assert_int_eq(a[1].rows, 64);
  ck_assert_int_eq(a[2].rows, 128);
  prompt[100]++; /* shares the first 64 */
  ck_assert_int_eq(lp_visits_of("m", prompt, 4096, b), 7);
  ck_assert_str_eq(a[0].digest, b[0].digest);
  ck_assert_str_eq(a[1].digest, b[1].digest);
  ck_assert_str_ne(a[2].digest, b[2].digest);
  ck_assert_str_ne(b[1].digest, b[2].digest);
  ck_assert_int_eq(lp_visits_of("n", prompt, 48, b), 1); /* of another model */
  ck_assert_str_ne(a[0].digest, b[0].digest);
}
