/* Writes results as figures in SVG, with their intervals, and as a page, which page/page.js draws from the JSON. */

#include "base/page/page.h"
#include "base/page/chart.h"
#include "runtime/simulate/statistics.h"

extern const char lp_sim_page_js[];

static const char *const colours[] = {"#1f5fa8", "#b8571b", "#5c7a29", "#7a3fa0",
                                      "#a02c44", "#2a7f7f", "#8a6d1d", "#555555"};

static const char *colour_of(int32_t line) {
  return colours[line % (int32_t)LP_COUNT(colours)];
}

/* A figure, which shows points over the axis, or the parts of the points at the axis' first value. */
typedef struct {
  const char *title, *axis;
  bool of_parts;
  size_t offset; /* of the estimate in a point or part */
} figure;

enum { FIGURES = 7 };
const char *const lp_sim_figure_names[FIGURES] = {"delay",           "reward",           "quality",        "regret",
                                                  "learning-reward", "learning-quality", "learning-regret"};
const size_t lp_sim_figure_count = FIGURES;
static const figure figures[FIGURES] = {
    {"Mean delay", "delay, s", false, offsetof(lp_sim_point, delay_s)},
    {"Mean reward", "reward, s", false, offsetof(lp_sim_point, reward)},
    {"Quality of requests that require it", "share of requests", false, offsetof(lp_sim_point, quality)},
    {"Mean regret", "regret, s", false, offsetof(lp_sim_point, regret)},
    {"Reward while learning", "reward, s", true, offsetof(lp_sim_part, reward)},
    {"Quality while learning", "share of requests", true, offsetof(lp_sim_part, quality)},
    {"Regret while learning", "regret, s", true, offsetof(lp_sim_part, regret)},
};

/* A line of a figure: one policy with one service. */
typedef struct {
  int32_t count;
  double *x;
  lp_sim_estimate *y;
  char label[128];
} series;

static series series_of(const lp_sim_result *result, const figure *shown, int32_t at, lp_arena *arena) {
  const lp_sim_scenario *s = result->scenario;
  const lp_sim_point *first = &result->point[at * result->values];
  series out = {.count = shown->of_parts ? LP_SIM_PARTS : result->values};
  out.x = LP_NEW_ARRAY(arena, double, out.count);
  out.y = LP_NEW_ARRAY(arena, lp_sim_estimate, out.count);
  for (int32_t i = 0; i < out.count; i++) {
    const void *from = shown->of_parts ? (const void *)&first->part[i] : &first[i];
    out.x[i] = shown->of_parts ? (double)lp_sim_part_end(s, i) : s->axis ? first[i].value : at;
    memcpy(&out.y[i], (const char *)from + shown->offset, sizeof out.y[i]);
  }
  bool named = s->service_count > 1, both = named && s->policies > 1;
  (void)snprintf(out.label, sizeof out.label, "%.60s%s%.60s", named ? first->service : "", both ? ", " : "",
                 named && !both ? "" : first->policy);
  return out;
}

static void fit(const series *all, int32_t count, lp_chart *chart) {
  LP_VEC(double) x = {0}, y = {0};
  for (int32_t s = 0; s < count; s++)
    for (int32_t i = 0; i < all[s].count; i++) {
      lp_vec_push(&x, all[s].x[i]);
      lp_vec_push(&y, all[s].y[i].mean - all[s].y[i].half);
      lp_vec_push(&y, all[s].y[i].mean + all[s].y[i].half);
    }
  lp_chart_fit(x.data, x.count, false, &chart->x0, &chart->x1);
  lp_chart_fit(y.data, y.count, false, &chart->y0, &chart->y1);
  lp_vec_free(&x);
  lp_vec_free(&y);
}

/* The line within its band. */
static void draw_line(const lp_chart *chart, const series *line, const char *colour) {
  lp_buf *out = chart->out;
  lp_buf_printf(out, "<path fill=\"%s\" fill-opacity=\"0.15\" d=\"", colour);
  for (int32_t i = 0; i < 2 * line->count; i++) {
    int32_t at = i < line->count ? i : 2 * line->count - 1 - i;
    double y = i < line->count ? line->y[at].mean + line->y[at].half : line->y[at].mean - line->y[at].half;
    lp_buf_printf(out, "%s%.1f %.1f", i > 0 ? " L" : "M", lp_chart_x(chart, line->x[at]), lp_chart_y(chart, y));
  }
  lp_buf_printf(out, " Z\"/>\n<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" d=\"", colour);
  for (int32_t i = 0; i < line->count; i++)
    lp_buf_printf(out, "%s%.1f %.1f", i > 0 ? " L" : "M", lp_chart_x(chart, line->x[i]),
                  lp_chart_y(chart, line->y[i].mean));
  lp_buf_puts(out, "\"/>\n");
}

static void draw_dots(const lp_chart *chart, const series *line, const char *colour) {
  for (int32_t i = 0; i < line->count; i++) {
    lp_sim_estimate at = line->y[i];
    char title[224];
    (void)snprintf(title, sizeof title, "%s: %.4g ± %.2g", line->label, at.mean, at.half);
    lp_buf_printf(chart->out, "<path stroke=\"%s\" d=\"M%.1f %.1f V%.1f\"/>\n", colour, lp_chart_x(chart, line->x[i]),
                  lp_chart_y(chart, at.mean - at.half), lp_chart_y(chart, at.mean + at.half));
    lp_chart_dot(chart, line->x[i], at.mean, 3, colour, title);
  }
}

static void draw_figure(const lp_sim_result *result, const figure *shown, lp_buf *out) {
  const lp_sim_scenario *s = result->scenario;
  int32_t count = s->service_count * s->policies;
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  series *all = LP_NEW_ARRAY(arena, series, count);
  for (int32_t i = 0; i < count; i++)
    all[i] = series_of(result, shown, i, arena);
  lp_chart chart = {.out = out};
  fit(all, count, &chart);
  lp_chart_begin(&chart, shown->title, "");
  lp_chart_axes(&chart, shown->of_parts ? "request" : s->axis ? lp_sim_axis_names[s->axis] : "policy", shown->axis);
  lp_chart_clip_begin(&chart);
  for (int32_t i = 0; i < count; i++) {
    if (all[i].count > 1) draw_line(&chart, &all[i], colour_of(i));
    draw_dots(&chart, &all[i], colour_of(i));
  }
  lp_chart_clip_end(&chart);
  for (int32_t i = 0; i < count; i++) {
    lp_buf_printf(out, "<g fill=\"%s\">\n", colour_of(i));
    lp_chart_text(&chart, LP_CHART_LEFT + 8, LP_CHART_TOP + 16 + 16 * i, "start", all[i].label);
    lp_buf_puts(out, "</g>\n");
  }
  lp_chart_end(&chart);
}

void lp_sim_print_svg(const lp_sim_result *result, size_t at, lp_buf *out) {
  draw_figure(result, &figures[at], out);
}

void lp_sim_print_html(const lp_sim_result *result, lp_buf *out) {
  lp_buf data = {0}, title = {0}, text = {0};
  lp_sim_print_json(result, &data);
  lp_sim_print_csv(result, &text);
  lp_buf_printf(&title, "%s: llmpart simulate", result->scenario->title);
  lp_page_write(&(lp_page){&title, &data, &text, lp_sim_page_js}, out);
}
