/* Calibration's results for a theta equal those of threshold mode at each position, and the search stops at the right
 * theta. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "runtime/exits/calibrate/calibrate.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

enum { DOCUMENTS = 16, LENGTH = 9, HELD_OUT = 12, LONG = 150 };

static const toy_placement placement = {.prefill = "ddddcc", .exits = {1, 3}};
static char *dir;
static lp_diag *diag;

static void setup(void) {
  dir = toy_dir_create();
  diag = lp_diag_create();
}
static void teardown(void) {
  lp_diag_free(diag);
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

typedef struct {
  int32_t ids[LENGTH];
  char digest[65];
} toy_text;

static int by_digest(const void *a, const void *b) {
  return strcmp(((const toy_text *)a)->digest, ((const toy_text *)b)->digest);
}

/* Sorted as calibration does: the last three quarters are held out. */
static void make_texts(toy_text texts[DOCUMENTS]) {
  for (int i = 0; i < DOCUMENTS; i++) {
    lp_sha256 sha;
    for (int j = 0; j < LENGTH; j++)
      texts[i].ids[j] = (i * 23 + j * 7 + i * j) % TOY_VOCAB;
    lp_sha256_init(&sha);
    lp_sha256_update(&sha, texts[i].ids, sizeof texts[i].ids);
    lp_sha256_hex(&sha, texts[i].digest);
  }
  qsort(texts, DOCUMENTS, sizeof *texts, by_digest);
}

static char *write_file(const char *name, const char *text) {
  char *path = lp_path_join(dir, name);
  ck_assert_int_eq(lp_file_write(path, text, strlen(text), NULL), LP_OK);
  return path;
}

/* Writes the texts in their order or backwards, and the whole list `times` times. */
static char *write_texts(const toy_text *texts, bool backwards, int times) {
  lp_buf lines = {0};
  for (int i = 0; i < DOCUMENTS * times; i++) {
    const toy_text *text = &texts[backwards ? DOCUMENTS - 1 - i % DOCUMENTS : i % DOCUMENTS];
    for (int j = 0; j < LENGTH; j++)
      lp_buf_printf(&lines, "%s%d", j == 0 ? "[" : ", ", text->ids[j]);
    lp_buf_puts(&lines, "]\n");
  }
  char *path = write_file("texts.jsonl", lp_buf_text(&lines));
  lp_buf_free(&lines);
  return path;
}

static lp_status calibrate(const lp_bundle *bundle, const char *data, double risk, lp_codec codec,
                           lp_calibration_report *out) {
  lp_calibrate_options options = {.data = data, .risk = risk, .confidence = 0.95, .codec = codec, .threads = 1};
  memset(out, 0, sizeof *out);
  return lp_calibrate(bundle, &options, out, diag);
}

/* The token after the first `length` of a text. */
static lp_generated next_token(lp_session *session, const int32_t *ids, int64_t length) {
  lp_generation made = {0};
  ck_assert_int_eq(lp_session_generate(session, ids, 1, length, NULL, NULL, &made, diag), LP_OK);
  lp_generated token = made.tokens.data[0];
  lp_generation_free(&made);
  return token;
}

static lp_session *open_session(const lp_bundle *bundle, lp_mode mode, double theta, lp_codec codec) {
  lp_generate_options options = {
      .mode = mode, .theta = theta, .codec = codec, .sampling = {.top_p = 1}, .max_tokens = 1, .threads = 1};
  lp_session *session = NULL;
  ck_assert_msg(lp_session_open(bundle, &options, &session, diag) == LP_OK, "%s", toy_error(diag));
  return session;
}

/* Threshold mode itself, at every position of the held-out texts. */
static void expect_figures(const lp_bundle *bundle, const toy_text *texts, const lp_theta_figures *figures,
                           lp_codec codec) {
  lp_session *full = open_session(bundle, LP_MODE_FULL, 0, LP_CODEC_AUTO);
  lp_session *early = open_session(bundle, LP_MODE_THRESHOLD, figures->theta, codec);
  int64_t exits = 0, disagreements = 0;
  for (int i = DOCUMENTS - HELD_OUT; i < DOCUMENTS; i++)
    for (int64_t length = 1; length <= LENGTH; length++) {
      lp_generated token = next_token(early, texts[i].ids, length);
      exits += token.exit_layer >= 0;
      disagreements += token.token != next_token(full, texts[i].ids, length).token;
    }
  ck_assert_msg(exits == figures->exits, "theta %g: %d exits, %d found", figures->theta, (int)exits,
                (int)figures->exits);
  ck_assert_msg(disagreements == figures->disagreements, "theta %g: %d disagree, %d found", figures->theta,
                (int)disagreements, (int)figures->disagreements);
  lp_session_close(full);
  lp_session_close(early);
}

LP_LOOP_TEST(figures_are_threshold_modes, 0, 2) {
  const lp_codec codec = _i == 0 ? LP_CODEC_F16 : LP_CODEC_INT4;
  char *path = toy_bundle_write(dir, "toy", &placement);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  toy_text texts[DOCUMENTS];
  make_texts(texts);
  char *data = write_texts(texts, false, 1);
  lp_calibration_report report;
  /* At a risk that every theta meets, the search goes down to 0. */
  ck_assert_msg(calibrate(bundle, data, 0.99999, codec, &report) == LP_OK, "%s", toy_error(diag));
  ck_assert_int_eq(report.documents[1], HELD_OUT);
  ck_assert_int_eq(report.tokens[1], HELD_OUT * LENGTH);
  ck_assert_double_eq(report.chosen.theta, 0);
  ck_assert_int_eq(report.chosen.exits, HELD_OUT * LENGTH);
  size_t step = report.tried.count / 5 + 1;
  for (size_t i = 0; i < report.tried.count; i += step)
    expect_figures(bundle, texts, &report.tried.data[i], codec);
  expect_figures(bundle, texts, &report.chosen, codec);
  ck_assert_int_eq(report.exits.data[0].layer, 1);
  ck_assert_int_eq(report.exits.data[1].sure[0], HELD_OUT * LENGTH);
  /* At theta 0 the first exit gives every token. */
  ck_assert_int_eq(report.exits.data[0].right[0], HELD_OUT * LENGTH - report.chosen.disagreements);
  lp_calibration_report_free(&report);
  lp_bundle_free(bundle);
  free(data);
  free(path);
}

/* The order of the documents and repetitions change nothing. */
LP_TEST(order_and_repeats_do_not_matter) {
  char *path = toy_bundle_write(dir, "toy", &placement);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  toy_text texts[DOCUMENTS];
  make_texts(texts);
  lp_calibration_report once, again;
  char *data = write_texts(texts, false, 1);
  ck_assert_int_eq(calibrate(bundle, data, 0.9, LP_CODEC_F16, &once), LP_OK);
  free(data);
  data = write_texts(texts, true, 3);
  ck_assert_int_eq(calibrate(bundle, data, 0.9, LP_CODEC_F16, &again), LP_OK);
  ck_assert_int_eq(again.repeats, 2 * DOCUMENTS);
  lp_buf text = {0};
  lp_calibration_print_text(&once, &text);
  ck_assert_ptr_null(strstr(lp_buf_text(&text), "left out"));
  lp_calibration_print_text(&again, &text);
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&text), "left out    32 documents that repeat another\n"));
  lp_buf_free(&text);
  /* The toy is sure of some tokens, so thetas above 0 are proposed. */
  ck_assert_uint_gt(once.tried.count, 2);
  ck_assert_double_lt(once.tried.data[1].theta, 1);
  ck_assert_double_gt(once.tried.data[1].theta, 0);
  ck_assert_uint_eq(once.tried.count, again.tried.count);
  ck_assert_mem_eq(once.tried.data, again.tried.data, once.tried.count * sizeof *once.tried.data);
  /* The test ends with the first theta that fails, and takes the one before it. */
  const lp_theta_figures *last = &once.tried.data[once.tried.count - 1];
  if (once.chosen.theta > 0) ck_assert_double_ge(last->bound, 0.9);
  ck_assert_double_lt(once.chosen.bound, 0.9);
  lp_calibration_report_free(&once);
  lp_calibration_report_free(&again);
  lp_bundle_free(bundle);
  free(data);
  free(path);
}

/* Documents are counted from one. */
static void note_progress(void *user, size_t done, size_t all) {
  size_t *last = user;
  ck_assert(done == *last + 1 || done == 1);
  ck_assert_uint_le(done, all);
  *last = done;
}

LP_TEST(generated_tokens_are_judged) {
  char *path = toy_bundle_write(dir, "toy", &placement);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  toy_text texts[DOCUMENTS];
  make_texts(texts);
  char *data = write_texts(texts, false, 1);
  lp_calibration_report report = {0};
  lp_calibrate_options options = {
      .data = data, .risk = 0.99999, .confidence = 0.95, .codec = LP_CODEC_F32, .generate = 5, .threads = 1};
  size_t judged = 0;
  options.progress = note_progress;
  options.user = &judged;
  ck_assert_msg(lp_calibrate(bundle, &options, &report, diag) == LP_OK, "%s", toy_error(diag));
  ck_assert_int_eq(report.tokens[1], HELD_OUT * 5);
  ck_assert_uint_eq(judged, DOCUMENTS);
  /* By hand, at theta 0: compares the first exit with the full model after each prefix of the full model's text. */
  lp_session *full = open_session(bundle, LP_MODE_FULL, 0, LP_CODEC_AUTO);
  lp_session *early = open_session(bundle, LP_MODE_THRESHOLD, 0, LP_CODEC_F32);
  int64_t disagreements = 0;
  for (int i = DOCUMENTS - HELD_OUT; i < DOCUMENTS; i++) {
    int32_t ids[LENGTH + 5];
    memcpy(ids, texts[i].ids, sizeof texts[i].ids);
    for (int64_t length = LENGTH; length < LENGTH + 5; length++) {
      ids[length] = next_token(full, ids, length).token;
      disagreements += next_token(early, ids, length).token != ids[length];
    }
  }
  const lp_theta_figures *last = &report.tried.data[report.tried.count - 1];
  ck_assert_double_eq(last->theta, 0);
  ck_assert_int_eq(last->disagreements, disagreements);
  lp_session_close(full);
  lp_session_close(early);
  lp_calibration_report_free(&report);
  lp_bundle_free(bundle);
  free(data);
  free(path);
}

/* A document longer than the context is judged in pieces. */
LP_TEST(long_documents_are_cut) {
  char *path = toy_bundle_write(dir, "toy", &placement);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  lp_buf lines = {0};
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < LONG; j++)
      lp_buf_printf(&lines, "%s%d", j == 0 ? "{\"tokens\": [" : ", ", (i + j * j) % TOY_VOCAB);
    lp_buf_puts(&lines, "]}\n");
  }
  char *data = write_file("long.jsonl", lp_buf_text(&lines));
  lp_calibration_report report;
  ck_assert_msg(calibrate(bundle, data, 0.99999, LP_CODEC_F16, &report) == LP_OK, "%s", toy_error(diag));
  ck_assert_int_eq(report.tokens[0], LONG);
  ck_assert_int_eq(report.tokens[1], 3 * LONG);
  lp_calibration_report_free(&report);
  lp_bundle_free(bundle);
  lp_buf_free(&lines);
  free(data);
  free(path);
}

LP_TEST(prompts_are_not_judged) {
  char *path = toy_bundle_write(dir, "toy", &placement);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  char *data =
      write_file("answers.jsonl", "{\"tokens\": [1, 2, 3, 4], \"prompt\": 3}\n{\"tokens\": [1, 2, 3], \"prompt\": 3}\n"
                                  "{\"tokens\": [5, 6, 7, 8], \"prompt\": 0}\n{\"tokens\": [9, 1]}\n");
  lp_calibration_report report;
  ck_assert_msg(calibrate(bundle, data, 0.99999, LP_CODEC_F16, &report) == LP_OK, "%s", toy_error(diag));
  ck_assert_int_eq(report.tokens[0] + report.tokens[1], 2 + 1 + 4 + 2);
  lp_calibration_report_free(&report);
  lp_bundle_free(bundle);
  free(data);
  free(path);
}

LP_LOOP_TEST(what_cannot_be_is_refused, 0, 9) {
  static const struct {
    const char *name, *text, *why;
    double risk;
  } cases[] = {
      {"a.jsonl", "[1, 2]\n[3]\n", "2 different documents", 0.5},
      {"a.jsonl", "[1, 2]\n[3, 61]\n", "token 61 lies outside of the vocabulary of 61", 0.5},
      {"a.jsonl", "[1, 2]\n[3, 6.5]\n", "[1]", 0.5},
      {"a.jsonl", "[1, 2]\n{\"body\": 3}\n", "neither", 0.5},
      {"a.jsonl", "[1, 2]\n{\"text\": \"a\"}\n", "no tokenizer", 0.5},
      {"a.jsonl", "[1, 2\n", "not valid JSON", 0.5},
      {"a.jsonl", "[1, 2]\n{\"tokens\": [1, 2], \"prompt\": 3}\n", "prompt", 0.5},
      {"a.txt", "once upon a time\n", "no tokenizer", 0.5},
      {"a.jsonl", "", "0 different documents", 0.5},
  };
  char *path = toy_bundle_write(dir, "toy", &placement);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  char *data = write_file(cases[_i].name, cases[_i].text);
  lp_calibration_report report;
  ck_assert_int_eq(calibrate(bundle, data, cases[_i].risk, LP_CODEC_F16, &report), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(toy_error(diag), cases[_i].why), "wanted '%s' in '%s'", cases[_i].why, toy_error(diag));
  ck_assert_msg(strstr(lp_diag_get(diag, 0)->loc.file, cases[_i].name), "no file");
  lp_calibration_report_free(&report);
  lp_bundle_free(bundle);
  free(data);
  free(path);
}

/* Exits of a toy agree too seldom for any theta to pass a small risk; 108 tokens are too few for a smaller one. */
LP_TEST(no_theta_is_an_error) {
  char *path = toy_bundle_write(dir, "toy", &placement);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  toy_text texts[DOCUMENTS];
  make_texts(texts);
  char *data = write_texts(texts, false, 1);
  lp_calibration_report report;
  ck_assert_int_eq(calibrate(bundle, data, 0.01, LP_CODEC_F32, &report), LP_FAILED);
  ck_assert_msg(strstr(toy_error(diag), "108 held-out tokens are too few for a risk of 0.01: it takes 299"), "%s",
                toy_error(diag));
  /* 299 of 108 held out, of 108 + 36 tokens */
  ck_assert_str_eq(lp_diag_get(diag, 1)->text,
                   "that is about 399 tokens of such documents, held out or not; there are 144");
  lp_diag_clear(diag);
  lp_calibration_report_free(&report);
  ck_assert_int_eq(calibrate(bundle, data, 0.04, LP_CODEC_INT4, &report), LP_FAILED);
  ck_assert_msg(strstr(toy_error(diag), "no theta keeps the disagreement below 0.04"), "%s", toy_error(diag));
  ck_assert_uint_eq(lp_diag_count(diag), 3); /* notes: the disagreement at theta 1, and that the codec causes it */
  lp_calibration_report_free(&report);
  lp_bundle_free(bundle);
  free(data);
  free(path);
}
