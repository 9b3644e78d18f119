/* The report as data, and its formats. */
#pragma once

#include "base/json/writer.h"
#include "base/side.h"
#include "passes/plan/family/family.h"

/* A plan to compare with. */
typedef struct {
  const char *name; /* "cloud_only" */
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_result result;
} lp_report_baseline;

/* A change of one figure that makes an infeasible request feasible. */
typedef struct {
  const char *name; /* "tpot_ms", "rtt_ms", "up_bps", "device_memory_bytes": the unit is in it */
  double from, to;
  const char *from_text, *to_text; /* the text of a figure that is not a number: "dtype_device" */
} lp_report_fix;

/* One operator as it runs; a free one appears once for each side that computes it. */
typedef struct {
  const lp_plan_op *op;
  lp_stage stage;
  lp_side side;
} lp_report_operator;

/* The model. The name is in the arena; bytes are those of the file. */
typedef struct {
  const char *name;
  int64_t params;
  int32_t layers;
  double weight_bytes;
} lp_report_model;
lp_report_model lp_report_model_of(const lp_module *module, int32_t layers, lp_arena *arena);

/* Products of `size` columns (`heads` 0), or attentions of `heads` heads and `size` KV heads. */
typedef struct {
  const lp_op *first; /* in the order of the model */
  int32_t count;
  int64_t heads, size;
} lp_report_whole_group;
/* What each rank of the cloud computes as a whole, because the ranks do not divide it. Norms and other operators that
 * are never divided do not count. */
typedef struct {
  double share; /* of the arithmetic of products and attentions, over the request; 0: everything is divided */
  lp_report_whole_group group[16];
  int32_t group_count;
  int64_t better[LP_MOST_RANKS]; /* the numbers of ranks that leave the least whole, less than these */
  int32_t better_count;
  double better_share; /* what those leave whole */
} lp_report_whole;

struct lp_report {
  lp_module *module;
  const lp_compile_request *request;
  /* The request without early exits: the cloud computes every token. It applies to all plans but the one with exits. */
  lp_compile_request full;
  lp_arena *arena;
  bool table1;
  const char *scheduler;
  lp_report_model model;
  lp_plan_problem problem[LP_STAGE_COUNT];
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_result plan;
  double probability; /* that the plan meets the SLA, over the states of the link; NaN: the link does not vary */
  lp_plan_proof proof;
  lp_report_baseline baselines[4];
  int32_t baseline_count;
  lp_report_baseline cheapest; /* the best plan found, if the tolerance allowed a faster one; without a name: none */
  lp_report_baseline faster;   /* a plan that is much faster and hardly worse; without a name: none was found */
  lp_report_fix fixes[9];
  int32_t fix_count;
  lp_plan_family family;   /* a count of 1 means no family */
  lp_plan_result *of_plan; /* [family.count] the result of each plan for the request itself */
  double decrement;        /* 1 - cost / cost of cloud-only; NaN without such a plan */
  lp_report_operator *operators;
  int32_t operator_count;
  lp_report_whole whole;
  lp_certificate *certificate; /* NULL: not yet made, or there is none */
};

/* The share of a side's time in the request that comes from measured operators; the rest is the roofline's. NaN: the
 * side computes nothing. */
double lp_report_measured_share(const lp_report *report, lp_side side);

/* The time to the first token of a request that comes when both sides begin, with their weights in storage (LP_HW_LOAD_
 * BANDWIDTH). Sides load at the same time. A processor computes while its weights come, because pages of a mapped file
 * load when they are read, and its first token waits for the last of them (the runtime compares checksums); a GPU
 * computes after they came. NaN: a machine that has weights lacks the figure. */
double lp_report_cold_ttft(const lp_report *report);
/* The device's energy for that request: it loads at its busy power, and waits while only the cloud loads. */
double lp_report_cold_energy(const lp_report *report);

/* One row of P1's Table I at the workload. */
typedef struct {
  const char *name, *stage;
  int64_t k, n; /* of linear operators */
  double ops, elements;
} lp_table1_row;
/* Fills the distinct rows, in program order (table1.c), and returns their number, at most `most`. */
int32_t lp_table1_rows(const lp_report *report, lp_table1_row *rows, int32_t most);

/* The smallest single changes that make the request feasible with its scheduler (fixes.c). */
int32_t lp_plan_fixes(lp_module *module, const lp_plan_problem problem[LP_STAGE_COUNT], const char *scheduler,
                      const lp_compile_request *request, lp_report_fix *fixes, int32_t most);

/* Sets report->faster from the plan and its baselines (faster.c). */
void lp_report_find_faster(lp_report *report);
/* The share of the faster plan's objective that the plan saves. */
double lp_report_saving(const lp_report *report);

/* The front of cost against time, if the request has one: lines of text, and the member `front` (front.c). */
void lp_report_front_text(const lp_report *report, lp_buf *out);
void lp_report_front_json(const lp_report *report, lp_json_writer *json);
/* Appends ", and is 1.4 times slower ..": the plan's times beside those of the cloud alone, if the request has a
 * front. */
void lp_report_times_beside_cloud(const lp_report *report, lp_buf *out);

/* A run of layers with equal placements of their operators. */
typedef struct {
  int32_t first, last; /* layers; -1 is before the first, layer_count after the last */
  int32_t device_ops, cloud_ops;
  double device_ms, cloud_ms;
  const char *what; /* for mixed layers: the kinds on each side; NULL otherwise */
} lp_report_range;
/* Ranges of a stage, in order (ranges.c). */
int32_t lp_report_ranges(const lp_report *report, lp_stage stage, lp_report_range **out);
/* "embedding", "layers 0-11", "head" */
const char *lp_report_range_name(const lp_report *report, const lp_report_range *range, char out[48]);

/* Writes the member `certificate`, from which others confirm the plan without the planner (certificate.c). */
void lp_report_certificate_json(const lp_report *report, lp_json_writer *json);

/* Writes the member `predictions`: the parts of TTFT and TPOT of each plan at other lengths (predictions.c). */
void lp_report_predictions_json(const lp_report *report, lp_json_writer *json);

/* Finds what the ranks do not divide, and warns of it where other numbers of ranks divide more (ranks.c). */
void lp_report_find_whole(lp_report *report, lp_diag *diag);
/* The ranks of a sharded half, their interconnect, and what their gathers take of TTFT and TPOT, and what they do not
 * divide: the member `ranks`, and lines of text. Nothing for one rank that the user did not leave to the planner. */
void lp_report_ranks_json(const lp_report *report, lp_json_writer *json);
void lp_report_ranks_text(const lp_report *report, lp_buf *out);

/* Writes a text as a field of CSV (RFC 4180). */
void lp_report_csv_field(const char *text, lp_buf *out);
/* "layers 0-11", "head"; "embedding" before the first of `layers`. */
const char *lp_report_layers_name(int32_t first, int32_t last, int32_t layers, char out[48]);
/* Writes the member `model`. */
void lp_report_model_json(const lp_report_model *model, lp_json_writer *json);
/* Appends the line of the workload, and "SLA ...", which does not end its line. */
void lp_report_workload_text(const lp_compile_request *request, lp_buf *out);
void lp_report_sla_text(const lp_compile_request *request, lp_buf *out);
/* Writes the members `workload` and `sla`. */
void lp_report_request(const lp_compile_request *request, lp_json_writer *json);
void lp_report_text(const lp_report *report, lp_buf *out);
void lp_report_line(const lp_report *report, lp_buf *out); /* without a newline */
void lp_report_json(const lp_report *report, lp_buf *out);
void lp_report_html(const lp_report *report, lp_buf *out);
