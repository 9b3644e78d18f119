/* Files: mapped, read whole, and written so that a reader never sees half of one. */
#include "base/file.h"
#include "base/base.h"
#include "base/path.h"
#include "base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading ---- */

static uint64_t in_ns(struct timespec time) {
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

lp_file_identity lp_file_identify(const struct stat *info) {
  return (lp_file_identity){(uint64_t)info->st_dev, (uint64_t)info->st_ino, (uint64_t)info->st_size,
                            in_ns(info->st_mtim), in_ns(info->st_ctim)};
}

lp_status lp_file_map(const char *path, lp_mapping *out, lp_diag *diag) {
  *out = (lp_mapping){0};
  lp_loc loc = LP_LOC_FILE(path);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe must not block */
  if (fd < 0) return lp_error(diag, loc, "cannot open: %s", strerror(errno));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return lp_error(diag, loc, "is not a regular file");
  }
  void *data = NULL;
  if (info.st_size > 0) data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  int problem = errno;
  close(fd);
  if (data == MAP_FAILED) return lp_error(diag, loc, "cannot map: %s", strerror(problem));
  *out = (lp_mapping){.data = data, .size = (size_t)info.st_size, .identity = lp_file_identify(&info)};
  return LP_OK;
}

void lp_file_unmap(lp_mapping *mapping) {
  if (mapping->data) munmap((void *)(uintptr_t)mapping->data, mapping->size);
  *mapping = (lp_mapping){0};
}

lp_status lp_memory_map(size_t size, lp_mapping *out, uint8_t **data, lp_diag *diag) {
  *out = (lp_mapping){0};
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return lp_error(diag, LP_LOC_NONE, "cannot get %zu bytes of memory: %s", size, strerror(errno));
  *data = memory;
  *out = (lp_mapping){.data = memory, .size = size};
  return LP_OK;
}

lp_status lp_file_read(const char *path, char **data, size_t *size, lp_diag *diag) {
  lp_loc loc = LP_LOC_FILE(path);
  bool is_stdin = lp_streq(path, "-");
  int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return lp_error(diag, loc, "cannot open: %s", strerror(errno));
  lp_buf content = {0};
  char block[1 << 14];
  ssize_t got = 0;
  while ((got = read(fd, block, sizeof block)) > 0 || (got < 0 && errno == EINTR))
    if (got > 0) lp_buf_append(&content, block, (size_t)got);
  int problem = errno;
  if (!is_stdin) close(fd);
  if (got < 0) {
    lp_buf_free(&content);
    return lp_error(diag, loc, "cannot read: %s", strerror(problem));
  }
  if (!content.data) lp_buf_puts(&content, "");
  *data = content.data;
  *size = content.size;
  return LP_OK;
}

/* ---- writing ---- */

struct lp_writer {
  char *path;      /* the file's name after commit */
  char *temporary; /* NULL when written in place */
  FILE *stream;
  uint64_t offset;
  int problem; /* errno of the first failure, or 0 */
  lp_writer_watch watch;
};

static void writer_free(lp_writer *writer) {
  free(writer->path);
  free(writer->temporary);
  free(writer);
}

static int open_temporary(lp_writer *writer) {
  lp_buf name = {0};
  char *dir = lp_path_dir(writer->path);
  lp_buf_printf(&name, "%s/.%s.XXXXXX", dir, lp_path_base(writer->path));
  free(dir);
  writer->temporary = name.data;
  return lp_temporary_file(writer->temporary);
}

static void remove_temporary(const lp_writer *writer) {
  unlink(writer->temporary);
  lp_temporary_forget(writer->temporary);
}

/* A link is followed, so that the file it points to is replaced and not the link. */
static char *resolve(const char *path) {
  char *real = realpath(path, NULL);
  return real ? real : lp_strdup(path);
}

lp_status lp_writer_open(const char *path, lp_writer **out, lp_diag *diag) {
  *out = NULL;
  lp_writer *writer = lp_alloc(sizeof *writer);
  struct stat info;
  if (lp_streq(path, "-")) {
    writer->path = lp_strdup("<stdout>");
    writer->stream = stdout;
    *out = writer;
    return LP_OK;
  }
  writer->path = resolve(path);
  bool exists = stat(path, &info) == 0;
  int fd = -1;
  if (exists && S_ISDIR(info.st_mode))
    errno = EISDIR;
  else if (exists && !S_ISREG(info.st_mode))
    fd = open(path, O_WRONLY | O_CLOEXEC);
  else
    fd = open_temporary(writer);
  if (fd >= 0) writer->stream = fdopen(fd, "wb");
  if (!writer->stream) {
    lp_status status = lp_error(diag, LP_LOC_FILE(path), "cannot write: %s", strerror(errno));
    if (fd >= 0) close(fd);
    if (fd >= 0 && writer->temporary) remove_temporary(writer);
    writer_free(writer);
    return status;
  }
  *out = writer;
  return LP_OK;
}

lp_status lp_writer_open_after(const char *path, uint64_t kept, lp_writer **out, lp_diag *diag) {
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  FILE *stream = NULL;
  *out = NULL;
  if (fd >= 0 && ftruncate(fd, (off_t)kept) == 0 && lseek(fd, (off_t)kept, SEEK_SET) >= 0) stream = fdopen(fd, "wb");
  if (!stream) {
    lp_status status = lp_error(diag, LP_LOC_FILE(path), "cannot write: %s", strerror(errno));
    if (fd >= 0) close(fd);
    return status;
  }
  *out = lp_alloc(sizeof **out);
  **out = (lp_writer){.path = lp_strdup(path), .stream = stream, .offset = kept};
  return LP_OK;
}

void lp_writer_set_watch(lp_writer *writer, const lp_writer_watch *watch) {
  writer->watch = *watch;
}

void lp_writer_mark(lp_writer *writer) {
  errno = 0;
  if (!writer->problem && fflush(writer->stream) != 0) writer->problem = errno ? errno : EIO;
  if (!writer->problem && writer->watch.mark) writer->watch.mark(writer->watch.user, writer->offset);
}

void lp_writer_put(lp_writer *writer, const void *data, size_t size) {
  writer->offset += size;
  if (writer->watch.put) writer->watch.put(writer->watch.user, data, size);
  if (writer->problem || size == 0) return;
  errno = 0;
  if (fwrite(data, 1, size, writer->stream) != size) writer->problem = errno ? errno : EIO;
}

uint64_t lp_writer_offset(const lp_writer *writer) {
  return writer->offset;
}

static void close_stream(lp_writer *writer) {
  errno = 0;
  int failed = writer->stream == stdout ? fflush(stdout) : fclose(writer->stream);
  if (failed && !writer->problem) writer->problem = errno ? errno : EIO;
}

lp_status lp_writer_commit(lp_writer *writer, lp_diag *diag) {
  close_stream(writer);
  if (writer->temporary) lp_temporary_forget(writer->temporary);
  if (writer->temporary && !writer->problem && rename(writer->temporary, writer->path) != 0) writer->problem = errno;
  lp_status status = LP_OK;
  if (writer->problem) {
    status = lp_error(diag, LP_LOC_FILE(writer->path), "cannot write: %s", strerror(writer->problem));
    if (writer->temporary) unlink(writer->temporary);
  }
  writer_free(writer);
  return status;
}

void lp_writer_abandon(lp_writer *writer) {
  if (!writer) return;
  close_stream(writer);
  if (writer->temporary) remove_temporary(writer);
  writer_free(writer);
}

lp_status lp_writer_end(lp_writer *writer, lp_status status, lp_diag *diag) {
  if (status == LP_OK) return lp_writer_commit(writer, diag);
  lp_writer_abandon(writer);
  return status;
}

lp_status lp_file_write(const char *path, const void *data, size_t size, lp_diag *diag) {
  lp_writer *writer = NULL;
  LP_TRY(lp_writer_open(path, &writer, diag));
  lp_writer_put(writer, data, size);
  return lp_writer_commit(writer, diag);
}
