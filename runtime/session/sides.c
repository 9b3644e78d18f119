/* Loads a bundle for its device, and starts the workers of its other places when none are given. */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/runtime.h"

/* ---- ports ------------------------------------------------------------------------------------------------------- */

/* Takes a free port of loopback. Workers need each other's ports before they listen, so this process holds the ports
 * meanwhile: a bound socket that does not listen lets another one with SO_REUSEADDR listen on its port, and no other
 * process is given it. */
static int reserve_port(int *port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
              bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
              getsockname(fd, (struct sockaddr *)&at, &size) == 0;
  *port = ntohs(at.sin_port);
  if (good) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

static lp_status start_one(const lp_sides_options *options, lp_sides *out, lp_diag *diag) {
  const lp_worker_request request = {.bundle = options->bundle, .trust = options->trust, .threads = options->threads};
  LP_TRY(lp_worker_spawn(NULL, &request, &out->worker[LP_SIDE_CLOUD], diag));
  LP_TRY(lp_worker_await(&out->worker[LP_SIDE_CLOUD], diag));
  out->cloud = out->worker[LP_SIDE_CLOUD].address;
  return LP_OK;
}

static lp_status start_places(const lp_sides_options *options, lp_sides *out, lp_diag *diag) {
  int32_t count = lp_bundle_place_count(out->bundle);
  int held[LP_PLACES_MAX], port = 0;
  lp_status status = LP_OK;
  for (lp_place i = LP_SIDE_DEVICE + 1; i < count; i++) {
    held[i] = reserve_port(&port);
    if (held[i] < 0 && status == LP_OK)
      status = lp_error(diag, LP_LOC_NONE, "cannot start workers: no port: %s", strerror(errno));
    snprintf(out->worker[i].address, sizeof out->worker[i].address, "127.0.0.1:%d", port);
    out->clouds[i - 1] = (lp_place_address){lp_bundle_place_name(out->bundle, i), out->worker[i].address};
  }
  out->cloud_count = (size_t)count - 1;
  for (lp_place i = LP_SIDE_DEVICE + 1; i < count && status == LP_OK; i++) {
    const lp_worker_request request = {.bundle = options->bundle,
                                       .trust = options->trust,
                                       .threads = options->threads,
                                       .listen = out->clouds[i - 1].address,
                                       .place = out->clouds[i - 1].place,
                                       .peers = out->clouds,
                                       .peer_count = out->cloud_count};
    lp_worker_process started;
    status = lp_worker_spawn(NULL, &request, &started, diag);
    out->worker[i].pid = started.pid;
    out->worker[i].ready_fd = started.ready_fd;
  }
  for (lp_place i = LP_SIDE_DEVICE + 1; i < count && status == LP_OK; i++)
    status = lp_worker_await(&out->worker[i], diag);
  for (lp_place i = LP_SIDE_DEVICE + 1; i < count; i++)
    if (held[i] >= 0) close(held[i]);
  return status;
}

lp_status lp_sides_open(const lp_sides_options *options, lp_sides *out, lp_diag *diag) {
  *out = (lp_sides){.cloud = options->cloud, .cloud_count = options->cloud_count};
  for (lp_place i = 0; i < LP_PLACES_MAX; i++)
    out->worker[i].ready_fd = -1;
  for (size_t i = 0; i < options->cloud_count; i++)
    out->clouds[i] = options->clouds[i];
  const char *given = options->cloud ? options->cloud : options->cloud_count > 0 ? options->clouds[0].address : NULL;
  lp_bundle_options load = {.load = LP_LOAD_DEVICE, .check_hashes = options->check_hashes, .trust = options->trust};
  if (options->in_process) load.load = LP_LOAD_ALL;
  double begin = lp_now_ms();
  LP_TRY(lp_bundle_load(options->bundle, &load, &out->bundle, diag));
  out->load_ms = lp_now_ms() - begin;
  if (options->in_process)
    LP_TRY(lp_ranks_start(out->bundle, &load, lp_ranks_threads(out->bundle, options->threads), &out->team, diag));
  if (given && !lp_bundle_is_split(out->bundle))
    return lp_error(diag, LP_LOC_FILE(options->bundle),
                    "the bundle is not split, so that no part of it runs on the worker at %s", given);
  if (options->in_process || options->device_only || given || !lp_bundle_is_split(out->bundle)) return LP_OK;
  return lp_bundle_place_count(out->bundle) > LP_SIDE_COUNT ? start_places(options, out, diag)
                                                            : start_one(options, out, diag);
}

void lp_sides_close(lp_sides *sides) {
  lp_ranks_stop(sides->bundle, sides->team, NULL);
  lp_bundle_free(sides->bundle);
  /* All end at once, so that none of them sees another one disappear. */
  for (lp_place i = 0; i < LP_PLACES_MAX; i++)
    if (sides->worker[i].pid > 0) kill(sides->worker[i].pid, SIGTERM);
  for (lp_place i = 0; i < LP_PLACES_MAX; i++)
    lp_worker_stop(&sides->worker[i]);
}
