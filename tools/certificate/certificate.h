/* certificate: checks the certificate in a report, which holds the problem as the exact scheduler sees it, the plan,
 * and the prices (Lagrange multipliers) of its limits.
 *
 * This room shares no code with the planner: it includes only base (tests/structure/includes.awk).
 * It adds up the plan from the definition (the times of operators, one message per turn, what each side holds) and
 * derives the lower bound from the prices again. Arrays of two are indexed by lp_side, or by stage: 0 prefill, 1
 * decode. Times are in ms. */
#ifndef LP_TOOLS_CERTIFICATE_H
#define LP_TOOLS_CERTIFICATE_H

#include "base/json/reader.h"
#include "base/side.h"

typedef struct {
  double bytes[LP_SIDE_COUNT], ms[2][LP_SIDE_COUNT]; /* ms by stage and side */
  double move_bytes;
  int cache, first[2]; /* first: the first unit that uses it, by stage; -1: none */
} holding;

typedef struct {
  const char *name;                                    /* of its first operator; borrowed from the report */
  double ms[LP_SIDE_COUNT], activation[LP_SIDE_COUNT]; /* activation: bytes */
  double result_bytes,
      return_way; /* result_bytes -1: no result; return_way: the share of a message that its return pays */
  int pin, side, *in, *out, *hold; /* pin -1: none; in and out: values; hold: holdings */
  size_t in_count, out_count, hold_count;
  double *way;   /* [in] the share of a message that each read pays */
  double *split; /* [in, out, hold] the cost that the unit passes on to each of them */
} unit;

typedef struct {
  double *value; /* bytes */
  int *maker;    /* unit, -1: an input */
  unit *units;
  size_t value_count, unit_count;
} stage;

typedef struct {
  double busy[2][2], link[2], move, limit_ms[2], limit_bytes[2], message_ms, ms_per_byte[2];
  double price_ms[2], price_bytes[2], value, bound;
  holding *holdings;
  size_t holding_count;
  stage stages[2];
  lp_arena *arena;
  lp_json_document *report; /* owned */
} certificate;

/* The totals of the plan. */
typedef struct {
  double ms[2], bytes[2], value;
  bool pinned, caches; /* all pins are kept; all users of a cache are on one side */
} totals;

typedef struct {
  totals totals;
  double bound; /* the proved one, at most the value */
} certificate_finding;

/* Reads the certificate of a report. Release with certificate_free, also after a failure. */
LP_MUST_USE lp_status certificate_load(const char *file, certificate *out, lp_diag *diag);
void certificate_free(certificate *c);
/* Sums up the plan of a certificate. */
totals certificate_add_up(const certificate *c);
/* A lower bound on the cost of every placement, from the prices; NaN when the certificate proves none. */
double certificate_bound(const certificate *c);
/* Moves unit `index` of stage `which` to `side`, and with it every unit that shares a KV cache with it; how many
 * moved. */
int certificate_move(certificate *c, int which, size_t index, int side);
/* Compares the certificate with what the report claims. LP_MISMATCH with a diagnostic for each claim that does not
 * hold. */
LP_MUST_USE lp_status certificate_check(const certificate *c, const char *file, certificate_finding *out,
                                        lp_diag *diag);

#endif
