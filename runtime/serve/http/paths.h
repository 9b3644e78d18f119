/* The paths of the API. */
#pragma once

#include "runtime/serve/http/exchange.h"

typedef struct {
  const char *url, *method, *version;
  bool is_beyond; /* the limit of connections */
} lp_request_head;

/* Replies to a request that is refused by its head, of which no body was read; false: it goes on. */
bool lp_paths_refuse(struct MHD_Connection *connection, const lp_request_head *head, lp_exchange *exchange,
                     enum MHD_Result *result);

/* Replies to a request, of which the exchange has the body. *taken: as in lp_exchange_answer. */
enum MHD_Result lp_paths_reply(struct MHD_Connection *connection, const char *url, const char *method,
                               lp_exchange *exchange, bool *taken);
