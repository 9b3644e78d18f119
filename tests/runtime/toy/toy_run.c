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

/* `arguments` are those of toy_worker, itself included, and NULL. */
static toy_worker start(const char *const *arguments) {
  toy_worker worker = {0};
  int ends[2];
  if (pipe(ends) != 0) abort();
  worker.pid = fork();
  if (worker.pid < 0) abort();
  if (worker.pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(LP_TOY_WORKER, (char *const *)(uintptr_t)arguments);
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

toy_worker toy_worker_start_at(const char *bundle, const char *budget, const char *idle_ms, const char *address) {
  const char *arguments[] = {"toy_worker", bundle, budget ? budget : "0", idle_ms ? idle_ms : "0", address, NULL};
  return start(arguments);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* A socket that is bound and does not listen holds a port that another one may listen on. */
static int hold_port(char out[32]) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd, (struct sockaddr *)&at, size) != 0 || getsockname(fd, (struct sockaddr *)&at, &size) != 0)
    abort();
  snprintf(out, 32, "127.0.0.1:%d", ntohs(at.sin_port));
  return fd;
}

void toy_places_open(const char *path, const lp_bundle *bundle, toy_places *out) {
  *out = (toy_places){.path = path, .count = lp_bundle_place_count(bundle)};
  for (lp_place i = 1; i < out->count; i++) {
    out->held[i] = hold_port(out->port[i]);
    out->address[i - 1] = out->peer[i - 1] = (lp_place_address){lp_bundle_place_name(bundle, i), out->port[i]};
  }
}

void toy_places_start_one(toy_places *places, lp_place place) {
  char number[16];
  snprintf(number, sizeof number, "%d", (int)place);
  const char *budget = places->budget ? places->budget : "0";
  const char *arguments[6 + 2 * LP_PLACES_MAX + 1] = {"toy_worker", places->path,        budget,
                                                      "0",          places->port[place], number};
  for (lp_place i = 1; i < places->count; i++) {
    arguments[4 + 2 * i] = places->peer[i - 1].place;
    arguments[5 + 2 * i] = places->peer[i - 1].address;
  }
  places->worker[place] = start(arguments);
}

void toy_places_start(toy_places *places) {
  for (lp_place i = 1; i < places->count; i++)
    toy_places_start_one(places, i);
}

void toy_places_close(toy_places *places) {
  for (lp_place i = 1; i < places->count; i++) {
    if (places->worker[i].pid > 0) toy_worker_stop(&places->worker[i]);
    close(places->held[i]);
  }
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
