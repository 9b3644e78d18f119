/* A context of the cloud on disk. Private to runtime/. */
#ifndef LP_CONTEXT_FILE_H
#define LP_CONTEXT_FILE_H

#include "runtime/exits/context.h"
#include "runtime/exits/halves.h"
#include "runtime/runtime.h"

/* What the worker knows of a context besides what is in it. */
typedef struct {
  uint64_t id;
  uint64_t answered; /* the question answered last, 0: none */
  lp_answer answer;
  int64_t asked; /* the first position whose sample a question waits for; -1: none does */
} lp_context_record;

/* Bytes of the file, all but a head of some 200. */
size_t lp_context_file_bytes(const lp_context *context);
LP_MUST_USE lp_status lp_context_save(const lp_context *context, const lp_context_record *record, const char *path,
                                      lp_diag *diag);
/* A context as it was saved; `most` is the greatest capacity. Reports what is damaged, another bundle's or another context's. */
LP_MUST_USE lp_status lp_context_restore(const lp_halves *halves, lp_pool *pool, const char *path, int64_t most,
                                         lp_context_record *record, lp_context **out, lp_diag *diag);

#endif
