/* Bundles, options and requests that an engine refuses, and answers that a grammar bounds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle/bundle.h"
#include "runtime/grammar/grammar.h"
#include "runtime/tokenizer/internal.h"
#include "tests/runtime/engine/asker.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static lp_diag *diag;
static void setup(void) {
  diag = lp_diag_create();
}
static void teardown(void) {
  lp_diag_free(diag);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* ---- bundles ----------------------------------------------------------------------------------------------------- */

static const toy_placement here = {.prefill = "dddddd"}, split = {.prefill = "dddccc"},
                           apart = {.prefill = "dddccc", .exits = {1, 2}}, places = {.prefill = "001122", .places = 3},
                           moves = {.prefill = "dddccc", .decode = "dddddd"};

static void change_nothing(lp_bundle *bundle) {
  (void)bundle;
}
static void read_a_source(lp_bundle *bundle) {
  bundle->manifest.inputs[0].role = LP_ROLE_SOURCE_TOKENS;
}
static void read_data(lp_bundle *bundle) {
  bundle->manifest.inputs[0].role = LP_ROLE_DATA;
}
static void have_no_caches(lp_bundle *bundle) {
  bundle->manifest.state_count = 0;
}
static void run_one_sequence(lp_bundle *bundle) {
  bundle->side[LP_SIDE_DEVICE].sequences = false;
}
static void have_two_plans(lp_bundle *bundle) {
  static lp_plan_desc plans[2];
  plans[0] = plans[1] = bundle->manifest.plans[0];
  bundle->manifest.plans = plans;
  bundle->manifest.plan_count = 2;
}

LP_LOOP_TEST(bundles_that_an_engine_refuses, 0, 16) {
  static const struct {
    const toy_placement *placement;
    void (*change)(lp_bundle *bundle);
    const char *cloud;
    double theta;
    const char *refusal; /* NULL: it opens */
  } rows[] = {
      {&here, change_nothing, NULL, 0, NULL},
      {&split, change_nothing, "unix:/nowhere", 0, NULL}, /* the first request connects */
      {&apart, change_nothing, "unix:/nowhere", 0.5, NULL},
      {&here, read_a_source, NULL, 0, "no passes: the model has an encoder"},
      {&here, have_no_caches, NULL, 0, "no passes: the model has no KV caches"},
      {&here, run_one_sequence, NULL, 0, "no passes: the code runs one sequence at a time"},
      {&split, change_nothing, NULL, 0, "no passes: some layers run on a worker"},
      {&here, change_nothing, "unix:/nowhere", 0, "no passes: all layers run here"},
      {&places, change_nothing, "unix:/nowhere", 0, "no passes: the bundle has more than two places"},
      {&split, have_no_caches, "unix:/nowhere", 0, "no passes: the model has no KV caches"},
      {&split, have_two_plans, "unix:/nowhere", 0, "no passes: a session chooses the plan by the link"},
      {&moves, change_nothing, "unix:/nowhere", 0, "no passes: KV caches move between the sides"},
      {&split, read_data, "unix:/nowhere", 0, "no passes: the model reads more than tokens"},
      {&here, change_nothing, NULL, 0.5, "no early exits: no worker"},
      {&split, change_nothing, "unix:/nowhere", 0.5, "no early exits: the bundle has no early exits (compile --exits)"},
      {&split, read_a_source, "unix:/nowhere", 0, "no passes: the model has an encoder"},
  };
  lp_bundle *bundle = toy_bundle_make(rows[_i].placement, LP_LOAD_DEVICE);
  lp_engine_options options = {.threads = 1, .cloud = rows[_i].cloud, .theta = rows[_i].theta};
  lp_engine *engine = NULL;
  rows[_i].change(bundle);
  ck_assert_int_eq(lp_engine_open(bundle, &options, &engine, diag), rows[_i].refusal ? LP_FAILED : LP_OK);
  ck_assert_str_eq(toy_error(diag), rows[_i].refusal ? rows[_i].refusal : "");
  ck_assert_int_eq(engine != NULL, !rows[_i].refusal);
  if (engine) ck_assert_int_eq(lp_engine_draws_remotely(engine), rows[_i].placement != &here);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static bool take_any(void *user, int32_t choice, const lp_drawn *drawn) {
  (void)user, (void)choice, (void)drawn;
  return true;
}

/* The context has TOY_CONTEXT positions, of prompt and answer. */
LP_LOOP_TEST(requests_that_are_refused, 0, 10) {
  static const struct {
    size_t length, answered;
    int32_t first, choices;
    int64_t most;
    const char *refusal;
  } rows[] = {
      {5, 4, 3, 1, 2, NULL},
      {1, 0, 60, 1, TOY_CONTEXT - 1, NULL},
      {TOY_CONTEXT - 1, 0, 3, 1, 1, NULL},
      {5, 5, 3, 1, 2, "5 of 5 tokens were made before"},
      {5, 0, 3, 1, 0, "0 tokens of 1 sequences"},
      {5, 0, 3, 0, 2, "2 tokens of 0 sequences"},
      {1, 0, 3, 1, TOY_CONTEXT, "a prompt of 1 tokens and 128 to generate exceed the model's context of 128"},
      {TOY_CONTEXT + 1, 0, 3, 1, 1, "a prompt of 129 tokens and 1 to generate exceed the model's context of 128"},
      {5, 0, -1, 1, 2, "token -1 lies outside of the vocabulary of 61"},
      {5, 0, 61, 1, 2, "token 61 lies outside of the vocabulary of 61"},
  };
  lp_bundle *bundle = toy_bundle_make(&here, LP_LOAD_DEVICE);
  lp_engine *engine = asker_engine(bundle, 0);
  int32_t prompt[TOY_CONTEXT + 1] = {rows[_i].first, 1, 4, 1, 5};
  lp_engine_outcome outcome = {0};
  double queue_ms = 0;
  const lp_engine_request request = {.prompt = prompt,
                                     .length = rows[_i].length,
                                     .answered = rows[_i].answered,
                                     .max_tokens = rows[_i].most,
                                     .choices = rows[_i].choices,
                                     .decoding = {.sampling = {.top_p = 1}, .repetition_penalty = 1},
                                     .sink = take_any};
  lp_status status = lp_engine_generate(engine, &request, &outcome, &queue_ms, diag);
  ck_assert_int_eq(status, rows[_i].refusal ? LP_FAILED : LP_OK);
  ck_assert_str_eq(toy_error(diag), rows[_i].refusal ? rows[_i].refusal : "");
  if (!rows[_i].refusal) ck_assert_int_eq(outcome.tokens, rows[_i].most);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* ---- answers of a grammar ---------------------------------------------------------------------------------------- */

enum { END = 60, LONG_TOKEN = 59, NOTHING = 58 };

/* Tokens 0 to 57 are characters, LONG_TOKEN is a word, and END ends an answer; NOTHING is special, and has no bytes. */
static const char characters[] = "abcdefghijklmnopqrstuvwxyz0123456789{}[]:,. -+ABCDEFGHIJKL";

static lp_bundle *bundle_with_texts(void) {
  lp_bundle *bundle = toy_bundle_make(&here, LP_LOAD_DEVICE);
  lp_buf json = {0};
  lp_buf_puts(&json,
              "{\"decoder\":{\"type\":\"Fuse\"},\"added_tokens\":[{\"id\":58,\"content\":\"<x>\",\"special\":true}],"
              "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{");
  for (int i = 0; i < NOTHING; i++)
    lp_buf_printf(&json, "\"%c\":%d,", characters[i], i);
  lp_buf_puts(&json, "\"true\":59,\"\\\"\":60}}}");
  ck_assert_int_eq(lp_tokenizer_parse("t.json", json.data, json.size, &bundle->tokenizer, NULL), LP_OK);
  bundle->eos = END;
  lp_buf_free(&json);
  return bundle;
}

static lp_grammar *grammar_of(const char *schema) {
  lp_json_document *document = NULL;
  lp_grammar *grammar = NULL;
  ck_assert_int_eq(lp_json_parse("schema", schema, strlen(schema), 0, &document, NULL), LP_OK);
  lp_json root = lp_json_root("schema", document);
  ck_assert_int_eq(lp_grammar_of_schema(&root, &grammar, NULL), LP_OK);
  lp_json_free(document);
  return grammar;
}

static bool take_text(void *user, int32_t choice, const lp_drawn *drawn) {
  lp_buf *text = user;
  ck_assert_int_eq(choice, 0);
  ck_assert_int_ne(drawn->token, NOTHING);
  if (drawn->token == LONG_TOKEN)
    lp_buf_puts(text, "true");
  else if (drawn->token != END)
    lp_buf_append(text, &characters[drawn->token], 1);
  return true;
}

static lp_status answer(lp_engine *engine, const lp_grammar *grammar, const lp_sampling *sampling, lp_buf *text,
                        lp_engine_outcome *outcome) {
  const int32_t prompt[] = {3, 1, 4, 1, 5};
  const lp_logit_bias ban = {LONG_TOKEN, -INFINITY};
  double queue_ms = 0;
  const lp_engine_request request = {.prompt = prompt,
                                     .length = LP_COUNT(prompt),
                                     .max_tokens = 40,
                                     .choices = 1,
                                     .decoding = {.sampling = *sampling,
                                                  .repetition_penalty = 1,
                                                  .grammar = grammar,
                                                  .bias = &ban,
                                                  .bias_count = sampling->seed % 2,
                                                  .top_logprobs = -1},
                                     .sink = take_text,
                                     .user = text};
  lp_buf_clear(text);
  return lp_engine_generate(engine, &request, outcome, &queue_ms, diag);
}

/* Whatever the draws, the answer is a text of the grammar, and ends with it: by the token that ends answers, or, where
 * that one is not allowed, since nothing can follow. */
LP_LOOP_TEST(answers_of_a_grammar, 0, 12) {
  static const struct {
    const char *schema, *texts[3];
  } rows[] = {
      {"{\"enum\":[12,345,true]}", {"12", "345", "true"}},
      {"{\"const\":[1,2]}", {"[1,2]"}},
      {"{\"type\":\"boolean\"}", {"true", "false"}},
  };
  const lp_sampling ways[] = {{.top_p = 1},
                              {.temperature = 0.8, .top_p = 1, .seed = 7},
                              {.temperature = 3, .top_k = 40, .top_p = 0.9, .seed = 8},
                              {.temperature = 3, .top_p = 1, .seed = 9}};
  lp_bundle *bundle = bundle_with_texts();
  lp_engine *engine = asker_engine(bundle, 0);
  lp_grammar *grammar = grammar_of(rows[_i / 4].schema);
  lp_buf text = {0};
  lp_engine_outcome outcome = {0};
  lp_status status = answer(engine, grammar, &ways[_i % 4], &text, &outcome);
  ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
  const char *found = lp_buf_text(&text);
  found += *found == ' ';
  bool good = false;
  for (int i = 0; i < 3 && rows[_i / 4].texts[i]; i++)
    good = good || strcmp(found, rows[_i / 4].texts[i]) == 0;
  ck_assert_msg(good, "'%s'", found);
  ck_assert(!outcome.cut);
  lp_buf_free(&text);
  lp_grammar_free(grammar);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* Without the token that ends answers, an answer that nothing can continue is complete. */
LP_TEST(a_complete_answer_needs_no_token) {
  lp_bundle *bundle = bundle_with_texts();
  bundle->eos = -1;
  lp_engine *engine = asker_engine(bundle, 0);
  lp_grammar *grammar = grammar_of("{\"const\":7}"), *word = grammar_of("{\"const\":\"a\"}");
  lp_buf text = {0};
  lp_engine_outcome outcome = {0};
  ck_assert_int_eq(answer(engine, grammar, &(lp_sampling){.top_p = 1}, &text, &outcome), LP_OK);
  ck_assert(!outcome.cut && outcome.tokens <= 2);
  ck_assert_str_eq(lp_buf_text(&text) + (lp_buf_text(&text)[0] == ' '), "7");
  /* A quote is token END, which ends answers here: no token begins a text. */
  lp_engine_close(engine);
  bundle->eos = END;
  engine = asker_engine(bundle, 0);
  ck_assert_int_eq(answer(engine, word, &(lp_sampling){.top_p = 1}, &text, &outcome), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), "no token of the model continues an answer of this format");
  lp_buf_free(&text);
  lp_grammar_free(grammar);
  lp_grammar_free(word);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* {"anyOf":[an array, ...]}: arrays of `items`, of 20 at least, of 21, and so on. */
static lp_grammar *arrays(int count, const char *items) {
  lp_buf schema = {0};
  lp_buf_puts(&schema, "{\"anyOf\":[");
  for (int i = 0; i < count; i++)
    lp_buf_printf(&schema, "%s{\"type\":\"array\",\"items\":%s,\"minItems\":%d}", i > 0 ? "," : "", items, i + 20);
  lp_buf_puts(&schema, "]}");
  lp_grammar *grammar = grammar_of(lp_buf_text(&schema));
  lp_buf_free(&schema);
  return grammar;
}

/* Asks for a long answer, of brackets where they are allowed. The token that is drawn first is never allowed. */
static lp_status insist(lp_engine *engine, const lp_grammar *grammar, bool brackets, lp_buf *text,
                        lp_engine_outcome *outcome) {
  enum { OPEN = 38 };
  const int32_t prompt[] = {3, 1, 4, 1, 5};
  const lp_logit_bias bias[] = {{OPEN, brackets ? 1e4F : 0}, {NOTHING, 1e5F}};
  double queue_ms = 0;
  const lp_engine_request request = {.prompt = prompt,
                                     .length = LP_COUNT(prompt),
                                     .max_tokens = 30,
                                     .choices = 1,
                                     .decoding = {.sampling = {.top_p = 1, .temperature = 1, .seed = 3},
                                                  .repetition_penalty = 1,
                                                  .grammar = grammar,
                                                  .bias = bias,
                                                  .bias_count = 2,
                                                  .top_logprobs = 2},
                                     .sink = take_text,
                                     .user = text};
  lp_buf_clear(text);
  return lp_engine_generate(engine, &request, outcome, &queue_ms, diag);
}

/* Many alternatives take more work than a pass waits for: the draws are late, and the same as those of later requests
 * that find all masks. */
LP_TEST(draws_may_be_late) {
  lp_bundle *bundle = bundle_with_texts();
  lp_engine *engine = asker_engine(bundle, 0);
  lp_grammar *grammar = arrays(300, "{\"type\":\"integer\"}");
  lp_buf first = {0}, text = {0};
  lp_engine_outcome outcome = {0};
  ck_assert_int_eq(insist(engine, grammar, false, &first, &outcome), LP_OK);
  ck_assert(outcome.cut && !outcome.too_much && outcome.tokens == 30);
  ck_assert(strchr(lp_buf_text(&first), '[') && !strchr(lp_buf_text(&first), 'a'));
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(insist(engine, grammar, false, &text, &outcome), LP_OK);
    ck_assert_str_eq(lp_buf_text(&text), lp_buf_text(&first));
  }
  lp_buf_free(&first);
  lp_buf_free(&text);
  lp_grammar_free(grammar);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* Each bracket multiplies the places where the text may be: the answer ends before there are too many. */
LP_TEST(an_answer_that_takes_too_much) {
  lp_bundle *bundle = bundle_with_texts();
  lp_engine *engine = asker_engine(bundle, 0);
  lp_grammar *grammar = arrays(2, "{\"$ref\":\"#\"}"), *plain = arrays(1, "{\"type\":\"integer\"}");
  lp_buf text = {0};
  lp_engine_outcome outcome = {0};
  ck_assert_int_eq(insist(engine, grammar, true, &text, &outcome), LP_OK);
  ck_assert(outcome.too_much && !outcome.cut && outcome.tokens < 30);
  ck_assert_int_eq(strncmp(lp_buf_text(&text), "[[[", 3), 0);
  ck_assert_int_eq(insist(engine, plain, false, &text, &outcome), LP_OK); /* others go on */
  ck_assert(!outcome.too_much && outcome.tokens == 30);
  lp_buf_free(&text);
  lp_grammar_free(grammar);
  lp_grammar_free(plain);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

LP_TEST(a_grammar_needs_a_tokenizer) {
  lp_bundle *bundle = toy_bundle_make(&here, LP_LOAD_DEVICE);
  lp_engine *engine = asker_engine(bundle, 0);
  lp_grammar *grammar = grammar_of("{}");
  lp_buf text = {0};
  lp_engine_outcome outcome = {0};
  ck_assert_int_eq(answer(engine, grammar, &(lp_sampling){.top_p = 1}, &text, &outcome), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), "the bundle has no tokenizer, which a grammar needs");
  ck_assert_uint_eq(text.size, 0);
  lp_grammar_free(grammar);
  lp_engine_close(engine);
  lp_bundle_free(bundle);
}

/* ---- prompts that run -------------------------------------------------------------------------------------------- */

typedef struct {
  lp_engine *engine;
  int32_t prompt[ALIKE];
  int64_t rows, others;
} watcher;

static bool watch(void *user, int32_t choice, const lp_drawn *drawn) {
  watcher *w = user;
  int32_t other[ALIKE];
  (void)choice, (void)drawn;
  memcpy(other, w->prompt, sizeof other);
  other[0]++;
  w->rows = lp_engine_rows_of(w->engine, 0, w->prompt, ALIKE);
  w->others = lp_engine_rows_of(w->engine, 0, other, ALIKE);
  return true;
}

/* The rows of a prompt that runs count, too. */
LP_TEST(rows_of_a_request_that_runs) {
  lp_bundle *bundle = toy_bundle_make(&here, LP_LOAD_DEVICE);
  watcher w = {.engine = asker_engine(bundle, 0), .rows = -1, .others = -1};
  lp_engine_outcome outcome = {0};
  double queue_ms = 0;
  for (int32_t i = 0; i < ALIKE; i++)
    w.prompt[i] = i % 7;
  const lp_engine_request request = {.prompt = w.prompt,
                                     .length = ALIKE,
                                     .max_tokens = 3,
                                     .choices = 1,
                                     .decoding = {.sampling = {.top_p = 1}, .repetition_penalty = 1},
                                     .sink = watch,
                                     .user = &w};
  ck_assert_int_eq(lp_engine_rows_of(w.engine, 0, w.prompt, ALIKE), 0);
  ck_assert_int_eq(lp_engine_generate(w.engine, &request, &outcome, &queue_ms, diag), LP_OK);
  ck_assert_int_gt(w.rows, 0);
  ck_assert_int_eq(w.others, 0);
  lp_engine_close(w.engine);
  lp_bundle_free(bundle);
}
