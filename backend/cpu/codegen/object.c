/* The finished module: optimised, as object code or assembly, and linked into a shared object. lld links for every
 * target that LLVM compiles for. */
#include "backend/cpu/codegen/codegen.h"

#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- machine code ------------------------------------------------------------------------------------------------ */

/* Kernels are inlined and dropped before anything is optimised. Optimising a kernel by itself, without its constants,
 * would take longer than optimising all instances. */
static const char *const pipelines[] = {
    "always-inline,globaldce",
    "always-inline,globaldce,default<O1>",
    "always-inline,globaldce,default<O2>",
    "always-inline,globaldce,default<O3>",
};

lp_status cpu_optimize(cpu_codegen *gen) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(gen->llvm, pipelines[gen->opt_level], gen->machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (error) {
    char *message = LLVMGetErrorMessage(error);
    lp_status status = lp_error(gen->diag, LP_LOC_NONE, "llvm cannot run its passes: %s", message);
    LLVMDisposeErrorMessage(message);
    return status;
  }
  return gen->failed ? LP_FAILED : LP_OK;
}

lp_status cpu_emit_object(cpu_codegen *gen, bool as_text, lp_buf *out) {
  LLVMMemoryBufferRef buffer = NULL;
  char *message = NULL;
  LLVMCodeGenFileType type = as_text ? LLVMAssemblyFile : LLVMObjectFile;
  if (LLVMTargetMachineEmitToMemoryBuffer(gen->machine, gen->llvm, type, &message, &buffer)) {
    lp_status status = lp_error(gen->diag, LP_LOC_NONE, "llvm cannot emit code: %s", message);
    LLVMDisposeMessage(message);
    return status;
  }
  lp_buf_append(out, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  return gen->failed ? LP_FAILED : LP_OK;
}

/* ---- linking ----------------------------------------------------------------------------------------------------- */

extern char **environ;

/* A temporary folder for the linker's files, which is removed in every case. */
typedef struct {
  char *dir, *object, *shared;
} workspace;

static lp_status workspace_create(workspace *w, lp_diag *diag) {
  char *dir;
  LP_TRY(lp_dir_temporary("llmpart", &dir, diag));
  *w = (workspace){dir, lp_path_join(dir, "model.o"), lp_path_join(dir, "model.so")};
  return LP_OK;
}

static void workspace_free(workspace *w) {
  lp_dir_abandon(w->dir);
  free(w->object);
  free(w->shared);
  free(w->dir);
}

static lp_status spawn_linker(const workspace *w, pid_t *pid, lp_diag *diag) {
  static const char *const linkers[] = {"ld.lld-19", "ld.lld"};
  const char *args[] = {NULL,  "-shared", "--hash-style=gnu", "--build-id=none", "-z", "noexecstack", "-z",
                        "now", "-o",      w->shared,          w->object,         NULL};
  int failure = ENOENT;
  for (size_t i = 0; i < LP_COUNT(linkers) && failure == ENOENT; i++) {
    args[0] = linkers[i];
    failure = posix_spawnp(pid, linkers[i], NULL, NULL, (char *const *)(uintptr_t)args, environ);
  }
  if (failure == 0) return LP_OK;
  lp_status status = lp_error(diag, LP_LOC_FILE("ld.lld-19"), "cannot run the linker: %s", strerror(failure));
  lp_note(diag, LP_LOC_NONE, "the Debian package 'lld-19' provides it");
  return status;
}

static lp_status run_linker(const workspace *w, lp_diag *diag) {
  pid_t pid;
  int state;
  LP_TRY(spawn_linker(w, &pid, diag));
  while (waitpid(pid, &state, 0) < 0)
    if (errno != EINTR)
      return lp_error(diag, LP_LOC_FILE("ld.lld-19"), "cannot wait for the linker: %s", strerror(errno));
  if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
    return lp_error(diag, LP_LOC_FILE("ld.lld-19"), "the linker failed with status %d",
                    WIFEXITED(state) ? WEXITSTATUS(state) : -1);
  return LP_OK;
}

lp_status cpu_link_shared(const lp_buf *object, lp_buf *out, lp_diag *diag) {
  workspace w;
  LP_TRY(workspace_create(&w, diag));
  lp_status status = lp_file_write(w.object, object->data, object->size, diag);
  if (status == LP_OK) status = run_linker(&w, diag);
  if (status == LP_OK) {
    char *data;
    size_t size;
    status = lp_file_read(w.shared, &data, &size, diag);
    if (status == LP_OK) {
      lp_buf_append(out, data, size);
      free(data);
    }
  }
  workspace_free(&w);
  return status;
}
