/* The report as data, and its formats. */
#ifndef LP_PASSES_REPORT_INTERNAL_H
#define LP_PASSES_REPORT_INTERNAL_H

#include "base/json/writer.h"
#include "base/side.h"
#include "passes/plan/family/family.h"

/* A plan to compare with. */
typedef struct {
  const char *name; /* "cloud_only" */
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_result result;
} lp_report_baseline;

/* A change that by itself makes an infeasible request feasible. */
typedef struct {
  const char *name; /* "tpot_ms", "rtt_ms", "up_bps", "device_memory_bytes": the unit is in it */
  double from, to;
  const char *from_text, *to_text; /* where the figure is not a number: "dtype_device" */
} lp_report_fix;

/* One operator as it runs; a free one appears once for each side that computes it. */
typedef struct {
  const lp_plan_op *op;
  lp_stage stage;
  lp_side side;
} lp_report_operator;

typedef struct {
  lp_module *module;
  const lp_compile_request *request;
  lp_compile_request full; /* the same, and the cloud is asked for every token: of all plans but the one with exits */
  lp_arena *arena;
  bool table1;
  const char *scheduler, *name;
  int64_t params;
  double weight_bytes; /* as in the file */
  lp_plan_problem problem[LP_STAGE_COUNT];
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_result plan;
  lp_plan_proof proof;
  lp_report_baseline baselines[4];
  int32_t baseline_count;
  lp_report_baseline faster; /* much faster than the plan and hardly worse; no name: none was found */
  lp_report_fix fixes[8];
  int32_t fix_count;
  lp_plan_family family;   /* count 1: no family */
  lp_plan_result *of_plan; /* [family.count] each at the request itself */
  double decrement;        /* 1 - cost / cost of cloud-only; NaN without such a plan */
  lp_report_operator *operators;
  int32_t operator_count;
} lp_report;

/* One row of P1's Table I at the workload. */
typedef struct {
  const char *name, *stage;
  int64_t k, n; /* of linear operators */
  double ops, elements;
} lp_table1_row;
/* Distinct rows, in program order (table1.c). Returns their number, at most `most`. */
int32_t lp_table1_rows(const lp_report *report, lp_table1_row *rows, int32_t most);

/* The smallest single changes that make the request feasible with its scheduler (fixes.c). */
int32_t lp_plan_fixes(lp_module *module, const lp_plan_problem problem[LP_STAGE_COUNT], const char *scheduler,
                      const lp_compile_request *request, lp_report_fix *fixes, int32_t most);

/* Sets report->faster from the plan and its baselines (faster.c). */
void lp_report_find_faster(lp_report *report);
/* What the plan saves over the faster one, as a share of that one's objective. */
double lp_report_saving(const lp_report *report);

/* A stretch of layers whose operators are placed alike. */
typedef struct {
  int32_t first, last; /* layers; -1 is before the first, layer_count after the last */
  int32_t device_ops, cloud_ops;
  double device_ms, cloud_ms;
  const char *what; /* for mixed layers: which kinds run where; NULL otherwise */
} lp_report_range;
/* Ranges of a stage, in order (ranges.c). */
int32_t lp_report_ranges(const lp_report *report, lp_stage stage, lp_report_range **out);
/* "embedding", "layers 0-11", "head" */
const char *lp_report_range_name(const lp_report *report, const lp_report_range *range, char out[48]);

/* The member `certificate`: the problem and the prices, enough to confirm the plan without the planner
 * (certificate.c). */
void lp_report_certificate(const lp_report *report, lp_json_writer *json);

void lp_report_text(const lp_report *report, lp_buf *out);
void lp_report_json(const lp_report *report, lp_buf *out);
void lp_report_html(const lp_report *report, lp_buf *out);

#endif
