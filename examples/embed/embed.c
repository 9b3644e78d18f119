/* A program with llmpart inside: continues a text with a bundle, in this process or with a worker elsewhere.
 *
 *   cc embed.c -o embed $(pkg-config --cflags --libs llmpart-runtime)
 *   ./embed model.llmpart 'Once upon a time'
 *   ./embed model.llmpart 'Once upon a time' HOST:PORT        # the cloud's side at `llmpart worker`
 *   ./embed model.llmpart 'Once upon a time' worker           # the cloud's side at a worker of its own */
#include <llmpart.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what) {
  fprintf(stderr, "embed: %s: %s\n", what, llmpart_error());
  return 1;
}

static bool print(void *user, const llmpart_token *token) {
  (void)user;
  if (token->text)
    printf("%s", token->text);
  else
    printf("%d ", (int)token->token);
  return fflush(stdout) == 0; /* stops when nobody reads */
}

static void warn(void *user, const char *line) {
  (void)user;
  fprintf(stderr, "%s\n", line);
}

static int generate(const llmpart_bundle *bundle, const char *prompt, const char *cloud) {
  const llmpart_session_options options = {.size = sizeof options, .cloud = cloud, .max_tokens = 48};
  llmpart_session *session = llmpart_session_open(bundle, &options);
  if (!session) return fail("no session");
  llmpart_result result = {.size = sizeof result};
  bool ok = llmpart_generate_text(session, prompt, print, NULL, &result);
  llmpart_session_close(session);
  if (!ok) return fail("no text");
  printf("\n");
  fprintf(stderr, "%d tokens, the first after %.1f ms, the others after %.2f ms each; %.0f bytes over the link\n",
          (int)result.tokens, result.ttft_ms, result.tpot_ms, (double)(result.bytes_up + result.bytes_down));
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "embed BUNDLE PROMPT [HOST:PORT | worker]\n"), 2;
  llmpart_set_log(warn, NULL);
  bool hosts = argc > 3 && strcmp(argv[3], "worker") == 0, has_cloud = argc > 3 && !hosts;
  const llmpart_bundle_options options = {.size = sizeof options,
                                          .sides = has_cloud ? LLMPART_DEVICE_SIDE : LLMPART_BOTH_SIDES};
  llmpart_bundle *bundle = llmpart_bundle_open(argv[1], &options);
  if (!bundle) return fail("no bundle");
  llmpart_worker *worker = hosts ? llmpart_worker_start(bundle, NULL) : NULL;
  int status = hosts && !worker ? fail("no worker")
                                : generate(bundle, argv[2],
                                           worker      ? llmpart_worker_address(worker)
                                           : has_cloud ? argv[3]
                                                       : NULL);
  if (!llmpart_worker_stop(worker)) status = fail("the worker failed");
  llmpart_bundle_close(bundle);
  return status;
}
