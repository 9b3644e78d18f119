/* Writes a folder of results as a whole, or not at all. */
#include "backend/folder.h"

#include "base/dir.h"
#include "base/file.h"
#include "base/json/reader.h"
#include "base/map.h"
#include "base/path.h"

#include <dirent.h>

/* ---- folders that may be replaced -------------------------------------------------------------------------------- */

static bool is_dot(const char *name) {
  return lp_streq(name, ".") || lp_streq(name, "..");
}

/* The manifest of a folder that this compiler wrote; NULL for any other folder. */
static lp_json_document *read_own_manifest(const char *path) {
  LP_OWNED(lp_free_at) char *file = lp_path_join(path, "manifest.json");
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  lp_json_document *manifest = NULL;
  const char *schema = "";
  if (lp_json_load(file, 0, &manifest, quiet) == LP_OK) {
    lp_json root = lp_json_root(file, manifest), at = lp_json_member(&root, "schema");
    if (lp_json_text(&at, &schema, quiet) != LP_OK) schema = "";
  }
  if (strncmp(schema, "llmpart.", strlen("llmpart.")) != 0) {
    lp_json_free(manifest);
    manifest = NULL;
  }
  return manifest;
}

/* The names that the manifest lists: the keys of an object `files`, or the items of an array. */
static lp_map *own_files(const lp_json_document *manifest) {
  lp_map *names = lp_map_create();
  lp_json root = lp_json_root("manifest.json", manifest), files = lp_json_member(&root, "files");
  bool keyed = lp_json_is(&files, LP_JSON_OBJECT);
  lp_map_put(names, "manifest.json", names);
  lp_map_put(names, "manifest.sig", names);
  lp_map_put(names, "calibration.json", names); /* `llmpart calibrate` adds this file */
  for (size_t i = 0; i < lp_json_count(&files); i++) {
    lp_json item = keyed ? lp_json_entry(&files, i) : lp_json_item(&files, i);
    const char *name = keyed ? item.key : lp_json_is(&item, LP_JSON_TEXT) ? item.value->text : NULL;
    if (name) lp_map_put(names, name, names);
  }
  return names;
}

enum { FOREIGN_SHOWN = 5 };

typedef struct {
  const char *root;
  const lp_map *own;
  size_t count;
  lp_buf shown;
} foreign_files;

static void add_foreign(foreign_files *found, const char *name) {
  if (found->count++ < FOREIGN_SHOWN) lp_buf_printf(&found->shown, "%s'%s'", found->count > 1 ? ", " : "", name);
}

/* Looks through the folder root/under. An empty folder inside counts as a file, because a user made it. */
static void find_foreign(foreign_files *found, const char *under) {
  char *path = lp_path_join(found->root, under);
  DIR *dir = opendir(path);
  free(path);
  if (!dir) { /* a file, or a folder that cannot be read */
    if (!lp_map_has(found->own, under)) add_foreign(found, under);
    return;
  }
  bool empty = true;
  for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
    if (is_dot(entry->d_name)) continue;
    empty = false;
    LP_OWNED(lp_free_at) char *inner = under[0] ? lp_path_join(under, entry->d_name) : lp_strdup(entry->d_name);
    bool is_link = entry->d_type == DT_LNK;
    if (is_link)
      add_foreign(found, inner); /* this compiler makes no links */
    else
      find_foreign(found, inner);
  }
  closedir(dir);
  if (empty) add_foreign(found, under);
}

static lp_status refuse(const char *path, const char *why, lp_diag *diag) {
  lp_status status = lp_error(diag, LP_LOC_FILE(path), "%s: it will not be replaced", why);
  lp_note(diag, LP_LOC_FILE(path),
          "a bundle replaces only another bundle or an empty directory: give another path, or remove this one");
  return status;
}

/* Refuses a bundle with files that its manifest does not list. */
static lp_status check_foreign(const char *path, const lp_json_document *manifest, lp_diag *diag) {
  LP_OWNED(lp_map_free_at) lp_map *own = own_files(manifest);
  foreign_files found = {.root = path, .own = own};
  find_foreign(&found, "");
  lp_status status = LP_OK;
  if (found.count > 0) {
    size_t more = found.count > FOREIGN_SHOWN ? found.count - FOREIGN_SHOWN : 0;
    if (more > 0) lp_buf_printf(&found.shown, " and %zu more", more);
    LP_OWNED(lp_buf_free) lp_buf why = {0};
    lp_buf_printf(&why, "holds what its manifest does not list (%s)", lp_buf_text(&found.shown));
    status = refuse(path, lp_buf_text(&why), diag);
  }
  lp_buf_free(&found.shown);
  return status;
}

lp_status lp_bundle_check_path(const char *path, lp_diag *diag) {
  if (lp_dir_is_vacant(path)) return LP_OK;
  lp_json_document *manifest = read_own_manifest(path);
  if (!manifest) return refuse(path, "exists and is not a bundle", diag);
  lp_status status = check_foreign(path, manifest, diag);
  lp_json_free(manifest);
  return status;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

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
  LP_OWNED(lp_free_at) char *path = lp_path_join(folder, name);
  return lp_file_write(path, data, size, diag);
}
