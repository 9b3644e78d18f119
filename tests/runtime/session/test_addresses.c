/* Addresses of workers in text: names, Unix sockets, refusals, and what a bundle of more places wants. */
#include <string.h>

#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static lp_arena *arena;
static lp_diag *diag;
static void setup(void) {
  arena = lp_arena_create();
  diag = lp_diag_create();
}
static void teardown(void) {
  lp_arena_free(arena);
  lp_diag_free(diag);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* "only" or "name=address name=address". */
static const char *text_of(const lp_place_addresses *from) {
  lp_buf out = {0};
  if (from->only) lp_buf_printf(&out, "%s", from->only);
  for (size_t i = 0; i < from->count; i++)
    lp_buf_printf(&out, "%s%s>%s", i > 0 ? " " : "", from->place[i].place, from->place[i].address);
  const char *text = lp_arena_strdup(arena, lp_buf_text(&out));
  lp_buf_free(&out);
  return text;
}

LP_TEST(values_of_an_option) {
  static const struct {
    const char *values[3];
    const char *want, *refusal;
  } rows[] = {
      {{0}, "", NULL},
      {{"h:1"}, "h:1", NULL},
      {{"[::1]:80"}, "[::1]:80", NULL},
      {{"unix:/run/a=b"}, "unix:/run/a=b", NULL},
      {{"edge=h:1"}, "edge>h:1", NULL},
      {{"edge=unix:/run/a=b", "far=h:2"}, "edge>unix:/run/a=b far>h:2", NULL},
      {{"there"}, NULL, "'there' is no address: wanted HOST:PORT or unix:PATH"},
      {{"edge="}, NULL, "'' is no address"},
      {{"=h:1"}, NULL, "'=h:1' is no address"},
      {{"edge=h:65536"}, NULL, "'h:65536' is no address"},
      {{"unix:"}, NULL, "'unix:' is no address"},
      {{"h:1", "h:2"}, NULL, "two addresses: wanted the name of a place before each, such as edge=h:2"},
      {{"h:1", "edge=h:2"}, NULL, "two addresses: wanted the name of a place before each"},
      {{"edge=h:1", "h:2"}, NULL, "two addresses: wanted the name of a place before each"},
      {{"edge=h:1", "far=h:2", "edge=h:3"}, NULL, "the place 'edge' has two addresses"},
  };
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    size_t count = 0;
    while (count < LP_COUNT(rows[i].values) && rows[i].values[count])
      count++;
    lp_place_addresses found;
    lp_diag_clear(diag);
    lp_status status = lp_place_addresses_of(rows[i].values, count, "--cloud", arena, &found, diag);
    if (rows[i].refusal) {
      ck_assert_int_eq(status, LP_FAILED);
      ck_assert_msg(strstr(toy_error(diag), rows[i].refusal) != NULL, "row %zu: %s", i, toy_error(diag));
      ck_assert_str_eq(lp_diag_get(diag, 0)->loc.file, "--cloud");
    } else {
      ck_assert_msg(status == LP_OK, "row %zu: %s", i, toy_error(diag));
      ck_assert_str_eq(text_of(&found), rows[i].want);
    }
  }
}

LP_TEST(as_many_as_places) {
  char text[LP_PLACES_MAX + 1][16];
  const char *values[LP_PLACES_MAX + 1];
  lp_place_addresses found;
  for (int i = 0; i <= LP_PLACES_MAX; i++) {
    (void)snprintf(text[i], sizeof text[i], "p%d=h:1", i);
    values[i] = text[i];
  }
  ck_assert_int_eq(lp_place_addresses_of(values, LP_PLACES_MAX, "--peer", arena, &found, diag), LP_OK);
  ck_assert_uint_eq(found.count, LP_PLACES_MAX);
  ck_assert_int_eq(lp_place_addresses_of(values, LP_PLACES_MAX + 1, "--peer", arena, &found, diag), LP_FAILED);
  ck_assert(strstr(toy_error(diag), "more than 8 addresses") != NULL);
}

/* A bundle of the places phone, edge.1 and edge.2; of two places the text stays as it is. */
LP_TEST(text_for_a_bundle) {
  static const struct {
    const char *text;
    bool all;
    const char *want, *refusal;
  } rows[] = {
      {"edge.1=h:1,edge.2=h:2", true, "edge.1>h:1 edge.2>h:2", NULL},
      {"edge.2=unix:/a=b,edge.1=h:1", true, "edge.2>unix:/a=b edge.1>h:1", NULL},
      {"edge.2=h:2", false, "edge.2>h:2", NULL},
      {"edge.2=h:2", true, NULL, "no worker is given for the place 'edge.1' in edge.2=h:2"},
      {"edge.1=h:1,edge.1=h:2", false, NULL, "the place 'edge.1' has two addresses"},
      {"phone=h:1", false, NULL, "no worker can run the place 'phone'; there are: 'edge.1', 'edge.2'"},
      {"h:1", false, NULL, "the bundle has 3 places: wanted the name of the place before 'h:1', as in 'edge.1=h:1'"},
      {"unix:/a=b", false, NULL, "wanted the name of the place before 'unix:/a=b'"},
      {"edge.1=h:1,", false, NULL, "'' is no address"},
      {"edge.1=h", false, NULL, "'h' is no address"},
  };
  lp_bundle *three = toy_bundle_make(&(toy_placement){.prefill = "001122", .places = 3}, LP_LOAD_DEVICE);
  lp_bundle *two = toy_bundle_make(&(toy_placement){.prefill = "dddccc"}, LP_LOAD_DEVICE);
  lp_place_addresses found;
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    lp_diag_clear(diag);
    lp_status status = lp_place_addresses_read(rows[i].text, three, arena, rows[i].all, &found, diag);
    if (rows[i].refusal) {
      ck_assert_int_eq(status, LP_FAILED);
      ck_assert_msg(strstr(toy_error(diag), rows[i].refusal) != NULL, "row %zu: %s", i, toy_error(diag));
    } else {
      ck_assert_msg(status == LP_OK, "row %zu: %s", i, toy_error(diag));
      ck_assert_str_eq(text_of(&found), rows[i].want);
    }
  }
  ck_assert_int_eq(lp_place_addresses_read("h:1", two, arena, true, &found, diag), LP_OK);
  ck_assert_str_eq(text_of(&found), "h:1");
  lp_bundle_free(three);
  lp_bundle_free(two);
}
