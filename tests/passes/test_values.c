/* The graphs of the folders' lit tests keep their values: see values.h. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tests/passes/values.h"
#include "tests/suite.h"

LP_CASE(.timeout = 600);

static void try_file(const char *path, values_tally *t) {
  char *text = NULL;
  size_t size = 0;
  ck_assert_int_eq(lp_file_read(path, &text, &size, NULL), LP_OK);
  int part = 0;
  for (char *at = text, *end; at; at = end, part++) {
    end = strstr(at, "\n// -----");
    if (end) *end++ = 0;
    values_try_module(strstr(path, "passes/"), part, at, strlen(at), t);
  }
  free(text);
}

static const char *const patterns[] = {"recognise/*.mlir", "recognise/fold/*.mlir", "recognise/raise/*.mlir",
                                       "lower/*.mlir",     "lower/fuse/*.mlir",     "runner/Inputs/*.mlir"};

LP_LOOP_TEST(passes_keep_values, 0, LP_COUNT(patterns)) {
  values_tally t = {0};
  glob_t found;
  lp_buf pattern = {0};
  lp_buf_printf(&pattern, "%s/%s", LP_TEST_DIR, patterns[_i]);
  ck_assert_int_eq(glob(lp_buf_text(&pattern), 0, NULL, &found), 0);
  values_begin();
  for (size_t i = 0; i < found.gl_pathc; i++)
    try_file(found.gl_pathv[i], &t);
  fprintf(stderr, "%s: %d tried, %d computed, %d wrong\n", patterns[_i], t.tried, t.computed, t.wrong);
  ck_assert_int_eq(t.wrong, 0);
  ck_assert_int_gt(t.tried, 20);
  values_end();
  globfree(&found);
  lp_buf_free(&pattern);
}
