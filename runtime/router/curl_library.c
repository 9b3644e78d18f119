/* libcurl by dlopen: see curl_library.h. */
#include "runtime/router/curl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static lp_curl_library library;
static bool is_loaded;

/* dlsym gives an object's address, which ISO C does not convert to a function's. */
static bool find(void *handle, const char *name, void *function, size_t size) {
  void *address = dlsym(handle, name);
  memcpy(function, &address, size);
  return address != NULL;
}

static void load(void) {
  void *curl = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL); /* stays: what it registers at exit is its code */
  if (curl == NULL) return;
#define FIND(name) find(curl, "curl_" #name, &library.name, sizeof library.name)
  is_loaded = FIND(global_init) && FIND(easy_init) && FIND(easy_cleanup) && FIND(easy_setopt) && FIND(easy_perform) &&
              FIND(easy_getinfo) && FIND(easy_strerror) && FIND(slist_append) && FIND(slist_free_all) &&
              library.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
#undef FIND
}

const lp_curl_library *lp_curl_library_get(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, load);
  return is_loaded ? &library : NULL;
}
