/* Draws schemas and vocabularies: see schemas.h. */
#include "tests/runtime/grammar/schemas.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

uint32_t dice_below(dice *of, uint32_t limit) {
  return (uint32_t)(lp_random_bits(of->seed, 0, of->drawn++) % limit);
}

static void append_list(dice *of, int depth, const char *open, const char *close, lp_buf *out) {
  const uint32_t count = 1 + dice_below(of, 3);
  lp_buf_puts(out, open);
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) lp_buf_puts(out, ",");
    schemas_append(of, depth, out);
  }
  lp_buf_puts(out, close);
}

static void append_object(dice *of, int depth, lp_buf *out) {
  static const char *const keys[] = {"a", "ab", "city", "\\u00e9t\\u00e9", "q\\\"", "a b"};
  const uint32_t count = dice_below(of, 4), first = dice_below(of, LP_COUNT(keys));
  lp_buf_puts(out, "{\"type\":\"object\",\"properties\":{");
  for (uint32_t i = 0; i < count; i++) {
    lp_buf_printf(out, "%s\"%s\":", i > 0 ? "," : "", keys[(first + i) % LP_COUNT(keys)]);
    schemas_append(of, depth, out);
  }
  lp_buf_puts(out, "}");
  if (count > 0 && dice_below(of, 2)) lp_buf_printf(out, ",\"required\":[\"%s\"]", keys[first]);
  if (dice_below(of, 3) == 0) lp_buf_puts(out, ",\"additionalProperties\":{\"type\":\"integer\"}");
  lp_buf_puts(out, "}");
}

/* "LEAST":n,"MOST":m */
static void append_counts(dice *of, const char *least, const char *most, uint32_t limit, lp_buf *out) {
  const uint32_t from = dice_below(of, limit), more = dice_below(of, limit);
  if (dice_below(of, 2)) lp_buf_printf(out, ",\"%s\":%u", least, from);
  if (dice_below(of, 2)) lp_buf_printf(out, ",\"%s\":%u", most, from + more);
}

void schemas_append(dice *of, int depth, lp_buf *out) {
  static const char *const plain[] = {"true",
                                      "{\"type\":\"integer\"}",
                                      "{\"type\":\"number\"}",
                                      "{\"type\":[\"boolean\",\"null\"]}",
                                      "{\"enum\":[\"red\",\"green\",\"re\",1,12,null,\"\\u20ac\"]}",
                                      "{\"const\":{\"a\":[1,\"b\"]}}",
                                      "{\"type\":\"string\"}",
                                      "{\"$ref\":\"#\"}",
                                      "{\"type\":\"integer\",\"minimum\":-3,\"maximum\":120}",
                                      "{\"type\":\"number\",\"exclusiveMinimum\":0,\"multipleOf\":0.25}",
                                      "{\"type\":\"string\",\"pattern\":\"^(a|[b-d\\u00e9]+)?c*$\",\"maxLength\":6}",
                                      "{\"type\":\"string\",\"format\":\"date\"}",
                                      "{\"prefixItems\":[{\"type\":\"integer\"},{\"const\":\"ab\"}],\"minItems\":1}"};
  switch (dice_below(of, depth > 0 ? 17 : 13)) {
  case 13:
    append_object(of, depth - 1, out);
    return;
  case 14:
    append_list(of, depth - 1, "{\"anyOf\":[", "]}", out);
    return;
  case 15:
    lp_buf_puts(out, "{\"type\":\"array\",\"items\":");
    schemas_append(of, depth - 1, out);
    append_counts(of, "minItems", "maxItems", 4, out);
    lp_buf_puts(out, "}");
    return;
  case 16:
    lp_buf_puts(out, "{\"type\":\"string\"");
    append_counts(of, "minLength", "maxLength", dice_below(of, 2) ? 6 : 60, out);
    lp_buf_puts(out, "}");
    return;
  default:
    lp_buf_puts(out, plain[dice_below(of, LP_COUNT(plain))]);
  }
}

lp_grammar *schemas_grammar(const char *schema) {
  lp_json_document *document = NULL;
  lp_grammar *grammar = NULL;
  if (lp_json_parse("schema", schema, strlen(schema), 0, &document, NULL) != LP_OK) return NULL;
  lp_json root = lp_json_root("schema", document);
  if (lp_grammar_of_schema(&root, &grammar, NULL) != LP_OK) grammar = NULL;
  lp_json_free(document);
  return grammar;
}

lp_vocabulary *schemas_vocabulary(dice *of, int words) {
  static const char *const pieces[] = {"\"",   "\",\"", "{\"",   "\"}",      "a",        "b",    "ab",       "c",
                                       "city", "red",   "green", " ",        "  ",       "\n",   ":",        ",",
                                       "[",    "]",     "1",     "0",        "-",        ".5",   "e+",       "true",
                                       "nul",  "\\",    "\\n",   "\xc3\xa9", "\xe2\x82", "\xac", "\xf0\x9f", "\x98"};
  lp_vocabulary *vocabulary = lp_vocabulary_begin();
  for (int i = 0; i < 256; i++)
    lp_vocabulary_add(vocabulary, (const char[]){(char)i}, 1, false);
  for (int i = 0; i < words; i++) {
    lp_buf token = {0};
    const uint32_t count = dice_below(of, 40) == 0 ? 40 : dice_below(of, 7);
    const bool alike = dice_below(of, 3) == 0;
    const uint32_t first = dice_below(of, LP_COUNT(pieces));
    for (uint32_t k = 0; k < count; k++)
      lp_buf_puts(&token, pieces[alike ? first : dice_below(of, LP_COUNT(pieces))]);
    lp_vocabulary_add(vocabulary, lp_buf_text(&token), token.size, dice_below(of, 200) == 0);
    lp_buf_free(&token);
  }
  lp_vocabulary_end(vocabulary);
  return vocabulary;
}
