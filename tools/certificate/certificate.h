/* certificate: checks the certificate in a report, which holds the problem as the exact scheduler sees it, the plan,
 * and the prices (Lagrange multipliers) of its limits.
 *
 * This room shares no code with the planner: it includes only base (tests/structure/includes.awk). It adds up the plan
 * from the definition (the times of operators, one message per turn, the holdings of each side), compares each figure
 * of the report with that, and derives the lower bound from the prices again. Arrays of two are indexed by lp_side, or
 * by stage: 0 prefill, 1 decode. Times are in ms. */
#ifndef LP_TOOLS_CERTIFICATE_H
#define LP_TOOLS_CERTIFICATE_H

#include "base/json/reader.h"
#include "base/side.h"

/* The share by which sums differ that have their terms in another order. */
#define CERTIFICATE_ROUNDING 1e-11

typedef struct {
  double bytes[LP_SIDE_COUNT], ms[2][LP_SIDE_COUNT]; /* ms by stage and side */
  double move_bytes;
  int cache, first[2]; /* first: the first unit that uses it, by stage; -1: none */
} holding;

typedef struct {
  const char *name;                                    /* the name of its first operator; borrowed from the report */
  double ms[LP_SIDE_COUNT], activation[LP_SIDE_COUNT]; /* activation: bytes */
  double result_bytes,
      return_way; /* result_bytes -1: no result; return_way: the share of a message that its return pays */
  int pin, side, *in, *out, *hold, *rows; /* pin -1: none; in and out: values; hold: holdings; rows: of `operators` */
  size_t in_count, out_count, hold_count, row_count;
  double *way;   /* [in] the share of a message that each read pays */
  double *split; /* [in, out, hold] the cost that the unit passes on to each of them */
} unit;

typedef struct {
  double *value; /* bytes */
  int *maker;    /* unit, -1: an input */
  unit *units;
  size_t value_count, unit_count;
} stage;

/* How far a search may go; what it proves is true whatever they are. Tests set others than the usual ones. */
typedef struct {
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
} certificate_effort;

typedef struct {
  double busy[2][2], link[2], move, limit_ms[2], limit_bytes[2], message_ms, ms_per_byte[2];
  double price_ms[2], price_bytes[2], value, bound;
  double aim; /* the bound at which the search for the stated bound aimed; NaN: at the stated one */
  const certificate_effort *effort; /* NULL: the usual one */
  holding *holdings;
  size_t holding_count;
  stage stages[2];
  lp_arena *arena;
  lp_json_document *report; /* owned */
} certificate;

/* The totals of a placement. */
typedef struct {
  /* Times by stage, all messages included; bytes that each side holds; the objective. */
  double ms[2], bytes[2], value;
  /* [stage][side] ms of operators, the part of it that belongs to holdings, and the time that these would take on the
   * other side. */
  double busy[2][2], shared[2][2], elsewhere[2][2];
  double link_ms[2], messages[2], crossings[2], sent[2][2]; /* by stage; sent: bytes by the side that sends */
  double moved[2], move_ms, weights[2]; /* bytes of KV caches by the side that sends; bytes of weights by side */
  /* Whether all pins are kept, and whether all users of each cache are on one side. */
  bool pinned, caches;
} totals;

typedef struct {
  totals totals;
  double value;          /* the objective of the plan */
  double bound;          /* the proved bound: the one that the report states, if it states one */
  bool exits;            /* the plan's figures depend on rates of early exits */
  const char *unchecked; /* a list of figures that the certificate cannot confirm, in its arena */
} certificate_finding;

/* Reads the certificate of a report. Release with certificate_free, also after a failure. */
LP_MUST_USE lp_status certificate_load(const char *file, certificate *out, lp_diag *diag);
/* Does the same with the text of a report; `file` is its name in diagnostics. */
LP_MUST_USE lp_status certificate_read(const char *file, const char *text, size_t size, certificate *out,
                                       lp_diag *diag);
void certificate_free(certificate *c);
/* Puts the units on the sides that a member of the certificate's `baselines` gives; false when the member does not
 * fit. */
bool certificate_place(certificate *c, const lp_json *sides);
/* The bytes of everything that a side could hold. */
double certificate_most_bytes(const certificate *c, int side);
/* Sums up the placement of a certificate. */
totals certificate_add_up(const certificate *c);
/* A lower bound on the cost of every placement, from the prices; NaN when the certificate proves none. */
double certificate_bound(const certificate *c);
/* Proves by a search of its own that no placement within the limits costs less than `wanted`. Returns what it proves:
 * `wanted`, or a lower bound if the search becomes too long. Depends on its arguments only, not on the machine. */
double certificate_search(const certificate *c, double wanted);
/* Does the same, but ends once it proves at most `known`. Then it returns no more than that. */
double certificate_search_above(const certificate *c, double wanted, double known);
/* The effort of searches in this certificate. */
const certificate_effort *certificate_effort_of(const certificate *c);
/* Proves the same by the prices if they suffice, else by a search that aims at `aim`. Returns what they prove, at most
 * `wanted`. */
double certificate_prove(const certificate *c, double wanted, double aim);
/* Returns a bound that certificate_prove confirms with the aim that it sets: the claimed bound if that is close to
 * `least`, the objective of the best plan known, and proved; else the best one that it finds. A bound that lacks up to
 * 0.1 % of the claimed one suffices. */
double certificate_find_bound(const certificate *c, double claimed, double least, double *aim);
/* The objective of the best plan of the report: of the cheapest one, where the tolerance made the scheduler take a
 * faster one. Moves the units. */
double certificate_least_value(certificate *c);
/* Moves unit `index` of stage `which` to `side`, with every unit that shares a KV cache with it; returns the number of
 * moved units. */
int certificate_move(certificate *c, int which, size_t index, int side);
/* Compares the certificate with the claims of the report. Returns LP_MISMATCH, with a diagnostic for each claim that
 * does not hold. */
LP_MUST_USE lp_status certificate_check(certificate *c, const char *file, certificate_finding *out, lp_diag *diag);

/* ---- parts of the comparison ------------------------------------------------------------------------------------- */

/* Tells whether two numbers are equal, except for rounding to 12 digits and the order of sums. */
bool certificate_near(double a, double b);

/* The report's statements on the request. Members without a value are 0. */
typedef struct {
  const char *file;
  double isl, osl, batch, sessions, sla_ms[2], memory[2], memory_limit[2], price[2], power[2], rtt_ms, bps[2], loss;
  double load[2];    /* bytes of weights a second */
  double factor[3];  /* of the objective: cost, latency, energy */
  const char *exits; /* the mode of early exits of the plan; NULL: the cloud computes every token */
  double exit_rate, row_share, drafts, layer_runs;
  double quantile;        /* of the link's states; 0: the link does not vary */
  bool is_gpu[2];         /* known only beside `load` */
  bool has_link, is_cost; /* is_cost: the objective is the cost by itself */
} certificate_request;

/* Reads "cost", "latency" and "energy" from a sum like "cost+1e-6*latency"; false: it is none (request.c). */
bool certificate_objective_read(const char *text, double factor[3]);
/* Reads the request, and compares the certificate's objective, limits and link with it (request.c). */
LP_MUST_USE lp_status certificate_request_check(const certificate *c, const char *file, certificate_request *out,
                                                lp_diag *diag);
/* Replaces the sums of a plan by those of a token with early exits; returns the number of questions to the cloud per
 * token (exits.c). */
double certificate_follow_exits(const certificate *c, const certificate_request *r, totals *t);
/* Checks that a share `quantile` of the states of a link that varies is at least as good as the link for which the plan
 * is made. Sets the share of them in which the placement is within the SLA; NaN when the link does not vary
 * (states.c). */
LP_MUST_USE lp_status certificate_states_check(certificate *c, const certificate_request *r, double *share,
                                               lp_diag *diag);
/* Compares the operators' times with those of the units and holdings, from which the figures are summed
 * (operators.c). */
LP_MUST_USE lp_status certificate_operators_check(const certificate *c, const char *file, lp_diag *diag);
/* Compares each figure of the plan, of the plans that it is compared with, and of its bound (figures.c). `bound` is the
 * proved one. Moves the units. */
LP_MUST_USE lp_status certificate_figures_check(certificate *c, const certificate_request *r, double bound,
                                                certificate_finding *out, lp_diag *diag);

/* What holds of a plan over more than two places: its times and cost, from the figures of places and links. */
typedef struct {
  double ms[2], cost, objective;
  /* The lower bound that the planner's search states, which is not proved here; infinite: no plan meets the limits. */
  double claimed;
  double proved; /* the least objective that the prices of the limits prove; infinite: no plan meets the limits */
  bool feasible; /* as the report says of its plan */
  bool divides;  /* a part of the model is in two places, so that the figures of places could not be added up */
} certificate_places_finding;
/* Opens the report of a plan over more than two places, schema llmpart.places/1, whose certificate has another form.
 * NULL: it is none, or cannot be read. */
lp_json_document *certificate_places_open(const char *file);
/* Checks a report of that schema (places.c). LP_MISMATCH: a figure does not hold. */
LP_MUST_USE lp_status certificate_places_check(const lp_json *root, const char *file, certificate_places_finding *out,
                                               lp_diag *diag);

#endif
