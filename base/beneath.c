/* Opens files that must lie in a folder, whatever an untrusted path says and whatever another process renames
 * meanwhile. Each part of the path is opened from the descriptor of the part before it. Nothing is opened through a
 * symbolic link: the link is read and its parts are opened in the same way. A ".." goes back to a descriptor that is
 * held, never above the folder. */
#include "base/base.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PARTS = 64, MAX_LINKS = 16 };

typedef struct {
  int folder[MAX_PARTS]; /* descriptors of the folders on the path; [0] is the root */
  int depth, links;
  lp_buf rest; /* the rest of the path */
  const char *why;
} walker;

static const char leads_out[] = "leads out of the folder through a symbolic link";

/* Parts as exporters write them; a backslash is a separator elsewhere and would be judged differently there. */
static const char *complaint(const char *path) {
  if (!*path) return "is empty";
  if (*path == '/') return "is absolute";
  if (strchr(path, '\\')) return "has a backslash; parts are separated by '/'";
  if (strlen(path) >= PATH_MAX) return "is too long";
  for (const char *part = path; *part; part += strspn(part, "/")) {
    size_t length = strcspn(part, "/");
    if (length == 2 && part[0] == '.' && part[1] == '.') return "climbs with '..'";
    part += length;
  }
  return NULL;
}

static lp_found refuse(walker *w, const char *why) {
  w->why = why;
  return LP_FILE_REFUSED;
}

static lp_found refuse_errno(walker *w) {
  if (errno == ENOENT || errno == ENOTDIR) return LP_FILE_ABSENT;
  return refuse(w, errno == EACCES ? "may not be read" : "cannot be opened");
}

/* Puts the link's target in front of the rest of the path, in place of the link. */
static lp_found follow(walker *w, int link) {
  char target[PATH_MAX];
  ssize_t length = readlinkat(link, "", target, sizeof(target) - 1);
  if (length < 0) return refuse_errno(w);
  target[length] = 0;
  if (++w->links > MAX_LINKS) return refuse(w, "goes through too many symbolic links");
  if (target[0] == '/') return refuse(w, leads_out);
  lp_buf joined = {0};
  lp_buf_printf(&joined, "%s/%s", target, lp_buf_text(&w->rest));
  lp_buf_free(&w->rest);
  w->rest = joined;
  return w->rest.size < PATH_MAX ? LP_FILE_FOUND : refuse(w, "is too long");
}

static lp_found go_down(walker *w, int folder) {
  if (w->depth + 1 == MAX_PARTS) return refuse(w, "has too many parts");
  w->folder[++w->depth] = folder;
  return LP_FILE_FOUND;
}

/* Opens a regular file in the folder that is held. It is the file that was examined, even when its name is reused
 * meanwhile. */
static lp_found open_file(walker *w, const char *name, const struct stat *seen, int *out) {
  struct stat info;
  if (!S_ISREG(seen->st_mode)) return refuse(w, "is not a regular file");
  int fd = openat(w->folder[w->depth], name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return refuse_errno(w);
  if (fstat(fd, &info) != 0 || info.st_dev != seen->st_dev || info.st_ino != seen->st_ino) {
    close(fd);
    return refuse(w, "changed while it was opened");
  }
  *out = fd;
  return LP_FILE_FOUND;
}

/* Takes one part of the path: enters a folder, follows a link, or opens the file at the end. */
static lp_found step(walker *w, const char *part, bool last, int *out) {
  if (lp_streq(part, ".")) return last ? refuse(w, "is not a regular file") : LP_FILE_FOUND;
  if (lp_streq(part, "..")) {
    if (w->depth == 0) return refuse(w, leads_out);
    close(w->folder[w->depth--]);
    return last ? refuse(w, "is not a regular file") : LP_FILE_FOUND;
  }
  int fd = openat(w->folder[w->depth], part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return refuse_errno(w);
  struct stat info;
  lp_found found;
  if (fstat(fd, &info) != 0)
    found = refuse_errno(w);
  else if (S_ISLNK(info.st_mode))
    found = follow(w, fd);
  else if (S_ISDIR(info.st_mode) && !last)
    return go_down(w, fd) == LP_FILE_FOUND ? LP_FILE_FOUND : (close(fd), LP_FILE_REFUSED);
  else
    found = last ? open_file(w, part, &info, out) : LP_FILE_ABSENT;
  close(fd);
  return found;
}

static lp_found walk(walker *w, int *out) {
  lp_found found = LP_FILE_FOUND;
  while (found == LP_FILE_FOUND && *out < 0) {
    const char *text = lp_buf_text(&w->rest);
    text += strspn(text, "/");
    size_t length = strcspn(text, "/");
    const char *rest = text + length + strspn(text + length, "/");
    if (length == 0) return refuse(w, "is not a regular file");
    LP_OWNED(lp_free_at) char *part = lp_strdup(text);
    part[length] = 0;
    lp_buf left = {0};
    lp_buf_puts(&left, rest);
    bool last = !*rest;
    lp_buf_free(&w->rest);
    w->rest = left;
    found = step(w, part, last, out);
  }
  return found;
}

static lp_found map(walker *w, int fd, lp_mapping *out) {
  struct stat info;
  if (fstat(fd, &info) != 0) return refuse_errno(w);
  if (info.st_size == 0) return LP_FILE_FOUND;
  void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return refuse(w, "cannot be mapped");
  *out = (lp_mapping){.data = data, .size = (size_t)info.st_size, .identity = lp_file_identify(&info)};
  return LP_FILE_FOUND;
}

lp_found lp_file_map_beneath(const char *root, const char *path, lp_mapping *out, const char **why) {
  *out = (lp_mapping){0};
  if ((*why = complaint(path))) return LP_FILE_REFUSED;
  walker w = {.why = ""};
  w.folder[0] = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (w.folder[0] < 0) return LP_FILE_ABSENT;
  lp_buf_puts(&w.rest, path);
  int fd = -1;
  lp_found found = walk(&w, &fd);
  if (found == LP_FILE_FOUND) found = map(&w, fd, out);
  if (fd >= 0) close(fd);
  while (w.depth >= 0)
    close(w.folder[w.depth--]);
  lp_buf_free(&w.rest);
  *why = w.why;
  return found;
}
