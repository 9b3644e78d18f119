/* Any bytes as manifest.json and, after a NUL, as a safetensors file. */
#include <string.h>

#include "base/file.h"
#include "base/side.h"
#include "runtime/bundle/bundle_file.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
  size_t text = end ? (size_t)(end - data) : size;
  lp_arena *arena = lp_arena_create();
  lp_diag *diag = lp_diag_create();
  lp_manifest manifest;
  if (lp_manifest_parse("manifest.json", (const char *)data, text, arena, &manifest, diag) == LP_OK) {
    const int64_t sym[LP_MAX_SYMBOLS] = {2, 3, 5, 1, 8, 2};
    size_t bytes;
    for (int32_t i = 0; i < manifest.output_count; i++)
      (void)lp_tensor_bytes(&manifest.outputs[i].tensor, sym, manifest.symbol_count, &bytes);
    lp_states states;
    lp_states_init(&states, &manifest, LP_SIDE_DEVICE);
    if (lp_states_bytes(&states, sym, &bytes) && bytes < 1 << 20) (void)!lp_states_reserve(&states, sym, diag);
    lp_states_free(&states);
  }
  lp_manifest_clear(&manifest);
  if (end) {
    lp_mapping mapping = {.data = end + 1, .size = size - text - 1};
    size_t offset = 0;
    (void)!lp_safetensors_check("weights.safetensors", &mapping, &offset, diag);
  }
  lp_diag_free(diag);
  lp_arena_free(arena);
  return 0;
}
