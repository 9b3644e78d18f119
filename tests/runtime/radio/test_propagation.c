#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/radio/radio.h"
#include "tests/suite.h"

/* Worked out by hand from the tables of TR 38.901; the grid of 1,000 points is pathloss.sh. */
LP_TEST(path_loss_of_the_tables) {
  static const struct {
    lp_radio_path path;
    double wanted;
  } rows[] = {
      {{LP_RADIO_UMA, true, 100, 25, 1.5, 3.5, 0, 0, 0}, 83.1382},
      {{LP_RADIO_UMA, false, 100, 25, 1.5, 3.5, 0, 0, 0}, 103.0375},
      {{LP_RADIO_UMA, true, 1000, 25, 1.5, 3.5, 0, 0, 0}, 109.4119}, /* beyond d'BP = 560 m */
      {{LP_RADIO_UMI, true, 100, 10, 1.5, 3.5, 0, 0, 0}, 85.3142},
      {{LP_RADIO_UMI, false, 100, 10, 1.5, 3.5, 0, 0, 0}, 104.6438},
      {{LP_RADIO_RMA, true, 1000, 35, 1.5, 0.7, 0, 5, 20}, 93.3816}, /* beyond dBP = 770 m */
      {{LP_RADIO_RMA, false, 1000, 35, 1.5, 0.7, 0, 5, 20}, 116.4449},
      {{LP_RADIO_INH, true, 20, 3, 1, 3.5, 0, 0, 0}, 65.8264},
      {{LP_RADIO_INH, false, 20, 3, 1, 3.5, 0, 0, 0}, 80.7591},
  };
  for (size_t i = 0; i < LP_COUNT(rows); i++)
    ck_assert_double_eq_tol(lp_radio_path_loss_db(&rows[i].path), rows[i].wanted, 1e-3);
}

LP_TEST(continuous_at_the_breakpoint) {
  static const lp_radio_scenario scenarios[] = {LP_RADIO_UMA, LP_RADIO_UMI, LP_RADIO_RMA};
  for (size_t i = 0; i < LP_COUNT(scenarios); i++)
    for (int f = 0; f < 8; f++)
      for (int h = 0; h < 5; h++) {
        double fc = 0.7 * pow(1.7, f), h_ut = 1.5 + 2 * h;
        lp_radio_path path = {scenarios[i], true, 0, scenarios[i] == LP_RADIO_UMI ? 10 : 25, h_ut, fc, 0, 0, 0};
        double edge = lp_radio_breakpoint(&path);
        if (scenarios[i] == LP_RADIO_RMA) edge = sqrt(edge * edge - (25 - h_ut) * (25 - h_ut)); /* where d3d is dBP */
        path.d2d = edge * (1 - 1e-9);
        double before = lp_radio_path_loss_db(&path);
        path.d2d = edge * (1 + 1e-9);
        ck_assert_double_eq_tol(lp_radio_path_loss_db(&path), before, 1e-6);
      }
  lp_radio_path path = {LP_RADIO_UMA, true, 100, 25, 1.5, 3.5, 0, 0, 0};
  ck_assert_double_eq_tol(lp_radio_breakpoint(&path), 560, 1e-9);
  path.scenario = LP_RADIO_INH;
  ck_assert(isinf(lp_radio_breakpoint(&path)));
}

LP_TEST(never_less_without_line_of_sight) {
  for (int s = 0; s < LP_RADIO_SCENARIOS; s++)
    for (int i = 0; i < 33; i++) {
      lp_radio_path path = {(lp_radio_scenario)s, true, pow(1.3, i), 25, 1.5, 3.5, 0, 0, 0};
      double with = lp_radio_path_loss_db(&path);
      path.los = false;
      ck_assert_double_ge(lp_radio_path_loss_db(&path), with);
    }
}

LP_TEST(line_of_sight) {
  static const struct {
    lp_radio_scenario scenario;
    double d, h_ut, wanted;
  } rows[] = {
      {LP_RADIO_UMA, 18, 1.5, 1},
      {LP_RADIO_UMA, 100, 1.5, 0.347671},
      {LP_RADIO_UMA, 100, 23, 0.570795},
      {LP_RADIO_UMI, 100, 1.5, 0.230984},
      {LP_RADIO_RMA, 10, 1.5, 1},
      {LP_RADIO_RMA, 1010, 1.5, 0.367879},
      {LP_RADIO_INH, 1, 1, 1},
      {LP_RADIO_INH, 5.9, 1, 0.367879},
      {LP_RADIO_INH, 39.1, 1, 0.117721},
      {LP_RADIO_INH_OPEN, 5, 1, 1},
      {LP_RADIO_INH_OPEN, 40, 1, 0.609967},
      {LP_RADIO_INH_OPEN, 260.7, 1, 0.198655},
  };
  for (size_t i = 0; i < LP_COUNT(rows); i++)
    ck_assert_double_eq_tol(lp_radio_los_probability(rows[i].scenario, rows[i].d, rows[i].h_ut), rows[i].wanted, 1e-5);
}

/* Half of the links of a user at 21.5 m see the ground, the others a height of 12, 15, 18 m. */
LP_TEST(environment_height) {
  ck_assert_double_eq(lp_radio_environment_height(LP_RADIO_UMI, 100, 22, 0.99, 0.99), 1);
  ck_assert_double_eq(lp_radio_environment_height(LP_RADIO_UMA, 100, 12, 0.99, 0.99), 1);
  ck_assert_double_eq(lp_radio_environment_height(LP_RADIO_UMA, 10, 22, 0.99, 0.99), 1);
  double c = pow(0.85, 1.5) * 1.25 * exp(-100 / 150.0), alone = 1 / (1 + c);
  ck_assert_double_eq(lp_radio_environment_height(LP_RADIO_UMA, 100, 21.5, alone - 1e-9, 0), 1);
  ck_assert_double_eq(lp_radio_environment_height(LP_RADIO_UMA, 100, 21.5, alone + 1e-9, 0), 12);
  ck_assert_double_eq(lp_radio_environment_height(LP_RADIO_UMA, 100, 21.5, alone + 1e-9, 0.5), 15);
  ck_assert_double_eq(lp_radio_environment_height(LP_RADIO_UMA, 100, 21.5, alone + 1e-9, 0.999), 18);
}

LP_TEST(walls_and_shadows) {
  ck_assert_double_eq_tol(lp_radio_o2i_db(3.5, false, 0), 12.6975, 1e-3);
  ck_assert_double_eq_tol(lp_radio_o2i_db(3.5, true, 0), 26.8498, 1e-3);
  ck_assert_double_eq_tol(lp_radio_o2i_db(3.5, true, 10) - lp_radio_o2i_db(3.5, true, 0), 5, 1e-12);
  lp_radio_path path = {LP_RADIO_UMA, true, 100, 25, 1.5, 3.5, 0, 0, 0};
  ck_assert_double_eq(lp_radio_shadow_db(&path, false), 4);
  ck_assert_double_eq(lp_radio_shadow_db(&path, true), 7);
  path.los = false;
  ck_assert_double_eq(lp_radio_shadow_db(&path, false), 6);
  path.scenario = LP_RADIO_UMI;
  ck_assert_double_eq(lp_radio_shadow_db(&path, false), 7.82);
}

LP_TEST(what_the_tables_cover) {
  lp_radio_path path = {LP_RADIO_UMA, true, 100, 25, 1.5, 3.5, 0, 0, 0};
  ck_assert_ptr_null(lp_radio_path_outside(&path));
  path.d2d = 6000;
  ck_assert_str_eq(lp_radio_path_outside(&path), "the distance is outside of 10 m to 5 km");
  path.scenario = LP_RADIO_RMA;
  ck_assert_ptr_null(lp_radio_path_outside(&path));
}
