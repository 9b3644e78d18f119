/* What a machine's loopback costs at the least: two processes that do nothing but read memory, as a pass reads weights, and hand a row and a
 * token to each other over a bare socket that they never sleep for, plain and in TLS, against one process that reads all of it.
 *
 *     link_floor [KIB_OF_DEVICE KIB_OF_WORKER [ROW_BYTES TOKEN_BYTES]]
 *
 * link_overhead.py measures the real thing; its default model has 2800 and 3300 KiB, frames of 555 and 47 bytes. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "runtime/exec/executor.h"
#include "runtime/link/link_security.h"
#include "runtime/link/tls.h"

enum { TURNS = 2000, ROUNDS = 9, MOST = 1 << 14 };

typedef struct {
  int fd;
  lp_tls *tls; /* NULL: plain */
  lp_buf sealed;
} wire;

typedef struct {
  uint64_t *words[2];
  size_t count[2], bytes[2]; /* of memory; of what is sent: by the device, by the worker */
  volatile uint64_t sum;
} load;

/* In eight streams, as a product of a matrix and a vector reads rows. */
static void work(load *at, int side) {
  enum { STREAMS = 8 };
  uint64_t sum[STREAMS] = {0};
  size_t part = at->count[side] / STREAMS;
  const uint64_t *from = at->words[side];
  for (size_t i = 0; i < part; i += 8)
    for (int k = 0; k < STREAMS; k++)
      for (size_t j = i; j < i + 8; j++)
        sum[k] += from[(size_t)k * part + j];
  for (int k = 1; k < STREAMS; k++)
    sum[0] += sum[k];
  at->sum = sum[0];
}

static void need(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "link_floor: %s failed\n", what);
  exit(1);
}

static void send_all(wire *to, const uint8_t *data, size_t size) {
  lp_span whole = {(void *)(uintptr_t)data, size};
  if (to->tls != NULL) {
    lp_buf_clear(&to->sealed);
    need(lp_tls_seal(to->tls, &whole, size > 0 ? 1 : 0, &to->sealed), "to seal");
    whole = (lp_span){to->sealed.data, to->sealed.size};
  }
  if (whole.size > 0) need(send(to->fd, whole.data, whole.size, MSG_NOSIGNAL) == (ssize_t)whole.size, "to send");
}

static size_t look(wire *from, void *to, size_t size) {
  enum { LOOKS = 8 };
  for (int i = 0; i < LOOKS; i++) {
    ssize_t got = recv(from->fd, to, size, MSG_DONTWAIT);
    need(got != 0, "the other process");
    if (got > 0) return (size_t)got;
  }
  sched_yield(); /* both may be on one core */
  return 0;
}

/* Some bytes, as soon as there are. */
static size_t receive_some(wire *from, uint8_t *to, size_t size) {
  size_t room, got = 0;
  if (from->tls == NULL) {
    while (got == 0)
      got = look(from, to, size);
    return got;
  }
  for (;;) {
    lp_tls_progress progress = lp_tls_open(from->tls, to, size, &got);
    need(progress != LP_TLS_BROKEN, lp_tls_why(from->tls));
    if (lp_tls_waits(from->tls)) send_all(from, NULL, 0);
    if (progress == LP_TLS_SOME) return got;
    uint8_t *sealed = lp_tls_room(from->tls, &room);
    for (size_t came = 0; came == 0; lp_tls_arrived(from->tls, came))
      came = look(from, sealed, room);
  }
}

static void receive_all(wire *from, uint8_t *to, size_t size) {
  for (size_t have = 0; have < size;)
    have += receive_some(from, to + have, size - have);
}

static void shake(wire *device) {
  uint8_t none[1];
  size_t room, got;
  while (device->tls != NULL && !lp_tls_is_shaken(device->tls)) {
    need(lp_tls_open(device->tls, none, 0, &got) == LP_TLS_MORE, lp_tls_why(device->tls));
    send_all(device, NULL, 0);
    uint8_t *sealed = lp_tls_room(device->tls, &room);
    size_t came = lp_tls_is_shaken(device->tls) ? 0 : look(device, sealed, room);
    if (came > 0) lp_tls_arrived(device->tls, came);
  }
}

static void connect_both(int fd[2]) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof(at);
  int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  need(listener >= 0, "a socket");
  need(bind(listener, (struct sockaddr *)&at, size) == 0 && listen(listener, 1) == 0, "to listen");
  need(getsockname(listener, (struct sockaddr *)&at, &size) == 0, "getsockname");
  fd[0] = socket(AF_INET, SOCK_STREAM, 0);
  need(fd[0] >= 0, "a socket");
  need(connect(fd[0], (struct sockaddr *)&at, size) == 0, "to connect");
  fd[1] = accept(listener, NULL, NULL);
  need(fd[1] >= 0, "to accept");
  for (int i = 0; i < 2; i++)
    (void)setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  close(listener);
}

static void serve(load *at, wire *device) {
  uint8_t row[MOST], token[MOST] = {0};
  for (int i = 0; i <= TURNS; i++) {
    receive_all(device, row, at->bytes[0]);
    work(at, 1);
    send_all(device, token, at->bytes[1]);
  }
}

/* us for each turn */
static double take_turns(load *at, lp_tls *tls[2]) {
  int fd[2];
  connect_both(fd);
  pid_t child = fork();
  if (child == 0) {
    close(fd[0]);
    serve(at, &(wire){.fd = fd[1], .tls = tls != NULL ? tls[1] : NULL});
    _exit(0);
  }
  close(fd[1]);
  wire worker = {.fd = fd[0], .tls = tls != NULL ? tls[0] : NULL};
  uint8_t row[MOST] = {0}, token[MOST];
  double begin = 0;
  shake(&worker);
  for (int i = 0; i <= TURNS; i++) {
    if (i == 1) begin = lp_now_ms(); /* the first takes part in the handshake */
    work(at, 0);
    send_all(&worker, row, at->bytes[0]);
    receive_all(&worker, token, at->bytes[1]);
  }
  double us = (lp_now_ms() - begin) / (double)TURNS * 1e3;
  close(fd[0]);
  waitpid(child, NULL, 0);
  lp_buf_free(&worker.sealed);
  return us;
}

static double alone(load *at) {
  double begin = lp_now_ms();
  for (int i = 0; i < TURNS; i++) {
    work(at, 0);
    work(at, 1);
  }
  return (lp_now_ms() - begin) / (double)TURNS * 1e3;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(double *x) {
  qsort(x, ROUNDS, sizeof(*x), by_size);
  return x[ROUNDS / 2];
}

static void measure(load *at, lp_tls_config *config[2]) {
  double us[3][ROUNDS], split[ROUNDS], sealed[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) {
    lp_tls *tls[2] = {lp_tls_create(config[0]), lp_tls_create(config[1])};
    us[0][i] = alone(at);
    us[1][i] = take_turns(at, NULL);
    us[2][i] = take_turns(at, tls);
    split[i] = us[1][i] / us[0][i];
    sealed[i] = us[2][i] / us[1][i];
    lp_tls_free(tls[0]);
    lp_tls_free(tls[1]);
  }
  printf("%zu and %zu KiB: one process %.1f us, two %.1f, in TLS %.1f", at->count[0] / 128, at->count[1] / 128,
         median(us[0]), median(us[1]), median(us[2]));
  if (at->count[0] > 0) printf("; two / one %.3f", median(split));
  printf(", TLS / two %.3f\n", median(sealed));
}

static void configure(lp_tls_config *config[2]) {
  char *certificate = NULL, *key = NULL;
  size_t size;
  config[0] = lp_tls_config_create(false);
  config[1] = lp_tls_config_create(true);
  need(lp_file_read(LP_TLS_DIR "/worker.crt", &certificate, &size, NULL) == LP_OK &&
           lp_file_read(LP_TLS_DIR "/worker.key", &key, &size, NULL) == LP_OK,
       "to read the certificate");
  need(lp_tls_config_own(config[1], certificate, key) == 0 && lp_tls_config_trust(config[0], certificate) == 0,
       "to use the certificate");
  free(certificate);
  free(key);
}

int main(int argc, char **argv) {
  size_t kib[2] = {2800, 3300};
  load at = {.bytes = {555, 47}};
  for (int i = 0; i < 2 && argc > 2; i++)
    kib[i] = (size_t)atoi(argv[1 + i]);
  for (int i = 0; i < 2 && argc > 4; i++)
    at.bytes[i] = (size_t)atoi(argv[3 + i]);
  need(at.bytes[0] <= MOST && at.bytes[1] <= MOST, "frames of that size");
  lp_tls_config *config[2];
  configure(config);
  for (int i = 0; i < 2; i++) {
    at.words[i] = lp_alloc(kib[i] << 10 | 1);
    memset(at.words[i], i + 1, kib[i] << 10);
  }
  measure(&at, config);
  for (int i = 0; i < 2; i++)
    at.count[i] = kib[i] << 7;
  measure(&at, config);
  for (int i = 0; i < 2; i++) {
    free(at.words[i]);
    lp_tls_config_free(config[i]);
  }
  return 0;
}
