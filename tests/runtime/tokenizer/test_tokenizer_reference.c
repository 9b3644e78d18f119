/* Equality with PyPI `tokenizers`: compares with hashes of its results for 10,000 texts (tokenizer/compare.py --write).
 * The texts are generated here as in tokenizer/strings.py. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"
#include "runtime/runtime.h"
#include "tests/suite.h"

LP_CASE(.timeout = 120);

#define DATA LP_TEST_DIR "/"

static const uint32_t ranges[][2] = {
    {0x20, 0x7E},       {0x20, 0x7E},       {0x00, 0x1F},       {0x80, 0xFF},       {0x100, 0x24F},
    {0x250, 0x2FF},     {0x300, 0x36F},     {0x391, 0x3C9},     {0x400, 0x4FF},     {0x531, 0x556},
    {0x5D0, 0x5EA},     {0x620, 0x669},     {0x905, 0x939},     {0x985, 0x98C},     {0xE01, 0xE3A},
    {0x10A0, 0x10C5},   {0x1100, 0x11FF},   {0x1E00, 0x1EFF},   {0x2000, 0x206F},   {0x20A0, 0x20BF},
    {0x2150, 0x218B},   {0x2190, 0x23FF},   {0x2500, 0x25FF},   {0x2600, 0x27BF},   {0x3000, 0x303F},
    {0x3041, 0x3096},   {0x30A0, 0x30FF},   {0x4E00, 0x9FEF},   {0xAC00, 0xD7A3},   {0xE000, 0xE0FF},
    {0xFB00, 0xFB06},   {0xFF01, 0xFF60},   {0xFFF0, 0xFFFD},   {0x10330, 0x1034A}, {0x1D400, 0x1D454},
    {0x1F300, 0x1F64F}, {0x20000, 0x2A6D6}, {0xE0000, 0xE007F},
};

/* ---- the texts --------------------------------------------------------------------------------------------------- */

typedef LP_VEC(lp_buf) fragment_list;

static void unescape(const char *line, size_t size, lp_buf *out) {
  static const char names[] = "snrt\\", values[] = " \n\r\t\\";
  for (size_t i = 0; i < size; i++) {
    if (line[i] != '\\') {
      lp_buf_append(out, &line[i], 1);
    } else if (line[++i] == 'u') {
      char digits[5] = {line[i + 1], line[i + 2], line[i + 3], line[i + 4], 0};
      lp_utf8_write((uint32_t)strtoul(digits, NULL, 16), out);
      i += 4;
    } else {
      lp_buf_append(out, &values[strchr(names, line[i]) - names], 1);
    }
  }
}

static fragment_list read_fragments(void) {
  fragment_list list = {0};
  char *data;
  size_t size;
  ck_assert_int_eq(lp_file_read(DATA "fragments.txt", &data, &size, NULL), LP_OK);
  for (const char *line = data, *end; (end = strchr(line, '\n')); line = end + 1) {
    lp_buf text = {0};
    unescape(line, (size_t)(end - line), &text);
    lp_vec_push(&list, text);
  }
  free(data);
  return list;
}

static uint64_t below(uint64_t *state, uint64_t n) {
  ck_assert(n > 0);
  *state += UINT64_C(0x9E3779B97F4A7C15);
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return ((z ^ (z >> 31)) >> 33) % n;
}

static void make_text(uint64_t index, const fragment_list *parts, lp_buf *out) {
  uint64_t state = UINT64_C(20240229) * 1000003 + index;
  lp_buf_clear(out);
  for (uint64_t left = 1 + below(&state, index % 100 == 99 ? 400 : 20); left > 0; left--) {
    uint64_t kind = below(&state, 8);
    if (kind == 0) {
      const uint32_t *range = ranges[below(&state, LP_COUNT(ranges))];
      for (uint64_t n = 1 + below(&state, 4); n > 0; n--)
        lp_utf8_write(range[0] + (uint32_t)below(&state, range[1] - range[0] + 1), out);
      continue;
    }
    const lp_buf *part = &parts->data[below(&state, parts->count)];
    for (uint64_t n = kind == 1 ? 1 + below(&state, 9) : 1; n > 0; n--)
      lp_buf_append(out, part->data, part->size);
  }
}

static uint32_t fnv(uint32_t hash, uint8_t byte) {
  return (hash ^ byte) * 0x01000193u;
}

/* ---- the comparison ---------------------------------------------------------------------------------------------- */

static void compare_line(const lp_tokenizer *tokenizer, const lp_buf *text, uint64_t index, const char *line) {
  uint32_t ids_hash = 0x811C9DC5u, text_hash = 0x811C9DC5u;
  lp_tokens ids = {0};
  lp_buf decoded = {0};
  ck_assert_int_eq(lp_tokenizer_encode(tokenizer, lp_buf_text(text), text->size, true, &ids, NULL), LP_OK);
  for (size_t i = 0; i < ids.count; i++)
    for (int shift = 0; shift < 32; shift += 8)
      ids_hash = fnv(ids_hash, (uint8_t)((uint32_t)ids.data[i] >> shift));
  size_t half = ids.count / 2;
  lp_tokenizer_decode(tokenizer, ids.data + half, ids.count - half, index % 2 == 1, &decoded);
  for (size_t i = 0; i < decoded.size; i++)
    text_hash = fnv(text_hash, (uint8_t)decoded.data[i]);
  char found[32];
  snprintf(found, sizeof found, "%08x %08x", ids_hash, text_hash);
  ck_assert_msg(strncmp(found, line, 17) == 0, "text %d: found %s, expected %.17s", (int)index, found, line);
  lp_vec_free(&ids);
  lp_buf_free(&decoded);
}

static void compare_all(const char *path, const char *expected_path, size_t expected_count) {
  lp_tokenizer *tokenizer;
  fragment_list parts = read_fragments();
  lp_buf text = {0};
  char *expected;
  size_t size, count = 0;
  ck_assert_int_eq(lp_tokenizer_load(path, &tokenizer, NULL), LP_OK);
  ck_assert_int_eq(lp_file_read(expected_path, &expected, &size, NULL), LP_OK);
  for (const char *line = expected; *line != '\0'; line += 18, count++) {
    make_text(count, &parts, &text);
    compare_line(tokenizer, &text, count, line);
  }
  ck_assert_uint_eq(count, expected_count);
  for (size_t i = 0; i < parts.count; i++)
    lp_buf_free(&parts.data[i]);
  lp_vec_free(&parts);
  lp_buf_free(&text);
  free(expected);
  lp_tokenizer_free(tokenizer);
}

LP_TEST(default_model) {
  compare_all("examples/default-model/tokenizer.json", DATA "default-model.expected", 10000);
}

LP_TEST(sentencepiece_style) {
  compare_all(DATA "sentencepiece.json", DATA "sentencepiece.expected", 2000);
}

LP_TEST(split_pattern_template_and_added_tokens) {
  compare_all(DATA "split.json", DATA "split.expected", 2000);
}

/* Small tokenizers of nine more kinds, trained by tokenizer/kinds.py. */
LP_TEST(other_kinds) {
  static const char *const names[] = {"added",   "bert-uncased",  "kimi",          "nfd-strip", "qwen2",
                                      "scripts", "unigram-bytes", "unigram-rules", "wordlevel"};
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    lp_buf path = {0}, expected = {0};
    lp_buf_printf(&path, "%skinds/%s.json", DATA, names[i]);
    lp_buf_printf(&expected, "%skinds/%s.expected", DATA, names[i]);
    compare_all(path.data, expected.data, 200);
    lp_buf_free(&path);
    lp_buf_free(&expected);
  }
}
