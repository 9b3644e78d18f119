/* The LLVM module of a side: its context, the linked kernels, and the functions that the runtime calls. */
#include "backend/cpu/codegen/codegen.h"

#include "backend/cpu/kernels/kernels_bitcode.h"
#include "backend/program.h"
#include "base/abi.h"
#include "base/map.h"

#include <assert.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/Core.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>

/* The first error of LLVM becomes the diagnostic, the others become its notes. */
static void on_llvm_diagnostic(LLVMDiagnosticInfoRef info, void *user) {
  cpu_codegen *gen = user;
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError) return;
  char *text = LLVMGetDiagInfoDescription(info);
  if (gen->failed)
    lp_note(gen->diag, LP_LOC_NONE, "%s", text);
  else if (lp_error(gen->diag, LP_LOC_NONE, "llvm: %s", text) != LP_OK)
    gen->failed = true;
  LLVMDisposeMessage(text);
}

static lp_status create_machine(cpu_codegen *gen) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser(); /* kernels hold inline assembly */
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
  LLVMInitializeAArch64AsmParser();
  const cpu_target *target = gen->target;
  static const LLVMCodeGenOptLevel levels[] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess, LLVMCodeGenLevelDefault,
                                               LLVMCodeGenLevelAggressive};
  LLVMTargetRef ref;
  char *message = NULL;
  if (LLVMGetTargetFromTriple(target->triple, &ref, &message)) {
    lp_status status = lp_error(gen->diag, LP_LOC_NONE, "llvm has no target '%s': %s", target->triple, message);
    LLVMDisposeMessage(message);
    return status;
  }
  gen->machine = LLVMCreateTargetMachine(ref, target->triple, target->cpu, target->features, levels[gen->opt_level],
                                         LLVMRelocPIC, LLVMCodeModelDefault);
  return LP_OK;
}

static lp_status read_kernels(cpu_codegen *gen, LLVMModuleRef *out) {
  const bool arm = gen->target->aarch64;
  const unsigned char *data = arm ? lp_kernels_aarch64 : lp_kernels_x86_64;
  size_t size = arm ? lp_kernels_aarch64_size : lp_kernels_x86_64_size;
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy((const char *)data, size, "kernels");
  LLVMBool failed = LLVMParseBitcodeInContext2(gen->context, buffer, out);
  LLVMDisposeMemoryBuffer(buffer);
  if (failed) return gen->failed ? LP_FAILED : lp_error(gen->diag, LP_LOC_NONE, "the kernels' bitcode does not load");
  return LP_OK;
}

/* Kernels and generated code must agree on triple and layout before they are linked. */
static void set_target(const cpu_codegen *gen, LLVMModuleRef module) {
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(gen->machine);
  LLVMSetModuleDataLayout(module, layout);
  LLVMDisposeTargetData(layout);
  LLVMSetTarget(module, gen->target->triple);
}

static void set_types(cpu_codegen *gen) {
  LLVMContextRef c = gen->context;
  gen->types = (cpu_types){.void_ = LLVMVoidTypeInContext(c),
                           .i1 = LLVMInt1TypeInContext(c),
                           .i8 = LLVMInt8TypeInContext(c),
                           .i16 = LLVMInt16TypeInContext(c),
                           .i32 = LLVMInt32TypeInContext(c),
                           .i64 = LLVMInt64TypeInContext(c),
                           .f16 = LLVMHalfTypeInContext(c),
                           .f32 = LLVMFloatTypeInContext(c),
                           .f64 = LLVMDoubleTypeInContext(c),
                           .ptr = LLVMPointerTypeInContext(c, 0)};
}

static void put_attribute(const cpu_codegen *gen, LLVMValueRef function, const char *name, const char *value) {
  LLVMAttributeRef attribute =
      LLVMCreateStringAttribute(gen->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

/* Gives all functions one target, in place of the one that the kernels were compiled for, so that kernels are inlined
 * and vectorised. */
static void set_attributes(const cpu_codegen *gen, LLVMValueRef function) {
  static const char *const stale[] = {"target-cpu", "target-features", "tune-cpu", "min-legal-vector-width",
                                      "prefer-vector-width"};
  for (size_t i = 0; i < LP_COUNT(stale); i++)
    LLVMRemoveStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, stale[i],
                                     (unsigned)strlen(stale[i]));
  put_attribute(gen, function, "target-cpu", gen->target->cpu);
  put_attribute(gen, function, "target-features", gen->target->features);
  if (!gen->target->wide) return;
  put_attribute(gen, function, "prefer-vector-width", gen->target->wide);
  put_attribute(gen, function, "stackrealign", ""); /* otherwise each spilled vector lies in two cache lines */
}

static bool is_exported(const char *name) {
  return lp_streq(name, "lp_abi") || lp_streq(name, "lp_sequences") || lp_has_prefix(name, "lp_layout_") ||
         lp_has_prefix(name, "lp_segment_");
}

/* Makes everything but the interface internal, so that LLVM drops functions that are not called before it optimises. */
static void finish_functions(const cpu_codegen *gen) {
  for (LLVMValueRef f = LLVMGetFirstFunction(gen->llvm); f; f = LLVMGetNextFunction(f)) {
    if (LLVMIsDeclaration(f)) continue;
    size_t length;
    if (!is_exported(LLVMGetValueName2(f, &length))) LLVMSetLinkage(f, LLVMInternalLinkage);
    set_attributes(gen, f);
  }
}

/* The one copy of the barrier that segments call. */
static void emit_wait(cpu_codegen *gen) {
  LLVMValueRef kernel = LLVMGetNamedFunction(gen->llvm, "lpk_barrier");
  assert(kernel && "the bitcode holds the barrier");
  LLVMTypeRef type = LLVMGlobalGetValueType(kernel);
  gen->wait = LLVMAddFunction(gen->llvm, "wait", type);
  cpu_function_flags(gen, gen->wait, true);
  LLVMBuilderRef b = LLVMCreateBuilderInContext(gen->context);
  LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(gen->context, gen->wait, "entry"));
  LLVMValueRef args[] = {LLVMGetParam(gen->wait, 0), LLVMGetParam(gen->wait, 1)};
  LLVMBuildCall2(b, type, kernel, args, 2, "");
  LLVMBuildRetVoid(b);
  LLVMDisposeBuilder(b);
}

static void emit_number(const cpu_codegen *gen, const char *name, uint32_t value) {
  LLVMValueRef number = LLVMAddGlobal(gen->llvm, gen->types.i32, name);
  LLVMSetInitializer(number, LLVMConstInt(gen->types.i32, value, 0));
  LLVMSetGlobalConstant(number, 1);
}

static void emit_text(const cpu_codegen *gen, const char *name, const char *text) {
  LLVMValueRef value = LLVMConstStringInContext(gen->context, text, (unsigned)strlen(text), 0);
  LLVMValueRef global = LLVMAddGlobal(gen->llvm, LLVMTypeOf(value), name);
  LLVMSetInitializer(global, value);
  LLVMSetGlobalConstant(global, 1);
}

void cpu_code_name(cpu_code *code) {
  const lp_program_keys keys = {.layout = cpu_layout_key, .segment = cpu_segment_key, .user = code};
  lp_programs_name(&code->programs, &keys);
}

lp_status cpu_codegen_create(cpu_code *code, const cpu_target *target, int opt_level, lp_diag *diag,
                             cpu_codegen **out) {
  cpu_codegen *gen = LP_NEW(code->arena, cpu_codegen);
  *gen = (cpu_codegen){.code = code, .target = target, .arena = code->arena, .diag = diag};
  gen->opt_level = opt_level < 0 ? 0 : opt_level > 3 ? 3 : opt_level;
  gen->context = LLVMContextCreate();
  LLVMContextSetDiagnosticHandler(gen->context, on_llvm_diagnostic, gen);
  set_types(gen);
  gen->instances = lp_map_create();
  LLVMModuleRef kernels;
  lp_status status = create_machine(gen);
  if (status == LP_OK) status = read_kernels(gen, &kernels);
  if (status != LP_OK) {
    cpu_codegen_free(gen);
    return status;
  }
  gen->llvm =
      LLVMModuleCreateWithNameInContext(lp_module_place_name(code->programs.module, code->programs.side), gen->context);
  set_target(gen, gen->llvm);
  set_target(gen, kernels);
  if (LLVMLinkModules2(gen->llvm, kernels)) {
    status = gen->failed ? LP_FAILED : lp_error(diag, LP_LOC_NONE, "the kernels' bitcode does not link");
    cpu_codegen_free(gen);
    return status;
  }
  *out = gen;
  return LP_OK;
}

void cpu_codegen_free(cpu_codegen *gen) {
  if (!gen) return;
  lp_map_free(gen->instances);
  if (gen->llvm) LLVMDisposeModule(gen->llvm);
  if (gen->machine) LLVMDisposeTargetMachine(gen->machine);
  LLVMContextDispose(gen->context);
}

lp_status cpu_codegen_run(cpu_codegen *gen) {
  const lp_side_programs *programs = &gen->code->programs;
  emit_number(gen, "lp_abi", LP_ABI_VERSION);
  emit_number(gen, "lp_sequences", 1);
  if (gen->code->contract)
    emit_text(gen, "lp_contract", lp_arena_format(gen->arena, LP_CONTRACT_MARK "%s", gen->code->contract));
  emit_wait(gen);
  LP_FOR_VEC_REFS(lp_side_program, program, &programs->list) {
    if (!LLVMGetNamedFunction(gen->llvm, program->layout)) cpu_layout_emit(gen, program);
    for (size_t k = 0; k < program->segments.count; k++)
      if (!LLVMGetNamedFunction(gen->llvm, program->segments.data[k]->symbol))
        cpu_segment_emit(gen, program, program->segments.data[k]);
  }
  finish_functions(gen);
  char *message = NULL;
  LLVMBool broken = LLVMVerifyModule(gen->llvm, LLVMReturnStatusAction, &message);
  lp_status status = LP_OK;
  if (broken) status = lp_error(gen->diag, LP_LOC_NONE, "internal: the generated code is malformed: %s", message);
  LLVMDisposeMessage(message);
  return gen->failed ? LP_FAILED : status;
}
