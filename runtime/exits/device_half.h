/* The device's half of a bundle with early exits. A token that an early exit gives needs no layers after that exit, so
 * their work may wait: the half keeps the rows that the later layers will read, and runs those layers on them with the
 * next token that needs them. Weights are then read once for all of these rows. */
#pragma once

#include "runtime/exits/halves.h"

/* The half of one text. Belongs to one thread at a time. */
typedef struct lp_device_half lp_device_half;

/* A pass over `count` tokens, the first at position `past`. Positions from `past` on that were passed before are
 * forgotten. Each exit samples after each of the last `wanted` positions. */
typedef struct {
  const int32_t *token; /* [count] */
  int64_t past, count, wanted;
  int64_t capacity;   /* positions in the KV caches */
  lp_sample *samples; /* [wanted], reused by each exit in turn */
  /* tells whether to run the exit's head; called once for each exit, in order */
  bool (*wants)(void *user, int32_t exit);
  void (*take)(void *user, int32_t exit, const lp_sample *samples); /* receives an exit's samples [wanted] */
  /* tells after an exit whether the layers after it may wait; NULL: they never do */
  bool (*may_wait)(void *user);
  void *user;
} lp_device_pass;

/* The rows for the cloud that a pass has finished: those of `count` positions from `first` on. When nothing waits they
 * are the pass's own. */
typedef struct {
  float *row; /* [count][width], valid until the next call */
  int64_t first, count;
} lp_device_rows;

lp_device_half *lp_device_half_create(const lp_halves *halves, lp_executor *executor); /* both borrowed */
void lp_device_half_free(lp_device_half *half);                                        /* NULL is allowed */
LP_MUST_USE lp_status lp_device_half_pass(lp_device_half *half, const lp_device_pass *pass, const lp_sampling *sampling,
                                          lp_device_rows *out, lp_diag *diag);
/* Runs the layers that wait on all of their rows. */
LP_MUST_USE lp_status lp_device_half_finish(lp_device_half *half, int64_t capacity, lp_device_rows *out, lp_diag *diag);
