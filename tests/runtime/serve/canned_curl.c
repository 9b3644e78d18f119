/* A stand-in for libcurl: see canned_curl.h. */
#include "tests/runtime/serve/canned_curl.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

canned_answer canned;

/* The options that the transfer uses. */
static curl_write_callback take;
static curl_xferinfo_callback watch;
static void *take_user, *watch_user;

static CURL *init(void) {
  return (CURL *)&canned;
}

static void cleanup(CURL *curl) {
  (void)curl;
}

static CURLcode setopt(CURL *curl, CURLoption option, ...) {
  va_list args;
  (void)curl;
  va_start(args, option);
  switch (option) {
  case CURLOPT_WRITEFUNCTION:
    take = va_arg(args, curl_write_callback);
    break;
  case CURLOPT_WRITEDATA:
    take_user = va_arg(args, void *);
    break;
  case CURLOPT_XFERINFOFUNCTION:
    watch = va_arg(args, curl_xferinfo_callback);
    break;
  case CURLOPT_XFERINFODATA:
    watch_user = va_arg(args, void *);
    break;
  case CURLOPT_POSTFIELDS:
    (void)snprintf(canned.request, sizeof canned.request, "%s", va_arg(args, const char *));
    break;
  default:
    break;
  }
  va_end(args);
  return CURLE_OK;
}

static CURLcode perform(CURL *curl) {
  (void)curl;
  canned.taken = 0;
  for (size_t at = 0, size = 0; at < canned.size; at += size) {
    size_t left = canned.size - at;
    size = canned.step > 0 && canned.step < left ? canned.step : left;
    if (canned.pause_us > 0) (void)usleep(canned.pause_us);
    if (watch && watch(watch_user, 0, 0, 0, 0) != 0) return CURLE_ABORTED_BY_CALLBACK;
    /* libcurl's type lacks const; the data is only read */
    if (take((char *)(uintptr_t)canned.data + at, 1, size, take_user) != size) return CURLE_WRITE_ERROR;
    canned.taken += size;
  }
  return canned.code;
}

static CURLcode getinfo(CURL *curl, CURLINFO info, ...) {
  va_list args;
  (void)curl;
  va_start(args, info);
  if (info == CURLINFO_RESPONSE_CODE) *va_arg(args, long *) = canned.status ? canned.status : 200;
  va_end(args);
  return CURLE_OK;
}

static const char *text_of(CURLcode code) {
  return code == CURLE_COULDNT_CONNECT ? "could not connect" : "failed";
}

static struct curl_slist *append(struct curl_slist *list, const char *text) {
  (void)text;
  return list;
}

static void free_all(struct curl_slist *list) {
  (void)list;
}

const lp_curl_library *lp_curl_library_get(void) {
  static const lp_curl_library library = {.easy_init = init,
                                          .easy_cleanup = cleanup,
                                          .easy_setopt = setopt,
                                          .easy_perform = perform,
                                          .easy_getinfo = getinfo,
                                          .easy_strerror = text_of,
                                          .slist_append = append,
                                          .slist_free_all = free_all};
  return &library;
}
