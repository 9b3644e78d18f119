/* The wheel's ld.lld: the ELF linker of Debian's archives, which links the one object that `llmpart compile` emits. It
 * generates no code, so LLVM's targets, which a link of bitcode would need, are left out: 27 MB instead of 180. */
#include "lld/Common/Driver.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/raw_ostream.h"

extern "C" {
#define LLVM_TARGET(name)                                                                                              \
  void LLVMInitialize##name##TargetInfo() {}                                                                           \
  void LLVMInitialize##name##Target() {}                                                                               \
  void LLVMInitialize##name##TargetMC() {}
#include "llvm/Config/Targets.def"
#define LLVM_ASM_PARSER(name)                                                                                          \
  void LLVMInitialize##name##AsmParser() {}
#include "llvm/Config/AsmParsers.def"
#define LLVM_ASM_PRINTER(name)                                                                                         \
  void LLVMInitialize##name##AsmPrinter() {}
#include "llvm/Config/AsmPrinters.def"
}

/* Debian's libLLVMLTO names a plugin that none of its archives has. */
llvm::PassPluginLibraryInfo getPollyPluginInfo() { return {}; }

LLD_HAS_DRIVER(elf)

int main(int count, char **words) {
  return lld::elf::link(llvm::ArrayRef<const char *>(words, count), llvm::outs(), llvm::errs(), true, false) ? 0 : 1;
}
