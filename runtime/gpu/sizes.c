/* Evaluates sizes, and lays out buffers. */
#include "runtime/gpu/sizes.h"

#include "base/poly.h"

enum { SLOT_ALIGNMENT = 4096 }; /* a GPU can share memory with this alignment in place */
enum { GRAIN = 256 };           /* tokens */

void lp_gpu_grain(const lp_gpu *gpu, const int64_t *sym, int64_t past, int64_t out[LP_MAX_NAMED_SYMBOLS]) {
  size_t count = gpu->table.symbols.names.count;
  memcpy(out, sym, sizeof *out * count);
  if (count > LP_SYM_P) out[LP_SYM_P] = past / GRAIN * GRAIN + GRAIN - 1;
}

bool lp_gpu_grows(const lp_poly *size) {
  return lp_poly_has(size, LP_SYM_P + 1);
}

bool lp_gpu_applies(const lp_gpu *gpu, const lp_gpu_launch *launch, const int64_t *sym) {
  if (!launch->few) return true;
  int64_t few = lp_gpu_eval(gpu, launch->few, sym);
  return few >= launch->least && few <= launch->most;
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */

int64_t lp_gpu_eval(const lp_gpu *gpu, const lp_poly *size, const int64_t *sym) {
  return lp_poly_eval(size, sym, gpu->table.symbols.names.count);
}

int64_t lp_gpu_slot_bytes(const lp_gpu *gpu, const lp_gpu_slot *slot, const int64_t *sym) {
  int64_t most = 0;
  for (int32_t i = 0; i < slot->count; i++) {
    int64_t bytes = lp_gpu_eval(gpu, slot->size[i], sym);
    if (bytes > most) most = bytes;
  }
  return most;
}

int64_t lp_gpu_scratch_bytes(const lp_gpu *gpu, const lp_gpu_layout *layout, const int64_t *sym) {
  int64_t most = 0;
  LP_FOR_EACH(const lp_gpu_scratch, scratch, layout->scratch, layout->scratch_count) {
    int64_t bytes = lp_gpu_eval(gpu, scratch->bytes, sym);
    if (scratch->library && !gpu->library) continue;
    if (lp_gpu_eval(gpu, scratch->few, sym) <= scratch->most && bytes > most) most = bytes;
  }
  return most;
}

int64_t lp_gpu_workspace_bytes(const lp_gpu *gpu, const int64_t *sym) {
  for (int32_t i = 0; i < gpu->table.launcher_count && gpu->library; i++)
    for (int32_t k = 0; k < gpu->table.launcher[i].count; k++) {
      const lp_gpu_launch *launch = &gpu->table.launcher[i].launch[k];
      if (launch->product && lp_gpu_applies(gpu, launch, sym))
        return lp_gpu_end_of(0, (int64_t)gpu->library->workspace);
    }
  return 0;
}

int64_t lp_gpu_end_of(int64_t begin, int64_t bytes) {
  if (begin < 0 || bytes > INT64_MAX / 2 - begin) return -1;
  return (begin + bytes + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
}

/* A GPU's own memory is laid out for all contexts of a grain, so that buffers do not move within a grain. */
static int64_t room_for(const lp_gpu *gpu, const lp_gpu_layout *layout, int32_t slot, const int64_t *sym) {
  int64_t most[LP_MAX_NAMED_SYMBOLS];
  int64_t bytes =
      slot < layout->slots ? lp_gpu_slot_bytes(gpu, &layout->sizes[slot], sym) : lp_gpu_scratch_bytes(gpu, layout, sym);
  if (!gpu->api->apart) return bytes;
  lp_gpu_grain(gpu, sym, sym[LP_SYM_P], most);
  int64_t later = slot < layout->slots ? lp_gpu_slot_bytes(gpu, &layout->sizes[slot], most)
                                       : lp_gpu_scratch_bytes(gpu, layout, most);
  return later > bytes ? later : bytes;
}

int64_t lp_gpu_lay_out(const lp_gpu *gpu, int32_t index, const int64_t *sym, int64_t *offset) {
  const lp_gpu_layout *layout = &gpu->table.layout[index];
  int64_t end = 0;
  for (int32_t i = 0; i < layout->slots && end >= 0; i++) {
    for (int32_t k = 0; k < layout->buffers; k++)
      if (layout->slot[k] == i) offset[k] = end;
    end = lp_gpu_end_of(end, room_for(gpu, layout, i, sym));
  }
  end = lp_gpu_end_of(end, lp_gpu_workspace_bytes(gpu, sym));
  offset[layout->buffers] = end;
  return lp_gpu_end_of(end, room_for(gpu, layout, layout->slots, sym));
}
