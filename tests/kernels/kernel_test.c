#include "kernel_test.h"

#if defined(TEST_AMX)
#include "base/amx.h"
#endif

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Under AddressSanitizer the guards also catch reads. */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

enum { GUARD = 64, MAX_THREADS = 8 };

static int failures;

void kernel_fail(const char *format, ...) {
  if (failures++ >= 40) return;
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
}

int kernel_failures(void) {
  return failures;
}

bool kernel_included(void) {
  static int64_t count;
  const char *part = getenv("LP_PART");
  return !part || (count++ % 4 == 0) == (strcmp(part, "long") == 0);
}

typedef struct {
  kernel_body *body;
  void *context;
  lp_barrier *barrier;
  int64_t thread, threads;
} task;

static void *run_task(void *arg) {
  task *t = arg;
  t->body(t->context, t->thread, t->threads, t->barrier);
  return NULL;
}

void kernel_run(kernel_body *body, void *context, int64_t threads) {
  static lp_barrier barrier;
  pthread_t handles[MAX_THREADS];
  task tasks[MAX_THREADS];
  for (int64_t i = threads - 1; i >= 0; i--) {
    tasks[i] = (task){body, context, &barrier, i, threads};
    if (i == 0)
      run_task(&tasks[0]);
    else if (pthread_create(&handles[i], NULL, run_task, &tasks[i]))
      abort();
  }
  for (int64_t i = 1; i < threads; i++)
    pthread_join(handles[i], NULL);
}

void *kernel_alloc(size_t bytes) {
  size_t padded = (bytes + 63) / 64 * 64;
  char *memory = aligned_alloc(64, padded + 2 * GUARD);
  if (!memory) abort();
  memset(memory, 0xff, padded + 2 * GUARD); /* all ones: NaN in every float type */
  memcpy(memory, &bytes, sizeof bytes);
  ASAN_POISON_MEMORY_REGION(memory + GUARD + bytes, GUARD);
  ASAN_POISON_MEMORY_REGION(memory + sizeof bytes, GUARD - sizeof bytes);
  return memory + GUARD;
}

void kernel_free(void *memory) {
  unsigned char *base = (unsigned char *)memory - GUARD;
  size_t bytes;
  memcpy(&bytes, base, sizeof bytes);
  ASAN_UNPOISON_MEMORY_REGION(base, 2 * GUARD + bytes);
  for (size_t i = sizeof bytes; i < GUARD; i++)
    EXPECT(base[i] == 0xff);
  for (size_t i = 0; i < GUARD; i++)
    EXPECT(base[GUARD + bytes + i] == 0xff);
  free(base);
}

static uint64_t state = 0x9e3779b97f4a7c15;

static uint64_t random_bits(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

float random_float(void) {
  return (float)(int32_t)(random_bits() >> 32) * 0x1p-31f;
}

int64_t random_below(int64_t end) {
  return (int64_t)((random_bits() >> 16) % (uint64_t)end);
}

float *random_floats(size_t count) {
  float *x = kernel_alloc(count * sizeof *x);
  for (size_t i = 0; i < count; i++)
    x[i] = random_float();
  return x;
}

bool near(double got, double want, double scale, double tolerance) {
  if (isnan(want) || isinf(want)) return isnan(want) ? isnan(got) : got == want;
  return fabs(got - want) <= tolerance * scale;
}

int main(void) {
  static const struct {
    const char *name;
    void (*run)(void);
  } tests[] = {
#if defined(TEST_PAIRS)
      {"linear", test_linear}, {"attention", test_attention}};
#elif defined(TEST_INTEGER)
      {"groups", test_groups}};
#else
      {"math", test_math},          {"move", test_move}, {"gather", test_gather}, {"recurrence", test_recurrence},
      {"reduce", test_reduce},      {"rows", test_rows}, {"linear", test_linear}, {"groups", test_groups},
      {"attention", test_attention}};
#endif
#if defined(TEST_AMX)
  if (!lp_amx_request()) {
    printf("skipped: the processor or the operating system gives no tiles of AMX\n");
    return 77;
  }
#endif
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    int before = failures;
    tests[i].run();
    printf("%-10s %s\n", tests[i].name, failures == before ? "ok" : "FAILED");
  }
  return failures != 0;
}
