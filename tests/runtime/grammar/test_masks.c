/* Masks of random schemas over random vocabularies, beside the oracle; their memory, and the limits of their work. */
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/grammar/schemas.h"
#include "tests/runtime/grammar/slow_grammar.h"
#include "tests/suite.h"

static bool has(const uint64_t *bits, int32_t token) {
  return bits[token / 64] >> token % 64 & 1;
}

static bool is_last(const lp_vocabulary *v, int32_t token) {
  for (size_t i = 0; i < v->last.count; i++)
    if (v->last.data[i] == token) return true;
  return false;
}

/* The mask, in slices of at least `steps` steps. */
static lp_mask *mask_of(lp_masks *masks, lp_automaton *automaton, lp_masking *masking, int64_t steps) {
  lp_mask *mask = NULL;
  lp_match match = LP_MATCH_LATER;
  for (bool whole = false; match == LP_MATCH_LATER; whole = !whole) {
    lp_automaton_grant(automaton, steps, whole);
    match = lp_masks_find(masks, automaton, masking, &mask);
  }
  ck_assert_int_eq(match, LP_MATCH_YES);
  return mask;
}

typedef struct {
  lp_masks *masks;
  lp_automaton *automaton;
  lp_masking masking;
  slow_grammar *slow;
} pair;

/* Compares the mask with the oracle, token by token. Returns one of the tokens that it allows, or -1. */
static int32_t compare(pair *of, dice *random, const char *schema) {
  const lp_vocabulary *v = lp_masks_vocabulary(of->masks);
  lp_mask *mask = mask_of(of->masks, of->automaton, &of->masking, 1 + dice_below(random, 400));
  const uint32_t wanted = dice_below(random, (uint32_t)v->size);
  int32_t chosen = -1;
  ck_assert_int_eq(lp_automaton_can_end(of->automaton), slow_grammar_can_end(of->slow));
  for (int32_t i = 0; i < v->size; i++) {
    size_t size = 0;
    const char *bytes = lp_vocabulary_bytes(v, i, &size);
    const bool good =
        is_last(v, i) ? slow_grammar_can_end(of->slow) : size > 0 && slow_grammar_allows(of->slow, bytes, size);
    ck_assert_msg(has(mask->bits, i) == good, "%s: token %d '%.*s' is %d, wanted %d", schema, i, (int)size, bytes,
                  has(mask->bits, i), good);
    if (good && !is_last(v, i) && (chosen < 0 || (uint32_t)i <= wanted)) chosen = i;
  }
  lp_masks_return(of->masks, mask);
  return chosen;
}

/* Walks through a random text of the grammar. */
static void walk(lp_masks *masks, dice *random, const lp_grammar *grammar, int tokens, const char *schema) {
  pair of = {.masks = masks,
             .automaton = lp_automaton_create(grammar, lp_masks_pool(masks)),
             .slow = slow_grammar_begin(grammar)};
  for (int32_t token = 0; tokens > 0 && token >= 0; tokens--) {
    size_t size = 0;
    token = compare(&of, random, schema);
    if (token < 0) break;
    const char *bytes = lp_vocabulary_bytes(lp_masks_vocabulary(masks), token, &size);
    lp_automaton_grant(of.automaton, INT64_MAX, true);
    ck_assert_int_eq(lp_automaton_allows(of.automaton, bytes, size), LP_MATCH_YES);
    ck_assert_int_eq(lp_automaton_take(of.automaton, bytes, size), LP_MATCH_YES);
    slow_grammar_take(of.slow, bytes, size);
  }
  lp_masking_release(&of.masking);
  lp_automaton_free(of.automaton);
  slow_grammar_free(of.slow);
}

LP_LOOP_TEST(random_schemas, 0, 8) {
  dice random = {.seed = 45 + (uint64_t)_i};
  int walked = 0;
  while (walked < 12) {
    lp_masks *masks = lp_masks_create(schemas_vocabulary(&random, 100 + (int)dice_below(&random, 300)));
    lp_buf schema = {0};
    schemas_append(&random, 3, &schema);
    lp_grammar *grammar = schemas_grammar(lp_buf_text(&schema));
    for (int i = 0; i < 2 && grammar; i++, walked++) /* the second time many masks are remembered */
      walk(masks, &random, grammar, 15, lp_buf_text(&schema));
    ck_assert(atomic_load(&lp_masks_pool(masks)->bytes) == 0);
    lp_grammar_free(grammar);
    lp_masks_free(masks);
    lp_buf_free(&schema);
  }
}

/* Tokens of so many characters, in one byte and in two, at the limits of slices. */
static lp_vocabulary *lengths(void) {
  static const int counts[] = {1, 7, 8, 9, 31, 32, 33, 40};
  lp_vocabulary *vocabulary = lp_vocabulary_begin();
  for (size_t i = 0; i < 3 * LP_COUNT(counts); i++) {
    lp_buf token = {0};
    for (int k = 0; k < counts[i / 3]; k++)
      lp_buf_puts(&token, i % 3 == 1 ? "\xc3\xa9" : "b");
    if (i % 3 == 2) lp_buf_puts(&token, "\"");
    lp_vocabulary_add(vocabulary, lp_buf_text(&token), token.size, false);
    lp_buf_free(&token);
  }
  lp_vocabulary_end(vocabulary);
  return vocabulary;
}

LP_TEST(counted_characters) {
  static const int most[] = {6, 7, 8, 9, 30, 31, 32, 33, 34};
  dice random = {.seed = 9};
  lp_masks *masks = lp_masks_create(lengths());
  for (size_t i = 0; i < LP_COUNT(most); i++) {
    lp_buf schema = {0};
    lp_buf_printf(&schema, "{\"type\":\"string\",\"minLength\":%d,\"maxLength\":%d}", most[i] - 1, most[i]);
    lp_grammar *grammar = schemas_grammar(lp_buf_text(&schema));
    pair of = {masks, lp_automaton_create(grammar, lp_masks_pool(masks)), {0}, slow_grammar_begin(grammar)};
    lp_automaton_grant(of.automaton, INT64_MAX, true);
    ck_assert_int_eq(lp_automaton_take(of.automaton, "\"", 1), LP_MATCH_YES);
    slow_grammar_take(of.slow, "\"", 1);
    (void)compare(&of, &random, lp_buf_text(&schema));
    lp_masking_release(&of.masking);
    lp_automaton_free(of.automaton);
    slow_grammar_free(of.slow);
    lp_grammar_free(grammar);
    lp_buf_free(&schema);
  }
  lp_masks_free(masks);
}

/* A text of all plain characters but one. */
LP_TEST(all_plain_characters_but_one) {
  static const int forms[][6] = {{0x20, 0x21},
                                 {0x23, 'a'},
                                 {'c', 0x7F},
                                 {0xC2, 0xDF},
                                 {0xE0, 0xE0, 0xA0, 0xBF},
                                 {0xE1, 0xEC, 0x80, 0xBF},
                                 {0xED, 0xED, 0x80, 0x9F},
                                 {0xEE, 0xEF, 0x80, 0xBF},
                                 {0xF0, 0xF0, 0x90, 0xBF, 0x80, 0xBF},
                                 {0xF1, 0xF3, 0x80, 0xBF, 0x80, 0xBF},
                                 {0xF4, 0xF4, 0x80, 0x8F, 0x80, 0xBF}};
  dice random = {.seed = 10};
  lp_masks *masks = lp_masks_create(lengths());
  lp_grammar *grammar = lp_alloc(sizeof *grammar);
  const int32_t loop = lp_grammar_split(grammar, 0, 0);
  int32_t any = lp_grammar_return(grammar);
  for (size_t i = 0; i < LP_COUNT(forms); i++) {
    int32_t next = forms[i][0] >= 0xC2 ? lp_grammar_byte(grammar, 0x80, 0xBF, loop) : loop;
    for (int k = 4; k >= 0; k -= 2)
      if (forms[i][k]) next = lp_grammar_byte(grammar, (uint8_t)forms[i][k], (uint8_t)forms[i][k + 1], next);
    any = lp_grammar_split(grammar, any, next);
  }
  grammar->nodes.data[loop].next = grammar->nodes.data[loop].other = any;
  grammar->root = loop;
  pair of = {masks, lp_automaton_create(grammar, lp_masks_pool(masks)), {0}, slow_grammar_begin(grammar)};
  (void)compare(&of, &random, "all but b");
  lp_masking_release(&of.masking);
  lp_automaton_free(of.automaton);
  slow_grammar_free(of.slow);
  lp_grammar_free(grammar);
  lp_masks_free(masks);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

/* {"anyOf":[SCHEMA, ...]}, where SCHEMA has a place for the number of the alternative. */
static lp_grammar *alternatives(int count, const char *schema) {
  lp_buf all = {0};
  lp_buf_puts(&all, "{\"anyOf\":[");
  for (int i = 0; i < count; i++) {
    const char *at = strchr(schema, '#');
    lp_buf_printf(&all, "%s%.*s%d%s", i > 0 ? "," : "", (int)(at - schema), schema, i, at + 1);
  }
  lp_buf_puts(&all, "]}");
  lp_grammar *grammar = schemas_grammar(lp_buf_text(&all));
  lp_buf_free(&all);
  return grammar;
}

static void take(lp_automaton *automaton, const char *text) {
  lp_automaton_grant(automaton, INT64_MAX, true);
  ck_assert_int_eq(lp_automaton_take(automaton, text, strlen(text)), LP_MATCH_YES);
}

/* An automaton forgets states, and goes on as if it had not. */
LP_TEST(states_are_forgotten) {
  dice random = {.seed = 6};
  lp_masks *masks = lp_masks_create(schemas_vocabulary(&random, 60));
  lp_grammar *grammar = alternatives(10, "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":80#}}");
  pair of = {.masks = masks,
             .automaton = lp_automaton_create(grammar, lp_masks_pool(masks)),
             .slow = slow_grammar_begin(grammar)};
  size_t most = 0, fewer = 0, before = 0;
  take(of.automaton, "[\"a");
  slow_grammar_take(of.slow, "[\"a", 3);
  for (int i = 0; i < 500; i++) {
    if (i % 50 == 0) (void)compare(&of, &random, "long strings");
    lp_mask *mask = mask_of(masks, of.automaton, &of.masking, INT64_MAX);
    lp_masks_return(masks, mask);
    take(of.automaton, "b");
    slow_grammar_take(of.slow, "b", 1);
    const size_t bytes = lp_automaton_bytes(of.automaton);
    most = bytes > most ? bytes : most;
    fewer += bytes < before;
    before = bytes;
  }
  ck_assert_msg(most < (16 << 20) && fewer > 0, "%zu bytes, forgotten %zu times", most, fewer);
  lp_masking_release(&of.masking);
  lp_automaton_free(of.automaton);
  slow_grammar_free(of.slow);
  lp_grammar_free(grammar);
  lp_masks_free(masks);
}

/* The schema says whether there are too many alternatives in its first places. */
LP_TEST(too_many_alternatives) {
  static const char keys[] = "{\"type\":\"object\",\"additionalProperties\":{\"const\":#}}";
  ck_assert_ptr_null(alternatives(1024, keys));
  lp_grammar *grammar = alternatives(500, keys);
  ck_assert_ptr_nonnull(grammar);
  lp_grammar_free(grammar);
  /* Alternatives that are the same, or are so after some bytes, are followed once. */
  grammar = alternatives(1024, "{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"title\":\"#\"}");
  ck_assert_ptr_nonnull(grammar);
  lp_grammar_free(grammar);
}

/* A text whose states take more and more work is given up, within the CPU time that the steps stand for. */
LP_TEST(work_is_bounded) {
  dice random = {.seed = 7};
  lp_masks *masks = lp_masks_create(schemas_vocabulary(&random, 2000));
  lp_grammar *grammar =
      alternatives(500, "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":#},\"minItems\":1}");
  lp_automaton *automaton = lp_automaton_create(grammar, lp_masks_pool(masks));
  lp_masking masking = {0};
  const double begin = lp_suite_cpu_ms();
  lp_match match = LP_MATCH_YES;
  take(automaton, "[\"");
  for (int i = 0; i < 60 && match == LP_MATCH_YES; i++) {
    lp_mask *mask = NULL;
    lp_automaton_grant(automaton, INT64_MAX, true);
    match = lp_masks_find(masks, automaton, &masking, &mask);
    if (match == LP_MATCH_YES) lp_masks_return(masks, mask);
    if (match == LP_MATCH_YES) match = lp_automaton_take(automaton, "c", 1);
  }
  ck_assert_int_eq(match, LP_MATCH_TOO_MUCH);
  ck_assert(lp_automaton_bytes(automaton) < (size_t)80 << 20);
  ck_assert_msg(lp_suite_cpu_ms() - begin < 20000, "%g ms", lp_suite_cpu_ms() - begin);
  lp_automaton_grant(automaton, INT64_MAX, true);
  ck_assert_int_eq(lp_automaton_take(automaton, "ddd", 3), LP_MATCH_TOO_MUCH); /* and it stays so */
  lp_masking_release(&masking);
  lp_automaton_free(automaton);
  ck_assert(atomic_load(&lp_masks_pool(masks)->bytes) == 0);
  lp_grammar_free(grammar);
  lp_masks_free(masks);
}

/* One grammar fills a quarter of the cache, and all of them fill it; what was used last stays. */
LP_TEST(masks_are_dropped) {
  enum { GRAMMARS = 6, MASKS = 1100, QUARTER = 1024 };
  dice random = {.seed = 8};
  lp_masks *masks = lp_masks_create(schemas_vocabulary(&random, 20));
  lp_masking masking = {0};
  const size_t each = sizeof(lp_mask) + lp_masks_vocabulary(masks)->words * sizeof(uint64_t);
  for (int g = 0; g < GRAMMARS; g++) {
    lp_buf schema = {0};
    lp_buf_printf(&schema, "{\"type\":\"array\",\"items\":{\"enum\":[%d]},\"minItems\":600}", g);
    lp_grammar *grammar = schemas_grammar(lp_buf_text(&schema));
    lp_automaton *automaton = lp_automaton_create(grammar, lp_masks_pool(masks)),
                 *first = lp_automaton_create(grammar, lp_masks_pool(masks));
    const lp_mask *kept = NULL;
    for (int i = 0; i < MASKS; i++) {
      lp_mask *mask = mask_of(masks, first, &masking, INT64_MAX);
      ck_assert(!kept || mask == kept);
      kept = mask;
      lp_masks_return(masks, mask);
      const char digit[] = {(char)('0' + g), 0};
      lp_masks_return(masks, mask_of(masks, automaton, &masking, INT64_MAX));
      take(automaton, i == 0 ? "[" : i % 2 ? digit : ",");
      const size_t held = lp_masks_held(masks) / each,
                   all = (size_t)g * QUARTER + (size_t)(i < QUARTER ? i + 1 : QUARTER);
      ck_assert_uint_eq(held, all < 4 * QUARTER ? all : 4 * QUARTER);
    }
    lp_automaton_free(automaton);
    lp_automaton_free(first);
    lp_grammar_free(grammar);
    lp_buf_free(&schema);
  }
  ck_assert_uint_le(lp_masks_held(masks), LP_MASKS_BYTES);
  lp_masking_release(&masking);
  lp_masks_free(masks);
}
