/* tools: the `llmpart` command, one file per subcommand: flags and printing, no logic. Only this folder prints or
 * exits.
 *
 * A subcommand reads its options with lp_options_read, works through the libraries and ends with the status as exit
 * status. stdout carries the result; diagnostics go to stderr as they occur (lp_tool_diag).
 */
#pragma once

#include "base/json/writer.h"

/* ---- subcommands: argv[0] is the subcommand's name --------------------------------------------------------------- */

#define LP_GROUP(title)
#define LP_SUBCOMMAND(function, name, summary, example) int lp_tool_##function(int argc, char **argv);
#include "tools/subcommands.def"
#undef LP_GROUP
#undef LP_SUBCOMMAND

/* ---- options (options.c) ----------------------------------------------------------------------------------------- */

typedef LP_VEC(const char *) lp_texts;
typedef LP_VEC(int64_t) lp_numbers;
/* Appends the numbers of "1,2,3". Release `out` with lp_vec_free, also after a failure. */
LP_MUST_USE lp_status lp_tool_read_numbers(const char *text, lp_numbers *out, lp_diag *diag, lp_loc loc);

/* The type of an option's value, and the type that `out` points to. */
typedef enum {
  LP_OPTION_FLAG,     /* bool: no value, sets true */
  LP_OPTION_TEXT,     /* const char * */
  LP_OPTION_TEXTS,    /* lp_texts: may be repeated */
  LP_OPTION_I64,      /* int64_t, not negative */
  LP_OPTION_ID,       /* int64_t, at least 1 */
  LP_OPTION_COUNT,    /* int64_t, not negative, at most INT32_MAX: so that sums and products of counts fit */
  LP_OPTION_POSITIVE, /* the same, at least 1 */
  LP_OPTION_PLURAL,   /* the same, at least 2; these three in this order */
  LP_OPTION_F64,      /* double, not negative */
  LP_OPTION_SHARE,    /* double, not negative: "0.01", "1%" */
  LP_OPTION_SIGNED,   /* double */
  LP_OPTION_TIME,     /* double, ms: "400ms", "0.1s" */
  LP_OPTION_LIMIT,    /* double, ms, above 0 */
  LP_OPTION_SIZE,     /* int64_t, bytes, not negative: "4GiB" */
  LP_OPTION_CAPACITY, /* the same, at least 1 */
  LP_OPTION_NUMBERS,  /* lp_numbers: "1,2,3" */
  LP_OPTION_CHOICE,   /* const char *: one of `value`'s words, "text|json" */
  LP_OPTION_ADDRESS   /* const char *: HOST:PORT or unix:PATH */
} lp_option_kind;

/* Long options take `--name=value` and `--name value`, single letters `-n value`, `-nvalue` and `-n=value`. */
typedef struct {
  const char *name; /* with its dashes: "--device", "-o" */
  lp_option_kind kind;
  void *out;
  const char *value; /* the value's name in the help: "FILE", "text|json" */
  const char *help;
} lp_option;

/* The options of every command, which lp_tool_main reads (suggest.c). */
enum { LP_TOOL_COMMON = 3 };
extern const lp_option lp_tool_common[LP_TOOL_COMMON];

/* How much a command says on stderr. */
typedef struct {
  bool quiet;         /* --quiet: errors and their notes only */
  bool verbose;       /* -v: also what was chosen, and the time and memory that the command took */
  bool is_coloured;   /* stderr is a terminal that shows colours */
  bool follows_error; /* the last diagnostic was an error or a note of one */
} lp_tool_voice;

/* The options of a command that uses a worker. */
#define LP_SECURITY_OPTIONS(security)                                                                                  \
  {"--key-file", LP_OPTION_TEXT, &(security).key_file, "FILE",                                                         \
   "read the key that the worker holds too; off loopback this or --cert is needed"},                                   \
      {"--ca", LP_OPTION_TEXT, &(security).ca_file, "FILE",                                                            \
       "use TLS with a worker that shows this certificate or one that it signed (PEM); needed off loopback"},          \
      {"--tls-name", LP_OPTION_TEXT, &(security).server_name, "NAME",                                                  \
       "expect this name in the worker's certificate; needs --ca"},                                                    \
      {"--cert", LP_OPTION_TEXT, &(security).cert_file, "FILE",                                                        \
       "show this certificate (PEM) to a worker with --client-ca; needs --ca"},                                        \
      {"--cert-key", LP_OPTION_TEXT, &(security).cert_key_file, "FILE",                                                \
       "read the certificate's private key here (PEM)"}

typedef struct lp_command lp_command;
/* The work of a command after its options are read; `args` are the arguments that are not options. */
typedef lp_status lp_tool_act(const lp_command *command, const lp_texts *args, lp_diag *diag);

struct lp_command {
  const char *usage;   /* "llmpart compile MODEL.onnx --device=HW [options]" */
  const char *summary; /* sentences for --help */
  const lp_option *options;
  size_t count;
  struct {
    size_t least, most;
  } args; /* numbers of arguments that are not options */
  lp_tool_act *act;
  void *user;           /* argument of `act`: the struct that the options set */
  lp_tool_voice *voice; /* set by lp_tool_main: what --quiet and -v ask for */
  bool model_first;     /* -m FILE and --model=FILE give the first argument, as other programs have it */
};

#define LP_OPTIONS(table) .options = (table), .count = LP_COUNT(table)

/* The main function of a command: reads the options and acts, unless --help is among them. Diagnostics go to stderr as
 * they occur. Returns the exit status. */
int lp_tool_main(const lp_command *command, int argc, char **argv);

/* ---- suggestions (suggest.c) ------------------------------------------------------------------------------------- */

/* The option of the command that other programs call `name`, such as -p for --prompt and --max-tokens for -n: it is
 * taken as that option. NULL: there is none. */
const lp_option *lp_tool_option_alias(const lp_command *command, const char *name);
/* The option that means nearly the same, for a suggestion; NULL: there is none. */
const lp_option *lp_tool_option_meant(const lp_command *command, const char *name);
/* What stands for an option or a subcommand of other programs that is none here, in a sentence; NULL: nothing. */
const char *lp_tool_option_explained(const lp_command *command, const char *text);
const char *lp_tool_subcommand_explained(const char *name);
/* Fails for what is no path but the name of a model at Hugging Face, with the way to get it. */
LP_MUST_USE lp_status lp_tool_refuse_id(const char *path, lp_diag *diag);

/* ---- help (help.c) ----------------------------------------------------------------------------------------------- */

/* Prints the help that `text` asks for, and tells whether it is such an option: --help and -h; --help=man, a manual
 * page in troff; --help=words, the options one a line with the words of choices, for the completion of shells;
 * --help=table, a line "NAME KIND VALUE" for each option, separated by tabs, for programs. */
bool lp_tool_help(const lp_command *command, const char *text);
void lp_tool_print_help(FILE *out);    /* the subcommands in their groups */
void lp_tool_print_man(FILE *out);     /* the same as a manual page */
void lp_tool_print_names(FILE *out);   /* the subcommands, one a line */
void lp_tool_print_version(FILE *out); /* the version, and what the command was built with */

/* An action of a command that has several; the first argument names it. */
typedef struct {
  const char *name;
  lp_tool_act *act;
  size_t args; /* number of arguments after the name */
} lp_tool_action;
/* Runs the action that args[0] names. LP_USAGE with a diagnostic when there is no such action, or it takes another
 * number of arguments. */
LP_MUST_USE lp_status lp_tool_choose(const lp_tool_action *actions, size_t count, const lp_command *command,
                                     const lp_texts *args, lp_diag *diag);

/* ---- inputs given as constants (import.c) ------------------------------------------------------------------------ */

#define LP_BIND_OPTION(place)                                                                                          \
  {"--bind", LP_OPTION_TEXTS, &(place), "NAME=VALUES|FILE.pb",                                                         \
   "make input NAME a constant, where a size depends on it; repeatable"}
struct lp_input_binding; /* frontend/frontend.h */
/* NAME=VALUE texts as bindings of the importer; release with free(), each name too (lp_bindings_free). */
LP_MUST_USE lp_status lp_bindings_read(const lp_texts *texts, struct lp_input_binding **out, lp_diag *diag);
void lp_bindings_free(struct lp_input_binding *bindings, size_t count);

/* ---- printing (print.c) ------------------------------------------------------------------------------------------ */

/* A list of diagnostics that prints each one on stderr as it occurs. `voice` is borrowed until lp_diag_free. */
lp_diag *lp_tool_diag(lp_tool_voice *voice);
/* Tells whether a terminal shows this stream in colours: NO_COLOR is not set (https://no-color.org) and TERM is not
 * "dumb". */
bool lp_tool_is_coloured(FILE *stream);
/* Tells whether a command should show its progress on stderr: it is a terminal, and --quiet is not given. */
bool lp_tool_shows_progress(const lp_tool_voice *voice);
/* After this call SIGINT, SIGTERM and SIGHUP remove the temporary files before they end the process (interrupt.c). */
void lp_tool_tidy_when_interrupted(void);
/* Writes text to a file or, for "-", stdout, and frees it. */
LP_MUST_USE lp_status lp_tool_write(const char *path, lp_buf *text, lp_diag *diag);
/* A JSON document in the layout of the command: two spaces a level, numbers of `digits` digits that show a '.' or an
 * 'e' where they are real. */
lp_json_writer lp_tool_json(lp_buf *out, int digits, const char *schema);
/* For `-o FORM|FILE.FORM`: lp_tool_wants tells whether `out` (NULL: not given) asks for `form`; lp_tool_write_as writes
 * to that file, or to stdout when `out` is only a form, and frees the text. */
bool lp_tool_wants(const char *out, const char *form);
LP_MUST_USE lp_status lp_tool_write_as(const char *out, lp_buf *text, lp_diag *diag);
