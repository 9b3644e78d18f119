/* The certificate of a plan over two places: the problem as the exact scheduler sees it, the plan, and the prices of
 * its limits. The planner fills it, reports carry it as JSON, and proof/ checks it: in `compile` without JSON.
 *
 * Arrays of two are indexed by lp_side, or by stage: 0 prefill, 1 decode. Times are in ms. */
#pragma once

#include "base/base.h"
#include "base/side.h"

struct lp_json_document;
struct lp_certificate_effort; /* proof/certificate.h */

typedef struct {
  double bytes[LP_SIDE_COUNT], ms[2][LP_SIDE_COUNT]; /* ms by stage and side */
  double move_bytes;
  bool cache;
  int32_t first[2]; /* the first unit that uses it, by stage; -1: none; set by lp_certificate_resolve */
} lp_certificate_holding;

typedef struct {
  const char *name;                                    /* the name of its first operator; borrowed */
  double ms[LP_SIDE_COUNT], activation[LP_SIDE_COUNT]; /* activation: bytes */
  double result_bytes;                                 /* -1: no result */
  double return_way;                                   /* the share of a message that the result's return pays */
  int32_t pin, side;                                   /* pin -1: none */
  int32_t *in, *out;                                   /* [in_count], [out_count] values */
  int32_t *hold;                                       /* [hold_count] holdings */
  int32_t *rows;                                       /* [row_count] rows of the report's `operators` */
  size_t in_count, out_count, hold_count, row_count;
  double *way;   /* [in] the share of a message that each read pays */
  double *split; /* [in, out, hold] the cost that the unit passes on to each of them */
} lp_certificate_unit;

typedef struct {
  double *value;  /* bytes */
  int32_t *maker; /* unit, -1: an input; set by lp_certificate_resolve */
  lp_certificate_unit *units;
  size_t value_count, unit_count;
} lp_certificate_stage;

/* A plan: for each stage a digit for each unit, 0 the device; NULL where a unit's operators are on both sides. */
typedef struct {
  const char *name, *side[2];
} lp_certificate_sides;

typedef struct {
  double busy[2][2], link[2], move, limit_ms[2], limit_bytes[2], message_ms, ms_per_byte[2];
  double price_ms[2], price_bytes[2], value, bound;
  bool streams; /* a decode that is all in the cloud waits for no message (docs/protocol.md) */
  double aim;   /* the bound at which the search for the stated bound aimed; NaN: at the stated one */
  const struct lp_certificate_effort *effort; /* NULL: the usual one */
  lp_certificate_holding *holdings;
  size_t holding_count;
  lp_certificate_stage stages[2];
  /* The plans that the report compares with. Those of `faster` and `cheapest` without a name: there is none. */
  lp_certificate_sides *baselines, faster, cheapest;
  size_t baseline_count;
  lp_arena *arena;                 /* of arrays, and of what the checker needs */
  struct lp_json_document *report; /* from which it was read, owned; NULL: none */
} lp_certificate;
