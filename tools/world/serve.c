/* llmpart serve: an HTTP API over a bundle and another API, with the router between them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/serve/serve.h"
#include "tools/tools.h"

typedef struct {
  const char *listen, *trust;
} serve_flags;

static volatile int stop_wanted, renew_wanted;

static void stop_serving(int number) {
  (void)number;
  stop_wanted = 1;
}

static void renew(int number) {
  (void)number;
  renew_wanted = 1;
}

static void tell_address(void *user, const char *host, int port) {
  (void)user;
  (void)fprintf(stderr, "listening on %s:%d\n", host, port);
}

static lp_status serve(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const serve_flags *flags = command->user;
  struct sigaction action = {.sa_handler = stop_serving}, again = {.sa_handler = renew};
  (void)sigaction(SIGINT, &action, NULL);
  (void)sigaction(SIGTERM, &action, NULL);
  (void)sigaction(SIGHUP, &again, NULL);
  lp_serve_config *config = NULL;
  LP_TRY(lp_serve_config_load(args->data[0], &config, diag));
  if (flags->listen) config->listen = flags->listen;
  if (flags->trust) config->edge.trust = config->split.trust = flags->trust;
  lp_status status = lp_serve(config, &(lp_serve_signals){&stop_wanted, &renew_wanted}, tell_address, NULL, diag);
  lp_serve_config_free(config);
  return status;
}

int lp_tool_serve(int argc, char **argv) {
  serve_flags flags = {0};
  const lp_option options[] = {
      {"--listen", LP_OPTION_ADDRESS, &flags.listen, "HOST:PORT",
       "listen here, whatever the file says; port 0 takes a free one", 0},
      {"--trust", LP_OPTION_TEXT, &flags.trust, "FILE",
       "serve only a bundle that the owner of this public key signed (Ed25519, PEM)", 0},
  };
  const lp_command command = {
      .usage = "llmpart serve CONFIG.yaml [options]",
      .summary = "Serves an OpenAI-compatible HTTP API over a bundle at the edge and another API "
                 "in the cloud, with the\nrouter between them, until SIGINT or SIGTERM. SIGHUP makes it read its "
                 "certificate again, and never ends it.",
      .options = options,
      .count = LP_COUNT(options),
      .min_args = 1,
      .max_args = 1,
      .act = serve,
      .user = &flags};
  return lp_tool_main(&command, argc, argv);
}
