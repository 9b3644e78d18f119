#include "runner.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 4096, MOST_SYMBOLS = 64 };

typedef struct {
  lp_segment_fn *segment;
  const lp_frame *frame;
  int64_t thread;
} worker;

static void *work(void *user) {
  const worker *w = user;
  w->segment(w->frame, w->thread);
  return NULL;
}

static void run_threads(lp_segment_fn *segment, const lp_frame *frame) {
  pthread_t thread[RUNNER_MOST_THREADS] = {0};
  worker workers[RUNNER_MOST_THREADS];
  for (int64_t i = 1; i < frame->threads; i++) {
    workers[i] = (worker){segment, frame, i};
    if (pthread_create(&thread[i], NULL, work, &workers[i]) != 0) abort();
  }
  segment(frame, 0);
  for (int64_t i = 1; i < frame->threads; i++)
    pthread_join(thread[i], NULL);
}

static int guard_is_whole(const unsigned char *guard) {
  for (int i = 0; i < GUARD; i++)
    if (guard[i] != 0x5a) return 0;
  return 1;
}

static int ports_fit(const runner_port *port, size_t count, const int64_t *offset, int64_t bytes) {
  for (size_t i = 0; i < count; i++)
    if (offset[port[i].buffer] < 0 || offset[port[i].buffer] + (int64_t)port[i].bytes > bytes) return 0;
  return 1;
}

int runner_execute(lp_layout_fn *layout, lp_segment_fn *segment, const runner_job *job) {
  int64_t sym[MOST_SYMBOLS], *offset = calloc((size_t)job->buffers + 1, sizeof *offset);
  memcpy(sym, job->sym, sizeof *sym * (size_t)job->sym_count);
  sym[LP_SYM_T] = job->threads;
  int64_t bytes = layout(sym, offset);
  unsigned char *memory = aligned_alloc(64, ((size_t)bytes + 2 * GUARD + 63) / 64 * 64), *arena = memory + GUARD;
  if (!memory || !ports_fit(job->in, job->in_count, offset, bytes) ||
      !ports_fit(job->out, job->out_count, offset, bytes))
    return -1;
  memset(memory, 0x5a, GUARD);
  memset(arena, 0xff, (size_t)bytes);
  memset(arena + bytes, 0x5a, GUARD);
  for (size_t i = 0; i < job->in_count; i++)
    memcpy(arena + offset[job->in[i].buffer], job->in[i].data, job->in[i].bytes);
  lp_barrier barrier = {0};
  lp_frame frame = {.sym = sym,
                    .offset = offset,
                    .arena = (char *)arena,
                    .weights = job->weights,
                    .state = job->state,
                    .barrier = &barrier,
                    .threads = job->threads};
  run_threads(segment, &frame);
  for (size_t i = 0; i < job->out_count; i++)
    memcpy(job->out[i].data, arena + offset[job->out[i].buffer], job->out[i].bytes);
  int whole = guard_is_whole(memory) && guard_is_whole(arena + bytes);
  free(memory);
  free(offset);
  return whole ? 0 : -1;
}
