/* Maps and checks the files of a bundle: bundle_file.h. */
#include "runtime/bundle/bundle_file.h"
#include "base/file.h"
#include "runtime/bundle/verifier.h"

#include <errno.h>
#include <string.h>

/* Files without a CRC-32C are compared by SHA-256: up to this many bytes always, larger ones only when asked. */
enum { SHA_AT_LOAD = 64 << 20 };

lp_status lp_bundle_file_map(const char *root, const char *relative, const char *path, lp_mapping *out, lp_diag *diag) {
  const char *why = "";
  switch (lp_file_map_beneath(root, relative, out, &why)) {
  case LP_FILE_FOUND:
    return LP_OK;
  case LP_FILE_ABSENT:
    return lp_error(diag, LP_LOC_FILE(path), "cannot open: %s", strerror(ENOENT));
  case LP_FILE_REFUSED:
    break;
  }
  return lp_error(diag, LP_LOC_FILE(path), "the path %s", why);
}

lp_status lp_bundle_file_open(const char *root, const lp_file_desc *want, const char *path, lp_mapping *out,
                              lp_diag *diag) {
  LP_TRY(lp_bundle_file_map(root, want->path, path, out, diag));
  if (out->size == (size_t)want->bytes) return LP_OK;
  lp_status status = lp_error(diag, LP_LOC_FILE(path), "%zu bytes; the manifest says %" PRId64, out->size, want->bytes);
  lp_file_unmap(out);
  return status;
}

bool lp_bundle_file_checks_at_load(const lp_file_desc *want, bool thorough) {
  return thorough || want->has_crc || want->bytes <= SHA_AT_LOAD;
}

lp_status lp_bundle_file_load(const char *root, const lp_file_desc *want, const char *path, bool thorough,
                              lp_mapping *out, lp_diag *diag) {
  LP_TRY(lp_bundle_file_open(root, want, path, out, diag));
  if (!lp_bundle_file_checks_at_load(want, thorough)) return LP_OK;
  return lp_file_verify(path, want, out->data, out->size, thorough, diag);
}
