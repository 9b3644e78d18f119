/* Folders, temporary files and paths. */
#ifndef LP_DIR_H
#define LP_DIR_H

#include "base/base.h"

/* A directory built under a temporary name and swapped in whole; an old one of that name is replaced. What processes that
 * were killed left of building the same one is removed (claim.h). */
/* Release `temporary` with free() after commit or abandon. */
LP_MUST_USE lp_status lp_dir_begin(const char *path, char **temporary, lp_diag *diag);
/* Removes `temporary` when it fails, so that one of commit and abandon is enough. */
LP_MUST_USE lp_status lp_dir_commit(const char *temporary, const char *path, lp_diag *diag);
/* A fresh folder $TMPDIR/PREFIX-XXXXXX (/tmp); abandon it and release it with free(). */
LP_MUST_USE lp_status lp_dir_temporary(const char *prefix, char **temporary, lp_diag *diag);
void lp_dir_abandon(const char *temporary); /* removes it and its content; NULL is allowed */

#endif
