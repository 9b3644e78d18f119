/* Runs one object for another processor under an emulator: linked statically with lp_layout_0 and lp_segment_0, reads a
 * job from one file and writes the results to another (harness_foreign.c writes and reads them). */
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>

extern lp_layout_fn lp_layout_0;
extern lp_segment_fn lp_segment_0;

static FILE *job_file;

static int64_t number(void) {
  int64_t value;
  if (fread(&value, sizeof value, 1, job_file) != 1) exit(2);
  return value;
}

/* A number of things or bytes. */
static size_t count(void) {
  int64_t value = number();
  if (value < 0 || value > 1 << 30) exit(2);
  return (size_t)value;
}

static void *bytes(size_t size) {
  void *data = aligned_alloc(64, (size + 64) / 64 * 64);
  if (!data || (size > 0 && fread(data, size, 1, job_file) != 1)) exit(2);
  return data;
}

static runner_port *ports(size_t most, int with_data) {
  runner_port *port = calloc(most + 1, sizeof *port);
  for (size_t i = 0; port && i < most; i++) {
    port[i].buffer = number();
    port[i].bytes = count();
    port[i].data = with_data ? bytes(port[i].bytes) : calloc(port[i].bytes + 1, 1);
  }
  return port;
}

int main(int argc, char **argv) {
  if (argc != 3 || !(job_file = fopen(argv[1], "rb"))) return 2;
  runner_job job = {.sym_count = number()};
  job.sym = bytes(sizeof(int64_t) * (size_t)job.sym_count);
  job.threads = number();
  job.buffers = number();
  job.weights = bytes(count());
  size_t states = count(), *size = calloc(states + 1, sizeof *size);
  void **state = calloc(states + 1, sizeof *state);
  for (size_t i = 0; i < states; i++) {
    size[i] = count();
    state[i] = bytes(size[i]);
  }
  job.state = state;
  job.in_count = count();
  job.in = ports(job.in_count, 1);
  job.out_count = count();
  job.out = ports(job.out_count, 0);
  if (runner_execute(lp_layout_0, lp_segment_0, &job) != 0) return 3;
  FILE *out = fopen(argv[2], "wb");
  for (size_t i = 0; out && i < job.out_count; i++)
    fwrite(job.out[i].data, 1, job.out[i].bytes, out);
  for (size_t i = 0; out && i < states; i++)
    fwrite(state[i], 1, size[i], out);
  free(size);
  return out && fclose(out) == 0 ? 0 : 2;
}
