/* lp_layout_N(sym, offset): buffers of one slot share memory, slots follow one another, scratch comes last. The scratch
 * region's offset is one more entry, after the buffers'. */
#include "backend/cuda/cuda_internal.h"
#include "base/map.h"

#include <stdlib.h>

static void print_slots(const gpu_plan *plan, const gpu_program *program, const gpu_sizes *slots, lp_buf *out) {
  lp_buf_printf(out, "  static const int slot[] = {");
  for (int64_t i = 0; i < program->buffer_count; i++)
    lp_buf_printf(out, "%s%" PRId64, i ? i % 24 ? ", " : ",\n                             " : "", program->slot[i]);
  lp_buf_puts(out, program->buffer_count ? "};\n" : "0};\n");
  lp_buf_printf(out, "  long size[%" PRId64 "] = {0};\n", program->slot_count + 1);
  for (int64_t i = 0; i < program->slot_count; i++)
    for (size_t k = 0; k < slots[i].count; k++) {
      lp_buf_printf(out, "  grow(&size[%" PRId64 "], ", i);
      gpu_print_size(plan, slots[i].data[k], out);
      lp_buf_puts(out, ");\n");
    }
}

static void print_scratch(const gpu_plan *plan, const gpu_program *program, lp_buf *out) {
  lp_map *seen = lp_map_create();
  lp_buf line = {0};
  for (size_t i = 0; i < program->scratch.count; i++) {
    const gpu_scratch *scratch = &program->scratch.data[i];
    if (scratch->library) continue;
    lp_buf_clear(&line);
    lp_buf_puts(&line, "  if (");
    gpu_print_size(plan, scratch->few, &line);
    lp_buf_printf(&line, " <= %" PRId64 ") grow(&size[%" PRId64 "], ", scratch->most, program->slot_count);
    gpu_print_size(plan, scratch->bytes, &line);
    lp_buf_puts(&line, ");\n");
    if (lp_map_has(seen, lp_buf_text(&line))) continue;
    lp_map_put(seen, lp_buf_text(&line), NULL);
    lp_buf_puts(out, lp_buf_text(&line));
  }
  lp_buf_free(&line);
  lp_map_free(seen);
}

static void print_layout(const gpu_plan *plan, const gpu_program *program, lp_buf *out) {
  gpu_sizes *slots = gpu_slot_sizes(plan, program);
  lp_buf_printf(out, "\nextern \"C\" int64_t %s(const int64_t *sym, int64_t *offset) {\n", program->layout);
  lp_buf_puts(out, "  [[maybe_unused]] const Frame f = sizes_of(sym);\n");
  print_slots(plan, program, slots, out);
  print_scratch(plan, program, out);
  lp_buf_printf(out, "  return place(size, %" PRId64 ", slot, %" PRId64 ", offset);\n}\n", program->slot_count,
                program->buffer_count);
  for (int64_t i = 0; i < program->slot_count; i++)
    lp_vec_free(&slots[i]);
}

void cuda_print_layouts(const gpu_plan *plan, lp_buf *out) {
  lp_map *done = lp_map_create();
  for (size_t i = 0; i < plan->programs.count; i++) {
    if (lp_map_has(done, plan->programs.data[i].layout)) continue;
    lp_map_put(done, plan->programs.data[i].layout, NULL);
    print_layout(plan, &plan->programs.data[i], out);
  }
  lp_map_free(done);
}
