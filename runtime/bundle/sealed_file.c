/* Writes and maps sealed files: sealed_file.h describes the format. */
#include "runtime/bundle/sealed_file.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { MAGIC = 8, LETTERS = 4, VERSION_AT = 12, HEAD_AT = 16, PAYLOAD_AT = 24, CRC_AT = 36, PREFIX = 40 };
static const char magic[MAGIC + 1] = "llmpart\n";

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool write_all(int fd, const void *data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t now = write(fd, (const char *)data + done, size - done);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) return false;
    done += (size_t)now;
  }
  return true;
}

static void make_prefix(const lp_sealed_kind *kind, const lp_buf *head, const lp_buf *payload, uint8_t out[PREFIX]) {
  memset(out, 0, PREFIX);
  memcpy(out, magic, MAGIC);
  memcpy(out + MAGIC, kind->letters, LETTERS);
  lp_put_bytes(out + VERSION_AT, kind->version, 4);
  lp_put_bytes(out + HEAD_AT, head->size, 8);
  lp_put_bytes(out + PAYLOAD_AT, payload->size, 8);
  uint32_t crc = lp_crc32c(0, out, CRC_AT);
  crc = lp_crc32c(crc, head->data, head->size);
  lp_put_bytes(out + CRC_AT, lp_crc32c(crc, payload->data, payload->size), 4);
}

lp_status lp_sealed_write(const char *path, const lp_sealed_kind *kind, const lp_buf *head, const lp_buf *payload,
                          lp_diag *diag) {
  uint8_t prefix[PREFIX];
  LP_OWNED(lp_buf_free) lp_buf fresh = {0};
  lp_buf_printf(&fresh, "%s.new", path);
  make_prefix(kind, head, payload, prefix);
  int fd = open(fresh.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool good = fd >= 0 && write_all(fd, prefix, PREFIX) && write_all(fd, head->data, head->size) &&
              write_all(fd, payload->data, payload->size);
  int problem = errno;
  if (fd >= 0 && close(fd) != 0 && good) {
    good = false;
    problem = errno;
  }
  if (good && rename(fresh.data, path) != 0) {
    good = false;
    problem = errno;
  }
  if (!good && fd >= 0) (void)unlink(fresh.data);
  return good ? LP_OK : lp_error(diag, LP_LOC_FILE(path), "cannot write: %s", strerror(problem));
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static lp_status check(const char *path, const lp_sealed_kind *kind, const lp_sealed *sealed, lp_diag *diag) {
  const uint8_t *data = sealed->mapping.data;
  size_t size = sealed->mapping.size;
  lp_loc loc = LP_LOC_FILE(path);
  if (size < PREFIX || memcmp(data, magic, MAGIC) != 0 || memcmp(data + MAGIC, kind->letters, LETTERS) != 0)
    return lp_error(diag, loc, "is no %s", kind->title);
  uint64_t version = lp_get_bytes(data + VERSION_AT, 4), head = lp_get_bytes(data + HEAD_AT, 8),
           payload = lp_get_bytes(data + PAYLOAD_AT, 8);
  if (version != kind->version)
    return lp_error(diag, loc, "a %s of version %" PRIu64 "; version %" PRIu32 " is read here", kind->title, version,
                    kind->version);
  if (head > size - PREFIX || payload != size - PREFIX - head)
    return lp_error(diag, loc, "the %s is damaged: it has %zu bytes, not those that it names", kind->title, size);
  uint32_t crc = lp_crc32c(lp_crc32c(0, data, CRC_AT), data + PREFIX, size - PREFIX);
  if (crc != lp_get_bytes(data + CRC_AT, 4))
    return lp_error(diag, loc, "the %s is damaged: its checksum differs", kind->title);
  return LP_OK;
}

lp_status lp_sealed_open(const char *path, const lp_sealed_kind *kind, lp_sealed *out, lp_diag *diag) {
  *out = (lp_sealed){0};
  LP_TRY(lp_file_map(path, &out->mapping, diag));
  lp_status status = check(path, kind, out, diag);
  if (status != LP_OK) {
    lp_sealed_close(out);
    return status;
  }
  out->head = out->mapping.data + PREFIX;
  out->head_size = (size_t)lp_get_bytes(out->mapping.data + HEAD_AT, 8);
  out->payload = out->head + out->head_size;
  out->payload_size = out->mapping.size - PREFIX - out->head_size;
  return LP_OK;
}

void lp_sealed_close(lp_sealed *sealed) {
  lp_file_unmap(&sealed->mapping);
  *sealed = (lp_sealed){0};
}
