/* Compiled code that is kept: it comes back whole or not at all. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "runtime/gpu/nvrtc.h"
#include "tests/suite.h"

static char folder[] = "/tmp/llmpart-cache-XXXXXX";
static const lp_cache_key one = {"1111"}, two = {"2222"};

static void setup(void) {
  ck_assert_ptr_nonnull(mkdtemp(folder));
  ck_assert_int_eq(setenv("XDG_CACHE_HOME", folder, 1), 0);
}

static void teardown(void) {
  char *const command[] = {"rm", "-rf", folder, NULL};
  if (fork() == 0) execvp(command[0], command);
}

LP_CASE(.setup = setup, .teardown = teardown);

static void keep(const lp_cache_key *key, const char *code) {
  const lp_buf whole = {.data = (char *)(uintptr_t)code, .size = strlen(code)};
  lp_cache_write(key, &whole);
}

static void has(const lp_cache_key *key, const char *code) {
  lp_buf found = {0};
  ck_assert_int_eq(lp_cache_read(key, &found), code != NULL);
  ck_assert_str_eq(lp_buf_text(&found), code ? code : "");
  lp_buf_free(&found);
}

LP_TEST(what_is_kept_comes_back) {
  has(&one, NULL);
  keep(&one, "first");
  keep(&two, "second");
  has(&one, "first");
  has(&two, "second");
  keep(&one, "third");
  has(&one, "third");
  struct stat facts;
  char *path = lp_path_join(folder, "llmpart/cuda");
  ck_assert_int_eq(stat(path, &facts), 0);
  ck_assert_uint_eq(facts.st_mode & 0777, 0700); /* only the user may put code there */
  free(path);
}

static void damage(size_t at, bool cut) {
  char *path = lp_path_join(folder, "llmpart/cuda/1111.cubin"), *data = NULL;
  size_t size = 0;
  ck_assert_int_eq(lp_file_read(path, &data, &size, NULL), LP_OK);
  ck_assert_uint_eq(size, 32 + strlen("first"));
  if (!cut) data[at] ^= 1;
  ck_assert_int_eq(lp_file_write(path, data, cut ? at : size, NULL), LP_OK);
  free(data);
  free(path);
}

LP_TEST(damaged_code_is_none) {
  static const struct {
    size_t at;
    bool cut;
  } cases[] = {{0, false}, {31, false}, {32, false}, {36, false}, {36, true}, {32, true}, {31, true}, {0, true}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    keep(&one, "first");
    damage(cases[i].at, cases[i].cut);
    has(&one, NULL);
  }
}

/* A file that takes the whole room, without its bytes on the disk, goes before the new one does. */
LP_TEST(the_oldest_make_room) {
  keep(&one, "first");
  keep(&two, "second");
  char *path = lp_path_join(folder, "llmpart/cuda/0.cubin");
  const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
  ck_assert_int_eq(lp_file_write(path, "", 0, NULL), LP_OK);
  ck_assert_int_eq(truncate(path, INT64_C(256) << 20), 0);
  ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
  keep(&one, "third");
  ck_assert(!lp_path_exists(path));
  has(&one, "third");
  has(&two, "second");
  free(path);
}

LP_TEST(without_a_folder) {
  ck_assert_int_eq(setenv("XDG_CACHE_HOME", "relative", 1), 0);
  ck_assert_int_eq(unsetenv("HOME"), 0);
  keep(&one, "first");
  has(&one, NULL);
}
