/* llmpart calibrate: finds the smallest theta of a bundle's exits that keeps a risk. */
#include "runtime/exits/calibrate/calibrate.h"
#include "base/file.h"
#include "base/path.h"
#include "base/units.h"

#include "tools/tools.h"

typedef struct {
  const char *bundle, *data, *codec, *format, *at, *activations, *experts;
  double risk, confidence;
  int64_t generate, threads;
  bool apply, shows_progress;
} calibrate_flags;

static void show_progress(void *user, size_t done, size_t all) {
  (void)user;
  fprintf(stderr, "\r%zu of %zu documents%s", done, all, done == all ? "\n" : "");
}

typedef LP_VEC(double) thetas;

/* "0.5,0.8" */
static lp_status read_thetas(const char *text, thetas *out, lp_diag *diag) {
  char *copy = lp_strdup(text), *rest = NULL;
  lp_status status = LP_OK;
  for (char *at = strtok_r(copy, ",", &rest); at && status == LP_OK; at = strtok_r(NULL, ",", &rest)) {
    double theta = 0;
    status = lp_parse_double(at, &theta, diag, LP_LOC_FILE("--at"));
    lp_vec_push(out, theta);
  }
  free(copy);
  return status == LP_OK ? LP_OK : LP_USAGE;
}

static lp_status check_flags(const calibrate_flags *flags, lp_diag *diag) {
  if (!flags->data) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "wanted --data=FILE");
  if (!(flags->risk > 0 && flags->risk < 1))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--risk"), "%g is no share between 0 and 1", flags->risk);
  if (!(flags->confidence > 0 && flags->confidence < 1))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--confidence"), "%g is no share between 0 and 1",
                       flags->confidence);
  if (flags->activations && flags->experts)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "--activations and --experts write files of two runs");
  if (flags->at && flags->apply)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "--at searches for no theta, so --apply has none to write");
  return LP_OK;
}

static lp_status apply(const char *bundle, const lp_calibration_report *report, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  LP_OWNED(lp_free_at) char *path = lp_path_join(bundle, LP_CALIBRATION_FILE);
  lp_calibration_print_json(report, &text);
  return lp_file_write(path, text.data, text.size, diag);
}

static lp_status print(const calibrate_flags *flags, const lp_calibration_report *report, lp_diag *diag) {
  lp_buf text = {0};
  (lp_streq(flags->format, "json") ? lp_calibration_print_json : lp_calibration_print_text)(report, &text);
  return lp_tool_write("-", &text, diag);
}

/* What weights are multiplied by, or which experts are chosen. */
static lp_status measure_activations(const calibrate_flags *flags, lp_diag *diag) {
  const lp_calibrate_options options = {.data = flags->data,
                                        .threads = (int32_t)flags->threads,
                                        .progress = flags->shows_progress ? show_progress : NULL};
  lp_bundle *bundle = NULL;
  lp_buf text = {0};
  LP_TRY(lp_bundle_load(flags->bundle, &(lp_bundle_options){.load = LP_LOAD_DEVICE}, &bundle, diag));
  lp_status status = lp_calibrate_activations(bundle, &options, flags->experts != NULL, &text, diag);
  if (status == LP_OK) status = lp_tool_write(flags->experts ? flags->experts : flags->activations, &text, diag);
  lp_buf_free(&text);
  lp_bundle_free(bundle);
  return status;
}

static lp_status calibrate(const calibrate_flags *flags, const thetas *at, lp_diag *diag) {
  lp_calibrate_options options = {.data = flags->data,
                                  .risk = flags->risk,
                                  .confidence = flags->confidence,
                                  .generate = flags->generate,
                                  .at = at->data,
                                  .at_count = at->count,
                                  .threads = (int32_t)flags->threads,
                                  .progress = flags->shows_progress ? show_progress : NULL};
  lp_bundle_options load = {.load = LP_LOAD_ALL};
  lp_bundle *bundle = NULL;
  lp_calibration_report report = {0};
  (void)lp_codec_parse(flags->codec, &options.codec); /* the option was checked before */
  LP_TRY(lp_bundle_load(flags->bundle, &load, &bundle, diag));
  lp_status status = lp_calibrate(bundle, &options, &report, diag);
  if (status == LP_OK && flags->apply) status = apply(flags->bundle, &report, diag);
  if (status == LP_OK) status = print(flags, &report, diag);
  lp_calibration_report_free(&report);
  lp_bundle_free(bundle);
  return status;
}

static lp_status run(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  calibrate_flags *flags = command->user;
  flags->bundle = args->data[0];
  flags->shows_progress = lp_tool_shows_progress(command->voice);
  LP_OWNED(lp_free_at) thetas at = {0};
  lp_status status = check_flags(flags, diag);
  if (status == LP_OK && flags->at) status = read_thetas(flags->at, &at, diag);
  const bool measures = flags->activations || flags->experts;
  if (status == LP_OK) status = measures ? measure_activations(flags, diag) : calibrate(flags, &at, diag);
  return status;
}

int lp_tool_calibrate(int argc, char **argv) {
  calibrate_flags flags = {.codec = "auto", .format = "text", .risk = 0.01, .confidence = 0.95};
  const lp_option options[] = {
      {"--data", LP_OPTION_TEXT, &flags.data, "FILE",
       "read documents: text with blank lines between them, or FILE.jsonl with a document on each line"},
      {"--risk", LP_OPTION_F64, &flags.risk, "R",
       "let at most this share of tokens differ from the full model's (0.01)"},
      {"--confidence", LP_OPTION_F64, &flags.confidence, "C", "set the confidence of the bound on that share (0.95)"},
      {"--generate", LP_OPTION_POSITIVE, &flags.generate, "N",
       "judge N tokens that the full model generates after each document, not its own tokens"},
      {"--codec", LP_OPTION_CHOICE, &flags.codec, "auto|f32|f16|int8|int4",
       "assume that hidden states travel in this type, which may change tokens too (f16)"},
      {"--at", LP_OPTION_TEXT, &flags.at, "THETA[,THETA]",
       "search no theta; report the results of these thetas on the whole text"},
      {"--apply", LP_OPTION_FLAG, &flags.apply, NULL, "write the result into the bundle, for run --theta=calibrated"},
      {"--activations", LP_OPTION_TEXT, &flags.activations, "FILE",
       "search no theta; write what the weights of a bundle of `compile --profile` are multiplied by to FILE, for "
       "`compile --quantise=search`"},
      {"--experts", LP_OPTION_TEXT, &flags.experts, "FILE",
       "search no theta; write how often tokens choose each expert of a bundle of `compile --profile` to FILE, for "
       "`compile --experts`"},
      {"--threads", LP_OPTION_COUNT, &flags.threads, "N", "use N threads (the machine's cores)"},
      {"-o", LP_OPTION_CHOICE, &flags.format, "text|json", "choose the format (text)"},
  };
  const lp_command command = {.usage = "llmpart calibrate BUNDLE --data=FILE [--risk=0.01] [--apply] [options]",
                              .summary = "Finds the smallest theta with which the exits of a bundle disagree with the "
                                         "full model on less than a share\nof tokens, at 95 % confidence on text that "
                                         "was held out. Runs both sides here; changes nothing without --apply.",
                              LP_OPTIONS(options),
                              .args = {1, 1},
                              .act = run,
                              .user = &flags};
  return lp_tool_main(&command, argc, argv);
}
