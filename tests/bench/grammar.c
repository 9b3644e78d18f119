/* bench_grammar VOCABULARY CASES: the time that a grammar takes for each token. VOCABULARY has the tokens: 4 bytes of
 * length, little-endian, and the bytes. CASES has in each line a schema, a tab, and the tokens of a text of it as
 * decimal numbers. For each case prints the nanoseconds of CPU time of each token's mask and step, first with nothing
 * remembered, and then as a later request with the same schema: a line of numbers each. grammar.py makes the files, and
 * compares. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "runtime/grammar/masks.h"

static int64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void die(const char *what, const char *of) {
  fprintf(stderr, "bench_grammar: %s: %s\n", of, what);
  exit(1);
}

static lp_vocabulary *read_vocabulary(const char *path) {
  FILE *file = fopen(path, "rb");
  lp_vocabulary *vocabulary = lp_vocabulary_begin();
  if (!file) die("cannot be read", path);
  for (uint32_t size; fread(&size, sizeof size, 1, file) == 1;) {
    char bytes[1 << 16];
    if (size > sizeof bytes || fread(bytes, 1, size, file) != size) die("has a bad token", path);
    lp_vocabulary_add(vocabulary, bytes, size, false);
  }
  (void)fclose(file);
  const int64_t begin = now_ns();
  lp_vocabulary_end(vocabulary);
  fprintf(stderr, "%d tokens; tries in %.1f ms\n", vocabulary->size, (double)(now_ns() - begin) / 1e6);
  for (int i = 0; i < LP_SLICES; i++)
    fprintf(stderr, "slice of %d characters: %zu nodes for the others\n", vocabulary->slice[i].most,
            vocabulary->slice[i].other.count);
  return vocabulary;
}

static lp_grammar *read_grammar(char *schema) {
  lp_json_document *document = NULL;
  lp_grammar *grammar = NULL;
  lp_diag *diag = lp_diag_create();
  if (lp_json_parse("schema", schema, strlen(schema), 0, &document, diag) != LP_OK) die("is no JSON", schema);
  lp_json root = lp_json_root("schema", document);
  if (lp_grammar_of_schema(&root, &grammar, diag) != LP_OK) die(lp_diag_get(diag, 0)->text, schema);
  lp_json_free(document);
  lp_diag_free(diag);
  return grammar;
}

static void run(lp_masks *masks, const lp_grammar *grammar, const char *tokens) {
  lp_automaton *automaton = lp_automaton_create(grammar, lp_masks_pool(masks));
  lp_masking masking = {0};
  char *end;
  for (long token; token = strtol(tokens, &end, 10), end != tokens; tokens = end) {
    size_t size = 0;
    lp_mask *mask = NULL;
    const int64_t begin = now_ns();
    lp_automaton_grant(automaton, INT64_MAX, true);
    if (lp_masks_find(masks, automaton, &masking, &mask) != LP_MATCH_YES) die("too much", "the mask");
    const bool good = mask->bits[token / 64] >> token % 64 & 1;
    lp_masks_return(masks, mask);
    const char *bytes = lp_vocabulary_bytes(lp_masks_vocabulary(masks), (int32_t)token, &size);
    if (!good || lp_automaton_take(automaton, bytes, size) != LP_MATCH_YES) die("is not allowed", bytes);
    printf("%lld ", (long long)(now_ns() - begin));
  }
  if (!lp_automaton_can_end(automaton)) die("is incomplete", "the text");
  printf("\n");
  lp_masking_release(&masking);
  lp_automaton_free(automaton);
}

int main(int argc, char **argv) {
  if (argc != 3) die("VOCABULARY CASES", "usage");
  FILE *file = fopen(argv[2], "r");
  lp_masks *masks = lp_masks_create(read_vocabulary(argv[1]));
  char *line = NULL;
  size_t size = 0;
  if (!file) die("cannot be read", argv[2]);
  while (getline(&line, &size, file) > 0) {
    char *tab = strchr(line, '\t');
    if (!tab) die("has a line without a tab", argv[2]);
    *tab = 0;
    const int64_t begin = now_ns();
    lp_grammar *grammar = read_grammar(line);
    printf("%lld\n", (long long)(now_ns() - begin));
    for (int i = 0; i < 2; i++)
      run(masks, grammar, tab + 1);
    lp_grammar_free(grammar);
  }
  free(line);
  (void)fclose(file);
  lp_masks_free(masks);
  return 0;
}
