/* Writes the prompt as tokens of the embedded model; examples/router-model/tasks.py draws training tasks in this
 * format. */
#include <assert.h>

#include "base/number.h"
#include "runtime/router/router.h"
#include "runtime/router/words.h"

enum { SLOTS = 3, BEGIN = 0, WORD0 = 1, ROUTE0 = WORD0 + LP_PROMPT_WORDS };
enum { REWARD0 = ROUTE0 + 2 * LP_PROMPT_LEVELS * LP_ROUTE_COUNT };
static_assert(LP_PROMPT_VOCAB == REWARD0 + 2 * LP_PROMPT_RANKS, "the vocabulary of the header");
static_assert(LP_PROMPT_WORDS > SLOTS * (LP_PROMPT_EXAMPLES + 1), "a symbol for every word of a prompt, and none");

int32_t lp_prompt_route_token(lp_route route) {
  return ROUTE0 + (int32_t)route;
}

/* The token of a route and an example's kind: the mean or the best of a number of rewards, which is rounded to a power
 * of two. */
static int32_t route_token(const lp_experience *e, bool best_only) {
  int32_t level = 0;
  for (uint64_t seen = e->seen; seen > 1 && level < LP_PROMPT_LEVELS - 1; seen /= 2)
    level++;
  if (best_only) level += LP_PROMPT_LEVELS;
  return lp_prompt_route_token(e->route) + level * LP_ROUTE_COUNT;
}

typedef struct {
  lp_word word[LP_PROMPT_WORDS];
  int32_t count;
} symbols;

static int32_t find_or_add(symbols *known, lp_word word) {
  for (int32_t i = 0; i < known->count; i++)
    if (lp_word_equal(known->word[i], word)) return i + 1;
  known->word[known->count++] = word;
  return known->count;
}

/* Writes exactly SLOTS tokens. If there are more words, the last token stands for the rest of the text. */
static size_t put_words(symbols *known, const char *keywords, int32_t *out) {
  for (int slot = 0; slot < SLOTS; slot++) {
    const char *rest = keywords;
    lp_word word = lp_next_word(&keywords);
    if (slot == SLOTS - 1 && word.size > 0) {
      while (*rest == ' ' || *rest == ',')
        rest++;
      word = (lp_word){rest, strlen(rest)};
    }
    out[slot] = WORD0 + (word.size > 0 ? find_or_add(known, word) : 0);
  }
  return SLOTS;
}

/* Lists the distinct rewards in ascending order and returns their number. */
static int sort_rewards(const lp_prompt *prompt, double *out) {
  for (size_t i = 0; i < prompt->count; i++)
    out[i] = prompt->examples[i].reward;
  qsort(out, prompt->count, sizeof *out, lp_compare_doubles);
  int distinct = 0;
  for (size_t i = 0; i < prompt->count; i++)
    if (distinct == 0 || out[distinct - 1] < out[i]) out[distinct++] = out[i];
  return distinct;
}

static int32_t rank_of(double reward, const double *sorted, int distinct) {
  int most = distinct > 1 ? distinct - 1 : 1, place = 0;
  while (place < distinct - 1 && sorted[place] < reward)
    place++;
  return (place * (LP_PROMPT_RANKS - 1) * 2 + most) / (2 * most);
}

size_t lp_prompt_tokens(const lp_prompt *prompt, int32_t out[LP_PROMPT_TOKENS]) {
  assert(prompt->count <= LP_PROMPT_EXAMPLES);
  symbols known = {.count = 0};
  double sorted[LP_PROMPT_EXAMPLES];
  int distinct = sort_rewards(prompt, sorted);
  size_t n = 0;
  out[n++] = BEGIN;
  LP_FOR_EACH(const lp_experience, e, prompt->examples, prompt->count) {
    n += put_words(&known, e->keywords, out + n);
    out[n++] = route_token(e, prompt->best_only);
    out[n++] = REWARD0 + 2 * rank_of(e->reward, sorted, distinct) + !e->good;
  }
  return n + put_words(&known, prompt->keywords, out + n);
}
