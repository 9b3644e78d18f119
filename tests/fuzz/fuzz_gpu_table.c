/* Any bytes as launches.json. */
#include "runtime/gpu/gpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lp_arena *arena = lp_arena_create();
  lp_diag *diag = lp_diag_create();
  lp_gpu_table table;
  (void)!lp_gpu_table_parse("launches.json", (const char *)data, size, arena, &table, diag);
  lp_gpu_table_clear(&table);
  lp_diag_free(diag);
  lp_arena_free(arena);
  return 0;
}
