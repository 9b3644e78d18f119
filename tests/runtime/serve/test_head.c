/* Heads of requests as RFC 9112 and RFC 9110 judge them. */
#include "runtime/serve/http/head.h"
#include "tests/suite.h"

#include <string.h>

enum { MOST = 100000 };

LP_LOOP_TEST(heads, 0, 28) {
  static const struct {
    const char *version;
    lp_head_field fields[4];
    unsigned status;
    bool first;
  } rows[] = {
      {"HTTP/1.1", {{"Host", "h"}}, 0, false},
      {"HTTP/1.0", {{"Accept", "*/*"}}, 0, false},
      {"HTTP/1.1", {{"Accept", "*/*"}}, 400, true},
      {"HTTP/1.1", {{"Host", "h"}, {"host", "h"}}, 400, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length", "7"}}, 0, false},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length", "7"}, {"content-length", "7"}}, 0, false},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length", "7"}, {"content-length", "8"}}, 400, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length", "+7"}}, 400, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length", ""}}, 400, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length", "7, 7"}}, 400, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length", "0x7"}}, 400, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length ", "7"}}, 400, true},
      {"HTTP/1.1", {{"Host", "h"}, {"X\tY", "7"}}, 400, true},
      {"HTTP/1.1", {{"Host", "h"}, {"", "7"}}, 400, true},
      {"HTTP/1.1", {{"Host", "h"}, {"X\xC3", "7"}}, 400, true},
      {"HTTP/1.1", {{"Host", "h\rX: y"}}, 400, true},
      {"HTTP/1.1", {{"Host", "h"}, {"X", "a\rb"}}, 400, true},
      {"HTTP/1.1", {{"Host", "h"}, {"X", NULL}}, 0, false},
      {"HTTP/1.1", {{"Host", "h"}, {"Transfer-Encoding", "Chunked"}}, 0, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Transfer-Encoding", "chunked"}, {"Content-Length", "7"}}, 400, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Transfer-Encoding", "gzip, chunked"}}, 501, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"}}, 501, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length", "65536"}}, 0, false},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length", "65537"}}, 0, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length", "100000"}}, 0, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length", "100001"}}, 413, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length", "99999999999999999999999"}}, 413, true},
      {"HTTP/1.1", {{"Host", "h"}, {"Content-Length", "5"}, {"Expect", "200-ok"}}, 417, true},
  };
  size_t count = 0;
  while (count < 4 && rows[_i].fields[count].name)
    count++;
  lp_head_verdict found = lp_head_judge(rows[_i].fields, count, rows[_i].version, MOST);
  ck_assert_msg(found.status == rows[_i].status, "%u: %s", found.status, found.why ? found.why : "");
  ck_assert_int_eq(found.is_early, rows[_i].first);
  ck_assert_int_eq(found.why != NULL, found.status != 0);
}

LP_TEST(a_body_that_waits_is_judged_first) {
  const lp_head_field fields[] = {{"Host", "h"}, {"Content-Length", "5"}, {"Expect", "100-Continue"}};
  lp_head_verdict found = lp_head_judge(fields, LP_COUNT(fields), "HTTP/1.1", MOST);
  ck_assert(found.status == 0 && found.is_early);
}
