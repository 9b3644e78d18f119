/* libcurl, loaded when an endpoint is first asked for: with all that it depends on it takes 6 MB of memory and some of
 * the time to start, which no other command should pay. The members are curl's functions of the same names. */
#ifndef LP_RUNTIME_ROUTER_CURL_LIBRARY_H
#define LP_RUNTIME_ROUTER_CURL_LIBRARY_H

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

/* The library, initialised; NULL where it is absent. From any thread. */
const lp_curl_library *lp_curl_library_get(void);

#endif
