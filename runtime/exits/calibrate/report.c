/* Prints the report of a calibration as JSON and as text. */
#include <jansson.h>
#include <stdlib.h>

#include "runtime/exits/calibrate/calibrate_internal.h"
#include "runtime/runtime.h"

static double share(int64_t part, int64_t of) {
  return of > 0 ? (double)part / (double)of : 0;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *figures_json(const lp_calibration_report *report, const lp_theta_figures *figures) {
  int64_t tokens = report->tokens[1];
  return json_pack("{s:f, s:f, s:I, s:f, s:f, s:f}", "theta", figures->theta, "exit_rate",
                   share(figures->exits, tokens), "disagreements", (json_int_t)figures->disagreements, "disagreement",
                   share(figures->disagreements, tokens), "design_effect", figures->design_effect, "bound",
                   figures->bound);
}

static json_t *exit_json(const lp_calibration_report *report, const lp_exit_figures *exit) {
  json_t *steps = json_array();
  for (int i = 0; i < LP_THETA_STEPS; i++) {
    json_t *agreement = exit->sure[i] > 0 ? json_real(share(exit->right[i], exit->sure[i])) : json_null();
    json_array_append_new(steps, json_pack("{s:f, s:f, s:o}", "theta", lp_theta_steps[i], "exit_rate",
                                           share(exit->sure[i], report->tokens[1]), "agreement", agreement));
  }
  return json_pack("{s:i, s:o}", "layer", (int)exit->layer, "alone", steps);
}

static json_t *counts_json(const lp_calibration_report *report, int part) {
  return json_pack("{s:I, s:I}", "documents", (json_int_t)report->documents[part], "tokens",
                   (json_int_t)report->tokens[part]);
}

static void add_chosen(const lp_calibration_report *report, json_t *root) {
  json_t *chosen = figures_json(report, &report->chosen);
  json_object_update(root, chosen);
  json_decref(chosen);
  double rate = 1 - share(report->chosen.exits, report->tokens[1]);
  json_object_set_new(root, "cloud_request_rate", json_real(rate));
  json_object_set_new(root, "proposing", counts_json(report, 0));
}

void lp_calibration_print_json(const lp_calibration_report *report, lp_buf *out) {
  json_t *root =
      json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:f}", "schema", "llmpart.calibration/1", "bundle", report->bundle_hash,
                "data_sha256", report->data_sha256, "codec", lp_codec_name(report->codec), "generated_tokens",
                (json_int_t)report->generate, "risk", report->risk, "confidence", report->confidence);
  json_t *tried = json_array(), *exits = json_array();
  if (report->searched) add_chosen(report, root);
  json_object_set_new(root, "held_out", counts_json(report, 1));
  json_object_set_new(root, "repeated_documents", json_integer(report->repeats));
  for (size_t i = 0; i < report->tried.count; i++)
    json_array_append_new(tried, figures_json(report, &report->tried.data[i]));
  for (size_t i = 0; i < report->exits.count; i++)
    json_array_append_new(exits, exit_json(report, &report->exits.data[i]));
  json_object_set_new(root, report->searched ? "tested" : "at", tried);
  json_object_set_new(root, "exits", exits);
  char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
  lp_buf_printf(out, "%s\n", text ? text : "{}");
  free(text);
  json_decref(root);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put_exits(const lp_calibration_report *report, lp_buf *out) {
  lp_buf_puts(out,
              "\nEach exit alone: % of held-out tokens where it is at least so sure, and % of those that are the full "
              "model's\n\nexit  ");
  for (int i = 0; i < LP_THETA_STEPS; i++)
    lp_buf_printf(out, "  theta %-6g", lp_theta_steps[i]);
  lp_buf_puts(out, "\n");
  for (size_t e = 0; e < report->exits.count; e++) {
    const lp_exit_figures *exit = &report->exits.data[e];
    lp_buf_printf(out, "%-6" PRId32, exit->layer);
    for (int i = 0; i < LP_THETA_STEPS; i++) {
      if (exit->sure[i] > 0)
        lp_buf_printf(out, "  %5.1f %5.1f ", 100 * share(exit->sure[i], report->tokens[1]),
                      100 * share(exit->right[i], exit->sure[i]));
      else
        lp_buf_puts(out, "    0.0     - ");
    }
    lp_buf_puts(out, "\n");
  }
}

static void put_chosen(const lp_calibration_report *report, lp_buf *out) {
  const lp_theta_figures *chosen = &report->chosen;
  int64_t tokens = report->tokens[1];
  double exits = 100 * share(chosen->exits, tokens);
  lp_buf_printf(out, "theta %g: less than %g %% of tokens differ from the full model's, at %g %% confidence\n",
                chosen->theta, 100 * report->risk, 100 * report->confidence);
  lp_buf_printf(out,
                "held out    %" PRId64 " documents, %" PRId64 " tokens%s; %" PRId64
                " documents proposed thetas, %zu of "
                "which were tested\n",
                report->documents[1], tokens, report->generate > 0 ? " that the full model generated" : "",
                report->documents[0], report->tried.count);
  lp_buf_printf(out, "disagree    %.3f %% (%" PRId64 "), at most %.3f %%; design effect %.2f\n",
                100 * share(chosen->disagreements, tokens), chosen->disagreements, 100 * chosen->bound,
                chosen->design_effect);
  lp_buf_printf(out, "exit        %.1f %% of tokens\n", exits);
  lp_buf_printf(out, "saving      %.1f of 100 round trips; the cloud is asked for the other %.1f tokens\n", exits,
                100 - exits);
}

/* The thetas of the options. */
static void put_tried(const lp_calibration_report *report, lp_buf *out) {
  int64_t tokens = report->tokens[1];
  lp_buf_printf(out,
                "%" PRId64 " documents, %" PRId64 " tokens; %% of tokens\n\ntheta       exit  disagree   at most\n",
                report->documents[1], tokens);
  for (size_t i = 0; i < report->tried.count; i++) {
    const lp_theta_figures *at = &report->tried.data[i];
    lp_buf_printf(out, "%-8g %7.1f %9.3f %9.3f\n", at->theta, 100 * share(at->exits, tokens),
                  100 * share(at->disagreements, tokens), 100 * at->bound);
  }
}

void lp_calibration_print_text(const lp_calibration_report *report, lp_buf *out) {
  (report->searched ? put_chosen : put_tried)(report, out);
  if (report->repeats > 0)
    lp_buf_printf(out, "left out    %" PRId64 " documents that repeat another\n", report->repeats);
  put_exits(report, out);
}
