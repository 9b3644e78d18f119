/* Files: mapped, read whole, and written so that a reader never sees half of one.
 *
 * Errors are diagnostics at the path. Any thread may call any function; a writer belongs to one thread at a time. */
#ifndef LP_FILE_H
#define LP_FILE_H

#include "base/base.h"

/* A regular file mapped read-only. Release with lp_file_unmap. */
typedef struct {
  const uint8_t *data; /* NULL when empty */
  size_t size;         /* bytes */
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
/* The commit reports its errors. */
void lp_writer_put(lp_writer *writer, const void *data, size_t size);
uint64_t lp_writer_offset(const lp_writer *writer); /* bytes put so far */
/* Both free the writer; commit does so also when it fails. */
LP_MUST_USE lp_status lp_writer_commit(lp_writer *writer, lp_diag *diag);
void lp_writer_abandon(lp_writer *writer); /* NULL is allowed */
/* Opens, puts and commits. */
LP_MUST_USE lp_status lp_file_write(const char *path, const void *data, size_t size, lp_diag *diag);

#endif
