/* Histories of answers, kept for requests that go on with one (previous_response_id). Each owner has room for the last
 * 64 of up to 4 MiB together. Any number of threads may use them. */
#pragma once

#include "base/base.h"

enum { LP_KEPT_EACH = 64, LP_KEPT_BYTES = 4 << 20 };

typedef struct lp_kept lp_kept;
lp_kept *lp_kept_create(void);
void lp_kept_free(lp_kept *kept); /* NULL is allowed */
/* Copies the text; the oldest of this owner make room for it. */
void lp_kept_put(lp_kept *kept, uint64_t owner, const char *id, const char *text, size_t size);
/* Appends the text of this owner's answer; false: it has none of this name. */
bool lp_kept_get(lp_kept *kept, uint64_t owner, const char *id, lp_buf *out);
