/* What the server takes from browsers. */
#include "runtime/serve/http/guard.h"
#include "tests/suite.h"

static const char *hosts[] = {"server.example"}, *origins[] = {"https://app.example"}, *any[] = {"*"};
static lp_serve_key secret[] = {{.key = "secret"}};
static const lp_serve_config closed = {.hosts = {hosts, 1}, .origins = {origins, 1}}, keyed = {.keys = {secret, 1}};

static unsigned refusal(const lp_serve_config *config, const char *host, const char *origin, const char *type) {
  const char *why = NULL;
  const lp_guard_request request = {type ? "POST" : "GET", host, origin, type};
  unsigned status = lp_guard_refuses(config, &request, &why);
  ck_assert_int_eq(status != 0, why != NULL);
  return status;
}

LP_TEST(hosts_are_this_machine) {
  static const char *const own[] = {"localhost",  "LocalHost:8080", "127.0.0.1:1",    "127.9.9.9",
                                    "[::1]:8080", "[::1]",          "server.example", "Server.Example:80"};
  static const char *const others[] = {"",          "evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                                       "128.0.0.1", "[::2]:80",     "server.example.evil",    "10.0.0.1:8080",
                                       "[::1",      "localhos"};
  for (size_t i = 0; i < LP_COUNT(own); i++)
    ck_assert_msg(refusal(&closed, own[i], NULL, NULL) == 0, "%s is refused", own[i]);
  for (size_t i = 0; i < LP_COUNT(others); i++) {
    ck_assert_msg(refusal(&closed, others[i], NULL, NULL) == 403, "%s is taken", others[i]);
    ck_assert_msg(refusal(&keyed, others[i], NULL, NULL) == 0, "%s is refused in spite of a key", others[i]);
  }
  ck_assert_uint_eq(refusal(&closed, NULL, NULL, NULL), 0); /* a client of HTTP 1.0 is no browser */
}

LP_TEST(pages_are_of_this_server_or_listed) {
  const lp_serve_config open = {.origins = {any, 1}};
  ck_assert_uint_eq(refusal(&closed, "localhost:80", "http://localhost:80", NULL), 0);
  ck_assert_uint_eq(refusal(&closed, "localhost:80", "https://app.example", NULL), 0);
  ck_assert_uint_eq(refusal(&closed, "localhost:80", "http://localhost:81", NULL), 403);
  ck_assert_uint_eq(refusal(&closed, "localhost:80", "http://localhost", NULL), 403);
  ck_assert_uint_eq(refusal(&closed, "localhost:80", "https://app.example.evil", NULL), 403);
  ck_assert_uint_eq(refusal(&closed, "localhost:80", "null", NULL), 403);
  ck_assert_uint_eq(refusal(&closed, NULL, "http://localhost", NULL), 403);
  ck_assert_uint_eq(refusal(&keyed, "localhost:80", "https://evil.example", NULL), 403);
  ck_assert_uint_eq(refusal(&open, "localhost:80", "https://evil.example", NULL), 0);
  ck_assert(lp_guard_shares(&closed, "https://app.example"));
  ck_assert(!lp_guard_shares(&closed, "http://localhost:80"));
}

LP_TEST(bodies_are_json) {
  ck_assert_uint_eq(refusal(&closed, "localhost", NULL, "application/json"), 0);
  ck_assert_uint_eq(refusal(&closed, "localhost", NULL, "Application/JSON; charset=utf-8"), 0);
  ck_assert_uint_eq(refusal(&closed, "localhost", NULL, "application/json-seq"), 415);
  ck_assert_uint_eq(refusal(&closed, "localhost", NULL, "text/plain"), 415);
  ck_assert_uint_eq(refusal(&closed, "localhost", NULL, ""), 415);
  const char *why = NULL;
  const lp_guard_request bare = {"POST", "localhost", NULL, NULL};
  ck_assert_uint_eq(lp_guard_refuses(&keyed, &bare, &why), 415);
}
