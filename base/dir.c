/* Directories that appear whole: they are built in the same parent and then exchanged with the old one. After a process
 * was killed, the next one that builds the same directory removes its remains. */
#include "base/dir.h"
#include "base/base.h"
#include "base/claim.h"
#include "base/path.h"
#include "base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `path` without slashes at its end. */
static char *trimmed(const char *path) {
  char *out = lp_strdup(path);
  for (size_t n = strlen(out); n > 1 && out[n - 1] == '/'; n--)
    out[n - 1] = 0;
  return out;
}

/* The name of a temporary directory in the parent of `path`, without its random letters. */
static void name_sibling(const char *path, const char *kind, lp_buf *out) {
  char *dir = lp_path_dir(path);
  lp_buf_printf(out, "%s/.%s.%s-", dir, lp_path_base(path), kind);
  free(dir);
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
  lp_buf left = {0};
  name_sibling(path, "temporary", &left);
  char *dir = lp_path_dir(path), *made = NULL;
  lp_claim_remove_left(dir, lp_path_base(left.data));
  while ((made = make_sibling(path, "temporary")) && !lp_claim(made)) {
    lp_temporary_forget(made); /* Another process took it for abandoned and removed it. */
    free(made);
  }
  lp_buf_free(&left);
  free(dir);
  return made;
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

lp_status lp_dir_begin(const char *path, char **temporary, lp_diag *diag) {
  *temporary = NULL;
  lp_loc loc = LP_LOC_FILE(path);
  char *place = trimmed(path);
  const char *name = lp_path_base(place);
  struct stat info;
  lp_status status = LP_OK;
  if (!*name || lp_streq(name, ".") || lp_streq(name, "..")) {
    status = lp_error(diag, loc, "cannot be replaced by a new directory: it has no name of its own");
  } else if (lstat(place, &info) == 0 && !S_ISDIR(info.st_mode)) {
    status = lp_error(diag, loc, "cannot be replaced by a directory: it is not one");
  } else if (!(*temporary = begin_sibling(place))) {
    status = lp_error(diag, loc, "cannot create a directory: %s", strerror(errno));
  }
  free(place);
  return status;
}

void lp_dir_abandon(const char *temporary) {
  if (!temporary) return;
  lp_remove_tree(temporary);
  lp_temporary_forget(temporary);
  lp_claim_end(temporary);
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
    lp_claim_end(temporary);
    return LP_OK;
  }
  lp_status status = lp_error(diag, LP_LOC_FILE(path), "cannot replace the directory: %s", strerror(errno));
  lp_dir_abandon(temporary);
  return status;
}
