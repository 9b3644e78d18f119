/* Removes half-written output when a signal ends a command. A file that grows beyond the limit of the shell (ulimit -f)
 * is an error of the write. */
#include "base/temporary.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};
static volatile sig_atomic_t received;
static pid_t owner;
static sem_t wanted;

static void end_by(int number) {
  (void)signal(number, SIG_DFL);
  (void)kill(getpid(), number); /* not raise(): the caller may be a thread that takes no signals */
}

/* Almost nothing is allowed in a signal handler, so a thread does the work. A child process has no such thread, and
 * nothing to remove. */
static void on_signal(int number) {
  const int kept = errno;
  received = number;
  if (getpid() == owner)
    (void)sem_post(&wanted);
  else
    end_by(number);
  errno = kept;
}

static void *wait_for_signal(void *unused) {
  (void)unused;
  while (sem_wait(&wanted) != 0) {
  }
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  /* Other threads may report that their files are gone, which is of no interest now. */
  if (nowhere >= 0) (void)dup2(nowhere, STDERR_FILENO);
  lp_temporaries_remove();
  end_by(received);
  return NULL;
}

void lp_tool_tidy_when_interrupted(void) {
  pthread_t thread;
  sigset_t all, before;
  owner = getpid();
  (void)signal(SIGXFSZ, SIG_IGN);
  if (sem_init(&wanted, 0, 0) != 0) return;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&thread, NULL, wait_for_signal, NULL) == 0;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!started) return;
  (void)pthread_detach(thread);
  for (size_t i = 0; i < LP_COUNT(signals); i++) {
    struct sigaction old, action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    (void)sigfillset(&action.sa_mask);
    if (sigaction(signals[i], NULL, &old) != 0 || old.sa_handler == SIG_IGN) continue; /* such as by nohup */
    (void)sigaction(signals[i], &action, NULL);
  }
}
