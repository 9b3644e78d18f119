/* Temporary paths: fresh names, and the list of paths to remove when the process ends by a signal. The list is global
 * because signals end the whole process. */
#include "base/temporary.h"
#include "base/base.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LP_VEC(char *) noted;

/* The caller holds the lock. */
static void note(const char *path) {
  lp_vec_push(&noted, lp_strdup(path));
}

void lp_temporary_note(const char *path) {
  pthread_mutex_lock(&lock);
  note(path);
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

/* ---- fresh names ---- */

static bool fill_in(char *letters) {
  static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  uint8_t random[LP_TEMPORARY_LETTERS];
  if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return false;
  for (size_t i = 0; i < sizeof random; i++)
    letters[i] = alphabet[random[i] % (sizeof alphabet - 1)];
  return true;
}

static int make_file(const char *name) {
  return open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int make_folder(const char *name) {
  return mkdir(name, 0777);
}

static int make_private_folder(const char *name) {
  return mkdir(name, 0700);
}

/* mkstemp() and mkdtemp() make private paths. Widening them would need the umask, which a thread can read only by
 * changing it for the whole process. */
static int make_unnoted(char *name, int (*make)(const char *name)) {
  enum { ATTEMPTS = 100 };
  char *letters = name + strlen(name) - LP_TEMPORARY_LETTERS;
  int made = -1;
  for (int i = 0; i < ATTEMPTS && made < 0; i++) {
    if (!fill_in(letters)) return -1;
    made = make(name);
    if (made < 0 && errno != EEXIST) return -1;
  }
  return made;
}

/* Holds the lock over both steps, so that a signal cannot end the process between them and leave the path on disk. */
static int make_fresh(char *name, int (*make)(const char *name)) {
  pthread_mutex_lock(&lock);
  int made = make_unnoted(name, make);
  int problem = errno;
  if (made >= 0) note(name);
  pthread_mutex_unlock(&lock);
  errno = problem;
  return made;
}

int lp_temporary_file(char *name) {
  return make_fresh(name, make_file);
}

int lp_temporary_folder(char *name) {
  return make_fresh(name, make_folder);
}

int lp_temporary_private_folder(char *name) {
  return make_fresh(name, make_private_folder);
}
