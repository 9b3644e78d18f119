/* The device's half in stages: layers after an exit may wait, and the rows for the cloud stay the same. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exits/device_half.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

enum { TEXT = 40, MOST_WAITING = 8 };

static const lp_sampling greedy = {.top_p = 1};

/* Three stages, two, and two whose last has two layers. */
static const toy_placement placements[] = {{.prefill = "dddddc", .exits = {1, 3}},
                                           {.prefill = "ddddcc", .exits = {2}},
                                           {.prefill = "ddddcc", .exits = {1, 3}}};

/* One half, the rows that it has finished, and what the exits said at each position. */
typedef struct {
  lp_bundle *bundle;
  lp_halves halves;
  lp_pool *pool;
  lp_executor *executor;
  lp_device_half *half;
  float rows[TEXT][TOY_WIDTH];
  int64_t finished; /* positions with rows */
  int32_t token[TOY_EXITS][TEXT];
  int64_t end; /* of the pass */
  lp_sample sample;
  uint64_t seed; /* draws which exits let the later layers wait; 0: none does */
  uint64_t drawn;
} device;

static device open_device(toy_placement placement, bool closed, uint64_t seed) {
  const char *why = "";
  placement.closed = closed;
  device made = {.bundle = toy_bundle_make(&placement, LP_LOAD_DEVICE), .seed = seed};
  ck_assert_msg(lp_halves_find(made.bundle, &made.halves, &why), "%s", why);
  made.pool = lp_pool_create(1);
  made.executor = lp_executor_create(made.bundle, LP_SIDE_DEVICE, made.pool);
  return made;
}

static void close_device(device *d) {
  lp_device_half_free(d->half);
  lp_executor_free(d->executor);
  lp_pool_free(d->pool);
  lp_bundle_free(d->bundle);
}

static bool wants_all(void *user, int32_t exit) {
  (void)user, (void)exit;
  return true;
}

static void take(void *user, int32_t exit, const lp_sample *samples) {
  device *d = user;
  d->token[exit][d->end - 1] = samples[0].token;
}

static bool may_wait(void *user) {
  device *d = user;
  return d->seed > 0 && lp_random_bits(d->seed, 0, d->drawn++) % 4 > 0;
}

static bool always(void *user) {
  (void)user;
  return true;
}

static int32_t text(int64_t position) {
  return (int32_t)((position * 23 + 5) % TOY_VOCAB);
}

static void keep(device *d, const lp_device_rows *rows) {
  ck_assert_int_le(rows->first, d->finished);
  if (rows->count > 0) memcpy(d->rows[rows->first], rows->row, (size_t)rows->count * sizeof d->rows[0]);
  d->finished = rows->first + rows->count;
}

static int64_t pass_with(device *d, int64_t past, int64_t end, bool (*waits)(void *user)) {
  int32_t tokens[TEXT];
  for (int64_t i = past; i < end; i++)
    tokens[i - past] = text(i);
  lp_device_pass pass = {.token = tokens,
                         .past = past,
                         .count = end - past,
                         .wanted = 1,
                         .capacity = TEXT,
                         .samples = &d->sample,
                         .wants = wants_all,
                         .take = take,
                         .may_wait = waits,
                         .user = d};
  lp_device_rows rows;
  d->end = end;
  if (!d->half) d->half = lp_device_half_create(&d->halves, d->executor);
  ck_assert_int_eq(lp_device_half_pass(d->half, &pass, &greedy, &rows, NULL), LP_OK);
  keep(d, &rows);
  return rows.count;
}

static void finish(device *d) {
  lp_device_rows rows;
  ck_assert_int_eq(lp_device_half_finish(d->half, TEXT, &rows, NULL), LP_OK);
  keep(d, &rows);
  ck_assert_int_eq(lp_device_half_finish(d->half, TEXT, &rows, NULL), LP_OK);
  ck_assert_int_eq(rows.count, 0);
}

/* The rows of the whole text, of which no layer waits. */
static device reference(const toy_placement *placement) {
  device d = open_device(*placement, true, 0);
  pass_with(&d, 0, 5, NULL);
  for (int64_t i = 5; i < TEXT; i++)
    ck_assert_int_eq(pass_with(&d, i, i + 1, NULL), 1);
  return d;
}

static void expect_rows(const device *want, const device *got) {
  ck_assert_int_eq(got->finished, TEXT);
  for (int64_t i = 0; i < TEXT; i++)
    ck_assert_msg(memcmp(want->rows[i], got->rows[i], sizeof want->rows[i]) == 0, "row %d differs", (int)i);
}

LP_LOOP_TEST(rows_are_the_same, 0, 3 * 8) {
  device want = reference(&placements[_i % 3]), got = open_device(placements[_i % 3], false, 1 + (uint64_t)_i);
  pass_with(&got, 0, 5, may_wait);
  for (int64_t i = 5; i < TEXT; i++)
    pass_with(&got, i, i + 1, may_wait);
  finish(&got);
  expect_rows(&want, &got);
  for (int64_t i = 5; i < TEXT; i++)
    ck_assert_int_eq(want.token[0][i], got.token[0][i]);
  close_device(&want);
  close_device(&got);
}

/* Passes go back a few positions, as after refused drafts. */
LP_LOOP_TEST(positions_are_forgotten, 0, 3 * 8) {
  device want = reference(&placements[_i % 3]), got = open_device(placements[_i % 3], false, 1 + (uint64_t)_i);
  int64_t past = 0, step = 0;
  while (past < TEXT) {
    int64_t back = (int64_t)(lp_random_bits(99, (uint64_t)_i, (uint64_t)step++) % 4), end = past + 3;
    past = back > past ? 0 : past - back;
    if (end > TEXT) end = TEXT;
    if (got.finished > past) got.finished = past;
    pass_with(&got, past, end, may_wait);
    past = end;
  }
  finish(&got);
  expect_rows(&want, &got);
  close_device(&want);
  close_device(&got);
}

/* A stage that could always wait is entered with the first token that finds eight rows open. */
LP_TEST(few_rows_wait) {
  device d = open_device(placements[1], false, 0);
  int64_t waiting = 0;
  for (int64_t i = 0; i < TEXT; i++) {
    int64_t done = pass_with(&d, i, i + 1, always);
    ck_assert_int_eq(done, waiting < MOST_WAITING ? 0 : MOST_WAITING + 1);
    waiting = done > 0 ? 0 : waiting + 1;
  }
  close_device(&d);
}

/* A prompt's first token does not wait for the later layers, which run with the second. */
LP_TEST(a_prompt_waits) {
  device d = open_device(placements[1], false, 0);
  ck_assert_int_eq(pass_with(&d, 0, 20, always), 0);
  ck_assert_int_eq(pass_with(&d, 20, 21, always), 21);
  close_device(&d);
}

/* Without the list of what is open nothing waits. */
LP_TEST(closed_exits_do_not_wait) {
  device d = open_device(placements[0], true, 0);
  for (int64_t i = 0; i < 4; i++)
    ck_assert_int_eq(pass_with(&d, i, i + 1, always), 1);
  close_device(&d);
}
