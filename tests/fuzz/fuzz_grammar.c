/* A grammar of a random or given schema, and a text that follows it: masks agree with the oracle, and neither work nor
 * memory exceeds a limit. The first byte says whether the schema is drawn (its seed follows) or given, up to a NUL; the
 * bytes after it choose tokens. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/runtime/grammar/schemas.h"
#include "tests/runtime/grammar/slow_grammar.h"

/* Under the sanitizers: CPU milliseconds of a schema, of a mask, and of a text; and bytes of an automaton. */
static const double schema_ms = 2000, mask_ms = 2000, text_ms = 8000;
enum { MOST_BYTES = 96 << 20, MOST_TOKENS = 24, MOST_COMPARED = 64 };

static double cpu_ms(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void require(bool good) {
  if (!good) abort();
}

static lp_masks *shared_masks(void) {
  static lp_masks *masks;
  dice random = {.seed = 4};
  if (!masks) masks = lp_masks_create(schemas_vocabulary(&random, 500));
  return masks;
}

/* Compares some of the tokens: the oracle gives up possibilities beyond its limits, so that it only refuses more. */
static void compare(const lp_vocabulary *v, const lp_mask *mask, slow_grammar *slow, bool is_exact) {
  for (int32_t i = 0; slow && i < v->size; i += v->size / MOST_COMPARED) {
    size_t size = 0;
    const char *bytes = lp_vocabulary_bytes(v, i, &size);
    bool last = false;
    for (size_t k = 0; k < v->last.count; k++)
      last |= v->last.data[k] == i;
    const bool masked = mask->bits[i / 64] >> i % 64 & 1;
    const bool good = last ? slow_grammar_can_end(slow) : size > 0 && slow_grammar_allows(slow, bytes, size);
    require(is_exact && !slow_grammar_gave_up(slow) ? masked == good : masked >= good);
  }
}

static lp_match find(lp_masks *masks, lp_automaton *automaton, lp_masking *masking, lp_mask **mask) {
  const double begin = cpu_ms();
  lp_match match = LP_MATCH_LATER;
  while (match == LP_MATCH_LATER) {
    lp_automaton_grant(automaton, 100000, true);
    match = lp_masks_find(masks, automaton, masking, mask);
  }
  require(cpu_ms() - begin < mask_ms);
  require(lp_automaton_bytes(automaton) < MOST_BYTES);
  require(match == LP_MATCH_YES || match == LP_MATCH_TOO_MUCH);
  return match;
}

/* The first allowed token from number `from` on; -1: none is. */
static int32_t choose(const lp_vocabulary *v, const lp_mask *mask, int32_t from) {
  for (int32_t i = 0; i < v->size; i++) {
    const int32_t token = (from + i) % v->size;
    bool last = false;
    for (size_t k = 0; k < v->last.count; k++)
      last |= v->last.data[k] == token;
    if (!last && mask->bits[token / 64] >> token % 64 & 1) return token;
  }
  return -1;
}

static void follow(const lp_grammar *grammar, const uint8_t *choices, size_t count) {
  lp_masks *masks = shared_masks();
  const lp_vocabulary *v = lp_masks_vocabulary(masks);
  lp_automaton *automaton = lp_automaton_create(grammar, lp_masks_pool(masks));
  lp_masking masking = {0};
  const bool small = grammar->nodes.count < 4000; /* the oracle is slow */
  slow_grammar *slow = small ? slow_grammar_begin(grammar) : NULL;
  for (size_t i = 0; i + 1 < count && i < 2 * MOST_TOKENS; i += 2) {
    lp_mask *mask = NULL;
    if (find(masks, automaton, &masking, &mask) != LP_MATCH_YES) break;
    compare(v, mask, slow, grammar->nodes.count < 1000);
    const int32_t token = choose(v, mask, (choices[i] << 8 | choices[i + 1]) % v->size);
    lp_masks_return(masks, mask);
    if (token < 0) break;
    size_t size = 0;
    const char *bytes = lp_vocabulary_bytes(v, token, &size);
    lp_automaton_grant(automaton, INT64_MAX, true);
    const lp_match match = lp_automaton_take(automaton, bytes, size);
    if (match == LP_MATCH_TOO_MUCH) break;
    require(match == LP_MATCH_YES);
    if (slow) slow_grammar_take(slow, bytes, size);
    if (slow && slow_grammar_gave_up(slow)) { /* all further expansions would take as long */
      slow_grammar_free(slow);
      slow = NULL;
    }
  }
  lp_masking_release(&masking);
  lp_automaton_free(automaton);
  if (slow) slow_grammar_free(slow);
  require(lp_masks_held(masks) <= LP_MASKS_BYTES && atomic_load(&lp_masks_pool(masks)->bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 10) return 0;
  lp_buf schema = {0};
  size_t used = 9;
  if (data[0] % 2) {
    dice random = {0};
    memcpy(&random.seed, data + 1, sizeof random.seed);
    schemas_append(&random, 4, &schema);
  } else {
    const uint8_t *end = memchr(data + 1, 0, size - 1);
    used = end ? (size_t)(end - data) + 1 : size;
    lp_buf_append(&schema, data + 1, end ? used - 2 : size - 1);
  }
  const double begin = cpu_ms();
  lp_grammar *grammar = schemas_grammar(lp_buf_text(&schema));
  const double made = cpu_ms();
  require(made - begin < schema_ms);
  if (grammar) follow(grammar, data + used, size - used);
  require(cpu_ms() - made < text_ms);
  lp_grammar_free(grammar);
  lp_buf_free(&schema);
  return 0;
}
