/* What the files of the checker share: the search for a bound and how far it may go, and the parts of the comparison of
 * a report with its certificate. */
#pragma once

#include "proof/proof.h"

/* The share by which sums differ that have their terms in another order. */
#define CERTIFICATE_ROUNDING 1e-11

/* How far a search may go; what it proves is true whatever they are. Tests set others than the usual ones. */
typedef struct lp_certificate_effort {
  size_t frontiers, frontiers_in_all, potentials; /* frontiers: at one place */
  /* The labels that a search makes before it keeps the least number: a short one, a long one, and all of single stages
   * or of both stages together. */
  size_t short_labels, long_labels, all_labels;
  size_t most_width, least_width; /* the labels kept after a unit, and those kept when the labels are spent */
  /* Of models with more than few_units units of both stages, as shares of the plan's objective: only brief searches
   * follow a gap of at most `near`, or of at most `close` where at most `rest` lacks to what is wanted; the search with
   * the limits of memories without a price follows the one without them only where more than `far` lacks. */
  size_t few_units;
  double near, close, rest, far;
} lp_certificate_effort;

/* The effort of searches in this certificate. */
const lp_certificate_effort *lp_certificate_effort_of(const lp_certificate *c);
/* Puts the units on these sides; false when they do not fit. */
bool lp_certificate_place(const lp_certificate *c, const lp_certificate_sides *sides);
/* The sides in a member of the certificate, which are borrowed; without a name: there is no such member. */
lp_certificate_sides lp_certificate_read_sides(const lp_json *json, const char *name);
/* Tells whether decode may stream: it takes one value from the device, and both stages give a token (streams.c). */
bool lp_certificate_may_stream(const lp_certificate *c);
/* Tells whether the placement does: all of decode and the first token are in the cloud. */
bool lp_certificate_does_stream(const lp_certificate *c);
/* The time that each token of such a placement waits for a link that is slower than the cloud. */
double lp_certificate_stall_ms(const lp_certificate *c);
/* The problem of the placements that stream, which send no messages in decode and lack that time; false: pins and the
 * limit of TPOT leave none. */
bool lp_certificate_stream(const lp_certificate *c, lp_certificate *out);
/* The bytes of everything that a side could hold. */
double lp_certificate_most_bytes(const lp_certificate *c, int side);
/* A lower bound on the cost of every placement, from the prices; NaN when the certificate proves none. */
double lp_certificate_bound(const lp_certificate *c);
/* Proves by a search of its own that no placement within the limits costs less than `wanted`. Returns what it proves:
 * `wanted`, or a lower bound if the search becomes too long. Depends on its arguments only, not on the machine. */
double lp_certificate_search(const lp_certificate *c, double wanted);
/* Does the same, but ends once it proves at most `known`. Then it returns no more than that. */
double lp_certificate_search_above(const lp_certificate *c, double wanted, double known);
/* Proves the same by the prices if they suffice, else by a search that aims at `aim`. Returns what they prove, at most
 * `wanted`. */
double lp_certificate_prove(const lp_certificate *c, double wanted, double aim);

/* ---- parts of the comparison ------------------------------------------------------------------------------------- */

/* Tells whether two numbers are equal, except for rounding to 12 digits and the order of sums. */
bool lp_certificate_near(double a, double b);

/* The decode steps of a request that generates `osl` tokens. */
double lp_certificate_steps(double osl);
/* The objective per ms of a machine in `steps` runs of a stage, which `sessions` requests share. */
double lp_certificate_per_ms(const double factor[3], double steps, double sessions, double price, double power);
/* The report's statements on the request. Members without a value are 0. */
typedef struct {
  const char *file;
  double isl, osl, batch, sessions, sla_ms[2], memory[2], memory_limit[2], price[2], power[2], rtt_ms, bps[2], loss;
  double load[2]; /* bytes of weights a second */
  /* of the device; NaN: not known */
  double idle_w, purchase_usd, life_years, usd_per_kwh, radio_bit_j[2], radio_w, radio_tail_j;
  double factor[3];  /* of the objective: cost, latency, energy */
  const char *exits; /* the mode of early exits of the plan; NULL: the cloud computes every token */
  double exit_rate, row_share, drafts, layer_runs;
  double quantile;        /* of the link's states; 0: the link does not vary */
  bool is_gpu[2];         /* known only beside `load` */
  bool has_link, is_cost; /* is_cost: the objective is the cost by itself */
} lp_certificate_request;

/* Reads "cost", "latency" and "energy" from a sum like "cost+1e-6*latency"; false: it is none (request.c). */
bool lp_certificate_objective_read(const char *text, double factor[3]);
/* Reads the request, and compares the certificate's objective, limits and link with it (request.c). */
LP_MUST_USE lp_status lp_certificate_request_check(const lp_certificate *c, const char *file,
                                                   lp_certificate_request *out, lp_diag *diag);
/* Replaces the sums of a plan by those of a token with early exits; returns the number of questions to the cloud per
 * token (exits.c). */
double lp_certificate_follow_exits(const lp_certificate *c, const lp_certificate_request *r, lp_certificate_totals *t);
/* Checks that a share `quantile` of the states of a link that varies is at least as good as the link for which the plan
 * is made. Sets the share of them in which the placement is within the SLA; NaN when the link does not vary
 * (states.c). */
LP_MUST_USE lp_status lp_certificate_states_check(lp_certificate *c, const lp_certificate_request *r, double *share,
                                                  lp_diag *diag);
/* Compares the operators' times with those of the units and holdings, from which the figures are summed
 * (operators.c). */
LP_MUST_USE lp_status lp_certificate_operators_check(const lp_certificate *c, const char *file, lp_diag *diag);
/* Compares each figure of the plan, of the plans that it is compared with, and of its bound (figures.c). `bound` is the
 * proved one. Moves the units. */
LP_MUST_USE lp_status lp_certificate_figures_check(lp_certificate *c, const lp_certificate_request *r, double bound,
                                                   lp_certificate_finding *out, lp_diag *diag);
