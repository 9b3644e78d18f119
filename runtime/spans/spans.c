/* Collects spans and sends them: see spans.h. */
#include "runtime/spans/spans.h"

#include <pthread.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/json/writer.h"
#include "runtime/router/curl_library.h"

enum { MOST_WAITING = 4096, SEND_MS = 500, TIMEOUT_MS = 3000 };

struct lp_spans {
  lp_spans_options options;
  double epoch_ms; /* Unix time minus lp_now_ms */
  pthread_t thread;
  bool runs;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t changed;
  bool ends;
  lp_buf waiting; /* spans in JSON, with commas between them */
  int64_t count;  /* of them */
  int64_t sent, dropped;
};

void lp_span_draw_id(char out[LP_SPAN_ID + 1]) {
  unsigned char bytes[LP_SPAN_ID / 2] = {0};
  if (getrandom(bytes, sizeof bytes, 0) < 0) bytes[1] = 0;
  bytes[0] |= 1; /* an id of zeros is not valid */
  for (size_t i = 0; i < sizeof bytes; i++)
    (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* A number of 64 bits is text in the JSON of protobuf. */
static void put_i64(lp_json_writer *json, const char *key, int64_t value) {
  char text[32];
  (void)snprintf(text, sizeof text, "%" PRId64, value);
  lp_json_put_text(json, key, text);
}

static void put_list(lp_json_writer *json, const lp_span_attribute *attribute) {
  lp_json_put_object(json, "arrayValue");
  lp_json_put_array(json, "values");
  for (size_t i = 0; i < attribute->count; i++) {
    lp_json_put_object(json, NULL);
    lp_json_put_text(json, "stringValue", attribute->list[i]);
    lp_json_put_end(json);
  }
  lp_json_put_end(json);
  lp_json_put_end(json);
}

static void put_attribute(lp_json_writer *json, const lp_span_attribute *attribute) {
  lp_json_put_object(json, NULL);
  lp_json_put_text(json, "key", attribute->key);
  lp_json_put_object(json, "value");
  if (attribute->text)
    lp_json_put_text(json, "stringValue", attribute->text);
  else if (attribute->list)
    put_list(json, attribute);
  else
    put_i64(json, "intValue", attribute->number);
  lp_json_put_end(json);
  lp_json_put_end(json);
}

static void put_span(const lp_spans *spans, const lp_span_record *record, lp_buf *out) {
  enum { FAILED = 2 };
  lp_json_writer json = lp_json_writer_begin(out, (lp_json_style){.has_no_space = true});
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "traceId", record->trace);
  lp_json_put_text(&json, "spanId", record->id);
  if (record->parent && record->parent[0]) lp_json_put_text(&json, "parentSpanId", record->parent);
  lp_json_put_text(&json, "name", record->name);
  lp_json_put_integer(&json, "kind", record->kind);
  put_i64(&json, "startTimeUnixNano", (int64_t)((spans->epoch_ms + record->begin_ms) * 1e6));
  put_i64(&json, "endTimeUnixNano", (int64_t)((spans->epoch_ms + record->end_ms) * 1e6));
  lp_json_put_array(&json, "attributes");
  for (size_t i = 0; i < record->count; i++)
    put_attribute(&json, &record->attribute[i]);
  lp_json_put_end(&json);
  if (record->error) {
    lp_json_put_object(&json, "status");
    lp_json_put_integer(&json, "code", FAILED);
    lp_json_put_text(&json, "message", record->error);
    lp_json_put_end(&json);
  }
  lp_json_put_end(&json);
}

static char *request_of(const lp_spans *spans, const lp_buf *waiting) {
  const lp_span_attribute service = {.key = "service.name", .text = spans->options.service};
  lp_buf out = {0};
  lp_json_writer json = lp_json_writer_begin(&out, (lp_json_style){.has_no_space = true});
  lp_json_put_object(&json, NULL);
  lp_json_put_array(&json, "resourceSpans");
  lp_json_put_object(&json, NULL);
  lp_json_put_object(&json, "resource");
  lp_json_put_array(&json, "attributes");
  put_attribute(&json, &service);
  lp_json_put_end(&json);
  lp_json_put_end(&json);
  lp_json_put_array(&json, "scopeSpans");
  lp_json_put_object(&json, NULL);
  lp_json_put_object(&json, "scope");
  lp_json_put_text(&json, "name", "llmpart");
  lp_json_put_end(&json);
  lp_json_put_key(&json, "spans");
  lp_buf_printf(&out, "[%s]", lp_buf_text(waiting));
  for (int depth = 0; depth < 5; depth++) /* scopeSpans, resourceSpans and the whole */
    lp_json_put_end(&json);
  return out.data;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static size_t ignore(char *data, size_t size, size_t count, void *user) {
  (void)data, (void)user;
  return size * count;
}

/* Tells whether the collector took the spans. */
static bool post(const lp_spans *spans, const char *body) {
  const lp_curl_library *curl = lp_curl_library_get();
  CURL *handle = curl->easy_init();
  if (!handle) return false;
  LP_OWNED(lp_buf_free) lp_buf bearer = {0};
  struct curl_slist *headers = curl->slist_append(NULL, "Content-Type: application/json");
  if (spans->options.key) {
    lp_buf_printf(&bearer, "Authorization: Bearer %s", spans->options.key);
    headers = curl->slist_append(headers, bearer.data);
  }
  long http = 0;
  (void)curl->easy_setopt(handle, CURLOPT_URL, spans->options.url);
  (void)curl->easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  (void)curl->easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  (void)curl->easy_setopt(handle, CURLOPT_POSTFIELDS, body);
  (void)curl->easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  (void)curl->easy_setopt(handle, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  (void)curl->easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
  (void)curl->easy_setopt(handle, CURLOPT_WRITEFUNCTION, ignore);
  bool good = curl->easy_perform(handle) == CURLE_OK;
  (void)curl->easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &http);
  curl->easy_cleanup(handle);
  curl->slist_free_all(headers);
  return good && http >= 200 && http < 300;
}

static void send_waiting(lp_spans *spans) {
  lp_buf taken = spans->waiting;
  int64_t count = spans->count;
  spans->waiting = (lp_buf){0};
  spans->count = 0;
  (void)pthread_mutex_unlock(&spans->lock);
  char *body = request_of(spans, &taken);
  bool good = post(spans, body);
  free(body);
  lp_buf_free(&taken);
  (void)pthread_mutex_lock(&spans->lock);
  *(good ? &spans->sent : &spans->dropped) += count;
}

static void *work(void *user) {
  lp_spans *spans = user;
  (void)pthread_mutex_lock(&spans->lock);
  while (!spans->ends || spans->count > 0) {
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += SEND_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    if (!spans->ends) (void)pthread_cond_timedwait(&spans->changed, &spans->lock, &until);
    if (spans->count > 0) send_waiting(spans);
  }
  (void)pthread_mutex_unlock(&spans->lock);
  return NULL;
}

/* ---- the collection ---------------------------------------------------------------------------------------------- */

lp_status lp_spans_open(const lp_spans_options *options, lp_spans **out, lp_diag *diag) {
  struct timespec now;
  if (!lp_curl_library_get()) return lp_error(diag, LP_LOC_FILE(options->url), "libcurl.so.4 is not there");
  (void)clock_gettime(CLOCK_REALTIME, &now);
  lp_spans *spans = lp_alloc(sizeof *spans);
  spans->options = *options;
  spans->epoch_ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6 - lp_now_ms();
  (void)pthread_mutex_init(&spans->lock, NULL);
  (void)pthread_cond_init(&spans->changed, NULL);
  spans->runs = pthread_create(&spans->thread, NULL, work, spans) == 0;
  *out = spans;
  if (spans->runs) return LP_OK;
  lp_spans_close(spans);
  *out = NULL;
  return lp_error(diag, LP_LOC_NONE, "the system starts no thread");
}

void lp_spans_close(lp_spans *spans) {
  if (!spans) return;
  (void)pthread_mutex_lock(&spans->lock);
  spans->ends = true;
  (void)pthread_cond_signal(&spans->changed);
  (void)pthread_mutex_unlock(&spans->lock);
  if (spans->runs) (void)pthread_join(spans->thread, NULL);
  lp_buf_free(&spans->waiting);
  (void)pthread_cond_destroy(&spans->changed);
  (void)pthread_mutex_destroy(&spans->lock);
  free(spans);
}

void lp_spans_add(lp_spans *spans, const lp_span_record *record) {
  if (!spans) return;
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  put_span(spans, record, &text);
  (void)pthread_mutex_lock(&spans->lock);
  if (spans->count >= MOST_WAITING) {
    spans->dropped++;
  } else {
    if (spans->count++ > 0) lp_buf_puts(&spans->waiting, ",");
    lp_buf_append(&spans->waiting, text.data, text.size);
  }
  (void)pthread_mutex_unlock(&spans->lock);
}

void lp_spans_count(lp_spans *spans, int64_t *sent, int64_t *dropped) {
  (void)pthread_mutex_lock(&spans->lock);
  *sent = spans->sent;
  *dropped = spans->dropped;
  (void)pthread_mutex_unlock(&spans->lock);
}

/* ---- trace contexts ---------------------------------------------------------------------------------------------- */

/* Lower-case hexadecimal digits, not all of them 0. */
static bool is_hex(const char *text, size_t digits) {
  return strspn(text, "0123456789abcdef") >= digits && strspn(text, "0") < digits;
}

void lp_traceparent_read(const char *text, char trace[LP_SPAN_TRACE + 1], char caller[LP_SPAN_ID + 1]) {
  enum { SPAN_AT = 3 + LP_SPAN_TRACE + 1, SIZE = SPAN_AT + LP_SPAN_ID + 3 };
  bool good = text && strlen(text) == SIZE && lp_has_prefix(text, "00-") && is_hex(text + 3, LP_SPAN_TRACE) &&
              text[SPAN_AT - 1] == '-' && is_hex(text + SPAN_AT, LP_SPAN_ID);
  lp_span_draw_id(trace);
  lp_span_draw_id(trace + LP_SPAN_ID);
  caller[0] = 0;
  if (!good) return;
  memcpy(trace, text + 3, LP_SPAN_TRACE);
  memcpy(caller, text + SPAN_AT, LP_SPAN_ID);
  caller[LP_SPAN_ID] = 0;
}

void lp_traceparent_write(const char *trace, const char *span, char out[LP_TRACE_CONTEXT + 1]) {
  (void)snprintf(out, LP_TRACE_CONTEXT + 1, "00-%s-%s-01", trace, span);
}
