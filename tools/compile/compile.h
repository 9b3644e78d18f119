/* Declarations that the files of `llmpart compile` share: its options, and the request that they form. */
#pragma once

#include "base/json/reader.h"
#include "base/side.h"
#include "frontend/frontend.h"
#include "tools/compile/pipeline.h"

typedef struct {
  const lp_tool_voice *voice;
  const char *given;                   /* the model as named: a file, or a folder */
  const char *model, *encoder;         /* its file; the file of its encoder, NULL: none */
  char *found_decoder, *found_encoder; /* owned; `model` and `encoder` may point to them */
  const char *output, *emit, *side;
  double sla_quantile; /* -1: not given */
  const char *device, *cloud, *link, *tokenizer, *depfile, *subgraph;
  /* As the user gave it; NULL: that of the machine. */
  const char *march, *march_side[LP_SIDE_COUNT], *backend[LP_SIDE_COUNT];
  const char *ranks, *interconnect; /* as the user gave them; NULL: not given */
  bool ranks_auto;                  /* --ranks=auto: the planner chooses them */
  const char *measured;             /* the file of a run to compare with; NULL: none */
  lp_json_document *run;            /* what it says, owned */
  bool counts_device;               /* --objective=total-cost */
  char objective[64];               /* the sum that it stands for */
  const char *experts;              /* the file of how often experts are chosen; NULL: none */
  const char *weighs_by;            /* the file of activations by which weights are rounded; NULL: none */
  const char *sign;                 /* the file of a private key; NULL: the bundle is not signed */
  const char *fallback;             /* "cpu": halves for GPUs also get code for their machine's processor; NULL: no */
  bool plan_only, table1, locations, profile, check;
  char code[LP_SIDE_COUNT][96]; /* the texts of request.code */
  bool says_lengths;            /* --isl or --osl was given */
  bool says_tolerance;          /* --tolerance was given */
  char *gguf_companions; /* a temporary folder with the tokenizer and settings of a GGUF file, owned; NULL: none */
  lp_texts reports, bind, pins, adapters, fail_if, places, links;
  struct lp_compile_places *more_places;          /* what --place says, owned; NULL: not given (places.c) */
  bool has_more_places;                           /* more than two */
  const lp_machine *place_machine[LP_PLACES_MAX]; /* of those, once they are loaded; NULL: not the device's */
  const char *place_name[LP_PLACES_MAX];          /* of those */
  /* What --place says of those besides the device; NULL: the options of the cloud apply. */
  const char *place_march[LP_PLACES_MAX], *place_backend[LP_PLACES_MAX], *place_dtype[LP_PLACES_MAX];
  const lp_import_options *import; /* of the model, which --check imports again */
  int64_t private_layers;          /* -1: not given */
  const char *exits_text;          /* as the user gave them */
  bool exits_auto;                 /* --exits=auto: `exits` is chosen from a calibration */
  const char *hot_experts_text;    /* as the user gave it */
  bool hot_experts_auto;           /* --hot-experts=auto: the planner chooses them */
  lp_numbers exits;
  const char *exit_rates,
      *exit_mode;        /* a calibration, or NULL: the file next to the model; NULL: exact when rates are known */
  double theta;          /* -1: not given, 0.8 */
  const char *opt_level; /* a digit */
  int64_t opset;
  lp_pass_flags flags;
  lp_compile_request request;
  lp_machine *device_machine, *cloud_machine; /* owned */
  lp_link *link_model;                        /* owned */
  lp_interconnect *interconnect_model;        /* owned */
  lp_machine all_ranks;                       /* what `cloud_machine` is with ranks; it borrows from it */
} lp_compile;

/* Refuses a weight dtype that is none of --dtype-SIDE's (request.c). */
LP_MUST_USE lp_status lp_compile_check_dtype_name(const char *option, const char *dtype, lp_diag *diag);
/* Loads the machines and the link, and refuses options that contradict each other (request.c). */
LP_MUST_USE lp_status lp_compile_prepare(lp_compile *compile, lp_diag *diag);
/* Sets the request's mode and rates of early exits from --exit-mode and --exit-rates, after lp_compile_prepare
 * (exits.c). */
LP_MUST_USE lp_status lp_compile_read_exits(lp_compile *compile, lp_diag *diag);

/* The mode that --exit-mode names; `otherwise` without one. */
lp_exits_mode lp_compile_exits_mode(const lp_compile *compile, lp_exits_mode otherwise);

/* A calibration that is open for reading: the figures of `llmpart calibrate` (exits.c). */
typedef struct {
  char *path;
  lp_json_document *document;
  lp_json root;
} lp_calibration_file;
/* Opens --exit-rates, or calibration.json beside the model; `path` stays NULL when there is neither. Release with
 * lp_calibration_file_close, also after a failure. */
LP_MUST_USE lp_status lp_calibration_file_open(const lp_compile *compile, lp_calibration_file *out, lp_diag *diag);
void lp_calibration_file_close(lp_calibration_file *file);
/* Appends the layers of its exits, in ascending order. */
LP_MUST_USE lp_status lp_calibration_file_layers(const lp_calibration_file *file, lp_numbers *out, lp_diag *diag);
/* Reads the rates for the last of compile->exits in out->mode, at compile->theta. */
LP_MUST_USE lp_status lp_calibration_file_rates(const lp_calibration_file *file, const lp_compile *compile,
                                                lp_exit_rates *out, lp_diag *diag);
/* The least of its thetas with which the exit after `layer` differs from the full model in at most the calibration's
 * risk, as a share of all tokens. Reports that there is none. */
LP_MUST_USE lp_status lp_calibration_file_theta(const lp_calibration_file *file, int64_t layer, double *out,
                                                lp_diag *diag);

/* For --exits=auto: plans with each exit of the calibration as the last one, and sets the exits, the cut and the rates
 * to those of the best plan (choose.c). In threshold mode also theta, when the user gave none. Notes the
 * choice. */
LP_MUST_USE lp_status lp_compile_choose_exits(lp_compile *compile, const lp_import_options *import, lp_diag *diag);
/* For --hot-experts=auto: plans with mixtures as they are, and with 1, 2, 4, ... of their experts apart, and sets
 * request.hot_experts to that of the best plan. Notes the choice (choose.c). */
LP_MUST_USE lp_status lp_compile_choose_hot_experts(lp_compile *compile, const lp_import_options *import,
                                                    lp_diag *diag);
/* Sets the model's file, and its encoder: the file that --encoder names, or else the encoder in the decoder's folder
 * (request.c). */
LP_MUST_USE lp_status lp_compile_find_model(lp_compile *compile, const char *given, lp_diag *diag);
/* Warns when the lengths of the request exceed the context of the model. The module must have its operators. */
void lp_compile_check_lengths(const lp_compile *compile, const lp_module *module, lp_diag *diag);
/* The path of the output: the value of -o, or a name made from the model's. Release with free(). */
char *lp_compile_output(const lp_compile *compile);
/* The path of a file that belongs to the model: in its folder, or one folder up where exporters put models into
 * `onnx/`. NULL: there is none. Release with free(). */
char *lp_compile_find_companion(const lp_compile *compile, const char *name);
/* The folder of the model's settings; NULL: there are none. Release with free(). */
char *lp_compile_settings(const lp_compile *compile);
/* The tokenizer that the user gave, or the one in the model's folder; NULL: there is none. Release with free(). */
char *lp_compile_tokenizer(const lp_compile *compile);
void lp_compile_release(lp_compile *compile);

/* The backend and processor of one half. */
typedef struct {
  const char *backend, *march; /* names of backend/backend.h */
} lp_half_target;
/* Sets the target of the place's machine, unless options say otherwise (target.c): those of the cloud apply to every
 * place but the device. Reports a --march-SIDE for which the half's backend cannot emit code. */
LP_MUST_USE lp_status lp_compile_target(const lp_compile *compile, lp_place place, lp_half_target *out, lp_diag *diag);
/* Tells whether an option names the processor of the half's code, not the machine. */
bool lp_compile_names_march(const lp_compile *compile, lp_place place, const lp_half_target *half);
/* Reports a processor for which the half's backend emits no code: that of an option, or of the machine. */
LP_MUST_USE lp_status lp_compile_check_march(const lp_compile *compile, lp_place place, const lp_half_target *half,
                                             lp_diag *diag);
/* Tells whether the processor that the half's code is for computes in bf16. */
bool lp_compile_has_bf16(const lp_compile *compile, lp_place place, const lp_half_target *half);
/* Tells whether OpenCL code for the side multiplies halves where the device can: not if the machine's GPU has figures
 * for OpenCL by which floats are as fast. */
bool lp_compile_prefers_halves(const lp_compile *compile, lp_place place);
/* Describes the half's code for the report, as request.code and request.code_is_other. */
void lp_compile_describe_target(lp_compile *compile, lp_place place, const lp_half_target *half);
/* The value that a backend takes for the `march` of the side's code. */
const char *lp_compile_march(const lp_compile *compile, lp_place place, const char *backend);
/* The operating system of the side's machine; NULL when it is unknown, or when options name another processor. */
const char *lp_compile_os(const lp_compile *compile, lp_place place);
/* Notes that the figures of the side's machine describe another processor than the one for which its code is
 * emitted. */
void lp_compile_note_target(const lp_compile *compile, lp_place place, const lp_half_target *half, lp_diag *diag);

/* Tells whether the side computes the operator of an outlined module. */
bool lp_compile_runs_op(const lp_op *op, lp_place place);
/* Refuses --dtype-SIDE=bf16 for a half on a GPU that does not compute in bf16, and names the nearest type. */
LP_MUST_USE lp_status lp_compile_check_dtype(const lp_compile *compile, lp_place place, const lp_half_target *half,
                                             lp_diag *diag);
/* The same, and --kv-dtype=bf16, for a half that runs operators of the outlined module; notes that weights which are
 * bf16 in the model's file are widened there. */
LP_MUST_USE lp_status lp_compile_check_types(const lp_compile *compile, const lp_module *module, lp_place place,
                                             const lp_half_target *half, lp_diag *diag);

struct lp_report;
/* Reads TTFT and TPOT of the run that --measured names, and refuses a run of another plan, prompt length, batch or link
 * than those of the report (measured.c). */
LP_MUST_USE lp_status lp_compile_read_measured(lp_compile *compile, lp_diag *diag);
LP_MUST_USE lp_status lp_compile_check_measured(const lp_compile *compile, const struct lp_report *report,
                                                lp_diag *diag);

/* Reads a file of `llmpart calibrate` with this schema into `out`: the name of a weight -> lp_measured_vector *, the
 * numbers of its `member`, each from 0 to `most`, in the arena (vectors.c). */
LP_MUST_USE lp_status lp_compile_read_vectors(const char *file, const char *schema, const char *member, double most,
                                              lp_arena *arena, lp_map *out, lp_diag *diag);
/* Reads the file of --quantise-activations into `out`: names of weights -> lp_input_squares *, in the arena
 * (activations.c). */
LP_MUST_USE lp_status lp_compile_read_activations(const lp_compile *compile, lp_arena *arena, lp_map *out,
                                                  lp_diag *diag);
/* Refuses a file that names no weight which a side of the outlined module rounds, and notes how many it lacks. */
LP_MUST_USE lp_status lp_compile_check_activations(const lp_compile *compile, const lp_module *module, lp_diag *diag);

/* Writes what the file of --experts says on the lowered module, and divides its mixtures for --hot-experts.
 * Refuses a file that lacks a mixture of the module or has another number of experts, and options for experts where the
 * module has no mixture or the device cannot read experts from storage (experts.c). */
LP_MUST_USE lp_status lp_compile_read_experts(const lp_compile *compile, lp_module *module, lp_diag *diag);

/* The text of a report in a format; with the counting of P1's Table I, or without. */
typedef struct {
  const char *format;
  bool table1;
  lp_buf text;
} lp_compile_text;
/* The reports of a planned module, whose texts are made once (reports.c). Begins with `compile` and `module`. */
typedef struct {
  const lp_compile *compile;
  lp_module *module;
  struct lp_report *report; /* of two places; NULL: not yet made */
  lp_compile_text made[12]; /* at most one for each format, with the table and without */
  size_t count;
} lp_compile_reports;
/* Finds or makes a text, which is valid as long as the reports. It has to be made before the module is split. */
LP_MUST_USE lp_status lp_compile_report_text(lp_compile_reports *reports, const char *format, bool table1,
                                             const lp_buf **out, lp_diag *diag);
/* Makes the texts of --report, writes them, and writes the output of --emit=report. */
LP_MUST_USE lp_status lp_compile_make_reports(lp_compile_reports *reports, lp_diag *diag);
LP_MUST_USE lp_status lp_compile_put_reports(lp_compile_reports *reports, lp_diag *diag);
LP_MUST_USE lp_status lp_compile_put_output_report(lp_compile_reports *reports, lp_diag *diag);
/* Compares the figures of the plan with the expressions of --fail-if. LP_MISMATCH: one holds. */
LP_MUST_USE lp_status lp_compile_check_limits(lp_compile_reports *reports, lp_diag *diag);
void lp_compile_reports_release(lp_compile_reports *reports);

/* Takes --place and --link: sets device, cloud and link of two places, or more_places (places.c). */
LP_MUST_USE lp_status lp_compile_read_places(lp_compile *compile, lp_diag *diag);
/* Loads the machines and links of more than two places, after lp_compile_prepare, and adds them to the request. */
LP_MUST_USE lp_status lp_compile_load_places(lp_compile *compile, lp_diag *diag);
/* Refuses an --emit that more than two places do not have. */
LP_MUST_USE lp_status lp_compile_check_places_output(const lp_compile *compile, lp_diag *diag);
void lp_compile_release_places(lp_compile *compile);

/* Tells whether this output needs weights (a bundle, code) or only the graph. */
bool lp_compile_reads_weights(const lp_compile *compile);
/* Runs the passes from an imported module to the form that --emit names, and writes the output and the reports
 * (emit.c). */
LP_MUST_USE lp_status lp_compile_emit(const lp_compile *compile, lp_module *module, lp_diag *diag);

/* With -MD, writes a make rule by which the output depends on the model, its data files and all other files that were
 * read (dependencies.c). */
LP_MUST_USE lp_status lp_compile_write_dependencies(const lp_compile *compile, const lp_module *module, lp_diag *diag);
