/* Searches for theta. A quarter of the documents proposes thetas; the rest tests them one after the other, from the
 * safest, until one fails. Each test may use the full level: the first theta that passes wrongly can only be the
 * first wrong one of the sequence, so the chance of any wrong pass is that of a single test (fixed-sequence testing;
 * calibrate.h). */
#include <math.h>

#include "runtime/bundle/bundle.h"
#include "runtime/exits/calibrate/calibrate_internal.h"
#include "runtime/runtime.h"

/* Thetas are proposed at PROPOSED quantiles of the tokens that leave by an exit, and rounded up to 1 / ROUNDED. */
enum { PROPOSED = 400, ROUNDED = 1000000 };

/* ---- proposals --------------------------------------------------------------------------------------------------- */

static int descending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* For each token of the part the greatest theta at which it leaves by an exit, in descending order. */
static double *thetas_of_tokens(const lp_judged_part *part, size_t *count) {
  size_t begin = lp_part_begin(part), heads = (size_t)part->judged->exits + 1;
  *count = lp_part_end(part) - begin;
  double *out = lp_alloc((*count + 1) * sizeof *out);
  for (size_t i = 0; i < *count; i++)
    for (size_t exit = 0; exit + 1 < heads; exit++)
      out[i] = fmax(out[i], part->judged->opinion.data[(begin + i) * heads + exit].confidence);
  if (*count > 0) qsort(out, *count, sizeof *out, descending);
  return out;
}

typedef LP_VEC(double) thetas;

static void propose(thetas *out, double theta) {
  theta = fmin(ceil(theta * (double)ROUNDED) / (double)ROUNDED, 1);
  if (out->count == 0 || theta < out->data[out->count - 1]) lp_vec_push(out, theta);
}

/* Proposes thetas in descending order, from 1 to 0. */
static void propose_all(const lp_judged_part *part, thetas *out) {
  size_t count = 0;
  LP_OWNED(lp_free_at) double *of = thetas_of_tokens(part, &count);
  propose(out, 1);
  for (size_t i = 1; i <= PROPOSED && count > 0; i++)
    propose(out, of[(i * count + PROPOSED - 1) / PROPOSED - 1]);
  propose(out, 0);
}

/* ---- the test ---------------------------------------------------------------------------------------------------- */

static void test_all(const lp_judged_part *held_out, const thetas *proposed, lp_calibration_report *out) {
  bool holds = true;
  for (size_t i = 0; i < proposed->count && holds; i++) {
    lp_theta_figures figures = lp_figures_at(held_out, proposed->data[i], out->confidence);
    holds = figures.bound < out->risk;
    if (holds) out->chosen = figures;
    lp_vec_push(&out->tried, figures);
  }
}

static lp_status none_holds(const lp_calibrate_options *options, const lp_calibration_report *report, lp_diag *diag) {
  const lp_theta_figures *safest = &report->tried.data[0];
  double least = lp_least_sample(report->risk, report->confidence), held = (double)report->tokens[1];
  lp_loc loc = LP_LOC_FILE(options->data);
  if (safest->disagreements == 0) {
    lp_status status = lp_error(
        diag, loc, "%" PRId64 " held-out tokens are too few for a risk of %g: it takes %.0f at a confidence of %g",
        report->tokens[1], report->risk, least, report->confidence);
    lp_note(diag, loc, "that is about %.0f tokens of such documents, held out or not; there are %" PRId64,
            ceil(least / held * (held + (double)report->tokens[0])), report->tokens[0] + report->tokens[1]);
    return status;
  }
  lp_status status = lp_error(diag, loc, "no theta keeps the disagreement below %g at a confidence of %g", report->risk,
                              report->confidence);
  lp_note(diag, loc, "at theta 1 it is %g (%" PRId64 " of %" PRId64 " tokens), at most %g",
          (double)safest->disagreements / held, safest->disagreements, report->tokens[1], safest->bound);
  if (safest->exits == 0)
    lp_note(diag, loc, "no token left by an exit: the codec of the rows causes the disagreement (--codec)");
  return status;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static lp_status check_documents(const lp_calibrate_options *options, const lp_documents *documents, lp_diag *diag) {
  lp_loc loc = LP_LOC_FILE(options->data);
  if (documents->count >= (options->at_count > 0 ? 1 : 4)) return LP_OK;
  if (options->at_count > 0) return lp_error(diag, loc, "there is no document in it");
  lp_status status =
      lp_error(diag, loc, "%zu different documents; wanted 4 or more, some of which are held out", documents->count);
  lp_note(diag, loc,
          lp_has_suffix(options->data, ".jsonl") ? "each line is a document" : "blank lines stand between documents");
  return status;
}

static lp_status judge_all(lp_judge *judge, const lp_calibrate_options *options, lp_documents *documents,
                           lp_judged *out, lp_diag *diag) {
  for (size_t i = 0; i < documents->count; i++) {
    LP_TRY(lp_judge_document(judge, &documents->data[i], out, diag));
    if (options->progress) options->progress(options->user, i + 1, documents->count);
  }
  return LP_OK;
}

static lp_status conclude(const lp_calibrate_options *options, const lp_bundle *bundle, const lp_judged *judged,
                          lp_calibration_report *out, lp_diag *diag) {
  size_t quarter = options->at_count > 0 ? 0 : judged->end.count / 4;
  lp_judged_part proposing = {.judged = judged, .last = quarter};
  lp_judged_part held_out = {.judged = judged, .first = quarter, .last = judged->end.count};
  LP_OWNED(lp_free_at) thetas proposed = {0};
  out->documents[0] = (int64_t)quarter;
  out->documents[1] = (int64_t)(judged->end.count - quarter);
  out->tokens[0] = (int64_t)lp_part_end(&proposing);
  out->tokens[1] = (int64_t)(lp_part_end(&held_out) - lp_part_begin(&held_out));
  for (int32_t i = 0; i < judged->exits; i++)
    lp_vec_push(&out->exits, (lp_exit_figures){.layer = bundle->manifest.exits[i].layer});
  lp_figures_of_exits(&held_out, out);
  for (size_t i = 0; i < options->at_count; i++)
    lp_vec_push(&out->tried, lp_figures_at(&held_out, options->at[i], out->confidence));
  out->searched = options->at_count == 0;
  if (!out->searched) return LP_OK;
  propose_all(&proposing, &proposed);
  test_all(&held_out, &proposed, out);
  return out->tried.data[0].bound < out->risk ? LP_OK : none_holds(options, out, diag);
}

lp_status lp_calibrate(const lp_bundle *bundle, const lp_calibrate_options *given, lp_calibration_report *out,
                       lp_diag *diag) {
  lp_calibrate_options options = *given;
  if (options.codec == LP_CODEC_AUTO) options.codec = LP_CODEC_F16;
  out->risk = options.risk;
  out->confidence = options.confidence;
  out->codec = options.codec;
  out->generate = options.generate;
  (void)snprintf(out->bundle_hash, sizeof out->bundle_hash, "%s", bundle->manifest.hash);
  lp_documents documents = {0};
  lp_judged judged = {0};
  lp_judge *judge = NULL;
  lp_status status = lp_judge_open(bundle, &options, &judge, diag);
  if (status == LP_OK) status = lp_documents_read(options.data, bundle, &documents, out, diag);
  if (status == LP_OK) status = check_documents(&options, &documents, diag);
  if (status == LP_OK) status = judge_all(judge, &options, &documents, &judged, diag);
  if (status == LP_OK) status = conclude(&options, bundle, &judged, out, diag);
  lp_judge_close(judge);
  lp_judged_free(&judged);
  lp_documents_free(&documents);
  return status;
}

void lp_calibration_report_free(lp_calibration_report *report) {
  lp_vec_free(&report->tried);
  lp_vec_free(&report->exits);
}
