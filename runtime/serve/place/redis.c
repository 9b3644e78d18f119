/* Answers of Redis: see redis.h. */
#include "runtime/serve/place/redis.h"

#ifdef LP_REDIS
bool lp_redis_is_good(const redisReply *reply) {
  return reply && reply->type != REDIS_REPLY_ERROR;
}

static bool authenticate(redisContext *redis, const char *password) {
  redisReply *reply = redisCommand(redis, "AUTH %s", password);
  bool good = lp_redis_is_good(reply);
  freeReplyObject(reply);
  return good;
}

redisContext *lp_redis_connect(const lp_serve_fleet *config, const char *host, int port, struct timeval patience) {
  redisContext *redis = redisConnectWithTimeout(host, port, patience);
  bool up = redis && !redis->err && redisSetTimeout(redis, patience) == REDIS_OK &&
            (!config->password || authenticate(redis, config->password));
  if (up) return redis;
  if (redis) redisFree(redis);
  return NULL;
}

redisReply *lp_redis_last_reply(redisContext *redis, int count) {
  redisReply *reply = NULL;
  for (int i = 0; i < count; i++) {
    freeReplyObject(reply);
    void *next = NULL;
    reply = redisGetReply(redis, &next) == REDIS_OK ? next : NULL;
    if (lp_redis_is_good(reply)) continue;
    freeReplyObject(reply);
    return NULL;
  }
  return reply;
}
#else
typedef int lp_redis_none; /* a translation unit is not empty */
#endif
