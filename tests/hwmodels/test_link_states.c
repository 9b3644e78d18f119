/* Links that vary: the state for which plans are made, and traces. */
#include "base/file.h"
#include "tests/hwmodels/expect.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <unistd.h>

/* Ten states; the round trip grows while the bandwidths fall. */
static lp_link *ten_states(void) {
  lp_link_state states[10];
  for (int i = 0; i < 10; i++)
    states[i] = (lp_link_state){4.0 * (i + 1), 1e6 * (10 - i), 2e6 * (10 - i)};
  lp_link *link = lp_link_from_states("ten", "ten states", "a test", states, 10);
  ck_assert_ptr_nonnull(link);
  return link;
}

/* The share of states that are at least as good as the figures. */
static double share_as_good(const lp_link *link) {
  int32_t good = 0;
  for (int32_t i = 0; i < link->state_count; i++)
    good += link->state[i].rtt_ms <= link->figure[LP_LINK_RTT] && link->state[i].up_bps >= link->figure[LP_LINK_UP] &&
            link->state[i].down_bps >= link->figure[LP_LINK_DOWN];
  return (double)good / link->state_count;
}

LP_TEST(the_state_of_a_quantile) {
  lp_link *link = ten_states();
  ck_assert_double_eq(link->quantile, 0.95);
  ck_assert_double_eq(link->figure[LP_LINK_RTT], 40); /* 95 % of ten states are all of them */
  ck_assert(lp_link_plan_for(link, 0.5));
  ck_assert_double_eq(link->figure[LP_LINK_RTT], 20);
  ck_assert_double_eq(link->figure[LP_LINK_UP], 6e6);
  ck_assert_double_eq(link->figure[LP_LINK_DOWN], 12e6);
  ck_assert_double_eq(lp_link_up_ms(link, 750), 10 + 1);
  const lp_link last = lp_link_in_state(link, 9);
  ck_assert_double_eq(last.figure[LP_LINK_UP], 1e6);
  ck_assert_int_eq(last.state_count, 0);
  ck_assert_double_eq(lp_link_state_quantile(link, LP_LINK_RTT, 0), 4);
  ck_assert_double_eq(lp_link_state_quantile(link, LP_LINK_UP, 1), 10e6);
  lp_link_free(link);
}

/* Figures that are independent of each other: the quantile holds for all three together. */
LP_TEST(a_quantile_holds_for_all_figures_at_once) {
  enum { COUNT = 500 };
  static lp_link_state states[COUNT];
  uint64_t seed = 1;
  for (int i = 0; i < COUNT; i++) {
    double value[3];
    for (int k = 0; k < 3; k++) {
      seed = lp_hash_bytes(&seed, sizeof seed, 7);
      value[k] = 1 + (double)(seed % 1000);
    }
    states[i] = (lp_link_state){value[0], 1e6 * value[1], 1e6 * value[2]};
  }
  lp_link *link = lp_link_from_states("random", "random", "a test", states, COUNT);
  for (double quantile = 0.05; quantile < 1; quantile += 0.05) {
    ck_assert(lp_link_plan_for(link, quantile));
    ck_assert_double_ge(share_as_good(link), quantile - 1e-9);
    ck_assert_double_le(share_as_good(link), quantile + 0.02); /* and not for many more states */
  }
  lp_link_free(link);
}

LP_TEST(states_in_which_nothing_passes) {
  lp_link_state states[10] = {{10, 0, 1e6}};
  for (int i = 1; i < 10; i++)
    states[i] = (lp_link_state){10, 1e6, 1e6};
  ck_assert_ptr_null(lp_link_from_states("outage", "outage", "a test", states, 10));
  states[0].up_bps = 1;
  lp_link *link = lp_link_from_states("slow", "slow", "a test", states, 10);
  ck_assert_ptr_nonnull(link);
  ck_assert(lp_link_plan_for(link, 0.9));
  ck_assert_double_eq(link->figure[LP_LINK_UP], 1e6);
  lp_link_free(link);
}

/* Writes a trace, loads it, and returns the status; `*link` is the caller's. */
static lp_status load_trace(const char *text, lp_link **link, lp_diag *diag) {
  char path[] = "/tmp/lp-trace-XXXXXX.csv";
  int fd = mkstemps(path, 4);
  ck_assert_int_ge(fd, 0);
  close(fd);
  ck_assert_int_eq(lp_file_write(path, text, strlen(text), NULL), LP_OK);
  lp_status status = lp_link_load(path, link, diag);
  unlink(path);
  return status;
}

LP_TEST(traces) {
  lp_link *link = NULL;
  ck_assert_int_eq(load_trace("down_bps,time_s,up_bps,rtt_ms\r\n2e6,1,1e6,10\n\n3e6,2,4e6,20\n", &link, NULL), LP_OK);
  ck_assert_int_eq(link->state_count, 2);
  ck_assert_double_eq(link->state[1].rtt_ms, 20);
  ck_assert_double_eq(link->state[1].up_bps, 4e6);
  ck_assert_double_eq(link->figure[LP_LINK_RTT], 20);
  ck_assert_double_eq(link->figure[LP_LINK_UP], 1e6);
  lp_link_free(link);
}

static void refuses_trace(const char *text, const char *wanted) {
  lp_link *link = NULL;
  lp_diag *diag = lp_diag_create();
  lp_buf found = {0};
  ck_assert_int_ne(load_trace(text, &link, diag), LP_OK);
  ck_assert_ptr_null(link);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  lp_diag_format(lp_diag_get(diag, 0), &found);
  ck_assert_msg(strstr(lp_buf_text(&found), wanted), "'%s' lacks '%s'", lp_buf_text(&found), wanted);
  lp_buf_free(&found);
  lp_diag_free(diag);
}

LP_TEST(traces_that_are_refused) {
  refuses_trace("rtt_ms,up_bps\n1,2\n", ".csv:1: error: the trace lacks the column 'down_bps'");
  refuses_trace("rtt_ms,up_bps,down_bps\n", "error: the trace has no rows");
  refuses_trace("rtt_ms,up_bps,down_bps\n1,2,3\n1,x,3\n", ":3: error: 'up_bps' is 'x', not a number from 0 on");
  refuses_trace("rtt_ms,up_bps,down_bps\n1,2,-3\n", ":2: error: 'down_bps' is '-3'");
  refuses_trace("rtt_ms,up_bps,down_bps\n1,2\n", ":2: error: the row lacks 'down_bps'");
  refuses_trace("rtt_ms,up_bps,down_bps\n1,0,3\n", "error: nothing passes in more than 5 % of the rows");
}
