/* llmpart: finds the subcommand and calls it. */
#include "tools/tools.h"

typedef struct {
  const char *name;
  int (*run)(int argc, char **argv);
} subcommand;

static const subcommand subcommands[] = {
#define LP_GROUP(title)
#define LP_SUBCOMMAND(function, name, summary, example) {name, lp_tool_##function},
#include "tools/subcommands.def"
#undef LP_GROUP
#undef LP_SUBCOMMAND
};

static const subcommand *find(const char *name) {
  return LP_FIND_IN(subcommands, name);
}

static int unknown_subcommand(const char *name) {
  const char *names[LP_COUNT(subcommands) + 3] = {"help", "--help", "--version"};
  for (size_t i = 0; i < LP_COUNT(subcommands); i++)
    names[i + 3] = subcommands[i].name;
  lp_tool_voice voice = {0};
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_tool_diag(&voice);
  lp_status status = lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "unknown subcommand '%s'", name);
  if (lp_tool_subcommand_explained(name))
    lp_note(diag, LP_LOC_NONE, "%s", lp_tool_subcommand_explained(name));
  else
    lp_note_near(diag, LP_LOC_NONE, name, names, LP_COUNT(names));
  lp_note(diag, LP_LOC_NONE, "`llmpart --help` lists them");
  return (int)status;
}

/* `llmpart help [SUB]`. */
static int help(int argc, char **argv) {
  static char option[] = "--help";
  if (argc < 2 || lp_streq(argv[1], "help") || lp_streq(argv[1], "--help")) {
    lp_tool_print_help(stdout);
    return LP_OK;
  }
  if (lp_streq(argv[1], "--words")) {
    lp_tool_print_names(stdout);
    return LP_OK;
  }
  const subcommand *named = find(argv[1]);
  return named ? named->run(2, (char *[]){argv[1], option, NULL}) : unknown_subcommand(argv[1]);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    lp_tool_print_help(stderr);
    return LP_USAGE;
  }
  const char *name = argv[1];
  if (lp_streq(name, "help")) return help(argc - 1, argv + 1);
  if (lp_streq(name, "--help") || lp_streq(name, "-h") || lp_streq(name, "--help=man")) {
    (lp_streq(name, "--help=man") ? lp_tool_print_man : lp_tool_print_help)(stdout);
    return LP_OK;
  }
  if (lp_streq(name, "--version") || lp_streq(name, "-V") || lp_streq(name, "version")) {
    lp_tool_print_version(stdout);
    return LP_OK;
  }
  const subcommand *named = find(name);
  return named ? named->run(argc - 1, argv + 1) : unknown_subcommand(name);
}
