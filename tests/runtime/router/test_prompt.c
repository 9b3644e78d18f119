/* The prompt as text and as tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/router/labels.h"
#include "runtime/router/router.h"
#include "tests/suite.h"

enum { BOTH = 1u << LP_ROUTE_EDGE | 1u << LP_ROUTE_CLOUD };

static const lp_experience examples[] = {
    {"code, long", LP_ROUTE_CLOUD, -1.5, true, 1},
    {"chat", LP_ROUTE_EDGE, 2, false, 7},
    {"code", LP_ROUTE_EDGE, 0.25, true, 1000},
};

LP_TEST(text_has_the_parts_of_the_paper) {
  lp_buf text = {0};
  lp_prompt_text(&(lp_prompt){"chat, long", BOTH, examples, 2, false}, &text);
  const char *parts[] = {"Goal: ",
                         "\nDefinition: ",
                         "edge (",
                         "cloud (",
                         "the expected output size.",
                         "\nRules: 1. ",
                         "Reply only with the decision.",
                         "\n\nKeywords: code, long\nDecision: cloud\nReward: -1.500\nEvaluation: good\n\n",
                         "Keywords: chat\nDecision: edge\nReward: 2.000\nEvaluation: bad\n\n",
                         "Keywords: chat, long\nDecision:"};
  const char *at = text.data;
  for (size_t i = 0; i < LP_COUNT(parts); i++) {
    at = strstr(at, parts[i]);
    ck_assert_msg(at != NULL, "no '%s' in its place", parts[i]);
    at += strlen(parts[i]) - 1;
  }
  ck_assert_uint_eq(strlen(at), 1); /* nothing follows */
  ck_assert_ptr_null(strstr(text.data, "split"));
  lp_buf_free(&text);
}

/* tasks.py: 0 begins, a word's token is 1 + symbol, routes from 101 by thrice log2 of the rewards after them, rewards
 * from 137 by twice their rank. */
LP_TEST(tokens_follow_the_training_format) {
  int32_t tokens[LP_PROMPT_TOKENS];
  size_t count = lp_prompt_tokens(&(lp_prompt){"chat, long, new, words", BOTH, examples, 3, false}, tokens);
  const int32_t want[] = {0,                                 /* begin */
                          2, 3, 1, 102,         137 + 2 * 0, /* code, long, none: cloud, the least of three, good */
                          4, 1, 1, 101 + 3 * 2, 137 + 2 * 63 + 1, /* chat: edge, 4 to 7 times, the greatest, bad */
                          2, 1, 1, 101 + 3 * 5, 137 + 2 * 32,     /* code: edge, often, in the middle */
                          4, 3, 5};                               /* chat, long, the rest as one symbol */
  ck_assert_uint_eq(count, LP_COUNT(want));
  for (size_t i = 0; i < count; i++)
    ck_assert_int_eq(tokens[i], want[i]);
  (void)lp_prompt_tokens(&(lp_prompt){"chat", BOTH, examples, 3, true}, tokens);
  ck_assert_int_eq(tokens[4], 101 + 3 * 6 + 1); /* only the best of each keywords: of one reward, and of more */
  ck_assert_int_eq(tokens[9], 101 + 3 * 8);
}

LP_TEST(equal_rewards_have_equal_ranks) {
  const lp_experience same[] = {{"a", LP_ROUTE_EDGE, 7, true, 1}, {"b", LP_ROUTE_EDGE, 7, true, 1}};
  int32_t tokens[LP_PROMPT_TOKENS];
  (void)lp_prompt_tokens(&(lp_prompt){"c", BOTH, same, 2, false}, tokens);
  ck_assert_int_eq(tokens[5], tokens[10]);
  ck_assert_int_eq(tokens[5], 137);
}

/* 32 examples of three words each, all different: no token leaves its range. */
LP_TEST(the_longest_prompt_fits) {
  static char words[LP_PROMPT_EXAMPLES][32];
  lp_experience many[LP_PROMPT_EXAMPLES];
  for (int i = 0; i < LP_PROMPT_EXAMPLES; i++) {
    (void)snprintf(words[i], sizeof words[i], "a%d, b%d, c%d", i, i, i);
    many[i] = (lp_experience){words[i], LP_ROUTE_SPLIT, -i, i % 2 == 0, (uint64_t)i};
  }
  int32_t tokens[LP_PROMPT_TOKENS];
  size_t count = lp_prompt_tokens(&(lp_prompt){"x, y, z", 7, many, LP_PROMPT_EXAMPLES, false}, tokens);
  ck_assert_uint_eq(count, LP_PROMPT_TOKENS);
  for (size_t i = 0; i < count; i++)
    ck_assert(tokens[i] >= 0 && tokens[i] < LP_PROMPT_VOCAB);
  ck_assert_int_eq(tokens[count - 1], LP_PROMPT_WORDS); /* the last symbol there is */
}

/* A group of prompts.txt: "word1+word2 edge mean 3 0.5 good" and its five tokens. */
typedef struct {
  char words[96];
  lp_experience experience;
  int tokens[5];
  bool best;
} written_group;

static bool read_group(const char *line, written_group *out) {
  char route[16], kind[8], evaluation[8];
  int *t = out->tokens;
  unsigned seen;
  double reward;
  if (sscanf(line, "%95s %15s %7s %u %lf %7s %d %d %d %d %d", out->words, route, kind, &seen, &reward, evaluation, t,
             t + 1, t + 2, t + 3, t + 4) != 11)
    return false;
  for (char *at = out->words; *at; at++)
    if (*at == '+') *at = ',';
  out->experience = (lp_experience){out->words, LP_ROUTE_EDGE, reward, strcmp(evaluation, "good") == 0, seen};
  out->best = strcmp(kind, "best") == 0;
  ck_assert(lp_route_parse(route, &out->experience.route));
  return true;
}

static void compare_prompt(const written_group *groups, int count) {
  lp_experience written[LP_PROMPT_EXAMPLES];
  int32_t tokens[LP_PROMPT_TOKENS];
  for (int i = 0; i < count; i++)
    written[i] = groups[i].experience;
  (void)lp_prompt_tokens(&(lp_prompt){"query", 7, written, (size_t)count, groups->best}, tokens);
  ck_assert_int_eq(tokens[0], 0);
  for (int i = 0; i < 5 * count; i++)
    ck_assert_msg(tokens[1 + i] == groups[i / 5].tokens[i % 5], "%d groups, token %d: %d, trained on %d", count, i,
                  tokens[1 + i], groups[i / 5].tokens[i % 5]);
}

/* prompts.txt has the tokens that examples/router-model/tasks.py, the source of the model's training, gives for the
 * same groups. */
LP_TEST(tokens_are_those_of_the_training) {
  FILE *file = fopen(LP_TEST_DIR "/prompts.txt", "r");
  ck_assert_ptr_nonnull(file);
  static written_group groups[LP_PROMPT_EXAMPLES];
  char line[256];
  int count = 0, prompts = 0;
  while (fgets(line, sizeof line, file)) {
    if (line[0] != '\n') {
      ck_assert(count < LP_PROMPT_EXAMPLES && read_group(line, &groups[count]));
      count++;
      continue;
    }
    compare_prompt(groups, count);
    count = 0;
    prompts++;
  }
  (void)fclose(file);
  ck_assert_int_eq(prompts, 5);
}

LP_TEST(a_label_is_known_by_its_beginning) {
  ck_assert_int_eq(lp_label_of_token(" Edge", BOTH), LP_ROUTE_EDGE);
  ck_assert_int_eq(lp_label_of_token("cl", BOTH), LP_ROUTE_CLOUD);
  ck_assert_int_eq(lp_label_of_token("E", BOTH), LP_ROUTE_EDGE);
  ck_assert_int_eq(lp_label_of_token(" split", BOTH), LP_ROUTE_COUNT);
  ck_assert_int_eq(lp_label_of_token("edges", BOTH), LP_ROUTE_COUNT);
  ck_assert_int_eq(lp_label_of_token("  ", BOTH), LP_ROUTE_COUNT);
  ck_assert_int_eq(lp_label_of_token("The", BOTH), LP_ROUTE_COUNT);
  char text[16];
  ck_assert_str_eq(lp_label_spelling(LP_ROUTE_EDGE, 0, text), "edge");
  ck_assert_str_eq(lp_label_spelling(LP_ROUTE_EDGE, 3, text), " Edge");
  ck_assert_str_eq(lp_label_spelling(LP_ROUTE_CLOUD, 4, text), "CLOUD");
}
