/* A sweep's rows as CSV and JSON. Both print numbers the same way; nothing depends on the run that made them. */
#include "base/json/writer.h"
#include "base/path.h"
#include "base/side.h"
#include "passes/plan/report/report.h"
#include "passes/plan/sweep/formats.h"
#include "passes/plan/sweep/front.h"

#include <math.h>

/* with their units: "ttft_ms" */
static const char *const number_names[LP_SWEEP_NUMBERS] = {"ttft_ms",
                                                           "tpot_ms",
                                                           "e2e_ms",
                                                           "cost_usd",
                                                           "cost_per_mtok_usd",
                                                           "decrement",
                                                           "gap",
                                                           "energy_j",
                                                           "cloud_busy_ms",
                                                           "device_busy_ms",
                                                           "bytes_up",
                                                           "bytes_down",
                                                           "messages_decode",
                                                           "device_weight_bytes",
                                                           "cloud_weight_bytes",
                                                           "device_memory_bytes",
                                                           "cloud_memory_bytes",
                                                           "device_energy_j",
                                                           "cloud_energy_j",
                                                           "device_cost_usd",
                                                           "total_cost_usd",
                                                           "total_cost_per_mtok_usd"};

/* The coordinates of a row, in the order of the columns. */
typedef struct {
  const char *name, *text; /* text NULL: the number */
  double number;           /* NaN: none */
} label;

enum { LABELS = 13 };

static void label_row(const lp_sweep_spec *spec, size_t row, label out[LABELS]) {
  size_t at[LP_SWEEP_AXES];
  lp_compile_request request = lp_sweep_request(spec, row, at);
  const lp_sweep_machines *machines = &spec->machines.data[at[LP_SWEEP_MACHINES]];
  const lp_link *link = spec->links.data[at[LP_SWEEP_LINKS]].link;
  const label all[LABELS] = {{lp_side_name(LP_SIDE_DEVICE), machines->name[LP_SIDE_DEVICE], 0},
                             {lp_side_name(LP_SIDE_CLOUD), machines->name[LP_SIDE_CLOUD], 0},
                             {"link", spec->links.data[at[LP_SWEEP_LINKS]].name, 0},
                             {"sla_quantile", NULL, link->state_count ? link->quantile : NAN},
                             {"isl", NULL, (double)request.isl},
                             {"osl", NULL, (double)request.osl},
                             {"batch", NULL, (double)request.batch},
                             {"sla_ttft_ms", NULL, request.ttft_ms > 0 ? request.ttft_ms : NAN},
                             {"sla_tpot_ms", NULL, request.tpot_ms > 0 ? request.tpot_ms : NAN},
                             {"dtype_device", request.dtype_device ? request.dtype_device : "model", 0},
                             {"dtype_cloud", request.dtype_cloud ? request.dtype_cloud : "model", 0},
                             {"scheduler", request.scheduler, 0},
                             {"sessions", NULL, (double)request.sessions}};
  for (int i = 0; i < LABELS; i++)
    out[i] = all[i];
}

static const char *const front_names[] = {"front_tpot", "front_ttft"};

/* ---- csv --------------------------------------------------------------------------------------------------------- */

static void put_csv_number(double number, lp_buf *out) {
  if (isfinite(number)) lp_buf_printf(out, "%.12g", number);
}

void lp_sweep_csv(const lp_sweep_spec *spec, const lp_sweep_result *result, lp_buf *out) {
  label labels[LABELS];
  for (size_t i = 0; i <= spec->rows; i++) { /* the header first */
    bool header = i == 0;
    label_row(spec, header ? 0 : i - 1, labels);
    const lp_sweep_row *row = header ? NULL : &result->row[i - 1];
    for (int k = 0; k < LABELS; k++) {
      if (k) lp_buf_puts(out, ",");
      if (header)
        lp_buf_puts(out, labels[k].name);
      else if (labels[k].text)
        lp_report_csv_field(labels[k].text, out);
      else
        put_csv_number(labels[k].number, out);
    }
    lp_buf_printf(out, ",%s,%s",
                  header          ? "feasible"
                  : row->feasible ? "yes"
                                  : "no",
                  header         ? "binding"
                  : row->binding ? lp_plan_limit_names[row->binding]
                                 : "");
    for (int k = 0; k < LP_SWEEP_NUMBERS; k++) {
      lp_buf_puts(out, ",");
      if (header)
        lp_buf_puts(out, number_names[k]);
      else
        put_csv_number(row->number[k], out);
    }
    for (int k = 0; k < 2; k++)
      lp_buf_printf(out, ",%s", header ? front_names[k] : row->on_front[k] ? "yes" : "no");
    lp_buf_puts(out, "\n");
  }
}

/* ---- json -------------------------------------------------------------------------------------------------------- */

static void put_json_row(const lp_sweep_spec *spec, const lp_sweep_result *result, size_t index, lp_json_writer *json) {
  label labels[LABELS];
  const lp_sweep_row *row = &result->row[index];
  label_row(spec, index, labels);
  lp_json_put_flat_object(json, NULL);
  lp_json_put_integer(json, "row", (int64_t)index);
  for (int k = 0; k < LABELS; k++)
    if (labels[k].text)
      lp_json_put_text(json, labels[k].name, labels[k].text);
    else
      lp_json_put_number(json, labels[k].name, labels[k].number);
  lp_json_put_bool(json, "feasible", row->feasible);
  lp_json_put_text(json, "binding", row->binding ? lp_plan_limit_names[row->binding] : NULL);
  for (int k = 0; k < LP_SWEEP_NUMBERS; k++)
    lp_json_put_number(json, number_names[k], row->number[k]);
  for (int k = 0; k < 2; k++)
    lp_json_put_bool(json, front_names[k], row->on_front[k]);
  lp_json_put_end(json);
}

/* `rows` has room for all of them. */
static void put_json_front(const lp_sweep_spec *spec, const lp_sweep_result *result, size_t workload, size_t *rows,
                           lp_json_writer *json) {
  const lp_sweep_workload *w = &spec->workloads.data[workload];
  lp_json_put_flat_object(json, NULL);
  lp_json_put_integer(json, "isl", w->isl);
  lp_json_put_integer(json, "osl", w->osl);
  lp_json_put_integer(json, "batch", w->batch);
  for (int which = 0; which < 2; which++) {
    size_t count = lp_sweep_front(spec, result, workload, which, rows);
    lp_json_put_array(json, front_names[which]);
    for (size_t i = 0; i < count; i++)
      lp_json_put_integer(json, NULL, (int64_t)rows[i]);
    lp_json_put_end(json);
  }
  lp_json_put_end(json);
}

static void write_json(const lp_sweep_spec *spec, const lp_sweep_result *result, lp_buf *out) {
  lp_json_writer json = lp_json_document_begin(out, (lp_json_style){.indent = 2, .digits = 12}, "llmpart.sweep/1");
  lp_json_put_text(&json, "spec", lp_path_base(spec->path));
  lp_json_put_text(&json, "objective", spec->objective);
  lp_json_put_text(&json, "rank_by", number_names[lp_sweep_rank(spec)]);
  lp_json_put_array(&json, "fronts");
  size_t *rows = lp_alloc((spec->rows + 1) * sizeof *rows);
  for (size_t i = 0; i < spec->workloads.count; i++)
    put_json_front(spec, result, i, rows, &json);
  free(rows);
  lp_json_put_end(&json);
  lp_json_put_array(&json, "rows");
  for (size_t i = 0; i < spec->rows; i++)
    put_json_row(spec, result, i, &json);
  lp_json_put_end(&json);
  lp_json_document_end(&json);
}

/* ---- formats ----------------------------------------------------------------------------------------------------- */

lp_status lp_sweep_write(const lp_sweep_spec *spec, const lp_sweep_result *result, const char *format, lp_buf *out,
                         lp_diag *diag) {
  static const struct {
    const char *name;
    void (*write)(const lp_sweep_spec *spec, const lp_sweep_result *result, lp_buf *out);
  } formats[] = {{"csv", lp_sweep_csv}, {"json", write_json}, {"html", lp_sweep_html}};
  for (size_t i = 0; i < LP_COUNT(formats); i++)
    if (lp_streq(formats[i].name, format)) {
      formats[i].write(spec, result, out);
      return LP_OK;
    }
  return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "no format '%s' of a sweep: csv, json, html", format);
}
