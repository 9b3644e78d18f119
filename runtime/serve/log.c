/* Writes JSON lines. */
#include "runtime/serve/log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <time.h>

#include "runtime/serve/place/logprobs.h"

struct lp_log {
  FILE *file;
  bool owned;
};

lp_status lp_log_open(const char *path, lp_log **out, lp_diag *diag) {
  bool owned = !lp_streq(path, "-");
  int descriptor = owned ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1; /* its owner's alone */
  FILE *file = !owned ? stderr : descriptor >= 0 ? fdopen(descriptor, "a") : NULL;
  if (!file) return lp_error(diag, LP_LOC_FILE(path), "%s", strerror(errno));
  *out = lp_alloc(sizeof **out);
  **out = (lp_log){file, owned};
  return LP_OK;
}

void lp_log_close(lp_log *log) {
  if (!log) return;
  if (log->owned) (void)fclose(log->file);
  free(log);
}

static void put_time(lp_json_writer *json) {
  struct timespec now;
  struct tm utc;
  char text[40], whole[32];
  (void)clock_gettime(CLOCK_REALTIME, &now);
  (void)gmtime_r(&now.tv_sec, &utc);
  (void)strftime(whole, sizeof whole, "%Y-%m-%dT%H:%M:%S", &utc);
  (void)snprintf(text, sizeof text, "%s.%03dZ", whole, (int)(now.tv_nsec / 1000000 % 1000));
  lp_json_put_text(json, "time", text);
}

static void put_ms(lp_json_writer *json, const char *key, double seconds) {
  if (!isnan(seconds)) lp_json_put_fixed(json, key, seconds * 1000, 3);
}

static void put_decision(lp_json_writer *json, const lp_dispatched *course) {
  lp_json_put_text(json, "route", lp_route_name(course->route));
  lp_json_put_text(json, "model", course->model);
  lp_json_put_text(json, "decided_by", lp_decision_source_name(course->decided.source));
  lp_json_put_text(json, "decided", lp_route_name(course->decided.route));
  lp_json_put_number(json, "propensity", course->decided.propensity);
  if (course->decided.reason[0]) lp_json_put_text(json, "reason", course->decided.reason);
  if (course->decision > 0) lp_json_put_integer(json, "decision", course->decision);
  lp_json_put_bool(json, "fell_back", course->fell_back);
}

static void write_line(lp_log *log, lp_buf *line) {
  lp_buf_puts(line, "\n");
  (void)fwrite(line->data, 1, line->size, log->file); /* one call, so that lines of threads do not mix */
  (void)fflush(log->file);
  lp_buf_free(line);
}

void lp_log_request(lp_log *log, const char *id, const char *key, const lp_completion *request,
                    const lp_dispatched *course, const char *error) {
  if (!log) return;
  lp_buf line = {0};
  lp_json_writer json = lp_answer_begin(&line);
  lp_json_put_object(&json, NULL);
  put_time(&json);
  lp_json_put_text(&json, "id", id);
  lp_json_put_text(&json, "trace_id", request->trace);
  if (key) lp_json_put_text(&json, "key", key);
  lp_json_put_text(&json, "asked", request->model);
  lp_json_put_bool(&json, "stream", request->stream);
  if (course->model) put_decision(&json, course);
  lp_json_put_integer(&json, "prompt_tokens", course->usage.prompt_tokens);
  lp_json_put_integer(&json, "cached_tokens", course->usage.cached_tokens);
  lp_json_put_integer(&json, "tokens", course->usage.tokens);
  put_ms(&json, "decision_ms", course->seconds[LP_TIME_DECISION]);
  put_ms(&json, "queue_ms", course->seconds[LP_TIME_QUEUE]);
  put_ms(&json, "ttft_ms", course->seconds[LP_TIME_TTFT]);
  put_ms(&json, "tpot_ms", course->seconds[LP_TIME_TPOT]);
  put_ms(&json, "total_ms", course->seconds[LP_TIME_TOTAL]);
  if (request->note[0]) lp_json_put_text(&json, "note", request->note);
  if (course->usage.note) lp_json_put_text(&json, "note_of_place", course->usage.note);
  if (error) lp_json_put_text(&json, "error", error);
  lp_json_put_end(&json);
  write_line(log, &line);
}

void lp_log_worker(lp_log *log, const char *route, const lp_worker_state *worker) {
  lp_buf line = {0};
  lp_json_writer json = lp_answer_begin(&line);
  lp_json_put_object(&json, NULL);
  put_time(&json);
  lp_json_put_text(&json, "route", route);
  lp_json_put_text(&json, "worker", worker->address);
  lp_json_put_text(&json, "state", worker->up ? "up" : "down");
  if (worker->reason[0]) lp_json_put_text(&json, "reason", worker->reason);
  lp_json_put_end(&json);
  write_line(log, &line);
}
