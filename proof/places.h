/* The report of a plan over more than two places, as the files that check it share it. */
#pragma once

#include "proof/certificate.h"

enum { MOST = 8, STAGES = 2 };

/* An operator of a part by itself, with what it is the first to use; arrays are by place. */
typedef struct {
  double ms[STAGES][MOST], bytes[STAGES][MOST], both_bytes[MOST], move_bytes;
  int32_t allowed[STAGES]; /* bit p: place p */
} places_operator;

/* What parts with the same figures have in common. */
typedef struct {
  double ms[STAGES][MOST], weight_bytes[STAGES][MOST], activation[STAGES][MOST], read_bytes[STAGES], inner_ms[STAGES];
  double both_bytes[MOST], cache_bytes[MOST], move_bytes;
  int32_t allowed[STAGES]; /* as a whole */
  bool divides[STAGES];
  places_operator *operator;
  size_t operator_count;
} places_shape;

typedef struct {
  const places_shape *shape;
  int32_t at[STAGES];      /* the place; -1: it is divided */
  unsigned shared[STAGES]; /* bit h: it uses shared[h] */
} places_part;

/* What several parts need in their place, once for all of them. */
typedef struct {
  double bytes[MOST], ms[STAGES][MOST];
} places_shared;

typedef struct {
  const lp_json *root;
  lp_json plan, certificate;
  const char *file;
  lp_diag *diag;
  int32_t count;
  const char *name[MOST];
  double price[MOST], power[MOST], limit_bytes[MOST]; /* limit 0: none */
  double message_ms[MOST][MOST], ms_per_byte[MOST][MOST];
  double osl, batch, sessions;
  double busy[STAGES][MOST], request_ms[MOST], memory[MOST];
  double messages[STAGES][MOST][MOST], bytes[STAGES][MOST][MOST], moved[MOST][MOST];
  /* The certificate; arrays are in the arena. */
  lp_arena *arena;
  places_shape *shape;
  places_part *part;
  size_t shape_count, part_count, shared_count;
  places_shared shared[MOST];
  double busy_per_ms[STAGES][MOST], link_per_ms[STAGES], move_per_ms; /* of the objective */
  double limit_ms[STAGES], certified_bytes[MOST];                     /* 0: none */
  double price_ms[STAGES], price_byte[MOST];                          /* of the limits */
  double result_bytes[STAGES];
  bool has_input[STAGES], has_result[STAGES];
} places_report;

lp_status lp_certificate_places_number(const places_report *r, const lp_json *object, const char *key, double *out);
/* LP_MISMATCH, with a diagnostic, where the numbers differ by more than rounding. */
lp_status lp_certificate_places_same(const places_report *r, const char *what, double found, double wanted);
lp_status lp_certificate_places_same_of(const places_report *r, const char *what, int32_t place, double found,
                                        double wanted);

/* Reads the rest of the report, whose plan and certificate are objects (places_read.c). */
lp_status lp_certificate_places_read(places_report *r);
/* Compares the times, messages' bytes and memory of each place with the sums of the certificate's parts, and each part
 * with its operators. `divides`: the plan divides a part, so that its sums are not in the certificate
 * (places_parts.c). */
lp_status lp_certificate_places_parts_check(const places_report *r, bool *divides);
/* Compares the certificate's objective and limits with the request, proves the bound of its prices and compares the
 * plan's bounds with it. Sets the finding's objective and what is proved (places_bound.c). */
lp_status lp_certificate_places_bound_check(const places_report *r, lp_certificate_places_finding *out);
