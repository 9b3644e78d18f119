/* Computes the results of a theta, or of an exit, on documents that were judged. */

#include "runtime/exits/calibrate/calibrate_internal.h"

const double lp_theta_steps[LP_THETA_STEPS] = {0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99};

size_t lp_part_begin(const lp_judged_part *part) {
  return part->first > 0 ? part->judged->end.data[part->first - 1] : 0;
}

size_t lp_part_end(const lp_judged_part *part) {
  return part->last > 0 ? part->judged->end.data[part->last - 1] : 0;
}

static const lp_opinion *opinions_at(const lp_judged *judged, size_t position) {
  return judged->opinion.data + position * ((size_t)judged->exits + 1);
}

/* Returns the index of the head that gives the token: the first confident exit, else the cloud, which has the index
 * `exits`. */
static int32_t head_at(const lp_judged *judged, size_t position, double theta) {
  const lp_opinion *opinion = opinions_at(judged, position);
  int32_t exit = 0;
  while (exit < judged->exits && opinion[exit].confidence < theta)
    exit++;
  return exit;
}

lp_theta_figures lp_figures_at(const lp_judged_part *part, double theta, double confidence) {
  const lp_judged *judged = part->judged;
  size_t clusters = part->last - part->first, at = lp_part_begin(part);
  int64_t *counts = lp_alloc(2 * (clusters + 1) * sizeof *counts), *of = counts + clusters;
  lp_theta_figures out = {.theta = theta};
  for (size_t i = 0; i < clusters; i++) {
    of[i] = (int64_t)(judged->end.data[part->first + i] - at);
    counts[i] = 0;
    for (; at < judged->end.data[part->first + i]; at++) {
      int32_t head = head_at(judged, at, theta);
      out.exits += head < judged->exits;
      counts[i] += !opinions_at(judged, at)[head].agrees;
    }
    out.disagreements += counts[i];
  }
  lp_clusters seen = {.count = counts, .of = of, .clusters = clusters};
  out.design_effect = lp_design_effect(&seen);
  out.bound = lp_cluster_bound(&seen, confidence);
  free(counts);
  return out;
}

void lp_figures_of_exits(const lp_judged_part *part, lp_calibration_report *out) {
  for (size_t at = lp_part_begin(part); at < lp_part_end(part); at++)
    for (size_t exit = 0; exit < out->exits.count; exit++) {
      const lp_opinion *opinion = opinions_at(part->judged, at) + exit;
      lp_exit_figures *figures = &out->exits.data[exit];
      for (int step = 0; step < LP_THETA_STEPS && opinion->confidence >= lp_theta_steps[step]; step++) {
        figures->sure[step]++;
        figures->right[step] += opinion->agrees;
      }
    }
}
