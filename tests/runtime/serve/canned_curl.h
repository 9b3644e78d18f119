/* canned_curl: stands in for libcurl. A transfer gives bytes of the test's choice, so that the readers of answers run
 * without a network. */
#ifndef LP_TESTS_CANNED_CURL_H
#define LP_TESTS_CANNED_CURL_H

#include "runtime/router/curl_library.h"

typedef struct {
  long status;      /* of HTTP; 0: 200 */
  CURLcode code;    /* of the transfer, once all bytes were taken */
  const char *data; /* [size] the body */
  size_t size;
  size_t step;           /* bytes that come at a time; 0: all at once */
  unsigned pause_us;     /* before the bytes of each step */
  size_t taken;          /* out: bytes that the reader took before it ended the transfer */
  char request[1 << 12]; /* the body that was sent, as a text */
} canned_answer;

extern canned_answer canned; /* of the next transfer */

#endif
