#include "base/file.h"
#include "tests/hwmodels/expect.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <unistd.h>

static lp_link *load(const char *text) {
  lp_link *link = NULL;
  ck_assert_msg(lp_link_load(text, &link, NULL) == LP_OK, "'%s' does not load", text);
  return link;
}

static lp_link *load_text(const lp_buf *text) {
  char path[] = "/tmp/lp-link-XXXXXX.yaml";
  int fd = mkstemps(path, 5);
  ck_assert_int_ge(fd, 0);
  close(fd);
  ck_assert_int_eq(lp_file_write(path, text->data, text->size, NULL), LP_OK);
  lp_link *link = load(path);
  unlink(path);
  return link;
}

static size_t lines_of(const char *text) {
  size_t count = 0;
  for (; *text; text++)
    count += *text == '\n';
  return count;
}

LP_TEST(links_of_the_library) {
  static const char *const names[] = {"5g", "lan", "loopback", "lte", "wifi"};
  lp_buf table = {0};
  lp_link_list(&table);
  ck_assert_uint_eq(lines_of(lp_buf_text(&table)), 1 + LP_COUNT(names));
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    lp_link *link = load(names[i]), *back;
    ck_assert_str_eq(link->name, names[i]);
    ck_assert_ptr_nonnull(strstr(lp_buf_text(&table), names[i]));
    lp_buf text = {0};
    lp_link_print(link, &text);
    back = load_text(&text);
    for (int f = 0; f < LP_LINK_FIGURE_COUNT; f++) {
      ck_assert_double_eq(back->figure[f], link->figure[f]);
      ck_assert_msg(link->figure[f] == 0 || link->source[f], "%s: figure %d has no source", names[i], f);
    }
    lp_link_free(link);
    lp_link_free(back);
    lp_buf_free(&text);
  }
  lp_buf_free(&table);
  lp_link_free(NULL);
}

/* Message time = rtt / 2 + 8 bytes / bandwidth: 8,192 bytes at 10 ms and 50 or 200 Mbit/s. */
LP_TEST(figures_alone_are_a_link) {
  lp_link *link = load("rtt=10ms,up=50Mbit/s,down=200Mbit/s");
  ck_assert_double_eq_tol(lp_link_up_ms(link, 8192), 5 + 1.31072, 1e-9);
  ck_assert_double_eq_tol(lp_link_down_ms(link, 8192), 5 + 0.32768, 1e-9);
  lp_link_free(link);
  link = load("down=200Mbit/s,up=50Mbit/s,rtt=0,loss=0.5");
  ck_assert_double_eq_tol(lp_link_up_ms(link, 8192), 2 * 1.31072, 1e-9);
  lp_link_free(link);
  link = load("lan,rtt=1ms");
  ck_assert_double_eq(link->figure[LP_LINK_RTT], 1);
  ck_assert_double_eq(link->figure[LP_LINK_UP], 941e6);
  lp_link_free(link);
}

static void refuses(const char *text, const char *wanted, const char *note) {
  lp_diag *diag = lp_diag_create();
  lp_link *link = NULL;
  ck_assert_int_eq(lp_link_load(text, &link, diag), LP_FAILED);
  ck_assert_ptr_null(link);
  expect_error(diag, wanted, note);
}

LP_TEST(bad_links) {
  refuses("wify", "error: unknown link 'wify'", "note: did you mean 'wifi'?");
  refuses("rtt=10ms", "rtt=10ms: error: the link lacks 'up': the bandwidth from device to cloud", NULL);
  refuses("rtt=10ms,up=1Mbit/s,dwon=1Mbit/s", "rtt=10ms,up=1Mbit/s,dwon=1Mbit/s: error: a link has no figure 'dwon'",
          "rtt=10ms,up=1Mbit/s,dwon=1Mbit/s: note: did you mean 'down'?");
  refuses("rtt=10parsecs,up=1Mbit/s,down=1Mbit/s",
          "rtt=10parsecs,up=1Mbit/s,down=1Mbit/s: error: '10parsecs' is not a time such as 400ms, 0.1s or 20us", NULL);
  refuses("rtt=1ms,up=0,down=1",
          "rtt=1ms,up=0,down=1: error: 'up' is '0', but the bandwidth from device to cloud is from 1 bit/s to "
          "1000000000 Gbit/s",
          NULL);
  refuses("lan,", "lan,: error: '' after the link's name is not a change such as 'rtt=...'", NULL);
  refuses("./no.yaml", "./no.yaml: error: cannot open: No such file or directory", NULL);
}
