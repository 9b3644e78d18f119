/* Results as a page: the mean delay and the reward of each policy with their intervals, and the table. */
#include <math.h>
#include <stdlib.h>

#include "base/chart.h"
#include "runtime/simulate/simulate_internal.h"

static const char *const colours[] = {"#1f5fa8", "#b8571b", "#5c7a29", "#7a3fa0",
                                      "#a02c44", "#2a7f7f", "#8a6d1d", "#555555"};

static const char *colour_of(int32_t policy) {
  return colours[policy % (int32_t)LP_COUNT(colours)];
}

/* What a figure shows of a point. */
typedef struct {
  const char *title, *axis;
  lp_sim_estimate (*of)(const lp_sim_point *point);
} figure;

static lp_sim_estimate delay_of(const lp_sim_point *point) {
  return point->delay_s;
}

static lp_sim_estimate reward_of(const lp_sim_point *point) {
  return point->reward;
}

static void fit(const lp_sim_result *result, const figure *shown, lp_chart *chart) {
  size_t count = (size_t)result->points;
  double *ends = lp_alloc(2 * count * sizeof *ends);
  for (size_t i = 0; i < count; i++) {
    lp_sim_estimate at = shown->of(&result->point[i]);
    ends[2 * i] = at.mean - at.half;
    ends[2 * i + 1] = at.mean + at.half;
  }
  lp_chart_fit(ends, 2 * count, false, &chart->y0, &chart->y1);
  for (size_t i = 0; i < count; i++)
    ends[i] = result->scenario->axis ? result->point[i].value : (double)i;
  lp_chart_fit(ends, count, false, &chart->x0, &chart->x1);
  free(ends);
}

/* The line of a policy within its band. */
static void draw_line(const lp_chart *chart, const figure *shown, const lp_sim_point *point, int32_t count,
                      const char *colour) {
  lp_buf *out = chart->out;
  lp_buf_printf(out, "<path fill=\"%s\" fill-opacity=\"0.15\" d=\"", colour);
  for (int32_t i = 0; i < 2 * count; i++) {
    int32_t at = i < count ? i : 2 * count - 1 - i;
    lp_sim_estimate value = shown->of(&point[at]);
    double y = i < count ? value.mean + value.half : value.mean - value.half;
    lp_buf_printf(out, "%s%.1f %.1f", i > 0 ? " L" : "M", lp_chart_x(chart, point[at].value), lp_chart_y(chart, y));
  }
  lp_buf_printf(out, " Z\"/>\n<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" d=\"", colour);
  for (int32_t i = 0; i < count; i++)
    lp_buf_printf(out, "%s%.1f %.1f", i > 0 ? " L" : "M", lp_chart_x(chart, point[i].value),
                  lp_chart_y(chart, shown->of(&point[i]).mean));
  lp_buf_puts(out, "\"/>\n");
}

static void draw_dot(const lp_chart *chart, const figure *shown, const lp_sim_point *point, double x,
                     const char *colour) {
  lp_sim_estimate at = shown->of(point);
  char title[160];
  (void)snprintf(title, sizeof title, "%s: %.4g ± %.2g", point->policy, at.mean, at.half);
  lp_buf_printf(chart->out, "<path stroke=\"%s\" d=\"M%.1f %.1f V%.1f\"/>\n", colour, lp_chart_x(chart, x),
                lp_chart_y(chart, at.mean - at.half), lp_chart_y(chart, at.mean + at.half));
  lp_chart_dot(chart, x, at.mean, 3, colour, title);
}

static void draw_figure(const lp_sim_result *result, const figure *shown, lp_buf *out) {
  const lp_sim_scenario *s = result->scenario;
  lp_chart chart = {.out = out};
  fit(result, shown, &chart);
  lp_chart_begin(&chart, shown->title, "");
  lp_chart_axes(&chart, s->axis ? lp_sim_axis_names[s->axis] : "policy", shown->axis);
  lp_chart_clip_begin(&chart);
  for (int32_t p = 0; p < s->policies; p++) {
    const lp_sim_point *first = &result->point[p * result->values];
    if (s->axis) draw_line(&chart, shown, first, result->values, colour_of(p));
    for (int32_t v = 0; v < result->values; v++)
      draw_dot(&chart, shown, &first[v], s->axis ? first[v].value : p, colour_of(p));
  }
  lp_chart_clip_end(&chart);
  for (int32_t p = 0; p < s->policies; p++) {
    lp_buf_printf(out, "<g fill=\"%s\">\n", colour_of(p));
    lp_chart_text(&chart, LP_CHART_LEFT + 8, LP_CHART_TOP + 16 + 16 * p, "start", s->policy[p]->name);
    lp_buf_puts(out, "</g>\n");
  }
  lp_chart_end(&chart);
}

static void put_table(const lp_sim_result *result, lp_buf *out) {
  lp_buf rows = {0};
  lp_sim_print_csv(result, &rows);
  lp_buf_puts(out, "<table>\n<tr><td>");
  for (size_t i = 0; i < rows.size; i++) {
    if (rows.data[i] == ',')
      lp_buf_puts(out, "</td><td>");
    else if (rows.data[i] == '\n')
      lp_buf_puts(out, i + 1 < rows.size ? "</td></tr>\n<tr><td>" : "</td></tr>\n");
    else
      lp_buf_append(out, &rows.data[i], 1);
  }
  lp_buf_puts(out, "</table>\n");
  lp_buf_free(&rows);
}

void lp_sim_print_html(const lp_sim_result *result, lp_buf *out) {
  static const figure figures[] = {{"Mean delay", "delay, s", delay_of}, {"Mean reward", "reward, s", reward_of}};
  const lp_sim_scenario *s = result->scenario;
  lp_buf_puts(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>");
  lp_markup_text(s->title, out);
  lp_buf_puts(out, "</title>\n<style>body{font:14px sans-serif;margin:2em}td{padding:0 0.6em;text-align:right}"
                   "tr:first-child{font-weight:bold}table{border-collapse:collapse;font-size:12px}</style>\n<h1>");
  lp_markup_text(s->title, out);
  lp_buf_printf(out,
                "</h1>\n<p>%" PRId64 " runs of %" PRId64 " requests, the first %" PRId64
                " of each not counted; bands are 95 %% intervals of the mean over %s. Seed %" PRId64 ".</p>\n",
                s->runs, s->requests, s->warm_up, s->runs > 1 ? "runs" : "20 parts of the run", s->seed);
  for (size_t i = 0; i < LP_COUNT(figures); i++)
    draw_figure(result, &figures[i], out);
  put_table(result, out);
  lp_buf_puts(out, "</html>\n");
}
