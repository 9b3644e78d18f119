/* llmpart opt: runs passes on IR text. Tests of passes use it. */
#include "base/file.h"
#include "tools/compile/pipeline.h"

#include "tools/compile/expected.h"

#include <stdlib.h>
#include <string.h>

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
  lp_diag *found = lp_diag_create();
  lp_status status = run_module(file, text, size, options, out, found);
  (void)status;
  status = lp_expected_check(file, text, size, found, diag);
  lp_diag_free(found);
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
  char *text = NULL;
  size_t size = 0;
  lp_buf out = {0};
  LP_TRY(lp_tool_check_pass(&options->flags, diag));
  LP_TRY(lp_file_read(path, &text, &size, diag));
  lp_status status = options->split ? run_split(path, text, size, options, &out, diag)
                                    : run_chunk(path, text, size, options, &out, diag);
  if (status == LP_OK && !options->verify_diagnostics)
    status = lp_tool_write(options->output, lp_buf_text(&out), out.size, diag);
  lp_buf_free(&out);
  free(text);
  return status;
}

int lp_tool_opt(int argc, char **argv) {
  opt_options options = {.pipeline = "", .output = "-"};
  const lp_option table[] = {
      {"-p", LP_OPTION_TEXT, &options.pipeline, "PASSES", "run these passes, in this order", 0},
      {"-o", LP_OPTION_TEXT, &options.output, "FILE", "write to FILE (stdout)", 0},
      {"--verify-each", LP_OPTION_FLAG, &options.verify_each, NULL, "verify the module after each pass", 0},
      {"--split-input-file", LP_OPTION_FLAG, &options.split, NULL,
       "run each module between lines '// -----' on its own", 0},
      {"--verify-diagnostics", LP_OPTION_FLAG, &options.verify_diagnostics, NULL,
       "compare the messages with comments: '// expected-error@+1 {{text}}'", 0},
      {"--locations", LP_OPTION_FLAG, &options.locations, NULL, "print the ONNX node of each operator", 0},
      LP_PASS_FLAG_OPTIONS(options.flags)};
  const lp_command command = {.usage = "llmpart opt FILE.mlir -p 'pass,pass{option=value}' [-o FILE]",
                              .summary = "Runs passes on a module in text form and prints the result.",
                              .options = table,
                              .count = LP_COUNT(table),
                              .min_args = 1,
                              .max_args = 1,
                              .act = opt_file,
                              .user = &options};
  return lp_tool_main(&command, argc, argv);
}
