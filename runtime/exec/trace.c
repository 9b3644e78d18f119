/* Records a timeline on the lanes of device, upload, link and cloud, and writes it in the device's clock. Of more than
 * two places, each one besides the device has a lane of its own.
 *
 * A worker's clock differs by an offset: worker = device + offset. Every request bounds it from both sides: offset
 * is at most (worker received - device sent) and at least (worker sent - device received). The bounds of all requests
 * hold at once; the trace takes the middle of the interval that remains, as NTP does. */
#include <float.h>
#include <math.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json/writer.h"
#include "runtime/exec/trace.h"
#include "runtime/runtime.h"

typedef struct {
  lp_trace_lane lane;
  lp_trace_slice slice;
  lp_place clock;                /* the place in whose clock times are that are not in the device's */
  bool begins_there, ends_there; /* the time is in that clock */
  double least_ms;               /* in the device's clock: the slice begins no earlier; 0: whenever it does */
  bool is_token;                 /* an instant rather than a slice */
  int32_t token;
} event;

typedef struct {
  double least, most; /* bounds of the offset, in ms */
} bounds;

struct lp_trace {
  pthread_mutex_t mutex;
  LP_VEC(event) events;
  bounds clock[LP_PLACES_MAX];
  double origin_ms;
};

static const char *const lane_names[LP_LANE_COUNT] = {"device", "upload", "link", "cloud"};

lp_trace *lp_trace_create(void) {
  lp_trace *trace = lp_alloc(sizeof *trace);
  pthread_mutex_init(&trace->mutex, NULL);
  for (lp_place i = 0; i < LP_PLACES_MAX; i++)
    trace->clock[i] = (bounds){-DBL_MAX, DBL_MAX};
  trace->origin_ms = lp_now_ms();
  return trace;
}

void lp_trace_free(lp_trace *trace) {
  if (!trace) return;
  pthread_mutex_destroy(&trace->mutex);
  lp_vec_free(&trace->events);
  free(trace);
}

/* ---- adding ------------------------------------------------------------------------------------------------------ */

static void add(lp_trace *trace, event what) {
  pthread_mutex_lock(&trace->mutex);
  lp_vec_push(&trace->events, what);
  pthread_mutex_unlock(&trace->mutex);
}

void lp_trace_put(lp_trace *trace, lp_trace_lane lane, const lp_trace_slice *slice) {
  if (trace) add(trace, (event){.lane = lane, .slice = *slice});
}

void lp_trace_token(lp_trace *trace, double ms, const lp_generated *token) {
  if (!trace) return;
  lp_trace_slice moment = {.name = "token", .begin_ms = ms, .end_ms = ms, .position = -1, .tokens = -1, .bytes = -1};
  add(trace, (event){.lane = LP_LANE_DEVICE, .slice = moment, .is_token = true, .token = token->token});
}

static bool is_sound(const lp_cloud_times *times) {
  return isfinite(times->asked_ms) && isfinite(times->sent_ms) && times->asked_ms <= times->began_ms &&
         times->began_ms <= times->sent_ms;
}

static lp_trace_slice part(const lp_trace_slice *whole, lp_place place, const char *name, double begin_ms,
                           double end_ms) {
  lp_trace_slice slice = *whole;
  slice.name = name;
  slice.begin_ms = begin_ms;
  slice.end_ms = end_ms;
  slice.bytes = -1;
  slice.place = place;
  return slice;
}

void lp_trace_request(lp_trace *trace, lp_trace_lane lane, const lp_trace_slice *slice, const lp_cloud_times *times) {
  if (!trace) return;
  lp_trace_put(trace, lane, slice);
  if (!times || !is_sound(times)) return;
  const lp_place place = times->place > LP_SIDE_CLOUD && times->place < LP_PLACES_MAX ? times->place : LP_SIDE_CLOUD;
  bounds *clock = &trace->clock[place];
  const double since_ms = times->since_ms > 0 ? times->since_ms : slice->begin_ms;
  pthread_mutex_lock(&trace->mutex);
  clock->most = fmin(clock->most, times->asked_ms - since_ms);
  clock->least = fmax(clock->least, times->sent_ms - slice->end_ms);
  pthread_mutex_unlock(&trace->mutex);
  event way = {.lane = lane, .clock = place, .ends_there = true, .least_ms = slice->begin_ms};
  way.slice = part(slice, place, "up", slice->begin_ms, times->asked_ms);
  add(trace, way);
  way.begins_there = true;
  way.ends_there = false;
  way.slice = part(slice, place, "down", times->sent_ms, slice->end_ms);
  add(trace, way);
  event there = {.lane = LP_LANE_CLOUD, .clock = place, .begins_there = true, .ends_there = true};
  there.slice = part(slice, place, "wait", times->asked_ms, times->began_ms);
  if (there.slice.end_ms > there.slice.begin_ms) add(trace, there);
  there.slice = part(slice, place, "compute", times->began_ms, times->sent_ms);
  if (there.slice.end_ms > there.slice.begin_ms) add(trace, there);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b) {
  const event *x = a, *y = b;
  if (x->slice.begin_ms < y->slice.begin_ms || x->slice.begin_ms > y->slice.begin_ms)
    return x->slice.begin_ms < y->slice.begin_ms ? -1 : 1;
  /* A slice comes before those that it contains. */
  return (x->slice.end_ms < y->slice.end_ms) - (x->slice.end_ms > y->slice.end_ms);
}

static void put_count(lp_json_writer *w, const char *name, int64_t value) {
  if (value >= 0) lp_json_put_integer(w, name, value);
}

/* The number of the lane in the file: those of places follow that of the cloud, which is place 1. */
static int lane_of(const event *what) {
  const lp_place place = what->lane == LP_LANE_CLOUD ? what->slice.place : 0;
  return (int)what->lane + 1 + (place > LP_SIDE_CLOUD ? place - LP_SIDE_CLOUD : 0);
}

static void put_event(lp_json_writer *w, const lp_trace *trace, const event *what) {
  const lp_trace_slice *slice = &what->slice;
  lp_json_put_flat_object(w, NULL);
  lp_json_put_text(w, "name", slice->name);
  lp_json_put_text(w, "cat", lane_names[what->lane]);
  lp_json_put_integer(w, "pid", 1);
  lp_json_put_integer(w, "tid", lane_of(what));
  lp_json_put_fixed(w, "ts", (slice->begin_ms - trace->origin_ms) * 1e3, 3);
  lp_json_put_text(w, "ph", what->is_token ? "i" : "X");
  if (what->is_token)
    lp_json_put_text(w, "s", "t");
  else
    lp_json_put_fixed(w, "dur", (slice->end_ms - slice->begin_ms) * 1e3, 3);
  lp_json_put_object(w, "args");
  put_count(w, "id", what->is_token ? what->token : -1);
  put_count(w, "position", slice->position);
  put_count(w, "tokens", slice->tokens);
  put_count(w, "bytes", slice->bytes);
  lp_json_put_end(w);
  lp_json_put_end(w);
}

/* Begins an event of kind "M" with one argument: the name under which viewers show a process or lane, or its place. */
static void begin_metadata(lp_json_writer *w, const char *name, int lane) {
  lp_json_put_flat_object(w, NULL);
  lp_json_put_text(w, "name", name);
  lp_json_put_text(w, "ph", "M");
  lp_json_put_integer(w, "pid", 1);
  if (lane > 0) lp_json_put_integer(w, "tid", lane);
  lp_json_put_object(w, "args");
}

static void end_metadata(lp_json_writer *w) {
  lp_json_put_end(w);
  lp_json_put_end(w);
}

static void put_lane(lp_json_writer *w, int lane, const char *name) {
  begin_metadata(w, "thread_name", lane);
  lp_json_put_text(w, "name", name);
  end_metadata(w);
  begin_metadata(w, "thread_sort_index", lane);
  lp_json_put_integer(w, "sort_index", lane);
  end_metadata(w);
}

/* `bundle`: whose places have lanes, if they are more than two; or NULL. */
static void put_lanes(lp_json_writer *w, const lp_bundle *bundle) {
  const lp_place count = bundle ? lp_bundle_place_count(bundle) : LP_SIDE_COUNT;
  begin_metadata(w, "process_name", 0);
  lp_json_put_text(w, "name", "llmpart run");
  end_metadata(w);
  for (int i = 0; i < LP_LANE_CLOUD; i++)
    put_lane(w, i + 1, lane_names[i]);
  for (lp_place i = LP_SIDE_CLOUD; i < count; i++)
    put_lane(w, LP_LANE_CLOUD + i, count > LP_SIDE_COUNT ? lp_bundle_place_name(bundle, i) : lane_names[LP_LANE_CLOUD]);
}

static bool is_known(const bounds *clock) {
  return clock->most < DBL_MAX && clock->least > -DBL_MAX;
}

static double offset_of(const bounds *clock) {
  return is_known(clock) ? clock->least + (clock->most - clock->least) / 2 : 0;
}

/* Converts the workers' times to the device's clock. When a clock drifts, no offset may suit all requests; a slice
 * then ends no earlier than it begins. */
static void correct(lp_trace *trace) {
  LP_FOR_VEC(event, what, &trace->events) {
    lp_trace_slice *slice = &what->slice;
    const double offset = offset_of(&trace->clock[what->clock]);
    if (what->begins_there) slice->begin_ms -= offset;
    if (what->ends_there) slice->end_ms -= offset;
    if (what->least_ms > 0) slice->begin_ms = fmax(slice->begin_ms, what->least_ms);
    slice->end_ms = fmax(slice->end_ms, slice->begin_ms);
    what->begins_there = what->ends_there = false;
  }
}

static void put_clock(lp_json_writer *w, const bounds *clock) {
  if (!is_known(clock)) return;
  lp_json_put_fixed(w, "clock_offset_ms", offset_of(clock), 6);
  lp_json_put_fixed(w, "clock_error_ms", fabs(clock->most - clock->least) / 2, 6);
}

/* The clocks of two sides, or that of each place. */
static void put_clocks(lp_json_writer *w, const lp_trace *trace, const lp_bundle *bundle) {
  const lp_place count = bundle ? lp_bundle_place_count(bundle) : LP_SIDE_COUNT;
  if (count <= LP_SIDE_COUNT) {
    put_clock(w, &trace->clock[LP_SIDE_CLOUD]);
    return;
  }
  lp_json_put_array(w, "clocks");
  for (lp_place i = LP_SIDE_CLOUD; i < count; i++) {
    if (!is_known(&trace->clock[i])) continue;
    lp_json_put_flat_object(w, NULL);
    lp_json_put_text(w, "place", lp_bundle_place_name(bundle, i));
    put_clock(w, &trace->clock[i]);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

lp_status lp_trace_write(lp_trace *trace, const lp_bundle *bundle, const char *path, lp_diag *diag) {
  lp_writer *writer = NULL;
  LP_TRY(lp_writer_open(path, &writer, diag));
  correct(trace);
  qsort(trace->events.data, trace->events.count, sizeof *trace->events.data, by_time);
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_json_writer w = lp_json_writer_begin(&text, (lp_json_style){.indent = 1});
  lp_json_put_object(&w, NULL);
  lp_json_put_text(&w, "displayTimeUnit", "ms");
  lp_json_put_flat_object(&w, "otherData");
  lp_json_put_text(&w, "schema", "llmpart.trace/1");
  put_clocks(&w, trace, bundle);
  lp_json_put_end(&w);
  lp_json_put_array(&w, "traceEvents");
  put_lanes(&w, bundle);
  for (size_t i = 0; i < trace->events.count; i++)
    put_event(&w, trace, &trace->events.data[i]);
  lp_json_put_end(&w);
  lp_json_put_end(&w);
  lp_buf_puts(&text, "\n");
  lp_writer_put(writer, text.data, text.size);
  return lp_writer_commit(writer, diag);
}
