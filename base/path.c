/* Paths as text. */
#include "base/path.h"

#include <string.h>
#include <sys/stat.h>

char *lp_path_join(const char *dir, const char *name) {
  size_t length = strlen(dir);
  lp_buf path = {0};
  lp_buf_printf(&path, "%s%s%s", dir, length && dir[length - 1] != '/' ? "/" : "", name);
  return path.data;
}

char *lp_path_dir(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return lp_strdup(".");
  if (slash == path) return lp_strdup("/");
  char *dir = lp_strdup(path);
  dir[slash - path] = 0;
  return dir;
}

const char *lp_path_base(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

bool lp_path_exists(const char *path) {
  struct stat info;
  return stat(path, &info) == 0;
}
