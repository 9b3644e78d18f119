/* -MD: a make rule with the files that an output depends on. */
#include "base/companions.h"
#include "base/file.h"
#include "base/map.h"
#include "base/path.h"
#include "tools/compile/compile.h"

static void put_escaped(lp_writer *writer, const char *path) {
  for (; *path; path++) {
    if (*path == ' ' || *path == '#') lp_writer_put(writer, "\\", 1);
    if (*path == '$') lp_writer_put(writer, "$", 1);
    lp_writer_put(writer, path, 1);
  }
}

static void put_dependency(lp_writer *writer, lp_map *seen, const char *path) {
  if (lp_map_has(seen, path)) return;
  lp_map_put(seen, path, NULL);
  lp_writer_put(writer, " ", 1);
  put_escaped(writer, path);
}

static void put_weight_file(lp_writer *writer, lp_map *seen, const lp_module *module, const char *file) {
  if (!file[0]) return;
  LP_OWNED(lp_free_at) char *path = file[0] == '/' ? lp_strdup(file) : lp_path_join(module->directory, file);
  /* Other files are made from the content of a listed file. */
  if (lp_path_exists(path)) put_dependency(writer, seen, path);
}

static void put_weight_files(lp_writer *writer, lp_map *seen, const lp_module *module) {
  LP_FOR_OPS(func, lp_module_body(module)) {
    if (!func->region) continue;
    LP_FOR_OPS(op, func->region) {
      if (op->kind != LP_OP_WEIGHT) continue;
      const lp_attr *files = lp_op_attr(op, "files");
      put_weight_file(writer, seen, module, lp_op_str(op, "file", ""));
      for (int32_t i = 0; files && i < files->count; i++)
        put_weight_file(writer, seen, module, files->ss[i]);
    }
  }
}

/* Adds the tokenizer, its companions, and the model's settings. */
static void put_companions(const lp_compile *compile, lp_writer *writer, lp_map *seen) {
  static const char *const names[] = {"config.json",  "generation_config.json",    "genai_config.json",
                                      "modules.json", "sentence_bert_config.json", "1_Pooling/config.json"};
  LP_OWNED(lp_free_at)
  char *tokenizer = lp_compile_tokenizer(compile), *folder = tokenizer ? lp_path_dir(tokenizer) : NULL;
  if (tokenizer && lp_path_exists(tokenizer)) put_dependency(writer, seen, tokenizer);
  for (size_t i = 0; folder && i < LP_TOKENIZER_COMPANIONS; i++) {
    LP_OWNED(lp_free_at) char *path = lp_path_join(folder, lp_tokenizer_companions[i]);
    if (lp_path_exists(path)) put_dependency(writer, seen, path);
  }
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    LP_OWNED(lp_free_at) char *path = lp_compile_find_companion(compile, names[i]);
    if (path && lp_path_exists(path)) put_dependency(writer, seen, path);
  }
}

static void put_adapters(const lp_compile *compile, lp_writer *writer, lp_map *seen) {
  static const char *const names[] = {"adapter_config.json", "adapter_model.safetensors"};
  for (size_t i = 0; i < compile->adapters.count; i++) {
    char *folder = lp_strdup(compile->adapters.data[i]), *scale = strstr(folder, ",scale=");
    if (scale) *scale = '\0';
    for (size_t k = 0; k < LP_COUNT(names); k++) {
      LP_OWNED(lp_free_at) char *path = lp_path_join(folder, names[k]);
      put_dependency(writer, seen, path);
    }
    free(folder);
  }
}

lp_status lp_compile_write_dependencies(const lp_compile *compile, const lp_module *module, lp_diag *diag) {
  if (!compile->depfile) return LP_OK;
  lp_writer *writer = NULL;
  LP_TRY(lp_writer_open(compile->depfile, &writer, diag));
  LP_OWNED(lp_free_at) char *output = lp_compile_output(compile);
  LP_OWNED(lp_map_free_at) lp_map *seen = lp_map_create();
  put_escaped(writer, output);
  lp_writer_put(writer, ":", 1);
  put_dependency(writer, seen, compile->model);
  if (compile->encoder) put_dependency(writer, seen, compile->encoder);
  put_weight_files(writer, seen, module);
  put_adapters(compile, writer, seen);
  if (lp_streq(compile->emit, "bundle")) put_companions(compile, writer, seen);
  const char *others[] = {compile->device, compile->cloud, compile->link, compile->weighs_by, compile->experts};
  for (size_t i = 0; i < LP_COUNT(others); i++)
    if (others[i] && lp_path_exists(others[i])) put_dependency(writer, seen, others[i]);
  lp_writer_put(writer, "\n", 1);
  return lp_writer_commit(writer, diag);
}
