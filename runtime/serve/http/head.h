/* Checks the head of a request before its body is read. */
#pragma once

#include "base/base.h"

typedef struct {
  const char *name, *value;
} lp_head_field;

typedef struct {
  bool is_early;   /* reply before the body: it is long, of unknown length, or waits for "100 Continue" */
  unsigned status; /* of the refusal; 0: the request is taken */
  const char *why; /* static */
} lp_head_verdict;

/* Judges a request of HTTP `version` ("HTTP/1.1") as RFC 9112, 3.2, 6.1 and 6.3 and RFC 9110, 5.5 and 10.1.1 say: 400
 * where two readers could see different requests (two lengths or hosts, a length and chunks, white space before a
 * colon, a CR in a value) or the host is missing, 413 for a body of more than `max_body` bytes, 417 for another
 * expectation than "100-continue", 501 for another coding than "chunked". Pure. */
lp_head_verdict lp_head_judge(const lp_head_field *fields, size_t count, const char *version, int64_t max_body);
