/* Charts: the ends of both axes lie at the margins, and values between them by their share. */
#include "base/page/chart.h"
#include "tests/suite.h"

LP_CASE(.timeout = 60);

LP_TEST(the_ends_of_axes_lie_at_the_margins) {
  for (int logarithmic = 0; logarithmic < 2; logarithmic++) {
    const lp_chart chart = {.x0 = 1, .x1 = 100, .y0 = 1, .y1 = 100, .log_x = logarithmic, .log_y = logarithmic};
    const double middle = logarithmic ? 10 : 50.5;
    ck_assert_double_eq_tol(lp_chart_x(&chart, 1), 90, 1e-9);
    ck_assert_double_eq_tol(lp_chart_x(&chart, middle), 395, 1e-9);
    ck_assert_double_eq_tol(lp_chart_x(&chart, 100), 700, 1e-9);
    ck_assert_double_eq_tol(lp_chart_y(&chart, 1), 390, 1e-9);
    ck_assert_double_eq_tol(lp_chart_y(&chart, middle), 215, 1e-9);
    ck_assert_double_eq_tol(lp_chart_y(&chart, 100), 40, 1e-9);
  }
}
