/* launches.json: the launch list as data, as docs/gpu.md describes it. */
#include "backend/gpu/print.h"

#include "backend/gpu/builder.h"
#include "backend/program.h"
#include "backend/rows.h"
#include "base/map.h"
#include "base/poly.h"

#include <stdlib.h>

static void put_size(const gpu_launch_list *list, const lp_poly *size, lp_buf *out) {
  lp_buf_puts(out, "\"");
  lp_poly_print(size, &list->module->symbols, out);
  lp_buf_puts(out, "\"");
}

/* ---- launchers --------------------------------------------------------------------------------------------------- */

static void put_arg(const gpu_launch_list *list, const gpu_arg *arg, lp_buf *out) {
  switch (arg->kind) {
  case GPU_ARG_REF:
    lp_buf_printf(out, "%" PRId32, arg->ref);
    break;
  case GPU_ARG_NULL:
    lp_buf_puts(out, "null");
    break;
  case GPU_ARG_SCRATCH:
    lp_buf_puts(out, "true");
    break;
  case GPU_ARG_SIZE:
    put_size(list, arg->size, out);
  }
}

static void put_product(const gpu_gemm *product, lp_buf *out) {
  lp_buf_printf(out,
                "{\"product\": {\"n\": %" PRId64 ", \"k\": %" PRId64
                ", \"type\": \"%s\", \"scale\": %s, \"epilogue\": \"%s\"}",
                product->n, product->k, gpu_store_name(product->dtype), product->scale, product->epilogue);
}

static void put_grid(const gpu_launch_list *list, const gpu_launch *launch, lp_buf *out) {
  lp_buf_printf(out, "{\"kernel\": \"%s\", \"threads\": %" PRId32, launch->kernel->name, launch->threads);
  for (int axis = 0; axis < 2; axis++) {
    lp_buf_puts(out, axis ? ", \"y\": [" : ", \"x\": [");
    put_size(list, launch->grid[axis].size, out);
    lp_buf_printf(out, ", %" PRId64 "]", launch->grid[axis].per);
  }
}

static void put_launch(const gpu_launch_list *list, const gpu_launch *launch, lp_buf *out) {
  if (launch->product)
    put_product(launch->product, out);
  else
    put_grid(list, launch, out);
  if (launch->few) {
    lp_buf_puts(out, ", \"when\": [");
    put_size(list, launch->few, out);
    lp_buf_printf(out, ", %" PRId64 ", %" PRId64 "]", launch->least, launch->most);
  }
  if (launch->most_sm) lp_buf_printf(out, ", \"sm\": [%" PRId32 ", %" PRId32 "]", launch->least_sm, launch->most_sm);
  if (!launch->product && launch->by != GPU_BY_ANY)
    lp_buf_printf(out, ", \"library\": %s", launch->by == GPU_BY_LIBRARY ? "true" : "false");
  if (launch->spare) lp_buf_puts(out, ", \"spare\": true");
  if (launch->spread) lp_buf_puts(out, ", \"spread\": true");
  lp_buf_puts(out, ", \"args\": [");
  for (int32_t i = 0; i < launch->arg_count; i++) {
    if (i) lp_buf_puts(out, ", ");
    put_arg(list, &launch->arg[i], out);
  }
  lp_buf_puts(out, "]}");
}

static void put_launchers(const gpu_launch_list *list, lp_buf *out) {
  lp_buf_puts(out, " \"launchers\": [");
  for (size_t i = 0; i < lp_map_count(list->launchers); i++) {
    const gpu_launcher *launcher = lp_map_value_at(list->launchers, i);
    lp_buf_puts(out, i ? ",\n  [" : "\n  [");
    for (int32_t k = 0; k < launcher->launch_count; k++) {
      if (k) lp_buf_puts(out, ",\n   ");
      put_launch(list, &launcher->launch[k], out);
    }
    lp_buf_puts(out, "]");
  }
  lp_buf_puts(out, "],\n");
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

/* A call is [launcher, ref, ...], or [launcher, true, ref, ...] when it is joint. A ref is a buffer "b3", a buffer
 * that holds the rows of all sequences "b3+s*256", a state "s0", or a weight's [offset, bytes]. */

static void put_ref(const gpu_ref *ref, lp_buf *out) {
  if (ref->place == GPU_AT_WEIGHT)
    lp_buf_printf(out, ", [%" PRId64 ", %" PRId64 "]", ref->constant->stored.offset, ref->constant->stored.bytes);
  else if (ref->place == GPU_AT_BUFFER && ref->rows != LP_ROWS_NONE)
    lp_buf_printf(out, ", \"b%" PRId64 "+%c*%" PRId64 "\"", ref->index, ref->rows == LP_ROWS_NEW ? 's' : 'r',
                  ref->row_bytes);
  else
    lp_buf_printf(out, ", \"%c%" PRId64 "\"", ref->place == GPU_AT_BUFFER ? 'b' : 's', ref->index);
}

static void put_segment(const gpu_launch_list *list, const lp_side_segment *segment, lp_buf *out) {
  lp_buf_printf(out, "\n  \"%s\": [", segment->symbol);
  for (size_t i = 0; i < segment->calls.count; i++) {
    const gpu_call *call = gpu_call_at(segment, i);
    size_t number = 0;
    while (lp_map_value_at(list->launchers, number) != call->launcher)
      number++;
    lp_buf_printf(out, "%s\n   [%zu%s", i ? "," : "", number, call->base.joint ? ", true" : "");
    for (int32_t k = 0; k < call->ref_count; k++)
      put_ref(&call->ref[k], out);
    lp_buf_puts(out, "]");
  }
  lp_buf_puts(out, "]");
}

static void put_segments(const gpu_launch_list *list, lp_buf *out) {
  lp_map *done = lp_map_create();
  lp_buf_puts(out, " \"segments\": {");
  for (size_t i = 0; i < list->programs.list.count; i++) {
    const lp_side_program *program = list->programs.list.data[i];
    for (size_t k = 0; k < program->segments.count; k++) {
      const lp_side_segment *segment = program->segments.data[k];
      if (lp_map_has(done, segment->symbol)) continue;
      if (lp_map_count(done)) lp_buf_puts(out, ",");
      lp_map_put(done, segment->symbol, NULL);
      put_segment(list, segment, out);
    }
  }
  lp_buf_puts(out, "}\n");
  lp_map_free(done);
}

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

static void put_layout(const gpu_launch_list *list, const gpu_program *program, lp_buf *out) {
  const lp_side_program *base = &program->base;
  lp_sizes *slots = lp_program_slot_sizes(&list->programs, base);
  lp_buf_printf(out, "\n  \"%s\": {\"slot\": [", base->layout);
  for (int64_t i = 0; i < base->buffer_count; i++)
    lp_buf_printf(out, "%s%" PRId64, i ? ", " : "", base->slot[i]);
  lp_buf_puts(out, "],\n   \"sizes\": [");
  for (int64_t i = 0; i < base->slot_count; i++) {
    lp_buf_puts(out, i ? ",\n    [" : "[");
    for (size_t k = 0; k < slots[i].count; k++) {
      if (k) lp_buf_puts(out, ", ");
      put_size(list, slots[i].data[k], out);
    }
    lp_buf_puts(out, "]");
    lp_vec_free(&slots[i]);
  }
  lp_buf_puts(out, "],\n   \"scratch\": [");
  for (size_t i = 0; i < program->scratch.count; i++) {
    const gpu_scratch *scratch = &program->scratch.data[i];
    lp_buf_puts(out, i ? ", [" : "[");
    put_size(list, scratch->bytes, out);
    lp_buf_puts(out, ", ");
    put_size(list, scratch->few, out);
    lp_buf_printf(out, ", %" PRId64 "%s]", scratch->most, scratch->library ? ", true" : "");
  }
  lp_buf_puts(out, "]}");
}

static void put_layouts(const gpu_launch_list *list, lp_buf *out) {
  lp_map *done = lp_map_create();
  lp_buf_puts(out, " \"layouts\": {");
  for (size_t i = 0; i < list->programs.list.count; i++) {
    const gpu_program *program = gpu_program_at(list, i);
    if (lp_map_has(done, program->base.layout)) continue;
    if (lp_map_count(done)) lp_buf_puts(out, ",");
    lp_map_put(done, program->base.layout, NULL);
    put_layout(list, program, out);
  }
  lp_buf_puts(out, "},\n");
  lp_map_free(done);
}

void gpu_print_table(const gpu_launch_list *list, const gpu_dialect *dialect, lp_buf *out) {
  lp_buf_printf(out, "{\"schema\": \"llmpart.launches/1\", \"language\": \"%s\", \"symbols\": [", dialect->name);
  for (size_t i = 0; i < list->module->symbols.names.count; i++)
    lp_buf_printf(out, "%s\"%s\"", i ? ", " : "", list->module->symbols.names.data[i]);
  lp_buf_puts(out, "],\n \"sequences\": true,\n");
  put_launchers(list, out);
  put_layouts(list, out);
  put_segments(list, out);
  lp_buf_puts(out, "}\n");
}
