/* Paths as text. */
#include "base/path.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

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

bool lp_path_is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

char *lp_path_name(const char *path) {
  const char *base = lp_path_base(path);
  bool is_name = *base && !lp_streq(base, ".") && !lp_streq(base, "..");
  char *whole = is_name ? NULL : realpath(path, NULL), *name = lp_strdup(whole ? lp_path_base(whole) : base);
  free(whole);
  return name;
}

char *lp_path_library(const char *name) {
  char self[PATH_MAX];
  ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  self[size > 0 ? size : 0] = '\0';
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(self, '/');
    if (slash) *slash = '\0';
  }
  lp_buf path = {0};
  lp_buf_printf(&path, "%s/lib/llmpart/%s", self, name);
  return path.data;
}
