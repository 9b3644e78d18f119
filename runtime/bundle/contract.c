/* Computes and checks contracts: contract.h. */
#include "runtime/bundle/contract.h"
#include "base/abi.h"
#include "base/digest.h"

#include <string.h>

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
