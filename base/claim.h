/* Claims on temporary folders. They tell the folders of running processes from those that a killed process left. Any
 * thread may call these functions. */
#ifndef LP_BASE_CLAIM_H
#define LP_BASE_CLAIM_H

#include <stdbool.h>

/* Claims `folder` for this process, by a lock that ends with the process. False: another process is removing the
 * folder. On a file system without locks nothing is claimed and no folder counts as left. */
bool lp_claim(const char *folder);
void lp_claim_end(const char *folder); /* A folder without a claim is allowed. */

/* Removes the folders `dir`/`prefix`XXXXXX (lp_temporary_folder) that no running process has claimed. Errors are
 * ignored. */
void lp_claim_remove_left(const char *dir, const char *prefix);

#endif
