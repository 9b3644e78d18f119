/* llmpart: finds the subcommand and calls it. */
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *name, *summary;
  int (*run)(int argc, char **argv);
} subcommand;

static const subcommand subcommands[] = {
#ifdef LP_HAS_COMPILER /* a device ships only the runtime's subcommands */
    {"compile", "place a model on a device and a cloud machine and emit code for both", lp_tool_compile},
    {"verify", "run a model on ONNX test data and compare", lp_tool_verify},
    {"explain", "explain the placement of an operator of a plan", lp_tool_explain},
    {"sweep", "plan a model at many machines, links, workloads and SLAs", lp_tool_sweep},
    {"check-plan", "confirm the certificate of a plan's report", lp_tool_check_plan},
    {"import", "print a model as IR", lp_tool_import},
    {"support", "list a model's operators and whether they run", lp_tool_support},
    {"opt", "run passes on IR text", lp_tool_opt},
    {"hw", "list and show machine models", lp_tool_hw},
    {"link", "list and show link models", lp_tool_link},
#endif
    {"run", "generate text with a compiled bundle", lp_tool_run},
    {"worker", "serve the cloud side of a bundle", lp_tool_worker},
    {"bench", "measure a bundle", lp_tool_bench},
    {"calibrate", "find the confidence at which early exits are reliable", lp_tool_calibrate},
    {"radio", "compute path loss, line of sight, capacity, schedulers", lp_tool_radio},
    {"service", "compute answer times of models at the edge and in the cloud", lp_tool_service},
#ifdef LP_HAS_ROUTER
    {"route", "decide where a request goes", lp_tool_route},
#endif
#ifdef LP_HAS_SERVE
    {"serve", "serve an HTTP API over a bundle and another API", lp_tool_serve},
#endif
    {"simulate", "simulate users, radio, queues and routing", lp_tool_simulate},
};

static void print_help(FILE *out) {
  fprintf(out, "usage: llmpart SUBCOMMAND [options]\n\nA compiler that splits a language model between a device and a "
               "cloud machine.\n\nsubcommands:\n");
  for (size_t i = 0; i < LP_COUNT(subcommands); i++)
    fprintf(out, "  %-10s %s\n", subcommands[i].name, subcommands[i].summary);
  fprintf(out,
          "\n`llmpart SUBCOMMAND --help` prints the options. Exit status: 0 done, 1 bad input or failure, 2 usage, "
          "3 the SLA cannot be met,\n4 a comparison failed.\n");
}

static int unknown_subcommand(const char *name) {
  const char *names[LP_COUNT(subcommands)];
  for (size_t i = 0; i < LP_COUNT(subcommands); i++)
    names[i] = subcommands[i].name;
  lp_diag *diag = lp_tool_diag();
  lp_status status = lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "unknown subcommand '%s'", name);
  lp_note_near(diag, LP_LOC_NONE, name, names, LP_COUNT(names));
  lp_note(diag, LP_LOC_NONE, "`llmpart --help` lists them");
  lp_diag_free(diag);
  return (int)status;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return LP_USAGE;
  }
  const char *name = argv[1];
  if (lp_streq(name, "--help") || lp_streq(name, "-h") || lp_streq(name, "help")) {
    print_help(stdout);
    return LP_OK;
  }
  if (lp_streq(name, "--version")) {
    printf("llmpart %s\n", LP_VERSION);
    return LP_OK;
  }
  for (size_t i = 0; i < LP_COUNT(subcommands); i++)
    if (lp_streq(subcommands[i].name, name)) return subcommands[i].run(argc - 1, argv + 1);
  return unknown_subcommand(name);
}
