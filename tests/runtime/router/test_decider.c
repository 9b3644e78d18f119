/* The decider that gives the prompt to a language model: the toy model, with a vocabulary of the routes' names. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "runtime/router/router.h"
#include "runtime/runtime.h"
#include "tests/runtime/toy/toy_bundle.h"
#include "tests/suite.h"

LP_CASE(.timeout = 120);

enum { EDGE = 1u << LP_ROUTE_EDGE, CLOUD = 1u << LP_ROUTE_CLOUD, SPLIT = 1u << LP_ROUTE_SPLIT };

/* Whole texts are words; blanks do not count, and two spellings of "edge" become one. Other texts are token 0. */
#define TOKENIZER(vocabulary)                                                                                          \
  "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":["                                                           \
  "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\"},"                                            \
  "{\"type\":\"Replace\",\"pattern\":{\"String\":\"EDGE\"},\"content\":\"edge\"}]},"                                   \
  "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0," vocabulary "}}}"
#define NAMES                                                                                                          \
  "\"edge\":1,\"Edge\":2,\"cloud\":3,\"Cloud\":4,\"CLOUD\":5,\"split\":6,\"Split\":7,\"SPLIT\":8,\"other\":9"

static char *dir;

/* A bundle of the toy model with this tokenizer; NULL: without one. */
static char *bundle_with(const char *tokenizer) {
  dir = toy_dir_create();
  char *bundle = toy_bundle_write(dir, "bundle", &(toy_placement){.prefill = "dddddd"});
  if (!tokenizer) return bundle;
  char *path = lp_path_join(bundle, "tokenizer.json"), *manifest = toy_manifest_read(bundle), hex[65];
  ck_assert_int_eq(lp_file_write(path, tokenizer, strlen(tokenizer), NULL), LP_OK);
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, tokenizer, strlen(tokenizer));
  lp_sha256_hex(&sha, hex);
  char *none = strstr(manifest, "\"tokenizer\": null"), *files = strstr(manifest, "\"files\": {");
  ck_assert(none && files && none < files);
  lp_buf text = {0};
  lp_buf_append(&text, manifest, (size_t)(none - manifest));
  lp_buf_printf(&text,
                "\"tokenizer\": \"tokenizer.json\",\n \"files\": {\n  \"tokenizer.json\": "
                "{\"bytes\": %zu, \"sha256\": \"%s\"},%s",
                strlen(tokenizer), hex, files + strlen("\"files\": {"));
  toy_manifest_write(bundle, lp_buf_text(&text));
  lp_buf_free(&text);
  free(manifest);
  free(path);
  return bundle;
}

static void expect_refusal(const char *tokenizer, const char *said) {
  char *bundle = bundle_with(tokenizer);
  lp_diag *diag = lp_diag_create();
  lp_decider *decider = NULL;
  ck_assert_int_eq(lp_decider_bundle(bundle, 1, 0, &decider, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  ck_assert_str_eq(lp_diag_get(diag, 0)->text, said);
  lp_diag_free(diag);
  free(bundle);
  toy_dir_remove(dir);
}

LP_TEST(models_that_cannot_name_the_routes_are_refused) {
  expect_refusal(NULL, "the bundle has no tokenizer; compile it with --tokenizer=FILE");
  /* "cloud" and "split" are unknown words, one token. */
  expect_refusal(TOKENIZER("\"edge\":1,\"Edge\":2,\"Cloud\":4,\"CLOUD\":5,\"Split\":7,\"SPLIT\":8"),
                 "'cloud' and 'split' begin with the same token, so this model cannot tell them apart");
  expect_refusal(TOKENIZER("\"edge\":1,\"Edge\":2,\"cloud\":3,\"Cloud\":4,\"split\":6,\"Split\":7"),
                 "'cloud' and 'split' begin with the same token, so this model cannot tell them apart");
}

/* The weight of each token after one token. */
static void weights_after(const char *path, int32_t token, double weight[TOY_VOCAB]) {
  lp_bundle *bundle = NULL;
  lp_session *session = NULL;
  lp_generation made = {0};
  const lp_generate_options options = {.max_tokens = 1, .ignore_eos = true, .threads = 1};
  ck_assert_int_eq(lp_bundle_load(path, &(lp_bundle_options){.load = LP_LOAD_ALL}, &bundle, NULL), LP_OK);
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, NULL), LP_OK);
  ck_assert_int_eq(lp_session_generate(session, &token, 1, 1, NULL, NULL, &made, NULL), LP_OK);
  for (int i = 0; i < TOY_VOCAB; i++) {
    float logit;
    memcpy(&logit, made.first_logits.data + (size_t)i * sizeof logit, sizeof logit);
    weight[i] = exp((double)logit);
  }
  lp_generation_free(&made);
  lp_session_close(session);
  lp_bundle_free(bundle);
}

LP_TEST(routes_have_the_weights_of_their_distinct_first_tokens) {
  char *bundle = bundle_with(TOKENIZER(NAMES));
  double weight[TOY_VOCAB], found[LP_ROUTE_COUNT];
  weights_after(bundle, 0, weight);
  const double edge = weight[1] + weight[2], cloud = weight[3] + weight[4] + weight[5],
               split = weight[6] + weight[7] + weight[8];
  lp_decider *decider;
  ck_assert_int_eq(lp_decider_bundle(bundle, 1, 0, &decider, NULL), LP_OK);
  lp_prompt prompt = {.keywords = "any", .offered = EDGE | CLOUD | SPLIT};
  ck_assert_int_eq(decider->score(decider, &prompt, found, NULL), LP_OK);
  ck_assert_double_eq_tol(found[LP_ROUTE_EDGE], edge / (edge + cloud + split), 1e-6);
  ck_assert_double_eq_tol(found[LP_ROUTE_CLOUD], cloud / (edge + cloud + split), 1e-6);
  ck_assert_double_eq_tol(found[LP_ROUTE_SPLIT], split / (edge + cloud + split), 1e-6);
  prompt.offered = EDGE | SPLIT;
  ck_assert_int_eq(decider->score(decider, &prompt, found, NULL), LP_OK);
  ck_assert_double_eq_tol(found[LP_ROUTE_EDGE], edge / (edge + split), 1e-6);
  ck_assert_double_eq(found[LP_ROUTE_CLOUD], 0);
  decider->close(decider);
  free(bundle);
  toy_dir_remove(dir);
}

LP_TEST(texts_are_written_in_the_time_that_they_have) {
  char *bundle = bundle_with(TOKENIZER(NAMES));
  lp_decider *decider;
  lp_buf text = {0};
  ck_assert_int_eq(lp_decider_bundle(bundle, 1, 60000, &decider, NULL), LP_OK);
  for (int again = 0; again < 2; again++) /* the session for texts is kept */
    ck_assert_int_eq(decider->write(decider, "any", &text, NULL), LP_OK);
  lp_buf_free(&text);
  decider->close(decider);
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_decider_bundle(bundle, 1, 1e-6, &decider, NULL), LP_OK);
  ck_assert_int_eq(decider->write(decider, "any", &text, diag), LP_FAILED);
  ck_assert_uint_eq(text.size, 0);
  ck_assert_str_eq(lp_diag_get(diag, 0)->text, "the model has taken more than 1e-06 ms");
  lp_diag_free(diag);
  decider->close(decider);
  free(bundle);
  toy_dir_remove(dir);
}
