/* Any bytes as the answer of the cloud's API. The first three choose the request, the status of HTTP, and how many
 * bytes come at a time. */
#include <stdlib.h>
#include <string.h>

#include "runtime/serve/place/site.h"
#include "tests/runtime/serve/canned_curl.h"

typedef struct {
  int32_t choices;
  size_t bytes, left; /* left: pieces until the client leaves */
} client;

static size_t length_of(const char *text) {
  return text ? strlen(text) : 0;
}

/* Reads all of a piece. */
static bool take(void *user, const lp_piece *piece) {
  client *c = user;
  if (piece->choice < 0 || piece->choice >= c->choices) abort();
  c->bytes += length_of(piece->text) + length_of(piece->machine);
  for (size_t i = 0; i < piece->logprob_count; i++)
    c->bytes += length_of(piece->logprobs[i].token) + length_of(piece->logprobs[i].logprob) +
                length_of(piece->logprobs[i].top) + length_of(piece->logprobs[i].bytes);
  for (size_t i = 0; i < piece->call_count; i++)
    c->bytes += length_of(piece->calls[i].id) + length_of(piece->calls[i].name) + strlen(piece->calls[i].arguments);
  return c->left-- > 0;
}

static const char *const requests[] = {"{\"model\":\"m\",\"prompt\":\"a\"}",
                                       "{\"model\":\"m\",\"prompt\":\"a\",\"n\":2,\"logprobs\":2}",
                                       "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
                                       ("{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"n\":3,"
                                        "\"logprobs\":true,\"top_logprobs\":2}")};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const lp_serve_config config = {
      .url = "http://cloud/v1", .model = "m", .max_tokens = 64, .timeout_ms = 1e9, .total_ms = 1e9};
  static const volatile int stop;
  if (size < 3) return 0;
  const char *body = requests[data[0] % 4];
  lp_diag *diag = lp_diag_create();
  lp_completion request;
  lp_site_server *site = NULL;
  if (lp_completion_read(&config, data[0] % 4 >= 2, body, strlen(body), &request, diag) != LP_OK) abort();
  if (lp_site_api(&config, &site, diag) != LP_OK) abort();
  static const long statuses[] = {200, 200, 200, 400, 500};
  canned = (canned_answer){.status = statuses[data[1] % 5], .data = (const char *)data + 3, .size = size - 3};
  canned.step = data[2];
  client c = {.choices = request.choices, .left = data[0] / 4};
  lp_usage usage;
  lp_status status = site->complete(site, &request, &stop, take, &c, &usage, diag);
  if ((status == LP_OK) != (lp_diag_error_count(diag) == 0)) abort(); /* each failure is told once */
  if (status == LP_OK && canned.status != 200) abort();
  site->close(site);
  lp_completion_free(&request);
  lp_diag_free(diag);
  return 0;
}
