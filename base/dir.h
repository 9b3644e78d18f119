/* Folders that appear whole: they are built under a temporary name in the same parent and then moved into place. Any
 * thread may call these functions.
 *
 * lp_dir_begin removes the remains of a killed process that built the same folder. A claim, a lock that ends with its
 * process, tells the folders of running processes. */
#pragma once

#include "base/base.h"

/* Whether `path` is an empty folder or nothing; true of a file too, which lp_dir_begin refuses. */
bool lp_dir_is_vacant(const char *path);
/* Makes an empty folder, which lp_dir_commit will move to `path`. End with lp_dir_commit or lp_dir_abandon, then
 * free(*temporary). */
LP_MUST_USE lp_status lp_dir_begin(const char *path, char **temporary, lp_diag *diag);
/* Claims a folder that a killed process left of `path`, before lp_dir_begin would remove it; NULL: there is none. End
 * with lp_dir_abandon, then free(). */
char *lp_dir_claim_left(const char *path);
/* Moves the folder to `path`, where it replaces an old folder. Removes `temporary` when that fails. */
LP_MUST_USE lp_status lp_dir_commit(const char *temporary, const char *path, lp_diag *diag);
/* Makes a private folder $TMPDIR/PREFIX-XXXXXX (default /tmp). End with lp_dir_abandon, then free(*temporary). */
LP_MUST_USE lp_status lp_dir_temporary(const char *prefix, char **temporary, lp_diag *diag);
void lp_dir_abandon(const char *temporary); /* removes it and its content; NULL is allowed */
/* Refuses to write `bytes` below the folder `path` where its file system has fewer for this user. */
LP_MUST_USE lp_status lp_dir_check_space(const char *path, uint64_t bytes, lp_diag *diag);
