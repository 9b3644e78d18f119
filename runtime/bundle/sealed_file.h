/* Sealed files: files that are either complete or absent. They are written under another name and then renamed, and a
 * checksum covers their whole content. Only their owner may read them, since they hold users' text. Private to
 * runtime/.
 *
 * A file begins with 40 bytes, little endian: "llmpart\n", four letters for its kind, uint32 version, uint64 bytes of
 * the head, uint64 bytes of the payload, uint32 zero, uint32 CRC-32C of everything except this field. The head (a
 * message of protobuf-c) and the payload (raw data) follow. */
#pragma once

#include "base/base.h"
#include "base/file.h"

typedef struct {
  const char *letters; /* four characters */
  const char *title;   /* "session file", for messages */
  uint32_t version;
} lp_sealed_kind;

/* An open file. `head` and `payload` point into the mapping. */
typedef struct {
  lp_mapping mapping;
  const uint8_t *head, *payload;
  size_t head_size, payload_size;
} lp_sealed;

/* Writes PATH.new and renames it to PATH, which it replaces. After a failure PATH is as it was. */
LP_MUST_USE lp_status lp_sealed_write(const char *path, const lp_sealed_kind *kind, const lp_buf *head,
                                      const lp_buf *payload, lp_diag *diag);
/* Maps the file and checks it. Fails on a file of another kind or version and on a damaged one. After success the
 * caller releases `out` with lp_sealed_close. */
LP_MUST_USE lp_status lp_sealed_open(const char *path, const lp_sealed_kind *kind, lp_sealed *out, lp_diag *diag);
void lp_sealed_close(lp_sealed *sealed);
