/* Temporary folders: those that a living process works in, and those that a dead one left. */
#ifndef LP_BASE_CLAIM_H
#define LP_BASE_CLAIM_H

#include <stdbool.h>

/* Says that this process works in `folder`, by a lock that ends with the process. False: another one is removing it. On a
 * file system without locks nothing is claimed and nothing is ever taken to be left. Any thread. */
bool lp_claim(const char *folder);
void lp_claim_end(const char *folder); /* one that is not claimed is allowed */

/* Removes the folders `dir`/`prefix`XXXXXX, as mkdtemp() names them, that no living process has claimed. */
void lp_claim_remove_left(const char *dir, const char *prefix);

#endif
