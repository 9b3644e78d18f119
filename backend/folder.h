/* Output folders: built under a temporary name, then moved into place as a whole. */
#pragma once

#include "backend/backend.h"

/* Fills the folder. */
typedef lp_status lp_folder_filler(void *user, const char *folder, lp_diag *diag);
/* Builds a folder and renames it to `path` if lp_bundle_check_path allows; leaves nothing when it fails. */
LP_MUST_USE lp_status lp_folder_write(const char *path, lp_folder_filler *fill, void *user, lp_diag *diag);
LP_MUST_USE lp_status lp_folder_put(const char *folder, const char *name, const void *data, size_t size, lp_diag *diag);
