/* Directories that appear whole: they are built in the same parent and then exchanged with the old one. After a process
 * was killed, the next one that builds the same directory removes its remains. */
#include "base/dir.h"
#include "base/base.h"
#include "base/path.h"
#include "base/temporary.h"
#include "base/units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- claims ------------------------------------------------------------------------------------------------------ */

/* A claim is an flock() on the folder. A killed process loses it, so that its folder differs from those in use. */

typedef struct {
  char *folder;
  int fd;
} claim;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LP_VEC(claim) claims;

static int open_folder(const char *folder) {
  return open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A process locks a folder to remove it: once this process has the lock, the folder is gone or stays. */
static bool is_still_there(const char *folder, int fd) {
  struct stat opened, found;
  return fstat(fd, &opened) == 0 && lstat(folder, &found) == 0 && opened.st_dev == found.st_dev &&
         opened.st_ino == found.st_ino;
}

static void note_claim(const char *folder, int fd) {
  pthread_mutex_lock(&lock);
  lp_vec_push(&claims, ((claim){lp_strdup(folder), fd}));
  pthread_mutex_unlock(&lock);
}

/* Claims `folder` for this process, by a lock that ends with the process. False: another process is removing the
 * folder. On a file system without locks nothing is claimed and no folder counts as left. */
static bool claim_folder(const char *folder) {
  int fd = open_folder(folder);
  if (fd < 0) return errno != ENOENT;
  bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
  if ((!locked && errno == EWOULDBLOCK) || !is_still_there(folder, fd)) {
    close(fd);
    return false;
  }
  if (locked)
    note_claim(folder, fd);
  else
    close(fd);
  return true;
}

static void end_claim(const char *folder) {
  pthread_mutex_lock(&lock);
  for (size_t i = claims.count; i-- > 0;) {
    if (!lp_streq(claims.data[i].folder, folder)) continue;
    close(claims.data[i].fd);
    free(claims.data[i].folder);
    claims.data[i] = claims.data[--claims.count];
    break;
  }
  if (claims.count == 0) lp_vec_free(&claims);
  pthread_mutex_unlock(&lock);
}

/* Locks a folder that no running process has claimed; -1: one has, or the folder is gone. */
static int lock_left(const char *folder) {
  int fd = open_folder(folder);
  if (fd < 0 || (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_still_there(folder, fd))) return fd;
  close(fd);
  return -1;
}

/* Removes the folders `dir`/`prefix`XXXXXX (lp_temporary_folder) that no running process has claimed, or with `claimed`
 * claims the first of them. Errors are ignored. */
static void find_left(const char *dir, const char *prefix, char **claimed) {
  DIR *listing = opendir(dir);
  size_t length = strlen(prefix) + LP_TEMPORARY_LETTERS;
  for (struct dirent *entry; listing && !(claimed && *claimed) && (entry = readdir(listing));) {
    if (strlen(entry->d_name) != length || !lp_has_prefix(entry->d_name, prefix)) continue;
    LP_OWNED(lp_free_at) char *folder = lp_path_join(dir, entry->d_name);
    int fd = lock_left(folder);
    if (fd >= 0 && claimed) {
      note_claim(folder, fd);
      lp_temporary_note(folder);
      *claimed = lp_strdup(folder);
    } else if (fd >= 0) {
      lp_remove_tree(folder);
      close(fd);
    }
  }
  if (listing) (void)closedir(listing);
}

/* `path` without slashes at its end. */
static char *trimmed(const char *path) {
  char *out = lp_strdup(path);
  for (size_t n = strlen(out); n > 1 && out[n - 1] == '/'; n--)
    out[n - 1] = 0;
  return out;
}

/* The name of a temporary directory in the parent of `path`, without its random letters. */
static void name_sibling(const char *path, const char *kind, lp_buf *out) {
  LP_OWNED(lp_free_at) char *dir = lp_path_dir(path);
  lp_buf_printf(out, "%s/.%s.%s-", dir, lp_path_base(path), kind);
}

/* Makes a fresh empty directory in the parent of `path`; NULL, with errno, on failure. */
static char *make_sibling(const char *path, const char *kind) {
  lp_buf name = {0};
  name_sibling(path, kind, &name);
  lp_buf_puts(&name, "XXXXXX");
  if (lp_temporary_folder(name.data) == 0) return name.data;
  lp_buf_free(&name);
  return NULL;
}

static char *begin_sibling(const char *path) {
  LP_OWNED(lp_buf_free) lp_buf left = {0};
  name_sibling(path, "temporary", &left);
  char *dir = lp_path_dir(path), *made = NULL;
  find_left(dir, lp_path_base(left.data), NULL);
  while ((made = make_sibling(path, "temporary")) && !claim_folder(made)) {
    lp_temporary_forget(made); /* Another process took it for abandoned and removed it. */
    free(made);
  }
  free(dir);
  return made;
}

char *lp_dir_claim_left(const char *path) {
  LP_OWNED(lp_buf_free) lp_buf prefix = {0};
  char *place = trimmed(path), *dir = lp_path_dir(place), *claimed = NULL;
  name_sibling(place, "temporary", &prefix);
  find_left(dir, lp_path_base(prefix.data), &claimed);
  free(dir);
  free(place);
  return claimed;
}

lp_status lp_dir_temporary(const char *prefix, char **temporary, lp_diag *diag) {
  const char *root = getenv("TMPDIR");
  lp_buf name = {0};
  lp_buf_printf(&name, "%s/%s-XXXXXX", root && root[0] ? root : "/tmp", prefix);
  *temporary = lp_temporary_private_folder(name.data) == 0 ? name.data : NULL;
  if (*temporary) return LP_OK;
  lp_status status = lp_error(diag, LP_LOC_FILE(name.data), "cannot make a temporary folder: %s", strerror(errno));
  lp_buf_free(&name);
  return status;
}

bool lp_dir_is_vacant(const char *path) {
  DIR *dir = opendir(path);
  if (!dir) return errno == ENOENT || errno == ENOTDIR;
  const struct dirent *entry;
  do
    entry = readdir(dir);
  while (entry && (lp_streq(entry->d_name, ".") || lp_streq(entry->d_name, "..")));
  closedir(dir);
  return !entry;
}

lp_status lp_dir_begin(const char *path, char **temporary, lp_diag *diag) {
  *temporary = NULL;
  lp_loc loc = LP_LOC_FILE(path);
  LP_OWNED(lp_free_at) char *place = trimmed(path);
  const char *name = lp_path_base(place);
  struct stat info;
  lp_status status = LP_OK;
  if (!*name || lp_streq(name, ".") || lp_streq(name, ".."))
    status = lp_error(diag, loc, "cannot be replaced by a new directory: it has no name of its own");
  else if (lstat(place, &info) == 0 && !S_ISDIR(info.st_mode))
    status = lp_error(diag, loc, "cannot be replaced by a directory: it is not one");
  else if (!(*temporary = begin_sibling(place)))
    status = lp_error(diag, loc, "cannot create a directory: %s", strerror(errno));
  return status;
}

void lp_dir_abandon(const char *temporary) {
  if (!temporary) return;
  lp_remove_tree(temporary);
  lp_temporary_forget(temporary);
  end_claim(temporary);
}

/* For file systems that cannot exchange two directories: renames the old one first, and back again when the new one
 * cannot take its place. */
static int swap_in_steps(const char *temporary, const char *place) {
  char *aside = make_sibling(place, "old");
  if (!aside) return -1;
  lp_temporary_forget(aside);        /* it may become the only copy */
  int result = rename(place, aside); /* replaces the empty directory */
  bool moved = result == 0;
  if (moved) result = rename(temporary, place);
  int problem = errno;
  bool restored = moved && result != 0 && rename(aside, place) == 0;
  if (!moved || result == 0 || restored) lp_dir_abandon(aside);
  free(aside);
  errno = problem;
  return result;
}

static int swap(const char *temporary, const char *place) {
  if (rename(temporary, place) == 0) return 0; /* nothing, or an empty directory, was there */
  if (errno != ENOTEMPTY && errno != EEXIST) return -1;
  if (renameat2(AT_FDCWD, temporary, AT_FDCWD, place, RENAME_EXCHANGE) == 0) {
    lp_temporary_note(temporary); /* it now holds the old content */
    lp_dir_abandon(temporary);
    return 0;
  }
  return errno == EINVAL || errno == ENOSYS ? swap_in_steps(temporary, place) : -1;
}

lp_status lp_dir_commit(const char *temporary, const char *path, lp_diag *diag) {
  char *place = trimmed(path);
  lp_temporary_forget(temporary);
  int result = swap(temporary, place);
  free(place);
  if (result == 0) {
    end_claim(temporary);
    return LP_OK;
  }
  lp_status status = lp_error(diag, LP_LOC_FILE(path), "cannot replace the directory: %s", strerror(errno));
  lp_dir_abandon(temporary);
  return status;
}

lp_status lp_dir_check_space(const char *path, uint64_t bytes, lp_diag *diag) {
  struct statvfs info;
  char want[32], have[32];
  if (statvfs(path, &info) != 0) return LP_OK;
  const double left = (double)info.f_bavail * (double)info.f_frsize;
  if ((double)bytes <= left) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(path), "%s of weights are to be written, and the file system has %s left",
                  lp_format_bytes((double)bytes, want), lp_format_bytes(left, have));
}
