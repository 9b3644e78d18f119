/* The server's file. */

#include "base/file.h"
#include "base/units.h"
#include "base/yaml/yaml.h"
#include "runtime/router/store.h"
#include "runtime/serve/serve.h"

typedef struct {
  lp_serve_config config;
  const char *key_env, *rule, *keywords;
  double drain_s;
  const lp_yaml_node *listen, *edge, *split, *embeddings, *cloud, *router, *hosts, *origins, *keys, *traces,
      *prediction;
} serve_file;

#define TOP(of, key, member, ...) LP_YAML_FIELD(of, key, serve_file, config.member, __VA_ARGS__)
static const lp_yaml_field top_fields[] = {
    LP_YAML_FIELD(LP_YAML_NODE, "listen", serve_file, listen, .least = 0),
    LP_YAML_FIELD(LP_YAML_TEXT, "key_env", serve_file, key_env, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "keys", serve_file, keys, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "hosts", serve_file, hosts, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "origins", serve_file, origins, .least = 0),
    TOP(LP_YAML_TEXT, "cert", cert, .least = 0),
    TOP(LP_YAML_TEXT, "cert_key", cert_key, .least = 0),
    TOP(LP_YAML_I64, "max_body", max_body, .least = 1024, .most = 1 << 30),
    TOP(LP_YAML_I64, "max_tokens", max_tokens, .least = 1, .most = 1 << 20),
    TOP(LP_YAML_TEXT, "log", log, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "traces", serve_file, traces, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "prediction", serve_file, prediction, .least = 0),
    LP_YAML_FIELD(LP_YAML_TIME_S, "drain", serve_file, drain_s, .least = 0, .most = 1e5),
    LP_YAML_FIELD(LP_YAML_NODE, "edge", serve_file, edge, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "split", serve_file, split, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "embeddings", serve_file, embeddings, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "cloud", serve_file, cloud, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "router", serve_file, router, .least = 0),
};

/* A location that outlives the document. */
static lp_loc place_of(const lp_yaml *yaml, const lp_yaml_node *node) {
  lp_loc loc = lp_yaml_loc(yaml, node);
  loc.file = lp_arena_strdup(yaml->arena, loc.file);
  return loc;
}

/* A place with a bundle. */
typedef struct {
  lp_serve_bundle place;
  const lp_yaml_node *workers, *fleet;
  const char *kv_cache, *redis_key_env;
  double total_s;
} bundle_file;
#define PLACE(of, key, member, ...) LP_YAML_FIELD(of, key, bundle_file, place.member, __VA_ARGS__)
static const lp_yaml_field bundle_fields[] = {
    PLACE(LP_YAML_TEXT, "bundle", bundle, .required = true),
    PLACE(LP_YAML_TEXT, "model", model, .least = 0),
    PLACE(LP_YAML_TEXT, "trust", trust, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "workers", bundle_file, workers, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "fleet", bundle_file, fleet, .least = 0),
    PLACE(LP_YAML_TEXT, "key_file", security.key_file, .least = 0),
    PLACE(LP_YAML_TEXT, "ca", security.ca_file, .least = 0),
    PLACE(LP_YAML_TEXT, "cert", security.cert_file, .least = 0),
    PLACE(LP_YAML_TEXT, "cert_key", security.cert_key_file, .least = 0),
    PLACE(LP_YAML_TEXT, "server_name", security.server_name, .least = 0),
    PLACE(LP_YAML_F64, "theta", theta, .least = 1e-6, .most = 1),
    PLACE(LP_YAML_F64, "prompt_stretch", prompt_stretch, .least = 1, .most = 1000),
    PLACE(LP_YAML_I64, "prompt_turn", prompt_turn, .least = 1, .most = 1e9),
    PLACE(LP_YAML_I64, "threads", threads, .least = 1, .most = 1024),
    PLACE(LP_YAML_I64, "parallel", parallel, .least = 1, .most = 4096),
    PLACE(LP_YAML_I64, "queue", queue, .least = 0, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_TEXT, "kv_cache", bundle_file, kv_cache, .least = 0),
    LP_YAML_FIELD(LP_YAML_TIME_S, "total", bundle_file, total_s, .least = 1e-3, .most = 1e6),
};
static const lp_yaml_field fleet_fields[] = {
    PLACE(LP_YAML_TEXT, "redis", fleet.redis, .required = true),
    LP_YAML_FIELD(LP_YAML_TEXT, "key_env", bundle_file, redis_key_env, .least = 0),
    PLACE(LP_YAML_TEXT, "name", fleet.name, .least = 0),
};
/* One of `keys`. */
typedef struct {
  lp_serve_key key;
  const char *key_env, *key_file;
} key_file;
static const lp_yaml_field key_fields[] = {
    LP_YAML_FIELD(LP_YAML_TEXT, "name", key_file, key.name, .required = true),
    LP_YAML_FIELD(LP_YAML_TEXT, "key_env", key_file, key_env, .least = 0),
    LP_YAML_FIELD(LP_YAML_TEXT, "key_file", key_file, key_file, .least = 0),
    LP_YAML_FIELD(LP_YAML_TEXT, "tenant", key_file, key.tenant, .least = 0),
    LP_YAML_FIELD(LP_YAML_F64, "requests_per_minute", key_file, key.requests, .least = 1, .most = 1e9),
    LP_YAML_FIELD(LP_YAML_F64, "tokens_per_minute", key_file, key.tokens, .least = 1, .most = 1e12),
    LP_YAML_FIELD(LP_YAML_I64, "parallel", key_file, key.parallel, .least = 1, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_BPS, "up", key_file, key.up_bps, .least = 1, .most = 1e15),
    LP_YAML_FIELD(LP_YAML_BPS, "down", key_file, key.down_bps, .least = 1, .most = 1e15),
    LP_YAML_FIELD(LP_YAML_I64, "user", key_file, key.user, .least = 1, .most = 100000),
};
static const lp_yaml_field cloud_fields[] = {
    TOP(LP_YAML_TEXT, "url", url, .required = true),
    TOP(LP_YAML_TEXT, "model", model, .required = true),
    LP_YAML_FIELD(LP_YAML_TEXT, "key_env", serve_file, key_env, .least = 0),
    TOP(LP_YAML_TIME_S, "timeout", timeout_ms, .least = 1e-3, .most = 1e6),
    TOP(LP_YAML_TIME_S, "total", total_ms, .least = 1e-3, .most = 1e6),
};
static const lp_yaml_field traces_fields[] = {
    TOP(LP_YAML_TEXT, "url", traces, .required = true),
    LP_YAML_FIELD(LP_YAML_TEXT, "key_env", serve_file, key_env, .least = 0),
};
static const lp_yaml_field router_fields[] = {
    TOP(LP_YAML_TEXT, "policy", policy.policy, .least = 0),
    TOP(LP_YAML_TEXT, "model", policy.model, .least = 0),
    TOP(LP_YAML_TEXT, "model_name", policy.model_name, .least = 0),
    TOP(LP_YAML_F64, "epsilon", policy.options.exploration.epsilon, .least = 0, .most = 1),
    TOP(LP_YAML_TIME_S, "timeout", policy.timeout_ms, .least = 1e-3, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_TEXT, "rule", serve_file, rule, .least = 0),
    LP_YAML_FIELD(LP_YAML_TEXT, "keywords", serve_file, keywords, .least = 0),
    TOP(LP_YAML_TEXT, "pool", pool, .least = 0),
    TOP(LP_YAML_TEXT, "backends", backends, .least = 0),
    TOP(LP_YAML_TIME_S, "target", target_s, .most = 1e9),
};

/* `prediction`, and the percentiles of a time in it. */
typedef struct {
  lp_serve_prediction of;
  const lp_yaml_node *ttft, *tpot;
} prediction_file;
typedef struct {
  double figure[LP_PREDICTED_QUANTILES];
} quantiles_file;
static const lp_yaml_field prediction_fields[] = {
    LP_YAML_FIELD(LP_YAML_TIME_S, "window", prediction_file, of.window_s, .least = 1, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_F64, "rate", prediction_file, of.figure[LP_PREDICTED_RATE], .least = 1e-9, .most = 1e9),
    LP_YAML_FIELD(LP_YAML_F64, "busy", prediction_file, of.figure[LP_PREDICTED_BUSY], .least = 1e-9, .most = 1),
    LP_YAML_FIELD(LP_YAML_NODE, "ttft", prediction_file, ttft, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "tpot", prediction_file, tpot, .least = 0),
};
static const lp_yaml_field quantiles_fields[] = {
    LP_YAML_FIELD(LP_YAML_TIME_S, "p50", quantiles_file, figure[0], .least = 1e-9, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_TIME_S, "p95", quantiles_file, figure[1], .least = 1e-9, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_TIME_S, "p99", quantiles_file, figure[2], .least = 1e-9, .most = 1e6),
};

/* The value of the environment variable, if the file names one. */
static lp_status read_key(lp_yaml *yaml, const lp_yaml_node *node, const char *variable, const char **out) {
  const char *value = variable ? getenv(variable) : NULL;
  if (variable && (!value || value[0] == 0))
    return lp_error(yaml->diag, lp_yaml_loc(yaml, node), "'key_env': the environment has no '%s'", variable);
  *out = value ? lp_arena_strdup(yaml->arena, value) : NULL;
  return LP_OK;
}

/* The one line of the file that `key_file` names. */
static lp_status read_key_file(lp_yaml *yaml, const lp_yaml_node *node, const char *path, const char **out) {
  LP_OWNED(lp_free_at) char *text = NULL;
  size_t size = 0;
  LP_TRY(lp_file_read(lp_yaml_relative(yaml, path), &text, &size, yaml->diag));
  while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
    text[--size] = 0;
  const bool is_line = size > 0 && strlen(text) == size && !strpbrk(text, "\r\n");
  if (is_line) *out = lp_arena_strdup(yaml->arena, text);
  return is_line ? LP_OK
                 : lp_error(yaml->diag, lp_yaml_loc(yaml, node), "'key_file': '%s' does not hold one line", path);
}

/* The key that `key_env` names, without limits, and those of `keys`. */
static lp_status read_keys(lp_yaml *yaml, const lp_yaml_node *root, const serve_file *file, lp_serve_keys *out) {
  int32_t count = 0;
  const char *only = NULL;
  if (file->keys) LP_TRY(lp_yaml_list(yaml, file->keys, "keys", &count));
  LP_TRY(read_key(yaml, root, file->key_env, &only));
  out->data = LP_NEW_ARRAY(yaml->arena, lp_serve_key, count + 1);
  if (only) out->data[out->count++] = (lp_serve_key){.key = only};
  for (int32_t i = 0; i < count; i++) {
    key_file one = {0};
    const lp_yaml_node *node = lp_yaml_item(yaml, file->keys, i);
    LP_TRY(lp_yaml_fields(yaml, node, "a key", key_fields, LP_COUNT(key_fields), &one));
    if (!one.key_env == !one.key_file)
      return lp_error(yaml->diag, lp_yaml_loc(yaml, node), "a key has either 'key_env' or 'key_file'");
    LP_TRY(read_key(yaml, node, one.key_env, &one.key.key));
    if (one.key_file) LP_TRY(read_key_file(yaml, node, one.key_file, &one.key.key));
    if (strpbrk(one.key.name, "\"\\\n"))
      return lp_error(yaml->diag, lp_yaml_loc(yaml, node),
                      "the name of a key has a quotation mark, backslash or line end");
    for (size_t k = 0; k < out->count; k++)
      if (lp_streq(out->data[k].key, one.key.key))
        return lp_error(yaml->diag, lp_yaml_loc(yaml, node), "'%s' is the key of another entry too", one.key.name);
    out->data[out->count++] = one.key;
  }
  return LP_OK;
}

static lp_status read_texts(lp_yaml *yaml, const lp_yaml_node *node, const char *key, lp_serve_texts *out) {
  int32_t count;
  if (!node) return LP_OK;
  LP_TRY(lp_yaml_list(yaml, node, key, &count));
  out->texts = LP_NEW_ARRAY(yaml->arena, const char *, count);
  for (; out->count < (size_t)count; out->count++)
    LP_TRY(lp_yaml_text(yaml, lp_yaml_item(yaml, node, (int32_t)out->count), key, &out->texts[out->count]));
  return LP_OK;
}

/* After the texts of the arrays and secrets, which are no fields of the table. */
static uint64_t digest_text(const char *text, uint64_t seed) {
  return text ? lp_hash_bytes(text, strlen(text) + 1, seed) : seed;
}

static const char *relative(lp_yaml *yaml, const char *path) {
  return path ? lp_yaml_relative(yaml, path) : NULL;
}

static lp_status read_fleet(lp_yaml *yaml, const char *of, bundle_file *file) {
  LP_TRY(lp_yaml_fields(yaml, file->fleet, "'fleet'", fleet_fields, LP_COUNT(fleet_fields), file));
  if (file->place.workers.count == 0)
    return lp_error(yaml->diag, lp_yaml_loc(yaml, file->fleet), "%s has no 'workers' that other servers could share",
                    of);
  return read_key(yaml, file->fleet, file->redis_key_env, &file->place.fleet.password);
}

/* A bundle that gives embeddings has neither workers nor KV caches that outlive a request. */
static const lp_yaml_field embeddings_fields[] = {
    PLACE(LP_YAML_TEXT, "bundle", bundle, .required = true),
    PLACE(LP_YAML_TEXT, "model", model, .least = 0),
    PLACE(LP_YAML_TEXT, "trust", trust, .least = 0),
    PLACE(LP_YAML_I64, "threads", threads, .least = 1, .most = 1024),
    PLACE(LP_YAML_I64, "queue", queue, .least = 0, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_TIME_S, "total", bundle_file, total_s, .least = 1e-3, .most = 1e6),
};

static lp_status read_embeddings(lp_yaml *yaml, const lp_yaml_node *node, lp_serve_bundle *out) {
  bundle_file file = {.place = {.parallel = 1, .queue = 127}, .total_s = 600};
  if (!node) return LP_OK;
  LP_TRY(lp_yaml_fields(yaml, node, "'embeddings'", embeddings_fields, LP_COUNT(embeddings_fields), &file));
  file.place.bundle = relative(yaml, file.place.bundle);
  file.place.trust = relative(yaml, file.place.trust);
  file.place.total_ms = file.total_s * 1000;
  file.place.digest = lp_yaml_digest(embeddings_fields, LP_COUNT(embeddings_fields), &file, 0);
  *out = file.place;
  return LP_OK;
}

/* `of`: "'edge'" or "'split'". */
static lp_status read_bundle(lp_yaml *yaml, const lp_yaml_node *node, const char *of, lp_serve_bundle *out) {
  bundle_file file = {.place = {.parallel = 128, .queue = 128}, .total_s = 600};
  if (!node) return LP_OK;
  LP_TRY(lp_yaml_fields(yaml, node, of, bundle_fields, LP_COUNT(bundle_fields), &file));
  if (file.workers) LP_TRY(read_texts(yaml, file.workers, "workers", &file.place.workers));
  lp_link_security *security = &file.place.security;
  bool secured = security->key_file || security->ca_file || security->cert_file || security->cert_key_file ||
                 security->server_name;
  if (file.place.workers.count > LP_MOST_WORKERS)
    return lp_error(yaml->diag, lp_yaml_loc(yaml, node), "%s has more than %d workers", of, LP_MOST_WORKERS);
  if (secured && file.place.workers.count == 0)
    return lp_error(yaml->diag, lp_yaml_loc(yaml, node), "%s secures the link to 'workers', and names none", of);
  if (file.fleet) LP_TRY(read_fleet(yaml, of, &file));
  file.place.bundle = relative(yaml, file.place.bundle);
  file.place.trust = relative(yaml, file.place.trust);
  security->key_file = relative(yaml, security->key_file);
  security->ca_file = relative(yaml, security->ca_file);
  security->cert_file = relative(yaml, security->cert_file);
  security->cert_key_file = relative(yaml, security->cert_key_file);
  file.place.total_ms = file.total_s * 1000;
  if (file.kv_cache) LP_TRY(lp_parse_size(file.kv_cache, &file.place.kv_bytes, yaml->diag, lp_yaml_loc(yaml, node)));
  uint64_t digest = lp_yaml_digest(bundle_fields, LP_COUNT(bundle_fields), &file, 0);
  digest = lp_yaml_digest(fleet_fields, LP_COUNT(fleet_fields), &file, digest);
  for (size_t i = 0; i < file.place.workers.count; i++)
    digest = digest_text(file.place.workers.texts[i], digest);
  file.place.digest = digest;
  *out = file.place;
  return LP_OK;
}

static lp_status check_url(const lp_yaml *yaml, const lp_yaml_node *node, const char *url) {
  if (lp_has_prefix(url, "http://") || lp_has_prefix(url, "https://")) return LP_OK;
  return lp_error(yaml->diag, lp_yaml_loc(yaml, node), "'url' is '%s', which begins neither with http:// nor https://",
                  url);
}

static lp_status read_traces(lp_yaml *yaml, serve_file *file) {
  file->key_env = NULL;
  LP_TRY(lp_yaml_fields(yaml, file->traces, "'traces'", traces_fields, LP_COUNT(traces_fields), file));
  LP_TRY(check_url(yaml, file->traces, file->config.traces));
  file->config.traces_digest = lp_yaml_digest(traces_fields, LP_COUNT(traces_fields), file, 0);
  return read_key(yaml, file->traces, file->key_env, &file->config.traces_key);
}

static lp_status read_cloud(lp_yaml *yaml, serve_file *file) {
  file->key_env = NULL;
  file->config.timeout_ms /= 1000; /* the table reads seconds */
  file->config.total_ms /= 1000;
  LP_TRY(lp_yaml_fields(yaml, file->cloud, "'cloud'", cloud_fields, LP_COUNT(cloud_fields), file));
  file->config.timeout_ms *= 1000;
  file->config.total_ms *= 1000;
  file->config.cloud_digest = lp_yaml_digest(cloud_fields, LP_COUNT(cloud_fields), file, 0);
  LP_TRY(check_url(yaml, file->cloud, file->config.url));
  return read_key(yaml, file->cloud, file->key_env, &file->config.cloud_key);
}

static lp_status read_router(lp_yaml *yaml, serve_file *file) {
  lp_serve_config *config = &file->config;
  LP_TRY(lp_yaml_fields(yaml, file->router, "'router'", router_fields, LP_COUNT(router_fields), file));
  if (file->rule && !lp_route_parse(file->rule, &config->rule))
    return lp_error(yaml->diag, lp_yaml_loc(yaml, file->router), "'rule' is '%s', not %s, %s or %s", file->rule,
                    lp_route_name(LP_ROUTE_EDGE), lp_route_name(LP_ROUTE_CLOUD), lp_route_name(LP_ROUTE_SPLIT));
  config->policy.loc = place_of(yaml, file->router);
  config->policy.timeout_ms *= 1000; /* the table reads seconds */
  config->model_keywords = lp_streq(file->keywords, "model");
  if (file->keywords && !config->model_keywords && !lp_streq(file->keywords, "request"))
    return lp_error(yaml->diag, lp_yaml_loc(yaml, file->router), "'keywords' is '%s', not request or model",
                    file->keywords);
  if (config->pool && !lp_store_is_url(config->pool)) config->pool = lp_yaml_relative(yaml, config->pool);
  if (config->backends) config->backends = lp_yaml_relative(yaml, config->backends);
  config->router_digest = lp_yaml_digest(router_fields, LP_COUNT(router_fields), file, 0);
  return LP_OK;
}

static lp_status read_prediction(lp_yaml *yaml, const lp_yaml_node *node, lp_serve_prediction *out) {
  prediction_file file = {.of.window_s = 600};
  LP_TRY(lp_yaml_fields(yaml, node, "'prediction'", prediction_fields, LP_COUNT(prediction_fields), &file));
  if (file.ttft)
    LP_TRY(lp_yaml_fields(yaml, file.ttft, "'ttft'", quantiles_fields, LP_COUNT(quantiles_fields),
                          &file.of.figure[LP_PREDICTED_TTFT]));
  if (file.tpot)
    LP_TRY(lp_yaml_fields(yaml, file.tpot, "'tpot'", quantiles_fields, LP_COUNT(quantiles_fields),
                          &file.of.figure[LP_PREDICTED_TPOT]));
  *out = file.of;
  for (int i = 0; i < LP_PREDICTED_FIGURES; i++)
    if (file.of.figure[i] > 0) return LP_OK;
  return lp_error(yaml->diag, lp_yaml_loc(yaml, node), "'prediction' has no figure: give one, such as rate: 2");
}

static lp_status read_root(void *user, lp_yaml *yaml, const lp_yaml_node *root) {
  lp_serve_config *config = user;
  serve_file file = {.config = *config};
  LP_TRY(lp_yaml_fields(yaml, root, "the server", top_fields, LP_COUNT(top_fields), &file));
  if (file.listen) {
    LP_TRY(lp_yaml_text(yaml, file.listen, "listen", &file.config.listen));
    file.config.listen_loc = place_of(yaml, file.listen);
  }
  file.config.drain_ms = file.drain_s * 1000;
  if (file.config.log && !lp_streq(file.config.log, "-")) file.config.log = lp_yaml_relative(yaml, file.config.log);
  LP_TRY(read_keys(yaml, root, &file, &file.config.keys));
  if (!file.config.cert != !file.config.cert_key)
    return lp_error(yaml->diag, lp_yaml_loc(yaml, root), "'cert' and 'cert_key' belong together");
  file.config.cert = relative(yaml, file.config.cert);
  file.config.cert_key = relative(yaml, file.config.cert_key);
  LP_TRY(read_texts(yaml, file.hosts, "hosts", &file.config.hosts));
  LP_TRY(read_texts(yaml, file.origins, "origins", &file.config.origins));
  if (!file.edge && !file.split && !file.cloud && !file.embeddings)
    return lp_error(yaml->diag, lp_yaml_loc(yaml, root),
                    "the server requires a place: 'edge', 'split', 'cloud' or 'embeddings'");
  LP_TRY(read_bundle(yaml, file.edge, "'edge'", &file.config.edge));
  LP_TRY(read_bundle(yaml, file.split, "'split'", &file.config.split));
  LP_TRY(read_embeddings(yaml, file.embeddings, &file.config.embeddings));
  if (file.cloud) LP_TRY(read_cloud(yaml, &file));
  if (file.traces) LP_TRY(read_traces(yaml, &file));
  if (file.prediction) LP_TRY(read_prediction(yaml, file.prediction, &file.config.prediction));
  if (file.router) LP_TRY(read_router(yaml, &file));
  *config = file.config;
  return LP_OK;
}

static lp_serve_config *begin_config(void) {
  lp_serve_config *config = lp_alloc(sizeof *config);
  *config = (lp_serve_config){.arena = lp_arena_create(),
                              .listen = "127.0.0.1:8080",
                              .max_body = 1 << 20,
                              .max_tokens = 1024,
                              .timeout_ms = 30000,
                              .total_ms = 600000,
                              .policy = {.policy = "router", .model = "lookup"},
                              .rule = LP_ROUTE_EDGE,
                              .target_s = 60};
  config->policy.options.exploration.epsilon = 0.1;
  return config;
}

lp_serve_config *lp_serve_config_of_bundle(const char *bundle, const char *key) {
  lp_serve_config *config = begin_config();
  lp_serve_key *only = lp_arena_alloc(config->arena, sizeof *only);
  *only = (lp_serve_key){.key = key};
  if (key) config->keys = (lp_serve_keys){only, 1};
  config->edge = (lp_serve_bundle){.bundle = bundle, .parallel = 128, .queue = 128, .total_ms = 600000};
  return config;
}

lp_status lp_serve_config_load(const char *path, lp_serve_config **out, lp_diag *diag) {
  lp_serve_config *config = begin_config();
  lp_status status = lp_yaml_load(path, config->arena, read_root, config, diag);
  *out = status == LP_OK ? config : NULL;
  if (status != LP_OK) lp_serve_config_free(config);
  return status;
}

lp_serve_config *lp_serve_config_share(lp_serve_config *config) {
  config->shares++;
  return config;
}

void lp_serve_config_free(lp_serve_config *config) {
  if (!config || config->shares-- > 0) return;
  lp_arena_free(config->arena);
  free(config);
}
