/* Ranks as threads: what one offers all get, and one that gives up ends the waits of all. */
#include <pthread.h>
#include <string.h>

#include "runtime/collective/collective.h"
#include "tests/suite.h"

enum { RANKS = 3, ROUNDS = 200 };

typedef struct {
  lp_collective end;
  bool leaves; /* after one round */
  bool failed;
  int wrong;
} subject;

/* Each round has other data, so that a copy that came too early or too late shows. */
static void *play(void *user) {
  subject *s = user;
  lp_collective *end = &s->end;
  for (int32_t round = 0; round < ROUNDS && !s->failed; round++) {
    int32_t told = end->rank == 0 ? round * 7 : -1, part[2] = {round, end->rank}, all[RANKS][2];
    memset(all, 0xff, sizeof all);
    s->failed = !end->broadcast(end->self, &told, sizeof told) || !end->all_gather(end->self, part, sizeof part, all);
    if (s->leaves) {
      end->give_up(end->self);
      return NULL;
    }
    for (int32_t i = 0; i < RANKS && !s->failed; i++)
      s->wrong += told != round * 7 || all[i][0] != round || all[i][1] != i;
  }
  return NULL;
}

static void run(subject *s, int leaver) {
  pthread_t thread[RANKS];
  lp_collective end[RANKS];
  lp_thread_ranks *ranks = lp_thread_ranks_create(RANKS, end);
  for (int i = 0; i < RANKS; i++) {
    s[i] = (subject){.end = end[i], .leaves = i == leaver};
    ck_assert_int_eq(s[i].end.rank, i);
    ck_assert_int_eq(s[i].end.count, RANKS);
    ck_assert_int_eq(pthread_create(&thread[i], NULL, play, &s[i]), 0);
  }
  for (int i = 0; i < RANKS; i++)
    pthread_join(thread[i], NULL);
  lp_thread_ranks_free(ranks);
}

LP_TEST(all_ranks_get_what_each_offers) {
  subject s[RANKS];
  run(s, -1);
  for (int i = 0; i < RANKS; i++) {
    ck_assert(!s[i].failed);
    ck_assert_int_eq(s[i].wrong, 0);
  }
}

LP_TEST(a_rank_that_gives_up_ends_the_waits_of_all) {
  subject s[RANKS];
  run(s, 1);
  ck_assert(s[0].failed && s[2].failed);
}

/* Two rows of two parts of two bytes; with four ranks each part is held twice. */
LP_TEST(parts_are_joined_along_their_axis) {
  char whole[9] = {0};
  lp_collective_join("aabbccdd", 2, 2, 2, 2, whole);
  ck_assert_str_eq(whole, "aaccbbdd");
  lp_collective_join("aabb----ccdd----", 4, 2, 2, 2, whole);
  ck_assert_str_eq(whole, "aaccbbdd");
}
