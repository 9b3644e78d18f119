/* Records what each part of a generation did, and when. */
#ifndef LP_TRACE_H
#define LP_TRACE_H

#include "runtime/runtime.h"

typedef enum { LP_LANE_DEVICE, LP_LANE_UPLOAD, LP_LANE_LINK, LP_LANE_CLOUD, LP_LANE_COUNT } lp_trace_lane;

/* Times are lp_now_ms(). `position` is that of the first token; counts below 0 are left out. */
typedef struct {
  const char *name; /* not copied */
  double begin_ms, end_ms;
  int64_t position, tokens, bytes;
} lp_trace_span;
/* By the worker's clock. */
typedef struct {
  double asked_ms, began_ms, sent_ms;
} lp_cloud_times;

/* Without a trace (NULL) they do nothing. */
void lp_trace_put(lp_trace *trace, lp_trace_lane lane, const lp_trace_span *span);
/* A request and its answer: the span is the device's, first sent to received. What the worker says of it is put there and on the cloud's
 * lane, and bounds how far its clock is from the device's: what it was asked came after it was sent, its answer before it was
 * received. `times` NULL: it says nothing. */
void lp_trace_request(lp_trace *trace, lp_trace_lane lane, const lp_trace_span *span, const lp_cloud_times *times);
void lp_trace_token(lp_trace *trace, double ms, const lp_generated *token);

struct Lp__Wire__Times;
/* NULL for NULL. */
const lp_cloud_times *lp_cloud_times_of(const struct Lp__Wire__Times *times, lp_cloud_times *out);

#endif
