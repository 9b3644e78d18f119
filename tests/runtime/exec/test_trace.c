/* Traces: they are JSON that Chrome and Perfetto read, spans nest on each lane, and the cloud's spans lie within the
 * requests once the clocks are compared. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/path.h"
#include "runtime/exec/trace.h"
#include "runtime/runtime.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

enum { MOST_DEPTH = 8, MOST_LANES = LP_LANE_COUNT + LP_PLACES_MAX };
static const double slack_us = 0.002; /* times are written to the ns */

static char *dir, *file;
static void setup(void) {
  dir = toy_dir_create();
  file = lp_path_join(dir, "trace.json");
}
static void teardown(void) {
  free(file);
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* ---- checks of a trace ------------------------------------------------------------------------------------------- */

typedef struct {
  json_t *root, *events;
  double offset_ms, error_ms;
} trace_file;

static trace_file read_trace(void) {
  trace_file trace = {.root = json_load_file(file, JSON_REJECT_DUPLICATES, NULL)};
  ck_assert_ptr_nonnull(trace.root);
  json_t *other = json_object_get(trace.root, "otherData");
  ck_assert_str_eq(json_string_value(json_object_get(other, "schema")), "llmpart.trace/1");
  trace.offset_ms = json_number_value(json_object_get(other, "clock_offset_ms"));
  trace.error_ms = json_number_value(json_object_get(other, "clock_error_ms"));
  trace.events = json_object_get(trace.root, "traceEvents");
  ck_assert(json_is_array(trace.events));
  return trace;
}

static const char *text(const json_t *event, const char *key) {
  const char *found = json_string_value(json_object_get(event, key));
  return found ? found : "";
}

static double number(const json_t *event, const char *key) {
  ck_assert(json_is_number(json_object_get(event, key)));
  return json_number_value(json_object_get(event, key));
}

static bool is_span(const json_t *event) {
  return lp_streq(text(event, "ph"), "X");
}

static double end_of(const json_t *event) {
  return number(event, "ts") + number(event, "dur");
}

/* Expects events in the order of time. On a lane a slice must end before the slice around it. */
static void expect_order(const trace_file *trace) {
  double last = 0, open[MOST_LANES][MOST_DEPTH];
  int depth[MOST_LANES] = {0};
  size_t i;
  json_t *event;
  json_array_foreach(trace->events, i, event) {
    if (lp_streq(text(event, "ph"), "M")) continue;
    double begin = number(event, "ts");
    ck_assert_double_ge(begin + slack_us, last);
    last = begin;
    if (!is_span(event)) continue;
    int lane = (int)number(event, "tid") - 1;
    ck_assert(lane >= 0 && lane < MOST_LANES && number(event, "dur") >= 0);
    while (depth[lane] > 0 && open[lane][depth[lane] - 1] <= begin + slack_us)
      depth[lane]--;
    if (depth[lane] > 0) ck_assert_double_le(end_of(event), open[lane][depth[lane] - 1] + slack_us);
    ck_assert_int_lt(depth[lane], MOST_DEPTH);
    open[lane][depth[lane]++] = end_of(event);
  }
}

static bool is_request(const json_t *event) {
  return is_span(event) && (lp_streq(text(event, "name"), "ask") || lp_streq(text(event, "name"), "verify"));
}

/* Tells whether it lies within a request. */
static bool is_asked_for(const trace_file *trace, const json_t *slice) {
  size_t i;
  json_t *event;
  json_array_foreach(trace->events, i, event) {
    if (is_request(event) && number(event, "ts") <= number(slice, "ts") + slack_us &&
        end_of(event) + slack_us >= end_of(slice))
      return true;
  }
  return false;
}

typedef struct {
  int requests, computed, tokens, passes;
  int64_t row_bytes;
} counts;

static counts count_events(const trace_file *trace, bool remote) {
  counts found = {0};
  size_t i;
  json_t *event;
  json_array_foreach(trace->events, i, event) {
    const char *name = text(event, "name"), *lane = text(event, "cat");
    found.requests += is_request(event);
    found.tokens += lp_streq(name, "token");
    found.passes += lp_streq(lane, "device") && is_span(event);
    if (lp_streq(name, "rows")) found.row_bytes += (int64_t)number(json_object_get(event, "args"), "bytes");
    if (!is_span(event) || !lp_streq(lane, "cloud")) continue;
    found.computed += lp_streq(name, "compute") || !remote;
    if (remote) ck_assert_msg(is_asked_for(trace, event), "a slice of the cloud that nobody asked for");
  }
  return found;
}

/* ---- of runs ----------------------------------------------------------------------------------------------------- */

static const struct {
  toy_placement placement;
  lp_mode mode;
  bool remote;
} runs[] = {{{.prefill = "ddddcc", .exits = {1, 3}}, LP_MODE_EXACT, true},
            {{.prefill = "ddddcc", .exits = {1, 3}}, LP_MODE_THRESHOLD, true},
            {{.prefill = "ddccdd"}, LP_MODE_FULL, true},
            {{.prefill = "ddddcc", .exits = {1, 3}}, LP_MODE_EXACT, false},
            {{.prefill = "ddccdd"}, LP_MODE_FULL, false},
            {{.prefill = "ddddcc", .exits = {1, 3}}, LP_MODE_STANDALONE, false}};

static lp_generation generate(const lp_bundle *bundle, const lp_generate_options *options) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_session *session = NULL;
  lp_generation made = {0};
  ck_assert_int_eq(lp_session_open(bundle, options, &session, NULL), LP_OK);
  ck_assert_int_eq(lp_session_generate(session, prompts, 1, TOY_PROMPT, NULL, NULL, &made, NULL), LP_OK);
  lp_session_close(session);
  return made;
}

LP_LOOP_TEST(runs_are_traced, 0, LP_COUNT(runs)) {
  static const lp_link_shape slow = {.rtt_ms = 4};
  char *path = toy_bundle_write(dir, "toy", &runs[_i].placement);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_generate_options options = {.cloud = runs[_i].remote ? worker.address : NULL,
                                 .link = runs[_i].remote ? &slow : NULL,
                                 .mode = runs[_i].mode,
                                 .theta = 2,
                                 .sampling = {.top_p = 1},
                                 .max_tokens = TOY_MADE,
                                 .ignore_eos = true,
                                 .threads = 1};
  lp_generation plain = generate(bundle, &options);
  options.trace = lp_trace_create();
  lp_generation made = generate(bundle, &options);
  ck_assert_int_eq(lp_trace_write(options.trace, NULL, file, NULL), LP_OK);
  lp_trace_free(options.trace);
  trace_file trace = read_trace();
  expect_order(&trace);
  counts found = count_events(&trace, runs[_i].remote);
  ck_assert_int_eq(found.tokens, (int)made.generated);
  ck_assert_int_gt(found.passes, 0);
  if (runs[_i].remote) {
    ck_assert_int_eq(found.requests, (int)made.cloud_requests);
    ck_assert_int_gt(found.computed, 0);
    ck_assert_double_le(fabs(trace.offset_ms), trace.error_ms + 0.001); /* both processes have one clock */
    ck_assert_double_lt(trace.error_ms, 1000);
  }
  if (runs[_i].remote && runs[_i].mode != LP_MODE_FULL)
    ck_assert_uint_eq((uint64_t)found.row_bytes, made.hidden_bytes_up);
  if (runs[_i].mode == LP_MODE_STANDALONE) ck_assert_int_eq(found.computed, 0);
  for (int64_t i = 0; i < made.generated; i++)
    ck_assert_int_eq(made.tokens.data[i].token, plain.tokens.data[i].token);
  json_decref(trace.root);
  lp_generation_free(&plain);
  lp_generation_free(&made);
  toy_worker_stop(&worker);
  lp_bundle_free(bundle);
  free(path);
}

/* ---- of clocks that differ --------------------------------------------------------------------------------------- */

/* Requests to a worker with a clock that is an hour off, over a link with different delays up and down. */
LP_LOOP_TEST(clocks_are_compared, 0, 6) {
  const double off = 3600e3 * (_i % 2 == 0 ? 1 : -1);
  uint32_t state = (uint32_t)_i + 1;
  lp_trace *trace = lp_trace_create();
  double at = lp_now_ms(), shortest = 1e9;
  for (int i = 0; i < 50; i++) {
    double way[3];
    for (int k = 0; k < 3; k++)
      way[k] = 0.1 + (double)((state = state * 1664525u + 1013904223u) >> 16) / 6553.6;
    lp_trace_slice slice = {.name = "ask", .begin_ms = at, .position = i, .tokens = 1, .bytes = -1};
    lp_cloud_times times = {.asked_ms = at + way[0] + off};
    times.began_ms = times.asked_ms + way[1] / 2;
    times.sent_ms = times.began_ms + way[1] / 2;
    slice.end_ms = at + way[0] + way[1] + way[2];
    if (way[0] + way[2] < shortest) shortest = way[0] + way[2];
    lp_trace_request(trace, LP_LANE_LINK, &slice, &times);
    at = slice.end_ms + 0.5;
  }
  ck_assert_int_eq(lp_trace_write(trace, NULL, file, NULL), LP_OK);
  lp_trace_free(trace);
  trace_file written = read_trace();
  ck_assert_double_le(fabs(written.offset_ms - off), written.error_ms + 0.001);
  ck_assert_double_le(2 * written.error_ms, shortest + 0.001);
  expect_order(&written);
  counts found = count_events(&written, true);
  ck_assert_int_eq(found.requests, 50);
  ck_assert_int_eq(found.computed, 50);
  json_decref(written.root);
}

static json_t *clock_of(const trace_file *trace, const char *place) {
  size_t i;
  json_t *clock;
  json_array_foreach(json_object_get(json_object_get(trace->root, "otherData"), "clocks"), i, clock) {
    if (lp_streq(text(clock, "place"), place)) return clock;
  }
  ck_abort_msg("no clock of %s", place);
  return NULL;
}

/* Three places: the second asks the third after the device has asked it, so that the device's request to the third
 * begins later than the third is asked. Each worker's clock is off by an hour, one ahead and one behind. */
LP_LOOP_TEST(clocks_of_places_are_compared, 0, 2) {
  const double off[] = {0, 3600e3, _i == 0 ? -3600e3 : 3600e3};
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "011220", .places = 3});
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_ALL);
  lp_trace *trace = lp_trace_create();
  double at = lp_now_ms();
  for (int i = 0; i < 20; i++, at += 10) {
    lp_trace_slice slice = {.name = "ask", .begin_ms = at, .end_ms = at + 4, .position = i, .tokens = 1, .bytes = -1};
    lp_cloud_times times = {at + 1 + off[1], at + 1.5 + off[1], at + 3 + off[1], 1, at};
    lp_trace_request(trace, LP_LANE_LINK, &slice, &times);
    slice.begin_ms = at + 5;
    slice.end_ms = at + 8;
    times = (lp_cloud_times){at + 3.5 + off[2], at + 4 + off[2], at + 7 + off[2], 2, at};
    lp_trace_request(trace, LP_LANE_LINK, &slice, &times);
  }
  ck_assert_int_eq(lp_trace_write(trace, bundle, file, NULL), LP_OK);
  lp_trace_free(trace);
  trace_file written = read_trace();
  expect_order(&written);
  for (lp_place i = 1; i < 3; i++) {
    const json_t *clock = clock_of(&written, lp_bundle_place_name(bundle, i));
    const double error = number(clock, "clock_error_ms");
    ck_assert_double_le(fabs(number(clock, "clock_offset_ms") - off[i]), error + 0.001);
    ck_assert_double_le(error, 2.3);
  }
  json_decref(written.root);
  lp_bundle_free(bundle);
  free(path);
}

/* The trace omits a worker's times that are not numbers. */
LP_TEST(senseless_times) {
  const lp_cloud_times bad[] = {
      {NAN, 1, 2, 1, 0}, {1, 2, NAN, 1, 0}, {3, 2, 1, 1, 0}, {1, INFINITY, INFINITY, 1, 0}, {1, NAN, 2, 1, 0}};
  lp_trace *trace = lp_trace_create();
  for (size_t i = 0; i < LP_COUNT(bad); i++) {
    lp_trace_slice slice = {.name = "ask", .begin_ms = lp_now_ms(), .end_ms = lp_now_ms() + 1, .bytes = -1};
    lp_trace_request(trace, LP_LANE_LINK, &slice, &bad[i]);
  }
  ck_assert_int_eq(lp_trace_write(trace, NULL, file, NULL), LP_OK);
  lp_trace_free(trace);
  trace_file written = read_trace();
  ck_assert_int_eq(count_events(&written, true).computed, 0);
  json_decref(written.root);
}

/* The number of slices with this name, all longer than nothing. */
static int count_slices(const trace_file *trace, const char *name) {
  int count = 0;
  size_t i;
  json_t *event;
  json_array_foreach(trace->events, i, event) {
    if (!is_span(event) || !lp_streq(text(event, "name"), name)) continue;
    ck_assert_double_gt(number(event, "dur"), 0);
    count++;
  }
  return count;
}

/* A cloud that computes at once has no time of waiting, and one that only hands on has none of computing. */
LP_TEST(slices_of_no_length_are_left_out) {
  lp_trace *trace = lp_trace_create();
  const double at = lp_now_ms();
  const lp_cloud_times times[] = {{at + 1, at + 1, at + 3, 1, at}, {at + 1, at + 3, at + 3, 1, at}};
  for (size_t i = 0; i < LP_COUNT(times); i++) {
    const lp_trace_slice slice = {.name = "ask", .begin_ms = at, .end_ms = at + 4, .tokens = 1, .bytes = -1};
    lp_trace_request(trace, LP_LANE_LINK, &slice, &times[i]);
  }
  ck_assert_int_eq(lp_trace_write(trace, NULL, file, NULL), LP_OK);
  lp_trace_free(trace);
  trace_file written = read_trace();
  ck_assert_int_eq(count_slices(&written, "wait"), 1);
  ck_assert_int_eq(count_slices(&written, "compute"), 1);
  json_decref(written.root);
}
