/* The cloud's contexts under messages that come twice, late and out of order; codecs; the drafting window. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/random.h"
#include "runtime/bundle/sealed_file.h"
#include "runtime/exec/pool.h"
#include "runtime/exits/codec.h"
#include "runtime/exits/context.h"
#include "runtime/exits/context_file.h"
#include "runtime/exits/halves.h"
#include "runtime/exits/window.h"
#include "runtime/runtime.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

enum { POSITIONS = 24 };

static char *dir, *path;
static lp_bundle *bundle;
static lp_pool *pool;
static lp_halves halves;
static float rows[2][POSITIONS][TOY_WIDTH]; /* of two texts that differ */

static uint32_t state = 1;
static uint32_t draw(uint32_t below) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % below;
}

static void setup(void) {
  const char *why = "";
  dir = toy_dir_create();
  path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "ddddcc", .exits = {1, 3}});
  bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  pool = lp_pool_create(1);
  ck_assert_msg(lp_halves_find(bundle, &halves, &why), "%s", why);
  ck_assert_uint_eq(halves.width[0], TOY_WIDTH);
  for (int text = 0; text < 2; text++)
    for (int i = 0; i < POSITIONS; i++)
      for (int k = 0; k < TOY_WIDTH; k++)
        rows[text][i][k] = (float)draw(2000) / 1000.0F - 1.0F;
}

static void teardown(void) {
  lp_pool_free(pool);
  lp_bundle_free(bundle);
  free(path);
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

static lp_context *create(void) {
  lp_context_options options = {.sampling = {.top_p = 1}, .codec = LP_CODEC_F32, .capacity = POSITIONS};
  return lp_context_create(&halves, 0, &options, pool);
}

static void upload(lp_context *context, lp_context_time time, int text, int64_t first, int64_t count) {
  uint8_t data[POSITIONS * TOY_WIDTH * 4];
  size_t row = lp_codec_row_bytes(LP_CODEC_F32, TOY_WIDTH);
  for (int64_t i = 0; i < count; i++)
    lp_codec_encode(LP_CODEC_F32, rows[text][first + i], TOY_WIDTH, data + (size_t)i * row);
  ck_assert_int_eq(lp_context_upload(context, time, first, count, data, (size_t)count * row, NULL), LP_OK);
}

static int32_t token_behind(lp_context *context, int64_t end) {
  lp_answer answer;
  lp_question question = {.end = end};
  ck_assert_int_eq(lp_context_ask(context, &question, &answer, NULL), LP_OK);
  return answer.sample.token;
}

/* Asks for the token after every position, one by one. */
static void learn(int text, int32_t out[POSITIONS]) {
  lp_context *context = create();
  upload(context, (lp_context_time){0}, text, 0, POSITIONS);
  for (int64_t i = 0; i < POSITIONS; i++)
    out[i] = token_behind(context, i + 1);
  lp_context_free(context);
}

LP_LOOP_TEST(uploads_in_any_order, 0, 40) {
  int32_t want[POSITIONS];
  learn(0, want);
  lp_context *context = create();
  lp_context_time now = {.epoch = 3, .floor = 0}, before = {.epoch = 2, .floor = 0};
  state = (uint32_t)_i + 1;
  (void)lp_context_enter(context, now);
  int64_t end = 1 + (int64_t)draw(POSITIONS);
  while (!lp_context_is_ready(context, end)) {
    int64_t first = draw((uint32_t)end), count = 1 + (int64_t)draw((uint32_t)(end - first));
    upload(context, before, 1, first, count); /* another epoch's rows are left out */
    upload(context, now, 0, first, count);
    upload(context, now, 1, first, count); /* rows that are present are not overwritten */
  }
  ck_assert_int_eq(token_behind(context, end), want[end - 1]);
  upload(context, now, 1, 0, end); /* nor consumed positions */
  ck_assert_int_eq(token_behind(context, end), want[end - 1]);
  lp_context_drop(context);
  ck_assert_uint_eq(lp_context_bytes(context), 0);
  ck_assert(!lp_context_is_ready(context, 1));
  upload(context, now, 0, 0, end);
  ck_assert_int_eq(token_behind(context, end), want[end - 1]);
  lp_context_free(context);
}

/* Both texts begin with the same rows. The first's drafts are refused; the second's rows take their place. */
LP_LOOP_TEST(drafts_roll_back, 0, 12) {
  int32_t first[POSITIONS], second[POSITIONS];
  int64_t fork = 2 + _i, good = _i % 3, count = 5;
  memcpy(rows[1], rows[0], (size_t)fork * sizeof rows[0][0]);
  learn(0, first);
  learn(1, second);
  lp_context *context = create();
  lp_context_time time = {0};
  int64_t begin = fork - good; /* drafts of positions [begin, begin + count): `good` of them hold */
  int32_t draft[5];
  for (int64_t i = 0; i < count; i++)
    draft[i] = i < good ? first[begin + i - 1] : (first[begin + i - 1] + 1) % TOY_VOCAB;
  upload(context, time, 0, 0, begin + count);
  lp_answer answer;
  lp_question question = {.draft = draft, .count = count, .end = begin + count};
  ck_assert_int_eq(lp_context_ask(context, &question, &answer, NULL), LP_OK);
  ck_assert_int_eq(answer.accepted, good);
  ck_assert_int_eq(answer.sample.token, first[fork - 1]);
  ck_assert_uint_eq(context->time.epoch, 1);
  ck_assert_int_eq(context->time.floor, fork);
  upload(context, time, 0, 0, begin + count); /* late: of the epoch before */
  ck_assert(!lp_context_is_ready(context, fork + 1));
  time = context->time;
  upload(context, time, 1, fork, POSITIONS - fork);
  for (int64_t i = fork; i < POSITIONS; i++)
    ck_assert_int_eq(token_behind(context, i + 1), second[i]);
  lp_context_free(context);
}

/* An epoch that is not the next one, as of a device that was started again: rows of certain tokens stay. */
LP_TEST(a_later_epoch) {
  lp_context *context = create();
  upload(context, (lp_context_time){.epoch = 1}, 0, 0, 12);
  for (int64_t end = 8; end <= 10; end++)
    (void)token_behind(context, end);
  ck_assert(lp_context_enter(context, (lp_context_time){.epoch = 8, .floor = 9}));
  ck_assert(lp_context_is_ready(context, 9));
  ck_assert(!lp_context_is_ready(context, 10));
  ck_assert(lp_context_enter(context, (lp_context_time){.epoch = 16, .floor = 10}));
  ck_assert(lp_context_is_ready(context, 9)); /* what changed in the epochs between is not known */
  ck_assert(!lp_context_is_ready(context, 10));
  ck_assert(lp_context_enter(context, (lp_context_time){.epoch = 24, .floor = 4}));
  ck_assert(lp_context_is_ready(context, 4));
  ck_assert(!lp_context_is_ready(context, 5));
  lp_context_free(context);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static lp_status restore(const char *file, lp_answer *answer, lp_diag *diag) {
  lp_context_record record;
  lp_context *context = NULL;
  lp_status status = lp_context_restore(&halves, 0, pool, file, POSITIONS, &record, &context, diag);
  if (status == LP_OK) {
    ck_assert(record.id == 7 && record.answered == 3 && record.asked == -1);
    lp_question question = {.end = 10};
    ck_assert_int_eq(lp_context_ask(context, &question, answer, NULL), LP_OK);
  }
  lp_context_free(context);
  return status;
}

/* Writes the file again with `change` bytes more or fewer of rows, and a right checksum. */
static void resize(const char *file, int change) {
  static const lp_sealed_kind kind = {.letters = "CTXT", .title = "context file", .version = 1};
  lp_sealed sealed;
  lp_buf head = {0}, payload = {0};
  ck_assert_int_eq(lp_sealed_open(file, &kind, &sealed, NULL), LP_OK);
  lp_buf_append(&head, (const char *)sealed.head, sealed.head_size);
  lp_buf_append(&payload, (const char *)sealed.payload, sealed.payload_size);
  for (int i = 0; i < 64; i += 4)
    lp_buf_append(&payload, "0123", 4);
  payload.size = (size_t)((int64_t)sealed.payload_size + change);
  lp_sealed_close(&sealed);
  ck_assert_int_eq(lp_sealed_write(file, &kind, &head, &payload, NULL), LP_OK);
  lp_buf_free(&head);
  lp_buf_free(&payload);
}

/* A context continues from its file; a file whose rows are fewer or more than its head tells is refused. */
LP_TEST(a_file_keeps_a_context) {
  int32_t wanted[POSITIONS];
  learn(0, wanted);
  lp_context *context = create();
  upload(context, (lp_context_time){0}, 0, 0, 12);
  ck_assert_int_eq(token_behind(context, 9), wanted[8]);
  char *file = lp_path_join(dir, "context");
  lp_context_record record = {.id = 7, .answered = 3, .asked = -1};
  ck_assert_int_eq(lp_context_save(context, &record, file, NULL), LP_OK);
  lp_context_free(context);
  lp_answer answer = {0};
  ck_assert_int_eq(restore(file, &answer, NULL), LP_OK);
  ck_assert_int_eq(answer.sample.token, wanted[9]);
  static const int changes[] = {-4, 4, -64, 64};
  for (size_t i = 0; i < LP_COUNT(changes); i++) {
    lp_diag *diag = lp_diag_create();
    resize(file, changes[i]);
    ck_assert_int_eq(restore(file, &answer, diag), LP_FAILED);
    ck_assert_msg(strstr(toy_error(diag), "bytes of rows"), "%s", toy_error(diag));
    resize(file, -changes[i]);
    lp_diag_free(diag);
  }
  free(file);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

LP_TEST(what_is_out_of_range) {
  lp_context *context = create();
  uint8_t data[TOY_WIDTH * 4] = {0};
  lp_context_time time = {0};
  static const struct {
    int64_t first, count;
    size_t size;
  } bad[] = {{-1, 1, 64}, {0, -1, 64}, {POSITIONS, 1, 64}, {0, 1, 63}, {1, POSITIONS, 64}, {INT64_MAX, INT64_MAX, 64}};
  for (size_t i = 0; i < LP_COUNT(bad); i++)
    ck_assert_int_eq(lp_context_upload(context, time, bad[i].first, bad[i].count, data, bad[i].size, NULL), LP_FAILED);
  lp_answer answer;
  int32_t draft[2] = {1, 2};
  const lp_question questions[] = {
      {.end = 0}, {.end = 1}, {.end = POSITIONS + 1}, {.draft = draft, .count = 2, .end = 2}};
  for (size_t i = 0; i < LP_COUNT(questions); i++)
    ck_assert_int_eq(lp_context_ask(context, &questions[i], &answer, NULL), LP_FAILED);
  ck_assert_uint_eq(lp_context_bytes(context), 0);
  lp_context_free(context);
}

/* ---- codecs ------------------------------------------------------------------------------------------------------ */

/* The error that the comment at the top of exits/codec.c allows for row[index]. */
static double error_bound(lp_codec codec, const float *row, size_t width, size_t index) {
  enum { GROUP = 128 };
  double x = fabs((double)row[index]), greatest = 0;
  if (codec == LP_CODEC_F32) return 0;
  if (codec == LP_CODEC_F16) return x > 65504 ? x - 65504 : fmax(x * 0x1p-11, 0x1p-25);
  for (size_t i = index / GROUP * GROUP; i < width && i < (index / GROUP + 1) * GROUP; i++)
    greatest = fmax(greatest, fabs((double)row[i]));
  return greatest / (codec == LP_CODEC_INT8 ? 127 : 7) / 2 * (1 + 1e-5);
}

LP_TEST(codecs_keep_their_bounds) {
  static const size_t widths[] = {1, 2, 31, 128, 129, 300};
  float row[300], back[300];
  uint8_t data[1300];
  for (int codec = LP_CODEC_F32; codec < LP_CODEC_COUNT; codec++)
    for (size_t w = 0; w < LP_COUNT(widths); w++)
      for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < widths[w]; i++)
          row[i] = ((float)draw(20001) / 10000.0F - 1.0F) * powf(10.0F, (float)draw(12) - 6.0F);
        size_t bytes = lp_codec_row_bytes((lp_codec)codec, widths[w]);
        ck_assert_uint_le(bytes, sizeof data);
        memset(data, 0xA5, sizeof data);
        lp_codec_encode((lp_codec)codec, row, widths[w], data);
        ck_assert_uint_eq(data[bytes], 0xA5);
        lp_codec_decode((lp_codec)codec, data, widths[w], back);
        for (size_t i = 0; i < widths[w]; i++) {
          double bound = error_bound((lp_codec)codec, row, widths[w], i);
          ck_assert_double_le(fabs((double)row[i] - (double)back[i]), bound);
        }
      }
  ck_assert_uint_eq(lp_codec_row_bytes(LP_CODEC_F16, 128), 256);
  ck_assert_uint_eq(lp_codec_row_bytes(LP_CODEC_INT8, 128), 132);
  ck_assert_uint_eq(lp_codec_row_bytes(LP_CODEC_INT4, 128), 68);
}

/* A row with elements that are not finite keeps to its size. f32 keeps it, f16 clamps it, a group of integers becomes
 * zeros. */
LP_TEST(codecs_have_names) {
  static const char *const none[] = {"", "f", "f3", "f322", "int", "F16", "fp16", "none"};
  lp_codec codec;
  for (int i = 0; i < LP_CODEC_COUNT; i++) {
    ck_assert(lp_codec_parse(lp_codec_name((lp_codec)i), &codec));
    ck_assert_int_eq(codec, i);
  }
  for (size_t i = 0; i < LP_COUNT(none); i++)
    ck_assert(!lp_codec_parse(none[i], &codec));
}

LP_TEST(codecs_take_any_number) {
  static const float row[4] = {INFINITY, -INFINITY, NAN, 1e30F}, half[4] = {65504, -65504, NAN, 65504}, zeros[4];
  static const float *const wanted[LP_CODEC_COUNT] = {
      [LP_CODEC_F32] = row, [LP_CODEC_F16] = half, [LP_CODEC_INT8] = zeros, [LP_CODEC_INT4] = zeros};
  for (int codec = LP_CODEC_F32; codec < LP_CODEC_COUNT; codec++) {
    float back[4];
    uint8_t data[64];
    memset(data, 0xa5, sizeof data);
    lp_codec_encode((lp_codec)codec, row, 4, data);
    for (size_t i = lp_codec_row_bytes((lp_codec)codec, 4); i < sizeof data; i++)
      ck_assert_uint_eq(data[i], 0xa5);
    lp_codec_decode((lp_codec)codec, data, 4, back);
    for (int i = 0; i < 4; i++)
      ck_assert(isnan(wanted[codec][i]) ? isnan(back[i]) : back[i] == wanted[codec][i]);
  }
}

/* ---- the window -------------------------------------------------------------------------------------------------- */

static int drafts_made(const lp_window *window, double confidence) {
  int made = 0;
  double chance = lp_window_chance(window, confidence);
  while (made < 1000 && lp_window_goes_on(window, chance)) {
    made++;
    chance *= lp_window_chance(window, confidence);
  }
  return made;
}

/* The longer the round trip and the likelier a draft, the more are made. */
LP_TEST(window_grows_with_rtt_and_chance) {
  int before = 0;
  for (int rtt = 0; rtt <= 200; rtt += 50) {
    lp_window window;
    lp_window_init(&window);
    lp_window_note_draft(&window, 2);
    for (int i = 0; i < 20; i++)
      lp_window_note_round(&window, 5, 5, rtt + 5 * 2.0 + 3);
    int made = drafts_made(&window, 0.95);
    ck_assert_int_ge(made, before);
    ck_assert_int_ge(made, drafts_made(&window, 0.6));
    before = made;
  }
  ck_assert_int_ge(before, 30);
}

/* A device with this average confidence of drafts, on a link: a pass takes 1 ms, the transfer of a row `row_ms`. */
typedef struct {
  double confidence, rtt, row_ms;
} drafting;

static double round_ms(const drafting *at, int drafts) {
  double passes = drafts + 1, moved = at->row_ms * (drafts + 1);
  return at->rtt + (passes > moved ? passes : moved);
}

/* The confidence of a draft: around the average, and equal to its chance of being right. */
static double confidence_of(const drafting *at, uint64_t round, uint64_t draft) {
  return 1 - 2 * (1 - at->confidence) * lp_random_uniform(1, round, draft);
}

static bool is_right(const drafting *at, uint64_t round, uint64_t draft) {
  return lp_random_uniform(2, round, draft) < confidence_of(at, round, draft);
}

/* Tokens per ms. `floor` 0: the window decides how far to draft; else drafting continues while the chance is at least
 * `floor`. */
static double simulate(const drafting *at, double floor) {
  enum { ROUNDS = 1000, MOST = 400 };
  lp_window window;
  lp_window_init(&window);
  double tokens = 0, ms = 0;
  for (uint64_t round = 0; round < ROUNDS; round++) {
    uint64_t made = 0, right = 0;
    double chance = 1;
    for (; made < MOST; made++) {
      double confidence = confidence_of(at, round, made);
      chance *= floor > 0 ? confidence : lp_window_chance(&window, confidence);
      if (floor > 0 ? chance < floor : !lp_window_goes_on(&window, chance)) break;
      lp_window_note_draft(&window, 1);
    }
    while (right < made && is_right(at, round, right))
      right++;
    for (uint64_t draft = 0; draft < made && draft <= right; draft++)
      lp_window_note_verdict(&window, confidence_of(at, round, draft), draft < right);
    double took = round_ms(at, (int)made);
    lp_window_note_round(&window, (int64_t)made, (int64_t)right + 1, took);
    tokens += (double)right + 1;
    ms += took;
  }
  return tokens / ms;
}

/* On short and long, wide and narrow links, with good and poor exits: against the best floor for each. */
LP_LOOP_TEST(window_is_near_the_best, 0, 36) {
  static const double rtts[] = {2, 10, 50, 200}, row_times[] = {0.1, 5, 20}, confidences[] = {0.5, 0.8, 0.95};
  drafting at = {.rtt = rtts[_i % 4], .row_ms = row_times[_i / 4 % 3], .confidence = confidences[_i / 12]};
  double best = 0, found = simulate(&at, 0);
  for (int i = 0; i <= 20; i++)
    best = fmax(best, simulate(&at, 0.01 + 0.05 * i));
  ck_assert_msg(found > 0.75 * best, "rtt %g, row %g, confidence %g: %g of %g", at.rtt, at.row_ms, at.confidence, found,
                best);
}

LP_TEST(window_learns_from_verdicts) {
  lp_window window;
  lp_window_init(&window);
  double promised = lp_window_chance(&window, 0.9);
  ck_assert_double_eq_tol(promised, 0.9, 1e-12);
  for (int i = 0; i < 50; i++)
    lp_window_note_verdict(&window, 0.95, i % 2 == 0);
  ck_assert_double_eq_tol(lp_window_chance(&window, 0.95), 0.5, 0.05);
  ck_assert_double_eq_tol(lp_window_chance(&window, 0.15), 0.15, 1e-12);
}
