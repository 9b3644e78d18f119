/* lp_layout_N(sym, offset): buffers of one slot share memory, slots follow one another, scratch comes last. The
 * offset of the scratch region is one more entry, after those of the buffers. */
#include "backend/cuda/cuda_internal.h"

#include "backend/gpu/print.h"
#include "backend/program.h"
#include "base/map.h"

static void print_slots(const gpu_launch_list *list, const lp_side_program *program, const lp_sizes *slots,
                        lp_buf *out) {
  lp_buf_printf(out, "  static const int slot[] = {");
  for (int64_t i = 0; i < program->buffer_count; i++)
    lp_buf_printf(out, "%s%" PRId64, i ? i % 24 ? ", " : ",\n                             " : "", program->slot[i]);
  lp_buf_puts(out, program->buffer_count ? "};\n" : "0};\n");
  lp_buf_printf(out, "  long size[%" PRId64 "] = {0};\n", program->slot_count + 1);
  for (int64_t i = 0; i < program->slot_count; i++)
    for (size_t k = 0; k < slots[i].count; k++) {
      lp_buf_printf(out, "  grow(&size[%" PRId64 "], ", i);
      gpu_print_size(list, slots[i].data[k], out);
      lp_buf_puts(out, ");\n");
    }
}

static void print_scratch(const gpu_launch_list *list, const gpu_program *program, lp_buf *out) {
  LP_OWNED(lp_map_free_at) lp_map *seen = lp_map_create();
  LP_OWNED(lp_buf_free) lp_buf line = {0};
  LP_FOR_VEC(const gpu_scratch, scratch, &program->scratch) {
    if (scratch->library) continue;
    lp_buf_clear(&line);
    lp_buf_puts(&line, "  if (");
    gpu_print_size(list, scratch->few, &line);
    lp_buf_printf(&line, " <= %" PRId64 ") grow(&size[%" PRId64 "], ", scratch->most, program->base.slot_count);
    gpu_print_size(list, scratch->bytes, &line);
    lp_buf_puts(&line, ");\n");
    if (lp_map_has(seen, lp_buf_text(&line))) continue;
    lp_map_put(seen, lp_buf_text(&line), NULL);
    lp_buf_puts(out, lp_buf_text(&line));
  }
}

static void print_layout(const gpu_launch_list *list, const gpu_program *program, lp_buf *out) {
  const lp_side_program *base = &program->base;
  lp_sizes *slots = lp_program_slot_sizes(&list->programs, base);
  lp_buf_printf(out, "\nextern \"C\" int64_t %s(const int64_t *sym, int64_t *offset) {\n", base->layout);
  lp_buf_puts(out, "  [[maybe_unused]] const Frame f = sizes_of(sym);\n");
  print_slots(list, base, slots, out);
  print_scratch(list, program, out);
  lp_buf_printf(out, "  return place(size, %" PRId64 ", slot, %" PRId64 ", offset);\n}\n", base->slot_count,
                base->buffer_count);
  for (int64_t i = 0; i < base->slot_count; i++)
    lp_vec_free(&slots[i]);
}

void cuda_print_layouts(const gpu_launch_list *list, lp_buf *out) {
  LP_OWNED(lp_map_free_at) lp_map *done = lp_map_create();
  for (size_t i = 0; i < list->programs.list.count; i++) {
    const gpu_program *program = gpu_program_at(list, i);
    if (lp_map_has(done, program->base.layout)) continue;
    lp_map_put(done, program->base.layout, NULL);
    print_layout(list, program, out);
  }
}
