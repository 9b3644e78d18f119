/* The timeline of a session: slices of time on lanes, in the device's clock (lp_trace_write in runtime.h). */
#pragma once

#include "runtime/runtime.h"

typedef enum { LP_LANE_DEVICE, LP_LANE_UPLOAD, LP_LANE_LINK, LP_LANE_CLOUD, LP_LANE_COUNT } lp_trace_lane;

/* Times are those of lp_now_ms(). The trace omits counts below 0. */
typedef struct {
  const char *name; /* borrowed until the trace is written */
  lp_place place;   /* of a slice on the cloud's lane, the place that has it; 0: the cloud */
  double begin_ms, end_ms;
  int64_t position; /* of the first token */
  int64_t tokens, bytes;
} lp_trace_slice;
/* When the worker received a request, began to compute, and sent the answer, by its own clock. NaN in `asked_ms`:
 * unknown. */
typedef struct {
  double asked_ms, began_ms, sent_ms;
  lp_place place; /* whose worker it is; 0: the cloud's */
  /* The worker was asked after this, by the device's clock: another place may have asked it, before the slice begins.
   * 0: after the slice begins. */
  double since_ms;
} lp_cloud_times;

/* All of them may be called from any thread, and do nothing when `trace` is NULL. */
void lp_trace_put(lp_trace *trace, lp_trace_lane lane, const lp_trace_slice *slice);
/* Adds a request and its answer. `slice` is the device's: from first sent to received. `times` (NULL: unknown) adds
 * slices on the same lane and on the worker's, and bounds the difference between the two clocks: the worker received
 * the request after the device sent it, and sent the answer before the device received it. */
void lp_trace_request(lp_trace *trace, lp_trace_lane lane, const lp_trace_slice *slice, const lp_cloud_times *times);
void lp_trace_token(lp_trace *trace, double ms, const lp_generated *token);
