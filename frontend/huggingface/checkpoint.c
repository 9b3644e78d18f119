/* The tensors of a folder's safetensors files. */
#include "base/file.h"
#include "base/json/reader.h"
#include "base/json/safetensors.h"
#include "base/path.h"
#include "frontend/huggingface/huggingface.h"

static const struct {
  const char *name;
  lp_dtype dtype;
} dtypes[] = {{"F32", LP_F32}, {"F16", LP_F16},   {"BF16", LP_BF16},       {"F64", LP_F64},
              {"I64", LP_I64}, {"I32", LP_I32},   {"I16", LP_I16},         {"I8", LP_I8},
              {"U8", LP_U8},   {"BOOL", LP_BOOL}, {"F8_E4M3", LP_F8E4M3FN}};

/* Tells whether the tensor is a buffer that older versions of transformers saved; it follows from the configuration. */
static bool is_buffer(const char *name) {
  static const char *const endings[] = {".rotary_emb.inv_freq", ".attn.masked_bias", ".attn.bias"};
  for (size_t i = 0; i < LP_COUNT(endings); i++)
    if (lp_has_suffix(name, endings[i])) return true;
  return false;
}

/* PEFT wraps the model once more, and models of images and text have the text's model within. */
static const char *without_prefix(const char *name) {
  static const char *const prefixes[][5] = {
      {"base_model.model.", NULL},
      {"language_model.model.", "model.language_model.", "model.text_model.", "language_model.", NULL},
      {"model.", "transformer.", "backbone.", NULL}};
  for (size_t level = 0; level < LP_COUNT(prefixes); level++)
    for (size_t i = 0; prefixes[level][i]; i++) {
      if (!lp_has_prefix(name, prefixes[level][i])) continue;
      name += strlen(prefixes[level][i]);
      break;
    }
  return name;
}

void lp_huggingface_leave_out_images(lp_weights *weights) {
  static const char *const parts[] = {"vision_tower.", "vision_model.", "multi_modal_projector.", "connector.",
                                      "visual."};
  size_t count = 0;
  for (size_t i = 0; i < lp_map_count(weights->tensors); i++) {
    const char *name = lp_map_key_at(weights->tensors, i);
    lp_stored *tensor = lp_map_value_at(weights->tensors, i);
    for (size_t k = 0; k < LP_COUNT(parts); k++)
      if (lp_has_prefix(name, parts[k])) tensor->used = true;
    count += tensor->used;
  }
  lp_note(weights->diag, LP_LOC_FILE(weights->path),
          "only the model of text is compiled: %zu tensors of images are left out", count);
}

static lp_status add_tensor(lp_weights *w, const char *path, const char *file, const lp_safetensor *t) {
  lp_arena *arena = w->module->arena;
  const char *name = without_prefix(t->name), *block = "block_sparse_moe.", *other = strstr(name, block);
  /* the name of Mixtral's MLP before transformers 5 */
  if (other) name = lp_arena_format(arena, "%.*smlp.%s", (int)(other - name), name, other + strlen(block));
  lp_stored *stored = LP_NEW(arena, lp_stored);
  if (is_buffer(t->name)) return LP_OK;
  *stored = (lp_stored){.name = lp_arena_strdup(arena, t->name),
                        .file = file,
                        .dtype = LP_DTYPE_COUNT,
                        .rank = t->rank,
                        .offset = (int64_t)t->offset,
                        .bytes = (int64_t)t->bytes};
  memcpy(stored->dim, t->dim, sizeof stored->dim);
  for (size_t i = 0; i < LP_COUNT(dtypes); i++)
    if (lp_streq(t->dtype, dtypes[i].name)) stored->dtype = dtypes[i].dtype;
  if (stored->dtype == LP_DTYPE_COUNT)
    return lp_error(w->diag, LP_LOC_FILE(path), "tensor '%s' is of type %s, which is not supported", t->name, t->dtype);
  if (lp_map_put(w->tensors, name, stored))
    return lp_error(w->diag, LP_LOC_FILE(path), "tensor '%s' occurs twice", t->name);
  return LP_OK;
}

static lp_status map_file(const lp_weights *w, const char *folder, const char *name, lp_mapping *out) {
  const char *why = "";
  switch (lp_file_map_beneath(folder, name, out, &why)) {
  case LP_FILE_FOUND:
    return LP_OK;
  case LP_FILE_ABSENT:
    return lp_error(w->diag, LP_LOC_FILE(folder), "its weight file '%s' does not exist", name);
  default:
    return lp_error(w->diag, LP_LOC_FILE(folder), "its weight file '%s' %s", name, why);
  }
}

lp_status lp_huggingface_tensors(lp_weights *w, const char *folder, const char *name, const char *source) {
  lp_mapping mapping = {0};
  lp_safetensors header;
  if (lp_map_has(w->module->sources, source)) return LP_OK;
  LP_OWNED(lp_free_at) char *path = lp_path_join(folder, name);
  LP_OWNED(lp_arena_free_at) lp_arena *scratch = lp_arena_create();
  lp_status status = map_file(w, folder, name, &mapping);
  if (status == LP_OK) status = lp_safetensors_read(path, mapping.data, mapping.size, 1, scratch, &header, w->diag);
  if (status == LP_OK) {
    lp_mapping *kept = LP_NEW(w->module->arena, lp_mapping);
    *kept = mapping;
    mapping = (lp_mapping){0};
    source = lp_arena_strdup(w->module->arena, source);
    lp_map_put(w->module->sources, source, kept);
    for (size_t i = 0; i < header.count && status == LP_OK; i++)
      status = add_tensor(w, path, source, &header.tensor[i]);
  }
  lp_file_unmap(&mapping);
  return status;
}

static lp_status add_shards(lp_weights *w, const char *folder, const lp_json *root) {
  lp_json map = lp_json_member(root, "weight_map");
  LP_TRY(lp_json_object(&map, w->diag));
  for (size_t i = 0; i < lp_json_count(&map); i++) {
    lp_json entry = lp_json_entry(&map, i);
    const char *file;
    LP_TRY(lp_json_text(&entry, &file, w->diag));
    if (!file[0] || strchr(file, '/')) return lp_json_error(&entry, w->diag, "'%.80s' is not the name of a file", file);
    LP_TRY(lp_huggingface_tensors(w, folder, file, file));
  }
  return LP_OK;
}

static lp_status read_index(lp_weights *w, const char *folder, const char *path) {
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  LP_TRY(lp_json_load(path, LP_JSON_REFUSE_NUL, &document, w->diag));
  lp_json root = lp_json_root(path, document);
  return add_shards(w, folder, &root);
}

static lp_status assume_weights(lp_weights *w, lp_dtype stored) {
  w->assumed = stored;
  lp_note(w->diag, LP_LOC_FILE(w->path),
          "there is no weight file: the plan assumes the shapes that config.json implies, in %s and without biases",
          lp_dtype_name(stored));
  return LP_OK;
}

lp_status lp_huggingface_checkpoint(const char *folder, lp_dtype stored, lp_weights *weights, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *single = lp_path_join(folder, "model.safetensors");
  LP_OWNED(lp_free_at) char *index = lp_path_join(folder, "model.safetensors.index.json");
  lp_status status;
  if (lp_path_exists(single))
    status = lp_huggingface_tensors(weights, folder, lp_path_base(single), lp_path_base(single));
  else if (lp_path_exists(index))
    status = read_index(weights, folder, index);
  else if (weights->absent_ok)
    status = assume_weights(weights, stored);
  else
    status = lp_error(diag, LP_LOC_FILE(folder), "has neither model.safetensors nor model.safetensors.index.json");
  return status;
}
