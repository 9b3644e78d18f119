/* Files, mapped, read and written. */
#ifndef LP_FILE_H
#define LP_FILE_H

#include "base/base.h"

/* A file mapped read-only. */
typedef struct {
  const uint8_t *data; /* NULL when empty */
  size_t size;
} lp_mapping;

LP_MUST_USE lp_status lp_file_map(const char *path, lp_mapping *out, lp_diag *diag);
void lp_file_unmap(lp_mapping *mapping);

/* Maps the regular file `path` of the folder `root`, where the path comes from a file that is not trusted. It must be
 * relative, without "..", and no symbolic link on the way may lead out of the folder, not even while others rename what is
 * in it; links within the folder are fine, the folder's own path is trusted. When it is refused, `*why` completes
 * "the path 'P' ..." (static text). Reports nothing. */
typedef enum { LP_FILE_FOUND, LP_FILE_ABSENT, LP_FILE_REFUSED } lp_found;
LP_MUST_USE lp_found lp_file_map_beneath(const char *root, const char *path, lp_mapping *out, const char **why);
/* The whole file ("-" is stdin), NUL-terminated; release with free(). */
LP_MUST_USE lp_status lp_file_read(const char *path, char **data, size_t *size, lp_diag *diag);

/* A file written under a temporary name beside `path` and renamed on commit; nothing is left behind otherwise. A path
 * that is there and is no regular file (/dev/null, a pipe) is written in place. */
typedef struct lp_writer lp_writer;
LP_MUST_USE lp_status lp_writer_open(const char *path, lp_writer **out, lp_diag *diag); /* "-" is stdout */
void lp_writer_put(lp_writer *writer, const void *data, size_t size);                   /* errors surface at commit */
void lp_writer_printf(lp_writer *writer, const char *format, ...) LP_PRINTF(2, 3);
uint64_t lp_writer_offset(const lp_writer *writer);
LP_MUST_USE lp_status lp_writer_commit(lp_writer *writer, lp_diag *diag); /* frees the writer in every case */
void lp_writer_abandon(lp_writer *writer);                                /* NULL is allowed */
/* open + put + commit */
LP_MUST_USE lp_status lp_file_write(const char *path, const void *data, size_t size, lp_diag *diag);

#endif
