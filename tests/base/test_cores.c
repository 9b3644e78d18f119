/* The threads and the memory that a control group allows. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cores.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "tests/suite.h"

static char root[64];

static void setup(void) {
  snprintf(root, sizeof root, "/tmp/llmpart-test-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void) {
  lp_dir_abandon(root);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* Writes `text` to the file `name` of the folder `dir` below the root, and makes that folder. */
static void put(const char *dir, const char *name, const char *text) {
  char *folder = lp_path_join(root, dir), *path = lp_path_join(folder, name);
  (void)mkdir(folder, 0700);
  ck_assert_int_eq(lp_file_write(path, text, strlen(text), NULL), LP_OK);
  free(path);
  free(folder);
}

static int32_t threads(const char *membership) {
  put(".", "membership", membership);
  char *path = lp_path_join(root, "membership");
  int32_t count = lp_cgroup_threads(path, root);
  free(path);
  return count;
}

LP_TEST(version_2) {
  ck_assert_int_eq(threads("0::/\n"), INT32_MAX);
  put("outer", "cpu.max", "150000 100000\n");
  ck_assert_int_eq(threads("0::/outer\n"), 2); /* one and a half, rounded up */
  put("outer/inner", "cpu.max", "max 100000\n");
  ck_assert_int_eq(threads("0::/outer/inner\n"), 2); /* the outer group's quota holds for the inner one */
  put("outer/inner", "cpu.max", "50000 100000\n");
  ck_assert_int_eq(threads("0::/outer/inner\n"), 1);
  ck_assert_int_eq(threads("0::/other\n"), INT32_MAX);
  put(".", "cpu.max", "300000 100000\n"); /* what a container sees: the path is that of the host */
  ck_assert_int_eq(threads("0::/docker/0123\n"), 3);
}

LP_TEST(version_1) {
  put("cpu,cpuacct", "tasks", "");
  put("cpu,cpuacct/app", "cpu.cfs_quota_us", "400000\n");
  put("cpu,cpuacct/app", "cpu.cfs_period_us", "100000\n");
  ck_assert_int_eq(threads("5:cpuset:/\n4:cpu,cpuacct:/app\n"), 4);
  ck_assert_int_eq(threads("4:cpuacct:/app\n"), INT32_MAX);
  put("cpu,cpuacct/app", "cpu.cfs_quota_us", "-1\n");
  ck_assert_int_eq(threads("4:cpu,cpuacct:/app\n"), INT32_MAX);
}

LP_TEST(odd_files) {
  ck_assert_int_eq(lp_cgroup_threads("/nonexistent", root), INT32_MAX);
  ck_assert_int_eq(threads(""), INT32_MAX);
  ck_assert_int_eq(threads("nonsense\n0:\n0::relative\n"), INT32_MAX);
  put("zero", "cpu.max", "0 0\n");
  ck_assert_int_eq(threads("0::/zero\n"), INT32_MAX);
  ck_assert_int_ge(lp_machine_threads(), 1);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int64_t memory(const char *limit) {
  put(".", "memory.max", limit);
  char *path = lp_path_join(root, "memory.max");
  int64_t bytes = lp_cgroup_memory(path);
  free(path);
  return bytes;
}

LP_TEST(a_group_limits_memory) {
  ck_assert_int_eq(memory("1073741824\n"), 1 << 30);
  ck_assert_int_eq(memory("1\n"), 1);
  ck_assert_int_eq(memory("max\n"), INT64_MAX);
  ck_assert_int_eq(memory("0\n"), INT64_MAX);
  ck_assert_int_eq(lp_cgroup_memory("/nowhere/memory.max"), INT64_MAX);
  ck_assert_int_gt(lp_machine_memory(), 1 << 20);
}
