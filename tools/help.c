/* Help, manual pages, words for completion and the version, all from the tables of subcommands and options. */
#include "tools/tools.h"

#include <sys/ioctl.h>
#include <unistd.h>

typedef struct {
  const char *group, *name, *summary, *example; /* a group has only its title */
} entry;

static const entry entries[] = {
#define LP_GROUP(title) {.group = title},
#define LP_SUBCOMMAND(function, subcommand, sentence, command)                                                         \
  {.name = subcommand, .summary = sentence, .example = command},
#include "tools/subcommands.def"
#undef LP_GROUP
#undef LP_SUBCOMMAND
};

/* The entry of a command, which its usage names: "llmpart NAME ...". */
static const entry *entry_of(const lp_command *command) {
  const char *name = command->usage + strlen("llmpart ");
  for (size_t i = 0; i < LP_COUNT(entries); i++) {
    size_t length = entries[i].name ? strlen(entries[i].name) : 0;
    if (length && strncmp(name, entries[i].name, length) == 0 && (name[length] == ' ' || !name[length]))
      return &entries[i];
  }
  return NULL;
}

/* "--tpot=TIME", "-n N", "--check" */
static const char *spelling(const lp_option *option, char out[160]) {
  const char *equals = option->kind == LP_OPTION_FLAG ? "" : option->name[1] == '-' ? "=" : " ";
  (void)snprintf(out, 160, "%s%s%s", option->name, equals, option->kind == LP_OPTION_FLAG ? "" : option->value);
  return out;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put_title(FILE *out, const char *title, const char *after) {
  const bool is_bold = lp_tool_is_coloured(out);
  fprintf(out, "%s%s:%s%s", is_bold ? "\x1b[1m" : "", title, is_bold ? "\x1b[0m" : "", after);
}

/* The columns of the terminal; 0: the stream is none, and lines stay whole. */
static size_t width_of(FILE *out) {
  struct winsize size = {0};
  if (!isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

/* Prints text that begins in the column `at`, in lines of at most `width` columns (0: one line); the further ones are
 * indented. */
static void put_wrapped(FILE *out, const char *text, size_t width, size_t at, size_t indent) {
  const bool wraps = width >= indent + 20;
  for (bool begins = true; *text; begins = false) {
    text += strspn(text, " \n");
    const size_t word = strcspn(text, " \n");
    if (wraps && !begins && at + 1 + word > width) {
      fprintf(out, "\n%*s", (int)indent, "");
      at = indent;
    } else if (!begins) {
      fputc(' ', out);
      at++;
    }
    fprintf(out, "%.*s", (int)word, text);
    at += word;
    text += word;
  }
  fputc('\n', out);
}

static void print_option(const lp_option *option) {
  enum { LEFT = 33 }; /* where the explanation begins */
  char left[160];
  spelling(option, left);
  const size_t width = width_of(stdout), indent = width && width < 64 ? 8 : LEFT;
  if (strlen(left) > indent - 3)
    printf("  %s\n%*s", left, (int)indent, "");
  else
    printf("  %-*s", (int)indent - 2, left);
  put_wrapped(stdout, option->help, width, indent, indent);
}

static void print_text(const lp_command *command) {
  const entry *own = entry_of(command);
  put_title(stdout, "usage", " ");
  const size_t width = width_of(stdout);
  put_wrapped(stdout, command->usage, width, strlen("usage: "), strlen("usage: "));
  printf("\n");
  put_wrapped(stdout, command->summary, width ? width : 100, 0, 0);
  if (own) {
    printf("\n");
    put_title(stdout, "example", "\n  ");
    put_wrapped(stdout, own->example, width, 2, 6);
  }
  printf("\n");
  put_title(stdout, "options", "\n");
  for (size_t i = 0; i < command->count; i++)
    print_option(&command->options[i]);
  for (size_t i = 0; i < LP_TOOL_COMMON; i++)
    print_option(&lp_tool_common[i]);
}

static const char summary[] = "A compiler that splits a language model between a device and a cloud machine.";
static const char ending[] = "0 done, 1 bad input or failure, 2 usage, 3 the SLA cannot be met, 4 a comparison failed";

void lp_tool_print_help(FILE *out) {
  put_title(out, "usage", " ");
  fprintf(out, "llmpart SUBCOMMAND [options]\n\n%s\n", summary);
  for (size_t i = 0; i < LP_COUNT(entries); i++) {
    if (entries[i].group) {
      fprintf(out, "\n");
      put_title(out, entries[i].group, "\n");
    } else {
      fprintf(out, "  %-10s ", entries[i].name);
      put_wrapped(out, entries[i].summary, width_of(out), 13, 13);
    }
  }
  fprintf(out, "\n`llmpart help SUBCOMMAND` prints its options and an example. Exit status:\n%s.\n", ending);
}

void lp_tool_print_names(FILE *out) {
  for (size_t i = 0; i < LP_COUNT(entries); i++)
    if (entries[i].name) fprintf(out, "%s\n", entries[i].name);
}

void lp_tool_print_version(FILE *out) {
  static const struct {
    const char *name;
    bool is_built;
  } parts[] = {
#ifdef LP_HAS_COMPILER
      {"compiler", true},
#else
      {"compiler", false},
#endif
#ifdef LP_HAS_ROUTER
      {"router", true},
#else
      {"router", false},
#endif
#ifdef LP_HAS_SERVE
      {"server", true},
#else
      {"server", false},
#endif
  };
  fprintf(out, "llmpart %s\nbuilt with", LP_VERSION);
#ifdef __clang__
  fprintf(out, " clang %d.%d", __clang_major__, __clang_minor__);
#else
  fprintf(out, " gcc %d.%d", __GNUC__, __GNUC_MINOR__);
#endif
#ifdef LP_HAS_COMPILER
  fprintf(out, ", LLVM %s", LP_LLVM_VERSION);
#endif
  for (size_t i = 0; i < LP_COUNT(parts); i++)
    fprintf(out, ", %s %s", parts[i].is_built ? "with" : "without", parts[i].name);
  fprintf(out,
          "\nlicence: Apache-2.0; the command with the GNU Scientific Library, which it links: GPL-3.0-or-later\n");
}

/* ---- manual pages ------------------------------------------------------------------------------------------------ */

/* Text as troff takes it: a '-' of an option is not a hyphen, and no line begins with a control character. */
static void put_troff(FILE *out, const char *text) {
  bool begins = true;
  for (; *text; text++) {
    if (begins && (*text == '.' || *text == '\'')) fputs("\\&", out);
    if (*text == '-')
      fputs("\\-", out);
    else if (*text == '\\')
      fputs("\\e", out);
    else
      fputc(*text, out);
    begins = *text == '\n';
  }
}

static void put_section(FILE *out, const char *title, const char *text) {
  fprintf(out, ".SH %s\n", title);
  put_troff(out, text);
  fputs("\n", out);
}

static void put_name(FILE *out, const char *page, const char *sentence) {
  fprintf(out, ".TH \"");
  put_troff(out, page);
  fprintf(out, "\" 1 \"\" \"llmpart %s\" \"User Commands\"\n.ad l\n.SH NAME\n", LP_VERSION);
  put_troff(out, page);
  fputs(" \\- ", out);
  put_troff(out, sentence);
  fputs("\n", out);
}

static void put_example(FILE *out, const char *example) {
  fprintf(out, ".SH EXAMPLES\n.nf\n");
  put_troff(out, example);
  fprintf(out, "\n.fi\n");
}

static void print_man(const lp_command *command) {
  const entry *own = entry_of(command);
  char page[64], left[160];
  (void)snprintf(page, sizeof page, "llmpart-%s", own ? own->name : "");
  put_name(stdout, page, own ? own->summary : "");
  put_section(stdout, "SYNOPSIS", command->usage);
  put_section(stdout, "DESCRIPTION", command->summary);
  printf(".SH OPTIONS\n");
  for (size_t i = 0; i < command->count + LP_TOOL_COMMON; i++) {
    const lp_option *option = i < command->count ? &command->options[i] : &lp_tool_common[i - command->count];
    printf(".TP\n.B ");
    put_troff(stdout, spelling(option, left));
    printf("\n");
    put_troff(stdout, option->help);
    printf("\n");
  }
  put_section(stdout, "EXIT STATUS", ending);
  if (own) put_example(stdout, own->example);
  put_section(stdout, "SEE ALSO", "llmpart(1)");
}

void lp_tool_print_man(FILE *out) {
  put_name(out, "llmpart", "split a language model between a device and a cloud machine");
  put_section(out, "SYNOPSIS", "llmpart SUBCOMMAND [options]");
  put_section(out, "DESCRIPTION", summary);
  fprintf(out, ".SH SUBCOMMANDS\n");
  for (size_t i = 0; i < LP_COUNT(entries); i++) {
    if (entries[i].group) {
      fprintf(out, ".SS ");
      put_troff(out, entries[i].group);
      fprintf(out, "\n");
      continue;
    }
    fprintf(out, ".TP\n.BR llmpart\\-");
    put_troff(out, entries[i].name);
    fprintf(out, " (1)\n");
    put_troff(out, entries[i].summary);
    fprintf(out, "\n");
  }
  put_section(out, "EXIT STATUS", ending);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* "--emit" and then "--emit=bundle" for each word of a choice. */
static void print_words(const lp_command *command) {
  LP_FOR_EACH(const lp_option, option, command->options, command->count) {
    const char *equals = option->kind != LP_OPTION_FLAG && option->name[1] == '-' ? "=" : "";
    printf("%s%s\n", option->name, equals);
    if (option->kind != LP_OPTION_CHOICE || !equals[0]) continue;
    for (const char *at = option->value; *at; at += strcspn(at, "|"), at += *at == '|')
      printf("%s=%.*s\n", option->name, (int)strcspn(at, "|"), at);
  }
  for (size_t i = 0; i < LP_TOOL_COMMON; i++)
    printf("%s\n", lp_tool_common[i].name);
}

static void print_table(const lp_command *command) {
  static const char *const kinds[] = {
      [LP_OPTION_FLAG] = "flag",       [LP_OPTION_TEXT] = "text",     [LP_OPTION_TEXTS] = "texts",
      [LP_OPTION_I64] = "integer",     [LP_OPTION_ID] = "integer",    [LP_OPTION_COUNT] = "count",
      [LP_OPTION_POSITIVE] = "count",  [LP_OPTION_PLURAL] = "count",  [LP_OPTION_F64] = "number",
      [LP_OPTION_SHARE] = "share",     [LP_OPTION_SIGNED] = "signed", [LP_OPTION_TIME] = "time",
      [LP_OPTION_LIMIT] = "limit",     [LP_OPTION_SIZE] = "size",     [LP_OPTION_CAPACITY] = "size",
      [LP_OPTION_NUMBERS] = "numbers", [LP_OPTION_CHOICE] = "choice", [LP_OPTION_ADDRESS] = "address",
  };
  LP_FOR_EACH(const lp_option, option, command->options, command->count)
    printf("%s\t%s\t%s\n", option->name, kinds[option->kind], option->value ? option->value : "");
}

bool lp_tool_help(const lp_command *command, const char *text) {
  if (lp_streq(text, "--help") || lp_streq(text, "-h"))
    print_text(command);
  else if (lp_streq(text, "--help=man"))
    print_man(command);
  else if (lp_streq(text, "--help=words"))
    print_words(command);
  else if (lp_streq(text, "--help=table"))
    print_table(command);
  else
    return false;
  return true;
}
