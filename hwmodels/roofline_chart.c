/* Draws rooflines: attainable FLOP/s over FLOP/byte on logarithmic axes, with dots for measured operators. */
#include "hwmodels/hwmodels_internal.h"

#include "base/page/chart.h"

#include <math.h>

typedef struct {
  double x, y; /* FLOP/byte, FLOP/s */
  char mark;
} dot;

typedef LP_VEC(dot) dots;

/* The roof of a dtype. */
typedef struct {
  const char *name;
  double peak;
} roof;

enum { MOST_ROOFS = 5 };

static size_t list_roofs(const lp_machine *machine, roof out[MOST_ROOFS]) {
  static const struct {
    const char *name;
    lp_hw_figure figure;
  } all[MOST_ROOFS] = {{"f32", LP_HW_PEAK_F32},
                       {"f16", LP_HW_PEAK_F16},
                       {"bf16", LP_HW_PEAK_BF16},
                       {"int8", LP_HW_PEAK_INT8},
                       {"int4", LP_HW_PEAK_INT4}};
  size_t count = 0;
  for (size_t i = 0; i < MOST_ROOFS; i++) {
    double peak = machine->figure[all[i].figure];
    bool same = count > 0 && out[count - 1].peak == peak;
    if (peak > 0 && !same) out[count++] = (roof){all[i].name, peak};
  }
  return count;
}

static char mark_of(const lp_fit_family *family) {
  if (family->op == LP_HW_LINEAR) return 'L';
  if (family->op == LP_HW_ATTENTION) return family->decode ? 'd' : 'a';
  return '.';
}

/* The facts of a curve's shape at one measured size. */
static lp_op_facts facts_at(const lp_fit_family *family, const lp_fit_curve *curve, double size) {
  lp_op_facts facts = {.dtype = family->dtype};
  if (family->op == LP_HW_ATTENTION) {
    facts.q_len = curve->key[0];
    facts.batch = curve->key[1];
    facts.heads = curve->key[2];
    facts.kv_heads = curve->key[3];
    facts.head_dim = curve->key[4];
    facts.kv_len = (int64_t)fmax(size, (double)facts.q_len);
  } else {
    facts.m = (int64_t)size;
    facts.n = curve->key[0];
    facts.k = curve->key[1];
  }
  lp_hw_op_facts(family->op, &facts);
  return facts;
}

static void list_dots(const lp_machine *machine, dots *out) {
  const struct lp_hw_fit *fit = machine->predictor == &lp_hw_fitted ? machine->fit : NULL;
  for (int32_t f = 0; fit && f < fit->count; f++) {
    const lp_fit_family *family = &fit->family[f];
    bool computes = family->op != LP_HW_ANY && family->op != LP_HW_SAMPLE;
    for (int32_t c = 0; c < family->count && computes; c++) {
      const lp_fit_curve *curve = &family->curve[c];
      for (int32_t i = 0; i < curve->measured_count; i++) {
        lp_op_facts facts = facts_at(family, curve, curve->measured[i]);
        if (facts.flops <= 0) continue;
        double seconds = lp_hw_predict(machine, &facts).time_ms * 1e-3;
        lp_vec_push(out, ((dot){facts.flops / facts.bytes, facts.flops / seconds, mark_of(family)}));
      }
    }
  }
}

/* ---- axes ---- */

typedef struct {
  double x0, x1, y0, y1; /* log10 */
  double bandwidth, top;
} axes;

static axes axes_of(const lp_machine *machine, const roof *roofs, size_t count) {
  axes a = {.x0 = -1, .bandwidth = machine->figure[LP_HW_BANDWIDTH]};
  for (size_t i = 0; i < count; i++)
    a.top = fmax(a.top, roofs[i].peak);
  a.x1 = fmax(3, ceil(log10(a.top / a.bandwidth) + 0.7));
  a.y1 = ceil(log10(a.top) + 0.1);
  a.y0 = fmin(floor(log10(a.bandwidth) - 1), a.y1 - 3);
  return a;
}

static const char *rate_text(double rate, char out[32]) {
  static const char *const units[] = {"FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"};
  size_t unit = 0;
  for (; rate >= 999.5 && unit + 1 < LP_COUNT(units); unit++)
    rate /= 1000;
  (void)snprintf(out, 32, "%.4g %s", rate, units[unit]);
  return out;
}

/* ---- text ---- */

enum { COLUMNS = 72, ROWS = 18 };

static void put(char grid[ROWS][COLUMNS + 1], const axes *a, double x, double y, char mark) {
  int column = (int)lround((log10(x) - a->x0) / (a->x1 - a->x0) * (COLUMNS - 1));
  int row = (int)lround((a->y1 - log10(y)) / (a->y1 - a->y0) * (ROWS - 1));
  if (column >= 0 && column < COLUMNS && row >= 0 && row < ROWS) grid[row][column] = mark;
}

static void draw_roofs(char grid[ROWS][COLUMNS + 1], const axes *a, const roof *roofs, size_t count) {
  for (int column = 0; column < COLUMNS; column++) {
    double x = pow(10, a->x0 + (a->x1 - a->x0) * column / (COLUMNS - 1));
    for (size_t i = 0; i < count; i++) {
      bool slope = x * a->bandwidth < roofs[i].peak;
      put(grid, a, x, slope ? x * a->bandwidth : roofs[i].peak, slope ? '/' : '-');
    }
  }
}

/* Every line is a comment of YAML, so that a chart may stand above a machine's figures. */
void lp_hw_roofline_text(const lp_machine *machine, lp_buf *out) {
  roof roofs[MOST_ROOFS];
  size_t count = list_roofs(machine, roofs);
  axes a = axes_of(machine, roofs, count);
  char grid[ROWS][COLUMNS + 1], text[32];
  memset(grid, ' ', sizeof grid);
  draw_roofs(grid, &a, roofs, count);
  LP_OWNED(lp_free_at) dots all = {0};
  list_dots(machine, &all);
  for (size_t i = 0; i < all.count; i++)
    put(grid, &a, all.data[i].x, all.data[i].y, all.data[i].mark);
  lp_buf_printf(out, "# %s: FLOP/s over FLOP/byte; %.4g GB/s below the slope\n", machine->name, a.bandwidth / 1e9);
  for (int row = 0; row < ROWS; row++) {
    double y = pow(10, a.y1 - (a.y1 - a.y0) * row / (ROWS - 1));
    int end = COLUMNS;
    while (end > 0 && grid[row][end - 1] == ' ')
      end--;
    lp_buf_printf(out, "# %15s |%.*s\n", row % 4 == 0 ? rate_text(y, text) : "", end, grid[row]);
  }
  lp_buf_printf(out, "# %15s +", "");
  for (int column = 0; column < COLUMNS; column++)
    lp_buf_puts(out, "-");
  lp_buf_printf(out, "\n# %15s  %-36g%*g FLOP/byte\n#", "", pow(10, a.x0), 36, pow(10, a.x1));
  for (size_t i = 0; i < count; i++)
    lp_buf_printf(out, "%s %s %s", i > 0 ? "," : " roofs:", roofs[i].name, rate_text(roofs[i].peak, text));
  lp_buf_puts(out, all.count > 0 ? "; measured: L linear, a prefill attention, d decode attention, . others\n" : "\n");
}

/* ---- SVG ---- */

static lp_chart chart_of(const axes *a, lp_buf *out) {
  return (lp_chart){.out = out,
                    .x0 = pow(10, a->x0),
                    .x1 = pow(10, a->x1),
                    .y0 = pow(10, a->y0),
                    .y1 = pow(10, a->y1),
                    .log_x = true,
                    .log_y = true};
}

static void svg_grid(const axes *a, const lp_chart *chart) {
  char text[32];
  for (int x = (int)a->x0; x <= (int)a->x1; x++) {
    (void)snprintf(text, sizeof text, "%g", pow(10, x));
    lp_chart_tick_x(chart, pow(10, x), text);
  }
  for (int y = (int)a->y0; y <= (int)a->y1; y++)
    lp_chart_tick_y(chart, pow(10, y), rate_text(pow(10, y), text));
  lp_chart_name_x(chart, "FLOP/byte");
}

static void svg_roofs(const axes *a, const lp_chart *chart, const roof *roofs, size_t count) {
  char text[64], rate[32];
  for (size_t i = 0; i < count; i++) {
    double ridge = roofs[i].peak / a->bandwidth, top = lp_chart_y(chart, roofs[i].peak);
    lp_buf_printf(chart->out, "<path class=\"roof\" d=\"M%.1f %.1f L%.1f %.1f H%.1f\"/>\n",
                  lp_chart_x(chart, chart->x0), lp_chart_y(chart, chart->x0 * a->bandwidth), lp_chart_x(chart, ridge),
                  top, lp_chart_x(chart, chart->x1));
    (void)snprintf(text, sizeof text, "%s %s", roofs[i].name, rate_text(roofs[i].peak, rate));
    lp_chart_text(chart, LP_CHART_WIDTH - LP_CHART_RIGHT - 4, top - 4, "end", text);
  }
}

static const char *colour_of(char mark) {
  return mark == 'L' ? "#1f5fa8" : mark == 'a' ? "#b8571b" : mark == 'd' ? "#7a3fa0" : "#5c7a29";
}

void lp_hw_roofline_svg(const lp_machine *machine, lp_buf *out) {
  roof roofs[MOST_ROOFS];
  size_t count = list_roofs(machine, roofs);
  axes a = axes_of(machine, roofs, count);
  lp_chart chart = chart_of(&a, out);
  lp_chart_begin(&chart, machine->title, ".roof{stroke:#000;stroke-width:1.5;fill:none}");
  svg_grid(&a, &chart);
  LP_OWNED(lp_free_at) dots all = {0};
  list_dots(machine, &all);
  lp_chart_clip_begin(&chart);
  for (size_t i = 0; i < all.count; i++)
    lp_chart_dot(&chart, all.data[i].x, all.data[i].y, 1.6, colour_of(all.data[i].mark), NULL);
  svg_roofs(&a, &chart, roofs, count);
  lp_chart_clip_end(&chart);
  if (all.count > 0)
    lp_chart_text(&chart, LP_CHART_WIDTH - LP_CHART_RIGHT, 22, "end",
                  "measured: linear blue, prefill orange, decode violet, others green");
  lp_chart_end(&chart);
}
