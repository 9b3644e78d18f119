/* What the check of a fleet reads from its report, in s, bytes and USD (fleet_read.c). Private to the check. */
#pragma once

#include "proof/proof.h"

enum {
  CLASSES = 8,
  OPTIONS = 2048,
  PRICES = 40,
  KNOTS = 64,
  QUANTILES = 3,
  FIGURES = 3,
  HOURS = 730, /* of a month */
  DAY = 24,
  SEQUENCES = 256, /* of a pass */
  BESIDE = 240,    /* the most tokens beside a prompt */
  ROWS = 256,      /* of a pass; up to MOST_ROWS where they take SHORT_S */
  MOST_ROWS = 1024,
  SPOT = 1024 /* machines of the spot market in a pool */
};

typedef struct {
  double sessions, kept_s, free_s, row_s, slow;
} lp_fleet_proof_price;

typedef struct {
  const char *machine;
  int64_t cut, most, sessions[CLASSES]; /* sessions: that keep the limits of TPOT; 0: the class is not served */
  int64_t spots;                        /* the most spot machines of a pool */
  double usd_per_hour, spot_usd, user_s[CLASSES]; /* spot_usd: per hour */
  double usd_by_hour;                             /* of a machine that comes and goes; INFINITY: none does */
  double power_w, idle_w, device_j[CLASSES]; /* device_j: of a mean request, in the device's passes; NAN: unknown */
  double asks;          /* the share of the tokens after the first that it gives, early exits giving the others */
  double question_rows; /* of a request in a pass that gives one of these; 1 / asks, or more with drafts */
  int32_t *covers; /* [SPOT + 1] covers[n]: of n spot machines, how many are available; NULL: it has no spot price */
  size_t prices;
  lp_fleet_proof_price price[PRICES];
} lp_fleet_proof_option;

typedef struct {
  const char *file;
  lp_diag *diag;
  double rate, prompt, answer, kept[QUANTILES], share[CLASSES], limit_ms[CLASSES][FIGURES][QUANTILES]; /* 0: none */
  bool alone[CLASSES];
  double alone_j[CLASSES];                /* as device_j */
  int32_t runs[CLASSES];                  /* of `places` */
  int64_t pool[CLASSES], layers[CLASSES]; /* pool -1: the device alone; layers: on the device */
  int64_t hidden[CLASSES];                /* layers that stay on the device */
  size_t classes, options;
  int64_t spare;
  double availability;
  int32_t hours;                       /* 1: all machines stay */
  double hour[DAY], mean, start_hours; /* of the rate; the mean of the day; paid for a start */
  double rented_mean;                  /* the mean of `hour` */
  lp_arena *arena;
  lp_fleet_proof_option *option;
} lp_fleet_proof;

/* Reads the load, the classes and the certificate. f->file, arena and diag are set. */
LP_MUST_USE lp_status lp_fleet_proof_read(lp_fleet_proof *f, const lp_json *root);

/* Members of the report; errors name the file. */
LP_MUST_USE lp_status lp_fleet_proof_number(const lp_fleet_proof *f, const lp_json *of, const char *key, double least,
                                            double *out);
LP_MUST_USE lp_status lp_fleet_proof_integer(const lp_fleet_proof *f, const lp_json *of, const char *key, int64_t least,
                                             int64_t *out);
LP_MUST_USE lp_status lp_fleet_proof_numbers(const lp_fleet_proof *f, const lp_json *of, const char *key, size_t count,
                                             double *out);
LP_MUST_USE lp_status lp_fleet_proof_list(const lp_fleet_proof *f, const lp_json *of, const char *key, size_t least,
                                          size_t most, lp_json *out);
LP_MUST_USE lp_status lp_fleet_proof_known(const lp_fleet_proof *f, const lp_json *at, double *out); /* NAN: null */
/* LP_MISMATCH: `found` is not what is wanted. */
LP_MUST_USE lp_status lp_fleet_proof_refuse(const lp_fleet_proof *f, const char *what, size_t index, double found,
                                            double wanted);
LP_MUST_USE lp_status lp_fleet_proof_same(const lp_fleet_proof *f, const char *what, size_t index, double found,
                                          double wanted);
