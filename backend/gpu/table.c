/* Writes launches.json: the launch list as data, as docs/gpu.md describes it. */
#include "backend/gpu/print.h"

#include "backend/gpu/builder.h"
#include "backend/program.h"
#include "backend/rows.h"
#include "base/abi.h"
#include "base/json/writer.h"
#include "base/map.h"
#include "base/poly.h"

/* The list being written. */
typedef struct {
  const gpu_launch_list *list;
  const lp_symbols *symbols;
  lp_json_writer json;
} table;

/* ---- launchers --------------------------------------------------------------------------------------------------- */

static void put_arg(table *t, const gpu_arg *arg) {
  switch (arg->kind) {
  case GPU_ARG_REF:
    lp_json_put_integer(&t->json, NULL, arg->ref);
    break;
  case GPU_ARG_NULL:
    lp_json_put_null(&t->json, NULL);
    break;
  case GPU_ARG_SCRATCH:
    lp_json_put_bool(&t->json, NULL, true);
    break;
  case GPU_ARG_SIZE:
    lp_json_put_poly(&t->json, NULL, arg->size, t->symbols);
  }
}

static void put_product(table *t, const gpu_gemm *product) {
  lp_json_put_object(&t->json, "product");
  lp_json_put_integer(&t->json, "n", product->n);
  lp_json_put_integer(&t->json, "k", product->k);
  lp_json_put_text(&t->json, "type", gpu_store_name(product->dtype));
  lp_json_put_integer(&t->json, "scale", product->scale);
  lp_json_put_text(&t->json, "epilogue", product->epilogue);
  lp_json_put_end(&t->json);
}

static void put_grid(table *t, const gpu_launch *launch) {
  lp_json_put_text(&t->json, "kernel", launch->kernel->name);
  lp_json_put_integer(&t->json, "threads", launch->threads);
  for (int axis = 0; axis < 2; axis++) {
    lp_json_put_array(&t->json, axis ? "y" : "x");
    lp_json_put_poly(&t->json, NULL, launch->grid[axis].size, t->symbols);
    lp_json_put_integer(&t->json, NULL, launch->grid[axis].per);
    lp_json_put_end(&t->json);
  }
}

/* Writes the sizes and architectures for which the launch takes place. */
static void put_conditions(table *t, const gpu_launch *launch) {
  if (launch->few) {
    lp_json_put_array(&t->json, "when");
    lp_json_put_poly(&t->json, NULL, launch->few, t->symbols);
    lp_json_put_integer(&t->json, NULL, launch->least);
    lp_json_put_integer(&t->json, NULL, launch->most);
    lp_json_put_end(&t->json);
  }
  if (launch->most_sm) {
    lp_json_put_array(&t->json, "sm");
    lp_json_put_integer(&t->json, NULL, launch->least_sm);
    lp_json_put_integer(&t->json, NULL, launch->most_sm);
    lp_json_put_end(&t->json);
  }
  if (!launch->product && launch->by != GPU_BY_ANY) lp_json_put_bool(&t->json, "library", launch->by == GPU_BY_LIBRARY);
}

static void put_launch(table *t, const gpu_launch *launch) {
  lp_json_put_flat_object(&t->json, NULL);
  if (launch->product)
    put_product(t, launch->product);
  else
    put_grid(t, launch);
  put_conditions(t, launch);
  if (launch->spare) lp_json_put_bool(&t->json, "spare", true);
  if (launch->spread) lp_json_put_bool(&t->json, "spread", true);
  lp_json_put_array(&t->json, "args");
  for (int32_t i = 0; i < launch->arg_count; i++)
    put_arg(t, &launch->arg[i]);
  lp_json_put_end(&t->json);
  lp_json_put_end(&t->json);
}

static void put_launchers(table *t) {
  lp_json_put_array(&t->json, "launchers");
  for (size_t i = 0; i < lp_map_count(t->list->launchers); i++) {
    const gpu_launcher *launcher = lp_map_value_at(t->list->launchers, i);
    lp_json_put_array(&t->json, NULL);
    for (int32_t k = 0; k < launcher->launch_count; k++)
      put_launch(t, &launcher->launch[k]);
    lp_json_put_end(&t->json);
  }
  lp_json_put_end(&t->json);
}

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

static void put_slots(table *t, const lp_side_program *program) {
  lp_json_put_flat_array(&t->json, "slot");
  for (int64_t i = 0; i < program->buffer_count; i++)
    lp_json_put_integer(&t->json, NULL, program->slot[i]);
  lp_json_put_end(&t->json);
  lp_sizes *slots = lp_program_slot_sizes(&t->list->programs, program);
  lp_json_put_array(&t->json, "sizes");
  for (int64_t i = 0; i < program->slot_count; i++) {
    lp_json_put_flat_array(&t->json, NULL);
    for (size_t k = 0; k < slots[i].count; k++)
      lp_json_put_poly(&t->json, NULL, slots[i].data[k], t->symbols);
    lp_json_put_end(&t->json);
    lp_vec_free(&slots[i]);
  }
  lp_json_put_end(&t->json);
}

static void put_layout(table *t, const gpu_program *program) {
  lp_json_put_object(&t->json, program->base.layout);
  put_slots(t, &program->base);
  lp_json_put_flat_array(&t->json, "scratch");
  LP_FOR_VEC(const gpu_scratch, scratch, &program->scratch) {
    lp_json_put_array(&t->json, NULL);
    lp_json_put_poly(&t->json, NULL, scratch->bytes, t->symbols);
    lp_json_put_poly(&t->json, NULL, scratch->few, t->symbols);
    lp_json_put_integer(&t->json, NULL, scratch->most);
    if (scratch->library) lp_json_put_bool(&t->json, NULL, true);
    lp_json_put_end(&t->json);
  }
  lp_json_put_end(&t->json);
  lp_json_put_end(&t->json);
}

/* Programs with equal layouts share the symbol. */
static void put_layouts(table *t) {
  LP_OWNED(lp_map_free_at) lp_map *done = lp_map_create();
  lp_json_put_object(&t->json, "layouts");
  for (size_t i = 0; i < t->list->programs.list.count; i++) {
    const gpu_program *program = gpu_program_at(t->list, i);
    if (lp_map_has(done, program->base.layout)) continue;
    lp_map_put(done, program->base.layout, NULL);
    put_layout(t, program);
  }
  lp_json_put_end(&t->json);
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

/* A ref is a buffer "b3", a buffer that holds the rows of all sequences "b3+s*256", a state "s0", or the
 * [offset, bytes] of a weight. */
static void put_ref(table *t, const gpu_ref *ref) {
  char text[64];
  if (ref->place == GPU_AT_WEIGHT) {
    lp_json_put_array(&t->json, NULL);
    lp_json_put_integer(&t->json, NULL, ref->constant->stored.offset);
    lp_json_put_integer(&t->json, NULL, ref->constant->stored.bytes);
    lp_json_put_end(&t->json);
    return;
  }
  if (ref->place == GPU_AT_BUFFER && ref->rows != LP_ROWS_NONE)
    (void)snprintf(text, sizeof text, "b%" PRId64 "+%c*%" PRId64, ref->index, ref->rows == LP_ROWS_NEW ? 's' : 'r',
                   ref->row_bytes);
  else
    (void)snprintf(text, sizeof text, "%c%" PRId64, ref->place == GPU_AT_BUFFER ? 'b' : 's', ref->index);
  lp_json_put_text(&t->json, NULL, text);
}

static int64_t launcher_number(const gpu_launch_list *list, const gpu_launcher *launcher) {
  size_t number = 0;
  while (lp_map_value_at(list->launchers, number) != launcher)
    number++;
  return (int64_t)number;
}

/* Writes a call as [launcher, ref, ...], or as [launcher, true, ref, ...] when it is joint. */
static void put_call(table *t, const gpu_call *call) {
  lp_json_put_flat_array(&t->json, NULL);
  lp_json_put_integer(&t->json, NULL, launcher_number(t->list, call->launcher));
  if (call->base.joint) lp_json_put_bool(&t->json, NULL, true);
  for (int32_t k = 0; k < call->ref_count; k++)
    put_ref(t, &call->ref[k]);
  lp_json_put_end(&t->json);
}

static void put_segment(table *t, const lp_side_segment *segment) {
  lp_json_put_array(&t->json, segment->symbol);
  for (size_t i = 0; i < segment->calls.count; i++)
    put_call(t, gpu_call_at(segment, i));
  lp_json_put_end(&t->json);
}

/* Equal segments share the symbol. */
static void put_segments(table *t) {
  LP_OWNED(lp_map_free_at) lp_map *done = lp_map_create();
  lp_json_put_object(&t->json, "segments");
  LP_FOR_VEC_REFS(lp_side_program, program, &t->list->programs.list) {
    LP_FOR_VEC_REFS(lp_side_segment, segment, &program->segments) {
      if (lp_map_has(done, segment->symbol)) continue;
      lp_map_put(done, segment->symbol, NULL);
      put_segment(t, segment);
    }
  }
  lp_json_put_end(&t->json);
}

/* ---- the document ------------------------------------------------------------------------------------------------ */

/* The pass that outlines segments marks all functions or none. */
static bool is_profiled(const lp_module *module) {
  LP_FOR_FUNCS(func, module)
    if (lp_op_bool(func, "profiled", false)) return true;
  return false;
}

void gpu_print_table(const gpu_launch_list *list, const gpu_dialect *dialect, lp_buf *out) {
  table t = {
      .list = list, .symbols = &list->module->symbols, .json = lp_json_writer_begin(out, (lp_json_style){.indent = 1})};
  lp_json_put_object(&t.json, NULL);
  lp_json_put_text(&t.json, "schema", "llmpart.launches/1");
  if (list->contract) {
    lp_json_put_key(&t.json, "contract");
    lp_buf_printf(out, "\"" LP_CONTRACT_MARK "%s\"", list->contract);
  }
  lp_json_put_text(&t.json, "language", dialect->name);
  lp_json_put_flat_array(&t.json, "symbols");
  for (size_t i = 0; i < t.symbols->names.count; i++)
    lp_json_put_text(&t.json, NULL, t.symbols->names.data[i]);
  lp_json_put_end(&t.json);
  lp_json_put_bool(&t.json, "sequences", true);
  lp_json_put_bool(&t.json, "overlapping", true);
  if (is_profiled(list->module)) lp_json_put_bool(&t.json, "profiled", true);
  put_launchers(&t);
  put_layouts(&t);
  put_segments(&t);
  lp_json_document_end(&t.json);
}
