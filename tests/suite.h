/* suite: tests that register themselves. A test program is one or more files of tests; tests/suite.c holds its main.
 *
 *   LP_CASE(.setup = create, .teardown = destroy, .timeout = 120);
 *   LP_TEST(empty_text_is_refused) { ck_assert_int_eq(...); }
 *   LP_LOOP_TEST(codec_round_trip, 0, LP_CODEC_COUNT) { ... the body reads the loop's value as _i ... }
 *   LP_SIGNAL_TEST(overflow_aborts, SIGABRT) { ... }
 *
 * No list names the tests, so that none can be forgotten. Check runs each in a process of its own and reads its own
 * variables: CK_VERBOSITY, CK_FORK, CK_TIMEOUT_MULTIPLIER and CK_RUN_CASE, where a case is one file: CK_RUN_CASE=poly
 * runs test_poly.c. */
#ifndef LP_TESTS_SUITE_H
#define LP_TESTS_SUITE_H

#include <check.h>
#include <signal.h>
#include <stdbool.h>

/* A test, run once for each value of `first` <= _i < `end`; it passes when it ends with `signal` (0: returns). */
typedef struct lp_test {
  TTest test;
  int signal, first, end;
  struct lp_test *next;
} lp_test;

/* Settings of all tests of a file. The functions run before and after each test, in the test's process. */
typedef struct {
  void (*setup)(void);
  void (*teardown)(void);
  double timeout; /* seconds for one test; 0: 120 */
} lp_case;

typedef struct lp_case_of {
  const char *file;
  lp_case options;
  struct lp_case_of *next;
} lp_case_of;

/* Says why the program's tests cannot run on this machine, or returns NULL. main then prints it and exits with status
 * 77. */
typedef const char *lp_skip_reason(void);

/* Tells whether this run includes the part "quick", "long" or "soak". ctest runs the other parts as separate tests and
 * sets LP_PART to the name of the part; without it a run includes all. */
bool lp_part(const char *part);

/* The CPU time of this process so far, in milliseconds: for bounds on work, which a busy machine must not break. */
double lp_suite_cpu_ms(void);

/* For the macros only. They run before main; the entries live as long as the program. */
void lp_test_register(lp_test *test);
void lp_case_register(lp_case_of *options);
void lp_skip_register(lp_skip_reason *reason);

#define LP_TEST(name) LP_LOOP_TEST(name, 0, 1)
#define LP_LOOP_TEST(name, first, end) LP_TEST_ENTRY(name, 0, (int)(first), (int)(end))
#define LP_SIGNAL_TEST(name, signal) LP_TEST_ENTRY(name, signal, 0, 1)

#define LP_TEST_ENTRY(name, signal, first, end)                                                                        \
  static void name##_fn(int _i);                                                                                       \
  static lp_test name##_entry = {{#name, name##_fn, __FILE__, __LINE__}, signal, first, end, NULL};                    \
  __attribute__((constructor)) static void name##_register(void) {                                                     \
    lp_test_register(&name##_entry);                                                                                   \
  }                                                                                                                    \
  static void name##_fn(__attribute__((unused)) int _i)

/* Sets fields of lp_case for the tests of this file; at most once in a file. */
#define LP_CASE(...)                                                                                                   \
  __attribute__((constructor)) static void lp_case_of_this_file(void) {                                                \
    static lp_case_of entry = {__FILE__, {__VA_ARGS__}, NULL};                                                         \
    lp_case_register(&entry);                                                                                          \
  }                                                                                                                    \
  struct lp_test /* takes the semicolon */

/* Asks `reason` (lp_skip_reason) before any test of the program runs; at most once in a program. */
#define LP_SKIP_IF(reason)                                                                                             \
  __attribute__((constructor)) static void lp_skip_of_this_program(void) {                                             \
    lp_skip_register(reason);                                                                                          \
  }                                                                                                                    \
  struct lp_test /* takes the semicolon */

#endif
