/* libcurl, loaded when an endpoint is first used. With its dependencies it takes 6 MB of memory and time at the start,
 * which other commands should not pay. The members are curl's functions of the same names. */
#pragma once

#include <curl/curl.h>

typedef struct {
  CURLcode (*global_init)(long flags);
  CURL *(*easy_init)(void);
  void (*easy_cleanup)(CURL *curl);
  CURLcode (*easy_setopt)(CURL *curl, CURLoption option, ...);
  CURLcode (*easy_perform)(CURL *curl);
  CURLcode (*easy_getinfo)(CURL *curl, CURLINFO info, ...);
  const char *(*easy_strerror)(CURLcode code);
  struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
  void (*slist_free_all)(struct curl_slist *list);
} lp_curl_library;

/* The initialised library; NULL: it is not installed. Any thread may call this. */
const lp_curl_library *lp_curl_library_get(void);
