/* The experience pool: the experiences that each replay mode keeps, and the examples of a prompt. */
#include <stdlib.h>

#include "runtime/router/router.h"
#include "tests/suite.h"

static bool add(lp_replay *replay, const char *keywords, lp_route route, double reward, bool good) {
  return lp_replay_add(replay, 0, &(lp_experience){keywords, route, reward, good, 1});
}

static void expect(const lp_replay *replay, const char *keywords, lp_route route, double reward) {
  double found = 0;
  ck_assert(lp_replay_find(replay, keywords, route, &found));
  ck_assert_double_eq_tol(found, reward, 1e-12);
}

static bool knows(const lp_replay *replay, const char *keywords, lp_route route) {
  double unused;
  return lp_replay_find(replay, keywords, route, &unused);
}

LP_TEST(ema_is_the_mean_until_the_rate_takes_over) {
  lp_replay *replay = lp_replay_create(LP_REPLAY_EMA, 0.25);
  const double rewards[] = {4, 8, 0, 12, 100};
  for (int i = 0; i < 4; i++)
    add(replay, "code", LP_ROUTE_EDGE, rewards[i], true);
  expect(replay, "code", LP_ROUTE_EDGE, 6);
  add(replay, "code", LP_ROUTE_EDGE, 100, true);
  expect(replay, "code", LP_ROUTE_EDGE, 6 + 0.25 * 94);
  ck_assert(!knows(replay, "code", LP_ROUTE_CLOUD));
  add(replay, "code", LP_ROUTE_CLOUD, 1, true);
  expect(replay, "code", LP_ROUTE_CLOUD, 1);
  lp_replay_free(replay);
}

LP_TEST(reward_keeps_the_greatest_and_the_old_one_of_equals) {
  lp_replay *replay = lp_replay_create(LP_REPLAY_REWARD, 0);
  ck_assert(add(replay, "code", LP_ROUTE_EDGE, 5, false));
  ck_assert(!add(replay, "code", LP_ROUTE_CLOUD, 5, true));
  ck_assert(!add(replay, "code", LP_ROUTE_CLOUD, 4, true));
  expect(replay, "code", LP_ROUTE_EDGE, 5);
  ck_assert(add(replay, "code", LP_ROUTE_CLOUD, 5.5, true));
  expect(replay, "code", LP_ROUTE_CLOUD, 5.5);
  ck_assert(!knows(replay, "code", LP_ROUTE_EDGE));
  lp_replay_free(replay);
}

/* As an example, a mean stands for its own rewards, the best for all of its keywords, the newest for itself. */
LP_TEST(an_example_tells_how_many_rewards_it_stands_for) {
  const uint64_t edge[] = {[LP_REPLAY_EMA] = 2, [LP_REPLAY_REWARD] = 3, [LP_REPLAY_STRICT] = 2, [LP_REPLAY_LATEST] = 1};
  for (lp_replay_mode mode = LP_REPLAY_EMA; mode <= LP_REPLAY_LATEST; mode++) {
    lp_replay *replay = lp_replay_create(mode, 0.25);
    add(replay, "code", LP_ROUTE_CLOUD, -1, false);
    add(replay, "code", LP_ROUTE_EDGE, 5, true);
    add(replay, "code", LP_ROUTE_EDGE, 4, true);
    lp_experience kept[2];
    size_t count = lp_replay_select(replay, 0, "code", 2, kept);
    ck_assert_uint_ge(count, 1);
    ck_assert_int_eq(kept[count - 1].route, LP_ROUTE_EDGE);
    ck_assert_uint_eq(kept[count - 1].seen, edge[mode]);
    lp_replay_free(replay);
  }
}

LP_TEST(strict_never_keeps_what_missed_its_quality) {
  lp_replay *replay = lp_replay_create(LP_REPLAY_STRICT, 0);
  ck_assert(!add(replay, "code", LP_ROUTE_EDGE, 5, false));
  ck_assert(add(replay, "code", LP_ROUTE_CLOUD, -5, true));
  ck_assert(!add(replay, "code", LP_ROUTE_EDGE, 50, false));
  expect(replay, "code", LP_ROUTE_CLOUD, -5);
  lp_replay_free(replay);
}

LP_TEST(latest_keeps_the_newest) {
  lp_replay *replay = lp_replay_create(LP_REPLAY_LATEST, 0);
  add(replay, "code", LP_ROUTE_EDGE, 5, true);
  ck_assert(add(replay, "code", LP_ROUTE_CLOUD, -5, false));
  expect(replay, "code", LP_ROUTE_CLOUD, -5);
  ck_assert(!knows(replay, "code", LP_ROUTE_EDGE));
  lp_replay_free(replay);
}

LP_TEST(the_nearest_examples_stand_last) {
  lp_replay *replay = lp_replay_create(LP_REPLAY_EMA, 0);
  add(replay, "summary, short", LP_ROUTE_EDGE, 1, true);
  add(replay, "code, long", LP_ROUTE_EDGE, 2, true);
  add(replay, "code, short", LP_ROUTE_EDGE, 3, true);
  add(replay, "code, short", LP_ROUTE_CLOUD, 4, false);
  add(replay, "chat, medium", LP_ROUTE_EDGE, 5, true);
  lp_experience out[5];
  ck_assert_uint_eq(lp_replay_select(replay, 0, "code, short", 5, out), 5);
  const double rewards[] = {5, 1, 2, 3, 4};
  for (int i = 0; i < 5; i++)
    ck_assert_double_eq(out[i].reward, rewards[i]);
  ck_assert(!out[4].good);
  ck_assert_uint_eq(lp_replay_select(replay, 0, "code, short", 2, out), 2);
  ck_assert_double_eq(out[0].reward, 3);
  ck_assert_double_eq(out[1].reward, 4);
  ck_assert_uint_eq(lp_replay_select(replay, 0, "code, short", 0, out), 0);
  lp_replay_free(replay);
}

/* However many share words with the query, the same keywords are nearest. */
LP_TEST(a_part_of_a_word_is_no_word) {
  lp_replay *replay = lp_replay_create(LP_REPLAY_EMA, 0);
  add(replay, "code", LP_ROUTE_EDGE, 1, true);
  add(replay, "codec, shorter", LP_ROUTE_EDGE, 2, true);
  add(replay, "code,short", LP_ROUTE_EDGE, 3, true);
  lp_experience out[3];
  ck_assert_uint_eq(lp_replay_select(replay, 0, "code", 3, out), 3);
  ck_assert_double_eq(out[0].reward, 2);
  ck_assert_double_eq(out[1].reward, 3);
  ck_assert_double_eq(out[2].reward, 1);
  lp_replay_free(replay);
}

static void add_of(lp_replay *replay, uint64_t owner, lp_route route, double reward) {
  ck_assert(lp_replay_add(replay, owner, &(lp_experience){"code", route, reward, true, 1}));
}

/* An owner's experience counts for itself first, and where it has none, the others' count in equal parts. */
LP_TEST(owners) {
  lp_replay *replay = lp_replay_create(LP_REPLAY_EMA, 0.1);
  lp_experience out[3];
  add_of(replay, 1, LP_ROUTE_EDGE, 2);
  for (int i = 0; i < 40; i++)
    add_of(replay, 2, LP_ROUTE_EDGE, -1000);
  add_of(replay, 3, LP_ROUTE_EDGE, 4);
  add_of(replay, 2, LP_ROUTE_CLOUD, 1);
  ck_assert_uint_eq(lp_replay_select(replay, 1, "code", 3, out), 2);
  ck_assert_int_eq(out[0].route, LP_ROUTE_EDGE);
  ck_assert_double_eq(out[0].reward, 2);
  ck_assert_uint_eq(out[0].seen, 1);
  ck_assert_double_eq(out[1].reward, 1); /* of another */
  ck_assert_uint_eq(lp_replay_select(replay, 4, "code", 3, out), 2);
  ck_assert_double_eq_tol(out[0].reward, (2 - 1000 + 4) / 3., 1e-9);
  ck_assert_uint_eq(out[0].seen, 42);
  ck_assert_uint_eq(lp_replay_select(replay, 2, "code", 3, out), 2);
  ck_assert_double_eq_tol(out[0].reward, -1000, 1e-9);
  lp_replay_free(replay);
}
