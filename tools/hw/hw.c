/* llmpart hw: machine models. Its options, and the action that each belongs to. */
#include "tools/hw/hw.h"

static const lp_tool_action actions[] = {{"list", hw_list, 0}, {"show", hw_show, 1},       {"fit", hw_fit, 1},
                                         {"eval", hw_eval, 2}, {"predict", hw_predict, 1}, {"profile", hw_profile, 0}};

static lp_status act(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  return lp_tool_choose(actions, LP_COUNT(actions), command, args, diag);
}

// NOLINTNEXTLINE(readability-function-size): a table
int lp_tool_hw(int argc, char **argv) {
  hw_flags flags = {.knots = 32, .design = "per-shape", .dtype = "f16", .budget_ms = 240000};
  const lp_option options[] = {
      {"-o", LP_OPTION_TEXT, &flags.out, "FILE|text|yaml|json",
       "write to FILE, or to stdout in this form; show also writes FILE.svg, the roofline"},
      {"--machine", LP_OPTION_TEXT, &flags.machine, "NAME",
       "fit: take the figures of this machine (the one named like the table); profile: it is the machine that is "
       "measured (host)"},
      {"--name", LP_OPTION_TEXT, &flags.name, "NAME", "fit: set the machine's name"},
      {"--knots", LP_OPTION_PLURAL, &flags.knots, "N", "fit: give each curve at most N knots (32)"},
      {"--design", LP_OPTION_CHOICE, &flags.design, "per-shape|single-curve",
       "fit: make a curve for each shape, or one of utilisation over intensity for all (per-shape)"},
      {"--source", LP_OPTION_TEXT, &flags.source, "TEXT", "fit: state the source of the measurements"},
      {"--threads", LP_OPTION_COUNT, &flags.threads, "N", "profile: use N threads (the machine's cores)"},
      {"--budget", LP_OPTION_TIME, &flags.budget_ms, "TIME", "profile: start no measurement after this time (240s)"},
      {"--quick", LP_OPTION_FLAG, &flags.quick, NULL, "profile: measure what the first use of `host` does, in seconds"},
      {"--backend", LP_OPTION_CHOICE, &flags.backend, "cpu|cuda|opencl",
       "profile: measure this backend's code (what the machine names)"},
      {"--march", LP_OPTION_TEXT, &flags.march, "CPU",
       "profile: compile for this processor or GPU (what the machine names)"},
      {"--widths", LP_OPTION_POSITIVE, &flags.widths, "N", "profile: measure decoders of the first N of five widths"},
      {"--bundles", LP_OPTION_TEXT, &flags.bundles, "FOLDER",
       "profile: write the bundles that are measured, for `llmpart worker FOLDER/*.llmpart --profile` on the machine, "
       "and measure nothing"},
      {"--over", LP_OPTION_ADDRESS, &flags.over, "HOST:PORT",
       "profile: measure the machine of this worker, which has those bundles"},
      LP_SECURITY_OPTIONS(flags.security),
      {"--op", LP_OPTION_TEXT, &flags.op, "OP",
       "predict: choose the operator: linear, attention, embedding, add, norm, rotary, ..."},
      {"--dtype", LP_OPTION_TEXT, &flags.dtype, "DTYPE", "predict: set the type of the operands (f16)"},
      {"--m", LP_OPTION_POSITIVE, &flags.size[0], "N", "predict: set the number of tokens"},
      {"--n", LP_OPTION_POSITIVE, &flags.size[1], "N", "predict: set the width of the result"},
      {"--k", LP_OPTION_POSITIVE, &flags.size[2], "N", "predict linear: set the inner size"},
      {"--batch", LP_OPTION_POSITIVE, &flags.size[3], "N", "predict attention: set the number of sequences"},
      {"--q-len", LP_OPTION_POSITIVE, &flags.size[4], "N", "predict attention: set the new tokens; 1 is decode"},
      {"--kv-len", LP_OPTION_POSITIVE, &flags.size[5], "N", "predict attention: set the attended tokens"},
      {"--heads", LP_OPTION_POSITIVE, &flags.size[6], "N", "predict attention: set the number of heads"},
      {"--kv-heads", LP_OPTION_POSITIVE, &flags.size[7], "N",
       "predict attention: set the number of KV heads (as --heads)"},
      {"--head-dim", LP_OPTION_POSITIVE, &flags.size[8], "N", "predict attention: set the width of a head"},
      {"--pass-bytes", LP_OPTION_SIZE, &flags.pass_bytes, "SIZE",
       "predict: set the bytes that a whole pass reads (more than any cache holds)"},
      {"--q_len", LP_OPTION_POSITIVE, &flags.size[4], "N", "the same as --q-len, by its name in tables"},
      {"--kv_len", LP_OPTION_POSITIVE, &flags.size[5], "N", "the same as --kv-len"},
      {"--kv_heads", LP_OPTION_POSITIVE, &flags.size[7], "N", "the same as --kv-heads"},
      {"--head_dim", LP_OPTION_POSITIVE, &flags.size[8], "N", "the same as --head-dim"},
  };
  const lp_command command = {
      .usage = "llmpart hw list | show NAME | profile -o F.yaml | fit CSV -o F.yaml | eval NAME CSV | predict NAME "
               "--op=OP --m=N ..",
      .summary = "Machine models: lists them; shows one, its roofline and the source of each figure; measures this "
                 "machine in some\nminutes (for `host`); fits one to a table of measured\noperators; compares "
                 "predictions with such a table; predicts one operator. NAME is a name of the list, `host` "
                 "(this\nmachine, measured) or a YAML file; figures may be changed: a100,price_usd_per_s=4e-5.",
      LP_OPTIONS(options),
      .args = {1, 3},
      .act = act,
      .user = &flags};
  lp_tool_tidy_when_interrupted();
  return lp_tool_main(&command, argc, argv);
}
