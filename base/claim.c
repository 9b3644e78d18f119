/* A claim is an flock() on the folder. A killed process loses it, so that its folder differs from those still in
 * use. */
#include "base/claim.h"
#include "base/base.h"
#include "base/path.h"
#include "base/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
  char *folder;
  int fd;
} claim;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LP_VEC(claim) claims;

static int open_folder(const char *folder) {
  return open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A process locks a folder to remove it: once this process has the lock, the folder is gone or stays. */
static bool is_still_there(const char *folder, int fd) {
  struct stat opened, found;
  return fstat(fd, &opened) == 0 && lstat(folder, &found) == 0 && opened.st_dev == found.st_dev &&
         opened.st_ino == found.st_ino;
}

bool lp_claim(const char *folder) {
  int fd = open_folder(folder);
  if (fd < 0) return errno != ENOENT;
  bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
  if ((!locked && errno == EWOULDBLOCK) || !is_still_there(folder, fd)) {
    close(fd);
    return false;
  }
  if (locked) {
    pthread_mutex_lock(&lock);
    lp_vec_push(&claims, ((claim){lp_strdup(folder), fd}));
    pthread_mutex_unlock(&lock);
  } else {
    close(fd);
  }
  return true;
}

void lp_claim_end(const char *folder) {
  pthread_mutex_lock(&lock);
  for (size_t i = claims.count; i-- > 0;) {
    if (!lp_streq(claims.data[i].folder, folder)) continue;
    close(claims.data[i].fd);
    free(claims.data[i].folder);
    claims.data[i] = claims.data[--claims.count];
    break;
  }
  if (claims.count == 0) lp_vec_free(&claims);
  pthread_mutex_unlock(&lock);
}

static void remove_if_left(const char *folder) {
  int fd = open_folder(folder);
  if (fd < 0) return;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_still_there(folder, fd)) lp_remove_tree(folder);
  close(fd);
}

void lp_claim_remove_left(const char *dir, const char *prefix) {
  DIR *listing = opendir(dir);
  size_t length = strlen(prefix) + LP_TEMPORARY_LETTERS;
  for (struct dirent *entry; listing && (entry = readdir(listing));) {
    if (strlen(entry->d_name) != length || !lp_has_prefix(entry->d_name, prefix)) continue;
    char *folder = lp_path_join(dir, entry->d_name);
    remove_if_left(folder);
    free(folder);
  }
  if (listing) (void)closedir(listing);
}
