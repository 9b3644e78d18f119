/* Running for another processor: the object is linked with driver.c by a cross compiler and run under qemu. */
#include "base/file.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMPILER "aarch64-linux-gnu-gcc"
#define EMULATOR "qemu-aarch64"

static bool tools_are_there(void) {
  static int known = -1;
  if (known < 0) {
    known = system("command -v " COMPILER " >/dev/null && command -v " EMULATOR " >/dev/null") == 0;
    if (!known) fprintf(stderr, "note: " COMPILER " or " EMULATOR " is missing: aarch64 is not tested\n");
  }
  return known == 1;
}

static void put_number(lp_buf *out, int64_t number) {
  lp_buf_append(out, &number, sizeof number);
}

/* Writes the job in the order in which driver.c reads it. */
static void write_job(harness *h, const runner_job *job, const lp_buf *weights, const char *path) {
  lp_buf out = {0};
  put_number(&out, job->sym_count);
  lp_buf_append(&out, job->sym, sizeof *job->sym * (size_t)job->sym_count);
  put_number(&out, job->threads);
  put_number(&out, job->buffers);
  put_number(&out, (int64_t)weights->size);
  lp_buf_append(&out, weights->data, weights->size);
  put_number(&out, h->state_count);
  for (int32_t i = 0; i < h->state_count; i++) {
    put_number(&out, h->state[i].bytes);
    lp_buf_append(&out, h->state[i].data, (size_t)h->state[i].bytes);
  }
  put_number(&out, (int64_t)job->in_count);
  for (size_t i = 0; i < job->in_count; i++) {
    put_number(&out, job->in[i].buffer);
    put_number(&out, (int64_t)job->in[i].bytes);
    lp_buf_append(&out, job->in[i].data, job->in[i].bytes);
  }
  put_number(&out, (int64_t)job->out_count);
  for (size_t i = 0; i < job->out_count; i++) {
    put_number(&out, job->out[i].buffer);
    put_number(&out, (int64_t)job->out[i].bytes);
  }
  if (lp_file_write(path, out.data, out.size, h->diag) != LP_OK) harness_fail(h, "cannot write the job");
  lp_buf_free(&out);
}

static void read_results(harness *h, const runner_job *job, const char *path) {
  char *data;
  size_t size, at = 0;
  if (lp_file_read(path, &data, &size, h->diag) != LP_OK) harness_fail(h, "cannot read the results");
  for (size_t i = 0; i < job->out_count; at += job->out[i++].bytes)
    memcpy(job->out[i].data, data + at, job->out[i].bytes);
  for (int32_t i = 0; i < h->state_count; at += (size_t)h->state[i++].bytes)
    memcpy(h->state[i].data, data + at, (size_t)h->state[i].bytes);
  ck_assert_uint_eq(at, size);
  free(data);
}

static void run(const lp_buf *command) {
  ck_assert_msg(system(lp_buf_text(command)) == 0, "failed: %s", lp_buf_text(command));
}

static char *program; /* the one made last */

static void remove_program(void) {
  unlink(program);
}

/* The program for the module, which is made again unless the last one was for the same module. */
static const char *program_for(harness *h, const lp_backend *backend, const lp_emit_options *options) {
  static uint64_t known;
  uint64_t key = harness_code_key(h, backend, options);
  if (program && key == known) return program;
  if (!program) {
    program = harness_temporary(".exe");
    atexit(remove_program);
  }
  known = key;
  char *object = harness_temporary(".o");
  lp_buf code = {0}, command = {0};
  if (backend->emit(h->module, options, LP_EMIT_OBJECT, &code, h->diag) != LP_OK ||
      lp_file_write(object, code.data, code.size, h->diag) != LP_OK)
    harness_fail(h, "cannot emit");
  lp_buf_printf(&command,
                COMPILER " -std=c17 -D_GNU_SOURCE -O1 -static -I" LP_TEST_DIR "/../.. -o %s " LP_TEST_DIR
                         "/driver.c " LP_TEST_DIR "/runner.c %s -pthread",
                program, object);
  run(&command);
  unlink(object);
  free(object);
  lp_buf_free(&code);
  lp_buf_free(&command);
  return program;
}

bool harness_run_foreign(harness *h, const lp_backend *backend, const lp_emit_options *options, runner_job *job) {
  if (!tools_are_there()) return false;
  const char *runs = program_for(h, backend, options);
  char *in = harness_temporary(".job"), *results = harness_temporary(".out");
  lp_buf weights = {0}, command = {0};
  harness_weights(h, backend, options, &weights);
  write_job(h, job, &weights, in);
  lp_buf_printf(&command, EMULATOR " %s %s %s", runs, in, results);
  run(&command);
  read_results(h, job, results);
  unlink(in);
  unlink(results);
  free(in);
  free(results);
  lp_buf_free(&command);
  free(weights.data);
  return true;
}
