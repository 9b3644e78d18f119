/* Seals documents by their SHA-256: seal.h describes the form. */
#include "base/seal.h"
#include "base/digest.h"

enum { DIGITS = 64 };
static const char before[] = " \"seal\": \"", after[] = "\"\n}\n";
enum { BEFORE = sizeof before - 1, AFTER = sizeof after - 1, TAIL = BEFORE + DIGITS + AFTER };

static void digest(const char *text, size_t size, char hex[DIGITS + 1]) {
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, text, size);
  lp_sha256_hex(&sha, hex);
}

void lp_seal_put(lp_buf *text) {
  char hex[DIGITS + 1];
  lp_buf_puts(text, ",\n");
  digest(text->data, text->size, hex);
  lp_buf_printf(text, "%s%s%s", before, hex, after);
}

bool lp_seal_holds(const char *text, size_t size) {
  char hex[DIGITS + 1];
  if (size <= TAIL) return false;
  size_t sealed = size - TAIL;
  const char *tail = text + sealed;
  if (memcmp(tail, before, BEFORE) != 0 || memcmp(tail + BEFORE + DIGITS, after, AFTER) != 0) return false;
  if (text[sealed - 1] != '\n') return false;
  digest(text, sealed, hex);
  return memcmp(hex, tail + BEFORE, DIGITS) == 0;
}
