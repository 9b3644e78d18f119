/* From the generated module to object code, assembly or IR text. */
#include "backend/cpu/codegen.h"

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/Transforms/PassBuilder.h>

/* Kernels are inlined and what is left of them is dropped before anything is optimised: a kernel on its own, its
 * constants unknown, would cost more than all instances together. */
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
