/* The targets of machines: the `target` of their files. */
#include "hwmodels/hwmodels_internal.h"

const char *const lp_hw_type_names[LP_HW_TYPES] = {"f32", "f16", "bf16", "int8", "int4"};

const lp_hw_target lp_target_host = {.os = "linux",
#if defined(__aarch64__)
                                     .isa = "aarch64",
#else
                                     .isa = "x86-64",
#endif
                                     .cpu = "native",
                                     .has_type = {true}};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const char *const systems[] = {"linux", "android", "macos"};
static const char *const isas[] = {"x86-64", "aarch64"};
static const char *const interfaces[] = {"cuda", "opencl", "metal"};

typedef struct {
  int32_t os;
  const char *cpu, *gpu, *types;
  bool shared_memory, ideal;
} fields;

/* Splits "WORD REST" where WORD is one of `names`, which is stored in `word`. */
static lp_status split(lp_yaml *yaml, const lp_yaml_node *node, const char *text, const char *key,
                       const char *const *names, size_t count, const char **word, const char **rest) {
  size_t length = strcspn(text, " ");
  char *first = lp_arena_strndup(yaml->arena, text, length);
  lp_loc loc = lp_yaml_loc(yaml, node);
  *rest = text + length + strspn(text + length, " ");
  for (size_t i = 0; i < count; i++)
    if (lp_streq(names[i], first)) *word = names[i];
  if (*word && **rest != '\0') return LP_OK;
  if (*word) return lp_error(yaml->diag, loc, "'%s' of the target lacks a name after '%s'", key, first);
  lp_status status = lp_error(yaml->diag, loc, "'%s' of the target begins with '%.60s'", key, first);
  lp_note_near(yaml->diag, loc, first, names, count);
  for (size_t i = 0; i < count; i++)
    lp_note(yaml->diag, loc, "known: %s", names[i]);
  return status;
}

static lp_status read_types(lp_yaml *yaml, const lp_yaml_node *node, const char *types, lp_hw_target *out) {
  while (*types != '\0') {
    size_t length = strcspn(types, " "), type = 0;
    char *name = lp_arena_strndup(yaml->arena, types, length);
    while (type < LP_HW_TYPES && !lp_streq(lp_hw_type_names[type], name))
      type++;
    if (type == LP_HW_TYPES)
      return lp_error_near(yaml->diag, lp_yaml_loc(yaml, node), name, lp_hw_type_names, LP_HW_TYPES,
                           "'types' of the target has the unknown type '%.60s'", name);
    out->has_type[type] = true;
    types += length + strspn(types + length, " ");
  }
  return LP_OK;
}

lp_status lp_target_read(void *user, lp_yaml *yaml, const lp_yaml_node *node) {
  static const lp_yaml_field table[] = {
      LP_YAML_FIELD(LP_YAML_CHOICE, "os", fields, os, .names = systems, .name_count = LP_COUNT(systems),
                    .required = true),
      LP_YAML_FIELD(LP_YAML_TEXT, "cpu", fields, cpu, .required = true),
      LP_YAML_FIELD(LP_YAML_TEXT, "gpu", fields, gpu, .required = false),
      LP_YAML_FIELD(LP_YAML_TEXT, "types", fields, types, .required = true),
      LP_YAML_FIELD(LP_YAML_BOOL, "shared_memory", fields, shared_memory, .required = false),
      LP_YAML_FIELD(LP_YAML_BOOL, "ideal", fields, ideal, .required = false),
  };
  lp_hw_target *out = &((lp_machine *)user)->target;
  fields read = {0};
  LP_TRY(lp_yaml_fields(yaml, node, "the target", table, LP_COUNT(table), &read));
  *out = (lp_hw_target){.os = systems[read.os], .shared_memory = read.shared_memory, .ideal = read.ideal};
  LP_TRY(split(yaml, node, read.cpu, "cpu", isas, LP_COUNT(isas), &out->isa, &out->cpu));
  if (read.gpu)
    LP_TRY(split(yaml, node, read.gpu, "gpu", interfaces, LP_COUNT(interfaces), &out->gpu_interface, &out->gpu));
  return read_types(yaml, node, read.types, out);
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

void lp_target_print(const lp_hw_target *target, lp_buf *out) {
  if (!target->cpu) return;
  lp_buf_printf(out, "target: { os: %s, cpu: %s %s", target->os, target->isa, target->cpu);
  if (target->gpu_interface) lp_buf_printf(out, ", gpu: %s %s", target->gpu_interface, target->gpu);
  lp_buf_puts(out, ", types:");
  for (size_t i = 0; i < LP_HW_TYPES; i++)
    if (target->has_type[i]) lp_buf_printf(out, " %s", lp_hw_type_names[i]);
  lp_buf_printf(out, "%s%s }\n", target->shared_memory ? ", shared_memory: true" : "",
                target->ideal ? ", ideal: true" : "");
}

void lp_hw_target_text(const lp_hw_target *target, lp_buf *out) {
  if (target->gpu_interface) lp_buf_printf(out, "%s %s, ", target->gpu_interface, target->gpu);
  lp_buf_puts(out, target->cpu ? target->cpu : "unknown");
}
