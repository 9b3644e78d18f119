/* Keys of clients, and what each of them may use: requests and tokens per minute, and requests at a time. Any number of
 * threads may use the limits. */
#pragma once

#include "runtime/serve/serve.h"

typedef struct lp_limits lp_limits;
lp_limits *lp_limits_create(void);
void lp_limits_free(lp_limits *limits); /* NULL is allowed */

/* Finds a key, in a time that does not depend on the keys' content; NULL: there is no such key. `given` NULL: none. */
const lp_serve_key *lp_limits_find_key(const lp_serve_config *config, const char *given);

/* Takes a request for `answers` (choices of all its prompts), each of which counts as a request, with a key at
 * `now_ms`, or tells what refuses it, as static text, and after how many seconds it would be taken if no other
 * request came; INFINITY: never. Requests and tokens have a bucket each (Turner, "New directions
 * in communications", 1986), which holds those of a minute and fills evenly. A request is taken while its key's bucket
 * of tokens is not empty; it may overdraw it, since the size of its answer is not known before. What a
 * key has used stays when its limits change. */
const char *lp_limits_begin(lp_limits *limits, const lp_serve_key *key, int32_t answers, double now_ms,
                            double *retry_s);
/* A request that was taken has ended, and used `tokens`: of its prompts and its answers. */
void lp_limits_end(lp_limits *limits, const lp_serve_key *key, int32_t answers, double now_ms, int64_t tokens);
/* For Prometheus: refused requests and requests at work, for each key that has a name. */
void lp_limits_print(lp_limits *limits, const lp_serve_keys *keys, lp_buf *out);
