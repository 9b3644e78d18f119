/* Folders that appear whole: built under a temporary name beside their place and swapped in. Any thread.
 *
 * lp_dir_begin removes what a killed process left of building the same folder (claim.h). */
#ifndef LP_DIR_H
#define LP_DIR_H

#include "base/base.h"

/* Makes an empty folder that lp_dir_commit will move to `path`. End with commit or abandon, then free(*temporary). */
LP_MUST_USE lp_status lp_dir_begin(const char *path, char **temporary, lp_diag *diag);
/* Puts the folder in the place of `path`, where an old folder is replaced. Removes `temporary` when it fails. */
LP_MUST_USE lp_status lp_dir_commit(const char *temporary, const char *path, lp_diag *diag);
/* Makes a private folder $TMPDIR/PREFIX-XXXXXX (default /tmp). End with abandon, then free(*temporary). */
LP_MUST_USE lp_status lp_dir_temporary(const char *prefix, char **temporary, lp_diag *diag);
void lp_dir_abandon(const char *temporary); /* removes it and its content; NULL is allowed */

#endif
