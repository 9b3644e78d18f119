/* abuse LLMPART BUNDLE ROWS|prompts [DEVICES [TOKENS [ROUNDS [PROMPT [CONNECTIONS]]]]]: measures the harm that one
 * device does to the others. Starts a worker of one thread, or uses the one at the address that LLMPART is; DEVICES (4)
 * generate TOKENS (64) each after 16 tokens, in ROUNDS (5) rounds without and with an abuser, in turn. It never pauses,
 * on CONNECTIONS (1): on each, one session with a batch of ROWS sequences, or 60 sessions with prompts of PROMPT
 * (512) tokens. LP_DEVICE_KEY and LP_ABUSER_KEY name their keys. The cloud must take the tokens itself (compile with
 * --scheduler=cloud-only). Prints the medians over the rounds of the time per token and of the worst token. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/link/security.h"
#include "runtime/runtime.h"

enum { OWN_PROMPT = 16, MOST_ROUNDS = 99, ABUSED_SESSIONS = 60, MOST_CONNECTIONS = 64 };

typedef struct {
  const lp_bundle *bundle;
  const char *address;
  int64_t tokens;
  pthread_t thread;
  double mean_ms, worst_ms; /* of the tokens after the first */
} device;

typedef struct {
  const lp_bundle *bundle;
  const char *address;
  int64_t batch, prompt, sessions;
  void *payload;
  size_t payload_bytes;
  lp_security security;
  lp_wire *wire;
  volatile int stop;
  int64_t answers;
  pthread_t thread;
} abuser;

static void die(const char *what, const lp_diag *diag) {
  const lp_diag_entry *entry = diag ? lp_diag_get(diag, 0) : NULL;
  fprintf(stderr, "abuse: %s: %s\n", what, entry ? entry->text : "failed");
  exit(1);
}

static void *generate(void *user) {
  device *d = user;
  lp_diag *diag = lp_diag_create();
  lp_generate_options options = {.cloud = d->address,
                                 .max_tokens = d->tokens,
                                 .ignore_eos = true,
                                 .threads = 1,
                                 .sampling = {.top_p = 1},
                                 .security = {.key_file = getenv("LP_DEVICE_KEY")}};
  int32_t prompt[OWN_PROMPT];
  for (int32_t i = 0; i < OWN_PROMPT; i++)
    prompt[i] = 1 + i;
  lp_session *session = NULL;
  lp_generation out = {0};
  if (lp_session_open(d->bundle, &options, &session, diag) != LP_OK ||
      lp_session_generate(session, prompt, 1, OWN_PROMPT, NULL, NULL, &out, diag) != LP_OK)
    die("a device", diag);
  d->mean_ms = d->worst_ms = 0;
  for (size_t i = 1; i < out.tokens.count; i++) {
    double ms = out.tokens.data[i].ms;
    d->mean_ms += ms / (double)(out.tokens.count - 1);
    if (ms > d->worst_ms) d->worst_ms = ms;
  }
  lp_generation_free(&out);
  lp_session_close(session);
  lp_diag_free(diag);
  return NULL;
}

/* ---- the abuser -------------------------------------------------------------------------------------------------- */

static bool takes_payload(const lp_step *step) {
  return step->to == LP_SIDE_CLOUD && (step->kind == LP_STEP_INPUT || step->side == LP_SIDE_DEVICE);
}

static void send_run(abuser *a, uint64_t number) {
  const lp_manifest *manifest = &a->bundle->manifest;
  int64_t sym[LP_MAX_SYMBOLS] = {[LP_SYM_B] = a->batch, [LP_SYM_S] = a->prompt, [LP_SYM_R] = 1, [LP_SYM_C] = a->prompt};
  Lp__Wire__Step step = LP__WIRE__STEP__INIT;
  step.session = number;
  step.program = (uint32_t)lp_manifest_program(manifest, "prefill");
  step.n_symbols = (size_t)manifest->symbol_count;
  step.symbols = sym;
  const lp_program *program = &manifest->programs[step.program];
  while (!takes_payload(&program->step[step.step]))
    if (++step.step == program->step_count) die("the bundle", NULL);
  size_t bytes = 0;
  if (!lp_tensor_bytes(&program->step[step.step].tensor, sym, manifest->symbol_count, &bytes)) die("sizes", NULL);
  if (!a->payload) a->payload = lp_alloc(a->payload_bytes = bytes); /* token 0 everywhere */
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_STEP;
  message.step = &step;
  const char *why = "";
  if (!lp_wire_send(a->wire, LP_ONLY_PEER, &message, a->payload, a->payload_bytes, &why)) die(why, NULL);
}

static void open_sessions(abuser *a) {
  for (int64_t i = 0; i < a->sessions; i++) {
    Lp__Wire__Open open = LP__WIRE__OPEN__INIT;
    open.session = (uint64_t)i;
    open.top_p = 1;
    Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
    message.kind_case = LP__WIRE__MESSAGE__KIND_OPEN;
    message.open = &open;
    const char *why = "";
    if (!lp_wire_send(a->wire, LP_ONLY_PEER, &message, NULL, 0, &why)) die(why, NULL);
    send_run(a, (uint64_t)i);
  }
}

/* Sends a run again as soon as it is answered. */
static void *harm(void *user) {
  abuser *a = user;
  lp_inbound in;
  const char *why = "";
  open_sessions(a);
  while (!a->stop) {
    lp_recv_outcome got = lp_wire_receive(a->wire, 100, &in, &why);
    if (got == LP_RECV_TIMEOUT) continue;
    if (got != LP_RECV_FRAME) die(why, NULL);
    const Lp__Wire__Message *message = in.message;
    if (message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE) die(message->failure->text, NULL);
    if (message->kind_case == LP__WIRE__MESSAGE__KIND_TOKENS) {
      a->answers++;
      send_run(a, message->tokens->session);
    }
    lp_inbound_release(&in);
  }
  return NULL;
}

static void begin_abuse(abuser *a) {
  lp_diag *diag = lp_diag_create();
  a->stop = 0;
  lp_link_security files = {.key_file = getenv("LP_ABUSER_KEY")};
  if (lp_security_open(&files, LP_SIDE_DEVICE, true, &a->security, diag) != LP_OK) die("security", diag);
  lp_endpoint endpoint = {.address = a->address,
                          .bundle_hash = a->bundle->manifest.hash,
                          .patience = {5000, 50, 2000, 1000, 60000, 2000},
                          .security = &a->security};
  if (lp_wire_dial(&lp_transport_socket, &endpoint, 5000, &a->wire, diag) != LP_OK) die("dial", diag);
  if (pthread_create(&a->thread, NULL, harm, a) != 0) die("thread", NULL);
  lp_diag_free(diag);
}

static void end_abuse(abuser *a) {
  a->stop = 1;
  pthread_join(a->thread, NULL);
  lp_wire_close(a->wire);
  lp_security_close(&a->security);
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

typedef struct {
  double mean_ms[MOST_ROUNDS], worst_ms[MOST_ROUNDS];
} results;

static void run_round(device *all, int count, results *out, int round) {
  out->mean_ms[round] = out->worst_ms[round] = 0;
  for (int i = 0; i < count; i++)
    if (pthread_create(&all[i].thread, NULL, generate, &all[i]) != 0) die("thread", NULL);
  for (int i = 0; i < count; i++) {
    pthread_join(all[i].thread, NULL);
    out->mean_ms[round] += all[i].mean_ms / count;
    if (all[i].worst_ms > out->worst_ms[round]) out->worst_ms[round] = all[i].worst_ms;
  }
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(double *of, int count) {
  qsort(of, (size_t)count, sizeof *of, by_value);
  return of[count / 2];
}

static int64_t argument(int argc, char **argv, int index, int64_t usual) {
  return argc > index ? strtoll(argv[index], NULL, 10) : usual;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  bool prompts = strcmp(argv[3], "prompts") == 0, runs = strchr(argv[1], ':') != NULL;
  int connections = (int)argument(argc, argv, 8, 1);
  int count = (int)argument(argc, argv, 4, 4), rounds = (int)argument(argc, argv, 6, 5);
  if (count < 1 || rounds < 1 || rounds > MOST_ROUNDS || connections < 1 || connections > MOST_CONNECTIONS) return 2;
  lp_diag *diag = lp_diag_create();
  lp_bundle *bundle = NULL;
  lp_worker_process worker = {0};
  if (lp_bundle_load(argv[2], &(lp_bundle_options){.load = LP_LOAD_DEVICE}, &bundle, diag) != LP_OK) die("start", diag);
  if (!runs &&
      (lp_worker_spawn(argv[1], &(lp_worker_request){.bundle = argv[2], .threads = 1}, &worker, diag) != LP_OK ||
       lp_worker_await(&worker, diag) != LP_OK))
    die("start", diag);
  const char *address = runs ? argv[1] : worker.address;
  abuser a = {.bundle = bundle,
              .address = address,
              .batch = prompts ? 1 : strtoll(argv[3], NULL, 10),
              .prompt = prompts ? argument(argc, argv, 7, 512) : 1,
              .sessions = prompts ? ABUSED_SESSIONS : 1},
         all_of[MOST_CONNECTIONS];
  for (int i = 0; i < connections; i++)
    all_of[i] = a;
  device *all = lp_alloc((size_t)count * sizeof *all);
  for (int i = 0; i < count; i++)
    all[i] = (device){.bundle = bundle, .address = address, .tokens = argument(argc, argv, 5, 64)};
  results quiet, abused;
  run_round(all, count, &quiet, 0); /* warm */
  for (int i = 0; i < rounds; i++) {
    run_round(all, count, &quiet, i);
    for (int k = 0; k < connections; k++)
      begin_abuse(&all_of[k]);
    run_round(all, count, &abused, i);
    for (int k = 0; k < connections; k++)
      end_abuse(&all_of[k]);
  }
  for (int k = 0; k < connections; k++) {
    a.answers += all_of[k].answers;
    free(all_of[k].payload);
  }
  double mean = median(quiet.mean_ms, rounds), worst = median(quiet.worst_ms, rounds);
  double with = median(abused.mean_ms, rounds), worst_with = median(abused.worst_ms, rounds);
  printf("%s: time per token %.2f ms, %.2f with an abuser (%.2f times); worst token %.1f ms, %.1f (%.2f times); the "
         "abuser had %lld answers\n",
         argv[3], mean, with, with / mean, worst, worst_with, worst_with / worst, (long long)a.answers);
  if (!runs) lp_worker_stop(&worker);
  free(all);
  lp_bundle_free(bundle);
  lp_diag_free(diag);
  return 0;
}
