/* Prints the results of `llmpart run`. */
#ifndef LP_TOOLS_RUN_PRINT_H
#define LP_TOOLS_RUN_PRINT_H

#include "runtime/runtime.h"

/* JSON, schema llmpart.run/1. */
void lp_run_print_json(const lp_bundle *bundle, const lp_generation *made, int64_t prompt_tokens, lp_buf *out);
/* Prints the text of a sequence, or ids when the bundle has no tokenizer. */
void lp_run_print_text(const lp_bundle *bundle, const lp_generation *made, int64_t sequence, lp_buf *out);
/* Prints times, bytes and places for people. */
void lp_run_print_stats(const lp_bundle *bundle, const lp_generation *made, int64_t prompt_tokens, lp_buf *out);
/* Prints TTFT and TPOT as the report in the bundle predicts them for its own prompt and link; nothing where the bundle
 * has no report. */
void lp_run_print_prediction(const char *bundle, lp_buf *out);

#endif
