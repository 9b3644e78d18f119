#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "tests/base/expect.h"
#include "tests/suite.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static void setup(void) {
  snprintf(folder, sizeof folder, "/tmp/llmpart-test-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void) {
  lp_dir_abandon(folder);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* Number of entries in the folder `name` below the test's. */
static int entries(const char *name) {
  char *path = lp_path_join(folder, name);
  DIR *dir = opendir(path);
  free(path);
  ck_assert_ptr_nonnull(dir);
  int count = 0;
  for (const struct dirent *e; (e = readdir(dir));)
    count += e->d_name[0] != '.' || (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0);
  closedir(dir);
  return count;
}

static void holds(const char *path, const char *wanted) {
  char *text = NULL;
  size_t size = 0;
  ck_assert_int_eq(lp_file_read(path, &text, &size, NULL), LP_OK);
  ck_assert_str_eq(text, wanted);
  ck_assert_uint_eq(size, strlen(wanted));
  free(text);
}

LP_TEST(paths) {
  static const struct {
    const char *path, *dir, *base;
  } rows[] = {{"a/b", "a", "b"}, {"b", ".", "b"}, {"/b", "/", "b"}, {"/a/b/c", "/a/b", "c"}, {"", ".", ""}};
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    char *dir = lp_path_dir(rows[i].path);
    ck_assert_str_eq(dir, rows[i].dir);
    ck_assert_str_eq(lp_path_base(rows[i].path), rows[i].base);
    free(dir);
  }
  char *joined = lp_path_join("a/", "b"), *plain = lp_path_join("a", "b"), *empty = lp_path_join("", "b");
  ck_assert_str_eq(joined, "a/b");
  ck_assert_str_eq(plain, "a/b");
  ck_assert_str_eq(empty, "b");
  free(joined), free(plain), free(empty);
  ck_assert(lp_path_exists("/") && !lp_path_exists("/no/such/file"));
  ck_assert(lp_path_is_folder("/") && !lp_path_is_folder("/proc/self/exe") && !lp_path_is_folder("/no/such/file"));
}

LP_TEST(a_path_has_a_name) {
  static const char *const rows[][2] = {
      {"/proc/self/exe", "exe"}, {"/proc/", "proc"}, {"/proc/.", "proc"}, {"/proc/sys/..", "proc"}};
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    char *name = lp_path_name(rows[i][0]);
    ck_assert_str_eq(name, rows[i][1]);
    free(name);
  }
}

LP_TEST(a_file_appears_on_commit_only) {
  char *path = lp_path_join(folder, "out.txt");
  lp_writer *writer = NULL;
  ck_assert_int_eq(lp_file_write(path, "old", 3, NULL), LP_OK);
  ck_assert_int_eq(lp_writer_open(path, &writer, NULL), LP_OK);
  lp_writer_put(writer, "new ", 4);
  lp_writer_put(writer, "42", 2);
  ck_assert_uint_eq(lp_writer_offset(writer), 6);
  holds(path, "old");
  ck_assert_int_eq(lp_writer_commit(writer, NULL), LP_OK);
  holds(path, "new 42");
  ck_assert_int_eq(entries(""), 1);
  struct stat info;
  ck_assert_int_eq(stat(path, &info), 0);
  mode_t mask = umask(0);
  umask(mask);
  ck_assert_uint_eq(info.st_mode & 0777, 0666 & ~mask);
  free(path);
}

LP_TEST(nothing_is_left_after_abandon) {
  char *path = lp_path_join(folder, "out.txt");
  lp_writer *writer = NULL;
  ck_assert_int_eq(lp_writer_open(path, &writer, NULL), LP_OK);
  lp_writer_put(writer, "x", 1);
  lp_writer_abandon(writer);
  lp_writer_abandon(NULL);
  ck_assert_int_eq(entries(""), 0);
  free(path);
}

LP_TEST(a_link_stays_a_link) {
  char *path = lp_path_join(folder, "real"), *link = lp_path_join(folder, "link");
  ck_assert_int_eq(lp_file_write(path, "old", 3, NULL), LP_OK);
  ck_assert_int_eq(symlink("real", link), 0);
  ck_assert_int_eq(lp_file_write(link, "new", 3, NULL), LP_OK);
  holds(path, "new");
  ck_assert_int_eq(entries(""), 2);
  free(path), free(link);
}

static void cannot_write(const char *path, const char *why) {
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_file_write(path, "x", 1, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  ck_assert_str_eq(lp_diag_get(diag, 0)->loc.file, path);
  ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, why));
  lp_diag_free(diag);
}

LP_TEST(unwritable_places_are_reported) {
  cannot_write("/no/such/folder/file", "No such file or directory");
  cannot_write(folder, "Is a directory");
  cannot_write("/dev/full", "No space left on device");
  ck_assert_int_eq(lp_file_write("/dev/null", "x", 1, NULL), LP_OK);
  ck_assert_int_eq(entries(""), 0);
}

LP_TEST(files_are_mapped) {
  char *path = lp_path_join(folder, "data");
  ck_assert_int_eq(lp_file_write(path, "abc", 3, NULL), LP_OK);
  lp_mapping map = {0};
  ck_assert_int_eq(lp_file_map(path, &map, NULL), LP_OK);
  ck_assert_uint_eq(map.size, 3);
  ck_assert_mem_eq(map.data, "abc", 3);
  lp_file_unmap(&map);
  ck_assert_ptr_null(map.data);
  ck_assert_int_eq(lp_file_write(path, "", 0, NULL), LP_OK);
  ck_assert_int_eq(lp_file_map(path, &map, NULL), LP_OK);
  ck_assert(!map.data && map.size == 0);
  lp_file_unmap(&map);
  holds(path, "");
  free(path);
}

LP_TEST(unreadable_files_are_reported) {
  lp_diag *diag = lp_diag_create();
  lp_mapping map = {0};
  char *text = NULL;
  size_t size = 0;
  ck_assert_int_eq(lp_file_map("/no/such/file", &map, diag), LP_FAILED);
  ck_assert_int_eq(lp_file_map(folder, &map, diag), LP_FAILED);
  ck_assert_int_eq(lp_file_read("/no/such/file", &text, &size, diag), LP_FAILED);
  ck_assert_int_eq(lp_file_read(folder, &text, &size, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 4);
  lp_diag_free(diag);
}

static void write_in(const char *dir, const char *name, const char *text) {
  char *path = lp_path_join(dir, name);
  ck_assert_int_eq(lp_file_write(path, text, strlen(text), NULL), LP_OK);
  free(path);
}

LP_TEST(a_directory_is_swapped_in_whole) {
  char *place = lp_path_join(folder, "bundle/"), *first = NULL, *second = NULL;
  ck_assert_int_eq(lp_dir_begin(place, &first, NULL), LP_OK);
  write_in(first, "a", "1");
  write_in(first, "b", "2");
  ck_assert_int_eq(lp_dir_commit(first, place, NULL), LP_OK);
  ck_assert_int_eq(entries("bundle"), 2);
  ck_assert_int_eq(lp_dir_begin(place, &second, NULL), LP_OK);
  write_in(second, "c", "3");
  ck_assert_int_eq(lp_dir_commit(second, place, NULL), LP_OK);
  ck_assert_int_eq(entries("bundle"), 1);
  ck_assert_int_eq(entries(""), 1);
  char *file = lp_path_join(place, "c");
  holds(file, "3");
  free(file), free(first), free(second), free(place);
}

LP_TEST(an_abandoned_directory_leaves_nothing) {
  char *place = lp_path_join(folder, "bundle"), *temporary = NULL;
  ck_assert_int_eq(lp_dir_begin(place, &temporary, NULL), LP_OK);
  write_in(temporary, "a", "1");
  char *nested = lp_path_join(temporary, "device");
  ck_assert_int_eq(mkdir(nested, 0777), 0);
  write_in(nested, "x", "1");
  lp_dir_abandon(temporary);
  lp_dir_abandon(NULL);
  ck_assert_int_eq(entries(""), 0);
  free(nested), free(temporary), free(place);
}

/* Removes only folders of a process that has ended, and only those for the same directory. */
LP_TEST(what_a_killed_process_left_is_removed) {
  char *place = lp_path_join(folder, "bundle"), *other = lp_path_join(folder, "other"), *mine = NULL, *next = NULL;
  char *alike = lp_path_join(folder, ".bundle.backup");
  ck_assert_int_eq(mkdir(alike, 0777), 0);
  ck_assert_int_eq(lp_dir_begin(place, &mine, NULL), LP_OK);
  pid_t child = fork();
  if (child == 0) {
    char *left[2] = {NULL, NULL};
    bool began = lp_dir_begin(place, &left[0], NULL) == LP_OK && lp_dir_begin(other, &left[1], NULL) == LP_OK;
    if (began) write_in(left[0], "a", "1");
    (void)kill(getpid(), began ? SIGKILL : SIGABRT);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  ck_assert_int_eq(entries(""), 4);
  ck_assert_int_eq(lp_dir_begin(place, &next, NULL), LP_OK);
  ck_assert_int_eq(entries(""), 4); /* two of this process, one of the other place, the one that is alike */
  ck_assert(lp_path_exists(mine) && lp_path_exists(next) && lp_path_exists(alike));
  ck_assert_int_eq(lp_dir_commit(mine, place, NULL), LP_OK);
  lp_dir_abandon(next);
  ck_assert_int_eq(entries(""), 3);
  free(place), free(other), free(mine), free(next), free(alike);
}

LP_TEST(bad_places_for_a_directory) {
  char *file = lp_path_join(folder, "file"), *dots = lp_path_join(folder, ".."), *temporary = NULL;
  ck_assert_int_eq(lp_file_write(file, "x", 1, NULL), LP_OK);
  const char *const bad[] = {file, dots, "/", ".", "", "/no/such/folder/bundle"};
  for (size_t i = 0; i < LP_COUNT(bad); i++) {
    lp_diag *diag = lp_diag_create();
    ck_assert_int_eq(lp_dir_begin(bad[i], &temporary, diag), LP_FAILED);
    ck_assert_uint_eq(lp_diag_error_count(diag), 1);
    ck_assert_ptr_null(temporary);
    lp_diag_free(diag);
  }
  ck_assert_int_eq(entries(""), 1);
  free(file), free(dots);
}

LP_TEST(a_failed_swap_leaves_nothing) {
  char *place = lp_path_join(folder, "bundle"), *temporary = NULL;
  ck_assert_int_eq(lp_dir_begin(place, &temporary, NULL), LP_OK);
  ck_assert_int_eq(lp_file_write(place, "x", 1, NULL), LP_OK); /* comes up in between */
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_dir_commit(temporary, place, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_int_eq(entries(""), 1);
  lp_diag_free(diag);
  free(temporary), free(place);
}

/* ---- permissions ---- */

static mode_t permissions_of(const char *path) {
  struct stat info;
  ck_assert_int_eq(stat(path, &info), 0);
  return info.st_mode & 0777;
}

static void *write_often(void *number) {
  enum { TIMES = 200 };
  char name[] = "written-0";
  name[sizeof name - 2] = (char)('0' + *(const int *)number);
  char *path = lp_path_join(folder, name), *temporary = NULL;
  bool good = true;
  for (int i = 0; i < TIMES && good; i++) {
    good = lp_file_write(path, "x", 1, NULL) == LP_OK && permissions_of(path) == 0640 && unlink(path) == 0;
    good = good && lp_dir_begin(path, &temporary, NULL) == LP_OK && permissions_of(temporary) == 0750;
    if (temporary) lp_dir_abandon(temporary);
    free(temporary);
    temporary = NULL;
  }
  free(path);
  return good ? number : NULL;
}

LP_TEST(threads_write_without_touching_the_umask) {
  enum { THREADS = 4 };
  int number[THREADS];
  pthread_t thread[THREADS];
  const mode_t before = umask(027);
  for (int i = 0; i < THREADS; i++) {
    number[i] = i;
    ck_assert_int_eq(pthread_create(&thread[i], NULL, write_often, &number[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *result = NULL;
    ck_assert_int_eq(pthread_join(thread[i], &result), 0);
    ck_assert_msg(result != NULL, "thread %d made a path with other permissions", i);
  }
  ck_assert_uint_eq(umask(before), 027);
}

LP_TEST(space_is_checked_before_the_work) {
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_dir_check_space("/tmp", 0, diag), LP_OK);
  ck_assert_int_eq(lp_dir_check_space("/tmp", UINT64_MAX, diag), LP_FAILED);
  ck_assert(strstr(lp_diag_get(diag, 0)->text, "of weights are to be written, and the file system has "));
  ck_assert_int_eq(lp_dir_check_space("/no such folder", UINT64_MAX, diag), LP_OK);
  lp_diag_free(diag);
}
