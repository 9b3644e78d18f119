/* Imports a GGUF file into a module. */
#include "base/file.h"
#include "base/path.h"
#include "frontend/gguf/gguf.h"

#include <stdlib.h>
#include <string.h>

/* Tells whether the type is one of ggml without blocks, and its type in the IR. */
static bool plain_type(uint32_t ggml, lp_dtype *out) {
  static const struct {
    uint32_t ggml;
    lp_dtype dtype;
  } types[] = {{0, LP_F32}, {1, LP_F16}, {30, LP_BF16}};
  for (size_t i = 0; i < LP_COUNT(types); i++) {
    if (types[i].ggml != ggml) continue;
    *out = types[i].dtype;
    return true;
  }
  return false;
}

/* The bytes of a tensor; a row consists of whole blocks. */
static lp_status measure(const lp_gguf *file, const lp_gguf_tensor *t, lp_stored *out, lp_diag *diag) {
  int64_t last = t->rank > 0 ? t->dim[t->rank - 1] : 1;
  lp_loc loc = LP_LOC_FILE(file->path);
  size_t bytes;
  out->form = lp_block_form_find(t->type);
  if (!out->form && !plain_type(t->type, &out->dtype))
    return lp_error(diag, loc, "tensor '%s' is of ggml's type %u; supported: F32, F16, BF16, %s", t->name, t->type,
                    lp_block_form_names(file->arena));
  if (out->form && last % out->form->size != 0)
    return lp_error(diag, loc, "tensor '%s' has rows of %" PRId64 " elements, not of whole blocks", t->name, last);
  bytes = out->form ? (size_t)(last / out->form->size) : (size_t)last;
  bool fits = lp_size_mul(bytes, out->form ? (size_t)out->form->bytes : (size_t)lp_dtype_bits(out->dtype) / 8, &bytes);
  for (int32_t i = 0; i + 1 < t->rank; i++)
    fits = fits && lp_size_mul(bytes, (size_t)t->dim[i], &bytes);
  if (!fits || bytes > file->size - t->offset)
    return lp_error(diag, loc, "tensor '%s' does not fit the file, which may be cut off", t->name);
  out->bytes = (int64_t)bytes;
  if (out->form) out->dtype = LP_U8; /* until the blocks are unpacked */
  return LP_OK;
}

static lp_status add_tensors(const lp_gguf *file, lp_weights *w) {
  lp_arena *arena = w->module->arena;
  for (size_t i = 0; i < file->tensor_count; i++) {
    const lp_gguf_tensor *t = &file->tensor[i];
    lp_stored *stored = LP_NEW(arena, lp_stored);
    stored->name = lp_arena_strdup(arena, t->name);
    stored->file = lp_path_base(w->path);
    stored->rank = t->rank;
    stored->offset = (int64_t)t->offset;
    memcpy(stored->dim, t->dim, sizeof t->dim);
    LP_TRY(measure(file, t, stored, w->diag));
    if (lp_map_put(w->tensors, stored->name, stored))
      return lp_error(w->diag, LP_LOC_FILE(w->path), "tensor '%s' occurs twice", t->name);
  }
  return LP_OK;
}

static lp_status fill(lp_module *module, lp_gguf *file, bool absent_ok, lp_diag *diag) {
  lp_decoder decoder;
  lp_weights weights = {.module = module,
                        .tensors = lp_map_create(),
                        .path = lp_arena_strdup(module->arena, file->path),
                        .absent_ok = absent_ok,
                        .diag = diag};
  lp_status status = add_tensors(file, &weights);
  if (status == LP_OK) status = lp_gguf_config(file, module->arena, &weights, &decoder, diag);
  if (status == LP_OK) status = lp_decoder_build(module, &decoder, &weights, diag);
  lp_map_free(weights.tensors);
  return status;
}

/* "dir/model.gguf" -> "model" */
static lp_module *create_module(const char *path) {
  const char *base = lp_path_base(path);
  lp_arena *scratch = lp_arena_create();
  lp_module *module = lp_module_create(lp_arena_strndup(scratch, base, strlen(base) - strlen(".gguf")));
  lp_arena_free(scratch);
  char *directory = lp_path_dir(path);
  module->directory = lp_arena_strdup(module->arena, directory);
  free(directory);
  return module;
}

lp_status lp_gguf_import(const char *path, bool absent_ok, lp_module **out, lp_diag *diag) {
  lp_module *module = create_module(path);
  lp_mapping *mapping = LP_NEW(module->arena, lp_mapping);
  lp_gguf file = {.path = path, .arena = lp_arena_create()};
  lp_status status = lp_file_map(path, mapping, diag);
  if (status == LP_OK) {
    lp_map_put(module->sources, lp_path_base(path), mapping);
    file.data = mapping->data;
    file.size = mapping->size;
    status = lp_gguf_read(&file, diag);
  }
  if (status == LP_OK) status = fill(module, &file, absent_ok, diag);
  if (file.values) lp_gguf_release(&file);
  lp_arena_free(file.arena);
  if (status == LP_OK)
    *out = module;
  else
    lp_module_free(module);
  return status;
}
