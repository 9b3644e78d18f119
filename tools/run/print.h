/* Prints the results of `llmpart run`. */
#pragma once

#include "base/json/writer.h"
#include "runtime/runtime.h"

/* What is known of the link that a run was made over. NaN: a figure is unknown, or nothing limits it. */
typedef enum { LP_RUN_NO_LINK, LP_RUN_LOOPBACK, LP_RUN_EMULATED, LP_RUN_NETWORK } lp_run_link_kind;
typedef struct {
  lp_run_link_kind kind;
  bool measured; /* after the run; else the figures are those of --link */
  double rtt_ms, up_bps, down_bps;
} lp_run_link;

/* The report in a bundle; nothing is printed of it where the bundle has none (predicted.c). */
typedef struct lp_run_planned lp_run_planned;
LP_NEVER_NULL lp_run_planned *lp_run_planned_open(const char *bundle);
void lp_run_planned_close(lp_run_planned *planned); /* NULL is allowed */
/* Writes the member `planned`, by which `compile --measured` knows the plan, and the member `link`. */
void lp_run_planned_json(const lp_run_planned *planned, lp_json_writer *json);
void lp_run_link_json(const lp_run_link *link, lp_json_writer *json);

/* JSON, schema llmpart.run/1. */
void lp_run_print_json(const lp_bundle *bundle, const lp_generation *made, int64_t prompt_tokens,
                       const lp_run_planned *planned, const lp_run_link *link, lp_buf *out);
/* Prints the text of a sequence, or ids when the bundle has no tokenizer. */
void lp_run_print_text(const lp_bundle *bundle, const lp_generation *made, int64_t sequence, lp_buf *out);
/* Prints times, bytes and places for people. */
void lp_run_print_stats(const lp_bundle *bundle, const lp_generation *made, int64_t prompt_tokens, lp_buf *out);
/* Prints TTFT and TPOT as the plan predicts them for the run's prompt, tokens and link. Nothing of a plan with early
 * exits, which depend on the text. */
void lp_run_print_prediction(const lp_run_planned *planned, const lp_generation *made, int64_t prompt_tokens,
                             const lp_run_link *link, lp_buf *out);
