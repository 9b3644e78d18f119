/* llmpart opt: runs passes on IR text. Tests of passes use it. */
#include "base/base.h"
#include "base/file.h"
#include "tools/compile/pipeline.h"

/* ---- expected diagnostics ---------------------------------------------------------------------------------------- */

/* As mlir-opt --verify-diagnostics has them:
 *   // expected-error@+1 {{part of the text}}      also @-1, @unknown (no line), none (this line); -warning, -note */

typedef struct {
  lp_severity severity;
  int32_t line;     /* the expected line; 0: any line, or none */
  int32_t written;  /* the line of the expectation */
  const char *text; /* part of the message, not terminated */
  size_t size;
  bool seen;
} expectation;

typedef LP_VEC(expectation) expectations;

static const struct {
  const char *mark;
  lp_severity severity;
} marks[] = {{"expected-error", LP_ERROR}, {"expected-warning", LP_WARNING}, {"expected-note", LP_NOTE}};

/* Reads the "@+1 {{text}}" that follows a mark; false when there is none. */
static bool read_expectation(const char *at, const char *line_end, int32_t line, expectation *out) {
  out->line = out->written = line;
  if (*at == '@') {
    if (lp_has_prefix(at, "@unknown"))
      out->line = 0;
    else
      out->line = line + (int32_t)strtol(at + 1, NULL, 10);
  }
  const char *open = memmem(at, (size_t)(line_end - at), "{{", 2);
  const char *close = open ? memmem(open, (size_t)(line_end - open), "}}", 2) : NULL;
  if (!close) return false;
  out->text = open + 2;
  out->size = (size_t)(close - open - 2);
  return true;
}

static void read_line(const char *start, const char *end, int32_t line, expectations *out) {
  for (size_t i = 0; i < LP_COUNT(marks); i++) {
    const char *at = memmem(start, (size_t)(end - start), marks[i].mark, strlen(marks[i].mark));
    expectation found = {.severity = marks[i].severity};
    if (at && read_expectation(at + strlen(marks[i].mark), end, line, &found)) lp_vec_push(out, found);
  }
}

static bool matches(const expectation *expected, const lp_diag_entry *entry) {
  return !expected->seen && expected->severity == entry->severity && expected->line == entry->loc.line &&
         memmem(entry->text, strlen(entry->text), expected->text, expected->size);
}

static lp_status take(expectations *expected, const lp_diag_entry *entry, lp_diag *diag) {
  for (size_t i = 0; i < expected->count; i++)
    if (matches(&expected->data[i], entry)) {
      expected->data[i].seen = true;
      return LP_OK;
    }
  if (entry->severity == LP_NOTE) return LP_OK; /* notes need not be expected */
  return lp_error(diag, entry->loc, "unexpected: %s", entry->text);
}

/* Reports on `diag` each message of `found` that the text does not expect, and each expectation that no message
 * meets. */
static lp_status check_expected(const char *file, const char *text, size_t size, const lp_diag *found, lp_diag *diag) {
  LP_OWNED(lp_free_at) expectations expected = {0};
  lp_status worst = LP_OK;
  int32_t line = 1;
  for (const char *at = text, *end = text + size; at < end; line++) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) stop = end;
    read_line(at, stop, line, &expected);
    at = stop + 1;
  }
  for (size_t i = 0; i < lp_diag_count(found); i++)
    if (take(&expected, lp_diag_get(found, i), diag) != LP_OK) worst = LP_FAILED;
  LP_FOR_VEC(const expectation, missing, &expected) {
    if (missing->seen) continue;
    worst = lp_error(diag, (lp_loc){.file = file, .line = missing->written, .col = 1},
                     "expected '%.*s' was not reported", (int)missing->size, missing->text);
  }
  return worst;
}

typedef struct {
  const char *pipeline, *output;
  bool verify_each, split, verify_diagnostics, locations;
  lp_pass_flags flags;
} opt_options;

/* Parses one module of the input, runs the passes and prints it. */
static lp_status run_module(const char *file, const char *text, size_t size, const opt_options *options, lp_buf *out,
                            lp_diag *diag) {
  lp_module *module = NULL;
  LP_TRY(lp_module_parse(file, text, size, &module, diag));
  lp_run_options run = lp_tool_run_options(&options->flags);
  run.verify_each = options->verify_each;
  lp_status status = lp_module_verify(module, diag);
  if (status == LP_OK) status = lp_passes_run(module, options->pipeline, NULL, &run, diag);
  if (status == LP_OK) status = lp_module_verify(module, diag);
  if (status == LP_OK) lp_module_print(module, options->locations, out);
  lp_module_free(module);
  return status;
}

/* With --verify-diagnostics, compares the messages with the text's expectations instead of printing them. */
static lp_status run_chunk(const char *file, const char *text, size_t size, const opt_options *options, lp_buf *out,
                           lp_diag *diag) {
  if (!options->verify_diagnostics) return run_module(file, text, size, options, out, diag);
  LP_OWNED(lp_diag_free_at) lp_diag *found = lp_diag_create();
  lp_status status = run_module(file, text, size, options, out, found);
  (void)status;
  status = check_expected(file, text, size, found, diag);
  return status;
}

/* The end of the module that starts at `at`: before a line "// -----", or the end of the text. */
static const char *chunk_end(const char *at, const char *end) {
  static const char mark[] = "\n// -----";
  const char *found = memmem(at, (size_t)(end - at), mark, sizeof mark - 1);
  return found ? found + 1 : end;
}

/* Parses each module after as many empty lines as precede it, so that line numbers are those of the file. */
static lp_status run_split(const char *file, const char *text, size_t size, const opt_options *options, lp_buf *out,
                           lp_diag *diag) {
  const char *end = text + size;
  lp_status worst = LP_OK;
  for (const char *at = text; at < end;) {
    const char *stop = chunk_end(at, end);
    lp_buf chunk = {0};
    for (const char *c = text; c < at; c++)
      if (*c == '\n') lp_buf_puts(&chunk, "\n");
    lp_buf_append(&chunk, at, (size_t)(stop - at));
    if (at != text) lp_buf_puts(out, "// -----\n");
    lp_status status = run_chunk(file, lp_buf_text(&chunk), chunk.size, options, out, diag);
    if (status != LP_OK) worst = status;
    lp_buf_free(&chunk);
    const char *line = memchr(stop, '\n', (size_t)(end - stop));
    at = stop == end || !line ? end : line + 1;
  }
  return worst;
}

static lp_status opt_file(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const opt_options *options = command->user;
  const char *path = args->data[0];
  LP_OWNED(lp_free_at) char *text = NULL;
  size_t size = 0;
  LP_OWNED(lp_buf_free) lp_buf out = {0};
  LP_TRY(lp_tool_check_pass(&options->flags, diag));
  LP_TRY(lp_file_read(path, &text, &size, diag));
  lp_status status = options->split ? run_split(path, text, size, options, &out, diag)
                                    : run_chunk(path, text, size, options, &out, diag);
  if (status == LP_OK && !options->verify_diagnostics) status = lp_tool_write(options->output, &out, diag);
  return status;
}

int lp_tool_opt(int argc, char **argv) {
  opt_options options = {.pipeline = "", .output = "-"};
  const lp_option table[] = {
      {"-p", LP_OPTION_TEXT, &options.pipeline, "PASSES", "run these passes, in this order"},
      {"-o", LP_OPTION_TEXT, &options.output, "FILE", "write to FILE (stdout)"},
      {"--verify-each", LP_OPTION_FLAG, &options.verify_each, NULL, "verify the module after each pass"},
      {"--split-input-file", LP_OPTION_FLAG, &options.split, NULL,
       "run each module between lines '// -----' on its own"},
      {"--verify-diagnostics", LP_OPTION_FLAG, &options.verify_diagnostics, NULL,
       "compare the messages with comments: '// expected-error@+1 {{text}}'"},
      {"--locations", LP_OPTION_FLAG, &options.locations, NULL, "print the ONNX node of each operator"},
      LP_PASS_FLAG_OPTIONS(options.flags)};
  const lp_command command = {.usage = "llmpart opt FILE.mlir -p 'pass,pass{option=value}' [-o FILE]",
                              .summary = "Runs passes on a module in text form and prints the result.",
                              LP_OPTIONS(table),
                              .args = {1, 1},
                              .act = opt_file,
                              .user = &options};
  return lp_tool_main(&command, argc, argv);
}
