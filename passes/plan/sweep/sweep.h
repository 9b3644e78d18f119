/* Sweeps: plans a model at every combination of machines, links, workloads, SLAs, types, schedulers and sessions.
 *
 * Costs are closed forms of the model (plan/forms.h). They are made once, priced once for each combination of
 * machines, types, workload and sessions, and evaluated for each link, SLA and placement. Rows have a fixed order,
 * whichever thread or run computed them. This room reads YAML and writes tables; it knows no ONNX: the caller provides
 * the module. */
#pragma once

#include "base/peers.h"
#include "base/side.h"
#include "base/yaml/yaml.h"
#include "passes/decoder.h"
#include "passes/plan/plan.h"

/* ---- the specification (spec.c) ---------------------------------------------------------------------------------- */

typedef struct {
  const char *name[LP_SIDE_COUNT]; /* as the file has them */
  lp_machine *machine[LP_SIDE_COUNT];
} lp_sweep_machines;
typedef struct {
  const char *name;
  lp_link *link;
} lp_sweep_link;
typedef struct {
  int64_t isl, osl, batch;
} lp_sweep_workload;
typedef struct {
  double ttft_ms, tpot_ms; /* 0: none */
} lp_sweep_sla;
typedef struct {
  const char *dtype[LP_SIDE_COUNT]; /* NULL: as in the model */
} lp_sweep_dtypes;

/* The axes, slowest first. */
typedef enum {
  LP_SWEEP_MACHINES,
  LP_SWEEP_LINKS,
  LP_SWEEP_WORKLOADS,
  LP_SWEEP_SLAS,
  LP_SWEEP_DTYPES,
  LP_SWEEP_SCHEDULERS,
  LP_SWEEP_SESSIONS,
  LP_SWEEP_AXES
} lp_sweep_axis;

typedef struct {
  lp_arena *arena;
  const char *path;
  const char *model;        /* path of the ONNX file, relative to the working directory; NULL: the decoder */
  lp_decoder_shape decoder; /* layers 0: none */
  lp_loc model_loc;         /* the value of `model` or `decoder` */
  size_t count[LP_SWEEP_AXES], rows;
  LP_VEC(lp_sweep_machines) machines;
  LP_VEC(lp_sweep_link) links;
  LP_VEC(lp_sweep_workload) workloads;
  LP_VEC(lp_sweep_sla) slas;
  LP_VEC(lp_sweep_dtypes) dtypes;
  LP_VEC(const char *) schedulers;
  LP_VEC(int64_t) sessions;
  LP_VEC(lp_machine *) loaded; /* all machines, owned */
  const char *objective, *kv_dtype;
  bool ranks_by_total;   /* the cost of the fronts is LP_SWEEP_TOTAL_PER_MTOK, not LP_SWEEP_COST_PER_MTOK */
  int64_t device_memory; /* 0: the machine's */
  double sla_quantile;   /* for which links that vary are planned; 0: lp_link_quantile_default */
} lp_sweep_spec;

/* Loads the link of a text, as lp_link_load does. */
typedef lp_status lp_sweep_link_loader(const char *text, lp_link **out, lp_diag *diag);

/* Paths in the file are relative to its folder. `load_link` loads its links; NULL: lp_link_load. Errors name file, line
 * and column. Release the specification in every case. */
LP_MUST_USE lp_status lp_sweep_spec_read(const char *path, lp_sweep_link_loader *load_link, lp_sweep_spec *out,
                                         lp_diag *diag);
void lp_sweep_spec_free(lp_sweep_spec *spec);
/* The request of a row; `at` gets its index on each axis. */
lp_compile_request lp_sweep_request(const lp_sweep_spec *spec, size_t row, size_t at[LP_SWEEP_AXES]);

/* ---- values of such files, which other specifications have too (spec.c) ------------------------------------------ */

/* Reports, at the value of `key`, the errors of a reader of another text, and frees them; LP_FAILED. */
lp_status lp_sweep_relay(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, lp_diag *inner);
/* The text of a machine or link, "NAME[,FIGURE=VALUE]"; a path in it becomes relative to the file's folder. */
const char *lp_sweep_path(const lp_yaml *yaml, const char *text);
/* Reads `model`, a path, or `decoder`, a shape, of which the file `root` has one; the other one is NULL. *loc: its
 * place. */
LP_MUST_USE lp_status lp_sweep_model(lp_yaml *yaml, const lp_yaml_node *root, const lp_yaml_node *model,
                                     const lp_yaml_node *decoder, const char **path, lp_decoder_shape *shape,
                                     lp_loc *loc);

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Numbers of a row. */
typedef enum {
  LP_SWEEP_TTFT,
  LP_SWEEP_TPOT,
  LP_SWEEP_E2E,
  LP_SWEEP_COST,
  LP_SWEEP_COST_PER_MTOK,
  LP_SWEEP_DECREMENT, /* 1 - cost / cost of cloud-only; NaN when that costs nothing */
  LP_SWEEP_GAP,       /* the gap between plan and lower bound; NaN when no bound is proved */
  LP_SWEEP_ENERGY,
  LP_SWEEP_CLOUD_BUSY,
  LP_SWEEP_DEVICE_BUSY,
  LP_SWEEP_BYTES_UP,
  LP_SWEEP_BYTES_DOWN,
  LP_SWEEP_MESSAGES_DECODE,
  LP_SWEEP_DEVICE_WEIGHTS,
  LP_SWEEP_CLOUD_WEIGHTS,
  LP_SWEEP_DEVICE_MEMORY,
  LP_SWEEP_CLOUD_MEMORY,
  LP_SWEEP_DEVICE_ENERGY, /* this and the next ones: lp_plan_device; NaN when a file lacks a figure */
  LP_SWEEP_CLOUD_ENERGY,
  LP_SWEEP_DEVICE_COST,
  LP_SWEEP_TOTAL_COST,
  LP_SWEEP_TOTAL_PER_MTOK,
  LP_SWEEP_NUMBERS
} lp_sweep_number;

typedef struct {
  bool done, feasible;
  bool on_front[2]; /* of the cost per token that ranks rows against TPOT, and against TTFT, within its workload */
  lp_plan_limit binding;
  double number[LP_SWEEP_NUMBERS];
} lp_sweep_row;

typedef struct {
  lp_sweep_row *row; /* [spec->rows] */
  size_t rows;       /* number of rows that are done: all, or those of the shard */
  size_t resumed;    /* number of rows that the journal had */
  uint64_t evaluations;
  double ms; /* the times of all threads, added up */
} lp_sweep_result;

/* ---- running (sweep.c) ------------------------------------------------------------------------------------------- */

/* Shard `index`, from 1, of `count` parts of a sweep. Each row belongs to one shard, which depends on the axes' sizes,
 * the row and the count only. */
typedef struct {
  int32_t index, count; /* count 0: the whole sweep */
} lp_sweep_shard;

typedef struct {
  int32_t threads; /* 0: the machine's cores; one with peers */
  /* Processes that compute the sweep together: process 0 has the journal and the whole result. NULL: this process
   * computes all rows. */
  const lp_peers *peers;
  /* The journal's file: its rows are not computed again, finished rows are added; NULL: no journal. */
  const char *journal;
  bool journal_is_ours; /* the path is a default: when it cannot be written, that is a warning */
  lp_sweep_shard shard; /* the rows to compute */
  /* Called about ten times a second, from one thread at a time. NULL: quiet. */
  void (*progress)(void *user, size_t done, size_t rows, uint64_t evaluations, double ms);
  void *user;
} lp_sweep_options;

/* `module` is at least lowered. Rows in spec order; release with lp_sweep_result_free. An SLA that no plan meets is
 * marked in its row and is not an error. Of a shard only its own rows are done, and no fronts are marked. */
LP_MUST_USE lp_status lp_sweep_run(const lp_sweep_spec *spec, lp_module *module, const lp_sweep_options *options,
                                   lp_sweep_result *out, lp_diag *diag);
/* Makes the result of the whole sweep from the journals of its shards, `count` files; release it in every case. Refuses
 * files of another sweep or version, rows that two files have, and rows that none has. */
LP_MUST_USE lp_status lp_sweep_merge(const lp_sweep_spec *spec, const lp_module *module, const char *const *files,
                                     size_t count, lp_sweep_result *out, lp_diag *diag);
void lp_sweep_result_free(lp_sweep_result *result);

/* ---- tables (table.c, html.c) ------------------------------------------------------------------------------------ */

/* Formats: csv, json (schema llmpart.sweep/1), html. */
LP_MUST_USE lp_status lp_sweep_write(const lp_sweep_spec *spec, const lp_sweep_result *result, const char *format,
                                     lp_buf *out, lp_diag *diag);
