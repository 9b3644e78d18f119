/* Stop sequences, which may begin in one piece and end in another. */
#include <stdlib.h>
#include <string.h>

#include "runtime/serve/stop.h"
#include "tests/suite.h"

static lp_completion request;
static lp_stopper stopper;
static struct {
  lp_buf text[2];
  int64_t left; /* pieces until the client leaves */
} client;

static bool take(void *user, const lp_piece *piece) {
  (void)user;
  lp_buf_puts(&client.text[piece->choice], piece->text);
  return --client.left > 0;
}

static void begin(const char *body) {
  static const lp_serve_config config = {.max_tokens = 64};
  ck_assert_int_eq(lp_completion_read(&config, false, body, strlen(body), &request, NULL), LP_OK);
  stopper = (lp_stopper){.request = &request, .sink = take};
  client.left = 100;
}

static void teardown(void) {
  lp_completion_free(&request);
  lp_buf_free(&client.text[0]);
  lp_buf_free(&client.text[1]);
}

LP_CASE(.teardown = teardown);

static bool put(int choice, const char *text) {
  return lp_stopper_put(&stopper, &(lp_piece){.choice = choice, .text = text});
}

static void has(int choice, const char *text) {
  ck_assert_str_eq(lp_buf_text(&client.text[choice]), text);
}

static const char two[] = "{\"model\":\"m\",\"prompt\":\"a\",\"n\":2,\"stop\":[\"END\",\"\\n\\n\"]}";

LP_TEST(over_pieces) {
  begin(two);
  ck_assert(put(0, "one E") && put(1, "two\n"));
  has(0, "one ");
  has(1, "two");
  ck_assert(put(0, "Ntire EN"));
  has(0, "one ENtire ");
  ck_assert(!put(0, "D of it"));
  has(0, "one ENtire ");
  ck_assert(!put(0, "more")); /* the choice has ended, the other one goes on */
  ck_assert(put(1, "E") && put(1, "E"));
  has(1, "two\nE");
  lp_stopper_end(&stopper, true);
  has(0, "one ENtire ");
  has(1, "two\nEE");
}

LP_TEST(the_first_one_counts) {
  begin(two);
  ck_assert(!put(0, "a\n\nb END"));
  has(0, "a");
  ck_assert(!put(1, "a END b\n\n"));
  has(1, "a ");
  lp_stopper_end(&stopper, true);
}

/* Held text belongs to a whole answer, but not to one that failed or whose client has left. */
LP_LOOP_TEST(the_end, 0, 3) {
  begin(two);
  if (_i == 2) client.left = 1;
  ck_assert_int_eq(put(0, "one E"), _i != 2);
  ck_assert_int_eq(put(1, "two E"), _i != 2);
  lp_stopper_end(&stopper, _i != 1);
  has(0, _i == 0 ? "one E" : "one ");
  has(1, _i == 0 ? "two E" : _i == 1 ? "two " : "");
}

LP_TEST(without_a_stop) {
  begin("{\"model\":\"m\",\"prompt\":\"a\"}");
  ck_assert(put(0, "one END\n\n") && put(0, ""));
  has(0, "one END\n\n");
  lp_stopper_end(&stopper, true);
  has(0, "one END\n\n");
}
