/* Lists of results. */
#include "tools/equal/results.h"

#include <stdlib.h>

static char *copy(const char *text) {
  return text ? lp_strdup(text) : NULL;
}

void lp_verify_add(lp_verify_results *results, const lp_verify_result *result) {
  lp_verify_result own = {copy(result->name), copy(result->reason), copy(result->bound), result->status,
                          result->max_error};
  lp_vec_push(results, own);
}

void lp_verify_results_free(lp_verify_results *results) {
  for (size_t i = 0; i < results->count; i++) {
    free(results->data[i].name);
    free(results->data[i].reason);
    free(results->data[i].bound);
  }
  lp_vec_free(results);
}

int64_t lp_verify_count(const lp_verify_results *results, lp_verify_status status) {
  int64_t count = 0;
  for (size_t i = 0; i < results->count; i++)
    count += results->data[i].status == status;
  return count;
}
