/* Temporary files and folders: they are made under a fresh name, and removed when a signal ends the process.
 *
 * Every function but lp_temporaries_remove may be called from any thread. */
#pragma once

enum { LP_TEMPORARY_LETTERS = 6 }; /* random ones at the end of a name */

/* Makes a new file, open for writing, or a new folder, and notes its path for lp_temporaries_remove(). `name` ends in
 * "XXXXXX", which random letters replace. The permissions are those that open() and mkdir() give anywhere: 0666 and
 * 0777 without the bits of the process's umask; a private folder has 0700. Returns the file's descriptor, which closes
 * on exec, or 0 for a folder; -1 with errno when it cannot be made. */
int lp_temporary_file(char *name);
int lp_temporary_folder(char *name);
int lp_temporary_private_folder(char *name);

/* Notes a path that lp_temporaries_remove() is to remove with its content. Forget a path before it is renamed or
 * removed. */
void lp_temporary_note(const char *path);
void lp_temporary_forget(const char *path);
/* Removes every noted path. A process that is about to end by a signal calls it, but not in the handler itself. After
 * it, lp_temporary_note and lp_temporary_forget block forever, so that no path is renamed into place while it is
 * removed. */
void lp_temporaries_remove(void);

/* Removes a file, or a folder and its content; symbolic links are not followed. Errors are ignored. */
void lp_remove_tree(const char *path);
