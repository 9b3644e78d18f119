/* A sweep as a page: the Pareto fronts of each workload, the command of a chosen point, and the rows. This file writes
 * the data, and page/page.js draws it. */
#include "base/json/writer.h"
#include "base/page/page.h"
#include "base/path.h"
#include "passes/plan/sweep/formats.h"
#include "passes/plan/sweep/front.h"

extern const char lp_sweep_page_js[];

enum { MOST_ROWS = 4000 }; /* beside those on fronts: the page stays small */

/* ---- axes -------------------------------------------------------------------------------------------------------- */

static void put_axes(lp_json_writer *j, const lp_sweep_spec *spec) {
  lp_json_put_array(j, "machines");
  for (size_t i = 0; i < spec->machines.count; i++) {
    lp_json_put_flat_array(j, NULL);
    lp_json_put_text(j, NULL, spec->machines.data[i].name[LP_SIDE_DEVICE]);
    lp_json_put_text(j, NULL, spec->machines.data[i].name[LP_SIDE_CLOUD]);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
  lp_json_put_array(j, "links");
  for (size_t i = 0; i < spec->links.count; i++)
    lp_json_put_text(j, NULL, spec->links.data[i].name);
  lp_json_put_end(j);
  lp_json_put_array(j, "workloads");
  for (size_t i = 0; i < spec->workloads.count; i++) {
    lp_json_put_flat_array(j, NULL);
    lp_json_put_integer(j, NULL, spec->workloads.data[i].isl);
    lp_json_put_integer(j, NULL, spec->workloads.data[i].osl);
    lp_json_put_integer(j, NULL, spec->workloads.data[i].batch);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

/* The choices of a plan: limits, types, schedulers. */
static void put_choices(lp_json_writer *j, const lp_sweep_spec *spec) {
  lp_json_put_array(j, "slas");
  LP_FOR_VEC(const lp_sweep_sla, sla, &spec->slas)
    lp_json_put_numbers(j, NULL, (double[]){sla->ttft_ms, sla->tpot_ms}, 2);
  lp_json_put_end(j);
  lp_json_put_array(j, "types");
  for (size_t i = 0; i < spec->dtypes.count; i++) {
    lp_json_put_flat_array(j, NULL);
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      lp_json_put_text(j, NULL, spec->dtypes.data[i].dtype[side]);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
  lp_json_put_array(j, "schedulers");
  for (size_t i = 0; i < spec->schedulers.count; i++)
    lp_json_put_text(j, NULL, spec->schedulers.data[i]);
  lp_json_put_end(j);
  lp_json_put_array(j, "bindings");
  for (int i = 0; i < LP_LIMIT_COUNT; i++)
    lp_json_put_text(j, NULL, lp_plan_limit_names[i]);
  lp_json_put_end(j);
}

/* Options of `llmpart compile` that all rows share, as pairs of name and value. */
static void put_option(lp_json_writer *j, const char *name, const char *value) {
  lp_json_put_flat_array(j, NULL);
  lp_json_put_text(j, NULL, name);
  lp_json_put_text(j, NULL, value);
  lp_json_put_end(j);
}

/* The type of KV caches that `compile` must be told: its own choice follows the weights, a sweep's does not. */
static const char *kv_dtype_of(const lp_sweep_spec *spec) {
  if (spec->kv_dtype) return spec->kv_dtype;
  for (size_t i = 0; i < spec->dtypes.count; i++) {
    const char *const *dtype = spec->dtypes.data[i].dtype;
    const lp_compile_request row = {.dtype_device = dtype[LP_SIDE_DEVICE], .dtype_cloud = dtype[LP_SIDE_CLOUD]};
    if (lp_rounds_activations(&row)) return "f32";
  }
  return NULL;
}

static void put_options(lp_json_writer *j, const lp_sweep_spec *spec) {
  const char *kv_dtype = kv_dtype_of(spec);
  char number[32];
  lp_json_put_array(j, "options");
  put_option(j, "objective",
             spec->objective ? spec->objective : "cost"); /* named, or a row without limits gives the knee */
  if (kv_dtype) put_option(j, "kv-dtype", kv_dtype);
  (void)snprintf(number, sizeof number, "%" PRId64, spec->device_memory);
  if (spec->device_memory > 0) put_option(j, "device-memory", number);
  (void)snprintf(number, sizeof number, "%.9g", spec->sla_quantile);
  if (spec->sla_quantile > 0) put_option(j, "sla-quantile", number);
  lp_json_put_end(j);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void put_row(lp_json_writer *j, const lp_sweep_spec *spec, const lp_sweep_row *row, size_t index) {
  static const lp_sweep_axis axes[] = {LP_SWEEP_MACHINES, LP_SWEEP_LINKS,  LP_SWEEP_WORKLOADS,
                                       LP_SWEEP_SLAS,     LP_SWEEP_DTYPES, LP_SWEEP_SCHEDULERS};
  const lp_sweep_number numbers[] = {LP_SWEEP_TTFT,       LP_SWEEP_TPOT,          lp_sweep_rank(spec),
                                     LP_SWEEP_DECREMENT,  LP_SWEEP_ENERGY,        LP_SWEEP_BYTES_UP,
                                     LP_SWEEP_BYTES_DOWN, LP_SWEEP_DEVICE_MEMORY, LP_SWEEP_CLOUD_MEMORY};
  size_t at[LP_SWEEP_AXES];
  const lp_compile_request request = lp_sweep_request(spec, index, at);
  lp_json_put_flat_array(j, NULL);
  lp_json_put_integer(j, NULL, (int64_t)index);
  for (size_t i = 0; i < LP_COUNT(axes); i++)
    lp_json_put_integer(j, NULL, (int64_t)at[axes[i]]);
  lp_json_put_integer(j, NULL, request.sessions);
  lp_json_put_integer(j, NULL, row->feasible ? 0 : (int64_t)row->binding);
  lp_json_put_integer(j, NULL, (row->on_front[0] ? 1 : 0) + (row->on_front[1] ? 2 : 0));
  for (size_t i = 0; i < LP_COUNT(numbers); i++)
    lp_json_put_number(j, NULL, row->number[numbers[i]]);
  lp_json_put_end(j);
}

/* The rows on fronts, and of the others as many as fit, evenly spread. */
static void put_rows(lp_json_writer *j, const lp_sweep_spec *spec, const lp_sweep_result *result) {
  const size_t step = spec->rows / MOST_ROWS + 1;
  lp_json_put_array(j, "rows");
  for (size_t i = 0; i < spec->rows; i++) {
    const lp_sweep_row *row = &result->row[i];
    if (row->on_front[0] || row->on_front[1] || i % step == 0) put_row(j, spec, row, i);
  }
  lp_json_put_end(j);
}

void lp_sweep_html(const lp_sweep_spec *spec, const lp_sweep_result *result, lp_buf *out) {
  lp_buf data = {0}, title = {0}, text = {0};
  size_t feasible = 0;
  for (size_t i = 0; i < spec->rows; i++)
    feasible += result->row[i].feasible;
  lp_json_writer j = lp_json_writer_begin(&data, (lp_json_style){.digits = 6, .has_no_space = true});
  lp_json_put_object(&j, NULL);
  lp_json_put_text(&j, "name", lp_path_base(spec->path));
  lp_json_put_text(&j, "model", spec->model ? lp_path_base(spec->model) : "MODEL");
  lp_json_put_integer(&j, "count", (int64_t)spec->rows);
  lp_json_put_integer(&j, "feasible", (int64_t)feasible);
  put_axes(&j, spec);
  put_choices(&j, spec);
  put_options(&j, spec);
  put_rows(&j, spec, result);
  lp_json_put_end(&j);
  lp_buf_printf(&title, "%s: llmpart sweep", lp_path_base(spec->path));
  lp_buf_printf(&text, "%zu rows, %zu feasible; this page needs scripts, llmpart sweep -o csv does not", spec->rows,
                feasible);
  lp_page_write(&(lp_page){&title, &data, &text, lp_sweep_page_js}, out);
}
