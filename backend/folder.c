/* Writes a folder of results as a whole, or not at all. */
#include "backend/folder.h"

#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

static bool is_empty_or_absent(const char *path) {
  DIR *dir = opendir(path);
  if (!dir) return errno == ENOENT || errno == ENOTDIR; /* lp_dir_begin refuses a file */
  const struct dirent *entry;
  do
    entry = readdir(dir);
  while (entry && (lp_streq(entry->d_name, ".") || lp_streq(entry->d_name, "..")));
  closedir(dir);
  return !entry;
}

lp_status lp_bundle_check_path(const char *path, lp_diag *diag) {
  char *manifest = lp_path_join(path, "manifest.json");
  bool is_bundle = lp_path_exists(manifest);
  free(manifest);
  if (is_bundle || is_empty_or_absent(path)) return LP_OK;
  lp_status status = lp_error(diag, LP_LOC_FILE(path), "is there and is no bundle: it will not be replaced");
  lp_note(diag, LP_LOC_FILE(path), "a bundle takes the place of another one, of an empty directory or of nothing");
  return status;
}

lp_status lp_folder_write(const char *path, lp_folder_filler *fill, void *user, lp_diag *diag) {
  char *folder;
  LP_TRY(lp_bundle_check_path(path, diag));
  LP_TRY(lp_dir_begin(path, &folder, diag));
  lp_status status = fill(user, folder, diag);
  if (status == LP_OK)
    status = lp_dir_commit(folder, path, diag);
  else
    lp_dir_abandon(folder);
  free(folder);
  return status;
}

lp_status lp_folder_put(const char *folder, const char *name, const void *data, size_t size, lp_diag *diag) {
  char *path = lp_path_join(folder, name);
  lp_status status = lp_file_write(path, data, size, diag);
  free(path);
  return status;
}
