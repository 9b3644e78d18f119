/* Measures the bandwidth of reading memory in sequence, which bounds decoding: each byte of the weights is read once
 * for each token.
 *
 *     bench_read_dram [THREADS [MIB]]
 *
 * Each thread reads its part of a buffer of 2048 MiB, which must be much larger than the last cache, five times. Prints
 * the median in GB/s. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

enum { RUNS = 5, MOST_THREADS = 256, LINE = 64, LINES = 8 };

static const char *memory;
static size_t part; /* bytes of a thread */
static uint64_t found[MOST_THREADS];

/* One load fetches a line. Several sums, so that loads do not wait for each other. */
static void *read_part(void *user) {
  uint64_t *out = user, sum[LINES] = {0};
  const char *at = memory + (size_t)(out - found) * part;
  for (size_t i = 0; i < part; i += LINES * LINE)
    for (size_t j = 0; j < LINES; j++)
      sum[j] |= *(const uint64_t *)(const void *)(at + i + j * LINE);
  for (size_t j = 0; j < LINES; j++)
    *out |= sum[j];
  return NULL;
}

static double read_ms(int threads) {
  pthread_t thread[MOST_THREADS];
  const double begin = lp_now_ms();
  for (int i = 1; i < threads; i++)
    if (pthread_create(&thread[i], NULL, read_part, &found[i]) != 0) abort();
  read_part(&found[0]);
  for (int i = 1; i < threads; i++)
    pthread_join(thread[i], NULL);
  return lp_now_ms() - begin;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 1;
  const int mib = argc > 2 ? atoi(argv[2]) : 2048;
  if (threads < 1 || threads > MOST_THREADS || mib < threads) return 2;
  part = ((size_t)mib << 20) / (size_t)threads / (LINES * LINE) * (LINES * LINE);
  void *mapped = mmap(NULL, (size_t)mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return 1;
  (void)madvise(mapped, (size_t)mib << 20, MADV_HUGEPAGE);
  memset(mapped, 1, (size_t)mib << 20);
  memory = mapped;
  double ms[RUNS];
  for (int i = 0; i < RUNS; i++)
    ms[i] = read_ms(threads);
  qsort(ms, RUNS, sizeof *ms, by_size);
  printf("%.2f\n", (double)part * threads / ms[RUNS / 2] * 1e-6);
  return found[0] == 0;
}
