/* Workers as child processes: the command that starts one, what it may answer, and how its end is noticed. This program
 * is its own worker: started as `PROGRAM worker FOLDER ..` it writes its arguments to FOLDER/arguments and FOLDER/reply
 * to the descriptor that it was given. Then it waits to be killed, or ends where FOLDER/ends exists. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static char *dir;
static lp_diag *diag;
static lp_worker_process worker;

static void setup(void) {
  dir = toy_dir_create();
  diag = lp_diag_create();
}
static void teardown(void) {
  lp_diag_free(diag);
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* ---- the worker's side ------------------------------------------------------------------------------------------- */

static void act_as_worker(int argc, char **argv) {
  char *reply_path = lp_path_join(argv[2], "reply"), *arguments = lp_path_join(argv[2], "arguments");
  char *ends = lp_path_join(argv[2], "ends"), *reply = NULL;
  lp_buf text = {0};
  size_t size = 0;
  int fd = -1;
  for (int i = 1; i < argc; i++) {
    bool is_fd = lp_has_prefix(argv[i], "--ready-fd=");
    if (is_fd) fd = atoi(argv[i] + strlen("--ready-fd="));
    lp_buf_printf(&text, "%s\n", is_fd ? "--ready-fd=N" : argv[i]);
  }
  bool good = lp_file_write(arguments, text.data, text.size, NULL) == LP_OK &&
              lp_file_read(reply_path, &reply, &size, NULL) == LP_OK && write(fd, reply, size) == (ssize_t)size;
  while (good && access(ends, F_OK) != 0)
    pause();
  _exit(good ? 0 : 1);
}

/* Before the tests begin; glibc gives constructors the arguments of main. */
__attribute__((constructor)) static void begin(int argc, char **argv) {
  if (argc > 2 && strcmp(argv[1], "worker") == 0) act_as_worker(argc, argv);
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static void put_file(const char *name, const char *text) {
  char *path = lp_path_join(dir, name);
  ck_assert_int_eq(lp_file_write(path, text, strlen(text), NULL), LP_OK);
  free(path);
}

static void expect_arguments(const char *wanted) {
  char *path = lp_path_join(dir, "arguments"), *found = NULL;
  size_t size = 0;
  lp_buf all = {0};
  ck_assert_int_eq(lp_file_read(path, &found, &size, NULL), LP_OK);
  lp_buf_printf(&all, "worker\n%s\n%s", dir, wanted);
  ck_assert_str_eq(found, all.data);
  lp_buf_free(&all);
  free(found);
  free(path);
}

static void spawn(const lp_worker_request *more) {
  lp_worker_request request = *more;
  request.bundle = dir;
  ck_assert_int_eq(lp_worker_spawn(NULL, &request, &worker, diag), LP_OK);
  ck_assert_int_gt(worker.pid, 0);
  ck_assert_int_ge(worker.ready_fd, 0);
}

LP_TEST(the_least_command) {
  put_file("reply", "4711\n");
  spawn(&(lp_worker_request){0});
  ck_assert_int_eq(lp_worker_await(&worker, diag), LP_OK);
  ck_assert_str_eq(worker.address, "127.0.0.1:4711");
  expect_arguments("--listen=127.0.0.1:0\n--ready-fd=N\n--threads=0\n");
  int pid = worker.pid;
  lp_worker_stop(&worker);
  ck_assert_int_eq(worker.pid, 0);
  ck_assert_int_eq(worker.ready_fd, -1);
  ck_assert_str_eq(worker.address, "");
  ck_assert_int_eq(kill(pid, 0), -1); /* it is gone, and no zombie is left */
  ck_assert_int_eq(errno, ESRCH);
  lp_worker_stop(&worker); /* one that does not run is allowed */
}

LP_TEST(the_whole_command) {
  static const lp_place_address peers[] = {{"edge.1", "h:1"}, {"server", "unix:/a=b"}};
  put_file("reply", "1\n");
  spawn(&(lp_worker_request){.trust = "key",
                             .threads = 3,
                             .listen = "127.0.0.1:12",
                             .place = "edge.2",
                             .peers = peers,
                             .peer_count = LP_COUNT(peers)});
  ck_assert_int_eq(lp_worker_await(&worker, diag), LP_OK);
  expect_arguments("--listen=127.0.0.1:12\n--ready-fd=N\n--threads=3\n--trust=key\n--place=edge.2\n"
                   "--peer=edge.1=h:1\n--peer=server=unix:/a=b\n");
  lp_worker_stop(&worker);
}

/* A line with a port; a worker that still runs without one is given up, as it is when the time is over. */
LP_LOOP_TEST(answers_of_a_worker, 0, 9) {
  static const char never[] = "the worker did not start to listen within 600 s",
                    ended[] = "the worker ended before it listened";
  static const struct {
    const char *reply, *address, *refusal;
    bool ends;
  } rows[] = {
      {"1\n", "127.0.0.1:1", NULL, false},
      {"65535\n", "127.0.0.1:65535", NULL, false},
      {"65536\n", NULL, never, false},
      {"0\n", NULL, never, false},
      {"-1\n", NULL, never, false},
      {"listening\n", NULL, never, false},
      {"000000000004711", NULL, never, false}, /* longer than any port */
      {"4711", NULL, ended, true},
      {"", NULL, ended, true},
  };
  put_file("reply", rows[_i].reply);
  if (rows[_i].ends) put_file("ends", "");
  spawn(&(lp_worker_request){0});
  ck_assert_int_eq(lp_worker_await(&worker, diag), rows[_i].address ? LP_OK : LP_FAILED);
  if (rows[_i].address)
    ck_assert_str_eq(worker.address, rows[_i].address);
  else
    ck_assert_str_eq(toy_error(diag), rows[_i].refusal);
  lp_worker_stop(&worker);
}

LP_TEST(the_end_is_noticed) {
  put_file("reply", "1\n");
  spawn(&(lp_worker_request){0});
  ck_assert_int_eq(lp_worker_await(&worker, diag), LP_OK);
  ck_assert(!lp_worker_has_ended(&worker));
  int pid = worker.pid, fd = worker.ready_fd;
  siginfo_t info;
  ck_assert_int_eq(kill(pid, SIGKILL), 0);
  ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
  ck_assert(lp_worker_has_ended(&worker));
  ck_assert_int_eq(worker.pid, 0);
  ck_assert_int_eq(worker.ready_fd, -1);
  ck_assert_int_eq(close(fd), -1); /* it is closed */
  ck_assert_int_eq(kill(pid, 0), -1);
  ck_assert(lp_worker_has_ended(&worker)); /* asked again */
}

LP_TEST(a_worker_is_revived_where_it_was) {
  put_file("reply", "4711\n");
  worker = (lp_worker_process){.ready_fd = -1, .address = "127.0.0.1:12"};
  const lp_worker_request request = {.bundle = dir, .listen = "127.0.0.1:0", .threads = 2};
  ck_assert_int_eq(lp_worker_revive(&request, &worker, diag), LP_OK);
  ck_assert_str_eq(worker.address, "127.0.0.1:12"); /* as others read it */
  expect_arguments("--listen=127.0.0.1:12\n--ready-fd=N\n--threads=2\n");
  ck_assert(!lp_worker_has_ended(&worker));
  lp_worker_stop(&worker);
  put_file("ends", "");
  put_file("reply", "");
  worker = (lp_worker_process){.ready_fd = -1, .address = "127.0.0.1:12"};
  ck_assert_int_eq(lp_worker_revive(&request, &worker, diag), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), "the worker ended before it listened");
  ck_assert_int_gt(worker.pid, 0);
  lp_worker_stop(&worker);
}

LP_TEST(no_descriptors_are_left) {
  struct rlimit usual, none;
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
  none = (struct rlimit){.rlim_cur = 0, .rlim_max = usual.rlim_max};
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
  lp_status status = lp_worker_spawn(NULL, &(lp_worker_request){.bundle = dir}, &worker, diag);
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
  ck_assert_int_eq(status, LP_FAILED);
  ck_assert_str_eq(toy_error(diag), "cannot start a worker: pipe: Too many open files");
  ck_assert_int_eq(worker.pid, 0);
  ck_assert_int_eq(worker.ready_fd, -1);
}

/* ---- signs of life ----------------------------------------------------------------------------------------------- */

/* Binds a socket to a free port of loopback, and gives `worker` its address. */
static int take_port(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
  ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &size), 0);
  (void)snprintf(worker.address, sizeof worker.address, "127.0.0.1:%d", ntohs(at.sin_port));
  return fd;
}

/* Answers one empty frame with `bytes` bytes of another, in a process of its own. */
static pid_t answer_once(int fd, size_t bytes) {
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child > 0) return child;
  static const uint8_t empty[12] = {[8] = 0x8a, 0xb2, 0x28, 0x8c}; /* the CRC32C of eight zeros, bit by bit */
  uint8_t frame[12] = {1};
  int peer = accept(fd, NULL, NULL);
  bool good = peer >= 0 && recv(peer, frame, sizeof frame, MSG_WAITALL) == (ssize_t)sizeof frame &&
              memcmp(frame, empty, sizeof frame) == 0 && send(peer, empty, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
  _exit(good ? 0 : 1);
}

LP_LOOP_TEST(a_sign_of_life_is_a_whole_frame, 0, 2) {
  int fd = take_port(), status = 0;
  ck_assert_int_eq(listen(fd, 1), 0);
  pid_t child = answer_once(fd, _i == 0 ? 12 : 11);
  ck_assert_int_eq(lp_worker_answers(&worker, 60000), _i == 0);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  close(fd);
}

LP_TEST(no_sign_of_life) {
  int fd = take_port();
  ck_assert(!lp_worker_answers(&worker, 60000)); /* nothing listens there */
  ck_assert_int_eq(listen(fd, 1), 0);
  ck_assert(!lp_worker_answers(&worker, 20)); /* it takes the connection and is silent */
  worker.address[0] = 0;
  ck_assert(!lp_worker_answers(&worker, 60000)); /* it never listened */
  close(fd);
}
