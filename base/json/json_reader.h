/* A JSON value together with the way to it, so that whatever is wrong with it can be reported as
 * `manifest.json: error: programs.decode.steps[3].buffer: ...`. Private to runtime/. */
#ifndef LP_JSON_READER_H
#define LP_JSON_READER_H

#include <jansson.h>

#include "base/base.h"
#include "base/poly.h"

/* Lives on the stack of whoever walks the document; `parent` outlives it. */
typedef struct lp_json {
  const struct lp_json *parent;
  const char *file;    /* of the root */
  const char *key;     /* in an object, else NULL */
  size_t index;        /* in an array */
  const json_t *value; /* NULL: absent */
} lp_json;

/* Parses text; duplicate keys and trailing text are refused. The value is released with json_decref. */
LP_MUST_USE lp_status lp_json_load(const char *file, const char *text, size_t size, json_t **out, lp_diag *diag);
lp_json lp_json_root(const char *file, const json_t *value);
lp_json lp_json_member(const lp_json *object, const char *key);
lp_json lp_json_item(const lp_json *array, size_t index);
size_t lp_json_count(const lp_json *array); /* of an array's items or an object's members; else 0 */

LP_MUST_USE lp_status lp_json_error(const lp_json *at, lp_diag *diag, const char *format, ...) LP_PRINTF(3, 4);

/* Each reports what it wanted and what it found. Text is borrowed from the document. */
LP_MUST_USE lp_status lp_json_object(const lp_json *at, lp_diag *diag);
LP_MUST_USE lp_status lp_json_array(const lp_json *at, lp_diag *diag);
LP_MUST_USE lp_status lp_json_text(const lp_json *at, const char **out, lp_diag *diag);
LP_MUST_USE lp_status lp_json_i64(const lp_json *at, int64_t min, int64_t max, int64_t *out, lp_diag *diag);
LP_MUST_USE lp_status lp_json_i32(const lp_json *at, int32_t min, int32_t max, int32_t *out, lp_diag *diag);
/* An integer or a real number. */
LP_MUST_USE lp_status lp_json_number(const lp_json *at, double min, double max, double *out, lp_diag *diag);
/* One of `names`; adds "did you mean". */
LP_MUST_USE lp_status lp_json_choice(const lp_json *at, const char *const *names, size_t count, int32_t *out,
                                     lp_diag *diag);

/* A polynomial in symbols that the table has already. */
LP_MUST_USE lp_status lp_json_poly(const lp_json *at, lp_arena *arena, lp_symbols *symbols, const lp_poly **out,
                                   lp_diag *diag);

#endif
