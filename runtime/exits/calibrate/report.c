/* Prints the report of a calibration as JSON and as text. */
#include <math.h>

#include "base/json/writer.h"
#include "runtime/exits/calibrate/calibrate_internal.h"
#include "runtime/runtime.h"

static double share(int64_t part, int64_t of) {
  return of > 0 ? (double)part / (double)of : 0;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_figures(lp_json_writer *w, const lp_calibration_report *report, const lp_theta_figures *figures) {
  int64_t tokens = report->tokens[1];
  lp_json_put_number(w, "theta", figures->theta);
  lp_json_put_number(w, "exit_rate", share(figures->exits, tokens));
  lp_json_put_integer(w, "disagreements", figures->disagreements);
  lp_json_put_number(w, "disagreement", share(figures->disagreements, tokens));
  lp_json_put_number(w, "design_effect", figures->design_effect);
  lp_json_put_number(w, "bound", figures->bound);
}

static void put_exit(lp_json_writer *w, const lp_calibration_report *report, const lp_exit_figures *exit) {
  lp_json_put_object(w, NULL);
  lp_json_put_integer(w, "layer", exit->layer);
  lp_json_put_array(w, "alone");
  for (int i = 0; i < LP_THETA_STEPS; i++) {
    lp_json_put_object(w, NULL);
    lp_json_put_number(w, "theta", lp_theta_steps[i]);
    lp_json_put_number(w, "exit_rate", share(exit->sure[i], report->tokens[1]));
    lp_json_put_number(w, "agreement", exit->sure[i] > 0 ? share(exit->right[i], exit->sure[i]) : NAN);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
  lp_json_put_end(w);
}

static void put_counts(lp_json_writer *w, const char *key, const lp_calibration_report *report, int part) {
  lp_json_put_object(w, key);
  lp_json_put_integer(w, "documents", report->documents[part]);
  lp_json_put_integer(w, "tokens", report->tokens[part]);
  lp_json_put_end(w);
}

static void put_found(lp_json_writer *w, const lp_calibration_report *report) {
  put_figures(w, report, &report->chosen);
  lp_json_put_number(w, "cloud_request_rate", 1 - share(report->chosen.exits, report->tokens[1]));
  put_counts(w, "proposing", report, 0);
}

static void put_lists(lp_json_writer *w, const lp_calibration_report *report) {
  lp_json_put_array(w, report->searched ? "tested" : "at");
  for (size_t i = 0; i < report->tried.count; i++) {
    lp_json_put_object(w, NULL);
    put_figures(w, report, &report->tried.data[i]);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
  lp_json_put_array(w, "exits");
  for (size_t i = 0; i < report->exits.count; i++)
    put_exit(w, report, &report->exits.data[i]);
  lp_json_put_end(w);
}

void lp_calibration_print_json(const lp_calibration_report *report, lp_buf *out) {
  lp_json_writer w = lp_json_document_begin(out, (lp_json_style){.indent = 2, .digits = 9, .marks_reals = true},
                                            "llmpart.calibration/1");
  lp_json_put_text(&w, "bundle", report->bundle_hash);
  lp_json_put_text(&w, "data_sha256", report->data_sha256);
  lp_json_put_text(&w, "codec", lp_codec_name(report->codec));
  lp_json_put_integer(&w, "generated_tokens", report->generate);
  lp_json_put_number(&w, "risk", report->risk);
  lp_json_put_number(&w, "confidence", report->confidence);
  if (report->searched) put_found(&w, report);
  put_counts(&w, "held_out", report, 1);
  lp_json_put_integer(&w, "repeated_documents", report->repeats);
  put_lists(&w, report);
  lp_json_document_end(&w);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put_exits(const lp_calibration_report *report, lp_buf *out) {
  lp_buf_puts(out, "\nEach exit by itself: % of held-out tokens with at least this confidence, and % of those that "
                   "equal the full model's\n\nexit  ");
  for (int i = 0; i < LP_THETA_STEPS; i++)
    lp_buf_printf(out, "  theta %-6g", lp_theta_steps[i]);
  lp_buf_puts(out, "\n");
  LP_FOR_VEC(const lp_exit_figures, exit, &report->exits) {
    lp_buf_printf(out, "%-6" PRId32, exit->layer);
    for (int i = 0; i < LP_THETA_STEPS; i++)
      if (exit->sure[i] > 0)
        lp_buf_printf(out, "  %5.1f %5.1f ", 100 * share(exit->sure[i], report->tokens[1]),
                      100 * share(exit->right[i], exit->sure[i]));
      else
        lp_buf_puts(out, "    0.0     - ");
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
                " documents proposed thetas, %zu of which were tested\n",
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
  LP_FOR_VEC(const lp_theta_figures, at, &report->tried)
    lp_buf_printf(out, "%-8g %7.1f %9.3f %9.3f\n", at->theta, 100 * share(at->exits, tokens),
                  100 * share(at->disagreements, tokens), 100 * at->bound);
}

void lp_calibration_print_text(const lp_calibration_report *report, lp_buf *out) {
  (report->searched ? put_chosen : put_tried)(report, out);
  if (report->repeats > 0)
    lp_buf_printf(out, "left out    %" PRId64 " documents that repeat another\n", report->repeats);
  put_exits(report, out);
}
