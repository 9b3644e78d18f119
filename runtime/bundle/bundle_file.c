/* Maps and checks the files of a bundle: bundle_file.h. */
#include "runtime/bundle/bundle_file.h"
#include "base/abi.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/json/safetensors.h"
#include "runtime/bundle/verifier.h"

#include <errno.h>

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

/* ---- contracts --------------------------------------------------------------------------------------------------- */

/* The last place of `wanted` in the text; NULL: none. */
static const char *find_last(const char *text, size_t size, const char *wanted) {
  const char *last = NULL, *end = text + size;
  for (const char *at = text; at && (at = memmem(at, (size_t)(end - at), wanted, strlen(wanted))); at++)
    last = at;
  return last;
}

/* JSON text holds no line break within a string, so the place is a member in any text that can be read. */
void lp_contract_compute(const char *text, size_t size, char out[LP_SHA256_HEX + 1]) {
  const char *files = find_last(text, size, ",\n \"files\": {");
  out[0] = '\0';
  if (!files) return;
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, text, (size_t)(files - text));
  lp_sha256_hex(&sha, out);
}

lp_status lp_contract_check(const lp_manifest *manifest, const char *path, const lp_mapping *code, lp_diag *diag) {
  enum { MARK = sizeof LP_CONTRACT_MARK - 1 };
  const char *data = (const char *)code->data;
  const char *mark = find_last(data, code->size, LP_CONTRACT_MARK);
  if (!mark) return LP_OK;
  const char *kept = mark + MARK;
  size_t left = code->size - (size_t)(kept - data);
  if (left >= LP_SHA256_HEX && manifest->contract[0] && memcmp(kept, manifest->contract, LP_SHA256_HEX) == 0)
    return LP_OK;
  return lp_error(diag, LP_LOC_FILE(path), "the code was compiled for another manifest than the one beside it");
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

enum { DATA_ALIGNMENT = 64 };

lp_status lp_safetensors_check(const char *path, const lp_mapping *mapping, size_t *data_offset, lp_diag *diag) {
  lp_safetensors header;
  lp_arena *arena = lp_arena_create();
  lp_status status = lp_safetensors_read(path, mapping->data, mapping->size, DATA_ALIGNMENT, arena, &header, diag);
  lp_arena_free(arena);
  *data_offset = header.data_offset;
  return status;
}
