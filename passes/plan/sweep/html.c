/* A sweep as one self-contained page: the Pareto fronts of each workload as a chart and a table, then all rows. */
#include "base/path.h"
#include "passes/plan/sweep/formats.h"
#include "passes/plan/sweep/front.h"

#include "base/chart.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_LISTED = 2000, MOST_DRAWN = 5000 };

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>llmpart sweep</title>\n<style>\n"
    "body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 96em; padding: 0 1em; color: #1b1f24; "
    "background: #fff; }\n"
    "table { border-collapse: collapse; }\n"
    "th, td { text-align: right; padding: 2px 10px; border-bottom: 1px solid #d9dee3; white-space: nowrap; }\n"
    "th { position: sticky; top: 0; background: #fff; }\n.no { color: #999; }\nsvg { max-width: 49%; height: auto; }\n"
    "</style>\n</head>\n<body>\n";

typedef struct {
  const lp_sweep_spec *spec;
  const lp_sweep_result *result;
  size_t *rows; /* of a front */
  lp_buf *out;
} page;

static void put_cell(const page *p, const char *text) {
  lp_buf_puts(p->out, "<td>");
  lp_markup_text(text, p->out);
  lp_buf_puts(p->out, "</td>");
}

static void put_number(const page *p, double number, const char *format) {
  char text[32] = "";
  if (isfinite(number)) (void)snprintf(text, sizeof text, "%.4g%s", number, format);
  put_cell(p, text);
}

/* A row in few words: machines, link, scheduler, types, sessions, SLA. */
static void describe(const page *p, size_t row, lp_buf *out) {
  size_t at[LP_SWEEP_AXES];
  lp_compile_request request = lp_sweep_request(p->spec, row, at);
  const lp_sweep_machines *machines = &p->spec->machines.data[at[LP_SWEEP_MACHINES]];
  lp_buf_printf(out, "%s + %s, %s, %s", machines->name[0], machines->name[1],
                p->spec->links.data[at[LP_SWEEP_LINKS]].name, request.scheduler);
  if (request.dtype_device || request.dtype_cloud)
    lp_buf_printf(out, ", %s/%s", request.dtype_device ? request.dtype_device : "model",
                  request.dtype_cloud ? request.dtype_cloud : "model");
  if (request.sessions > 1) lp_buf_printf(out, ", %" PRId64 " sessions", request.sessions);
  if (request.ttft_ms > 0) lp_buf_printf(out, ", TTFT %g ms", request.ttft_ms);
  if (request.tpot_ms > 0) lp_buf_printf(out, ", TPOT %g ms", request.tpot_ms);
}

static void put_row(const page *p, size_t index) {
  const lp_sweep_row *row = &p->result->row[index];
  size_t at[LP_SWEEP_AXES];
  lp_compile_request request = lp_sweep_request(p->spec, index, at);
  lp_buf text = {0};
  describe(p, index, &text);
  lp_buf_puts(p->out, row->feasible ? "<tr>" : "<tr class=\"no\">");
  lp_buf_printf(p->out, "<td>%zu</td><td style=\"text-align:left\">", index);
  lp_markup_text(lp_buf_text(&text), p->out);
  lp_buf_printf(p->out, "</td><td>%" PRId64 "/%" PRId64 "&times;%" PRId64 "</td>", request.isl, request.osl,
                request.batch);
  put_cell(p, row->feasible ? "yes" : lp_plan_limit_names[row->binding]);
  put_number(p, row->number[LP_SWEEP_TTFT], "");
  put_number(p, row->number[LP_SWEEP_TPOT], "");
  put_number(p, row->number[LP_SWEEP_COST_PER_MTOK], "");
  put_number(p, 100 * row->number[LP_SWEEP_DECREMENT], " %");
  put_number(p, row->number[LP_SWEEP_ENERGY], "");
  put_number(p, row->number[LP_SWEEP_BYTES_UP] / 1e6, "");
  put_number(p, row->number[LP_SWEEP_BYTES_DOWN] / 1e6, "");
  put_number(p, row->number[LP_SWEEP_DEVICE_MEMORY] / 1e9, "");
  put_number(p, row->number[LP_SWEEP_CLOUD_MEMORY] / 1e9, "");
  lp_buf_puts(p->out, "</tr>\n");
  lp_buf_free(&text);
}

static void put_table_head(const page *p) {
  lp_buf_puts(
      p->out,
      "<table>\n<tr><th>row</th><th>combination</th><th>prompt/output&times;batch</th><th>feasible</th><th>TTFT ms</th>"
      "<th>TPOT ms</th><th>USD/Mtoken</th><th>below cloud alone</th><th>J</th><th>MB up</th><th>MB down</th>"
      "<th>GB device</th><th>GB cloud</th></tr>\n");
}

/* ---- drawings ---------------------------------------------------------------------------------------------------- */

static bool is_of(const page *p, size_t row, size_t workload) {
  size_t at[LP_SWEEP_AXES];
  (void)lp_sweep_request(p->spec, row, at);
  return at[LP_SWEEP_WORKLOADS] == workload && p->result->row[row].feasible;
}

/* Draws only every n-th feasible row as a faint dot, so that the page stays small. */
static void draw_rows(const page *p, const lp_chart *chart, size_t workload, lp_sweep_number time, size_t step) {
  size_t seen = 0;
  for (size_t i = 0; i < p->spec->rows; i++) {
    if (!is_of(p, i, workload) || seen++ % step) continue;
    const double *number = p->result->row[i].number;
    if (number[LP_SWEEP_COST_PER_MTOK] > 0 || !chart->log_y)
      lp_chart_dot(chart, number[time], number[LP_SWEEP_COST_PER_MTOK], 1.8, "#b9c4cf", NULL);
  }
}

static void draw_front(const page *p, const lp_chart *chart, size_t count, lp_sweep_number time) {
  lp_buf text = {0};
  for (size_t i = 0; i < count; i++) {
    const double *number = p->result->row[p->rows[i]].number;
    if (chart->log_y && !(number[LP_SWEEP_COST_PER_MTOK] > 0)) continue;
    lp_buf_clear(&text);
    lp_buf_printf(&text, "%zu: ", p->rows[i]);
    describe(p, p->rows[i], &text);
    lp_chart_dot(chart, number[time], number[LP_SWEEP_COST_PER_MTOK], 4, "#b8571b", lp_buf_text(&text));
  }
  lp_buf_free(&text);
}

/* Draws a front as a step line; everything cheaper is below it. */
static void draw_line(const page *p, const lp_chart *chart, size_t count, lp_sweep_number time) {
  bool begun = false;
  lp_buf_puts(chart->out, "<path class=\"front\" d=\"");
  for (size_t i = 0; i < count; i++) {
    const double *number = p->result->row[p->rows[i]].number;
    if (chart->log_y && !(number[LP_SWEEP_COST_PER_MTOK] > 0)) continue;
    double x = lp_chart_x(chart, number[time]), y = lp_chart_y(chart, number[LP_SWEEP_COST_PER_MTOK]);
    lp_buf_printf(chart->out, begun ? "V%.1f H%.1f" : "M%.1f %.1f ", begun ? y : x, begun ? x : y);
    begun = true;
  }
  lp_buf_puts(chart->out, "\"/>\n");
}

static void draw(const page *p, size_t workload, int which) {
  static const lp_sweep_number times[] = {LP_SWEEP_TPOT, LP_SWEEP_TTFT};
  static const char *const names[] = {"TPOT, ms", "TTFT, ms"}, *const titles[] = {"Cost against TPOT",
                                                                                  "Cost against TTFT"};
  lp_sweep_number time = times[which];
  double *x = lp_alloc((p->spec->rows + 1) * sizeof *x), *y = lp_alloc((p->spec->rows + 1) * sizeof *y);
  size_t count = 0, paid = 0;
  for (size_t i = 0; i < p->spec->rows; i++) {
    if (!is_of(p, i, workload)) continue;
    x[count] = p->result->row[i].number[time];
    y[count] = p->result->row[i].number[LP_SWEEP_COST_PER_MTOK];
    paid += y[count++] > 0;
  }
  lp_chart chart = {.out = p->out, .log_x = true, .log_y = paid == count};
  lp_chart_fit(x, count, true, &chart.x0, &chart.x1);
  lp_chart_fit(y, count, chart.log_y, &chart.y0, &chart.y1);
  lp_chart_begin(&chart, titles[which], ".front{stroke:#b8571b;stroke-width:1.5;fill:none}");
  lp_chart_axes(&chart, names[which], "USD per million tokens");
  size_t front = lp_sweep_front(p->spec, p->result, workload, which, p->rows);
  lp_chart_clip_begin(&chart);
  draw_rows(p, &chart, workload, time, count / MOST_DRAWN + 1);
  draw_line(p, &chart, front, time);
  draw_front(p, &chart, front, time);
  lp_chart_clip_end(&chart);
  lp_chart_end(&chart);
  free(x);
  free(y);
}

static void put_workload(const page *p, size_t workload) {
  const lp_sweep_workload *w = &p->spec->workloads.data[workload];
  lp_buf_printf(p->out, "<h2>%" PRId64 " prompt tokens, %" PRId64 " generated, batch %" PRId64 "</h2>\n", w->isl,
                w->osl, w->batch);
  for (int which = 0; which < 2; which++)
    draw(p, workload, which);
  lp_buf_puts(p->out, "\n<p>On a front:</p>\n");
  put_table_head(p);
  for (size_t i = 0; i < p->spec->rows; i++)
    if ((p->result->row[i].on_front[0] || p->result->row[i].on_front[1]) && is_of(p, i, workload)) put_row(p, i);
  lp_buf_puts(p->out, "</table>\n");
}

void lp_sweep_html(const lp_sweep_spec *spec, const lp_sweep_result *result, lp_buf *out) {
  page p = {.spec = spec, .result = result, .rows = lp_alloc((spec->rows + 1) * sizeof *p.rows), .out = out};
  size_t feasible = 0;
  for (size_t i = 0; i < spec->rows; i++)
    feasible += result->row[i].feasible;
  lp_buf_puts(out, head);
  lp_buf_puts(out, "<h1>");
  lp_markup_text(lp_path_base(spec->path), out);
  lp_buf_printf(out,
                "</h1>\n<p>%zu rows, %zu feasible. A front holds the rows that no other row of its workload beats in "
                "both figures.</p>\n",
                spec->rows, feasible);
  for (size_t i = 0; i < spec->workloads.count; i++)
    put_workload(&p, i);
  lp_buf_printf(out, "<h2>All rows</h2>\n");
  if (spec->rows > MOST_LISTED) lp_buf_printf(out, "<p>The first %d; csv and json have all.</p>\n", MOST_LISTED);
  put_table_head(&p);
  for (size_t i = 0; i < spec->rows && i < MOST_LISTED; i++)
    put_row(&p, i);
  lp_buf_puts(out, "</table>\n</body>\n</html>\n");
  free(p.rows);
}
