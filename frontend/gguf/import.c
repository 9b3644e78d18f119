/* Imports a GGUF file into a module. */
#include "base/file.h"
#include "base/path.h"
#include "frontend/gguf/gguf.h"

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
  if (out->form) out->dtype = LP_F32;
  return LP_OK;
}

/* Adds the tensors of the file, or of one part of it. */
static lp_status add_tensors(const lp_gguf *file, lp_weights *w) {
  lp_arena *arena = w->module->arena;
  LP_FOR_EACH(const lp_gguf_tensor, t, file->tensor, file->tensor_count) {
    lp_stored *stored = LP_NEW(arena, lp_stored);
    /* as llama.cpp's converter names a norm of Falcon-H1 */
    stored->name = lp_arena_format(arena, "%s%s", t->name, lp_has_suffix(t->name, ".ffn_norm") ? ".weight" : "");
    stored->file = lp_path_base(lp_arena_strdup(arena, file->path));
    stored->rank = t->rank;
    stored->offset = (int64_t)t->offset;
    memcpy(stored->dim, t->dim, sizeof t->dim);
    LP_TRY(measure(file, t, stored, w->diag));
    if (lp_map_put(w->tensors, stored->name, stored))
      return lp_error(w->diag, LP_LOC_FILE(file->path), "tensor '%s' occurs twice", t->name);
  }
  return LP_OK;
}

/* Maps a file, which the module then owns, and reads its header. The caller releases *out with close_file, also after a
 * failure. */
static lp_status open_file(lp_module *module, const char *path, lp_gguf *out, lp_diag *diag) {
  lp_mapping *mapping = LP_NEW(module->arena, lp_mapping);
  *out = (lp_gguf){.path = path, .arena = lp_arena_create()};
  LP_TRY(lp_file_map(path, mapping, diag));
  lp_map_put(module->sources, lp_path_base(path), mapping);
  out->data = mapping->data;
  out->size = mapping->size;
  LP_TRY(lp_gguf_read(out, diag));
  return lp_gguf_check_types(out, diag);
}

static void close_file(lp_gguf *file) {
  if (file->values) lp_gguf_release(file);
  lp_arena_free(file->arena);
}

/* ---- a file in parts --------------------------------------------------------------------------------------------- */

/* llama.cpp splits a model into NAME-00001-of-00005.gguf and so on. The first part has the metadata. */
static const char part_name[] = "-%05d-of-%05d.gguf";
enum { PART_NAME = sizeof "-00001-of-00005.gguf" - 1, MOST_PARTS = 65535 };

/* The path of part `number` beside the first one, in `arena`. */
static const char *part_path(const lp_gguf *first, int number, int count, lp_arena *arena) {
  int length = (int)(strlen(first->path) - PART_NAME);
  return lp_arena_format(arena, "%.*s-%05d-of-%05d.gguf", length, first->path, number, count);
}

static lp_status check_first(const lp_gguf *file, int number, int64_t count, lp_diag *diag) {
  lp_loc loc = LP_LOC_FILE(file->path);
  if (count > MOST_PARTS || number < 0 || number >= count)
    return lp_error(diag, loc, "'split.no' and 'split.count' are no part of a file");
  const char *own = lp_arena_format(file->arena, part_name, number + 1, (int)count);
  bool named = lp_has_suffix(file->path, own);
  if (number > 0)
    return lp_error(diag, loc, "this is part %d of %" PRId64 ": the model is named by its first part%s%s", number + 1,
                    count, named ? ", " : "", named ? lp_path_base(part_path(file, 1, (int)count, file->arena)) : "");
  if (named) return LP_OK;
  return lp_error(diag, loc,
                  "this is part 1 of %" PRId64 ", and its name does not end in '%s', by which the others are found",
                  count, own);
}

static lp_status add_part(const lp_gguf *first, int number, int count, lp_weights *w) {
  lp_gguf part;
  const char *path = part_path(first, number, count, w->module->arena);
  lp_status status = open_file(w->module, path, &part, w->diag);
  if (status == LP_OK &&
      (lp_gguf_i64(&part, "split.no", -1) != number - 1 || lp_gguf_i64(&part, "split.count", -1) != count))
    status = lp_error(w->diag, LP_LOC_FILE(path), "this is not part %d of %d, as its name says", number, count);
  if (status == LP_OK) status = add_tensors(&part, w);
  close_file(&part);
  return status;
}

/* Adds the tensors of all parts after the first. */
static lp_status add_parts(const lp_gguf *first, lp_weights *w) {
  int64_t count = lp_gguf_i64(first, "split.count", 1);
  if (count <= 1) return LP_OK;
  LP_TRY(check_first(first, (int)lp_gguf_i64(first, "split.no", 0), count, w->diag));
  for (int i = 2; i <= count; i++)
    LP_TRY(add_part(first, i, (int)count, w));
  int64_t found = (int64_t)lp_map_count(w->tensors), wanted = lp_gguf_i64(first, "split.tensors.count", found);
  if (found == wanted) return LP_OK;
  return lp_error(w->diag, LP_LOC_FILE(first->path),
                  "the parts have %" PRId64 " tensors, and 'split.tensors.count' is %" PRId64, found, wanted);
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static lp_status fill(lp_module *module, lp_gguf *file, bool absent_ok, lp_diag *diag) {
  lp_decoder decoder;
  lp_weights weights = {.module = module,
                        .tensors = lp_map_create(),
                        .path = lp_arena_strdup(module->arena, file->path),
                        .absent_ok = absent_ok,
                        .assumed = LP_DTYPE_COUNT,
                        .diag = diag};
  lp_status status = add_tensors(file, &weights);
  if (status == LP_OK) status = add_parts(file, &weights);
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
  lp_gguf file;
  lp_status status = open_file(module, path, &file, diag);
  if (status == LP_OK) status = fill(module, &file, absent_ok, diag);
  close_file(&file);
  if (status == LP_OK)
    *out = module;
  else
    lp_module_free(module);
  return status;
}
