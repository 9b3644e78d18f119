/* Declarations that the files of `llmpart verify` share.
 *
 * verify.c   options, and the choice of models       model.c    one model and its data sets
 * suite.c    a folder of tests, in processes     report.c   results as text and json
 * compile.c  a model, unchanged or bound          compare.c  results against expectations
 */
#pragma once

#include "tools/equal/results.h"
#include "tools/tools.h"
#include "tools/verify/compare.h"

typedef struct {
  const char *test_data, *suite, *tests, *split, *march, *opt_level, *output, *against;
  lp_tolerance tolerance;
  int64_t threads, jobs;
  double time_limit_ms; /* for one test of a suite */
  lp_texts bind;        /* NAME=VALUE */
  bool shows_progress;
} lp_verify_options;

/* Prints on stdout in the form of options->output. */
LP_MUST_USE lp_status lp_verify_report(const lp_verify_results *results, const char *output, lp_diag *diag);

/* Compiles the model into a folder below `temporary` and runs each data set: one result per set. When a size depends on
 * inputs, the model is compiled again for each set with these inputs bound to the set's values. A model that cannot be
 * compiled is an error in `diag` and gives no result. */
LP_MUST_USE lp_status lp_verify_model(const char *model, const char *test_data, const char *temporary,
                                      const lp_verify_options *options, lp_verify_results *results, lp_diag *diag);
/* Compiles the model to generate and compares its steps with the graph's own (tools/equal/): one result per step. */
LP_MUST_USE lp_status lp_verify_against(const char *model, const char *temporary, const lp_verify_options *options,
                                        lp_verify_results *results, lp_diag *diag);
/* The text of the first error reported since `from`; release with free(). */
char *lp_verify_first_error(const lp_diag *diag, size_t from);

/* Runs every folder below options->suite that holds a model as a test, in its own process: one result per test, in
 * order of their names, which are paths below the suite. */
LP_MUST_USE lp_status lp_verify_suite(const lp_verify_options *options, lp_verify_results *results, lp_diag *diag);
