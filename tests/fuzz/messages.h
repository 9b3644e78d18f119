/* Messages of the link made of a fuzzer's bytes: every kind and every field that link.proto knows, found by
 * protobuf-c's own tables. */
#ifndef LP_FUZZ_MESSAGES_H
#define LP_FUZZ_MESSAGES_H

#include "base/base.h"
#include "runtime/link/link.pb-c.h"

typedef struct {
  const uint8_t *data;
  size_t size;
} fuzz_bytes;

uint8_t fuzz_byte(fuzz_bytes *from); /* 0 when there are none left */
/* Mostly small; at times the edge of a type, or any 64 bits. */
uint64_t fuzz_number(fuzz_bytes *from);
/* The arena owns all that `out` points to. */
void fuzz_message(fuzz_bytes *from, lp_arena *arena, Lp__Wire__Message *out);

#endif
