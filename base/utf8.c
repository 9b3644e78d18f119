/* UTF-8: validation with the usual replacement, reading, writing, white space. */
#include "base/utf8.h"

/* The range of the second byte depends on the first (Unicode 16, table 3-7); later bytes are 80..BF. */
static size_t expected_length(uint8_t lead, uint8_t *low, uint8_t *high) {
  *low = 0x80;
  *high = 0xBF;
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) {
    if (lead == 0xE0) *low = 0xA0;
    if (lead == 0xED) *high = 0x9F;
    return 3;
  }
  if (lead == 0xF0) *low = 0x90;
  if (lead == 0xF4) *high = 0x8F;
  return 4;
}

size_t lp_utf8_length(const char *text, size_t size, size_t *bad) {
  uint8_t low, high;
  *bad = 1;
  if (size == 0) return 0;
  size_t length = expected_length((uint8_t)text[0], &low, &high);
  for (size_t i = 1; i < length; i++) {
    if (i >= size || (uint8_t)text[i] < low || (uint8_t)text[i] > high) {
      *bad = i;
      return 0;
    }
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

uint32_t lp_utf8_read(const char *text, size_t length) {
  static const uint8_t lead_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  uint32_t code = (uint8_t)text[0] & lead_bits[length];
  for (size_t i = 1; i < length; i++)
    code = code << 6 | ((uint8_t)text[i] & 0x3F);
  return code;
}

size_t lp_utf8_next(const char *text, uint32_t *code) {
  uint8_t low, high;
  size_t length = expected_length((uint8_t)text[0], &low, &high);
  *code = lp_utf8_read(text, length);
  return length;
}

void lp_utf8_write(uint32_t code, lp_buf *out) {
  char bytes[4];
  size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  static const uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (size_t i = size; i-- > 1; code >>= 6)
    bytes[i] = (char)(0x80 | (code & 0x3F));
  bytes[0] = (char)(lead[size] | code);
  lp_buf_append(out, bytes, size);
}

void lp_utf8_repair(const char *text, size_t size, lp_buf *out) {
  size_t start = 0, at = 0, bad = 0;
  while (at < size) {
    size_t length = lp_utf8_length(text + at, size - at, &bad);
    if (length > 0) {
      at += length;
      continue;
    }
    lp_buf_append(out, text + start, at - start);
    lp_buf_append(out, "\xEF\xBF\xBD", 3);
    at += bad;
    start = at;
  }
  if (size > start) lp_buf_append(out, text + start, size - start);
}

bool lp_utf8_valid(const char *text, size_t size) {
  size_t bad = 0;
  for (size_t at = 0; at < size;) {
    size_t length = lp_utf8_length(text + at, size - at, &bad);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

bool lp_utf8_is_space(uint32_t code) {
  return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

size_t lp_utf8_count(const char *text, size_t size) {
  size_t count = 0;
  for (size_t i = 0; i < size; i++)
    count += ((uint8_t)text[i] & 0xC0) != 0x80;
  return count;
}
