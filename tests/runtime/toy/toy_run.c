#include "tests/runtime/toy/toy_run.h"
#include "runtime/bundle/bundle.h"
#include "runtime/runtime.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

toy_worker toy_worker_start(const char *bundle, const char *budget, const char *idle_ms) {
  return toy_worker_start_at(bundle, budget, idle_ms, "127.0.0.1:0");
}

toy_worker toy_worker_start_at(const char *bundle, const char *budget, const char *idle_ms, const char *address) {
  toy_worker worker = {0};
  int ends[2];
  if (pipe(ends) != 0) abort();
  worker.pid = fork();
  if (worker.pid < 0) abort();
  if (worker.pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(LP_TOY_WORKER, "toy_worker", bundle, budget ? budget : "0", idle_ms ? idle_ms : "0", address, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  FILE *file = fdopen(ends[0], "r");
  int port = 0;
  if (!file || fscanf(file, "%d", &port) != 1) abort();
  fclose(file);
  snprintf(worker.address, sizeof worker.address, "127.0.0.1:%d", port);
  return worker;
}

int toy_worker_end(toy_worker *worker) {
  int status = 0;
  kill(worker->pid, SIGTERM);
  waitpid(worker->pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void toy_worker_stop(toy_worker *worker) {
  kill(worker->pid, SIGKILL);
  waitpid(worker->pid, NULL, 0);
}

lp_bundle *toy_bundle_load(const char *path, unsigned sides) {
  lp_bundle_options options = {.load = sides};
  lp_bundle *bundle = NULL;
  lp_diag *diag = lp_diag_create();
  if (lp_bundle_load(path, &options, &bundle, diag) != LP_OK) {
    fprintf(stderr, "%s: %s\n", path, toy_error(diag));
    abort();
  }
  lp_diag_free(diag);
  return bundle;
}

lp_bundle *toy_bundle_make(const toy_placement *placement, unsigned sides) {
  char *dir = toy_dir_create(), *path = toy_bundle_write(dir, "toy", placement);
  lp_bundle *bundle = toy_bundle_load(path, sides);
  if (lp_bundle_await_check(bundle, NULL) != LP_OK) abort();
  free(path);
  toy_dir_remove(dir);
  return bundle;
}

int toy_connect(const char *address) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1))};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) abort();
  return fd;
}

void toy_prompts(int32_t out[TOY_BATCH * TOY_PROMPT]) {
  for (int i = 0; i < TOY_BATCH * TOY_PROMPT; i++)
    out[i] = (i * 17 + i * i / 5 + 3) % TOY_VOCAB;
}

void toy_generate(const lp_bundle *bundle, const char *cloud, int64_t batch, lp_sampling sampling, int32_t *tokens,
                  lp_generation *totals) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_generate_options options = {
      .cloud = cloud, .sampling = sampling, .max_tokens = TOY_MADE, .ignore_eos = true, .threads = 2};
  lp_session *session = NULL;
  lp_diag *diag = lp_diag_create();
  lp_generation made = {0};
  if (lp_session_open(bundle, &options, &session, diag) != LP_OK ||
      lp_session_generate(session, prompts, batch, TOY_PROMPT, NULL, NULL, &made, diag) != LP_OK) {
    fprintf(stderr, "generate: %s\n", toy_error(diag));
    abort();
  }
  for (size_t i = 0; i < made.tokens.count; i++)
    tokens[i] = made.tokens.data[i].token;
  lp_session_close(session);
  lp_diag_free(diag);
  if (totals)
    *totals = made;
  else
    lp_generation_free(&made);
}

const char *toy_error(const lp_diag *diag) {
  for (size_t i = 0; i < lp_diag_count(diag); i++)
    if (lp_diag_get(diag, i)->severity == LP_ERROR) return lp_diag_get(diag, i)->text;
  return "";
}
