/* Keeps compiled code in the user's cache folder. */
#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "runtime/gpu/nvrtc.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BYTES = 256 << 20, SUM_BYTES = 32 };
static const char ending[] = ".cubin";

/* ---- the folder -------------------------------------------------------------------------------------------------- */

/* mkdir -p, readable by the user only. */
static bool make_folder(char *path) {
  for (char *at = path + 1; *at != '\0'; at++)
    if (*at == '/') {
      *at = '\0';
      (void)mkdir(path, 0700);
      *at = '/';
    }
  (void)mkdir(path, 0700);
  return access(path, W_OK) == 0;
}

/* The folder for compiled code; NULL: the environment names none. Release with free(). */
static char *folder_path(void) {
  const char *root = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (root && root[0] == '/') return lp_path_join(root, "llmpart/cuda");
  if (home && home[0] == '/') return lp_path_join(home, ".cache/llmpart/cuda");
  return NULL;
}

static char *file_path(const char *folder, const lp_cache_key *key) {
  char name[sizeof key->hex + sizeof ending];
  snprintf(name, sizeof name, "%s%s", key->hex, ending);
  return lp_path_join(folder, name);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void sum_of(const char *data, size_t size, uint8_t out[SUM_BYTES]) {
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, data, size);
  lp_sha256_bytes(&sha, out);
}

bool lp_cache_read(const lp_cache_key *key, lp_buf *out) {
  char *folder = folder_path();
  if (!folder) return false;
  LP_OWNED(lp_free_at) char *path = file_path(folder, key), *data = NULL;
  size_t size = 0;
  uint8_t sum[SUM_BYTES];
  bool whole = lp_path_exists(path) && lp_file_read(path, &data, &size, NULL) == LP_OK && size > SUM_BYTES;
  if (whole) sum_of(data + SUM_BYTES, size - SUM_BYTES, sum);
  whole = whole && memcmp(data, sum, SUM_BYTES) == 0;
  if (whole) lp_buf_append(out, data + SUM_BYTES, size - SUM_BYTES);
  free(folder);
  return whole;
}

typedef struct {
  char *path;
  int64_t time, bytes;
} kept;

static int by_age(const void *a, const void *b) {
  const kept *x = a, *y = b;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  return strcmp(x->path, y->path);
}

/* Removes the oldest files until the rest fit. */
static void make_room(const char *folder) {
  LP_VEC(kept) files = {0};
  int64_t bytes = 0;
  DIR *all = opendir(folder);
  if (!all) return;
  for (const struct dirent *entry; (entry = readdir(all)) != NULL;) {
    struct stat facts;
    char *path = lp_path_join(folder, entry->d_name);
    if (lp_has_suffix(path, ending) && stat(path, &facts) == 0 && S_ISREG(facts.st_mode)) {
      lp_vec_push(&files, ((kept){path, (int64_t)facts.st_mtime, (int64_t)facts.st_size}));
      bytes += facts.st_size;
    } else {
      free(path);
    }
  }
  (void)closedir(all);
  if (files.count > 0) qsort(files.data, files.count, sizeof *files.data, by_age);
  for (size_t i = 0; i < files.count; i++) {
    if (bytes > MOST_BYTES && unlink(files.data[i].path) == 0) bytes -= files.data[i].bytes;
    free(files.data[i].path);
  }
  lp_vec_free(&files);
}

void lp_cache_write(const lp_cache_key *key, const lp_buf *code) {
  char *folder = folder_path();
  if (!folder) return;
  if (make_folder(folder)) {
    LP_OWNED(lp_free_at) char *path = file_path(folder, key);
    uint8_t sum[SUM_BYTES];
    LP_OWNED(lp_buf_free) lp_buf file = {0};
    sum_of(code->data, code->size, sum);
    lp_buf_append(&file, (const char *)sum, sizeof sum);
    lp_buf_append(&file, code->data, code->size);
    if (lp_file_write(path, file.data, file.size, NULL) == LP_OK) make_room(folder);
  }
  free(folder);
}
