/* sessions LLMPART BUNDLE [SESSIONS [TOKENS [PROMPT [THREADS [SHORTEST]]]]]: measures the gain of serving sessions
 * together. Starts one worker (LLMPART is the command), lets SESSIONS (64) devices generate TOKENS (32) each after
 * PROMPT (16) tokens of their own (or from SHORTEST up to that), first one after the other and then all at once, and
 * prints tokens per second of both, their ratio, the longest wait for a token, and the worker's greatest memory. Exit
 * status 1 when a session's tokens differ. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "runtime/runtime.h"

typedef struct {
  const lp_bundle *bundle;
  const char *address;
  int64_t tokens, prompt, shortest;
} bench;

typedef struct {
  const bench *b;
  uint64_t number;
  int32_t *made; /* [tokens] */
  double gap_ms; /* longest wait for a token after the first */
  bool failed;
  pthread_t thread;
} device;

static void *generate(void *user) {
  device *d = user;
  const bench *b = d->b;
  lp_diag *diag = lp_diag_create();
  lp_generate_options options = {
      .cloud = b->address, .max_tokens = b->tokens, .ignore_eos = true, .threads = 1, .sampling = {.top_p = 1}};
  int64_t length = b->shortest + (int64_t)d->number * 37 % (b->prompt - b->shortest + 1);
  int32_t *prompt = lp_alloc((size_t)length * sizeof *prompt);
  for (int64_t i = 0; i < length; i++)
    prompt[i] = (int32_t)(lp_random_bits(1, d->number, (uint64_t)i) % (uint64_t)lp_bundle_vocab(b->bundle));
  lp_session *session = NULL;
  lp_generation out = {0};
  lp_status status = lp_session_open(b->bundle, &options, &session, diag);
  if (status == LP_OK) status = lp_session_generate(session, prompt, 1, length, NULL, NULL, &out, diag);
  d->failed = status != LP_OK || (int64_t)out.tokens.count != b->tokens;
  if (d->failed) fprintf(stderr, "sessions: %s\n", status != LP_OK ? lp_diag_get(diag, 0)->text : "too few tokens");
  for (size_t i = 0; !d->failed && i < out.tokens.count; i++) {
    d->made[i] = out.tokens.data[i].token;
    if (i > 0 && out.tokens.data[i].ms > d->gap_ms) d->gap_ms = out.tokens.data[i].ms;
  }
  lp_generation_free(&out);
  lp_session_close(session);
  free(prompt);
  lp_diag_free(diag);
  return NULL;
}

static device *create(const bench *b, size_t count) {
  device *all = lp_alloc(count * sizeof *all);
  for (size_t i = 0; i < count; i++)
    all[i] = (device){.b = b, .number = i, .made = lp_alloc((size_t)b->tokens * sizeof(int32_t))};
  return all;
}

static double run(device *all, size_t count, bool together) {
  double begin = lp_now_ms();
  for (size_t i = 0; i < count; i++) {
    if (!together)
      generate(&all[i]);
    else if (pthread_create(&all[i].thread, NULL, generate, &all[i]) != 0)
      exit(1);
  }
  for (size_t i = 0; together && i < count; i++)
    pthread_join(all[i].thread, NULL);
  return (lp_now_ms() - begin) / 1e3;
}

static size_t different(const device *a, const device *b, size_t count) {
  size_t found = 0;
  for (size_t i = 0; i < count; i++)
    found += a[i].failed || b[i].failed || memcmp(a[i].made, b[i].made, (size_t)a->b->tokens * sizeof(int32_t)) != 0;
  return found;
}

static double longest_gap(const device *all, size_t count) {
  double longest = 0;
  for (size_t i = 0; i < count; i++)
    longest = all[i].gap_ms > longest ? all[i].gap_ms : longest;
  return longest;
}

static long peak_kib(int pid) {
  char line[256];
  long peak = 0;
  snprintf(line, sizeof line, "/proc/%d/status", pid);
  FILE *file = fopen(line, "r");
  while (file && fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, "VmHWM:", 6) == 0) peak = strtol(line + 6, NULL, 10);
  if (file) fclose(file);
  return peak;
}

static void destroy(device *all, size_t count) {
  for (size_t i = 0; i < count; i++)
    free(all[i].made);
  free(all);
}

static int64_t argument(int argc, char **argv, int index, int64_t usual) {
  return argc > index ? strtoll(argv[index], NULL, 10) : usual;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  size_t count = (size_t)argument(argc, argv, 3, 64);
  bench b = {.tokens = argument(argc, argv, 4, 32), .prompt = argument(argc, argv, 5, 16)};
  b.shortest = argument(argc, argv, 7, b.prompt);
  if (b.shortest < 1 || b.shortest > b.prompt || b.tokens < 1 || count < 1) return 2;
  lp_diag *diag = lp_diag_create();
  lp_bundle *bundle = NULL;
  lp_worker_process worker = {0};
  if (lp_bundle_load(argv[2], &(lp_bundle_options){.load = LP_LOAD_DEVICE}, &bundle, diag) != LP_OK ||
      lp_worker_spawn(argv[1], &(lp_worker_request){.bundle = argv[2], .threads = (int32_t)argument(argc, argv, 6, 0)},
                      &worker, diag) != LP_OK ||
      lp_worker_await(&worker, diag) != LP_OK)
    return fprintf(stderr, "sessions: %s\n", lp_diag_get(diag, 0)->text), 1;
  b.bundle = bundle;
  b.address = worker.address;
  device *warm = create(&b, 1), *alone = create(&b, count), *together = create(&b, count);
  (void)run(warm, 1, false);
  long first = peak_kib(worker.pid);
  double one = run(alone, count, false), all = run(together, count, true), made = (double)count * (double)b.tokens;
  size_t wrong = different(alone, together, count);
  printf(
      "%zu sessions of %lld + %lld tokens: %.1f tokens/s one after the other, %.1f together, %.2f times; %zu differ\n"
      "longest wait for a token after the first: %.0f ms alone, %.0f together; worker %.0f MiB, %.0f with one "
      "session\n",
      count, (long long)b.prompt, (long long)b.tokens, made / one, made / all, one / all, wrong,
      longest_gap(alone, count), longest_gap(together, count), (double)peak_kib(worker.pid) / 1024,
      (double)first / 1024);
  lp_worker_stop(&worker);
  destroy(warm, 1);
  destroy(alone, count);
  destroy(together, count);
  lp_bundle_free(bundle);
  lp_diag_free(diag);
  return wrong > 0;
}
