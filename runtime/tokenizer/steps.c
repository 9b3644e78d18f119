/* The steps of normalizers and pre-tokenizers, and the two lists of pieces that steps work on. */

#include "runtime/tokenizer/steps.h"
#include "base/utf8.h"
#include "runtime/tokenizer/pattern.h"

void lp_work_free(lp_work *work) {
  lp_buf_free(&work->now.text);
  lp_buf_free(&work->next.text);
  lp_vec_free(&work->now.list);
  lp_vec_free(&work->next.list);
}

void lp_work_begin(lp_work *work) {
  lp_buf_clear(&work->next.text);
  work->next.list.count = 0;
}

void lp_work_add(lp_work *work, size_t start, int32_t token, size_t origin) {
  size_t size = work->next.text.size - start;
  if (size == 0 && token < 0 && !work->keep_empty) return;
  lp_piece piece = {.start = start, .size = size, .token = token, .origin = origin};
  lp_vec_push(&work->next.list, piece);
}

void lp_work_add_part(lp_work *work, lp_piece whole, size_t start, size_t end, int32_t token) {
  if (end <= start) return;
  size_t origin = whole.origin > start ? whole.origin - start : 0;
  lp_piece piece = {.start = whole.start + start, .size = end - start, .token = token, .origin = origin};
  lp_vec_push(&work->next.list, piece);
}

void lp_work_swap(lp_work *work) {
  lp_pieces now = work->now;
  work->now = work->next;
  work->next = now;
}

void lp_work_swap_list(lp_work *work) {
  lp_work_swap(work);
  lp_buf text = work->now.text;
  work->now.text = work->next.text;
  work->next.text = text;
}

lp_status lp_steps_run(const lp_steps *steps, lp_work *work) {
  for (size_t i = 0; i < steps->count; i++)
    LP_TRY(steps->data[i].run(&steps->data[i], work));
  return LP_OK;
}

void lp_steps_free(lp_steps *steps) {
  for (size_t i = 0; i < steps->count; i++)
    lp_pattern_free(steps->data[i].pattern);
  lp_vec_free(steps);
}

lp_status lp_work_rewrite(const lp_tokenizer_step *step, lp_work *work, lp_rewrite_fn *rewrite) {
  lp_work_begin(work);
  for (size_t i = 0; i < work->now.list.count; i++) {
    lp_piece piece = work->now.list.data[i];
    size_t start = work->next.text.size, origin = piece.origin < piece.size ? piece.origin : piece.size;
    const char *text = lp_buf_text(&work->now.text) + piece.start;
    if (piece.token < 0 && origin > 0) {
      LP_TRY(rewrite(step, text, origin, true, work));
      origin = work->next.text.size - start;
      work->next.text.size = start;
    }
    if (piece.token >= 0)
      lp_buf_append(&work->next.text, text, piece.size);
    else
      LP_TRY(rewrite(step, text, piece.size, piece.origin > 0, work));
    lp_work_add(work, start, piece.token, origin);
  }
  lp_work_swap(work);
  return LP_OK;
}

static lp_status prepend(const lp_tokenizer_step *step, const char *text, size_t size, bool first, lp_work *work) {
  (void)first;
  lp_buf_append(&work->next.text, step->text, step->size);
  lp_buf_append(&work->next.text, text, size);
  return LP_OK;
}

lp_status lp_step_prepend(const lp_tokenizer_step *step, lp_work *work) {
  return lp_work_rewrite(step, work, prepend);
}

static lp_status prefix(const lp_tokenizer_step *step, const char *text, size_t size, bool first, lp_work *work) {
  bool wanted = step->prefix == LP_PREFIX_ALWAYS || (step->prefix == LP_PREFIX_FIRST && first);
  bool has = size >= step->size && memcmp(text, step->text, step->size) == 0;
  if (wanted && !has) lp_buf_append(&work->next.text, step->text, step->size);
  lp_buf_append(&work->next.text, text, size);
  return LP_OK;
}

lp_status lp_step_prefix(const lp_tokenizer_step *step, lp_work *work) {
  return lp_work_rewrite(step, work, prefix);
}

static size_t leading_space(const char *text, size_t size) {
  uint32_t code;
  for (size_t at = 0, length; at < size; at += length) {
    length = lp_utf8_next(text + at, &code);
    if (!lp_utf8_is_space(code)) return at;
  }
  return size;
}

static size_t trailing_space(const char *text, size_t size) {
  size_t end = size;
  uint32_t code;
  while (end > 0) {
    size_t at = end - 1;
    while (((uint8_t)text[at] & 0xC0) == 0x80)
      at--;
    (void)lp_utf8_next(text + at, &code);
    if (!lp_utf8_is_space(code)) break;
    end = at;
  }
  return size - end;
}

lp_status lp_step_strip(const lp_tokenizer_step *step, lp_work *work) {
  lp_work_begin(work);
  for (size_t i = 0; i < work->now.list.count; i++) {
    lp_piece piece = work->now.list.data[i];
    const char *text = lp_buf_text(&work->now.text) + piece.start;
    size_t left = step->left && piece.token < 0 ? leading_space(text, piece.size) : 0;
    size_t right = step->right && piece.token < 0 ? trailing_space(text + left, piece.size - left) : 0;
    lp_work_add_part(work, piece, left, piece.size - right, piece.token);
  }
  lp_work_swap_list(work);
  return LP_OK;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* Printable bytes stand for themselves; the others become U+0100 and up, in order. */
static bool prints(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

uint32_t lp_byte_char(uint8_t byte) {
  if (prints(byte)) return byte;
  if (byte <= ' ') return 0x100u + byte;            /* 00..20 -> 100..120 */
  if (byte <= 0xA0) return 0x121u + (byte - 0x7Fu); /* 7F..A0 -> 121..142 */
  return 0x143u;                                    /* AD */
}

int lp_char_byte(uint32_t code) {
  if (code < 0x100) return prints(code) ? (int)code : -1;
  if (code <= 0x120) return (int)code - 0x100;
  if (code <= 0x142) return (int)code - 0x121 + 0x7F;
  return code == 0x143 ? 0xAD : -1;
}

static lp_status to_byte_chars(const lp_tokenizer_step *step, const char *text, size_t size, bool first,
                               lp_work *work) {
  (void)step, (void)first;
  char chunk[512];
  size_t used = 0;
  for (size_t i = 0; i < size; i++) {
    uint32_t code = lp_byte_char((uint8_t)text[i]);
    if (used + 2 > sizeof chunk) {
      lp_buf_append(&work->next.text, chunk, used);
      used = 0;
    }
    if (code >= 0x80) {
      chunk[used++] = (char)(0xC0 | code >> 6);
      chunk[used++] = (char)(0x80 | (code & 0x3F));
    } else {
      chunk[used++] = (char)code;
    }
  }
  lp_buf_append(&work->next.text, chunk, used);
  return LP_OK;
}

lp_status lp_step_bytes(const lp_tokenizer_step *step, lp_work *work) {
  return lp_work_rewrite(step, work, to_byte_chars);
}

static lp_status too_complex(lp_work *work) {
  return lp_error(work->diag, LP_LOC_NONE, "the tokenizer's pattern needs too many steps for this text");
}

/* Appends text[from, to) of a piece, of which so many bytes from `begin` on then stand for the first character. */
static void append_between(lp_work *work, lp_piece piece, size_t from, size_t to, size_t begin, size_t *origin) {
  lp_buf_append(&work->next.text, lp_buf_text(&work->now.text) + piece.start + from, to - from);
  if (piece.origin > from) *origin = work->next.text.size - begin - (to > piece.origin ? to - piece.origin : 0);
}

/* The text in place of a match stands for the last of the characters that matched. */
lp_status lp_step_replace(const lp_tokenizer_step *step, lp_work *work) {
  lp_matcher matcher;
  lp_matcher_init(&matcher, step->pattern);
  int more = 0;
  lp_work_begin(work);
  for (size_t i = 0; i < work->now.list.count && more == 0; i++) {
    lp_piece piece = work->now.list.data[i];
    const char *text = lp_buf_text(&work->now.text) + piece.start;
    size_t begin = work->next.text.size, done = 0, origin = 0, start, end;
    lp_matcher_reset(&matcher, text, piece.size);
    /* Empty text has no matches in the reference, not even of an empty pattern. */
    while (piece.token < 0 && piece.size > 0 && (more = lp_matcher_next(&matcher, &start, &end)) > 0) {
      append_between(work, piece, done, start, begin, &origin);
      lp_buf_append(&work->next.text, step->text, step->size);
      if (piece.origin > 0 && piece.origin >= end) origin = work->next.text.size - begin;
      done = end;
    }
    append_between(work, piece, done, piece.size, begin, &origin);
    lp_work_add(work, begin, piece.token, origin);
  }
  lp_matcher_free(&matcher);
  if (more < 0) return too_complex(work);
  lp_work_swap(work);
  return LP_OK;
}

/* ---- split ------------------------------------------------------------------------------------------------------- */

/* Collects the stretches of one piece, which are the matches and the text between them, and applies the behaviour. */
typedef struct {
  size_t start, end;
  bool match;
} stretch;
typedef LP_VEC(stretch) stretches;

static int find_stretches(lp_matcher *matcher, const char *text, size_t size, bool invert, stretches *out) {
  size_t done = 0, start, end;
  int more;
  out->count = 0;
  lp_matcher_reset(matcher, text, size);
  while ((more = lp_matcher_next(matcher, &start, &end)) > 0) {
    if (start > done) lp_vec_push(out, ((stretch){done, start, invert}));
    lp_vec_push(out, ((stretch){start, end, !invert}));
    done = end;
  }
  if (done < size) lp_vec_push(out, ((stretch){done, size, invert}));
  return more;
}

/* Tells whether stretch `at` joins the stretch before it in one piece. */
static bool joins_previous(const stretches *all, size_t at, lp_split_behaviour behaviour) {
  if (at == 0) return false;
  bool match = all->data[at].match, before = all->data[at - 1].match;
  switch (behaviour) {
  case LP_SPLIT_CONTIGUOUS:
    return match == before;
  case LP_SPLIT_MERGED_WITH_PREVIOUS:
    return match && !before;
  case LP_SPLIT_MERGED_WITH_NEXT:
    return before && !match;
  case LP_SPLIT_REMOVED:
  case LP_SPLIT_ISOLATED:
    return false;
  }
  return false;
}

static void add_stretches(const stretches *all, const lp_tokenizer_step *step, lp_piece piece, lp_work *work) {
  size_t start = 0, end = 0;
  for (size_t i = 0; i < all->count; i++) {
    stretch s = all->data[i];
    if (joins_previous(all, i, step->behaviour)) {
      end = s.end;
      continue;
    }
    lp_work_add_part(work, piece, start, end, -1);
    start = s.start;
    end = step->behaviour == LP_SPLIT_REMOVED && s.match ? s.start : s.end;
  }
  lp_work_add_part(work, piece, start, end, -1);
}

lp_status lp_step_split(const lp_tokenizer_step *step, lp_work *work) {
  lp_matcher matcher;
  lp_matcher_init(&matcher, step->pattern);
  stretches all = {0};
  int rc = 0;
  lp_work_begin(work);
  for (size_t i = 0; i < work->now.list.count && rc == 0; i++) {
    lp_piece piece = work->now.list.data[i];
    if (piece.token >= 0) {
      lp_vec_push(&work->next.list, piece);
      continue;
    }
    rc = find_stretches(&matcher, lp_buf_text(&work->now.text) + piece.start, piece.size, step->invert, &all);
    add_stretches(&all, step, piece, work);
  }
  lp_vec_free(&all);
  lp_matcher_free(&matcher);
  if (rc < 0) return too_complex(work);
  lp_work_swap_list(work);
  return LP_OK;
}
