/* Loads libcurl on demand: see curl_library.h. */
#include "runtime/router/curl_library.h"

#include <pthread.h>

#include "base/base.h"
#include "base/library.h"

static lp_curl_library library;
static bool is_loaded;

static void load(void) {
  const lp_library_function functions[] = {
      {"curl_global_init", &library.global_init},      {"curl_easy_init", &library.easy_init},
      {"curl_easy_cleanup", &library.easy_cleanup},    {"curl_easy_setopt", &library.easy_setopt},
      {"curl_easy_perform", &library.easy_perform},    {"curl_easy_getinfo", &library.easy_getinfo},
      {"curl_easy_strerror", &library.easy_strerror},  {"curl_slist_append", &library.slist_append},
      {"curl_slist_free_all", &library.slist_free_all}};
  is_loaded = lp_library_load("libcurl.so.4", functions, LP_COUNT(functions)) &&
              library.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

const lp_curl_library *lp_curl_library_get(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, load);
  return is_loaded ? &library : NULL;
}
