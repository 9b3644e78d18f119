/* Files that are installed beside the command. */
#ifndef LP_TOOLS_SHARE_H
#define LP_TOOLS_SHARE_H

/* PREFIX/share/llmpart/NAME of the running command's PREFIX/bin or PREFIX/tools; release with free(). */
char *lp_share_path(const char *name);

#endif
