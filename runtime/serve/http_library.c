/* libmicrohttpd on demand: see http_library.h. */
#include "runtime/serve/http_library.h"

#include "base/base.h"
#include "base/library.h"

const lp_http_library *lp_http_library_get(void) {
  static lp_http_library library;
  const lp_library_function functions[] = {{"MHD_start_daemon", &library.start_daemon},
                                           {"MHD_get_daemon_info", &library.get_daemon_info},
                                           {"MHD_quiesce_daemon", &library.quiesce_daemon},
                                           {"MHD_stop_daemon", &library.stop_daemon},
                                           {"MHD_lookup_connection_value", &library.lookup_connection_value},
                                           {"MHD_create_response_from_buffer", &library.create_response_from_buffer},
                                           {"MHD_create_response_from_pipe", &library.create_response_from_pipe},
                                           {"MHD_add_response_header", &library.add_response_header},
                                           {"MHD_queue_response", &library.queue_response},
                                           {"MHD_destroy_response", &library.destroy_response}};
  return lp_library_load("libmicrohttpd.so.12", functions, LP_COUNT(functions)) ? &library : NULL;
}
