/* Options: one table per subcommand, read in the same way for all of them. */
#include "base/clock.h"
#include "base/units.h"
#include "runtime/link/address.h"
#include "tools/tools.h"

#include <sys/resource.h>

static const lp_loc command_line = {0};

/* ---- values ------------------------------------------------------------------------------------------------------ */

lp_status lp_tool_read_numbers(const char *text, lp_numbers *out, lp_diag *diag, lp_loc loc) {
  char *copy = lp_strdup(text), *rest = copy;
  lp_status status = LP_OK;
  while (rest && status == LP_OK) {
    const char *at = strsep(&rest, ",");
    int64_t number = 0;
    status = lp_parse_i64(at, INT64_MIN, INT64_MAX, &number, diag, loc);
    if (status == LP_OK) lp_vec_push(out, number);
  }
  free(copy);
  return status;
}

static lp_status read_limit(const char *text, double *ms, lp_diag *diag, lp_loc loc) {
  LP_TRY(lp_parse_time_ms(text, ms, diag, loc));
  return *ms > 0 ? LP_OK : lp_error(diag, loc, "a limit of '%s'; wanted more than 0", text);
}

static lp_status read_size(const lp_option *option, const char *text, lp_diag *diag, lp_loc loc) {
  int64_t *bytes = option->out;
  LP_TRY(lp_parse_size(text, bytes, diag, loc));
  const bool suffices = *bytes > 0 || option->kind == LP_OPTION_SIZE;
  return suffices ? LP_OK : lp_error(diag, loc, "'%s' is less than 1 B", text);
}

/* Suggests the word of "text|json" that is near to `found`. */
static void note_near_word(const char *choices, const char *found, lp_diag *diag) {
  char *words = lp_strdup(choices), *rest = NULL;
  LP_VEC(const char *) names = {0};
  for (char *word = strtok_r(words, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
    lp_vec_push(&names, word);
  lp_note_near(diag, command_line, found, names.data, names.count);
  lp_vec_free(&names);
  free(words);
}

static lp_status read_choice(const lp_option *option, const char *text, lp_diag *diag, lp_loc loc) {
  size_t length = strlen(text);
  for (const char *at = option->value; *at; at += strcspn(at, "|"), at += *at == '|') {
    if (strcspn(at, "|") != length || strncmp(at, text, length) != 0) continue;
    *(const char **)option->out = text;
    return LP_OK;
  }
  lp_status status = lp_error(diag, loc, "found '%s', wanted one of %s", text, option->value);
  note_near_word(option->value, text, diag);
  return status;
}

static lp_status read_address(const lp_option *option, const char *text, lp_diag *diag, lp_loc loc) {
  char *host = NULL;
  int port = 0;
  if (lp_address_split(text, &host, &port, NULL) != LP_OK)
    return lp_error(diag, loc, "'%s' is no address: wanted HOST:PORT or unix:PATH", text);
  free(host);
  *(const char **)option->out = text;
  return LP_OK;
}

static lp_status read_value(const lp_option *option, const char *text, lp_diag *diag) {
  lp_loc loc = LP_LOC_FILE(option->name);
  switch (option->kind) {
  case LP_OPTION_FLAG:
    *(bool *)option->out = true;
    return LP_OK;
  case LP_OPTION_TEXT:
    *(const char **)option->out = text;
    return LP_OK;
  case LP_OPTION_TEXTS:
    lp_vec_push((lp_texts *)option->out, text);
    return LP_OK;
  case LP_OPTION_I64:
  case LP_OPTION_ID:
    return lp_parse_i64(text, option->kind == LP_OPTION_ID, INT64_MAX, option->out, diag, loc);
  case LP_OPTION_F64:
    return lp_parse_double(text, option->out, diag, loc);
  case LP_OPTION_SHARE:
    return lp_parse_share(text, option->out, diag, loc);
  case LP_OPTION_SIGNED:
    return lp_parse_signed(text, option->out, diag, loc);
  case LP_OPTION_COUNT:
  case LP_OPTION_POSITIVE:
  case LP_OPTION_PLURAL:
    return lp_parse_i64(text, (int64_t)option->kind - LP_OPTION_COUNT, INT32_MAX, option->out, diag, loc);
  case LP_OPTION_TIME:
    return lp_parse_time_ms(text, option->out, diag, loc);
  case LP_OPTION_LIMIT:
    return read_limit(text, option->out, diag, loc);
  case LP_OPTION_SIZE:
  case LP_OPTION_CAPACITY:
    return read_size(option, text, diag, loc);
  case LP_OPTION_NUMBERS:
    return lp_tool_read_numbers(text, option->out, diag, loc);
  case LP_OPTION_CHOICE:
    return read_choice(option, text, diag, loc);
  case LP_OPTION_ADDRESS:
    return read_address(option, text, diag, loc);
  }
  return LP_OK;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static lp_status unknown_option(const lp_command *command, const char *text, lp_diag *diag) {
  size_t length = strcspn(text, "=");
  LP_OWNED(lp_free_at) char *name = lp_alloc(length + 1);
  memcpy(name, text, length);
  const lp_option *meant = lp_tool_option_meant(command, name);
  const char **names = lp_alloc((command->count + 1) * sizeof *names);
  for (size_t i = 0; i < command->count; i++)
    names[i] = command->options[i].name;
  names[command->count] = "--help";
  lp_status status = lp_error_as(LP_USAGE, diag, command_line, "unknown option '%s'", name);
  if (lp_tool_option_explained(command, text))
    lp_note(diag, command_line, "%s", lp_tool_option_explained(command, text));
  else if (meant)
    lp_note(diag, command_line, "did you mean '%s' (%s)?", meant->name, meant->help);
  else if (length > 2) /* every letter is near to every other */
    lp_note_near(diag, command_line, name, names, command->count + 1);
  lp_note(diag, command_line, "usage: %s", command->usage);
  free(names);
  return status;
}

/* "-output" or "-output=x" where "-o" is an option: a long name with one dash, and not the value "utput". With '=',
 * every long name is one; without, only those that mean an option of the command. */
static bool is_long_with_one_dash(const lp_command *command, const char *text) {
  size_t letters = 1;
  char name[32];
  while ((text[letters] >= 'a' && text[letters] <= 'z') || (letters > 1 && text[letters] == '-'))
    letters++;
  if (letters <= 2) return false;
  if (text[letters] == '=') return true;
  (void)snprintf(name, sizeof name, "-%s", text);
  return lp_tool_option_meant(command, name) != NULL;
}

/* Finds the option that `text` names; *value is the value attached to it, or NULL. */
static const lp_option *find_option(const lp_command *command, const char *text, const char **value) {
  bool is_long = text[1] == '-';
  size_t length = is_long ? strcspn(text, "=") : 0;
  for (size_t i = 0; i < command->count; i++) {
    const char *name = command->options[i].name;
    size_t size = strlen(name);
    if (is_long ? size != length : name[1] == '-') continue;
    if (strncmp(text, name, size) != 0) continue;
    bool flag = command->options[i].kind == LP_OPTION_FLAG;
    if (flag && text[size]) continue;
    *value = text[size] == '=' ? text + size + 1 : text[size] ? text + size : NULL;
    return &command->options[i];
  }
  return NULL;
}

/* Finds the option that other programs call by the name in `text`. A value may follow the letter if it is a number. */
static const lp_option *find_alias(const lp_command *command, const char *text, const char **value) {
  char name[32];
  const bool is_attached = text[1] != '-' && text[1] && text[2] >= '0' && text[2] <= '9';
  const size_t length = is_attached ? 2 : strcspn(text, "=");
  (void)snprintf(name, sizeof name, "%.*s", (int)length, text);
  *value = is_attached ? text + 2 : text[length] == '=' ? text + length + 1 : NULL;
  return lp_tool_option_alias(command, name);
}

/* "-m FILE", "--model FILE" or "--model=FILE" of a command without such an option: *value as in find_option. */
static bool is_model(const lp_command *command, const char *text, const char **value) {
  static const char word[] = "--model";
  const size_t length = strcspn(text, "=");
  const bool found =
      command->model_first && (lp_streq(text, "-m") || (length == sizeof word - 1 && lp_has_prefix(text, word)));
  *value = found && text[length] == '=' ? text + length + 1 : NULL;
  return found;
}

static void put_first(lp_texts *args, size_t first, const char *text) {
  lp_vec_push(args, text);
  for (size_t i = args->count - 1; i > first; i--)
    args->data[i] = args->data[i - 1];
  args->data[first] = text;
}

static lp_status long_with_one_dash(const lp_option *option, const char *text, lp_diag *diag) {
  size_t length = strcspn(text, "=");
  lp_status status = lp_error_as(LP_USAGE, diag, command_line, "unknown option '%.*s'", (int)length, text);
  lp_note(diag, command_line, "did you mean '%s %s'?", option->name, text[length] ? text + length + 1 : option->value);
  return status;
}

static lp_status check_args(const lp_command *command, size_t count, lp_diag *diag) {
  if (count >= command->args.least && count <= command->args.most) return LP_OK;
  lp_status status = lp_error_as(LP_USAGE, diag, command_line,
                                 count < command->args.least ? "%zu arguments given, at least %zu wanted"
                                                             : "%zu arguments given, at most %zu wanted",
                                 count, count < command->args.least ? command->args.least : command->args.most);
  lp_note(diag, command_line, "usage: %s", command->usage);
  return status;
}

lp_status lp_tool_choose(const lp_tool_action *actions, size_t count, const lp_command *command, const lp_texts *args,
                         lp_diag *diag) {
  const lp_tool_action *named = NULL;
  for (size_t i = 0; i < count; i++)
    if (lp_streq(args->data[0], actions[i].name)) named = &actions[i];
  if (named && args->count == named->args + 1) return named->act(command, args, diag);
  lp_status status = !named ? lp_error_as(LP_USAGE, diag, command_line, "cannot do '%s'", args->data[0])
                            : lp_error_as(LP_USAGE, diag, command_line, "'%s' takes %zu argument%s, %zu are given",
                                          named->name, named->args, named->args == 1 ? "" : "s", args->count - 1);
  lp_note(diag, command_line, "usage: %s", command->usage);
  return status;
}

/* Reads an option of every command. */
static bool read_common(const lp_command *command, const char *text) {
  if (lp_streq(text, "--quiet"))
    command->voice->quiet = true;
  else if (lp_streq(text, "-v"))
    command->voice->verbose = true;
  else
    return false;
  return true;
}

static lp_status read_options(const lp_command *command, int argc, char **argv, lp_texts *args, bool *done,
                              lp_diag *diag) {
  size_t first = args->count;
  bool only_args = false;
  *done = false;
  for (int i = 1; i < argc; i++) {
    const char *text = argv[i], *value = NULL;
    if (only_args || text[0] != '-' || !text[1]) {
      lp_vec_push(args, text);
      continue;
    }
    if (lp_streq(text, "--")) {
      only_args = true;
      continue;
    }
    if (lp_tool_help(command, text)) {
      *done = true;
      return LP_OK;
    }
    if (read_common(command, text)) continue;
    if (is_model(command, text, &value)) {
      if (!value && i + 1 >= argc) return lp_error_as(LP_USAGE, diag, command_line, "'%s' needs a value: FILE", text);
      put_first(args, first, value ? value : argv[++i]);
      continue;
    }
    const lp_option *option = lp_tool_option_explained(command, text) ? NULL : find_option(command, text, &value);
    if (!option) option = find_alias(command, text, &value);
    if (option && !option->name[2] && is_long_with_one_dash(command, text))
      return long_with_one_dash(option, text, diag);
    if (!option) return unknown_option(command, text, diag);
    if (option->kind != LP_OPTION_FLAG && !value) {
      if (i + 1 >= argc)
        return lp_error_as(LP_USAGE, diag, command_line, "'%s' needs a value: %s", option->name, option->value);
      value = argv[++i];
    }
    if (read_value(option, value, diag) != LP_OK) return LP_USAGE;
  }
  return check_args(command, args->count - first, diag);
}

/* "llmpart run: 1.23 s, 45.2 MB of memory" */
static void say_used(const lp_command *command, double begin_ms) {
  char time[32], memory[32];
  struct rusage used;
  const int length = (int)(strlen("llmpart ") + strcspn(command->usage + strlen("llmpart "), " "));
  if (getrusage(RUSAGE_SELF, &used) != 0) return;
  fprintf(stderr, "%.*s: %s, at most %s of memory\n", length, command->usage,
          lp_format_ms(lp_now_ms() - begin_ms, time), lp_format_bytes((double)used.ru_maxrss * 1024, memory));
}

int lp_tool_main(const lp_command *command, int argc, char **argv) {
  const double begin_ms = lp_now_ms();
  lp_tool_voice voice = {0};
  lp_command heard = *command;
  heard.voice = &voice;
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_tool_diag(&voice);
  LP_OWNED(lp_free_at) lp_texts args = {0};
  bool done = false;
  lp_status status = read_options(&heard, argc, argv, &args, &done, diag);
  if (status == LP_OK && !done) status = heard.act(&heard, &args, diag);
  if (voice.verbose && !done) say_used(command, begin_ms);
  return (int)status;
}
