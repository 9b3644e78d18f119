/* runtime/exits/calibrate: finds the smallest theta with which threshold mode differs from the full model in less than
 * a given share of tokens, the risk.
 *
 * Both halves of a bundle run over the user's text in this process. After each token the predictions of the exits are
 * compared with that of the full model, and the search for theta uses the result. This library stands above session/
 * and knows no link; `llmpart calibrate` is its only caller. One thread at a time.
 *
 * It also measures what a model's weights are multiplied by, by which `llmpart compile` rounds them.
 *
 * Sources: the search is fixed-sequence testing as in Angelopoulos, Bates, Candes, Jordan, Lei, "Learn then Test"
 * (2021), applied to early exits as in Schuster et al., "Confident Adaptive Language Modeling" (2022). The bound is
 * Clopper and Pearson's, on the effective sample of Korn and Graubard (1998), since tokens of one document depend on
 * each other.
 */
#pragma once

#include "runtime/runtime.h"

/* Pointers are borrowed for the call. */
typedef struct {
  const char *data;  /* path of the documents; docs/exits.md describes the formats */
  double risk;       /* in (0, 1): the share of tokens that may differ from the full model's */
  double confidence; /* in (0, 1): probability with which the share stays below the risk, usually 0.95 */
  lp_codec codec;    /* of the rows in threshold mode; AUTO: f16, as there */
  int64_t
      /* 0: judge the tokens of the documents; else judge this number of tokens that the full model adds to each */
      generate;
  const double
      *at; /* [at_count] thetas to evaluate instead of a search: all documents are held out, the risk is unused */
  size_t at_count;                                       /* 0: search */
  int32_t threads;                                       /* 0: the machine's cores */
  void (*progress)(void *user, size_t done, size_t all); /* called after each document; may be NULL */
  void *user;
} lp_calibrate_options;

/* The results of a theta on the held-out text. */
typedef struct {
  double theta;
  int64_t exits;         /* tokens that an exit gives */
  int64_t disagreements; /* tokens that differ from the full model's, whether an exit or the cloud gave them */
  double design_effect;  /* variance relative to that of independent tokens; at least 1 */
  double bound;          /* upper bound of the share of disagreements, at `confidence` */
} lp_theta_figures;

enum { LP_THETA_STEPS = 8 };
extern const double lp_theta_steps[LP_THETA_STEPS]; /* the thetas of lp_exit_figures */

/* The results of one exit, regardless of the others. */
typedef struct {
  int32_t layer;
  int64_t sure[LP_THETA_STEPS];  /* tokens for which its confidence is at least theta */
  int64_t right[LP_THETA_STEPS]; /* those of them that equal the full model's */
} lp_exit_figures;

typedef struct {
  double risk, confidence;
  lp_codec codec;
  int64_t generate;
  char bundle_hash[65], data_sha256[65];
  int64_t documents[2], tokens[2]; /* [0]: those that proposed thetas; [1]: held out */
  int64_t repeats;                 /* documents that were omitted because they repeat another */
  bool searched;                   /* false: `chosen` is unset, and `tried` has the thetas of the options */
  lp_theta_figures chosen;
  LP_VEC(lp_theta_figures) tried; /* in the order of the test, from the safest; the last one may have failed it */
  LP_VEC(lp_exit_figures) exits;  /* on the held-out text */
} lp_calibration_report;

/* Calibrates a bundle that has both sides loaded. The caller zeroes `out` and frees it with
 * lp_calibration_report_free, also after a failure. Fails when the text is too short for the risk, with the number of
 * tokens that it would take, and when no theta keeps the risk. */
LP_MUST_USE lp_status lp_calibrate(const lp_bundle *bundle, const lp_calibrate_options *options,
                                   lp_calibration_report *out, lp_diag *diag);
void lp_calibration_report_free(lp_calibration_report *report);

/* Appends the report: as JSON of schema llmpart.calibration/1, which is also the file in a bundle, or as text to
 * read. */
void lp_calibration_print_json(const lp_calibration_report *report, lp_buf *out);
void lp_calibration_print_text(const lp_calibration_report *report, lp_buf *out);

/* Appends what the weights of a bundle's products are multiplied by over the documents, as JSON of schema
 * llmpart.activations/1: for each weight the mean squares of these elements; or with `experts`, as JSON of schema
 * llmpart.experts/1, for each stack of experts the share of tokens that choose each. Of the options it reads `data`,
 * `threads` and `progress`. The bundle is wholly on a CPU as device, and was compiled to be profiled. */
LP_MUST_USE lp_status lp_calibrate_activations(const lp_bundle *bundle, const lp_calibrate_options *options,
                                               bool experts, lp_buf *out, lp_diag *diag);

/* ---- bounds (bound.c) -------------------------------------------------------------------------------------------- */

/* Clopper and Pearson's upper bound of a share, when `count` of `of` were observed: the greatest p with
 * P(X <= count) >= 1 - confidence. Both may be fractions (an effective sample); 0 <= count <= of, 0 < of. */
double lp_upper_bound(double count, double of, double confidence);
/* The smallest sample for which the bound is below `risk` when nothing is observed in it. */
double lp_least_sample(double risk, double confidence);

/* Clusters of tokens: count[i] of of[i] are observed in cluster i. */
typedef struct {
  const int64_t *count, *of;
  size_t clusters;
} lp_clusters;
/* The variance of the ratio estimator over clusters, relative to that of independent tokens; at least 1, and 1 when
 * none or all tokens are observed. */
double lp_design_effect(const lp_clusters *seen);
/* The upper bound for the effective sample: the tokens divided by the design effect, and for few clusters also by the
 * square of the ratio of Student's quantiles with the degrees of freedom of the clusters and of the tokens. For a
 * single cluster with observed tokens: 1. */
double lp_cluster_bound(const lp_clusters *seen, double confidence);
