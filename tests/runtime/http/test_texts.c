/* The small HTTP server of texts: paths, methods, keys and hosts. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/http/library.h"
#include "runtime/http/texts.h"
#include "tests/suite.h"

static const char *skip(void) {
  const lp_http_library *library;
  lp_diag *diag = lp_diag_create();
  lp_status status = lp_http_library_load(&library, diag);
  lp_diag_free(diag);
  return status == LP_OK ? NULL : "there is no libmicrohttpd";
}

LP_SKIP_IF(skip);

static unsigned write_number(void *user, lp_buf *out) {
  lp_buf_printf(out, "%d\n", *(int *)user);
  return 200;
}

static unsigned write_nothing(void *user, lp_buf *out) {
  (void)user, (void)out;
  return 503;
}

static const lp_http_text texts[] = {{"/number", "text/numbers", write_number, false},
                                     {"/open", "text/plain", write_number, true},
                                     {"/empty", "text/plain", write_nothing, true}};

typedef struct {
  lp_http_texts *server;
  lp_http_texts_options options;
  int number, port;
} fixture;

static void open_server(fixture *f, const char *listen, const char *key) {
  lp_diag *diag = lp_diag_create();
  char *host = NULL;
  *f = (fixture){.number = 42};
  f->options = (lp_http_texts_options){listen, key, texts, LP_COUNT(texts), &f->number};
  lp_status status = lp_http_texts_open(&f->options, &f->server, &host, &f->port, diag);
  ck_assert_msg(status == LP_OK, "%s", lp_diag_count(diag) ? lp_diag_get(diag, 0)->text : "");
  ck_assert_int_gt(f->port, 0);
  free(host);
  lp_diag_free(diag);
}

/* Sends a request with "Connection: close" and returns the whole reply, in a buffer that the next call overwrites. */
static const char *ask(const fixture *f, const char *line, const char *headers, const char *body) {
  static char reply[4096];
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f->port)};
  lp_buf request = {0};
  size_t size = 0;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
  lp_buf_printf(&request, "%s HTTP/1.1\r\nConnection: close\r\nContent-Length: %zu\r\n%s\r\n%s", line, strlen(body),
                headers, body);
  ck_assert_int_eq(send(fd, request.data, request.size, 0), (ssize_t)request.size);
  for (ssize_t got; size < sizeof reply - 1 && (got = recv(fd, reply + size, sizeof reply - 1 - size, 0)) > 0;)
    size += (size_t)got;
  reply[size] = '\0';
  lp_buf_free(&request);
  close(fd);
  return reply;
}

static void expect(const fixture *f, const char *line, const char *headers, const char *body, int status,
                   const char *text) {
  const char *reply = ask(f, line, headers, body), *end = strstr(reply, "\r\n\r\n");
  char wanted[32];
  snprintf(wanted, sizeof wanted, "HTTP/1.1 %d ", status);
  ck_assert_msg(lp_has_prefix(reply, wanted), "%s, %s: found '%s', %d wanted", line, headers, reply, status);
  ck_assert_msg(end && strcmp(end + 4, text) == 0, "%s, %s: found '%s', '%s' wanted", line, headers, reply, text);
}

static const char local[] = "Host: localhost\r\n";

LP_TEST(serves_its_paths) {
  fixture f;
  open_server(&f, "127.0.0.1:0", NULL);
  expect(&f, "GET /number", local, "", 200, "42\n");
  f.number = 7;
  expect(&f, "GET /number", local, "", 200, "7\n");
  ck_assert_ptr_nonnull(strstr(ask(&f, "GET /number", local, ""), "\r\nContent-Type: text/numbers\r\n"));
  expect(&f, "GET /empty", local, "", 503, "");
  expect(&f, "GET /number", local, "a body that is not read", 200, "7\n");
  expect(&f, "GET /other", local, "", 404, "there is no such path\n");
  expect(&f, "POST /number", local, "a body", 405, "wanted GET\n");
  ck_assert_ptr_nonnull(strstr(ask(&f, "POST /number", local, ""), "\r\nAllow: GET\r\n"));
  ck_assert_ptr_null(strstr(ask(&f, "GET /other", local, ""), "\r\nAllow: "));
  lp_http_texts_close(f.server);
}

LP_TEST(refuses_other_hosts_without_a_key) {
  static const char *const own[] = {"Host: localhost\r\n", "Host: 127.0.0.1:80\r\n", "Host: [::1]:80\r\n"};
  fixture f;
  open_server(&f, "127.0.0.1:0", NULL);
  for (size_t i = 0; i < LP_COUNT(own); i++)
    expect(&f, "GET /number", own[i], "", 200, "42\n");
  expect(&f, "GET /number", "Host: example.com\r\n", "", 403, "the request is for another host\n");
  expect(&f, "GET /number", "Host: localhost.example.com\r\n", "", 403, "the request is for another host\n");
  expect(&f, "GET /number", "Host: 192.0.2.1\r\nAuthorization: Bearer key\r\n", "", 403,
         "the request is for another host\n");
  expect(&f, "GET /open", "Host: example.com\r\n", "", 200, "42\n");
  lp_http_texts_close(f.server);
}

LP_TEST(asks_for_the_key) {
  static const char *const wrong[] = {"Host: localhost\r\n",
                                      "Host: localhost\r\nAuthorization: Bearer other\r\n",
                                      "Host: localhost\r\nAuthorization: Bearer secret2\r\n",
                                      "Host: localhost\r\nAuthorization: Bearer \r\n",
                                      "Host: localhost\r\nAuthorization: Basic secret\r\n",
                                      "Host: localhost\r\nAuthorization: secret\r\n"};
  fixture f;
  open_server(&f, "0.0.0.0:0", "secret");
  for (size_t i = 0; i < LP_COUNT(wrong); i++)
    expect(&f, "GET /number", wrong[i], "", 401, "the key is missing or wrong\n");
  expect(&f, "GET /number", "Host: example.com\r\nAuthorization: Bearer secret\r\n", "", 200, "42\n");
  expect(&f, "GET /open", "Host: example.com\r\n", "", 200, "42\n");
  lp_http_texts_close(f.server);
}

static void expect_not_opened(const char *listen, const char *text) {
  lp_diag *diag = lp_diag_create();
  lp_http_texts *server;
  lp_http_texts_options options = {listen, NULL, texts, LP_COUNT(texts), NULL};
  char *host = NULL;
  int port;
  ck_assert_int_eq(lp_http_texts_open(&options, &server, &host, &port, diag), LP_FAILED);
  ck_assert_ptr_null(server);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(lp_diag_get(diag, 0)->text, text), "found '%s', '%s' wanted", lp_diag_get(diag, 0)->text, text);
  lp_diag_free(diag);
  free(host);
}

LP_TEST(refuses_addresses) {
  expect_not_opened("0.0.0.0:0", "'0.0.0.0:0' is not a loopback address, so a key is required");
  expect_not_opened("[::]:0", "'[::]:0' is not a loopback address, so a key is required");
  expect_not_opened("somewhere", "'somewhere' is no address: wanted HOST:PORT with a number");
  expect_not_opened("example.com:80", "'example.com:80' is no address");
  expect_not_opened("[::1:80", "is no address");
  lp_http_texts_close(NULL);
}

LP_TEST(refuses_a_port_in_use) {
  fixture f;
  char listen[32], text[64];
  open_server(&f, "127.0.0.1:0", NULL);
  snprintf(listen, sizeof listen, "127.0.0.1:%d", f.port);
  snprintf(text, sizeof text, "cannot listen on %s: ", listen);
  expect_not_opened(listen, text);
  lp_http_texts_close(f.server);
}
