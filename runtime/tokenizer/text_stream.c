/* Turns a stream of tokens into text. A character may take several tokens, and the text of a token may depend on the
 * one before, so the text of a short window is decoded with and without the new token. */
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"

/* Tells whether the text ends within a character: decoders give U+FFFD for bytes that are not yet a character. */
static bool is_cut(const char *text, size_t size) {
  static const char replacement[] = "\xef\xbf\xbd";
  if (size >= 3 && memcmp(text + size - 3, replacement, 3) == 0) return true;
  size_t follow = 0;
  while (follow < size && follow < 4 && ((uint8_t)text[size - 1 - follow] & 0xc0) == 0x80)
    follow++;
  if (follow >= size) return false;
  uint8_t lead = (uint8_t)text[size - 1 - follow];
  size_t wanted = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
  return follow < wanted;
}

void lp_text_stream_put(lp_text_stream *stream, const lp_tokenizer *tokenizer, int32_t token, lp_buf *out) {
  lp_vec_push(&stream->ids, token);
  lp_buf before = {0}, now = {0};
  const int32_t *window = stream->ids.data + stream->begin;
  lp_tokenizer_decode(tokenizer, window, stream->shown - stream->begin, true, &before);
  lp_tokenizer_decode(tokenizer, window, stream->ids.count - stream->begin, true, &now);
  if (now.size > before.size && !is_cut(now.data, now.size)) {
    lp_buf_append(out, now.data + before.size, now.size - before.size);
    stream->begin = stream->shown;
    stream->shown = stream->ids.count;
  }
  lp_buf_free(&before);
  lp_buf_free(&now);
}

void lp_text_stream_free(lp_text_stream *stream) {
  lp_vec_free(&stream->ids);
  *stream = (lp_text_stream){0};
}
