/* Files that are whole or not there: written under another name and renamed, with a checksum over all of it. What they hold is private:
 * only their owner may read them. Private to runtime/.
 *
 * 40 bytes, little endian, come first: "llmpart\n", four letters of its kind, uint32 version, uint64 bytes of the head, uint64 bytes of
 * the payload, uint32 zero, uint32 CRC-32C of everything but itself. Head and payload follow. */
#ifndef LP_SEALED_FILE_H
#define LP_SEALED_FILE_H

#include "base/base.h"
#include "base/file.h"

typedef struct {
  const char *letters; /* four */
  const char *title;   /* "session file", for messages */
  uint32_t version;
} lp_sealed_kind;

typedef struct {
  lp_mapping mapping;
  const uint8_t *head, *payload;
  size_t head_size, payload_size;
} lp_sealed;

/* Replaces what was there. The other name is PATH.new. */
LP_MUST_USE lp_status lp_sealed_write(const char *path, const lp_sealed_kind *kind, const lp_buf *head,
                                      const lp_buf *payload, lp_diag *diag);
/* Reports what is no such file, of another version, or damaged. Release with lp_sealed_close. */
LP_MUST_USE lp_status lp_sealed_open(const char *path, const lp_sealed_kind *kind, lp_sealed *out, lp_diag *diag);
void lp_sealed_close(lp_sealed *sealed);

#endif
