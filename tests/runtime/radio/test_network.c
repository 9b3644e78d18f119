#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/radio/radio.h"
#include "tests/suite.h"

static lp_radio_profile *load(const char *name) {
  lp_radio_profile *profile = NULL;
  ck_assert_msg(lp_radio_profile_load(name, &profile, NULL) == LP_OK, "'%s' does not load", name);
  return profile;
}

LP_TEST(antenna) {
  lp_radio_antenna a = {8, 65, 65, 12, 30}, omni = {2, 0, 65, 12, 30};
  ck_assert_double_eq_tol(lp_radio_antenna_db(&a, 0, 12), 8, 1e-12);
  ck_assert_double_eq_tol(lp_radio_antenna_db(&a, 32.5, 12), 5, 1e-12); /* half of the beam width: -3 dB */
  ck_assert_double_eq_tol(lp_radio_antenna_db(&a, -32.5, 12), 5, 1e-12);
  ck_assert_double_eq_tol(lp_radio_antenna_db(&a, 0, 44.5), 5, 1e-12);
  ck_assert_double_eq_tol(lp_radio_antenna_db(&a, 32.5, 44.5), 2, 1e-12);
  ck_assert_double_eq_tol(lp_radio_antenna_db(&a, 180, 90), -22, 1e-12);
  ck_assert_double_eq_tol(lp_radio_antenna_db(&a, 350, 12), lp_radio_antenna_db(&a, -10, 12), 1e-12);
  ck_assert_double_eq(lp_radio_antenna_db(&omni, 77, 33), 2);
}

LP_TEST(hexagons) {
  static const int32_t sizes[] = {1, 2, 7, 19};
  for (size_t i = 0; i < LP_COUNT(sizes); i++) {
    lp_radio_layout layout = lp_radio_layout_make(sizes[i], 500, false);
    ck_assert_int_eq(layout.sites, sizes[i]);
    for (int32_t a = 0; a < layout.sites; a++) {
      double least = INFINITY;
      for (int32_t b = 0; b < layout.sites; b++)
        if (a != b)
          least = fmin(least, hypot(layout.site[a].x - layout.site[b].x, layout.site[a].y - layout.site[b].y));
      if (sizes[i] > 1) ck_assert_double_eq_tol(least, 500, 1e-6);
    }
  }
}

/* Wrapped around, every site has six neighbours at one distance: there is no edge. */
LP_TEST(wrapping_around) {
  static const int32_t sizes[] = {7, 19};
  for (size_t i = 0; i < LP_COUNT(sizes); i++) {
    lp_radio_layout layout = lp_radio_layout_make(sizes[i], 500, true);
    for (int32_t a = 0; a < layout.sites; a++) {
      int neighbours = 0;
      for (int32_t b = 0; b < layout.sites; b++) {
        lp_radio_point way = lp_radio_from_site(&layout, b, layout.site[a]);
        if (fabs(hypot(way.x, way.y) - 500) < 1e-6) neighbours++;
      }
      ck_assert_int_eq(neighbours, 6);
    }
  }
}

LP_TEST(drops_are_the_same_under_a_seed) {
  lp_radio_profile *profile = load("uma-3gpp");
  lp_radio_network *a = lp_radio_drop(profile, 200, 5), *b = lp_radio_drop(profile, 200, 5);
  lp_radio_network *more = lp_radio_drop(profile, 250, 5), *other = lp_radio_drop(profile, 200, 6);
  size_t size = (size_t)(a->users * a->sectors) * sizeof *a->gain;
  ck_assert_int_eq(a->sectors, 57);
  ck_assert_mem_eq(a->gain, b->gain, size);
  ck_assert_mem_eq(a->gain, more->gain, size); /* users that are added move no others */
  ck_assert_int_ne(memcmp(a->gain, other->gain, size), 0);
  int indoor = 0, served = 0;
  for (int32_t i = 0; i < a->users; i++) {
    indoor += a->user[i].indoor;
    for (int32_t s = 0; s < a->sectors; s++)
      ck_assert_double_le(a->gain[i * a->sectors + s], a->gain[i * a->sectors + a->user[i].sector]);
  }
  for (int32_t s = 0; s < a->sectors; s++)
    served += a->count[s];
  ck_assert_int_eq(served, 200);
  ck_assert_int_ge(indoor, 140);
  ck_assert_int_le(indoor, 180);
  lp_radio_free(a);
  lp_radio_free(b);
  lp_radio_free(more);
  lp_radio_free(other);
  lp_radio_profile_free(profile);
}

/* Sectors of a site share the shadow: their gains differ only by the antennas, at most 30 dB. Without a common part
 * between the sites they would hide a correlation; with 1 all sites share it. */
LP_TEST(shadows_are_those_of_sites) {
  lp_radio_profile *profile = load("uma-3gpp");
  lp_radio_network *network = lp_radio_drop(profile, 100, 1);
  for (int32_t i = 0; i < network->users; i++) {
    const lp_radio_user *user = &network->user[i];
    for (int32_t site = 0; site < network->layout.sites; site++) {
      lp_radio_point way = lp_radio_from_site(&network->layout, site, user->at);
      double azimuth = atan2(way.y, way.x) * 180 / M_PI, down = atan2(23.5, hypot(way.x, way.y)) * 180 / M_PI;
      double loss[3];
      for (int32_t s = 0; s < 3; s++)
        loss[s] = lp_radio_antenna_db(&profile->antenna, azimuth - lp_radio_bearing_deg(s), down) -
                  lp_radio_db(network->gain[i * network->sectors + 3 * site + s]);
      ck_assert_double_eq_tol(loss[0], loss[1], 1e-9);
      ck_assert_double_eq_tol(loss[0], loss[2], 1e-9);
    }
  }
  lp_radio_free(network);
  lp_radio_profile_free(profile);
}

/* Two cells without walls, shadows and fading: the SINR follows from path losses and powers. */
LP_TEST(two_cells_by_hand) {
  lp_radio_profile *profile = load("two-cell");
  lp_radio_network *network = lp_radio_drop(profile, 50, 1);
  double noise = lp_radio_linear(-174 + 9) * 180e3, power = lp_radio_linear(46) / 100;
  for (int32_t i = 0; i < network->users; i++) {
    double received[2];
    for (int32_t s = 0; s < 2; s++) {
      received[s] = power * network->gain[2 * i + s];
      lp_radio_path path = {
          LP_RADIO_UMA, true, hypot(network->user[i].at.x - 500 * s, network->user[i].at.y), 25, 1.5, 3.5, 0, 0, 0};
      double los = lp_radio_path_loss_db(&path), found = -lp_radio_db(network->gain[2 * i + s]);
      path.los = false;
      ck_assert(fabs(found - los) < 1e-9 || fabs(found - lp_radio_path_loss_db(&path)) < 1e-9);
    }
    int32_t own = network->user[i].sector;
    double wanted = received[own] / (received[1 - own] + noise);
    ck_assert_double_eq_tol(lp_radio_mean_sinr(network, LP_RADIO_DOWN, i) / wanted, 1, 1e-9);
  }
  double rate[50];
  lp_radio_rates(network, LP_RADIO_DOWN, 2000, 1, rate);
  for (int32_t i = 0; i < network->users; i++) {
    double all = 100 * 180e3 * log2(1 + lp_radio_mean_sinr(network, LP_RADIO_DOWN, i));
    ck_assert_double_eq_tol(rate[i] * network->count[network->user[i].sector] / all, 1, 0.03);
  }
  lp_radio_free(network);
  lp_radio_profile_free(profile);
}

/* A user sends at most its power over all blocks, less when near, and is heard by its own sector best. */
LP_TEST(uplink) {
  lp_radio_profile *profile = load("umi-3gpp");
  lp_radio_network *network = lp_radio_drop(profile, 120, 1);
  double most = lp_radio_linear(23) / 100;
  int limited = 0;
  for (int32_t i = 0; i < network->users; i++) {
    double gain = network->gain[i * network->sectors + network->user[i].sector];
    double sent = lp_radio_signal(network, LP_RADIO_UP, i) / gain;
    double open = lp_radio_linear(-80 - 0.8 * lp_radio_db(gain));
    ck_assert_double_eq_tol(sent / fmin(most, open), 1, 1e-9);
    limited += open > most;
    ck_assert_double_gt(lp_radio_mean_sinr(network, LP_RADIO_UP, i), 0);
  }
  ck_assert_int_gt(limited, 0);
  ck_assert_int_lt(limited, 120);
  lp_radio_free(network);
  lp_radio_profile_free(profile);
}

LP_TEST(profiles_print_and_read_back) {
  const char *const *names = NULL;
  size_t count = lp_radio_profile_names(&names);
  ck_assert_uint_eq(count, 3);
  for (size_t i = 0; i < count; i++) {
    lp_radio_profile *profile = load(names[i]), *back = NULL;
    lp_buf text = {0}, again = {0};
    lp_radio_profile_print(profile, &text);
    ck_assert_int_eq(lp_radio_profile_parse("printed", text.data, text.size, &back, NULL), LP_OK);
    lp_radio_profile_print(back, &again);
    ck_assert_str_eq(text.data, again.data);
    lp_buf_free(&text);
    lp_buf_free(&again);
    lp_radio_profile_free(profile);
    lp_radio_profile_free(back);
  }
}

LP_TEST(bad_profiles) {
  static const struct {
    const char *text, *wanted;
  } rows[] = {
      {"title: x\n", "r.yaml:1:1: error: the radio profile lacks 'radio'"},
      {"radio: x\nsites: 5\n", "r.yaml:1:1: error: 'sites' is 5, not 1, 2, 7 or 19"},
      {"radio: x\nsites: 2\nwrap_around: true\n", "r.yaml:1:1: error: 'wrap_around' needs 1, 7 or 19 'sites', not 2"},
      {"radio: x\nscenario: UMb\n", "r.yaml:2:11: error: 'scenario' is 'UMb', not one of UMa, UMi, RMa, InH-office, "
                                    "InH-open"},
      {"radio: x\ninter_site_m: 60\n",
       "r.yaml:1:1: error: 'min_distance_m' leaves no room: it is 35, half of 'inter_site_m' is 30"},
      {"radio: x\npower_dbm: -1000\n", "r.yaml:2:12: error: 'power_dbm' is '-1000', not a number from -50 to 100"},
  };
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    lp_diag *diag = lp_diag_create();
    lp_radio_profile *profile = NULL;
    ck_assert_int_eq(lp_radio_profile_parse("r.yaml", rows[i].text, strlen(rows[i].text), &profile, diag), LP_FAILED);
    ck_assert_ptr_null(profile);
    lp_buf found = {0};
    lp_diag_format(lp_diag_get(diag, 0), &found);
    ck_assert_str_eq(found.data, rows[i].wanted);
    lp_buf_free(&found);
    lp_diag_free(diag);
  }
}
