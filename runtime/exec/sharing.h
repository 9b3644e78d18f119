/* Decides which segments the threads of a pool run together, and how long the caller waits for them (pool.c). On a busy
 * machine a thread may wait for a core a hundred times longer than a segment takes, and the others wait for it at each
 * barrier. So the caller never gives work to a worker that has not shown that it has a core. Pure: all times are
 * arguments, in ms on one clock. Private to exec/ and its tests. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* An attempt that did not pay is not repeated for `share` times what it lost. `share` doubles with each loss and halves
 * with each gain, within bounds. So one loss costs little, and where every attempt loses, the attempts take a small,
 * constant part of the time. Starts as zeros. */
typedef struct {
  double until_ms, share;
} lp_pause;
typedef struct {
  double least, most;
} lp_pause_bounds;
void lp_pause_lose(lp_pause *pause, lp_pause_bounds bounds, double now_ms, double lost_ms);
void lp_pause_gain(lp_pause *pause);

/* What is known of a segment over a number of rows with the same logarithm to the base 2. */
typedef struct {
  uintptr_t segment; /* 0: the entry is free */
  int32_t size;
  int32_t alone;   /* runs by the caller alone that were measured, at most 2 */
  bool waited;     /* the threads of the last clocked run spent much time on waiting */
  double row_ms;   /* time of the caller alone for a row, an average; 0: unknown */
  lp_pause slower; /* after runs together that took a little longer */
} lp_segment_time;

enum { LP_SEGMENT_TIMES = 64 };
/* Starts as zeros, but for `crew`: the workers for which there are cores. */
typedef struct {
  bool always;     /* all workers are invited to every segment */
  int32_t crew;    /* workers that came when last invited, or half as many if they lost time */
  lp_pause busy;   /* after runs together that took much longer: some thread lost its core */
  lp_pause absent; /* after workers that did not come */
  double woken_ms; /* when workers were woken that nothing has been seen of since; 0: none */
  lp_segment_time time[LP_SEGMENT_TIMES];
} lp_sharing;

typedef struct {
  uintptr_t segment;
  int64_t rows;
  int64_t bytes; /* of weights that it reads at most, for a first guess of its time; 0: unknown */
} lp_segment_work;

/* The workers of the pool. */
typedef struct {
  int32_t all;   /* that may take part */
  int32_t ready; /* awake, and have run since they woke */
  int32_t asleep;
} lp_workers;

/* One run of a segment. */
typedef struct {
  lp_segment_time *time;
  int64_t rows;
  int32_t all;               /* workers */
  double begin_ms, alone_ms; /* `alone_ms`: what the caller alone is expected to take */
  int32_t wake;              /* sleeping workers to wake */
  int32_t invite;            /* workers to wait for, 0: the caller runs the segment alone */
  double patience_ms;        /* how long the caller waits for them */
  bool clocked;              /* the time of the caller alone is not measured: take the threads' processor time */
} lp_turn;

lp_turn lp_sharing_begin(lp_sharing *sharing, const lp_segment_work *work, lp_workers workers, double now_ms);
/* `came` workers of those invited take part; the caller now begins. */
void lp_sharing_count(lp_sharing *sharing, const lp_turn *turn, int32_t came, double now_ms);
/* The caller alone has run the segment, which took `ms`, without the time for waking and waiting before it. */
void lp_sharing_end_alone(const lp_turn *turn, double ms);

/* A run of several threads. */
typedef struct {
  int32_t threads;
  double computed_ms; /* if the turn is clocked: processor time of all threads, without polling at barriers */
  int64_t waits;      /* and how often the caller waited for others for more than about 50 us */
} lp_threads_time;
void lp_sharing_end_together(lp_sharing *sharing, const lp_turn *turn, lp_threads_time all, double now_ms);
