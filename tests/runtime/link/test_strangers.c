/* Silent connections do not keep devices out: the number of waiting connections is limited, and a silent one gives its
 * descriptor to a new one. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/link/security.h"
#include "runtime/link/transport.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static const lp_transport *const transport = &lp_transport_socket;
static const lp_security plain;

static lp_channel *listen_at(char address[32]) {
  lp_channel *worker = NULL;
  int port = 0;
  ck_assert_int_eq(transport->listen("127.0.0.1:0", &plain, &worker, &port, NULL), LP_OK);
  snprintf(address, 32, "127.0.0.1:%d", port);
  return worker;
}

static lp_channel *dial(const char *address) {
  lp_endpoint endpoint = {.address = address, .security = &plain, .patience = {.beat_ms = 50, .silence_ms = 30000}};
  lp_channel *device = NULL;
  ck_assert_int_eq(transport->dial(&endpoint, 2000, &device, NULL), LP_OK);
  return device;
}

/* A process that may open `files` files, opens silent connections, and says hello on one more. */
static pid_t crowd(const char *address, int silent, const struct rlimit *files) {
  pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (setrlimit(RLIMIT_NOFILE, files) != 0) _exit(1);
  const char *why = "";
  for (int i = 0; i < silent; i++)
    (void)toy_connect(address);
  (void)transport->send(dial(address), LP_ONLY_PEER, "hello", 5, NULL, 0, &why);
  pause();
  _exit(0);
}

static double cpu_ms(void) {
  struct rusage used;
  ck_assert_int_eq(getrusage(RUSAGE_SELF, &used), 0);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
}

/* A listener that may open 64 files hears a device after 100 connections that say nothing, says once what it lacks, and
 * does not spin. */
LP_TEST(descriptors_go_to_those_who_talk) {
  struct rlimit before, few;
  char address[32];
  lp_channel *worker = listen_at(address);
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
  few = before;
  few.rlim_cur = 64; /* before the first connection comes */
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
  pid_t child = crowd(address, 100, &before);
  int heard = 0, strained = 0;
  double begin = lp_now_ms(), cpu = cpu_ms();
  while (lp_now_ms() - begin < 3000) {
    lp_packet packet;
    const char *why = "";
    lp_recv_outcome outcome = transport->receive(worker, 200, &packet, &why);
    strained += outcome == LP_RECV_STRAINED && strstr(why, "no descriptors") != NULL;
    if (outcome != LP_RECV_FRAME) continue;
    transport->permit(worker, packet.peer, 100);
    transport->release(&packet);
    heard++;
  }
  ck_assert_int_eq(heard, 1);
  ck_assert_int_eq(strained, 1);
  ck_assert_double_le(cpu_ms() - cpu, 300);
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  transport->close(worker);
}

static bool is_open(int fd) {
  char byte;
  return recv(fd, &byte, 1, MSG_DONTWAIT) != 0;
}

/* Of one host's silent connections the newest 64 are kept, and permitted ones do not count. */
LP_TEST(silent_connections_of_one_host) {
  enum { SILENT = 200, MOST = 64 };
  char address[32];
  int fd[SILENT], open = 0;
  lp_channel *worker = listen_at(address), *device = dial(address);
  lp_packet packet;
  const char *why = "";
  ck_assert(transport->send(device, LP_ONLY_PEER, "hello", 5, NULL, 0, &why));
  ck_assert_int_eq(transport->receive(worker, 2000, &packet, &why), LP_RECV_FRAME);
  uint32_t peer = packet.peer;
  transport->permit(worker, peer, 100);
  transport->release(&packet);
  for (int i = 0; i < SILENT; i++)
    fd[i] = toy_connect(address);
  for (double begin = lp_now_ms(); lp_now_ms() - begin < 1000;)
    ck_assert_int_eq(transport->receive(worker, 200, &packet, &why), LP_RECV_TIMEOUT);
  for (int i = 0; i < SILENT; i++)
    open += is_open(fd[i]);
  ck_assert_int_eq(open, MOST);
  ck_assert(is_open(fd[SILENT - 1]) && !is_open(fd[0]));
  ck_assert(transport->send(worker, peer, "still here", 10, NULL, 0, &why));
  ck_assert_int_eq(transport->receive(device, 2000, &packet, &why), LP_RECV_FRAME);
  transport->release(&packet);
  for (int i = 0; i < SILENT; i++)
    close(fd[i]);
  transport->close(device);
  transport->close(worker);
}
