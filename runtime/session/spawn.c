/* Starts, awaits and stops a worker as a child process. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/number.h"
#include "runtime/runtime.h"

/* A worker that is told to end gets 5 s, for what it has yet to write on a busy machine; then it is killed. */
enum { STOP_TRIES = 1000, STOP_STEP_NS = 5000000 };
/* A worker that never listens is given up; to compile its kernels takes minutes on a slow or busy machine. One that is
 * started again need not be awaited for long, since its owner goes on asking it. */
static const double ready_ms = 600000, ready_again_ms = 30000;

static lp_status cannot(const char *what, int problem, lp_diag *diag) {
  return lp_error(diag, LP_LOC_NONE, "cannot start a worker: %s: %s", what, strerror(problem));
}

/* Runs in the child, where only async-signal-safe functions may be called. */
static void become_worker(const char *program, char *const *argv, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  (void)setpgid(0, 0); /* Control-C is for this process's parent, which ends the worker when it ends itself */
  if (getppid() == parent) execv(program, argv);
  _exit(127);
}

static lp_status own_program(char *out, size_t size, lp_diag *diag) {
  ssize_t length = readlink("/proc/self/exe", out, size - 1);
  if (length <= 0) return cannot("/proc/self/exe", errno, diag);
  out[length] = '\0';
  return LP_OK;
}

enum { MOST_ARGUMENTS = 10 + LP_PLACES_MAX };

/* Appends a copy of an argument; the caller frees them. */
static void put_argument(char **argv, size_t *count, const char *text, const char *value) {
  lp_buf argument = {0};
  lp_buf_printf(&argument, "%s%s", text, value);
  argv[(*count)++] = argument.data;
}

/* Starts a worker that listens on `address`. */
static lp_status start(const char *program, const lp_worker_request *request, const char *address,
                       lp_worker_process *out, lp_diag *diag) {
  char own[4096], number[16], *argv[MOST_ARGUMENTS] = {0};
  size_t count = 0;
  *out = (lp_worker_process){.ready_fd = -1};
  if (!program) LP_TRY(own_program(own, sizeof own, diag));
  if (!program) program = own;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return cannot("pipe", errno, diag);
  /* Of all descriptors of this process, only the worker's end stays open across exec. */
  (void)fcntl(ends[1], F_SETFD, 0);
  put_argument(argv, &count, program, "");
  put_argument(argv, &count, "worker", "");
  put_argument(argv, &count, request->bundle, "");
  put_argument(argv, &count, "--listen=", address);
  snprintf(number, sizeof number, "%d", ends[1]);
  put_argument(argv, &count, "--ready-fd=", number);
  snprintf(number, sizeof number, "%d", request->threads);
  put_argument(argv, &count, "--threads=", number);
  if (request->trust) put_argument(argv, &count, "--trust=", request->trust);
  if (request->place) put_argument(argv, &count, "--place=", request->place);
  for (size_t i = 0; i < request->peer_count; i++) {
    put_argument(argv, &count, "--peer=", request->peers[i].place);
    lp_buf both = {0};
    lp_buf_printf(&both, "%s=%s", argv[count - 1], request->peers[i].address);
    free(argv[count - 1]);
    argv[count - 1] = both.data;
  }
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) become_worker(program, argv, parent);
  int problem = errno;
  for (size_t i = 0; i < count; i++)
    free(argv[i]);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return cannot("fork", problem, diag);
  }
  out->pid = pid;
  out->ready_fd = ends[0];
  return LP_OK;
}

lp_status lp_worker_spawn(const char *program, const lp_worker_request *request, lp_worker_process *out,
                          lp_diag *diag) {
  return start(program, request, request->listen ? request->listen : "127.0.0.1:0", out, diag);
}

bool lp_worker_has_ended(lp_worker_process *process) {
  if (process->pid > 0 && waitpid(process->pid, NULL, WNOHANG) == 0) return false;
  if (process->ready_fd >= 0) close(process->ready_fd);
  process->ready_fd = -1;
  process->pid = 0;
  return true;
}

static lp_status await(lp_worker_process *process, double limit_ms, lp_diag *diag) {
  char line[16] = {0};
  size_t have = 0;
  bool ended = false;
  double until = lp_now_ms() + limit_ms;
  while (have + 1 < sizeof line && !strchr(line, '\n')) {
    double left = until - lp_now_ms();
    struct pollfd wait = {.fd = process->ready_fd, .events = POLLIN};
    int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
    if (ready < 0 && errno == EINTR) continue;
    ssize_t got = ready > 0 ? read(process->ready_fd, line + have, sizeof line - 1 - have) : 0;
    if (got < 0 && errno == EINTR) continue;
    ended = ready > 0 && got == 0; /* only the worker holds the other end */
    if (got <= 0) break;
    have += (size_t)got;
  }
  int port = atoi(line);
  if (!strchr(line, '\n') || port <= 0 || port > 65535)
    return ended ? lp_error(diag, LP_LOC_NONE, "the worker ended before it listened")
                 : lp_error(diag, LP_LOC_NONE, "the worker did not start to listen within %.0f s", limit_ms / 1000);
  snprintf(process->address, sizeof process->address, "127.0.0.1:%d", port);
  return LP_OK;
}

lp_status lp_worker_await(lp_worker_process *process, lp_diag *diag) {
  return await(process, ready_ms, diag);
}

/* An empty frame, a length of 0 and its CRC32C, asks for a sign of life: another empty frame (docs/protocol.md). */
bool lp_worker_answers(const lp_worker_process *process, double timeout_ms) {
  enum { LENGTH = 8, SUM = 4 };
  const struct timeval limit = {.tv_sec = (time_t)(timeout_ms / 1000),
                                .tv_usec = (suseconds_t)((int64_t)(timeout_ms * 1000) % 1000000)};
  const char *port = strrchr(process->address, ':');
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  at.sin_port = htons((uint16_t)(port ? atoi(port + 1) : 0));
  uint8_t frame[LENGTH + SUM] = {0}, answer[sizeof frame];
  lp_put_bytes(frame + LENGTH, lp_crc32c(0, frame, LENGTH), SUM);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
              setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
              connect(fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
              send(fd, frame, sizeof frame, MSG_NOSIGNAL) == (ssize_t)sizeof frame &&
              recv(fd, answer, sizeof answer, MSG_WAITALL) == (ssize_t)sizeof answer &&
              memcmp(frame, answer, sizeof frame) == 0;
  if (fd >= 0) close(fd);
  return good;
}

lp_status lp_worker_revive(const lp_worker_request *request, lp_worker_process *process, lp_diag *diag) {
  lp_worker_process fresh;
  LP_TRY(start(NULL, request, process->address, &fresh, diag));
  process->pid = fresh.pid;
  process->ready_fd = fresh.ready_fd;
  return await(&fresh, ready_again_ms, diag); /* others read the address of `process`, which stays */
}

void lp_worker_stop(lp_worker_process *process) {
  if (process->pid <= 0) return;
  if (process->ready_fd >= 0) close(process->ready_fd);
  kill(process->pid, SIGTERM);
  for (int i = 0; i < STOP_TRIES && waitpid(process->pid, NULL, WNOHANG) == 0; i++) {
    if (i == STOP_TRIES - 1) kill(process->pid, SIGKILL);
    nanosleep(&(struct timespec){.tv_nsec = STOP_STEP_NS}, NULL);
  }
  (void)waitpid(process->pid, NULL, 0);
  *process = (lp_worker_process){.ready_fd = -1};
}
