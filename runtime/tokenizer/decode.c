/* The steps of decoders, which turn pieces, at first one per token, back into text. */

#include "base/utf8.h"
#include "runtime/tokenizer/steps.h"

static const char *piece_text(const lp_work *work, size_t index) {
  return lp_buf_text(&work->now.text) + work->now.list.data[index].start;
}

static bool append_bytes(const char *text, size_t size, lp_buf *out) {
  size_t begin = out->size, bad;
  for (size_t at = 0; at < size;) {
    size_t length = lp_utf8_length(text + at, size - at, &bad);
    int byte = length > 0 ? lp_char_byte(lp_utf8_read(text + at, length)) : -1;
    if (byte < 0) {
      out->size = begin;
      return false;
    }
    char c = (char)byte;
    lp_buf_append(out, &c, 1);
    at += length;
  }
  return true;
}

lp_status lp_step_unbytes(const lp_tokenizer_step *step, lp_work *work) {
  (void)step;
  lp_buf bytes = {0};
  for (size_t i = 0; i < work->now.list.count; i++) {
    size_t size = work->now.list.data[i].size;
    if (!append_bytes(piece_text(work, i), size, &bytes)) lp_buf_append(&bytes, piece_text(work, i), size);
  }
  lp_work_begin(work);
  lp_utf8_repair(lp_buf_text(&bytes), bytes.size, &work->next.text);
  lp_work_add(work, 0, -1, 0);
  lp_buf_free(&bytes);
  lp_work_swap(work);
  return LP_OK;
}

/* Appends `text` with every from[from_size] replaced by `to`. */
static void replace_text(const char *text, size_t size, const char *from, size_t from_size, const char *to,
                         lp_buf *out) {
  size_t at = 0;
  while (at < size) {
    bool hit = from_size > 0 && size - at >= from_size && memcmp(text + at, from, from_size) == 0;
    if (hit)
      lp_buf_puts(out, to);
    else
      lp_buf_append(out, text + at, 1);
    at += hit ? from_size : 1;
  }
}

static void replace_all(const char *text, size_t size, const lp_tokenizer_step *from, const char *to, lp_buf *out) {
  replace_text(text, size, from->text, from->size, to, out);
}

lp_status lp_step_unmetaspace(const lp_tokenizer_step *step, lp_work *work) {
  lp_work_begin(work);
  for (size_t i = 0; i < work->now.list.count; i++) {
    size_t start = work->next.text.size;
    bool drop = i == 0 && step->prefix != LP_PREFIX_NEVER;
    replace_all(piece_text(work, i), work->now.list.data[i].size, step, drop ? "" : " ", &work->next.text);
    lp_work_add(work, start, -1, 0);
  }
  lp_work_swap(work);
  return LP_OK;
}

lp_status lp_step_suffix(const lp_tokenizer_step *step, lp_work *work) {
  lp_work_begin(work);
  size_t count = work->now.list.count;
  for (size_t i = 0; i < count; i++) {
    size_t start = work->next.text.size;
    replace_all(piece_text(work, i), work->now.list.data[i].size, step, i + 1 == count ? "" : " ", &work->next.text);
    lp_work_add(work, start, -1, 0);
  }
  lp_work_swap(work);
  return LP_OK;
}

static int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* The byte of "<0xNN>", or -1. As in the reference, "+F" counts as a number. */
static int fallback_byte(const char *text, size_t size) {
  if (size != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
  int high = text[3] == '+' ? 0 : hex_value(text[3]), low = hex_value(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void lp_step_take_bytes(lp_buf *piece) {
  LP_OWNED(lp_buf_free) lp_buf bytes = {0};
  if (append_bytes(lp_buf_text(piece), piece->size, &bytes)) {
    lp_buf_clear(piece);
    lp_buf_append(piece, lp_buf_text(&bytes), bytes.size);
  }
}

void lp_step_take_fallback(lp_buf *piece) {
  int byte = fallback_byte(lp_buf_text(piece), piece->size);
  char c = (char)byte;
  if (byte < 0) return;
  lp_buf_clear(piece);
  lp_buf_append(piece, &c, 1);
}

static void flush_bytes(lp_buf *bytes, lp_work *work) {
  size_t start = work->next.text.size;
  if (bytes->size == 0) return;
  if (lp_utf8_valid(bytes->data, bytes->size)) {
    lp_buf_append(&work->next.text, bytes->data, bytes->size);
    lp_work_add(work, start, -1, 0);
  } else {
    for (size_t i = 0; i < bytes->size; i++) {
      lp_buf_puts(&work->next.text, "\xEF\xBF\xBD");
      lp_work_add(work, work->next.text.size - 3, -1, 0);
    }
  }
  lp_buf_clear(bytes);
}

lp_status lp_step_byte_fallback(const lp_tokenizer_step *step, lp_work *work) {
  (void)step;
  lp_buf bytes = {0};
  lp_work_begin(work);
  for (size_t i = 0; i < work->now.list.count; i++) {
    size_t size = work->now.list.data[i].size;
    int byte = fallback_byte(piece_text(work, i), size);
    if (byte >= 0) {
      char c = (char)byte;
      lp_buf_append(&bytes, &c, 1);
      continue;
    }
    flush_bytes(&bytes, work);
    size_t start = work->next.text.size;
    lp_buf_append(&work->next.text, piece_text(work, i), size);
    lp_work_add(work, start, -1, 0);
  }
  flush_bytes(&bytes, work);
  lp_buf_free(&bytes);
  lp_work_swap(work);
  return LP_OK;
}

lp_status lp_step_fuse(const lp_tokenizer_step *step, lp_work *work) {
  (void)step;
  lp_work_begin(work);
  for (size_t i = 0; i < work->now.list.count; i++)
    lp_buf_append(&work->next.text, piece_text(work, i), work->now.list.data[i].size);
  lp_work_add(work, 0, -1, 0);
  lp_work_swap(work);
  return LP_OK;
}

static bool ends_with(const char *text, size_t size, const lp_tokenizer_step *step) {
  return size >= step->size && memcmp(text + size - step->size, step->text, step->size) == 0;
}

lp_status lp_step_cut(const lp_tokenizer_step *step, lp_work *work) {
  lp_work_begin(work);
  for (size_t i = 0; i < work->now.list.count; i++) {
    const char *text = piece_text(work, i);
    size_t size = work->now.list.data[i].size, start = work->next.text.size;
    for (size_t n = 0; n < step->cut_left && size >= step->size && memcmp(text, step->text, step->size) == 0; n++) {
      text += step->size;
      size -= step->size;
    }
    for (size_t n = 0; n < step->cut_right && ends_with(text, size, step); n++)
      size -= step->size;
    lp_buf_append(&work->next.text, text, size);
    lp_work_add(work, start, -1, 0);
  }
  lp_work_swap(work);
  return LP_OK;
}

/* ---- WordPiece and CTC ------------------------------------------------------------------------------------------- */

static void replace_in(lp_buf *text, const char *from, const char *to) {
  lp_buf out = {0};
  replace_text(lp_buf_text(text), text->size, from, strlen(from), to, &out);
  lp_buf_free(text);
  *text = out;
}

/* The reference's rules against spaces before punctuation, within one piece. */
static void clean_spaces(lp_buf *text) {
  static const char *const rules[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                         {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                         {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (size_t i = 0; i < LP_COUNT(rules); i++)
    replace_in(text, rules[i][0], rules[i][1]);
}

lp_status lp_step_unwordpiece(const lp_tokenizer_step *step, lp_work *work) {
  lp_buf piece = {0};
  lp_work_begin(work);
  for (size_t i = 0; i < work->now.list.count; i++) {
    const char *text = piece_text(work, i);
    size_t size = work->now.list.data[i].size, start = work->next.text.size;
    bool continues = i > 0 && size >= step->size && memcmp(text, step->text, step->size) == 0;
    size_t skip = continues ? step->size : 0;
    lp_buf_clear(&piece);
    if (i > 0 && !continues) lp_buf_append(&piece, " ", 1);
    lp_buf_append(&piece, text + skip, size - skip);
    if (step->left) clean_spaces(&piece);
    lp_buf_append(&work->next.text, lp_buf_text(&piece), piece.size);
    lp_work_add(work, start, -1, 0);
  }
  lp_buf_free(&piece);
  lp_work_swap(work);
  return LP_OK;
}

static bool equals_previous(const lp_work *work, size_t at) {
  size_t size = work->now.list.data[at].size;
  return at > 0 && work->now.list.data[at - 1].size == size &&
         memcmp(piece_text(work, at), piece_text(work, at - 1), size) == 0;
}

lp_status lp_step_ctc(const lp_tokenizer_step *step, lp_work *work) {
  lp_buf piece = {0};
  lp_work_begin(work);
  for (size_t i = 0; i < work->now.list.count; i++) {
    size_t start = work->next.text.size;
    if (equals_previous(work, i)) continue;
    lp_buf_clear(&piece);
    replace_all(piece_text(work, i), work->now.list.data[i].size, step, "", &piece);
    if (step->left) {
      clean_spaces(&piece);
      replace_in(&piece, step->second, " ");
    }
    lp_buf_append(&work->next.text, lp_buf_text(&piece), piece.size);
    if (piece.size > 0) lp_work_add(work, start, -1, 0);
  }
  lp_buf_free(&piece);
  lp_work_swap(work);
  return LP_OK;
}
