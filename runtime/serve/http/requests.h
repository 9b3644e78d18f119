/* Requests for answers, under the limits of their keys. Each dialect's become those of OpenAI's chat. */
#pragma once

#include "runtime/serve/http/exchange.h"

/* Finds the key of the request, in OpenAI's header or Anthropic's; false: it has none, and needs one. */
bool lp_request_is_allowed(const lp_peer *to, lp_exchange *exchange);
/* The owner of the request's routing decisions: a hash of the key's tenant, else of its name, else of the key itself.
 * It is the same in all servers. 0: there are no keys. */
uint64_t lp_request_owner(const lp_exchange *exchange);

/* Reply to the request in the exchange's body. *taken: as in lp_exchange_answer. */
enum MHD_Result lp_request_complete(const lp_peer *to, lp_exchange *exchange, bool chat, bool *taken);
enum MHD_Result lp_request_translate(const lp_peer *to, lp_exchange *exchange, bool *taken); /* of the peer's dialect */
enum MHD_Result lp_request_embed(const lp_peer *to, lp_exchange *exchange);
