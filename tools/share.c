#include "tools/share.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

char *lp_share_path(const char *name) {
  char self[PATH_MAX];
  ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  self[size > 0 ? size : 0] = 0;
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(self, '/');
    if (slash) *slash = 0;
  }
  lp_buf path = {0};
  lp_buf_printf(&path, "%s/share/llmpart/%s", self, name);
  return path.data;
}
