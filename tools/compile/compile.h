/* What the files of `llmpart compile` share: its options as read, and the request they make. */
#ifndef LP_TOOLS_COMPILE_H
#define LP_TOOLS_COMPILE_H

#include "base/side.h"
#include "tools/compile/pipeline.h"

typedef struct {
  const char *model, *output, *emit, *side;
  const char *device, *cloud, *link, *tokenizer, *depfile, *subgraph;
  const char *march, *march_side[LP_SIDE_COUNT], *backend[LP_SIDE_COUNT]; /* as given; NULL: the machine's */
  bool plan_only, table1, locations, profile, check;
  bool says_lengths; /* --isl or --osl was given */
  char *beside;      /* owned: a temporary folder of what a GGUF file holds beside the graph; NULL: none */
  lp_texts reports, bind, pins;
  int64_t private_layers; /* -1: not asked for */
  lp_numbers exits;
  const char *exit_rates,
      *exit_mode; /* a calibration; NULL: the one beside the model. NULL: exact where rates are known */
  double theta;
  const char *opt_level; /* a digit */
  int64_t opset;
  lp_pass_flags flags;
  lp_compile_request request;
  lp_machine *device_machine, *cloud_machine; /* owned */
  lp_link *link_model;                        /* owned */
} lp_compile;

/* Loads the machines and the link and checks what was asked for together (request.c). */
LP_MUST_USE lp_status lp_compile_prepare(lp_compile *compile, lp_diag *diag);
/* Sets the request's mode and rates of early exits from --exit-mode and --exit-rates, after lp_compile_prepare
 * (exits.c). */
LP_MUST_USE lp_status lp_compile_read_exits(lp_compile *compile, lp_diag *diag);
/* Warns where the lengths that were asked for exceed the context of the model; its operators are there. */
void lp_compile_check_lengths(const lp_compile *compile, const lp_module *module, lp_diag *diag);
/* Where the output goes: what -o says, or a name made of the model's. Release with free(). */
char *lp_compile_output(const lp_compile *compile);
/* Where a file that belongs to the model is: beside it, or a folder up where exporters put models into `onnx/`. NULL:
 * there is none. Release with free(). */
char *lp_compile_find_beside(const lp_compile *compile, const char *name);
/* The folder of the model's settings; NULL: there are none. Release with free(). */
char *lp_compile_settings(const lp_compile *compile);
/* The tokenizer that was asked for, or the one beside the model; NULL: there is none. Release with free(). */
char *lp_compile_tokenizer(const lp_compile *compile);
void lp_compile_release(lp_compile *compile);

/* What one half is emitted for. */
typedef struct {
  const char *backend, *march; /* names of backend/backend.h */
} lp_half_target;
/* What the machine of the side runs, unless options say otherwise (target.c). Reports a --march-SIDE that the half's
 * backend cannot emit code for. */
LP_MUST_USE lp_status lp_compile_target(const lp_compile *compile, lp_side side, lp_half_target *out, lp_diag *diag);
/* What a backend takes for the `march` of the side's code. */
const char *lp_compile_march(const lp_compile *compile, lp_side side, const char *backend);
/* The operating system of the side's machine; NULL: unknown, or options name another processor. */
const char *lp_compile_os(const lp_compile *compile, lp_side side);
/* Notes that the figures of the side's machine describe another processor than the one that its code is for. */
void lp_compile_note_target(const lp_compile *compile, lp_side side, const lp_half_target *half, lp_diag *diag);

/* Tells whether this output needs weights (a bundle, code) or only the graph. */
bool lp_compile_reads_weights(const lp_compile *compile);
/* From an imported module to what --emit names, and the reports (emit.c). */
LP_MUST_USE lp_status lp_compile_emit(const lp_compile *compile, lp_module *module, lp_diag *diag);

/* With -MD: a make rule, by which the output depends on the model, its data files and what else was read
 * (dependencies.c). */
LP_MUST_USE lp_status lp_compile_write_dependencies(const lp_compile *compile, const lp_module *module, lp_diag *diag);

#endif
