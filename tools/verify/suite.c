/* llmpart verify --suite: every folder that holds a model is a test. Each test runs in its own process, so that a crash
 * or a hang does not affect the others. A child writes its result to a file; the parent only waits. */
#include "base/clock.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "tools/verify/verify.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_DEPTH = 16, MAX_LOG = 400 };

/* A running test: a slot of the pool. */
typedef struct {
  pid_t pid; /* 0: free */
  size_t test;
  double deadline_ms;
  bool late;
  char *folder; /* its temporary files */
} job;

typedef struct {
  const lp_verify_options *options;
  lp_texts names;           /* of tests, below the suite's folder, ascending */
  lp_verify_result *result; /* [names.count] */
  job *jobs;
  size_t job_count, started, finished, failed;
  char *temporary;
} suite;

/* ---- finding tests ----------------------------------------------------------------------------------------------- */

static int compare_texts(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_wanted(const suite *s, const char *name) {
  const char *glob = s->options->tests;
  return !glob || fnmatch(glob, name, 0) == 0 || fnmatch(glob, lp_path_base(name), 0) == 0;
}

/* Tells whether the path is a folder and not a link, because links could form cycles. */
static bool is_folder(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* BELOW/model.onnx in the suite makes BELOW a test; other folders are searched. */
static lp_status find_tests(suite *s, const char *below, int depth, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *dir = below[0] ? lp_path_join(s->options->suite, below) : lp_strdup(s->options->suite);
  LP_OWNED(lp_free_at) char *model = lp_path_join(dir, "model.onnx");
  bool is_test = below[0] && lp_path_exists(model);
  lp_status status = LP_OK;
  if (is_test && is_wanted(s, below)) lp_vec_push(&s->names, lp_strdup(below));
  DIR *opened = is_test ? NULL : opendir(dir);
  if (!is_test && !opened) status = lp_error(diag, LP_LOC_FILE(dir), "cannot be read as a folder of tests");
  for (struct dirent *entry; opened && status == LP_OK && (entry = readdir(opened));) {
    LP_OWNED(lp_free_at) char *path = lp_path_join(dir, entry->d_name);
    LP_OWNED(lp_free_at) char *name = below[0] ? lp_path_join(below, entry->d_name) : lp_strdup(entry->d_name);
    if (entry->d_name[0] != '.' && depth < MAX_DEPTH && is_folder(path)) status = find_tests(s, name, depth + 1, diag);
  }
  if (opened) (void)closedir(opened);
  return status;
}

/* ---- one test, in the child -------------------------------------------------------------------------------------- */

/* A test with several data sets passes when all of them do; otherwise its reason is that of the first failure. */
static lp_verify_result sum_up(const lp_verify_results *results) {
  for (size_t i = 0; i < results->count; i++)
    if (results->data[i].status != LP_VERIFY_PASSED) return results->data[i];
  return results->count ? results->data[0] : (lp_verify_result){.status = LP_VERIFY_PASSED};
}

/* The status as a digit, the bound inputs, a line feed, the reason. */
static lp_status write_result(const char *folder, const lp_verify_result *result, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_buf_printf(&text, "%d%s\n%s", (int)result->status, result->bound ? result->bound : "",
                result->reason ? result->reason : "");
  LP_OWNED(lp_free_at) char *path = lp_path_join(folder, "result");
  return lp_file_write(path, lp_buf_text(&text), text.size, diag);
}

static void run_test(const suite *s, const char *name, const char *folder) {
  lp_diag *diag = lp_diag_create();
  lp_verify_results results = {0};
  char *dir = lp_path_join(s->options->suite, name), *model = lp_path_join(dir, "model.onnx");
  lp_status status = lp_verify_model(model, dir, folder, s->options, &results, diag);
  lp_verify_result result = sum_up(&results);
  char *refusal = status == LP_OK ? NULL : lp_verify_first_error(diag, 0);
  if (refusal) result = (lp_verify_result){.status = LP_VERIFY_UNSUPPORTED, .reason = refusal};
  status = write_result(folder, &result, diag);
  free(refusal);
  lp_verify_results_free(&results);
  free(model);
  free(dir);
  lp_diag_free(diag);
  _exit(status == LP_OK ? 0 : 1);
}

/* Redirects the child's output, such as a failed assertion, to a file, because it explains a crash. */
static void redirect_output(const char *folder) {
  char *path = lp_path_join(folder, "log");
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd >= 0) {
    (void)dup2(fd, STDOUT_FILENO);
    (void)dup2(fd, STDERR_FILENO);
    (void)close(fd);
  }
  free(path);
  const struct rlimit none = {0, 0};
  (void)setrlimit(RLIMIT_CORE, &none);
}

/* ---- the pool ---------------------------------------------------------------------------------------------------- */

static lp_status start_test(suite *s, job *slot, lp_diag *diag) {
  slot->test = s->started++;
  slot->late = false;
  slot->deadline_ms = lp_now_ms() + s->options->time_limit_ms;
  char number[24];
  (void)snprintf(number, sizeof number, "%zu", slot->test);
  slot->folder = lp_path_join(s->temporary, number);
  if (mkdir(slot->folder, 0700) != 0)
    return lp_error(diag, LP_LOC_FILE(slot->folder), "cannot create a temporary folder");
  slot->pid = fork();
  if (slot->pid < 0) {
    slot->pid = 0;
    return lp_error(diag, LP_LOC_NONE, "cannot start a process for test '%s'", s->names.data[slot->test]);
  }
  if (slot->pid == 0) {
    redirect_output(slot->folder);
    run_test(s, s->names.data[slot->test], slot->folder);
  }
  return LP_OK;
}

/* Writes the first line that a crashed child printed, such as an assertion's. */
static void put_log(const char *folder, lp_buf *out) {
  LP_OWNED(lp_free_at) char *path = lp_path_join(folder, "log"), *text = NULL;
  size_t size = 0;
  if (lp_file_read(path, &text, &size, NULL) == LP_OK) {
    size_t length = strcspn(text, "\n");
    if (length > 0) lp_buf_printf(out, ": %.*s", (int)(length < MAX_LOG ? length : MAX_LOG), text);
  }
}

/* The reason why a child left no result; NULL when it left one. Release with free(). */
static char *why_none(const suite *s, const job *slot, int wait_status) {
  lp_buf why = {0};
  if (slot->late) {
    lp_buf_printf(&why, "no result after %g s", s->options->time_limit_ms / 1000);
  } else if (WIFSIGNALED(wait_status)) {
    lp_buf_printf(&why, "crashed: %s", strsignal(WTERMSIG(wait_status)));
    put_log(slot->folder, &why);
  } else if (WEXITSTATUS(wait_status) != 0) {
    lp_buf_printf(&why, "ended with status %d", WEXITSTATUS(wait_status));
    put_log(slot->folder, &why);
  }
  return why.data;
}

static void read_result(const suite *s, const job *slot, int wait_status, lp_verify_result *out) {
  char *path = lp_path_join(slot->folder, "result"), *text = NULL, *why = why_none(s, slot, wait_status);
  size_t size = 0;
  char *line = !why && lp_file_read(path, &text, &size, NULL) == LP_OK ? strchr(text, '\n') : NULL;
  out->max_error = -1; /* the child does not report it */
  if (line) {
    *line = '\0';
    out->status = (lp_verify_status)(text[0] - '0');
    out->bound = text[1] ? lp_strdup(text + 1) : NULL;
    out->reason = line[1] ? lp_strdup(line + 1) : NULL;
  } else {
    out->status = LP_VERIFY_FAILED;
    out->reason = why ? why : lp_strdup("ended without a result");
  }
  free(text);
  free(path);
}

/* Collects the children that have ended, and kills those that exceed the time limit. */
static void reap(suite *s) {
  LP_FOR_EACH(job, slot, s->jobs, s->job_count) {
    int wait_status = 0;
    if (slot->pid == 0) continue;
    if (!slot->late && lp_now_ms() > slot->deadline_ms) {
      slot->late = true;
      (void)kill(slot->pid, SIGKILL);
    }
    if (waitpid(slot->pid, &wait_status, WNOHANG) != slot->pid) continue;
    read_result(s, slot, wait_status, &s->result[slot->test]);
    s->failed += s->result[slot->test].status == LP_VERIFY_FAILED;
    s->finished++;
    slot->pid = 0;
    lp_dir_abandon(slot->folder);
    free(slot->folder);
    slot->folder = NULL;
  }
}

static void show_progress(const suite *s) {
  enum { WIDTH = 40 };
  int filled = (int)(s->finished * WIDTH / s->names.count);
  fprintf(stderr, "\r[%.*s%*s] %zu/%zu, %zu failed", filled, "########################################", WIDTH - filled,
          "", s->finished, s->names.count, s->failed);
  if (s->finished == s->names.count) fprintf(stderr, "\n");
}

static lp_status run_all(suite *s, lp_diag *diag) {
  const struct timespec pause = {.tv_nsec = 5000000};
  lp_status status = LP_OK;
  while (s->finished < s->started || (s->started < s->names.count && status == LP_OK)) {
    for (size_t i = 0; i < s->job_count && s->started < s->names.count && status == LP_OK; i++)
      if (s->jobs[i].pid == 0) status = start_test(s, &s->jobs[i], diag);
    size_t before = s->finished;
    reap(s);
    if (s->options->shows_progress && s->finished != before) show_progress(s);
    if (s->finished == before) (void)nanosleep(&pause, NULL);
  }
  return status;
}

static void release(suite *s) {
  if (s->temporary) lp_dir_abandon(s->temporary);
  free(s->temporary);
  for (size_t i = 0; i < s->job_count && s->jobs; i++)
    free(s->jobs[i].folder);
  free(s->jobs);
  for (size_t i = 0; i < s->names.count; i++) {
    free((void *)(uintptr_t)s->names.data[i]);
    if (s->result) free(s->result[i].reason);
    if (s->result) free(s->result[i].bound);
  }
  free(s->result);
  lp_vec_free(&s->names);
}

lp_status lp_verify_suite(const lp_verify_options *options, lp_verify_results *results, lp_diag *diag) {
  suite s = {.options = options, .job_count = (size_t)options->jobs};
  if (s.job_count == 0) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    s.job_count = cores > 0 ? (size_t)cores : 1;
  }
  lp_status status = find_tests(&s, "", 0, diag);
  if (status == LP_OK && s.names.count == 0)
    status = lp_error(diag, LP_LOC_FILE(options->suite), "holds no test%s%s: folders with a model.onnx",
                      options->tests ? " of the name " : "", options->tests ? options->tests : "");
  if (status == LP_OK) {
    qsort(s.names.data, s.names.count, sizeof *s.names.data, compare_texts);
    s.result = lp_alloc(s.names.count * sizeof *s.result);
    s.jobs = lp_alloc(s.job_count * sizeof *s.jobs);
    for (size_t i = 0; i < s.names.count; i++)
      s.result[i].name = (char *)(uintptr_t)s.names.data[i];
    status = lp_dir_temporary("llmpart-verify", &s.temporary, diag);
  }
  if (status == LP_OK) status = run_all(&s, diag);
  for (size_t i = 0; i < s.finished && status == LP_OK; i++)
    lp_verify_add(results, &s.result[i]);
  release(&s);
  return status;
}
