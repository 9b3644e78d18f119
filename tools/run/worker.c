/* llmpart worker: serves the cloud side of a bundle, or another place, until a signal ends it. */
#include "tools/tools.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/collective/collective.h"
#include "runtime/pass_rules.h"
#include "runtime/runtime.h"
#include "tools/mpi/mpi.h"
#include "tools/run/addresses.h"
#include "tools/run/worker_metrics.h"

enum { MOST_BUNDLES = 256 }; /* only with --profile more than one */

typedef struct {
  const char *listen, *place, *context_dir, *trust, *traces, *metrics;
  lp_texts peers;
  lp_arena *text;               /* of the addresses */
  lp_place_addresses addresses; /* of the peers */
  lp_spans *spans;              /* NULL: none */
  lp_link_security security, peer_security;
  int64_t budget, context_dir_bytes, sessions, threads, ready_fd;
  lp_worker_quota connection, client;
  double idle_ms, prompt_stretch;
  bool check, stats, profile;
} worker_flags;

/* Only a signal sets it. */
static volatile sig_atomic_t stop_wanted, renew_wanted;

static void on_signal(int number) {
  (void)number;
  lp_flag_set(&stop_wanted);
}

static void on_hangup(int number) {
  (void)number;
  lp_flag_set(&renew_wanted);
}

static void catch_signals(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  action.sa_handler = on_hangup;
  sigaction(SIGHUP, &action, NULL);
}

/* Writes the port to the process that started this worker, or prints the address for people. */
static void tell_address(void *user, const char *host, int port) {
  const worker_flags *flags = user;
  char line[16];
  int length = snprintf(line, sizeof line, "%d\n", port);
  if (flags->ready_fd < 0 && port == 0) /* a Unix socket */
    fprintf(stderr, "listening on %s\n", host);
  else if (flags->ready_fd < 0)
    fprintf(stderr, "listening on %s:%d\n", host, port);
  else if (write((int)flags->ready_fd, line, (size_t)length) == length)
    close((int)flags->ready_fd);
}

/* Prints figures to choose --context-budget by, and to show that no memory is left in use. */
static void tell_held(void *user, size_t open, size_t bytes) {
  (void)user;
  fprintf(stderr, "open %zu, bytes %zu\n", open, bytes);
}

static void tell_session(void *user, const lp_worker_session *session) {
  const worker_flags *flags = user;
  worker_spans_add(flags->spans, session);
}

static lp_worker_options options_of(const worker_flags *flags) {
  lp_link_security to_peers = flags->peer_security;
  if (!to_peers.key_file) to_peers.key_file = flags->security.key_file;
  if (to_peers.ca_file) {
    to_peers.cert_file = flags->security.cert_file;
    to_peers.cert_key_file = flags->security.cert_key_file;
  }
  return (lp_worker_options){.listen = flags->listen,
                             .peers = flags->addresses.place,
                             .peer_count = flags->addresses.count,
                             .peer_security = to_peers,
                             .context_budget = flags->budget,
                             .idle_ms = flags->idle_ms,
                             .context_dir = flags->context_dir,
                             .context_dir_bytes = flags->context_dir_bytes,
                             .most_sessions = flags->sessions,
                             .connection = flags->connection,
                             .client = flags->client,
                             .prompt_stretch = flags->prompt_stretch,
                             .threads = (int32_t)flags->threads,
                             .security = flags->security,
                             .renew = &renew_wanted,
                             .on_listening = tell_address,
                             .on_session = flags->spans ? tell_session : NULL,
                             .on_held = flags->stats ? tell_held : NULL,
                             .user = (void *)(uintptr_t)flags};
}

/* The place to serve: the one that --place names, or else the only one besides the device. */
static lp_status find_place(const worker_flags *flags, const char *path, lp_place *out, lp_diag *diag) {
  const lp_bundle_options manifest_only = {0};
  lp_bundle *bundle = NULL;
  lp_buf names = {0};
  LP_TRY(lp_bundle_load(path, &manifest_only, &bundle, diag));
  int32_t count = lp_bundle_place_count(bundle);
  *out = !flags->place && count == LP_SIDE_COUNT ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
  for (lp_place i = LP_SIDE_DEVICE + 1; i < count; i++) {
    if (lp_streq(flags->place, lp_bundle_place_name(bundle, i))) *out = i;
    lp_buf_printf(&names, "%s'%s'", i > 1 ? ", " : "", lp_bundle_place_name(bundle, i));
  }
  lp_status status = LP_OK;
  if (*out == LP_SIDE_DEVICE && flags->place)
    status =
        lp_error(diag, LP_LOC_FILE(path), "--place=%s: a worker serves one of %s", flags->place, lp_buf_text(&names));
  else if (*out == LP_SIDE_DEVICE)
    status = lp_error(diag, LP_LOC_FILE(path), "the bundle has %" PRId32 " places: wanted --place=NAME, one of %s",
                      count, lp_buf_text(&names));
  lp_buf_free(&names);
  lp_bundle_free(bundle);
  return status;
}

/* Serves, and its figures with it if they are wanted. */
static lp_status serve_watched(lp_worker_options *options, const lp_bundle *bundle, lp_diag *diag) {
  const worker_flags *flags = options->user;
  worker_metrics *metrics = NULL;
  LP_TRY(worker_metrics_open(flags->metrics, &metrics, &options->figures, diag));
  lp_status status = lp_worker_serve(bundle, options, &stop_wanted, diag);
  worker_metrics_close(metrics);
  return status;
}

/* Serves with the ranks of a sharded half, if it is one: processes of mpirun, of which rank 0 serves, or threads. */
static lp_status serve_ranks(lp_worker_options *options, lp_bundle *bundle, const lp_bundle_options *load,
                             const lp_peers *ranks, lp_diag *diag) {
  lp_rank_team *team = NULL;
  lp_collective collective;
  lp_status status = LP_OK;
  options->threads = lp_ranks_threads(bundle, options->threads);
  if (ranks->count > 1) {
    lp_collective_of_peers(ranks, &collective);
    if (ranks->rank > 0) return lp_ranks_follow(bundle, &collective, options->threads, diag);
    status = lp_ranks_lead(bundle, &collective, diag);
  } else {
    status = lp_ranks_start(bundle, load, options->threads, &team, diag);
  }
  const bool began = status == LP_OK;
  if (began) status = serve_watched(options, bundle, diag);
  lp_ranks_stop(bundle, team, began && status != LP_OK ? diag : NULL);
  return status;
}

/* The number of a process among those of its machine: each takes the GPU of that number. */
static int32_t number_here(const lp_peers *ranks) {
  char name[256] = {0}, *all = lp_alloc((size_t)ranks->count * sizeof name);
  int32_t number = 0;
  (void)gethostname(name, sizeof name - 1);
  ranks->all_gather(name, sizeof name, all);
  for (int32_t i = 0; i < ranks->rank; i++)
    if (memcmp(all + (size_t)i * sizeof name, name, sizeof name) == 0) number++;
  free(all);
  return number;
}

/* Loads the place, of a sharded half the rank that this process is. */
static lp_status serve_place(lp_worker_options *options, const char *path, lp_bundle_options *load, lp_diag *diag) {
  lp_bundle *bundle = NULL;
  lp_peers ranks = {0};
  lp_mpi_end_function *end = NULL;
  LP_TRY(lp_tool_begin_mpi(&ranks, &end, "start the worker without mpirun: its ranks are threads then", diag));
  load->rank = ranks.count > 1 ? ranks.rank : 0;
  load->gpu = ranks.count > 1 ? number_here(&ranks) : 0;
  lp_status status = lp_bundle_load(path, load, &bundle, diag);
  if (status == LP_OK && ranks.count > 1 && ranks.count != lp_bundle_ranks(bundle))
    status = lp_error(diag, LP_LOC_FILE(path), "the bundle is cut for %" PRId32 " ranks; mpirun started %" PRId32,
                      lp_bundle_ranks(bundle), ranks.count);
  if (status == LP_OK) status = serve_ranks(options, bundle, load, &ranks, diag);
  lp_bundle_free(bundle);
  if (end) end((int)status);
  return status;
}

static lp_status serve_bundle(worker_flags *flags, const char *path, lp_diag *diag) {
  lp_bundle_options load = {.check_hashes = flags->check, .trust = flags->trust};
  lp_place place;
  const lp_link_security *to_peers = &flags->peer_security;
  LP_TRY(lp_run_addresses_read(&flags->peers, "--peer", true, flags->text, &flags->addresses, diag));
  if (flags->peers.count == 0 && (to_peers->key_file || to_peers->ca_file || to_peers->server_name))
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE,
                       "--peer-key-file, --ca and --tls-name are for the workers at --peer");
  LP_TRY(find_place(flags, path, &place, diag));
  LP_TRY(worker_spans_open(flags->traces, &flags->spans, diag));
  lp_worker_options options = options_of(flags);
  options.place = place;
  load.load = 1u << place;
  lp_status status = serve_place(&options, path, &load, diag);
  worker_spans_close(flags->spans);
  return status;
}

static lp_status serve(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  worker_flags *flags = command->user;
  lp_bundle_options load = {.load = LP_LOAD_CLOUD, .check_hashes = flags->check, .trust = flags->trust};
  if (flags->prompt_stretch < 1)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--prompt-stretch"), "wanted a number from 1 on, not %g",
                       flags->prompt_stretch);
  catch_signals();
  const lp_worker_options plain = options_of(flags);
  if (flags->profile && flags->metrics)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "--metrics has nothing to tell of a worker with --profile");
  if (flags->profile)
    return lp_profile_serve((const char *const *)args->data, args->count, &load, &plain, &stop_wanted, diag);
  if (args->count > 1)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(args->data[1]),
                       "only a worker with --profile takes several bundles");
  flags->text = lp_arena_create();
  lp_status status = serve_bundle(flags, args->data[0], diag);
  lp_arena_free(flags->text);
  lp_vec_free(&flags->peers);
  return status;
}

// NOLINTNEXTLINE(readability-function-size): a table
int lp_tool_worker(int argc, char **argv) {
  worker_flags flags = {
      .listen = "127.0.0.1:7700", .idle_ms = 60000, .prompt_stretch = LP_PROMPT_STRETCH, .ready_fd = -1};
  const lp_option options[] = {
      {"--listen", LP_OPTION_ADDRESS, &flags.listen, "ADDRESS",
       "listen on HOST:PORT (127.0.0.1:7700; port 0 takes a free one) or unix:PATH"},
      {"--place", LP_OPTION_TEXT, &flags.place, "NAME", "serve this place of a bundle with more than two (cloud)"},
      {"--peer", LP_OPTION_TEXTS, &flags.peers, "NAME=ADDRESS",
       "reach the worker of this place here, to which the place sends what it makes; repeatable"},
      {"--peer-key-file", LP_OPTION_TEXT, &flags.peer_security.key_file, "FILE",
       "read the key for the workers at --peer here, when --key-file has several"},
      {"--ca", LP_OPTION_TEXT, &flags.peer_security.ca_file, "FILE",
       "expect this certificate of the workers at --peer, or one that it signed (PEM), and show them --cert"},
      {"--tls-name", LP_OPTION_TEXT, &flags.peer_security.server_name, "NAME",
       "expect this name in their certificates; needs --ca"},
      {"--context-budget", LP_OPTION_SIZE, &flags.budget, "SIZE",
       "limit the KV caches of all sessions; the oldest are dropped first (half of the machine's memory)"},
      {"--idle", LP_OPTION_TIME, &flags.idle_ms, "TIME",
       "drop the context of a session that was idle for this long (60s)"},
      {"--context-dir", LP_OPTION_TEXT, &flags.context_dir, "DIR",
       "save contexts of early exits in DIR when they are dropped, and at the end"},
      {"--context-dir-size", LP_OPTION_SIZE, &flags.context_dir_bytes, "SIZE",
       "limit the size of that folder; the oldest files are removed first (4GiB)"},
      {"--max-sessions", LP_OPTION_COUNT, &flags.sessions, "N", "refuse sessions beyond N (4096)"},
      {"--connection-sessions", LP_OPTION_COUNT, &flags.connection.sessions, "N",
       "refuse a connection sessions beyond N (64)"},
      {"--connection-rows", LP_OPTION_COUNT, &flags.connection.rows, "N",
       "refuse a connection runs while N rows (sequences times tokens) of it wait (262144)"},
      {"--connection-memory", LP_OPTION_SIZE, &flags.connection.bytes, "SIZE",
       "limit the KV caches and waiting payloads of a connection (no limit but --context-budget)"},
      {"--client-sessions", LP_OPTION_COUNT, &flags.client.sessions, "N",
       "the same for all connections with one device certificate, or one of several keys (256)"},
      {"--client-rows", LP_OPTION_COUNT, &flags.client.rows, "N",
       "the same for all connections with one certificate or key (1048576)"},
      {"--client-memory", LP_OPTION_SIZE, &flags.client.bytes, "SIZE",
       "the same for all connections with one certificate or key (no limit but --context-budget)"},
      {"--prompt-stretch", LP_OPTION_F64, &flags.prompt_stretch, "X",
       "while several devices ask, let rows of prompts make a pass at most X times as long (1.4)"},
      {"--threads", LP_OPTION_COUNT, &flags.threads, "N", "use N threads (the machine's cores)"},
      {"--key-file", LP_OPTION_TEXT, &flags.security.key_file, "FILE",
       "read the key that devices must hold, or several, a line each, for TLS and, with --cert, above it; off loopback "
       "this or --client-ca is needed"},
      {"--cert", LP_OPTION_TEXT, &flags.security.cert_file, "FILE", "show this certificate to devices (TLS, PEM)"},
      {"--cert-key", LP_OPTION_TEXT, &flags.security.cert_key_file, "FILE",
       "read the certificate's private key here (PEM)"},
      {"--client-ca", LP_OPTION_TEXT, &flags.security.client_ca_file, "FILE",
       "admit devices that show one of these certificates or one that they signed (PEM); may replace the key"},
      {"--check", LP_OPTION_FLAG, &flags.check, NULL, "compare the SHA-256 of every file before the start"},
      {"--trust", LP_OPTION_TEXT, &flags.trust, "FILE",
       "serve only a bundle that the owner of this public key signed (Ed25519, PEM); implies --check"},
      {"--stats", LP_OPTION_FLAG, &flags.stats, NULL,
       "print on stderr how many sessions are open and how many bytes they hold, at each change"},
      {"--traces", LP_OPTION_TEXT, &flags.traces, "URL",
       "send spans of sessions to this OpenTelemetry collector (OTLP/HTTP, JSON); LLMPART_TRACES_KEY is its key"},
      {"--metrics", LP_OPTION_ADDRESS, &flags.metrics, "HOST:PORT",
       "serve /metrics for Prometheus, and /readyz, at this address; beyond loopback LLMPART_METRICS_KEY must hold the "
       "bearer token"},
      {"--profile", LP_OPTION_FLAG, &flags.profile, NULL,
       "time the operators of these bundles for `llmpart hw profile --over`, and serve nothing else"},
      {"--ready-fd", LP_OPTION_COUNT, &flags.ready_fd, "FD", "write the port to this descriptor when ready"},
  };
  const lp_command command = {
      .usage = "llmpart worker BUNDLE [--listen=ADDRESS] [options], or worker BUNDLE.. --profile",
      .summary = "Serves the cloud side of a bundle, or another place, to devices that run the same bundle, until "
                 "SIGINT or SIGTERM. SIGHUP makes it read its keys and certificates again, and never ends it.",
      LP_OPTIONS(options),
      .model_first = true,
      .args = {1, MOST_BUNDLES},
      .act = serve,
      .user = &flags};
  return lp_tool_main(&command, argc, argv);
}
