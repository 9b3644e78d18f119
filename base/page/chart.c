/* Charts as SVG text: where values lie, and the marks that stand there. */
#include "base/page/chart.h"

#include <math.h>

enum {
  INNER_WIDTH = LP_CHART_WIDTH - LP_CHART_LEFT - LP_CHART_RIGHT,
  INNER_HEIGHT = LP_CHART_HEIGHT - LP_CHART_TOP - LP_CHART_BOTTOM
};

void lp_markup_text(const char *text, lp_buf *out) {
  for (; *text; text++) {
    const char *entity = *text == '<'   ? "&lt;"
                         : *text == '>' ? "&gt;"
                         : *text == '&' ? "&amp;"
                         : *text == '"' ? "&quot;"
                                        : NULL;
    if (entity)
      lp_buf_puts(out, entity);
    else
      lp_buf_append(out, text, 1);
  }
}

static double share(double value, double from, double to, bool logarithmic) {
  if (!logarithmic) return (value - from) / (to - from);
  return (log10(value) - log10(from)) / (log10(to) - log10(from));
}

double lp_chart_x(const lp_chart *chart, double value) {
  return (double)LP_CHART_LEFT + share(value, chart->x0, chart->x1, chart->log_x) * (double)INNER_WIDTH;
}

double lp_chart_y(const lp_chart *chart, double value) {
  return (double)(LP_CHART_TOP + INNER_HEIGHT) -
         share(value, chart->y0, chart->y1, chart->log_y) * (double)INNER_HEIGHT;
}

void lp_chart_fit(const double *values, size_t count, bool logarithmic, double *from, double *to) {
  double least = INFINITY, most = -INFINITY;
  for (size_t i = 0; i < count; i++) {
    if (logarithmic && !(values[i] > 0)) continue;
    least = fmin(least, values[i]);
    most = fmax(most, values[i]);
  }
  if (!(least <= most)) least = logarithmic ? 1 : 0, most = logarithmic ? 10 : 1;
  if (logarithmic) {
    double margin = fmax(0.05, 0.05 * log10(most / least));
    *from = least * pow(10, -margin);
    *to = most * pow(10, margin);
  } else {
    double margin = most > least ? 0.05 * (most - least) : fmax(1e-9, 0.1 * fabs(most));
    *from = least - margin;
    *to = most + margin;
  }
}

void lp_chart_text(const lp_chart *chart, double x, double y, const char *anchor, const char *text) {
  lp_buf_printf(chart->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
  lp_markup_text(text, chart->out);
  lp_buf_puts(chart->out, "</text>\n");
}

void lp_chart_begin(const lp_chart *chart, const char *title, const char *style) {
  lp_buf_printf(
      chart->out,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
      "<style>text{font:12px sans-serif}.grid{stroke:#ddd}%s</style>\n<rect width=\"100%%\" height=\"100%%\" "
      "fill=\"#fff\"/>\n<clipPath id=\"plot\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n",
      LP_CHART_WIDTH, LP_CHART_HEIGHT, LP_CHART_WIDTH, LP_CHART_HEIGHT, style, LP_CHART_LEFT, LP_CHART_TOP, INNER_WIDTH,
      INNER_HEIGHT);
  lp_chart_text(chart, LP_CHART_LEFT, 22, "start", title);
}

void lp_chart_end(const lp_chart *chart) {
  lp_buf_puts(chart->out, "</svg>\n");
}

void lp_chart_tick_x(const lp_chart *chart, double value, const char *label) {
  double at = lp_chart_x(chart, value);
  lp_buf_printf(chart->out, "<path class=\"grid\" d=\"M%.1f %d V%d\"/>\n", at, LP_CHART_TOP,
                LP_CHART_TOP + INNER_HEIGHT);
  lp_chart_text(chart, at, LP_CHART_TOP + INNER_HEIGHT + 18, "middle", label);
}

void lp_chart_tick_y(const lp_chart *chart, double value, const char *label) {
  double at = lp_chart_y(chart, value);
  lp_buf_printf(chart->out, "<path class=\"grid\" d=\"M%d %.1f H%d\"/>\n", LP_CHART_LEFT, at,
                LP_CHART_LEFT + INNER_WIDTH);
  lp_chart_text(chart, LP_CHART_LEFT - 6, at + 4, "end", label);
}

/* Ticks at 1, 2 and 5 of each decade. A linear axis gets about six, at multiples of 1, 2 or 5 times a power of ten. */
static void put_ticks(const lp_chart *chart, double from, double to, bool logarithmic,
                      void (*put)(const lp_chart *chart, double value, const char *label)) {
  static const double steps[] = {1, 2, 5, 10};
  char label[32];
  if (logarithmic) {
    bool many = log10(to / from) > 2;
    for (int decade = (int)floor(log10(from)); decade <= (int)ceil(log10(to)); decade++)
      for (int i = 0; i < (many ? 1 : 3); i++) {
        double value = steps[i] * pow(10, decade);
        if (value < from || value > to) continue;
        (void)snprintf(label, sizeof label, "%g", value);
        put(chart, value, label);
      }
    return;
  }
  double unit = pow(10, floor(log10((to - from) / 6))), step = unit;
  for (int i = 0; i < 4 && step * 6 < to - from; i++)
    step = steps[i] * unit;
  for (double k = ceil(from / step); k * step <= to; k++) {
    (void)snprintf(label, sizeof label, "%g", k * step);
    put(chart, k * step, label);
  }
}

void lp_chart_name_x(const lp_chart *chart, const char *name) {
  lp_chart_text(chart, (double)LP_CHART_LEFT + (double)INNER_WIDTH / 2, LP_CHART_HEIGHT - 10, "middle", name);
}

void lp_chart_axes(const lp_chart *chart, const char *x_name, const char *y_name) {
  put_ticks(chart, chart->x0, chart->x1, chart->log_x, lp_chart_tick_x);
  put_ticks(chart, chart->y0, chart->y1, chart->log_y, lp_chart_tick_y);
  lp_chart_name_x(chart, x_name);
  double middle = (double)LP_CHART_TOP + (double)INNER_HEIGHT / 2;
  lp_buf_printf(chart->out, "<g transform=\"rotate(-90 16 %.1f)\">\n", middle);
  lp_chart_text(chart, 16, middle, "middle", y_name);
  lp_buf_puts(chart->out, "</g>\n");
}

void lp_chart_clip_begin(const lp_chart *chart) {
  lp_buf_puts(chart->out, "<g clip-path=\"url(#plot)\">\n");
}

void lp_chart_clip_end(const lp_chart *chart) {
  lp_buf_puts(chart->out, "</g>\n");
}

void lp_chart_dot(const lp_chart *chart, double x, double y, double radius, const char *colour, const char *title) {
  lp_buf_printf(chart->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\" fill=\"%s\"", lp_chart_x(chart, x),
                lp_chart_y(chart, y), radius, colour);
  if (!title) {
    lp_buf_puts(chart->out, "/>\n");
    return;
  }
  lp_buf_puts(chart->out, "><title>");
  lp_markup_text(title, chart->out);
  lp_buf_puts(chart->out, "</title></circle>\n");
}
