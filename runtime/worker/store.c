/* Contexts on disk. The oldest files are removed when the folder exceeds its size. */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exits/context.h"
#include "runtime/exits/context_file.h"
#include "runtime/worker/store.h"

static const int64_t usual_bytes = INT64_C(4) << 30;
static const char ending[] = ".context";

/* Workers of several places may share the folder, and a context has one number at all of them. */
static char *path_of(const lp_worker *worker, uint64_t id) {
  LP_OWNED(lp_buf_free) lp_buf name = {0};
  lp_buf_printf(&name, "%016" PRIx64, id);
  if (worker->halves.links > 1) lp_buf_printf(&name, ".%s", worker->bundle->manifest.place_name[worker->place]);
  lp_buf_puts(&name, ending);
  return lp_path_join(worker->options->context_dir, lp_buf_text(&name));
}

static int64_t most_bytes(const lp_worker *worker) {
  return worker->options->context_dir_bytes > 0 ? worker->options->context_dir_bytes : usual_bytes;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

typedef struct {
  char *path;
  int64_t bytes;
  struct timespec written;
} stored;

typedef LP_VEC(stored) stored_files;

static int by_age(const void *a, const void *b) {
  const struct timespec *x = &((const stored *)a)->written, *y = &((const stored *)b)->written;
  if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
  return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Lists the files of contexts, and removes those that a killed worker left incomplete. */
static void list(const char *dir, stored_files *out) {
  DIR *folder = opendir(dir);
  if (!folder) return;
  for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
    struct stat info;
    char *path = lp_path_join(dir, entry->d_name);
    if (lp_has_suffix(path, ".context.new")) (void)unlink(path);
    if (lp_has_suffix(path, ending) && lstat(path, &info) == 0 && S_ISREG(info.st_mode)) {
      stored file = {.path = path, .bytes = info.st_size, .written = info.st_mtim};
      lp_vec_push(out, file);
    } else {
      free(path);
    }
  }
  closedir(folder);
}

/* Removes the oldest files until no more than `most` bytes are left. */
static void shrink(const lp_worker *worker, int64_t most) {
  LP_OWNED(lp_free_at) stored_files files = {0};
  int64_t total = 0;
  list(worker->options->context_dir, &files);
  if (files.count > 1) qsort(files.data, files.count, sizeof *files.data, by_age);
  for (size_t i = 0; i < files.count; i++)
    total += files.data[i].bytes;
  for (size_t i = 0; i < files.count; i++) {
    if (total > most && unlink(files.data[i].path) == 0) total -= files.data[i].bytes;
    free(files.data[i].path);
  }
}

lp_status worker_store_open(const lp_worker *worker, lp_diag *diag) {
  const char *dir = worker->options->context_dir;
  struct stat info;
  if (!dir) return LP_OK;
  lp_loc loc = LP_LOC_FILE(dir);
  if (mkdir(dir, 0700) != 0 && errno != EEXIST)
    return lp_error(diag, loc, "cannot make the folder: %s", strerror(errno));
  if (stat(dir, &info) != 0 || !S_ISDIR(info.st_mode)) return lp_error(diag, loc, "is no folder");
  if (access(dir, R_OK | W_OK | X_OK) != 0) return lp_error(diag, loc, "cannot write there: %s", strerror(errno));
  shrink(worker, most_bytes(worker));
  return LP_OK;
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

bool worker_store_save(lp_worker *worker, const worker_context *context) {
  if (!worker->options->context_dir || context->context->held == 0) return false;
  size_t bytes = lp_context_file_bytes(context->context);
  int64_t most = most_bytes(worker);
  if (bytes > (size_t)most) return false;
  shrink(worker, most - (int64_t)bytes);
  lp_context_record record = {.id = context->id, .answered = context->answered, .answer = context->answer, .asked = -1};
  if (context->question.waits) record.asked = context->question.end - context->question.count - 1;
  LP_OWNED(lp_free_at) char *path = path_of(worker, context->id);
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  bool good = lp_context_save(context->context, &record, path, diag) == LP_OK;
  const lp_diag_entry *entry = lp_diag_get(diag, 0);
  if (!good) lp_warning(worker->diag, LP_LOC_FILE(path), "%s: a context is given up", entry ? entry->text : "");
  return good;
}

bool worker_store_restore(lp_worker *worker, uint64_t id, int64_t most, lp_context_record *record, lp_context **out) {
  if (!worker->options->context_dir || worker->whole) return false;
  LP_OWNED(lp_free_at) char *path = path_of(worker, id);
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  bool found = lp_path_exists(path);
  if (found &&
      lp_context_restore(&worker->halves, worker->link, worker->pool, path, most, record, out, diag) != LP_OK) {
    const lp_diag_entry *entry = lp_diag_get(diag, 0);
    lp_warning(worker->diag, LP_LOC_FILE(path), "%s: it is discarded", entry ? entry->text : "no context");
    (void)unlink(path);
    found = false;
  }
  if (found && record->id != id) {
    lp_context_free(*out);
    found = false;
  }
  return found;
}

void worker_store_forget(const lp_worker *worker, uint64_t id) {
  if (!worker->options->context_dir) return;
  LP_OWNED(lp_free_at) char *path = path_of(worker, id);
  (void)unlink(path);
}
