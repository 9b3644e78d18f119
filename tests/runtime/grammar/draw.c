/* draw_grammar COUNT: reads a schema in each line and draws texts of its grammar, byte by byte. Prints lines: the
 * number of the schema from 0 on, a tab, and a text, or "!" and the reason why the schema is refused. Bytes that end
 * something are likelier, so that texts end; one that has not ended after 20,000 bytes is left out. */
#include <stdlib.h>
#include <string.h>

#include "runtime/grammar/automaton.h"
#include "tests/runtime/grammar/schemas.h"

enum { MOST_BYTES = 20000 };

static void draw(const lp_grammar *grammar, dice *of, lp_buf *out) {
  lp_automaton *automaton = lp_automaton_create(grammar, NULL);
  lp_automaton_grant(automaton, INT64_MAX, true);
  lp_buf_clear(out);
  while (out->size < MOST_BYTES) {
    uint8_t allowed[256];
    uint32_t count = 0, closing = 0;
    for (int i = 0; i < 256; i++) {
      const char byte = (char)i;
      if (lp_automaton_allows(automaton, &byte, 1) != LP_MATCH_YES) continue;
      allowed[count++] = (uint8_t)i;
      closing += strchr("\"]}n", i) && i > 0;
    }
    if (lp_automaton_can_end(automaton) && (count == 0 || dice_below(of, 4) == 0)) break;
    if (count == 0) {
      lp_buf_puts(out, "(a dead end)");
      break;
    }
    char byte = (char)allowed[dice_below(of, count)];
    if (closing > 0 && dice_below(of, out->size < 300 ? 6 : 2) == 0) do
        byte = (char)allowed[dice_below(of, count)];
      while (!byte || !strchr("\"]}n", byte));
    (void)lp_automaton_take(automaton, &byte, 1);
    lp_buf_append(out, byte == '\n' ? " " : &byte, 1); /* white space: within strings it is escaped */
  }
  lp_automaton_free(automaton);
}

static void draw_all(long number, const char *schema, int count) {
  lp_json_document *document = NULL;
  lp_grammar *grammar = NULL;
  lp_diag *diag = lp_diag_create();
  dice random = {.seed = (uint64_t)number};
  lp_buf text = {0};
  lp_status status = lp_json_parse("schema", schema, strlen(schema), 0, &document, diag);
  if (status == LP_OK) {
    lp_json root = lp_json_root("schema", document);
    status = lp_grammar_of_schema(&root, &grammar, diag);
  }
  if (status != LP_OK) printf("%ld\t!%s\n", number, lp_diag_get(diag, 0)->text);
  for (int i = 0; status == LP_OK && i < count; i++) {
    draw(grammar, &random, &text);
    if (text.size < MOST_BYTES) printf("%ld\t%s\n", number, lp_buf_text(&text));
  }
  lp_buf_free(&text);
  lp_grammar_free(grammar);
  lp_json_free(document);
  lp_diag_free(diag);
}

int main(int argc, char **argv) {
  char *line = NULL;
  size_t room = 0;
  const int count = argc > 1 ? atoi(argv[1]) : 10;
  for (long number = 0; getline(&line, &room, stdin) > 0; number++)
    draw_all(number, line, count);
  free(line);
  return 0;
}
