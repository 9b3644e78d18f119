/* Charts as SVG text: axes, grid, dots and lines, so that all charts of llmpart look alike. Functions append to
 * chart->out, which the caller owns; they keep nothing. The SVG is a file of its own or part of a page. */
#pragma once

#include "base/base.h"

enum {
  LP_CHART_WIDTH = 720,
  LP_CHART_HEIGHT = 440,
  LP_CHART_LEFT = 90,
  LP_CHART_RIGHT = 20,
  LP_CHART_TOP = 40,
  LP_CHART_BOTTOM = 50
};

/* The values at the ends of the axes; logarithmic ones are positive. */
typedef struct {
  lp_buf *out;
  double x0, x1, y0, y1;
  bool log_x, log_y;
} lp_chart;

/* A margin around the values seen: axes from the least to the largest of `count` values, rounded outwards. */
void lp_chart_fit(const double *values, size_t count, bool logarithmic, double *from, double *to);

/* `style` is CSS of the caller's classes, or "". */
void lp_chart_begin(const lp_chart *chart, const char *title, const char *style);
void lp_chart_end(const lp_chart *chart);
double lp_chart_x(const lp_chart *chart, double value);
double lp_chart_y(const lp_chart *chart, double value);
/* A line of the grid with its label. */
void lp_chart_tick_x(const lp_chart *chart, double value, const char *label);
void lp_chart_tick_y(const lp_chart *chart, double value, const char *label);
/* Draws ticks at round values and the axes' titles. */
void lp_chart_axes(const lp_chart *chart, const char *x_name, const char *y_name);
void lp_chart_name_x(const lp_chart *chart, const char *name);
/* Everything drawn between the two calls is clipped to the axes. */
void lp_chart_clip_begin(const lp_chart *chart);
void lp_chart_clip_end(const lp_chart *chart);
/* `title` shows when a pointer rests on the dot; NULL: nothing. */
void lp_chart_dot(const lp_chart *chart, double x, double y, double radius, const char *colour, const char *title);
/* Text at pixels; `anchor` is start, middle or end. */
void lp_chart_text(const lp_chart *chart, double x, double y, const char *anchor, const char *text);

/* Text with the characters that XML and HTML reserve written as entities. */
void lp_markup_text(const char *text, lp_buf *out);
