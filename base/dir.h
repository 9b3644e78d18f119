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

/* Temporary files and folders that lp_temporaries_remove() is to remove, with what is in them: those of writers and of
 * lp_dir_begin are noted already. Forget one before it is renamed or removed. */
void lp_temporary_note(const char *path);
void lp_temporary_forget(const char *path);
/* For a process that is about to end by a signal, not in the handler itself: from now on whoever notes or forgets waits for
 * ever, so that nothing is renamed into place that is being removed. */
void lp_temporaries_remove(void);
void lp_remove_tree(const char *path); /* a file, or a folder and its content */

/* "dir/name"; the directory part of a path ("." when it has none); the last part. Release with free(). */
LP_NEVER_NULL char *lp_path_join(const char *dir, const char *name);
LP_NEVER_NULL char *lp_path_dir(const char *path);
LP_NEVER_NULL const char *lp_path_base(const char *path); /* borrowed */
bool lp_path_exists(const char *path);

#endif
