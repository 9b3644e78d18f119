/* llmpart hw fit, eval: makes machine models from tables of measured operators, and compares models with tables. */
#include "base/path.h"
#include "tools/hw/hw.h"

static lp_status fit_and_write(const hw_flags *flags, const char *csv, const lp_hw_samples *samples,
                               lp_machine *machine, lp_diag *diag) {
  lp_hw_fit_options options = {.knots = (int32_t)(flags->knots < 100000 ? flags->knots : 100000),
                               .single_curve = lp_streq(flags->design, "single-curve"),
                               .source = flags->source ? flags->source : lp_path_base(csv)};
  lp_hw_fit_result result;
  if (flags->name) machine->name = lp_arena_strdup(machine->arena, flags->name);
  LP_TRY(lp_hw_fit(machine, samples, &options, &result, diag));
  lp_buf text = {0};
  lp_hw_print(machine, &text);
  lp_status status = lp_tool_write_as(flags->out, &text, diag);
  if (status == LP_OK)
    fprintf(stderr, "%zu measurements fitted by %zu curves of %zu knots; %zu dropped, faster than '%s' can be\n",
            result.used, result.curves, result.knots, result.impossible, machine->name);
  return status;
}

lp_status hw_fit(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const hw_flags *flags = command->user;
  if (!flags->out) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'fit' needs '-o FILE.yaml'");
  LP_OWNED(lp_free_at) lp_hw_samples samples = {0};
  lp_machine *machine = NULL;
  lp_status status = lp_hw_samples_read(args->data[1], &samples, diag);
  if (status == LP_OK)
    status = flags->machine ? lp_hw_load(flags->machine, &machine, diag)
                            : lp_hw_for_table(args->data[1], &samples, &machine, diag);
  if (status == LP_OK) status = fit_and_write(flags, args->data[1], &samples, machine, diag);
  lp_hw_free(machine);
  return status;
}

/* ---- eval ---- */

static void print_text(const lp_hw_errors *errors, size_t count, size_t impossible, lp_buf *out) {
  lp_buf_printf(out, "%-18s %7s %8s %8s %8s %10s\n", "op", "n", "mean %", "median %", "p90 %", "in 90 %");
  for (size_t i = 0; i < count; i++)
    lp_buf_printf(out, "%-18s %7zu %8.2f %8.2f %8.2f %9.1f%%\n", errors[i].name, errors[i].count, errors[i].mape_pct,
                  errors[i].median_pct, errors[i].p90_pct, 100 * errors[i].coverage90);
  if (impossible > 0) lp_buf_printf(out, "left out: %zu measurements faster than the machine can be\n", impossible);
}

static void print_json(const lp_machine *machine, const lp_hw_errors *errors, size_t count, size_t impossible,
                       lp_buf *out) {
  lp_json_writer json = lp_tool_json(out, 9, "llmpart.hw-eval/1");
  lp_json_put_text(&json, "machine", machine->name);
  lp_json_put_text(&json, "predictor", machine->predictor->name);
  lp_json_put_integer(&json, "impossible", (int64_t)impossible);
  lp_json_put_object(&json, "ops");
  for (size_t i = 0; i < count; i++) {
    lp_json_put_object(&json, errors[i].name);
    lp_json_put_integer(&json, "n", (int64_t)errors[i].count);
    lp_json_put_number(&json, "mape_pct", errors[i].mape_pct);
    lp_json_put_number(&json, "median_pct", errors[i].median_pct);
    lp_json_put_number(&json, "p90_pct", errors[i].p90_pct);
    lp_json_put_number(&json, "coverage90", errors[i].coverage90);
    lp_json_put_end(&json);
  }
  lp_json_put_end(&json);
  lp_json_document_end(&json);
}

lp_status hw_eval(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const hw_flags *flags = command->user;
  lp_machine *machine = NULL;
  lp_hw_samples samples = {0};
  LP_TRY(lp_hw_load(args->data[1], &machine, diag));
  lp_status status = lp_hw_samples_read(args->data[2], &samples, diag);
  if (status == LP_OK) {
    lp_hw_errors errors[LP_HW_ERRORS];
    size_t impossible = 0;
    size_t count = lp_hw_evaluate(machine, &samples, errors, &impossible);
    lp_buf out = {0};
    if (lp_tool_wants(flags->out, "json"))
      print_json(machine, errors, count, impossible, &out);
    else
      print_text(errors, count, impossible, &out);
    status = lp_tool_write_as(flags->out, &out, diag);
  }
  lp_vec_free(&samples);
  lp_hw_free(machine);
  return status;
}
