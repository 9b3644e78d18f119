/* Normalizers that need Unicode tables: normal forms, lower case, marks, the rules of BERT and SentencePiece's nmt. The
 * tables are utf8proc's, up to the versions of Unicode that `tokenizers` has (unicode.c). All take time linear in the
 * length of any text. */
#include <utf8proc.h>

#include "base/utf8.h"
#include "runtime/tokenizer/steps.h"
#include "runtime/tokenizer/unicode.h"

/* Appends the replacement of one character. */
typedef void replace_fn(const lp_tokenizer_step *step, uint32_t code, lp_buf *out);

static lp_status replace_each(const lp_tokenizer_step *step, const char *text, size_t size, lp_work *work,
                              replace_fn *replace) {
  uint32_t code;
  for (size_t at = 0; at < size;) {
    at += lp_utf8_next(text + at, &code);
    replace(step, code, &work->next.text);
  }
  return LP_OK;
}

#define LP_STEP_OF_CHARACTERS(step_name, replace)                                                                      \
  static lp_status replace##_text(const lp_tokenizer_step *step, const char *text, size_t size, bool first,            \
                                  lp_work *work) {                                                                     \
    (void)first;                                                                                                       \
    return replace_each(step, text, size, work, replace);                                                              \
  }                                                                                                                    \
  lp_status step_name(const lp_tokenizer_step *step, lp_work *work) {                                                  \
    return lp_work_rewrite(step, work, replace##_text);                                                                \
  }

/* ---- characters -------------------------------------------------------------------------------------------------- */

/* U+0130 is the only character that has two characters as its lower case in every context (Unicode's
 * SpecialCasing.txt). */
static void lowercase(const lp_tokenizer_step *step, uint32_t code, lp_buf *out) {
  (void)step;
  if (code == 0x130)
    lp_buf_puts(out, "i\xCC\x87");
  else
    lp_utf8_write(lp_unicode_lower((uint32_t)utf8proc_tolower((utf8proc_int32_t)code)), out);
}
LP_STEP_OF_CHARACTERS(lp_step_lowercase, lowercase)

static void drop_mark(const lp_tokenizer_step *step, uint32_t code, lp_buf *out) {
  utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
  bool other = category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
  bool mark = category == UTF8PROC_CATEGORY_MN || (step->left && other);
  bool newer = step->left ? lp_unicode_since_10(code) || code == 0x111C9 : lp_unicode_since_9(code);
  bool once = step->left ? code == 0x1CF2 || code == 0x1CF3 : code == 0x1734; /* a mark in the older version only */
  if (!(mark && !newer) && !once) lp_utf8_write(code, out);
}
LP_STEP_OF_CHARACTERS(lp_step_drop_marks, drop_mark)

static bool is_control(uint32_t code) {
  utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
  return (category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO) &&
         !lp_unicode_since_9(code);
}

static void clean(const lp_tokenizer_step *step, uint32_t code, lp_buf *out) {
  (void)step;
  if (code == '\t' || code == '\n' || code == '\r')
    lp_buf_append(out, " ", 1);
  else if (code == 0xFFFD || is_control(code))
    return;
  else
    lp_utf8_write(lp_utf8_is_space(code) ? ' ' : code, out);
}
LP_STEP_OF_CHARACTERS(lp_step_clean, clean)

typedef struct {
  uint32_t first, last;
} code_range;

static bool is_within(uint32_t code, const code_range *ranges, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (code >= ranges[i].first && code <= ranges[i].last) return true;
  return false;
}

static void part_cjk(const lp_tokenizer_step *step, uint32_t code, lp_buf *out) {
  /* The blocks that BERT's own tokenizer lists, with the gap that `tokenizers` has before U+2B920. */
  static const code_range blocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                                      {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  (void)step;
  bool ideograph = is_within(code, blocks, LP_COUNT(blocks));
  if (ideograph) lp_buf_append(out, " ", 1);
  lp_utf8_write(code, out);
  if (ideograph) lp_buf_append(out, " ", 1);
}
LP_STEP_OF_CHARACTERS(lp_step_part_cjk, part_cjk)

static void nmt(const lp_tokenizer_step *step, uint32_t code, lp_buf *out) {
  static const code_range dropped[] = {{0x01, 0x08}, {0x0B, 0x0B}, {0x0E, 0x1F},
                                       {0x7F, 0x7F}, {0x8F, 0x8F}, {0x9F, 0x9F}};
  static const code_range spaces[] = {{0x09, 0x0A},     {0x0C, 0x0D},     {0x1680, 0x1680}, {0x200B, 0x200F},
                                      {0x2028, 0x2029}, {0x2581, 0x2581}, {0xFEFF, 0xFEFF}, {0xFFFD, 0xFFFD}};
  (void)step;
  if (is_within(code, dropped, LP_COUNT(dropped))) return;
  lp_utf8_write(is_within(code, spaces, LP_COUNT(spaces)) ? ' ' : code, out);
}
LP_STEP_OF_CHARACTERS(lp_step_nmt, nmt)

/* ---- normal forms (Unicode Standard Annex 15) -------------------------------------------------------------------- */

typedef LP_VEC(int32_t) code_list;

static int combining_class(int32_t code) {
  return utf8proc_get_property(code)->combining_class;
}

static void decompose(uint32_t code, bool compatible, code_list *out) {
  utf8proc_int32_t parts[32]; /* the longest decomposition has 18 */
  int last = 0;
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): flags that are combined
  utf8proc_option_t options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
  utf8proc_ssize_t count =
      utf8proc_decompose_char((utf8proc_int32_t)code, parts, (utf8proc_ssize_t)LP_COUNT(parts), options, &last);
  for (utf8proc_ssize_t i = 0; i < count && i < (utf8proc_ssize_t)LP_COUNT(parts); i++)
    lp_vec_push(out, parts[i]);
}

/* Sorts a run of marks by class, keeping the order of equal ones. It is a counting sort, since a run may be as long as
 * the text. */
static void sort_marks(int32_t *marks, size_t count, code_list *scratch) {
  size_t places[257] = {0};
  bool sorted = true;
  for (size_t i = 1; sorted && i < count; i++)
    sorted = combining_class(marks[i - 1]) <= combining_class(marks[i]);
  if (sorted) return;
  scratch->count = 0;
  for (size_t i = 0; i < count; i++) {
    places[(combining_class(marks[i]) & 0xFF) + 1]++;
    lp_vec_push(scratch, marks[i]);
  }
  for (size_t i = 1; i < LP_COUNT(places); i++)
    places[i] += places[i - 1];
  for (size_t i = 0; i < count; i++)
    marks[places[combining_class(scratch->data[i]) & 0xFF]++] = scratch->data[i];
}

static void order_marks(code_list *codes) {
  LP_OWNED(lp_free_at) code_list scratch = {0};
  for (size_t at = 0, end; at < codes->count; at = end + 1) {
    for (end = at; end < codes->count && combining_class(codes->data[end]) > 0;)
      end++;
    sort_marks(codes->data + at, end - at, &scratch);
  }
}

/* ASCII is its own normal form. */
static bool is_ascii(const char *text, size_t size) {
  for (size_t i = 0; i < size; i++)
    if ((uint8_t)text[i] >= 0x80) return false;
  return true;
}

/* Appends the normal form of decomposed characters, which it empties. */
static void write_normal(code_list *codes, lp_normal_form form, lp_buf *out) {
  order_marks(codes);
  utf8proc_ssize_t count = (utf8proc_ssize_t)codes->count;
  if ((form == LP_NFC || form == LP_NFKC) && count > 0)
    // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): flags that are combined
    count = utf8proc_normalize_utf32(codes->data, count, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  for (utf8proc_ssize_t i = 0; i < count; i++)
    lp_utf8_write((uint32_t)codes->data[i], out);
  codes->count = 0;
}

/* A character newer than the tables of `tokenizers` is by itself. */
static lp_status to_normal_form(const lp_tokenizer_step *step, const char *text, size_t size, bool first,
                                lp_work *work) {
  (void)first;
  LP_OWNED(lp_free_at) code_list codes = {0};
  if (is_ascii(text, size)) {
    lp_buf_append(&work->next.text, text, size);
    return LP_OK;
  }
  uint32_t code;
  for (size_t at = 0; at < size;) {
    at += lp_utf8_next(text + at, &code);
    if (lp_unicode_since_10(code)) {
      write_normal(&codes, step->form, &work->next.text);
      lp_utf8_write(code, &work->next.text);
    } else {
      decompose(code, step->form == LP_NFKC || step->form == LP_NFKD, &codes);
    }
  }
  write_normal(&codes, step->form, &work->next.text);
  return LP_OK;
}

lp_status lp_step_normal_form(const lp_tokenizer_step *step, lp_work *work) {
  return lp_work_rewrite(step, work, to_normal_form);
}
