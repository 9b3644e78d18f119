/* SentencePiece's compiled normalization rules: a double-array trie from texts to their replacements.
 *
 * The format is darts-clone's: 32-bit units, of which each state adds its offset and the next byte. Like `tokenizers`,
 * this looks up whole graphemes of up to five bytes first, then single characters, and uses the shortest rule that is a
 * prefix. */
#include <utf8proc.h>

#include "base/utf8.h"
#include "runtime/tokenizer/steps.h"

struct lp_charsmap {
  const uint32_t *units; /* [unit_count] */
  size_t unit_count;
  const char *texts; /* the replacements, each with a NUL at its end */
  size_t texts_size;
};

static uint32_t read_u32(const char *data) {
  const uint8_t *bytes = (const uint8_t *)data;
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

const lp_charsmap *lp_charsmap_create(lp_arena *arena, const char *data, size_t size) {
  if (size < 8) return NULL;
  size_t trie_size = read_u32(data);
  if (trie_size % 4 != 0 || trie_size == 0 || trie_size > size - 4) return NULL;
  uint32_t *units = LP_NEW_ARRAY(arena, uint32_t, trie_size / 4);
  for (size_t i = 0; i < trie_size / 4; i++)
    units[i] = read_u32(data + 4 + 4 * i);
  lp_charsmap *map = LP_NEW(arena, lp_charsmap);
  *map = (lp_charsmap){
      .units = units, .unit_count = trie_size / 4, .texts = data + 4 + trie_size, .texts_size = size - 4 - trie_size};
  return map;
}

static size_t offset_of(uint32_t unit) {
  return (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* The replacement of the shortest rule that `text` starts with; false: there is none, or it is not UTF-8, on which the
 * next steps rely. */
static bool find_rule(const lp_charsmap *map, const char *text, size_t size, const char **out, size_t *out_size) {
  size_t at = offset_of(map->units[0]);
  for (size_t i = 0; i < size && text[i] != '\0'; i++) {
    uint8_t byte = (uint8_t)text[i];
    at ^= byte;
    if (at >= map->unit_count || (map->units[at] & (1u << 31 | 0xFFu)) != byte) return false;
    uint32_t unit = map->units[at];
    at ^= offset_of(unit);
    if (at >= map->unit_count) return false;
    if ((unit >> 8 & 1) == 0) continue;
    size_t start = map->units[at] & ((1u << 31) - 1);
    if (start > map->texts_size) return false;
    *out = map->texts + start;
    *out_size = strnlen(*out, map->texts_size - start);
    return lp_utf8_valid(*out, *out_size);
  }
  return false;
}

/* The end of the grapheme that starts at `at` (Unicode Standard Annex 29, extended). */
static size_t grapheme_end(const char *text, size_t size, size_t at) {
  utf8proc_int32_t state = 0;
  uint32_t code, next;
  for (at += lp_utf8_next(text + at, &code); at < size;) {
    size_t length = lp_utf8_next(text + at, &next);
    if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)code, (utf8proc_int32_t)next, &state)) break;
    code = next;
    at += length;
  }
  return at;
}

static lp_status map_text(const lp_tokenizer_step *step, const char *text, size_t size, bool first, lp_work *work) {
  (void)first;
  const char *fresh;
  size_t fresh_size;
  uint32_t code;
  for (size_t at = 0, end; at < size; at = end) {
    end = grapheme_end(text, size, at);
    if (end - at < 6 && find_rule(step->charsmap, text + at, end - at, &fresh, &fresh_size)) {
      lp_buf_append(&work->next.text, fresh, fresh_size);
      continue;
    }
    for (size_t length; at < end; at += length) {
      length = lp_utf8_next(text + at, &code);
      bool found = find_rule(step->charsmap, text + at, length, &fresh, &fresh_size);
      lp_buf_append(&work->next.text, found ? fresh : text + at, found ? fresh_size : length);
    }
  }
  return LP_OK;
}

lp_status lp_step_charsmap(const lp_tokenizer_step *step, lp_work *work) {
  return lp_work_rewrite(step, work, map_text);
}
