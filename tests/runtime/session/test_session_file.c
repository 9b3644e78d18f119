/* Session files: which contents are a session, which session a generation continues, and a file that can no longer be
 * written. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/sealed_file.h"
#include "runtime/session/kept_session.pb-c.h"
#include "runtime/session/session.h"
#include "runtime/session/session_file.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

enum { BATCH = 2, TOKENS = 4 };

static char *dir, *file;
static lp_diag *diag;
static void setup(void) {
  dir = toy_dir_create();
  file = lp_path_join(dir, "kept.session");
  diag = lp_diag_create();
}
static void teardown(void) {
  lp_diag_free(diag);
  free(file);
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* ---- contents ---------------------------------------------------------------------------------------------------- */

static char hash[LP_SHA256_HEX + 2];
static int32_t prompt[6] = {1, 2, 3, 4, 5, 6};
static int32_t token[TOKENS] = {7, 8, 9, -1}, exit_layer[TOKENS] = {-1, 1, 2, 3};
static uint32_t side[TOKENS] = {0, 1, 0, LP_PLACES_MAX - 1};
static double confidence[TOKENS] = {0, 0.25, 0.5, 1}, ms[TOKENS] = {1, 2, 3, 4};

/* Two sequences of three tokens, with the two more that each may get. */
static Lp__Kept__Session kept_session(void) {
  memset(hash, 'a', LP_SHA256_HEX);
  hash[LP_SHA256_HEX] = 0;
  Lp__Kept__Session kept = LP__KEPT__SESSION__INIT;
  kept.bundle = hash;
  kept.mode = LP_MODE_STANDALONE;
  kept.codec = LP_CODEC_COUNT - 1;
  kept.max_tokens = 2;
  kept.batch = BATCH;
  kept.prompt = prompt;
  kept.n_prompt = LP_COUNT(prompt);
  kept.token = token;
  kept.side = side;
  kept.exit_layer = exit_layer;
  kept.confidence = confidence;
  kept.ms = ms;
  kept.n_token = kept.n_side = kept.n_exit_layer = kept.n_confidence = kept.n_ms = TOKENS;
  kept.incarnation = 3;
  kept.plan = 1;
  return kept;
}

static lp_status write_and_read(const Lp__Kept__Session *kept, lp_saved_session *out) {
  static const lp_sealed_kind kind = {.letters = "SESS", .title = "session file", .version = 1};
  lp_buf head = {0};
  lp_buf_reserve(&head, lp__kept__session__get_packed_size(kept) + 1);
  head.size = lp__kept__session__pack(kept, (uint8_t *)head.data);
  ck_assert_int_eq(lp_sealed_write(file, &kind, &head, &(lp_buf){0}, NULL), LP_OK);
  lp_buf_free(&head);
  return lp_saved_session_read(file, out, diag);
}

LP_TEST(a_whole_session) {
  const Lp__Kept__Session kept = kept_session();
  lp_saved_session saved;
  ck_assert_int_eq(write_and_read(&kept, &saved), LP_OK);
  ck_assert_str_eq(saved.bundle, hash);
  ck_assert_int_eq(saved.batch, BATCH);
  ck_assert_int_eq(saved.length, 3);
  ck_assert_int_eq(saved.generated, 2);
  ck_assert_int_eq(saved.max_tokens, 2);
  ck_assert_uint_eq(saved.incarnation, 3);
  ck_assert_int_eq(saved.plan, 1);
  ck_assert_uint_eq(saved.prompt.count, LP_COUNT(prompt));
  ck_assert_mem_eq(saved.prompt.data, prompt, sizeof prompt);
  ck_assert_uint_eq(saved.tokens.count, TOKENS);
  for (size_t i = 0; i < TOKENS; i++) {
    ck_assert_int_eq(saved.tokens.data[i].token, token[i]);
    ck_assert_int_eq(saved.tokens.data[i].side, (int)side[i]);
    ck_assert_int_eq(saved.tokens.data[i].exit_layer, exit_layer[i]);
    ck_assert_double_eq(saved.tokens.data[i].confidence, confidence[i]);
    ck_assert_double_eq(saved.tokens.data[i].ms, ms[i]);
  }
  lp_saved_session_free(&saved);
}

/* A file with a good checksum holds what its writer put there. */
LP_LOOP_TEST(contents_that_are_no_session, 0, 18) {
  Lp__Kept__Session kept = kept_session();
  lp_saved_session saved;
  uint32_t far[TOKENS] = {0, 0, LP_PLACES_MAX, 0};
  if (_i == 0) kept.batch = 0;
  if (_i == 1) kept.batch = -2;
  if (_i == 2) kept.batch = INT64_C(1) << 32;
  if (_i == 3) kept.n_prompt = 1;
  if (_i == 4) kept.n_prompt = 5;
  if (_i == 5) kept.n_token = kept.n_side = kept.n_exit_layer = kept.n_confidence = kept.n_ms = 3;
  if (_i == 6) kept.max_tokens = -1;
  if (_i == 7) kept.max_tokens = 1;
  if (_i == 8) kept.n_side = 2;
  if (_i == 9) kept.n_exit_layer = 2;
  if (_i == 10) kept.n_confidence = 2;
  if (_i == 11) kept.n_ms = 2;
  if (_i == 12) kept.mode = LP_MODE_STANDALONE + 1;
  if (_i == 13) kept.codec = LP_CODEC_COUNT;
  if (_i == 14) kept.side = far;
  if (_i == 15) hash[LP_SHA256_HEX - 1] = 0;
  if (_i == 16) hash[LP_SHA256_HEX] = 'a';
  if (_i == 17) kept.n_prompt = 0;
  ck_assert_int_eq(write_and_read(&kept, &saved), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), "the session file is damaged: it does not hold a session");
  ck_assert_uint_eq(saved.tokens.count, 0);
}

LP_TEST(contents_that_are_no_message) {
  static const lp_sealed_kind kind = {.letters = "SESS", .title = "session file", .version = 1};
  lp_saved_session saved;
  lp_buf head = {0};
  lp_buf_append(&head, "\xff\xff\xff", 3);
  ck_assert_int_eq(lp_sealed_write(file, &kind, &head, &(lp_buf){0}, NULL), LP_OK);
  lp_buf_free(&head);
  ck_assert_int_eq(lp_saved_session_read(file, &saved, diag), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), "the session file is damaged: it does not hold a session");
}

/* ---- a session and a generation ---------------------------------------------------------------------------------- */

static lp_bundle bundle;

LP_LOOP_TEST(sessions_that_a_generation_continues, 0, 17) {
  static const char *const refusals[] = {
      NULL, /* nothing differs; the last token ends a sequence */
      "a session of another bundle: aaaaaaaaaaaa; this is baaaaaaaaaaa",
      "the session was begun with -n of 2, not of 3",
      "the session was begun with --temperature of 0.5, not of 0.25",
      "the session was begun with --top-k of 4, not of 5",
      "the session was begun with --top-p of 0.75, not of 1",
      "the session was begun with --ignore-eos of 0, not of 1",
      "the session was begun with --theta of 2, not of 1.5",
      "the session was begun with --seed of 0, not of 1",
      "the session was begun with --mode=standalone, not full",
      "the session was begun with --codec=auto, not int4",
      "the session was begun with another prompt",
      "the session was begun with another prompt",
      "the session was begun with another prompt",
      "the session file is damaged: token 61 lies outside of the vocabulary of 61",
      "the session file is damaged: token -2 lies outside of the vocabulary of 61",
      "the session file is damaged: the bundle has no place 2",
  };
  const Lp__Kept__Session kept = kept_session();
  lp_saved_session saved;
  ck_assert_int_eq(write_and_read(&kept, &saved), LP_OK);
  saved.sampling = (lp_sampling){.temperature = 0.5, .top_k = 4, .top_p = 0.75};
  saved.theta = 2;
  saved.codec = LP_CODEC_AUTO;
  for (size_t i = 0; i < TOKENS; i++)
    saved.tokens.data[i].side = 1;
  saved.tokens.data[0].token = 60;
  lp_session session = {.bundle = &bundle,
                        .options = {.session_file = file,
                                    .resume = &saved,
                                    .sampling = saved.sampling,
                                    .mode = saved.mode,
                                    .theta = 2,
                                    .max_tokens = 2}};
  lp_keeper_task task = {.prompts = prompt, .batch = BATCH, .length = 3};
  int32_t other[LP_COUNT(prompt)];
  memcpy(other, prompt, sizeof prompt);
  other[LP_COUNT(other) - 1]++;
  bundle.manifest.vocab = 61;
  bundle.manifest.place_count = 2;
  memcpy(bundle.manifest.hash, hash, sizeof bundle.manifest.hash);
  lp_generate_options *options = &session.options;
  if (_i == 1) bundle.manifest.hash[0] = 'b';
  if (_i == 2) options->max_tokens++;
  if (_i == 3) options->sampling.temperature = 0.25;
  if (_i == 4) options->sampling.top_k++;
  if (_i == 5) options->sampling.top_p = 1;
  if (_i == 6) options->ignore_eos = true;
  if (_i == 7) options->theta = 1.5;
  if (_i == 8) options->sampling.seed++;
  if (_i == 9) options->mode = LP_MODE_FULL;
  if (_i == 10) options->codec = LP_CODEC_INT4;
  if (_i == 11) task.batch = 1;
  if (_i == 12) task.length = 2;
  if (_i == 13) task.prompts = other;
  if (_i == 14) saved.tokens.data[3].token = 61;
  if (_i == 15) saved.tokens.data[2].token = -2;
  if (_i == 16) saved.tokens.data[1].side = 2;
  ck_assert_int_eq(lp_keeper_check(&session, &task, diag), refusals[_i] ? LP_FAILED : LP_OK);
  ck_assert_str_eq(toy_error(diag), refusals[_i] ? refusals[_i] : "");
  lp_saved_session_free(&saved);
}

/* ---- a generation that is kept ----------------------------------------------------------------------------------- */

/* The file's folder goes away: one warning says how much is kept, and the generation goes on. */
LP_TEST(a_file_that_can_no_longer_be_written) {
  lp_session session = {.bundle = &bundle, .options = {.session_file = file}};
  const lp_keeper_task task = {.prompts = prompt, .batch = 1, .length = 3};
  lp_generation made = {0};
  lp_keeper *keeper = NULL;
  lp_context_claim claim = {0};
  ck_assert_int_eq(lp_keeper_create(&session, &task, &made, &keeper, diag), LP_OK);
  ck_assert(lp_keeper_claim(keeper, &claim));
  ck_assert_uint_eq(claim.incarnation, 0);
  lp_vec_push(&made.tokens, ((lp_generated){.token = 1}));
  made.generated = 1;
  lp_keeper_finish(keeper, &made, diag);
  ck_assert_uint_eq(lp_diag_count(diag), 0);
  ck_assert_int_eq(unlink(file), 0);
  lp_keeper_finish(keeper, &made, diag); /* the file has all tokens: it is not written again */
  ck_assert_int_ne(access(file, F_OK), 0);
  ck_assert_int_eq(rmdir(dir), 0);
  for (made.generated = 2; made.generated < 5; made.generated++)
    lp_keeper_finish(keeper, &made, diag);
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  ck_assert_int_eq(lp_diag_get(diag, 0)->severity, LP_WARNING);
  ck_assert_str_eq(lp_diag_get(diag, 0)->text,
                   "cannot write: No such file or directory; the session is kept up to token 1");
  lp_keeper_free(keeper);
  lp_vec_free(&made.tokens);
}

LP_TEST(nothing_is_kept) {
  lp_session session = {.bundle = &bundle};
  const lp_keeper_task task = {.prompts = prompt, .batch = 1, .length = 3};
  lp_generation made = {.generated = 1};
  lp_keeper *keeper = NULL;
  lp_context_claim claim = {.context = 5};
  ck_assert_int_eq(lp_keeper_create(&session, &task, &made, &keeper, diag), LP_OK);
  ck_assert_ptr_null(keeper);
  ck_assert(!lp_keeper_claim(keeper, &claim));
  ck_assert_uint_eq(claim.context, 5);
  lp_keeper_note(keeper, &made, diag);
  lp_keeper_finish(keeper, &made, diag);
  lp_keeper_free(keeper);
  ck_assert_uint_eq(lp_diag_count(diag), 0);
}
