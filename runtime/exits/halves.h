/* The two halves of a bundle with early exits, and one pass of either. */
#ifndef LP_HALVES_H
#define LP_HALVES_H

#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/logits.h"
#include "runtime/runtime.h"

enum { LP_MOST_EXITS = 32 };

/* A bundle whose device half ends in rows that its cloud half begins with: nothing comes back but tokens. */
typedef struct {
  const lp_bundle *bundle;
  int32_t prefill, decode; /* programs */
  int32_t tokens;          /* the input */
  size_t width;            /* floats of a row */
} lp_halves;

/* `why` says what does not fit when it returns false. */
bool lp_halves_find(const lp_bundle *bundle, lp_halves *out, const char **why);

/* A pass of the device over `count` tokens behind `past`: an exit gives samples behind each of the last `wanted` positions. */
typedef struct {
  const int32_t *token;
  int64_t past, count, wanted, capacity;
  lp_sample *samples;                                               /* [wanted], for each exit in turn */
  bool (*wants)(void *user, int32_t exit);                          /* is the exit's head to be run? Asked in order */
  void (*take)(void *user, int32_t exit, const lp_sample *samples); /* what it says */
  void *user;
} lp_device_pass;
/* Writes the rows [count][width]. `scratch` is the caller's, as is `ids`. */
LP_MUST_USE lp_status lp_halves_run_device(const lp_halves *halves, lp_executor *executor, const lp_device_pass *pass,
                                           const lp_sampling *sampling, float *rows, lp_buf *ids, lp_buf *scratch,
                                           lp_diag *diag);
/* A pass of the cloud over `rows` [count][width] behind `past`: samples behind each of the last `wanted` positions, which may be
 * none. */
typedef struct {
  const float *rows;
  int64_t past, count, wanted, capacity;
} lp_cloud_pass;
int32_t lp_halves_program(const lp_halves *halves, int64_t past); /* which runs behind so many positions */
void lp_cloud_pass_symbols(const lp_cloud_pass *pass, int64_t sym[]);
/* What a send step of the program hands to the cloud, and its bytes. `column` counts the floats of a row that earlier ones took.
 * `to` NULL: the bytes alone. */
size_t lp_cloud_pass_fill(const lp_halves *halves, const lp_cloud_pass *pass, const lp_step *step, size_t *column,
                          void *to);
/* The samples from the logits that an output step has. */
void lp_cloud_pass_sample(const lp_cloud_pass *pass, const lp_sampling *sampling, const lp_logits *logits,
                          lp_sample *out, lp_buf *scratch);
LP_MUST_USE lp_status lp_halves_run_cloud(const lp_halves *halves, lp_executor *executor, const lp_cloud_pass *pass,
                                          const lp_sampling *sampling, lp_sample *out, lp_buf *scratch, lp_diag *diag);

#endif
