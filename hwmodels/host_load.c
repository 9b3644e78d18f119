/* Measures the rate at which weights come from storage: of a file that is not in the page cache, mapped and read from
 * its begin to its end with its checksum, as the runtime loads weights. */
#include "base/clock.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/number.h"
#include "hwmodels/hwmodels.h"

#include <fcntl.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, CHUNKS = 64, RUNS = 5 };

/* Its bytes differ, because a file system may store equal blocks once or not at all. */
static bool write_file(int fd) {
  uint32_t *chunk = lp_alloc(CHUNK), state = 1;
  bool written = true;
  for (int i = 0; i < CHUNKS && written; i++) {
    for (size_t at = 0; at < CHUNK / sizeof *chunk; at++)
      chunk[at] = state = state * 1664525u + 1013904223u;
    written = write(fd, chunk, CHUNK) == CHUNK;
  }
  free(chunk);
  return written && fsync(fd) == 0;
}

/* Returns the time of one load; 0: the file cannot be read. */
static double load_once(const char *path, int fd) {
  lp_mapping mapping;
  volatile uint32_t crc = 0;
  (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* a hint: without effect the rate is that of memory */
  double begin = lp_now_ms();
  if (lp_file_map(path, &mapping, NULL) != LP_OK) return 0;
  for (size_t at = 0; at < mapping.size; at += CHUNK)
    crc = lp_crc32c(crc, mapping.data + at, CHUNK);
  lp_file_unmap(&mapping);
  return lp_now_ms() - begin;
}

double lp_hw_measure_load(const char *path) {
  lp_buf name = {0};
  double ms[RUNS] = {0};
  lp_buf_printf(&name, "%s.%ld.load", path, (long)getpid());
  int fd = open(lp_buf_text(&name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0 && write_file(fd))
    for (int i = 0; i < RUNS; i++)
      ms[i] = load_once(lp_buf_text(&name), fd);
  if (fd >= 0) close(fd);
  if (fd >= 0) (void)unlink(lp_buf_text(&name));
  lp_buf_free(&name);
  qsort(ms, RUNS, sizeof *ms, lp_compare_doubles);
  return ms[RUNS / 2] > 0 ? lp_hw_rounded((double)CHUNK * (double)CHUNKS / (1e-3 * ms[RUNS / 2])) : 0;
}
