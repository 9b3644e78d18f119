/* CUDA code compiled for this processor by the C++ compiler: see host_backend.h. */
#include "host_backend.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"

#include <stdlib.h>
#include <unistd.h>

static lp_status compile(const lp_buf *source, lp_buf *out, lp_diag *diag) {
  char folder[] = "/tmp/lp_gpu_XXXXXX", *data = NULL;
  size_t size = 0;
  lp_buf command = {0};
  if (!mkdtemp(folder)) return lp_error(diag, LP_LOC_FILE(folder), "cannot make the folder");
  char *from = lp_path_join(folder, "model.cpp"), *to = lp_path_join(folder, "model.so");
  lp_buf_printf(&command,
                LP_TEST_CXX
                " -std=c++17 -O1 -Wall -Werror -Wno-unknown-pragmas -Wno-unused-function -fno-strict-aliasing "
                "-fPIC -shared -DLP_CUDA_HOST='\"" LP_TEST_DIR "/cuda_host.h\"' %s -o %s",
                from, to);
  lp_status status = lp_file_write(from, lp_buf_text(source), source->size, diag);
  if (status == LP_OK && system(lp_buf_text(&command)) != 0)
    status = lp_error(diag, LP_LOC_FILE(from), "the C++ compiler refuses it");
  if (status == LP_OK) status = lp_file_read(to, &data, &size, diag);
  if (status == LP_OK) lp_buf_append(out, data, size);
  if (getenv("LP_KEEP"))
    fprintf(stderr, "kept: %s\n", folder);
  else
    lp_dir_abandon(folder);
  free(data);
  free(from);
  free(to);
  lp_buf_free(&command);
  return status;
}

static lp_status emit(lp_module *module, const lp_emit_options *options, lp_emit_form form, lp_buf *out,
                      lp_diag *diag) {
  lp_buf source = {0};
  lp_status status = lp_backend_find("cuda")->emit(module, options, LP_EMIT_SOURCE, &source, diag);
  if (status == LP_OK && form == LP_EMIT_SHARED)
    status = compile(&source, out, diag);
  else if (status == LP_OK)
    lp_buf_append(out, source.data, source.size);
  lp_buf_free(&source);
  return status;
}

/* The code runs on this processor, for any GPU. */
static lp_status describe(lp_module *module, const lp_emit_options *options, lp_arena *arena, lp_code *out,
                          lp_diag *diag) {
  LP_TRY(lp_backend_find("cuda")->describe(module, options, arena, out, diag));
#if defined(__x86_64__)
  out->triple = "x86_64-unknown-linux-gnu";
#else
  out->triple = "aarch64-unknown-linux-gnu";
#endif
  out->march = "baseline";
  return LP_OK;
}

lp_backend gpu_host_backend(void) {
  lp_backend backend = *lp_backend_find("cuda");
  backend.describe = describe;
  backend.emit = emit;
  backend.kernels = NULL; /* its own launches are run, not the runtime's */
  return backend;
}
