/* Types that the files of this library share: documents, opinions about their tokens, and figures over opinions. */
#pragma once

#include "runtime/exits/calibrate/calibrate.h"
#include "runtime/runtime.h"

/* ---- documents (documents.c) ------------------------------------------------------------------------------------- */

typedef struct {
  lp_tokens ids;
  int64_t judged; /* number of positions that are judged: the last ones */
  int32_t line;   /* in the file, from 1 */
  char digest[65];
} lp_corpus_document;

typedef LP_VEC(lp_corpus_document) lp_documents;

/* Reads, encodes and checks the documents of `path`, and sorts them by their digests, so that only the content of a
 * document decides which part it belongs to. Omits repeated documents and counts them. */
LP_MUST_USE lp_status lp_documents_read(const char *path, const lp_bundle *bundle, lp_documents *out,
                                        lp_calibration_report *report, lp_diag *diag);
void lp_documents_free(lp_documents *documents);

/* ---- passes over documents (judge.c) ----------------------------------------------------------------------------- */

/* The prediction of one head after a token, compared with the full model's. */
typedef struct {
  double confidence;
  bool agrees;
} lp_opinion;

typedef struct {
  int32_t exits;
  LP_VEC(lp_opinion) opinion; /* [position][exits + 1]: of each exit, then of the cloud */
  LP_VEC(size_t) end;         /* [documents]: where the positions of each end */
} lp_judged;

typedef struct lp_judge lp_judge;
LP_MUST_USE lp_status lp_judge_open(const lp_bundle *bundle, const lp_calibrate_options *options, lp_judge **out,
                                    lp_diag *diag);
/* Appends the opinions about a document. With `generate` in the options the full model first continues it. */
LP_MUST_USE lp_status lp_judge_document(lp_judge *judge, lp_corpus_document *document, lp_judged *out, lp_diag *diag);
void lp_judge_close(lp_judge *judge); /* NULL is allowed */
void lp_judged_free(lp_judged *judged);

/* ---- figures (figures.c) ----------------------------------------------------------------------------------------- */

/* The documents [first, last). */
typedef struct {
  const lp_judged *judged;
  size_t first, last;
} lp_judged_part;

size_t lp_part_begin(const lp_judged_part *part); /* the first position, and the end of the last */
size_t lp_part_end(const lp_judged_part *part);
lp_theta_figures lp_figures_at(const lp_judged_part *part, double theta, double confidence);
void lp_figures_of_exits(const lp_judged_part *part, lp_calibration_report *out);
