/* A context of the cloud in a sealed file (bundle/sealed_file.h), so that it survives eviction and the end of the
 * worker. */
#pragma once

#include "runtime/exec/pool.h"
#include "runtime/exits/context.h"
#include "runtime/exits/halves.h"
#include "runtime/runtime.h"

/* The worker's state of a context besides its content. */
typedef struct {
  uint64_t id;
  uint64_t answered; /* number of the question answered last; 0: none */
  lp_answer answer;
  int64_t asked; /* the first position of which a pending question needs the sample; -1: no question is pending */
} lp_context_record;

/* Bytes of the file without its head, which has some 200. */
size_t lp_context_file_bytes(const lp_context *context);
LP_MUST_USE lp_status lp_context_save(const lp_context *context, const lp_context_record *record, const char *path,
                                      lp_diag *diag);
/* Creates the context of the chain's link that was saved; the caller frees it. It keeps no rows for the next link.
 * Fails on a damaged file, one of another bundle, and one with a capacity above `most`. */
LP_MUST_USE lp_status lp_context_restore(const lp_halves *halves, int32_t link, lp_pool *pool, const char *path,
                                         int64_t most, lp_context_record *record, lp_context **out, lp_diag *diag);
