/* What is to vanish when the process is told to end: temporary files and folders. A signal is the whole process's affair, and
 * so is this list. */
#include "base/base.h"
#include "base/dir.h"

#include <ftw.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LP_VEC(char *) noted;

void lp_temporary_note(const char *path) {
  pthread_mutex_lock(&lock);
  lp_vec_push(&noted, lp_strdup(path));
  pthread_mutex_unlock(&lock);
}

void lp_temporary_forget(const char *path) {
  pthread_mutex_lock(&lock);
  for (size_t i = noted.count; i-- > 0;) {
    if (!lp_streq(noted.data[i], path)) continue;
    free(noted.data[i]);
    noted.data[i] = noted.data[--noted.count];
    break;
  }
  if (noted.count == 0) lp_vec_free(&noted);
  pthread_mutex_unlock(&lock);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk) {
  (void)info, (void)type, (void)walk;
  return remove(path);
}

void lp_remove_tree(const char *path) {
  nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void lp_temporaries_remove(void) {
  pthread_mutex_lock(&lock); /* for good */
  for (size_t i = 0; i < noted.count; i++)
    for (int attempt = 0; attempt < 3 && lp_path_exists(noted.data[i]); attempt++)
      lp_remove_tree(noted.data[i]);
}
