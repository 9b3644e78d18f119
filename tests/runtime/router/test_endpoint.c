/* The decider over an API: a server in this process gives every kind of answer that a real one may. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/router/router.h"
#include "tests/suite.h"

enum { BOTH = 1u << LP_ROUTE_EDGE | 1u << LP_ROUTE_CLOUD };

static int listener;
static char url[64];
static const char *answer;      /* the server's answer; NULL: it never answers */
static const char *chat_answer; /* to requests for a chat; NULL: as others */
static volatile int requests;
static char asked[8192]; /* the client's request */
static pthread_t thread;
static volatile int stopping; /* atomic */

static void *serve(void *unused) {
  for (;;) {
    int peer = accept(listener, NULL, NULL);
    if (peer < 0 || lp_flag_get(&stopping)) return unused;
    size_t size = 0;
    while (size < sizeof asked - 1) {
      ssize_t got = read(peer, asked + size, sizeof asked - 1 - size);
      if (got <= 0) break;
      size += (size_t)got;
      asked[size] = 0;
      const char *body = strstr(asked, "\r\n\r\n"), *length = strstr(asked, "Content-Length: ");
      if (body && length && strlen(body + 4) >= strtoul(length + 16, NULL, 10)) break;
    }
    bool chats = chat_answer && strncmp(asked, "POST /v1/chat/", 14) == 0;
    const char *sent = chats ? chat_answer : answer;
    requests++;
    if (!sent)
      (void)usleep(400000);
    else if (write(peer, sent, strlen(sent)) < 0)
      perror("write");
    (void)close(peer);
  }
}

static void setup(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  listener = socket(AF_INET, SOCK_STREAM, 0);
  ck_assert_int_ge(listener, 0);
  ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, size), 0);
  ck_assert_int_eq(listen(listener, 8), 0);
  ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
  (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/v1", ntohs(address.sin_port));
  stopping = 0;
  ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
}

static void teardown(void) {
  lp_flag_set(&stopping);
  (void)shutdown(listener, SHUT_RDWR);
  (void)pthread_join(thread, NULL);
  (void)close(listener);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* Asks once; the error's text goes to `why`. */
static lp_status ask(const char *base, double probability[LP_ROUTE_COUNT], char why[256]) {
  lp_diag *diag = lp_diag_create();
  lp_decider *decider = NULL;
  lp_endpoint_options options = {base, "small", "secret", 150};
  ck_assert_int_eq(lp_decider_endpoint(&options, &decider, diag), LP_OK);
  lp_status status = decider->score(decider, &(lp_prompt){.keywords = "code", .offered = BOTH}, probability, diag);
  (void)snprintf(why, 256, "%s", lp_diag_count(diag) > 0 ? lp_diag_get(diag, 0)->text : "");
  decider->close(decider);
  lp_diag_free(diag);
  return status;
}

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"

LP_TEST(labels_share_the_mass_of_their_spellings) {
  answer = OK_HEAD "{\"choices\":[{\"logprobs\":{\"top_logprobs\":[{\" edge\":-1.0,\"Edge\":-2.0,\" Cloud\":-1.5,\" "
                   "the\":-0.5}]}}]}";
  double probability[LP_ROUTE_COUNT];
  char why[256];
  ck_assert_int_eq(ask(url, probability, why), LP_OK);
  /* (e^-1 + e^-2) / (e^-1 + e^-2 + e^-1.5) */
  ck_assert_double_eq_tol(probability[LP_ROUTE_EDGE], 0.6928039, 1e-6);
  ck_assert_double_eq_tol(probability[LP_ROUTE_EDGE] + probability[LP_ROUTE_CLOUD], 1, 1e-12);
  ck_assert_double_eq(probability[LP_ROUTE_SPLIT], 0);
  ck_assert_ptr_nonnull(strstr(asked, "POST /v1/completions"));
  ck_assert_ptr_nonnull(strstr(asked, "Authorization: Bearer secret"));
  ck_assert_ptr_nonnull(strstr(asked, "\"max_tokens\":1"));
  ck_assert_ptr_nonnull(strstr(asked, "Keywords: code\\nDecision:"));
}

/* An API that has no completions is asked for chats, from then on at once. */
LP_TEST(an_api_of_chats) {
  answer = "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n";
  chat_answer = OK_HEAD
      "{\"choices\":[{\"message\":{\"content\":\"edge\"},\"logprobs\":{\"content\":[{\"token\":\"edge\","
      "\"logprob\":-1,\"top_logprobs\":[{\"token\":\"edge\",\"logprob\":-1,\"bytes\":null},{\"token\":\" Cloud\","
      "\"logprob\":-2},{\"token\":\"the\",\"logprob\":-1.5}]}]}}]}";
  double probability[LP_ROUTE_COUNT];
  lp_decider *decider = NULL;
  ck_assert_int_eq(lp_decider_endpoint(&(lp_endpoint_options){url, "small", NULL, 1000}, &decider, NULL), LP_OK);
  requests = 0;
  for (int i = 0; i < 2; i++) {
    const lp_prompt prompt = {.keywords = "code", .offered = BOTH};
    ck_assert_int_eq(decider->score(decider, &prompt, probability, NULL), LP_OK);
    ck_assert_double_eq_tol(probability[LP_ROUTE_EDGE], 0.7310586, 1e-6); /* 1 / (1 + e^-1) */
    ck_assert_int_eq(requests, 2 + i);
  }
  ck_assert_ptr_nonnull(strstr(asked, "\"messages\":[{\"role\":\"user\",\"content\":\"Goal: "));
  ck_assert_ptr_nonnull(strstr(asked, "\"logprobs\":true,\"max_tokens\":1,\"temperature\":0,\"top_logprobs\":20"));
  decider->close(decider);
  chat_answer = NULL;
}

static void expect_failure(const char *sent, const char *said) {
  answer = sent;
  double probability[LP_ROUTE_COUNT];
  char why[256];
  ck_assert_int_eq(ask(url, probability, why), LP_FAILED);
  ck_assert_msg(strstr(why, said) != NULL, "'%s' says nothing of '%s'", why, said);
}

/* Tokens of one text, such as two byte tokens, come as two members of one key: both count. */
LP_TEST(tokens_of_one_text_add_up) {
  answer = OK_HEAD "{\"choices\":[{\"logprobs\":{\"top_logprobs\":[{\" edge\":-1.0,\" edge\":-2.0,\" cloud\":-1}]}}]}";
  double probability[LP_ROUTE_COUNT];
  char why[256];
  ck_assert_int_eq(ask(url, probability, why), LP_OK);
  /* (e^-1 + e^-2) / (e^-1 + e^-2 + e^-1) */
  ck_assert_double_eq_tol(probability[LP_ROUTE_EDGE], 0.5776812, 1e-6);
}

LP_TEST(every_failure_says_why) {
  expect_failure(OK_HEAD "{\"choices\":[{\"text\":\" edge\"}]}", "no log-probabilities");
  expect_failure(OK_HEAD "{\"choices\":[{\"logprobs\":{\"top_logprobs\":[{\" the\":-0.1}]}}]}", "none of the routes");
  expect_failure(OK_HEAD "{\"choices\":[{\"logprobs\":{\"top_logprobs\":[{\" edge\":\"x\"}]}}]}", "wanted a number");
  expect_failure(OK_HEAD "<html>", "not valid JSON");
  expect_failure(OK_HEAD "", "not valid JSON");
  expect_failure("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n", "503");
  expect_failure("garbage\r\n\r\n", "");
  expect_failure(NULL, "timed out");
}

LP_TEST(a_server_that_is_away_is_an_error) {
  double probability[LP_ROUTE_COUNT];
  char why[256];
  ck_assert_int_eq(ask("http://127.0.0.1:1/v1", probability, why), LP_FAILED);
  ck_assert_uint_gt(strlen(why), 0);
}
