/* A bundle with early exits as halves that run independently: the device's half up to its last exit, and the cloud's
 * half on the rows that the device sent. With more than two places the cloud's half is a chain of them: each runs the
 * rows that the one before it made, and the last one has the logits. halves.c tells whether a bundle
 * can run like this, cloud_half.c runs passes of the cloud's half, device_half.c those of the device's. */
#pragma once

#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/sampler.h"
#include "runtime/runtime.h"

enum { LP_MOST_EXITS = 32 };

/* A bundle in which the cloud's half begins with the rows that the device's half ends in. The cloud sends back only
 * tokens. */
typedef struct {
  const lp_bundle *bundle;       /* borrowed */
  int32_t prefill, decode;       /* programs */
  int32_t tokens;                /* the input */
  lp_place chain[LP_PLACES_MAX]; /* [links] the places of the cloud's half, in the order in which rows pass them */
  int32_t links;
  size_t width[LP_PLACES_MAX]; /* [links] floats of a row that chain[i] takes */
} lp_halves;

/* False: the bundle cannot be split like this; `why` then receives the reason, as static text. */
bool lp_halves_find(const lp_bundle *bundle, lp_halves *out, const char **why);
/* The index of a place in the chain; -1: it is not in it. */
int32_t lp_halves_link(const lp_halves *halves, lp_place place);
/* Floats of the rows that link `link` makes for the next one; 0: it is the last, and makes logits. */
size_t lp_halves_made_width(const lp_halves *halves, int32_t link);
/* Floats of one position in a tensor [b][s][..] of f32; 0: the tensor has another form. */
size_t lp_halves_row_width(const lp_tensor_desc *tensor);
/* The program of a pass that begins at position `past`. */
int32_t lp_halves_program(const lp_halves *halves, int64_t past);
/* Sets the symbols of a pass over `count` positions, the first at `past`, that computes `rows` rows of logits. */
void lp_halves_symbols(int64_t sym[LP_MAX_SYMBOLS], int64_t past, int64_t count, int64_t rows, int64_t capacity);
/* Draws the sample after each of the last `wanted` positions before `end` from the logits of an output step. */
LP_MUST_USE lp_status lp_halves_sample(lp_executor *executor, const lp_step *step, int64_t end, int64_t wanted,
                                       const lp_sampling *sampling, lp_sample *out, lp_buf *scratch, lp_diag *diag);
/* Copies `part` floats of each of `count` rows, which are `to_width` and `from_width` floats apart. */
void lp_halves_copy_columns(float *to, size_t to_width, const float *from, size_t from_width, size_t part,
                            size_t count);

/* ---- the cloud's half -------------------------------------------------------------------------------------------- */

/* A pass of a link of the chain over rows[count][its width], the first at position `past`. The last link samples after
 * each of the last `wanted` positions, which may be 0; another one fills made[count][the next one's width]. */
typedef struct {
  int32_t link;
  const float *rows;
  float *made;
  int64_t past, count, wanted;
  int64_t capacity; /* positions in the KV caches */
} lp_cloud_pass;
/* Runs this one pass in the executor of its place and writes its samples to out[wanted]. */
LP_MUST_USE lp_status lp_halves_run_cloud(const lp_halves *halves, lp_executor *executor, const lp_cloud_pass *pass,
                                          const lp_sampling *sampling, lp_sample *out, lp_buf *scratch, lp_diag *diag);

/* The parts of lp_halves_run_cloud, for a caller that runs passes of several contexts at once. */
void lp_cloud_pass_symbols(const lp_cloud_pass *pass, int64_t sym[LP_MAX_SYMBOLS]);
/* Copies the columns that a send step carries to the pass's place to `to`, and returns their bytes. `column` counts the
 * floats of a row that earlier steps took. With `to` NULL the function only returns the bytes. */
size_t lp_cloud_pass_fill(const lp_halves *halves, const lp_cloud_pass *pass, const lp_step *step, size_t *column,
                          void *to);
/* Copies the columns that a send step carries to the next place, `from`, into the pass's `made`. `column` counts the
 * floats of a row that earlier steps gave. */
void lp_cloud_pass_take(const lp_halves *halves, const lp_cloud_pass *pass, const lp_step *step, size_t *column,
                        const void *from);
/* Draws out[wanted] from the logits of the output step. */
void lp_cloud_pass_sample(const lp_cloud_pass *pass, const lp_sampling *sampling, const lp_logits *logits,
                          lp_sample *out, lp_buf *scratch);
