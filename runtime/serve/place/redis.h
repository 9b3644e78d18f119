/* Connections to Redis or Valkey. Empty where llmpart is built without hiredis. */
#pragma once

#ifdef LP_REDIS
#include <hiredis/hiredis.h>
#include <stdbool.h>

#include "runtime/serve/serve.h"

/* Connects and names the password; NULL: that failed. Each command fails after `patience`. Release with redisFree. */
redisContext *lp_redis_connect(const lp_serve_fleet *config, const char *host, int port, struct timeval patience);
/* Tells whether a reply came and is no error. */
bool lp_redis_is_good(const redisReply *reply);
/* Reads `count` replies to appended commands and returns the last one, for freeReplyObject; NULL: one was none, or an
 * error. */
redisReply *lp_redis_last_reply(redisContext *redis, int count);
#endif
