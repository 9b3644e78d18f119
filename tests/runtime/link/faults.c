/* Random fault scripts: a device and a worker in processes of their own, and between them a network that follows a
 * script drawn from a seed. It delays, drops, doubles, reorders, truncates and swallows messages, cuts connections,
 * kills either side with SIGKILL, and holds everything until contexts are given up. Then it behaves, and the generation
 * must end: without a crash, in time, and in exact mode with the tokens of an undisturbed run. Where the cloud has all
 * of decode, it draws ahead of the device, and the tokens are always those; such a script loses and doubles no message
 * that TCP would deliver.
 *
 *   faults [SCRIPTS [FIRST_SEED [JOBS]]]      e.g. faults 10000
 *
 * A script that fails is named by its seed: `faults 1 SEED 1` runs it again. This process opens no link of its own, so
 * that it may fork: it is the network, and both sides are its children. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/random.h"
#include "tests/runtime/toy/toy_run.h"

enum {
  BUNDLES = 6,
  APART = 3, /* the first of the bundles with independent halves */
  MADE = 32,
  MOST_PIPES = 64,
  MOST_FRAMES = 64,
  HANDSHAKE = 2,
  HEAD = 12, /* the length and sum of a frame */
  MOST_FAULTS = 10
};
/* Long for a generation; but on a busy machine silence_ms passes again and again, which is no hang. */
static const double hang_ms = 120000, most_step_ms = 50, idle_ms = 12;
static const lp_patience quick = {
    .dial_ms = 80, .pause_ms = 1, .longest_pause_ms = 8, .beat_ms = 15, .silence_ms = 60, .repeat_ms = 20};
static const toy_placement placements[BUNDLES] = {
    {.prefill = "ddddcc", .exits = {1, 3}},    {.prefill = "dddddc", .exits = {4}},
    {.prefill = "ddddcc", .exits = {2}},       {.prefill = "cccccc", .input_there = true},
    {.prefill = "ddcccc", .decode = "cccccc"}, {.prefill = "dddddd", .decode = "cccccc"}};

typedef enum {
  DELIVER,
  DELAY,
  DROP,
  TWICE,
  LATER,
  TRUNCATE,
  CUT,
  SWALLOW,
  KILL_WORKER,
  KILL_DEVICE,
  HOLD,
  FAULTS
} fault;
static const char *const fault_name[FAULTS] = {"deliver", "delay",   "drop",        "twice",       "later", "truncate",
                                               "cut",     "swallow", "kill worker", "kill device", "hold"};

/* ---- state that the processes share ------------------------------------------------------------------------------ */

typedef struct {
  int64_t made; /* tokens given out; atomic */
  int32_t token[MADE];
} output;

typedef struct {
  uint8_t *data;
  size_t size;
  double due_ms;
} frame;

typedef struct {
  int from, to;
  uint8_t *buffer; /* received bytes that are not a complete frame yet */
  size_t have;
  frame queue[MOST_FRAMES];
  int waiting, passed; /* frames in the queue; frames that came so far */
} flow;

typedef struct {
  bool open, swallows;
  flow way[2]; /* up, down */
} connection;

typedef struct {
  uint64_t seed, drawn;
  const lp_bundle *bundle;
  int64_t prompt;
  lp_sampling sampling;
  bool exact;
  bool streams; /* the cloud draws ahead of the device, by at most `ahead` tokens */
  int64_t ahead;
  /* The session file from which a killed device continues; NULL: it continues after the tokens that it has printed. */
  char *file;
  double likely; /* chance of a fault for a frame */
  int left;      /* faults */
  int listener, port, worker_port;
  pid_t worker, device;
  double worker_at_ms; /* when the next worker is started; 0: one runs */
  double held_until_ms;
  output *out;
  connection pipe[MOST_PIPES];
  int count[FAULTS];
} script;

static double uniform(script *run) {
  return lp_random_uniform(run->seed, 1, run->drawn++);
}

static int below(script *run, int limit) {
  return (int)(uniform(run) * limit);
}

/* ---- the two sides ----------------------------------------------------------------------------------------------- */

/* A child ends with its parent, and keeps none of its connections open. */
static void become_child(int keep) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (keep > 3) (void)close_range(3, (unsigned)keep - 1, 0);
  (void)close_range((unsigned)(keep >= 3 ? keep + 1 : 3), ~0U, 0);
}

static void tell_port(void *user, const char *host, int port) {
  (void)host;
  if (write(*(int *)user, &port, sizeof port) != sizeof port) _exit(3);
}

static void start_worker(script *run) {
  static const volatile int stop = 0;
  int ends[2];
  if (pipe(ends) != 0) abort();
  run->worker = fork();
  if (run->worker == 0) {
    become_child(ends[1]);
    lp_worker_options options = {.listen = "127.0.0.1:0", .threads = 1, .on_listening = tell_port, .user = &ends[1]};
    if (!run->streams) options.idle_ms = idle_ms; /* a session that loses its rows fails in a prompt */
    _exit(lp_worker_serve(run->bundle, &options, &stop, NULL) == LP_OK ? 0 : 4);
  }
  close(ends[1]);
  if (run->worker < 0 || read(ends[0], &run->worker_port, sizeof run->worker_port) != sizeof run->worker_port) abort();
  close(ends[0]);
  run->worker_at_ms = 0;
}

static void put_token(void *user, int64_t index, const lp_generated *token) {
  output *out = user;
  (void)index;
  int64_t at = __atomic_load_n(&out->made, __ATOMIC_RELAXED);
  if (at < MADE) out->token[at] = token->token;
  __atomic_store_n(&out->made, at + 1, __ATOMIC_RELEASE);
}

/* Resumes from the session file, if one was written. The tokens in it come first. */
static lp_status resume(const script *run, const int32_t *prompt, lp_generate_options options, output *out,
                        lp_diag *diag) {
  lp_saved_session saved = {0};
  lp_session *session = NULL;
  lp_generation totals = {0};
  options.session_file = run->file;
  options.max_tokens = MADE;
  if (lp_path_exists(run->file)) {
    LP_TRY(lp_saved_session_read(run->file, &saved, diag));
    options.resume = &saved;
  }
  __atomic_store_n(&out->made, 0, __ATOMIC_RELEASE);
  for (int64_t i = 0; i < saved.generated; i++)
    if (out->token[i] != saved.tokens.data[i].token)
      return lp_error(diag, LP_LOC_NONE, "token %d was kept wrongly", (int)i);
  lp_status status = lp_session_open(run->bundle, &options, &session, diag);
  if (status == LP_OK) status = lp_session_generate(session, prompt, 1, TOY_PROMPT, put_token, out, &totals, diag);
  lp_session_close(session);
  lp_generation_free(&totals);
  lp_saved_session_free(&saved);
  return status;
}

/* Generates the tokens that are missing after the prompt and the existing ones, as a resumed process does. */
static lp_status generate(const script *run, const char *cloud, output *out, lp_diag *diag) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT], text[TOY_PROMPT + MADE];
  int64_t made = out->made;
  toy_prompts(prompts);
  memcpy(text, prompts + run->prompt * TOY_PROMPT, TOY_PROMPT * sizeof *text);
  memcpy(text + TOY_PROMPT, out->token, (size_t)made * sizeof *text);
  lp_generate_options options = {.cloud = cloud,
                                 .mode = !cloud || run->streams ? LP_MODE_FULL
                                         : run->exact           ? LP_MODE_EXACT
                                                                : LP_MODE_THRESHOLD,
                                 .theta = 0.3,
                                 .sampling = run->sampling,
                                 .max_tokens = MADE - made,
                                 .ignore_eos = true,
                                 .threads = 1,
                                 .ahead = run->ahead,
                                 .cloud_timeout_ms = hang_ms,
                                 .patience = quick};
  if (cloud && run->file) return resume(run, text, options, out, diag);
  lp_session *session = NULL;
  lp_generation totals = {0};
  lp_status status = lp_session_open(run->bundle, &options, &session, diag);
  if (status == LP_OK) status = lp_session_generate(session, text, 1, TOY_PROMPT + made, put_token, out, &totals, diag);
  lp_session_close(session);
  lp_generation_free(&totals);
  return status;
}

static void start_device(script *run) {
  run->device = fork();
  if (run->device < 0) abort();
  if (run->device > 0) return;
  become_child(0);
  char cloud[32];
  snprintf(cloud, sizeof(cloud), "127.0.0.1:%d", run->port);
  lp_diag *diag = lp_diag_create();
  lp_status status = LP_FAILED;
  /* The first connection may meet a fault too: a user would call the command again. */
  for (int i = 0; i < 1000 && status != LP_OK; i++) {
    lp_diag_clear(diag);
    status = generate(run, cloud, run->out, diag);
    if (strstr(toy_error(diag), "cannot reach") == NULL && strstr(toy_error(diag), "unexpected answer") == NULL) break;
  }
  if (status != LP_OK) fprintf(stderr, "faults: seed %" PRIu64 ": device: %s\n", run->seed, toy_error(diag));
  _exit(status == LP_OK ? 0 : 5);
}

static void kill_child(pid_t *child) {
  if (*child > 0) {
    kill(*child, SIGKILL);
    waitpid(*child, NULL, 0);
  }
  *child = 0;
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

static void close_pipe(connection *pipe) {
  if (!pipe->open) return;
  close(pipe->way[0].from);
  close(pipe->way[0].to);
  for (int i = 0; i < 2; i++) {
    free(pipe->way[i].buffer);
    for (int k = 0; k < pipe->way[i].waiting; k++)
      free(pipe->way[i].queue[k].data);
  }
  *pipe = (connection){0};
}

static int connect_to(int port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  if (fd < 0) return -1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
  close(fd);
  return -1;
}

static void take_connection(script *run) {
  int near = accept(run->listener, NULL, NULL), on = 1;
  if (near < 0) return;
  (void)setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  int far = run->worker > 0 ? connect_to(run->worker_port) : -1;
  for (int i = 0; far >= 0 && i < MOST_PIPES; i++) {
    connection *pipe = &run->pipe[i];
    if (pipe->open) continue;
    *pipe = (connection){.open = true, .way = {{.from = near, .to = far}, {.from = far, .to = near}}};
    return;
  }
  close(near);
  if (far >= 0) close(far);
}

static bool write_all(int fd, const uint8_t *data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t now = send(fd, data + done, size - done, MSG_NOSIGNAL);
    if (now <= 0) return false;
    done += (size_t)now;
  }
  return true;
}

static void push(flow *way, const uint8_t *data, size_t size, double due_ms) {
  if (way->waiting == MOST_FRAMES) return; /* lost */
  frame *next = &way->queue[way->waiting++];
  *next = (frame){.data = lp_alloc(size), .size = size, .due_ms = due_ms};
  memcpy(next->data, data, size);
}

static fault draw_fault(script *run, const connection *pipe, const flow *way) {
  if (run->left == 0 || uniform(run) >= run->likely) return DELIVER;
  fault drawn = (fault)(1 + below(run, FAULTS - 1));
  bool resumes = way == &pipe->way[1] && way->passed >= HANDSHAKE; /* the device sees that a draw is missing */
  if (run->streams && (drawn == DROP || ((drawn == TWICE || drawn == LATER) && !resumes))) drawn = DELAY;
  if (drawn == LATER && way->passed < HANDSHAKE) return DELIVER; /* TCP keeps the order of a connection */
  run->left--;
  return drawn;
}

/* Deals with a whole frame. False: the connection is over. */
static bool pass_frame(script *run, connection *pipe, flow *way, const uint8_t *data, size_t size) {
  double now = lp_now_ms();
  fault drawn = draw_fault(run, pipe, way);
  run->count[drawn]++;
  way->passed++;
  switch (drawn) {
  case DROP:
    return true;
  case DELAY:
    push(way, data, size, now + 1 + below(run, 30));
    return true;
  case LATER: /* later ones overtake it */
    push(way, data, size, -(now + 1 + below(run, 30)));
    return true;
  case TWICE:
    push(way, data, size, now);
    push(way, data, size, now);
    return true;
  case TRUNCATE:
    (void)write_all(way->to, data, 1 + (size_t)below(run, (int)size - 1));
    return false;
  case CUT:
    return false;
  case SWALLOW:
    pipe->swallows = true;
    return true;
  case KILL_WORKER:
    push(way, data, size, now);
    kill_child(&run->worker);
    run->worker_at_ms = now + below(run, 20);
    return true;
  case KILL_DEVICE:
    kill_child(&run->device);
    return false;
  case HOLD:
    run->held_until_ms = now + 4 * idle_ms;
    break;
  case DELIVER:
  case FAULTS:
    break;
  }
  push(way, data, size, now);
  return true;
}

static bool take_bytes(script *run, connection *pipe, flow *way) {
  uint8_t chunk[16384];
  ssize_t got = recv(way->from, chunk, sizeof(chunk), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  if (pipe->swallows) return true;
  way->buffer = lp_realloc(way->buffer, way->have + (size_t)got);
  memcpy(way->buffer + way->have, chunk, (size_t)got);
  way->have += (size_t)got;
  size_t at = 0;
  while (way->have - at >= HEAD) {
    uint64_t length = 0;
    memcpy(&length, way->buffer + at, sizeof length); /* little endian, as the machines these tests run on */
    if (way->have - at < HEAD + length) break;
    if (!pass_frame(run, pipe, way, way->buffer + at, HEAD + (size_t)length)) return false;
    at += HEAD + (size_t)length;
  }
  memmove(way->buffer, way->buffer + at, way->have - at);
  way->have -= at;
  return true;
}

/* Delivers frames in order, except those that are marked to come later (due below 0). */
static bool give_frames(script *run, flow *way) {
  double now = lp_now_ms();
  if (now < run->held_until_ms) return true;
  for (int i = 0; i < way->waiting;) {
    frame *next = &way->queue[i];
    bool late = next->due_ms < 0, due = (late ? -next->due_ms : next->due_ms) <= now;
    if (!due && !late) return true;
    if (!due) {
      i++;
      continue;
    }
    bool good = write_all(way->to, next->data, next->size);
    free(next->data);
    memmove(next, next + 1, (size_t)(way->waiting - i - 1) * sizeof *next);
    way->waiting--;
    if (!good) return false;
  }
  return true;
}

static void serve_network(script *run) {
  struct pollfd wait[1 + 2 * MOST_PIPES];
  wait[0] = (struct pollfd){.fd = run->listener, .events = POLLIN};
  for (int i = 0; i < 2 * MOST_PIPES; i++)
    wait[1 + i] =
        (struct pollfd){.fd = run->pipe[i / 2].open ? run->pipe[i / 2].way[i % 2].from : -1, .events = POLLIN};
  (void)poll(wait, LP_COUNT(wait), 1);
  for (int i = 0; i < MOST_PIPES; i++) {
    connection *pipe = &run->pipe[i];
    bool good = true;
    for (int k = 0; pipe->open && good && k < 2; k++) {
      if (wait[1 + 2 * i + k].revents != 0) good = take_bytes(run, pipe, &pipe->way[k]);
      if (good) good = give_frames(run, &pipe->way[k]);
    }
    if (!good) close_pipe(pipe);
  }
  if ((wait[0].revents & POLLIN) != 0) take_connection(run);
}

/* ---- scripts ----------------------------------------------------------------------------------------------------- */

/* Checks the children, and restarts those that the script has killed. NULL: no failure. */
static const char *tend_processes(script *run, bool *done) {
  int status = 0;
  if (run->worker_at_ms > 0 && lp_now_ms() >= run->worker_at_ms) start_worker(run);
  if (run->worker > 0 && waitpid(run->worker, &status, WNOHANG) == run->worker) {
    run->worker = 0;
    return "the worker ended by itself";
  }
  if (run->device == 0) {
    if (__atomic_load_n(&run->out->made, __ATOMIC_ACQUIRE) < MADE) start_device(run);
    *done = run->device == 0;
    return NULL;
  }
  if (waitpid(run->device, &status, WNOHANG) != run->device) return NULL;
  run->device = 0;
  *done = true;
  if (WIFSIGNALED(status)) return "the device crashed";
  return WEXITSTATUS(status) == 0 ? NULL : "the device failed";
}

static const char *compare(const script *run, const output *want) {
  if (run->out->made != MADE) return run->out->made < MADE ? "a token was lost" : "a token was doubled";
  if (run->exact && memcmp(run->out->token, want->token, sizeof want->token) != 0) return "a token was changed";
  return NULL;
}

static void draw_script(script *run, uint64_t seed, lp_bundle *const *bundles, char *file) {
  run->seed = seed;
  int bundle = below(run, BUNDLES);
  run->bundle = bundles[bundle];
  run->streams = bundle >= APART;
  run->ahead = 1 + below(run, MADE);
  run->prompt = below(run, TOY_BATCH);
  run->sampling = (lp_sampling){.top_p = 1};
  if (below(run, 3) == 0) run->sampling = (lp_sampling){.temperature = 0.9, .top_k = 20, .top_p = 0.95, .seed = seed};
  run->exact = run->streams || below(run, 5) != 0;
  run->likely = 0.02 + 0.3 * uniform(run) * uniform(run);
  run->left = below(run, MOST_FAULTS + 1);
  run->file = below(run, 2) == 0 ? file : NULL;
  (void)unlink(file);
}

static const char *run_script(script *run) {
  output want = {0};
  const char *problem = generate(run, NULL, &want, NULL) == LP_OK ? NULL : "it fails without a fault";
  double left = hang_ms, now = lp_now_ms();
  bool done = false;
  if (!problem) {
    start_worker(run);
    start_device(run);
  }
  while (!problem && !done) {
    serve_network(run);
    problem = tend_processes(run, &done);
    /* A machine that suspends all processes for a while does not count as a hang. */
    double before = now;
    now = lp_now_ms();
    left -= now - before < most_step_ms ? now - before : most_step_ms;
    if (left < 0) problem = "it hangs";
  }
  if (!problem) problem = compare(run, &want);
  kill_child(&run->device);
  kill_child(&run->worker);
  for (int i = 0; i < MOST_PIPES; i++)
    close_pipe(&run->pipe[i]);
  return problem;
}

static int listen_here(int *port) {
  struct sockaddr_in here = {.sin_family = AF_INET};
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(here);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&here, size) != 0 || listen(fd, 64) != 0 ||
      getsockname(fd, (struct sockaddr *)&here, &size) != 0)
    abort();
  *port = ntohs(here.sin_port);
  return fd;
}

static void print_faults(const script *run) {
  for (int i = 1; i < FAULTS; i++)
    if (run->count[i] > 0) fprintf(stderr, "  %s: %d\n", fault_name[i], run->count[i]);
}

/* The scripts of one of the jobs; returns how many failed. Faults that came about are added to `count`. */
static int run_scripts(lp_bundle *const *bundles, char *file, uint64_t first, uint64_t end, uint64_t step,
                       int64_t *count) {
  int failed = 0, port = 0, listener = listen_here(&port);
  output *out = mmap(NULL, sizeof *out, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  script *run = lp_alloc(sizeof *run);
  for (uint64_t seed = first; seed < end; seed += step) {
    memset(run, 0, sizeof *run);
    memset(out, 0, sizeof *out);
    run->listener = listener;
    run->port = port;
    run->out = out;
    draw_script(run, seed, bundles, file);
    const char *problem = run_script(run);
    for (int i = 0; i < FAULTS; i++)
      __atomic_add_fetch(&count[i], run->count[i], __ATOMIC_RELAXED);
    if (!problem) continue;
    failed++;
    fprintf(stderr, "faults: seed %" PRIu64 ": %s behind %d tokens (faults 1 %" PRIu64 " 1)\n", seed, problem,
            (int)out->made, seed);
    print_faults(run);
  }
  free(run);
  munmap(out, sizeof *out);
  close(listener);
  return failed > 100 ? 100 : failed;
}

int main(int argc, char **argv) {
  uint64_t scripts = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000, first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  int jobs = argc > 3 ? atoi(argv[3]) : 8, failed = 0, status = 0;
  char *dir = toy_dir_create();
  lp_bundle *bundles[BUNDLES];
  int64_t *count = mmap(NULL, FAULTS * sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < BUNDLES; i++) {
    char name[8];
    snprintf(name, sizeof name, "%d", i);
    char *path = toy_bundle_write(dir, name, &placements[i]);
    bundles[i] = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
    free(path);
  }
  script warm_up = {.bundle = bundles[0], .sampling = {.top_p = 1}}; /* ends what the loader does on threads */
  for (int i = 0; i < BUNDLES; i++) {
    output ignored = {0};
    warm_up.bundle = bundles[i];
    if (generate(&warm_up, NULL, &ignored, NULL) != LP_OK) abort();
  }
  for (int job = 0; job < jobs; job++) {
    pid_t child = fork();
    if (child < 0) abort();
    if (child > 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char name[32];
    snprintf(name, sizeof name, "%d.session", job);
    _exit(run_scripts(bundles, lp_path_join(dir, name), first + (uint64_t)job, first + scripts, (uint64_t)jobs, count));
  }
  while (wait(&status) > 0)
    failed += WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  printf("%" PRIu64 " scripts from seed %" PRIu64 ", %d failed;", scripts, first, failed);
  for (int i = 1; i < FAULTS; i++)
    printf(" %s %" PRId64, fault_name[i], count[i]);
  printf("\n");
  for (int i = 0; i < BUNDLES; i++)
    lp_bundle_free(bundles[i]);
  toy_dir_remove(dir);
  return failed != 0;
}
