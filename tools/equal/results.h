/* Results of comparisons: one for each data set, step or test. */
#pragma once

#include "base/base.h"

typedef enum { LP_VERIFY_PASSED, LP_VERIFY_FAILED, LP_VERIFY_UNSUPPORTED } lp_verify_status;

/* The result of one data set, or of one test of a suite. */
typedef struct {
  char *name, *reason; /* reason NULL when passed */
  char *bound;         /* names of inputs that had to be constants, separated by ", "; NULL: none */
  lp_verify_status status;
  double max_error; /* the greatest difference of a compared float; below 0: none was compared */
} lp_verify_result;

typedef LP_VEC(lp_verify_result) lp_verify_results;

/* Copies the result and its texts. */
void lp_verify_add(lp_verify_results *results, const lp_verify_result *result);
void lp_verify_results_free(lp_verify_results *results);
int64_t lp_verify_count(const lp_verify_results *results, lp_verify_status status);
