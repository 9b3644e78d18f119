/* Paths as text. The functions from lp_path_exists on look at the file system. Any thread. */
#pragma once

#include "base/base.h"

/* "dir/name", with one slash between them. Release with free(). */
LP_NEVER_NULL char *lp_path_join(const char *dir, const char *name);
/* The path without its last part; "." when it has only one. Release with free(). */
LP_NEVER_NULL char *lp_path_dir(const char *path);
/* The last part; borrowed from `path`. */
LP_NEVER_NULL const char *lp_path_base(const char *path);
/* Links are followed in these. */
bool lp_path_exists(const char *path);
bool lp_path_is_folder(const char *path);
/* The last part; where that is "", "." or "..", the last part of the path that it means. Release with free(). */
LP_NEVER_NULL char *lp_path_name(const char *path);
/* PREFIX/lib/llmpart/NAME, where the program that runs is PREFIX/bin/PROGRAM or PREFIX/tools/PROGRAM. Release with
 * free(). */
LP_NEVER_NULL char *lp_path_library(const char *name);
