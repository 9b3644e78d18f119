/* Running on this processor: the shared object is opened and called. */
#include "base/file.h"
#include "harness.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* POSIX makes a function's address an object's; ISO C has no cast for it. */
#define SYMBOL(handle, type, name) (*(type **)&(void *){dlsym((handle), (name))})

const char *harness_weights(harness *h, const lp_backend *backend, const lp_emit_options *options, lp_buf *file) {
  char *path = harness_temporary(".safetensors"), *data = NULL;
  size_t size = 0;
  lp_writer *writer = NULL;
  ck_assert_int_eq(lp_writer_open(path, &writer, h->diag), LP_OK);
  const lp_status status = backend->write_weights(h->module, options, writer, h->diag);
  if (lp_writer_end(writer, status, h->diag) != LP_OK || lp_file_read(path, &data, &size, h->diag) != LP_OK)
    harness_fail(h, "cannot write the weights");
  unlink(path);
  free(path);
  uint64_t header;
  memcpy(&header, data, sizeof header);
  ck_assert_uint_eq((header + 8) % 64, 0);
  size_t bytes = size - 8 - header;
  file->data = aligned_alloc(64, (bytes + 64) / 64 * 64); /* no slack, so that ASan finds stray accesses */
  memcpy(file->data, data + 8 + header, bytes);
  file->size = bytes;
  free(data);
  return file->data;
}

static void *emit_code(harness *h, const lp_backend *backend, const lp_emit_options *options) {
  lp_buf code = {0};
  if (backend->emit(h->module, options, LP_EMIT_SHARED, &code, h->diag) != LP_OK) harness_fail(h, "cannot emit");
  char *path = harness_temporary(".so");
  if (lp_file_write(path, code.data, code.size, h->diag) != LP_OK) harness_fail(h, "cannot write the code");
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) ck_abort_msg("%s", dlerror());
  unlink(path);
  free(path);
  lp_buf_free(&code);
  return handle;
}

static void *open_code(harness *h, const lp_backend *backend, const lp_emit_options *options) {
  static struct {
    uint64_t key;
    void *handle;
  } known[8];
  static size_t next;
  uint64_t key = harness_code_key(h, backend, options);
  for (size_t i = 0; i < LP_COUNT(known); i++)
    if (known[i].handle && known[i].key == key) return known[i].handle;
  size_t at = next++ % LP_COUNT(known);
  if (known[at].handle) dlclose(known[at].handle);
  known[at].handle = emit_code(h, backend, options);
  known[at].key = key;
  return known[at].handle;
}

void harness_run_native(harness *h, const lp_backend *backend, const lp_emit_options *options, runner_job *job) {
  void *code = open_code(h, backend, options);
  const uint32_t *abi = dlsym(code, "lp_abi");
  ck_assert_ptr_nonnull(abi);
  ck_assert_uint_eq(*abi, LP_ABI_VERSION);
  lp_layout_fn *layout = SYMBOL(code, lp_layout_fn, "lp_layout_0");
  lp_segment_fn *segment = SYMBOL(code, lp_segment_fn, "lp_segment_0");
  ck_assert(layout && segment);
  lp_buf file = {0};
  void *state[64];
  for (int32_t i = 0; i < h->state_count; i++)
    state[i] = h->state[i].data;
  job->state = state;
  job->weights = harness_weights(h, backend, options, &file);
  ck_assert_msg(runner_execute(layout, segment, job) == 0, "memory outside of the arena was written");
  free(file.data);
}
