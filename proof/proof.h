/* proof: checks the certificate in a report, which holds the problem as the exact scheduler sees it, the plan, and the
 * prices (Lagrange multipliers) of its limits.
 *
 * It adds up the plan from the definition (the times of operators, one message per turn, the holdings of each side),
 * compares each figure of the report with that, derives the bound of the prices again, and searches for a better one.
 *
 * What is independent of the planner, and what is not: the folder includes only base/ (a test holds this), and knows
 * of the planner's work only the certificate and what the report states. Its search is not of another kind. Like the
 * planner's graph of both stages (passes/plan/exact/state_graph.c) it lists what a row of units may leave open in sets
 * of base/item_set.c, and both find prices by base/level.c, which stay in base/ because neither folder may include the
 * other. Prices cannot make a bound wrong, only low. An error in the idea that both share is left to the tests:
 * tests/proof compares the search with all placements of small problems, tests/oracle plans and bounds with HiGHS.
 */
#pragma once

#include "base/certificate.h"
#include "base/json/reader.h"

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
} lp_certificate_totals;

typedef struct {
  lp_certificate_totals totals;
  double value;          /* the objective of the plan */
  double bound;          /* the proved bound: the one that the report states, if it states one */
  bool exits;            /* the plan's figures depend on rates of early exits */
  const char *unchecked; /* a list of figures that the certificate cannot confirm, in its arena */
} lp_certificate_finding;

/* Reads the certificate of a report; of a plan over more than two places and of a fleet, only the report. Release with
 * lp_certificate_free, also after a failure. */
LP_MUST_USE lp_status lp_certificate_load(const char *file, lp_certificate *out, lp_diag *diag);
void lp_certificate_free(lp_certificate *c);
/* The gap between a plan's objective and a bound, as a share of the objective. */
double lp_certificate_gap(double bound, double value);
/* Sets what the checker derives: the makers of values, in c->arena, and the first users of holdings. False when a value
 * is read before it is made. lp_certificate_load has done it. */
bool lp_certificate_resolve(lp_certificate *c);
/* Sums up the placement of a certificate. */
lp_certificate_totals lp_certificate_add_up(const lp_certificate *c);
/* Returns a bound that lp_certificate_prove confirms with the aim that it sets: the claimed bound if that is close to
 * `least`, the objective of the best plan known, and proved; else the best one that it finds. A bound that lacks up to
 * 0.1 % of the claimed one suffices. */
double lp_certificate_find_bound(const lp_certificate *c, double claimed, double least, double *aim);
/* The objective of the best plan of the report: of the cheapest one, where the tolerance made the scheduler take a
 * faster one. */
double lp_certificate_least_value(const lp_certificate *c);
/* Moves unit `index` of stage `which` to `side`, with every unit that shares a KV cache with it; returns the number of
 * moved units. */
int lp_certificate_move(lp_certificate *c, int which, size_t index, int side);
/* Compares the certificate with the claims of the report. Returns LP_MISMATCH, with a diagnostic for each claim that
 * does not hold. */
LP_MUST_USE lp_status lp_certificate_check(lp_certificate *c, const char *file, lp_certificate_finding *out,
                                           lp_diag *diag);

/* What holds of a plan over more than two places: its times and cost, from the figures of places and links. */
typedef struct {
  double ms[2], cost, objective;
  /* The lower bound that the planner's search states, which is not proved here; infinite: no plan meets the limits. */
  double claimed;
  double proved; /* the least objective that the prices of the limits prove; infinite: no plan meets the limits */
  bool feasible; /* as the report says of its plan */
  bool divides;  /* a part of the model is in two places, so that the figures of places could not be added up */
} lp_certificate_places_finding;
/* Tells whether the report is of such a plan, schema llmpart.places/1, whose certificate has another form. */
bool lp_certificate_is_over_places(const lp_certificate *c);
/* Checks a report of that schema (places.c). LP_MISMATCH: a figure does not hold. */
LP_MUST_USE lp_status lp_certificate_places_check(const lp_json *root, const char *file,
                                                  lp_certificate_places_finding *out, lp_diag *diag);

typedef struct {
  double usd, bound; /* a month, of the report, both confirmed */
} lp_certificate_fleet_finding;
/* Tells whether the report is of a fleet, schema llmpart.fleet/1. */
bool lp_certificate_is_of_fleet(const lp_certificate *c);
/* Checks a report of that schema (fleet.c). LP_MISMATCH: a figure does not hold, or its bound is not proved. */
LP_MUST_USE lp_status lp_certificate_fleet_check(const lp_json *root, const char *file,
                                                 lp_certificate_fleet_finding *out, lp_diag *diag);
