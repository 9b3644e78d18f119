/* Serves the cloud side of a bundle, or another place, for the tests: prints the port it took, then runs until it is
 * killed.
 *   toy_worker BUNDLE [BUDGET [IDLE_MS [ADDRESS [PLACE [NAME ADDRESS]..]]]]
 * PLACE is a number; the other places have the addresses that follow.
 * LP_TOY_KEY, LP_TOY_CERT, LP_TOY_CERT_KEY, LP_TOY_CLIENT_CA and, for other places, LP_TOY_CA name the files of its
 * security, LP_TOY_CONTEXTS the
 * folder of its contexts and LP_TOY_CONTEXTS_SIZE the bytes of that. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/runtime.h"

static void print_port(void *user, const char *host, int port) {
  (void)user, (void)host;
  printf("%d\n", port);
  fflush(stdout);
}

static void print_entry(void *user, const lp_diag_entry *entry) {
  (void)user;
  fprintf(stderr, "toy_worker: %s\n", entry->text);
}

static volatile sig_atomic_t stop;

static void on_signal(int number) {
  (void)number;
  stop = 1;
}

int main(int argc, char **argv) {
  signal(SIGTERM, on_signal);
  if (argc < 2) return 2;
  lp_diag *diag = lp_diag_create();
  lp_diag_set_sink(diag, print_entry, NULL);
  lp_bundle *bundle = NULL;
  lp_place place = argc > 5 ? atoi(argv[5]) : LP_SIDE_CLOUD;
  lp_bundle_options load = {.load = 1u << place};
  if (lp_bundle_load(argv[1], &load, &bundle, diag) != LP_OK) return 1;
  lp_worker_options options = {.listen = "127.0.0.1:0",
                               .threads = 2,
                               .on_listening = print_port,
                               .security = {.key_file = getenv("LP_TOY_KEY"),
                                            .cert_file = getenv("LP_TOY_CERT"),
                                            .cert_key_file = getenv("LP_TOY_CERT_KEY"),
                                            .client_ca_file = getenv("LP_TOY_CLIENT_CA")}};
  options.context_dir = getenv("LP_TOY_CONTEXTS");
  const char *size = getenv("LP_TOY_CONTEXTS_SIZE");
  if (size) options.context_dir_bytes = atol(size);
  if (argc > 2) options.context_budget = atol(argv[2]);
  if (argc > 3) options.idle_ms = atof(argv[3]);
  if (argc > 4) options.listen = argv[4];
  lp_place_address peers[LP_PLACES_MAX];
  options.place = place;
  options.peers = peers;
  for (int i = 6; i + 1 < argc && options.peer_count < LP_PLACES_MAX; i += 2)
    peers[options.peer_count++] = (lp_place_address){argv[i], argv[i + 1]};
  options.peer_security = (lp_link_security){.key_file = getenv("LP_TOY_KEY"),
                                             .ca_file = getenv("LP_TOY_CA"),
                                             .cert_file = getenv("LP_TOY_CA") ? getenv("LP_TOY_CERT") : NULL,
                                             .cert_key_file = getenv("LP_TOY_CA") ? getenv("LP_TOY_CERT_KEY") : NULL};
  lp_status status = lp_worker_serve(bundle, &options, &stop, diag);
  lp_bundle_free(bundle);
  lp_diag_free(diag);
  return (int)status;
}
