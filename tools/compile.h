/* What the files of `llmpart compile` share: its options as read, and the request they make. */
#ifndef LP_TOOLS_COMPILE_H
#define LP_TOOLS_COMPILE_H

#include "tools/pipeline.h"

typedef struct {
  const char *model, *output, *emit, *side, *backend_device, *backend_cloud;
  const char *device, *cloud, *link, *march, *tokenizer, *depfile, *subgraph;
  bool plan_only, table1, locations, profile;
  bool says_lengths; /* --isl or --osl was given */
  lp_texts reports, bind, pins;
  int64_t private_layers; /* -1: not asked for */
  lp_numbers exits;
  const char *opt_level; /* a digit */
  int64_t opset;
  lp_pass_flags flags;
  lp_compile_request request;
  lp_machine *device_machine, *cloud_machine; /* owned */
  lp_link *link_model;                        /* owned */
} lp_compile;

/* Loads the machines and the link and checks what was asked for together (compile_request.c). */
LP_MUST_USE lp_status lp_compile_prepare(lp_compile *compile, lp_diag *diag);
/* Warns where the lengths that were asked for exceed the context of the model; its operators are there. */
void lp_compile_check_lengths(const lp_compile *compile, const lp_module *module, lp_diag *diag);
void lp_compile_release(lp_compile *compile);

/* Does this output need weights (a bundle, code), or only the graph? */
bool lp_compile_reads_weights(const lp_compile *compile);
/* From an imported module to what --emit names, and the reports (compile_emit.c). */
LP_MUST_USE lp_status lp_compile_emit(const lp_compile *compile, lp_module *module, lp_diag *diag);

#endif
