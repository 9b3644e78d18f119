/* The certificate in a report: the problem as the exact scheduler sees it, the plan and the prices, read from JSON without
 * any code of the planner; what the plan comes to, from the definition alone; and what the prices prove. */
#ifndef LP_TOOLS_CERTIFICATE_H
#define LP_TOOLS_CERTIFICATE_H

#include "tools/tools.h"

typedef struct {
  double bytes[2], ms[2][2], move_bytes;
  int cache, first[2]; /* units, by stage; -1: none */
} holding;

typedef struct {
  const char *name;                /* of its first operator; borrowed from the JSON */
  double ms[2], activation[2];     /* by side */
  double result_bytes, return_way; /* -1: it makes no result; what its return is charged of a message */
  int pin, side, *in, *out, *hold; /* pin -1: none */
  size_t in_count, out_count, hold_count;
  double *way, *split; /* [in] charged of a message; [in, out, hold] exchanged with these */
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
  void *json; /* owned */
} certificate;

/* What the plan comes to. */
typedef struct {
  double ms[2], bytes[2], value;
  bool pinned, caches; /* all pins kept; all users of a cache on one side */
} totals;

/* Reads the certificate of a report. Release with certificate_free, also after a failure. */
LP_MUST_USE lp_status certificate_load(const char *file, certificate *out, lp_diag *diag);
void certificate_free(certificate *c);
totals certificate_add_up(const certificate *c);
/* What no placement of the problem can be below; NaN when nothing is proved. */
double certificate_bound(const certificate *c);

#endif
