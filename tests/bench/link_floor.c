/* Measures the least cost of a machine's loopback: two processes only read memory, as a pass reads weights, and
 * exchange a row and a token over a bare socket that they poll, plain and in TLS; they are compared with one process
 * that reads all of the memory.
 *
 *     link_floor [KIB_OF_DEVICE KIB_OF_WORKER [ROW_BYTES TOKEN_BYTES]]
 *
 * link_overhead.py measures llmpart's own link. With its default model the sides read 2800 and 3300 KiB, and frames
 * have 555 and 47 bytes. */
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/side.h"
#include "runtime/link/conn.h"
#include "runtime/link/security.h"

enum { TURNS = 2000, ROUNDS = 9, MOST = 1 << 14 };

typedef struct {
  uint64_t *words[2];
  size_t count[2], bytes[2]; /* of memory; of the messages: by the device, by the worker */
  volatile uint64_t sum;
} load;

/* Reads memory in eight streams, as a product of a matrix and a vector reads rows. */
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

static void send_frame(lp_conn *to, const uint8_t *data, size_t size) {
  need(lp_conn_send(to, data, size, NULL, 0, INFINITY), to->why);
}

static void receive_frame(lp_conn *from) {
  enum { LOOKS = 8 };
  size_t size;
  for (;;) {
    for (int i = 0; i < LOOKS; i++) {
      lp_conn_progress progress = lp_conn_read(from, true);
      need(progress != LP_CONN_BROKEN, from->why);
      if (progress != LP_CONN_FRAME) continue;
      free(lp_conn_take(from, &size));
      return;
    }
    sched_yield(); /* both may be on one core */
  }
}

static void shake(lp_conn *conn) {
  while (!lp_conn_is_ready(conn))
    need(lp_conn_read(conn, true) == LP_CONN_MORE, conn->why);
}

static void connect_both(int fd[2]) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  need(listener >= 0, "a socket");
  need(bind(listener, (struct sockaddr *)&at, size) == 0 && listen(listener, 1) == 0, "to listen");
  need(getsockname(listener, (struct sockaddr *)&at, &size) == 0, "getsockname");
  fd[0] = socket(AF_INET, SOCK_STREAM, 0);
  need(fd[0] >= 0, "a socket");
  need(connect(fd[0], (struct sockaddr *)&at, size) == 0, "to connect");
  fd[1] = accept(listener, NULL, NULL);
  need(fd[1] >= 0, "to accept");
  for (int i = 0; i < 2; i++) {
    (void)setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    need(fcntl(fd[i], F_SETFL, O_NONBLOCK) == 0, "fcntl");
  }
  close(listener);
}

static void serve(load *at, lp_conn *device) {
  uint8_t token[MOST] = {0};
  for (int i = 0; i <= TURNS; i++) {
    receive_frame(device);
    work(at, 1);
    send_frame(device, token, at->bytes[1]);
  }
}

/* us for each turn */
static double take_turns(load *at, const lp_security security[2]) {
  int fd[2];
  connect_both(fd);
  pid_t child = fork();
  if (child == 0) {
    lp_conn device;
    close(fd[0]);
    need(lp_conn_open(&device, fd[1], security[1].tls, true), "TLS");
    device.most = MOST;
    serve(at, &device);
    _exit(0);
  }
  close(fd[1]);
  lp_conn worker;
  need(lp_conn_open(&worker, fd[0], security[0].tls, false), "TLS");
  worker.most = MOST;
  uint8_t row[MOST] = {0};
  double begin = 0;
  shake(&worker);
  for (int i = 0; i <= TURNS; i++) {
    if (i == 1) begin = lp_now_ms(); /* the first takes part in the handshake */
    work(at, 0);
    send_frame(&worker, row, at->bytes[0]);
    receive_frame(&worker);
  }
  double us = (lp_now_ms() - begin) / (double)TURNS * 1e3;
  lp_conn_close(&worker, "");
  waitpid(child, NULL, 0);
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
  qsort(x, ROUNDS, sizeof *x, by_size);
  return x[ROUNDS / 2];
}

static void measure(load *at, const lp_security security[2]) {
  double us[3][ROUNDS], split[ROUNDS], sealed[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) {
    us[0][i] = alone(at);
    us[1][i] = take_turns(at, (const lp_security[2]){0});
    us[2][i] = take_turns(at, security);
    split[i] = us[1][i] / us[0][i];
    sealed[i] = us[2][i] / us[1][i];
  }
  printf("%zu and %zu KiB: one process %.1f us, two %.1f, in TLS %.1f", at->count[0] / 128, at->count[1] / 128,
         median(us[0]), median(us[1]), median(us[2]));
  if (at->count[0] > 0) printf("; two / one %.3f", median(split));
  printf(", TLS / two %.3f\n", median(sealed));
}

/* Both sides hold the same key. */
static void configure(lp_security security[2]) {
  char path[] = "/tmp/link_floor.XXXXXX";
  int file = mkstemp(path);
  need(file >= 0 && write(file, path, sizeof path) == sizeof path && close(file) == 0, "a temporary file");
  for (int i = 0; i < 2; i++) {
    lp_side side = i == 0 ? LP_SIDE_DEVICE : LP_SIDE_CLOUD;
    need(lp_security_open(&(lp_link_security){.key_file = path}, side, true, &security[i], NULL) == LP_OK, "the key");
  }
  unlink(path);
}

int main(int argc, char **argv) {
  size_t kib[2] = {2800, 3300};
  load at = {.bytes = {555, 47}};
  for (int i = 0; i < 2 && argc > 2; i++)
    kib[i] = (size_t)atoi(argv[1 + i]);
  for (int i = 0; i < 2 && argc > 4; i++)
    at.bytes[i] = (size_t)atoi(argv[3 + i]);
  need(at.bytes[0] <= MOST && at.bytes[1] <= MOST, "frames of that size");
  lp_security security[2];
  configure(security);
  for (int i = 0; i < 2; i++) {
    at.words[i] = lp_alloc(kib[i] << 10 | 1);
    memset(at.words[i], i + 1, kib[i] << 10);
  }
  measure(&at, security);
  for (int i = 0; i < 2; i++)
    at.count[i] = kib[i] << 7;
  measure(&at, security);
  for (int i = 0; i < 2; i++) {
    free(at.words[i]);
    lp_security_close(&security[i]);
  }
  return 0;
}
