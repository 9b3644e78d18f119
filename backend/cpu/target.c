/* Maps --march to the parameters of LLVM and the kernels: one row per processor. */
#include "backend/cpu/target.h"

#include "backend/cpu/constants/constants.h"
#include "backend/cpu/kernels/kernels.h"
#include "base/amx.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

typedef enum { X86_NONE, X86_V3, X86_V4, ARM_V8 } family;

typedef struct {
  const char *march, *cpu, *features;
  family family;
} processor;

/* Every row names the features that the kernels assume, those of the level "x86-64-v3", so that a row for a processor
 * never has fewer. */
#define V3 "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,+popcnt"
#define V4 V3 ",+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"
#define VNNI ",+avx512vnni"
#define AVX_VNNI ",+avxvnni"
#define BF16 ",+avx512bf16"
#define AMX ",+amx-tile,+amx-int8,+amx-bf16"
#define ARM_BF16 ",+dotprod,+bf16,+i8mm"

static const processor processors[] = {
    {"x86-64-v2", NULL, NULL, X86_NONE},
    {"x86-64", NULL, NULL, X86_NONE},
    {"x86-64-v3", "x86-64-v3", V3, X86_V3},
    {"x86-64-v4", "x86-64-v4", V4, X86_V4},
    {"haswell", "haswell", V3, X86_V3},
    {"broadwell", "broadwell", V3, X86_V3},
    {"skylake", "skylake", V3, X86_V3},
    {"alderlake", "alderlake", V3 AVX_VNNI, X86_V3},
    {"raptorlake", "raptorlake", V3 AVX_VNNI, X86_V3},
    {"meteorlake", "meteorlake", V3 AVX_VNNI, X86_V3},
    {"znver1", "znver1", V3, X86_V3},
    {"znver2", "znver2", V3, X86_V3},
    {"znver3", "znver3", V3, X86_V3},
    {"skylake-avx512", "skylake-avx512", V4, X86_V4},
    {"cascadelake", "cascadelake", V4 VNNI, X86_V4},
    {"cooperlake", "cooperlake", V4 VNNI BF16, X86_V4},
    {"icelake-client", "icelake-client", V4 VNNI, X86_V4},
    {"icelake-server", "icelake-server", V4 VNNI, X86_V4},
    {"tigerlake", "tigerlake", V4 VNNI, X86_V4},
    {"rocketlake", "rocketlake", V4 VNNI, X86_V4},
    {"sapphirerapids", "sapphirerapids", V4 VNNI BF16 AMX, X86_V4},
    {"emeraldrapids", "emeraldrapids", V4 VNNI BF16 AMX, X86_V4},
    {"graniterapids", "graniterapids", V4 VNNI BF16 AMX, X86_V4},
    {"znver4", "znver4", V4 VNNI BF16, X86_V4},
    {"znver5", "znver5", V4 VNNI BF16, X86_V4},
    {"aarch64", "generic", "+neon", ARM_V8},
    {"armv8-a", "generic", "+v8a,+neon", ARM_V8},
    {"armv8.2-a", "generic", "+v8.2a,+neon,+fullfp16,+dotprod", ARM_V8},
    {"armv9-a", "generic", "+v9a,+neon,+dotprod", ARM_V8},
    {"cortex-a53", "cortex-a53", "+neon", ARM_V8},
    {"cortex-a55", "cortex-a55", "+neon,+dotprod", ARM_V8},
    {"cortex-a57", "cortex-a57", "+neon", ARM_V8},
    {"cortex-a72", "cortex-a72", "+neon", ARM_V8},
    {"cortex-a73", "cortex-a73", "+neon", ARM_V8},
    {"cortex-a75", "cortex-a75", "+neon,+dotprod", ARM_V8},
    {"cortex-a76", "cortex-a76", "+neon,+dotprod", ARM_V8},
    {"cortex-a77", "cortex-a77", "+neon,+dotprod", ARM_V8},
    {"cortex-a78", "cortex-a78", "+neon,+dotprod", ARM_V8},
    {"cortex-a520", "cortex-a520", "+neon" ARM_BF16, ARM_V8},
    {"cortex-a710", "cortex-a710", "+neon" ARM_BF16, ARM_V8},
    {"cortex-a720", "cortex-a720", "+neon" ARM_BF16, ARM_V8},
    {"cortex-x1", "cortex-x1", "+neon,+dotprod", ARM_V8},
    {"cortex-x2", "cortex-x2", "+neon" ARM_BF16, ARM_V8},
    {"cortex-x3", "cortex-x3", "+neon" ARM_BF16, ARM_V8},
    {"cortex-x4", "cortex-x4", "+neon" ARM_BF16, ARM_V8},
    {"neoverse-n1", "neoverse-n1", "+neon,+dotprod", ARM_V8},
    {"neoverse-n2", "neoverse-n2", "+neon" ARM_BF16, ARM_V8},
    {"neoverse-v1", "neoverse-v1", "+neon" ARM_BF16, ARM_V8},
    {"neoverse-v2", "neoverse-v2", "+neon" ARM_BF16, ARM_V8},
    {"apple-m1", "apple-m1", "+neon,+dotprod", ARM_V8},
    {"apple-m2", "apple-m2", "+neon" ARM_BF16, ARM_V8},
    {"apple-m3", "apple-m3", "+neon" ARM_BF16, ARM_V8},
    {"apple-m4", "apple-m4", "+neon" ARM_BF16, ARM_V8},
};

/* Tells whether `feature` is on in a comma-separated list like "+sse2,-avx"; its last mention counts. */
static bool has_feature(const char *features, const char *feature) {
  size_t length = strlen(feature);
  bool on = false;
  for (const char *at = features; (at = strstr(at, feature)); at += length)
    if (at > features && strchr("+-", at[-1]) && (at[length] == ',' || at[length] == '\0')) on = at[-1] == '+';
  return on;
}

/* The best integer products of the target's features. */
static void set_dot(cpu_target *target) {
  static const struct {
    const char *feature;
    int isa, dot;
  } found[] = {{"dotprod", LPK_ISA_NEON, LPK_DOT_SDOT}, /* the last that a target has counts */
               {"i8mm", LPK_ISA_NEON, LPK_DOT_I8MM},
               {"avx512vnni", LPK_ISA_AVX512, LPK_DOT_VNNI512},
               {"amx-int8", LPK_ISA_AVX512, LPK_DOT_AMX}, /* beside avx512vnni */
               {"avxvnni", LPK_ISA_AVX2, LPK_DOT_VNNI256}};
  target->dot = target->aarch64 ? LPK_DOT_SMULL : LPK_DOT_AVX2;
  for (size_t i = 0; i < LP_COUNT(found); i++)
    if (found[i].isa == target->isa && has_feature(target->features, found[i].feature)) {
      target->dot = found[i].dot;
      target->dot_feature = found[i].feature;
    }
}

/* Products of bf16. Processors that have them also have the integer products, so one feature tells both. vdpbf16ps
 * does as much as two fused multiply-adds on AMD's processors. On Intel's it takes twice the time, so that f32 is
 * faster; those that have AMX use it. */
static void set_pairs(cpu_target *target) {
  bool dot = has_feature(target->features, target->aarch64 ? "bf16" : "avx512bf16");
  if (!dot || target->isa == LPK_ISA_AVX2) return;
  if (has_feature(target->features, "amx-bf16")) {
    target->pairs = LPK_PAIRS_AMX;
    target->pairs_feature = "amx-bf16";
  } else if (target->aarch64 || lp_has_prefix(target->cpu, "znver")) {
    target->pairs = LPK_PAIRS_DOT;
    target->pairs_feature = target->aarch64 ? "bf16" : "avx512bf16";
  }
}

/* `target` has its features. */
static void set_family(cpu_target *target, family kind) {
  target->aarch64 = kind == ARM_V8;
  target->triple = target->aarch64 ? "aarch64-unknown-linux-gnu" : "x86_64-unknown-linux-gnu";
  target->isa = target->aarch64 ? LPK_ISA_NEON : kind == X86_V4 ? LPK_ISA_AVX512 : LPK_ISA_AVX2;
  target->wide = kind == X86_V4 ? "512" : NULL;
  target->level = target->aarch64 ? NULL : kind == X86_V4 ? "x86-64-v4" : "x86-64-v3";
  set_dot(target);
  set_pairs(target);
}

static bool has_all(const char *features, const char *const *wanted, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!has_feature(features, wanted[i])) return false;
  return true;
}

static lp_status find_native(cpu_target *out, lp_arena *arena, lp_diag *diag) {
  char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
  out->march = out->cpu = lp_arena_strdup(arena, cpu);
  out->features = lp_arena_strdup(arena, features);
  LLVMDisposeMessage(cpu);
  LLVMDisposeMessage(features);
#if defined(__aarch64__)
  set_family(out, ARM_V8);
  (void)diag;
  return LP_OK;
#else
  static const char *const v3[] = {"avx2", "fma", "f16c", "bmi", "bmi2"};
  if (has_feature(out->features, "amx-tile") && !lp_amx_request()) /* the operating system denies it */
    out->features = lp_arena_format(arena, "%s,-amx-tile,-amx-int8,-amx-bf16", out->features);
  static const char *const v4[] = {"avx512f", "avx512bw", "avx512dq", "avx512vl"};
  if (!has_all(out->features, v3, LP_COUNT(v3)))
    return lp_error(diag, LP_LOC_NONE, "this machine's processor '%s' lacks AVX2, FMA or F16C, which the kernels need",
                    out->cpu);
  set_family(out, has_all(out->features, v4, LP_COUNT(v4)) ? X86_V4 : X86_V3);
  return LP_OK;
#endif
}

lp_status cpu_target_find(const char *march, lp_loc loc, cpu_target *out, lp_arena *arena, lp_diag *diag) {
  *out = (cpu_target){0};
  if (!march || lp_streq(march, "native")) return find_native(out, arena, diag);
  const char *names[LP_COUNT(processors) + 1];
  for (size_t i = 0; i < LP_COUNT(processors); i++) {
    const processor *p = &processors[i];
    names[i] = p->march;
    if (!lp_streq(p->march, march)) continue;
    if (p->family == X86_NONE)
      return lp_error(diag, loc, "march '%s' lacks AVX2, which the kernels need: the least is 'x86-64-v3'", march);
    out->march = p->march, out->cpu = p->cpu, out->features = p->features;
    set_family(out, p->family);
    return LP_OK;
  }
  names[LP_COUNT(processors)] = "native";
  lp_status status = lp_error(diag, loc, "unknown march '%s'", march);
  lp_note_near(diag, LP_LOC_NONE, march, names, LP_COUNT(names));
  LP_OWNED(lp_buf_free) lp_buf known = {0};
  for (size_t i = 0; i < LP_COUNT(processors); i++)
    if (processors[i].family != X86_NONE) lp_buf_printf(&known, "%s, ", processors[i].march);
  lp_note(diag, LP_LOC_NONE, "known: %snative", lp_buf_text(&known));
  return status;
}

int cpu_op_pairs(const cpu_target *target, const lp_op *op) {
  int64_t k = 0;
  if (!cpu_op_asks_bf16(op)) return LPK_PAIRS_NONE;
  if (target->pairs != LPK_PAIRS_AMX) return target->pairs;
  if (!lp_op_is_weighted(op) || !lp_type_static_dim(lp_op_in(op, 0)->type, -1, &k)) return LPK_PAIRS_NONE;
  return k < LPK_PAIRS_LEAST ? LPK_PAIRS_NONE : LPK_PAIRS_AMX;
}
