/* runtime/calibrate: the smallest theta of `threshold` mode whose disagreement with the full model stays below a risk.
 *
 * Both halves of a bundle run over the user's text in this process. What an exit would have said behind each token is compared
 * with what the full model says there; the threshold is found on that. It knows nothing of links, and nothing runs it but
 * `llmpart calibrate`. One thread at a time.
 *
 * Sources: the search is fixed-sequence testing as in Angelopoulos, Bates, Candes, Jordan, Lei, "Learn then Test" (2021),
 * applied to early exits as in Schuster et al., "Confident Adaptive Language Modeling" (2022). The bound is Clopper and
 * Pearson's, on the effective sample of Korn and Graubard (1998), since tokens of one document depend on each other.
 */
#ifndef LP_CALIBRATE_H
#define LP_CALIBRATE_H

#include "runtime/runtime.h"

typedef struct {
  const char *data;  /* the documents: docs/exits.md tells the forms */
  double risk;       /* in (0, 1): share of tokens that may differ from the full model's */
  double confidence; /* in (0, 1): that it stays below, 0.95 */
  lp_codec codec;    /* of rows in threshold mode; AUTO: f16, as there */
  int64_t generate;  /* 0: the documents' tokens are judged; else so many that the full model generates behind each */
  const double
      *at; /* [at_count] thetas to look at instead of a search: all documents are held out, no risk is asked for */
  size_t at_count;                                       /* 0: search */
  int32_t threads;                                       /* 0: the machine's cores */
  void (*progress)(void *user, size_t done, size_t all); /* after each document; may be NULL */
  void *user;
} lp_calibrate_options;

/* What a theta comes to on the held-out text. */
typedef struct {
  double theta;
  int64_t exits;         /* tokens that an exit gives */
  int64_t disagreements; /* tokens that are not the full model's, whoever gave them */
  double design_effect;  /* how many times as large as of independent tokens the variance is; at least 1 */
  double bound;          /* of the disagreement, at `confidence` */
} lp_theta_figures;

enum { LP_THETA_STEPS = 8 };
extern const double lp_theta_steps[LP_THETA_STEPS]; /* the thetas of lp_exit_figures */

/* An exit on its own, whatever the others say: tokens it is at least so sure of, and how many of them are the full model's. */
typedef struct {
  int32_t layer;
  int64_t sure[LP_THETA_STEPS], right[LP_THETA_STEPS];
} lp_exit_figures;

typedef struct {
  double risk, confidence;
  lp_codec codec;
  int64_t generate;
  char bundle_hash[65], data_sha256[65];
  int64_t documents[2], tokens[2]; /* 0: those that proposed thetas; 1: held out */
  int64_t repeats;                 /* documents left out because the same text was there already */
  bool searched;                   /* else `chosen` says nothing, and `tried` is what was asked for */
  lp_theta_figures chosen;
  LP_VEC(lp_theta_figures) tried; /* in the order of the test, from the safest; the last may be one that failed */
  LP_VEC(lp_exit_figures) exits;  /* on the held-out text */
} lp_calibration_report;

/* Adds to `out` (zero it first; release it also after a failure). The bundle has both sides loaded. Fails, with how many
 * tokens it would take, where the text is too short for the risk, and where no theta keeps it. */
LP_MUST_USE lp_status lp_calibrate(const lp_bundle *bundle, const lp_calibrate_options *options,
                                   lp_calibration_report *out, lp_diag *diag);
void lp_calibration_report_free(lp_calibration_report *report);

/* Schema llmpart.calibration/1, which is also what a bundle carries; the same for humans. */
void lp_calibration_print_json(const lp_calibration_report *report, lp_buf *out);
void lp_calibration_print_text(const lp_calibration_report *report, lp_buf *out);

/* ---- bounds (bound.c) ---------------------------------------------------------------------------------------------- */

/* Clopper and Pearson's upper bound of a share of which `count` of `of` were seen: the greatest p with P(X <= count) >=
 * 1 - confidence. Both may be fractions (an effective sample), 0 <= count <= of, 0 < of. */
double lp_upper_bound(double count, double of, double confidence);
/* The fewest of which none may be seen for the bound to stay below `risk`. */
double lp_least_sample(double risk, double confidence);

/* Clusters of tokens: `count[i]` of `of[i]` seen in each. */
typedef struct {
  const int64_t *count, *of;
  size_t clusters;
} lp_clusters;
/* Variance of the ratio estimator over clusters against that of independent tokens, at least 1; 1 when none or all are seen. */
double lp_design_effect(const lp_clusters *seen);
/* The upper bound on the effective sample: divided by the design effect, and for few clusters by the square of Student's
 * quantile at their degrees of freedom against that of the tokens'. Of one cluster in which some are seen: 1. */
double lp_cluster_bound(const lp_clusters *seen, double confidence);

#endif
