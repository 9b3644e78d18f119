/* The steps of normalizers and pre-tokenizers, and the two lists of pieces that steps work on. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/steps.h"

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

void lp_work_add(lp_work *work, size_t start, int32_t token, bool first) {
  size_t size = work->next.text.size - start;
  if (size == 0 && token < 0 && !work->keep_empty) return;
  lp_piece piece = {.start = start, .size = size, .token = token, .first = first};
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
    size_t start = work->next.text.size;
    const char *text = lp_buf_text(&work->now.text) + piece.start;
    if (piece.token >= 0)
      lp_buf_append(&work->next.text, text, piece.size);
    else
      LP_TRY(rewrite(step, text, piece.size, piece.first, work));
    lp_work_add(work, start, piece.token, piece.first);
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

static lp_status strip(const lp_tokenizer_step *step, const char *text, size_t size, bool first, lp_work *work) {
  (void)first;
  size_t left = step->left ? leading_space(text, size) : 0;
  size_t right = step->right && left < size ? trailing_space(text + left, size - left) : 0;
  lp_buf_append(&work->next.text, text + left, size - left - right);
  return LP_OK;
}

lp_status lp_step_strip(const lp_tokenizer_step *step, lp_work *work) {
  return lp_work_rewrite(step, work, strip);
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

lp_status lp_step_replace(const lp_tokenizer_step *step, lp_work *work) {
  lp_matcher matcher;
  lp_matcher_init(&matcher, step->pattern);
  int more = 0;
  lp_work_begin(work);
  for (size_t i = 0; i < work->now.list.count && more == 0; i++) {
    lp_piece piece = work->now.list.data[i];
    const char *text = lp_buf_text(&work->now.text) + piece.start;
    size_t begin = work->next.text.size, done = 0, start, end;
    lp_matcher_reset(&matcher, text, piece.size);
    /* Empty text has no matches in the reference, not even of an empty pattern. */
    while (piece.token < 0 && piece.size > 0 && (more = lp_matcher_next(&matcher, &start, &end)) > 0) {
      lp_buf_append(&work->next.text, text + done, start - done);
      lp_buf_append(&work->next.text, step->text, step->size);
      done = end;
    }
    lp_buf_append(&work->next.text, text + done, piece.size - done);
    lp_work_add(work, begin, piece.token, piece.first);
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
  lp_piece open = {.start = piece.start, .token = -1};
  for (size_t i = 0; i < all->count; i++) {
    stretch s = all->data[i];
    if (joins_previous(all, i, step->behaviour)) {
      open.size = piece.start + s.end - open.start;
      continue;
    }
    if (open.size > 0) lp_vec_push(&work->next.list, open);
    open.start = piece.start + s.start;
    open.first = piece.first && s.start == 0;
    open.size = step->behaviour == LP_SPLIT_REMOVED && s.match ? 0 : s.end - s.start;
  }
  if (open.size > 0) lp_vec_push(&work->next.list, open);
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
