/* Files: mapped, read whole, and written so that a reader never sees half of one.
 *
 * Errors are diagnostics at the path. Any thread may call any function; a writer belongs to one thread at a time. */
#pragma once

#include "base/base.h"

/* A regular file as it was when it was opened. A file that is replaced or written to gets another identity. */
typedef struct {
  uint64_t device, node, size, modified_ns, changed_ns;
} lp_file_identity;
struct stat;
lp_file_identity lp_file_identify(const struct stat *info);

/* A regular file mapped read-only. Release with lp_file_unmap. */
typedef struct {
  const uint8_t *data;       /* NULL when empty */
  size_t size;               /* bytes */
  lp_file_identity identity; /* all zero: of memory */
} lp_mapping;

LP_MUST_USE lp_status lp_file_map(const char *path, lp_mapping *out, lp_diag *diag);
void lp_file_unmap(lp_mapping *mapping); /* unmaps and clears; an empty mapping is allowed */
/* Maps `size` > 0 bytes of zeroed memory, which are released like a file's mapping; the caller writes to `*data`. Pages
 * that are never written take no memory. */
LP_MUST_USE lp_status lp_memory_map(size_t size, lp_mapping *out, uint8_t **data, lp_diag *diag);

typedef enum { LP_FILE_FOUND, LP_FILE_ABSENT, LP_FILE_REFUSED } lp_found;
/* Maps the regular file `path` of the folder `root`, for paths from untrusted files. The path must be relative, without
 * "..", and no symbolic link on the way may lead out of the folder, even while another process renames its content.
 * Links within the folder are followed; `root` itself is trusted. Reports nothing: when it refuses the path, `*why`
 * completes "the path 'P' ..." (static text). */
LP_MUST_USE lp_found lp_file_map_beneath(const char *root, const char *path, lp_mapping *out, const char **why);

/* Reads the whole file ("-" is stdin) and ends it with a NUL that `size` does not count. Release with free(). */
LP_MUST_USE lp_status lp_file_read(const char *path, char **data, size_t *size, lp_diag *diag);

/* A file that is written under a temporary name in the folder of `path` and renamed on commit; without a commit nothing
 * remains. A path that exists and is not a regular file (/dev/null, a pipe) is written in place. */
typedef struct lp_writer lp_writer;
LP_MUST_USE lp_status lp_writer_open(const char *path, lp_writer **out, lp_diag *diag); /* "-" is stdout */
/* Opens a file to write in place after its first `kept` bytes; the rest is cut off. It appears under its name at once,
 * and neither commit nor abandon removes it. */
LP_MUST_USE lp_status lp_writer_open_after(const char *path, uint64_t kept, lp_writer **out, lp_diag *diag);
/* Calls `put` with all that is put from now on, and `mark` with lp_writer_offset at each lp_writer_mark; either may be
 * NULL. */
typedef struct {
  void (*put)(void *user, const void *data, size_t size);
  void (*mark)(void *user, uint64_t offset);
  void *user;
} lp_writer_watch;
void lp_writer_set_watch(lp_writer *writer, const lp_writer_watch *watch);
/* Hands all that was put to the system, and tells the watch, unless a write has failed. */
void lp_writer_mark(lp_writer *writer);
/* The commit reports its errors. */
void lp_writer_put(lp_writer *writer, const void *data, size_t size);
uint64_t lp_writer_offset(const lp_writer *writer); /* bytes kept and put so far */
/* Both free the writer; commit does so also when it fails. */
LP_MUST_USE lp_status lp_writer_commit(lp_writer *writer, lp_diag *diag);
void lp_writer_abandon(lp_writer *writer); /* NULL is allowed */
/* Commits if `status` is LP_OK, otherwise abandons and returns it. */
LP_MUST_USE lp_status lp_writer_end(lp_writer *writer, lp_status status, lp_diag *diag);
/* Opens, puts and commits. */
LP_MUST_USE lp_status lp_file_write(const char *path, const void *data, size_t size, lp_diag *diag);
