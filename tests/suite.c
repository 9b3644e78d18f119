/* suite: collects the tests that files registered and runs them, one Check case per file in order of file and line. */
#include "tests/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SKIPPED = 77, TIMEOUT_S = 120, MOST_CASES = 64 }; /* Check's own 4 seconds are too few on a busy machine */

static lp_test *tests; /* sorted */
static lp_case_of *cases;
static lp_skip_reason *skip_reason;

static int compare(const TTest *a, const TTest *b) {
  int order = strcmp(a->file, b->file);
  return order != 0 ? order : a->line - b->line;
}

void lp_test_register(lp_test *test) {
  lp_test **at = &tests;
  while (*at && compare(&(*at)->test, &test->test) < 0)
    at = &(*at)->next;
  test->next = *at;
  *at = test;
}

void lp_case_register(lp_case_of *options) {
  options->next = cases;
  cases = options;
}

void lp_skip_register(lp_skip_reason *reason) {
  skip_reason = reason;
}

bool lp_part(const char *part) {
  const char *wanted = getenv("LP_PART");
  return !wanted || strcmp(wanted, part) == 0;
}

double lp_suite_cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* "tests/base/test_poly.c" as "poly", in `name` (64 bytes). */
static void case_name(const char *file, char name[64]) {
  const char *slash = strrchr(file, '/'), *start = slash ? slash + 1 : file;
  if (strncmp(start, "test_", 5) == 0) start += 5;
  snprintf(name, 64, "%.*s", (int)strcspn(start, "."), start);
}

/* Check keeps the pointer to the name that it is given. */
static TCase *create_case(const char *file) {
  static const lp_case defaults;
  static char names[MOST_CASES][64];
  static size_t count;
  const lp_case *options = &defaults;
  if (count == MOST_CASES) abort(); /* a program of more files raises the limit */
  char *kept = names[count++];
  case_name(file, kept);
  for (const lp_case_of *entry = cases; entry; entry = entry->next)
    if (strcmp(entry->file, file) == 0) options = &entry->options;
  TCase *tcase = tcase_create(kept);
  tcase_set_timeout(tcase, options->timeout > 0 ? options->timeout : (double)TIMEOUT_S);
  if (options->setup || options->teardown) tcase_add_checked_fixture(tcase, options->setup, options->teardown);
  return tcase;
}

static Suite *create_suite(const char *name) {
  Suite *suite = suite_create(name);
  TCase *tcase = NULL;
  const char *file = "";
  for (const lp_test *test = tests; test; test = test->next) {
    if (strcmp(file, test->test.file) != 0) {
      file = test->test.file;
      tcase = create_case(file);
      suite_add_tcase(suite, tcase);
    }
    _tcase_add_test(tcase, &test->test, test->signal, 0, test->first, test->end);
  }
  return suite;
}

int main(void) {
  const char *why = skip_reason ? skip_reason() : NULL;
  if (why) {
    printf("skipped: %s\n", why);
    return SKIPPED;
  }
  if (!tests) {
    fprintf(stderr, "%s: no test is registered\n", program_invocation_short_name);
    return EXIT_FAILURE;
  }
  SRunner *runner = srunner_create(create_suite(program_invocation_short_name));
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
