/* Checks the structure of a weights file: see safetensors.h. */
#include "runtime/bundle/safetensors.h"
#include "base/file.h"
#include "base/json/safetensors.h"

enum { DATA_ALIGNMENT = 64 };

lp_status lp_safetensors_check(const char *path, const lp_mapping *mapping, size_t *data_offset, lp_diag *diag) {
  lp_safetensors header;
  lp_arena *arena = lp_arena_create();
  lp_status status = lp_safetensors_read(path, mapping->data, mapping->size, DATA_ALIGNMENT, arena, &header, diag);
  lp_arena_free(arena);
  *data_offset = header.data_offset;
  return status;
}
