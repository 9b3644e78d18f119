/* llmpart serve: an HTTP API over a bundle and another API, with the router between them. */
#include <signal.h>

#include "base/clock.h"
#include "base/path.h"
#include "runtime/link/address.h"
#include "runtime/serve/serve.h"
#include "tools/run/model.h"
#include "tools/tools.h"

typedef struct {
  const char *listen, *host, *key_env, *trust;
  int64_t port, threads; /* -1 and 0: not given */
} serve_flags;

static volatile int stop_wanted, reload_wanted;

static void stop_serving(int number) {
  (void)number;
  lp_flag_set(&stop_wanted);
}

static void reload(int number) {
  (void)number;
  lp_flag_set(&reload_wanted);
}

static void tell_address(void *user, const char *host, int port) {
  (void)user;
  (void)fprintf(stderr, "listening on %s:%d\n", host, port);
}

/* HOST:PORT with the parts that are given by themselves. */
static lp_status put_address(const serve_flags *flags, const lp_serve_config *config, lp_buf *out, lp_diag *diag) {
  char *host = NULL;
  int port = 0;
  LP_OWNED(lp_diag_free_at) lp_diag *inner = lp_diag_create();
  const lp_status status = lp_address_split(flags->listen ? flags->listen : config->listen, &host, &port, inner);
  lp_diag_relay(diag, flags->listen ? LP_LOC_FILE("--listen") : config->listen_loc, "listen", inner);
  LP_TRY(status);
  const char *own = flags->host ? flags->host : host;
  const bool is_ipv6 = strchr(own, ':') && own[0] != '[';
  lp_buf_printf(out, is_ipv6 ? "[%s]:%" PRId64 : "%s:%" PRId64, own, flags->port >= 0 ? flags->port : port);
  free(host);
  return LP_OK;
}

typedef struct {
  const serve_flags *flags;
  const char *bundle;
} serve_source;

/* A file is a configuration, unless it is a model; a folder is a bundle or a model. */
static lp_status load_plain(const serve_flags *flags, const char *bundle, lp_serve_config **out, lp_diag *diag) {
  if (!lp_path_is_folder(bundle)) return lp_serve_config_load(bundle, out, diag);
  const char *key = flags->key_env ? getenv(flags->key_env) : NULL;
  if (flags->key_env && (!key || !key[0]))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--key-env"), "the variable '%s' is not set", flags->key_env);
  *out = lp_serve_config_of_bundle(bundle, key);
  (*out)->edge.threads = flags->threads;
  return LP_OK;
}

static lp_status load(void *user, lp_serve_config **out, lp_diag *diag) {
  const serve_source *from = user;
  lp_serve_config *config = NULL;
  lp_buf listen = {0};
  LP_TRY(load_plain(from->flags, from->bundle, &config, diag));
  lp_status status = put_address(from->flags, config, &listen, diag);
  if (from->flags->listen || from->flags->host || from->flags->port >= 0) config->listen_loc = LP_LOC_NONE;
  config->listen = lp_arena_strdup(config->arena, lp_buf_text(&listen));
  if (from->flags->trust) config->edge.trust = config->split.trust = from->flags->trust;
  lp_buf_free(&listen);
  *out = status == LP_OK ? config : NULL;
  if (status != LP_OK) lp_serve_config_free(config);
  return status;
}

static lp_status serve(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  struct sigaction action = {.sa_handler = stop_serving}, again = {.sa_handler = reload};
  (void)sigaction(SIGINT, &action, NULL);
  (void)sigaction(SIGTERM, &action, NULL);
  (void)sigaction(SIGHUP, &again, NULL);
  char *bundle = NULL;
  LP_TRY(lp_tool_bundle_of(args->data[0], &bundle, diag));
  serve_source from = {command->user, bundle};
  const lp_serve_caller caller = {load, tell_address, &from};
  lp_status status = lp_serve(&caller, &(lp_serve_signals){&stop_wanted, &reload_wanted}, diag);
  free(bundle);
  return status;
}

int lp_tool_serve(int argc, char **argv) {
  serve_flags flags = {.port = -1};
  const lp_option options[] = {
      {"--listen", LP_OPTION_ADDRESS, &flags.listen, "HOST:PORT",
       "listen here, whatever the file says; port 0 takes a free one"},
      {"--host", LP_OPTION_TEXT, &flags.host, "HOST", "listen at this address, whatever else says"},
      {"--port", LP_OPTION_COUNT, &flags.port, "PORT", "listen at this port, whatever else says; 0 takes a free one"},
      {"--threads", LP_OPTION_COUNT, &flags.threads, "N", "without a file: use N threads (the machine's cores)"},
      {"--key-env", LP_OPTION_TEXT, &flags.key_env, "NAME",
       "without a file: ask clients for the key in this variable, which is needed beyond loopback"},
      {"--trust", LP_OPTION_TEXT, &flags.trust, "FILE",
       "serve only a bundle that the owner of this public key signed (Ed25519, PEM)"},
  };
  const lp_command command = {
      .usage = "llmpart serve CONFIG.yaml|BUNDLE|MODEL [options]",
      .summary = "Serves an OpenAI-compatible HTTP API over a bundle at the edge and another API in the cloud, with "
                 "the\nrouter between them, until SIGINT or SIGTERM. Without a file there is one bundle, at "
                 "127.0.0.1:8080; a MODEL\n(a file in ONNX or GGUF, or a folder) is compiled for this machine once. "
                 "SIGHUP makes it read the file and its certificate again, and never ends it.",
      LP_OPTIONS(options),
      .args = {1, 1},
      .model_first = true,
      .act = serve,
      .user = &flags};
  return lp_tool_main(&command, argc, argv);
}
