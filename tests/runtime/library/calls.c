/* calls BUNDLE PLACES: calls the public library with a bundle that is split, and with one of the places phone, edge and
 * server, and checks what it gives and what it refuses. Exit status 0: all as expected. */
#include <llmpart.h>

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures;

static void expect(bool holds, const char *what) {
  if (holds) return;
  failures++;
  fprintf(stderr, "calls: %s; the last error: %s\n", what, llmpart_error());
}

/* Checks that a call failed and gave a message with `wanted`. */
static void refused(bool ok, const char *wanted) {
  expect(!ok, "a call succeeded that should fail");
  expect(strstr(llmpart_error(), wanted) != NULL, wanted);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

enum { MOST = 64 };
typedef struct {
  int32_t token[MOST];
  int count, most;        /* the sink ends the generation after `most` */
  llmpart_session *stops; /* is stopped at the first token; NULL: none */
} heard;

static bool hear(void *user, const llmpart_token *token) {
  heard *to = user;
  if (to->count < MOST) to->token[to->count++] = token->token;
  if (to->stops) llmpart_session_stop(to->stops);
  expect(token->text && token->confidence > 0 && token->confidence <= 1, "a token is not whole");
  return to->count < to->most;
}

static const char prompt[] = "Once upon a time";

static heard generate(const llmpart_bundle *bundle, llmpart_session_options options, llmpart_result *result) {
  heard found = {.most = MOST};
  options.size = sizeof options;
  llmpart_session *session = llmpart_session_open(bundle, &options);
  expect(session && llmpart_generate_text(session, prompt, hear, &found, result), "no generation");
  llmpart_session_close(session);
  return found;
}

static bool same(const heard *a, const heard *b) {
  return a->count == b->count && memcmp(a->token, b->token, (size_t)a->count * sizeof a->token[0]) == 0;
}

/* ---- what is checked --------------------------------------------------------------------------------------------- */

static void check_text(const llmpart_bundle *bundle) {
  int32_t tokens[MOST];
  char text[256], little[4] = "xyz";
  ptrdiff_t count = llmpart_encode(bundle, prompt, tokens, MOST);
  expect(count > 1 && count < MOST, "encode");
  expect(llmpart_encode(bundle, prompt, NULL, 0) == count, "encode without room");
  ptrdiff_t size = llmpart_decode(bundle, tokens, (size_t)count, text, sizeof text);
  expect(size == (ptrdiff_t)strlen(text) && strstr(text, prompt), "decode");
  expect(llmpart_decode(bundle, tokens, (size_t)count, little, 3) == size && little[3] == '\0' && little[2] != 'z',
         "decode with little room");
  expect(llmpart_bundle_vocab_size(bundle) > 1 && llmpart_bundle_context_length(bundle) >= 0, "figures of the bundle");
  expect(llmpart_bundle_is_split(bundle), "the bundle is split");
}

static void check_refusals(const char *path, const llmpart_bundle *bundle) {
  const struct {
    llmpart_session_options options;
    long later;
  } newer = {{.size = sizeof newer}, 1};
  refused(llmpart_bundle_open("/nonexistent", NULL), "cannot open");
  refused(llmpart_bundle_open(path, &(llmpart_bundle_options){.check = true}), "its size is not set");
  refused(llmpart_session_open(bundle, &newer.options), "does not know all its fields");
  refused(llmpart_session_open(bundle, &(llmpart_session_options){.size = sizeof newer.options, .top_p = 1.5}),
          "sampling wants");
  refused(llmpart_session_open(bundle, &(llmpart_session_options){.size = sizeof newer.options, .theta = -1}), "theta");
  refused(llmpart_session_open(bundle, &(llmpart_session_options){.size = sizeof newer.options, .max_tokens = -1}),
          "0 or more");
  refused(
      llmpart_session_open(bundle, &(llmpart_session_options){.size = sizeof newer.options, .mode = LLMPART_THRESHOLD}),
      "mode threshold");
  refused(
      llmpart_session_open(bundle, &(llmpart_session_options){.size = sizeof newer.options, .cloud = "127.0.0.1:1"}),
      "cannot reach");
  refused(llmpart_worker_start(bundle,
                               &(llmpart_worker_options){.size = sizeof(llmpart_worker_options), .listen = "nowhere"}),
          "nowhere");
  const llmpart_bundle_options device = {.size = sizeof device, .sides = LLMPART_DEVICE_SIDE};
  llmpart_bundle *half = llmpart_bundle_open(path, &device);
  expect(half != NULL, "the device's side");
  refused(llmpart_session_open(half, NULL), "needs both sides");
  refused(llmpart_worker_start(half, NULL), "needs both sides");
  llmpart_bundle_close(half);
}

static void *generate_beside(void *bundle) {
  expect(llmpart_error()[0] == '\0', "a thread that called nothing has an error");
  heard *found = malloc(sizeof *found);
  if (found) *found = generate(bundle, (llmpart_session_options){.max_tokens = 12, .threads = 1}, NULL);
  return found;
}

/* Sessions on two threads, and with a worker in this process, generate the same tokens. */
static void check_sameness(llmpart_bundle *bundle) {
  pthread_t thread;
  void *beside = NULL;
  llmpart_result result = {.size = sizeof result}, over = {.size = sizeof over};
  bool has_thread = pthread_create(&thread, NULL, generate_beside, bundle) == 0;
  heard here = generate(bundle, (llmpart_session_options){.max_tokens = 12}, &result);
  expect(has_thread && pthread_join(thread, &beside) == 0 && beside && same(&here, beside), "another thread");
  free(beside);
  expect(here.count == 12 && result.tokens == 12 && result.ttft_ms > 0 && result.bytes_up == 0, "one process");
  llmpart_worker *worker = llmpart_worker_start(bundle, NULL);
  expect(worker != NULL, "no worker");
  if (!worker) return;
  heard there =
      generate(bundle, (llmpart_session_options){.max_tokens = 12, .cloud = llmpart_worker_address(worker)}, &over);
  expect(same(&here, &there) && over.bytes_up > 0 && over.bytes_down > 0, "over a worker");
  expect(llmpart_worker_stop(worker), "the worker failed");
  heard drawn = generate(bundle, (llmpart_session_options){.max_tokens = 12, .temperature = 5, .seed = 1}, NULL);
  expect(!same(&here, &drawn), "a high temperature changes nothing");
}

static void check_ends(const llmpart_bundle *bundle) {
  llmpart_session *session = llmpart_session_open(bundle, NULL);
  heard few = {.most = 3}, one = {.most = MOST, .stops = session}, again = {.most = 4};
  expect(session && llmpart_generate_text(session, prompt, hear, &few, NULL) && few.count == 3, "the sink ends it");
  expect(session && llmpart_generate_text(session, prompt, hear, &one, NULL) && one.count == 1, "a stop ends it");
  expect(session && llmpart_generate_text(session, prompt, hear, &again, NULL) && again.count == 4, "and again");
  expect(memcmp(few.token, again.token, sizeof few.token[0] * 3) == 0, "the session began anew");
  refused(session && llmpart_generate(session, few.token, 0, NULL, NULL, NULL), "no tokens");
  refused(session && llmpart_generate(session, (int32_t[]){-5}, 1, NULL, NULL, NULL), "vocabulary");
  /* A program that was built when a result ended with its tokens. */
  struct {
    size_t size;
    int64_t tokens;
    double ttft_ms;
  } older = {offsetof(llmpart_result, ttft_ms), 0, -1};
  expect(session && llmpart_generate(session, few.token, 3, NULL, NULL, (llmpart_result *)&older), "an older program");
  expect(older.tokens == 128 && older.ttft_ms < 0, "fields beyond an older program's");
  llmpart_session_close(session);
}

/* At a Unix socket, so that the workers of both places know each other's address before they listen. */
static llmpart_worker *serve_place(const llmpart_bundle *bundle, const char *place, const char *listen,
                                   const char *peers) {
  return llmpart_worker_start(
      bundle, &(llmpart_worker_options){
                  .size = sizeof(llmpart_worker_options), .place = place, .listen = listen, .peers = peers});
}

/* Sessions with workers of all places in this process generate what one session does that runs all of them. */
static void check_places(const char *path) {
  char at[2][40], all[100];
  llmpart_bundle *bundle = llmpart_bundle_open(path, NULL);
  expect(bundle != NULL, "no bundle of places");
  if (!bundle) return;
  for (int i = 0; i < 2; i++)
    (void)snprintf(at[i], sizeof at[i], "unix:/tmp/llmpart-calls-%d-%d", (int)getpid(), i);
  (void)snprintf(all, sizeof all, "edge=%s,server=%s", at[0], at[1]);
  refused(serve_place(bundle, NULL, at[0], all), "wants the `place`");
  refused(serve_place(bundle, "phone", at[0], all), "no worker can serve the place 'phone'");
  refused(serve_place(bundle, "edge", at[0], "cloud=127.0.0.1:1"), "no worker can run the place 'cloud'");
  llmpart_worker *edge = serve_place(bundle, "edge", at[0], all), *server = serve_place(bundle, "server", at[1], all);
  expect(edge && server, "no workers of the places");
  expect(edge && strcmp(llmpart_worker_address(edge), at[0]) == 0, "the address of a worker");
  llmpart_result over = {.size = sizeof over};
  const heard here = generate(bundle, (llmpart_session_options){.max_tokens = 12}, NULL);
  const heard there = generate(bundle, (llmpart_session_options){.max_tokens = 12, .cloud = all}, &over);
  expect(here.count == 12 && same(&here, &there) && over.bytes_up > 0, "over the workers of places");
  llmpart_session_options options = {.size = sizeof options, .cloud = "server=127.0.0.1:1"};
  refused(llmpart_session_open(bundle, &options), "no worker is given for the place 'edge'");
  options.cloud = "127.0.0.1:1";
  refused(llmpart_session_open(bundle, &options), "wanted the name of the place before");
  expect(llmpart_worker_stop(edge) && llmpart_worker_stop(server), "a worker failed");
  llmpart_bundle_close(bundle);
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  llmpart_bundle *bundle = llmpart_bundle_open(argv[1], NULL);
  if (!bundle) return fprintf(stderr, "calls: %s\n", llmpart_error()), 1;
  check_text(bundle);
  check_refusals(argv[1], bundle);
  check_sameness(bundle);
  check_ends(bundle);
  check_places(argv[2]);
  llmpart_bundle_close(bundle);
  llmpart_session_close(NULL);
  llmpart_bundle_close(NULL);
  expect(llmpart_worker_stop(NULL), "no worker to stop");
  return failures > 0;
}
