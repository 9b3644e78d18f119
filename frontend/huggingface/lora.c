/* Merges a LoRA adapter into the weights of its base model. */
#include "frontend/huggingface/lora.h"
#include "base/number.h"
#include "base/path.h"
#include "frontend/decoder/weights.h"
#include "frontend/huggingface/huggingface.h"

/* ---- products of low rank ---------------------------------------------------------------------------------------- */

/* scale * b a, where b is [out][rank] and a is [rank][in]. */
typedef struct {
  const lp_stored *a, *b;
  double scale;
  bool transposed; /* the weight lies as [in][out] */
} lp_low_rank;

static bool is_merged_type(lp_dtype dtype) {
  return dtype == LP_F32 || dtype == LP_F16 || dtype == LP_BF16;
}

static lp_status check_one(const lp_weights *w, const lp_stored *t) {
  if (t->rank == 2 && !t->form && is_merged_type(t->dtype)) return LP_OK;
  return lp_error(w->diag, LP_LOC_FILE(w->path), "tensor '%s' is no matrix of f32, f16 or bf16", t->name);
}

static lp_status check(const lp_weights *w, const lp_stored *matrix, const lp_low_rank *u) {
  const lp_stored *a = u->a, *b = u->b;
  LP_TRY(check_one(w, matrix));
  LP_TRY(check_one(w, a));
  LP_TRY(check_one(w, b));
  int64_t out = matrix->dim[u->transposed], in = matrix->dim[!u->transposed];
  if (a->dim[1] == in && b->dim[0] == out && a->dim[0] == b->dim[1]) return LP_OK;
  return lp_error(w->diag, LP_LOC_FILE(w->path),
                  "'%s' of %" PRId64 " x %" PRId64 " and '%s' of %" PRId64 " x %" PRId64
                  " do not fit '%s' with %" PRId64 " inputs and %" PRId64 " outputs",
                  a->name, a->dim[0], a->dim[1], b->name, b->dim[0], b->dim[1], matrix->name, in, out);
}

/* Elements [first, first + count). */
static void read_elements(const uint8_t *bytes, lp_dtype dtype, int64_t first, int64_t count, float *out) {
  if (dtype == LP_F32) {
    memcpy(out, bytes + first * (int64_t)sizeof *out, (size_t)count * sizeof *out);
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    uint16_t bits;
    memcpy(&bits, bytes + (first + i) * (int64_t)sizeof bits, sizeof bits);
    out[i] = dtype == LP_F16 ? lp_f16_to_f32(bits) : lp_bf16_to_f32(bits);
  }
}

static void write_elements(uint8_t *bytes, lp_dtype dtype, int64_t first, int64_t count, const float *from) {
  if (dtype == LP_F32) {
    memcpy(bytes + first * (int64_t)sizeof *from, from, (size_t)count * sizeof *from);
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    uint16_t bits = dtype == LP_F16 ? lp_f32_to_f16(from[i]) : lp_f32_to_bf16(from[i]);
    memcpy(bytes + (first + i) * (int64_t)sizeof bits, &bits, sizeof bits);
  }
}

/* The matrix in f32, with its axes exchanged where `turned`. Release with free(). */
static float *loaded(const lp_weights *w, const lp_stored *t, bool turned) {
  int64_t rows = t->dim[0], columns = t->dim[1];
  const uint8_t *bytes = lp_weights_bytes(w, t);
  float *out = lp_alloc(((size_t)(rows * columns) + 1) * sizeof *out);
  if (!turned) {
    read_elements(bytes, t->dtype, 0, rows * columns, out);
    return out;
  }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      read_elements(bytes, t->dtype, i * columns + j, 1, &out[j * rows + i]);
  return out;
}

/* delta += left * right[], over a row. */
static void add_row(float *delta, float left, const float *right, int64_t count) {
  for (int64_t j = 0; j < count; j++)
    delta[j] += left * right[j];
}

/* Replaces the matrix by its sum with the product, in memory that the module keeps. Sums are of f32 and are rounded to
 * the matrix's own type: f32, f16 or bf16. Reports shapes and types that do not fit. With absent_ok it only checks. */
static lp_status add_low_rank(lp_weights *w, lp_stored *matrix, const lp_low_rank *update) {
  LP_TRY(check(w, matrix, update));
  if (w->absent_ok || matrix->bytes == 0) return LP_OK;
  int64_t rows = matrix->dim[0], columns = matrix->dim[1], rank = update->a->dim[0];
  const uint8_t *from = lp_weights_bytes(w, matrix);
  uint8_t *to;
  LP_TRY(lp_weights_move(w, matrix, (size_t)matrix->bytes, &to));
  float *left = loaded(w, update->transposed ? update->a : update->b, update->transposed);  /* [rows][rank] */
  float *right = loaded(w, update->transposed ? update->b : update->a, update->transposed); /* [rank][columns] */
  float *row = lp_alloc(2 * (size_t)columns * sizeof *row), *delta = row + columns;
  for (int64_t i = 0; i < rows; i++) {
    memset(delta, 0, (size_t)columns * sizeof *delta);
    for (int64_t k = 0; k < rank; k++)
      add_row(delta, left[i * rank + k], right + k * columns, columns);
    read_elements(from, matrix->dtype, i * columns, columns, row);
    add_row(row, (float)update->scale, delta, columns);
    write_elements(to, matrix->dtype, i * columns, columns, row);
  }
  free(left);
  free(right);
  free(row);
  return LP_OK;
}

static const char file_name[] = "adapter_model.safetensors";

typedef struct {
  const lp_adapter *adapter;
  const lp_decoder *decoder;
  const lp_lora_config *config;
  lp_weights *base;
  lp_weights own; /* the adapter's tensors */
  lp_diag *diag;
} merger;

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* `name` without the ending, in `arena`; NULL: it ends in something else. */
static const char *without(lp_arena *arena, const char *name, const char *ending) {
  if (!lp_has_suffix(name, ending)) return NULL;
  return lp_arena_strndup(arena, name, strlen(name) - strlen(ending));
}

/* A module's name in the model's class: PEFT wraps the model once more. */
static const char *unwrapped(const char *name) {
  static const char wrapper[] = "base_model.model.";
  return lp_has_prefix(name, wrapper) ? name + sizeof wrapper - 1 : name;
}

static lp_status refuse(const merger *m, const lp_stored *t, const char *why) {
  return lp_error(m->diag, LP_LOC_FILE(m->own.path), "tensor '%s' %s", t->name, why);
}

/* The weight that a tensor for `module` changes. With one matrix for the embedding and the head, PEFT's own merging
 * changes both where training had changed one. */
static lp_status find_weight(const merger *m, const lp_stored *t, const char *module, lp_stored **out) {
  const lp_decoder *d = m->decoder;
  *out = lp_weights_find(m->base, lp_arena_format(m->base->module->arena, "%s.weight", module));
  if (d->tied && (lp_streq(module, d->names[LP_ROLE_EMBEDDING]) || lp_streq(module, d->names[LP_ROLE_HEAD])))
    return refuse(m, t, "changes an embedding or a head that share one matrix, which is not supported");
  return *out ? LP_OK : refuse(m, t, "belongs to no weight of the model");
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static bool lies_transposed(const merger *m, const char *module, bool embedding) {
  const char *layers = m->decoder->names[LP_ROLE_O]; /* "h.%d.attn.c_proj" */
  return embedding || (m->decoder->transposed && strncmp(module, layers, strcspn(layers, "%")) == 0);
}

static lp_status add_product(const merger *m, const char *module, lp_stored *a, lp_stored *b, bool embedding) {
  const char *path = unwrapped(a->name);
  lp_stored *weight;
  lp_low_rank update = {.a = a, .b = b, .transposed = lies_transposed(m, module, embedding)};
  lp_json flag = lp_json_member(&m->config->root, "fan_in_fan_out");
  LP_TRY(find_weight(m, a, module, &weight));
  if (lp_json_is_true(&flag) && !m->decoder->transposed)
    return lp_json_error(&flag, m->diag, "the matrices of this family lie as [out][in]");
  path = lp_arena_strndup(m->base->module->arena, path,
                          strlen(path) - strlen(embedding ? ".lora_embedding_A" : ".lora_A.weight"));
  if (!lp_lora_targets(m->config, path))
    return refuse(m, a, "is for a module that target_modules, exclude_modules or layers_to_transform leave out");
  LP_TRY(lp_lora_scale(m->config, path, a->dim[0], &update.scale, m->diag));
  update.scale *= m->adapter->scale;
  a->used = b->used = true;
  return add_low_rank(m->base, weight, &update);
}

static lp_status add_products(const merger *m) {
  static const char *const forms[][2] = {{".lora_A.weight", ".lora_B.weight"},
                                         {".lora_embedding_A", ".lora_embedding_B"}};
  lp_arena *arena = m->base->module->arena;
  for (size_t i = 0; i < lp_map_count(m->own.tensors); i++) {
    for (size_t form = 0; form < LP_COUNT(forms); form++) {
      lp_stored *a = lp_map_value_at(m->own.tensors, i);
      const char *module = without(arena, lp_map_key_at(m->own.tensors, i), forms[form][0]);
      if (!module) continue;
      lp_stored *b = lp_weights_find(&m->own, lp_arena_format(arena, "%s%s", module, forms[form][1]));
      if (!b) return refuse(m, a, "has no second factor");
      LP_TRY(add_product(m, module, a, b, form == 1));
    }
  }
  return LP_OK;
}

/* ---- whole weights ----------------------------------------------------------------------------------------------- */

/* The tensor takes the weight's place: of modules_to_save, or the copy of a base layer that PEFT saves. */
static lp_status replace(const merger *m, const char *module, lp_stored *t) {
  lp_stored *weight;
  LP_TRY(find_weight(m, t, module, &weight));
  if (t->rank != weight->rank || memcmp(t->dim, weight->dim, (size_t)t->rank * sizeof *t->dim) != 0)
    return refuse(m, t, "has another shape than the weight that it replaces");
  const char *name = weight->name;
  t->used = true;
  *weight = *t;
  weight->name = name;
  weight->used = false;
  return LP_OK;
}

static lp_status replace_weights(const merger *m) {
  lp_arena *arena = m->base->module->arena;
  for (size_t i = 0; i < lp_map_count(m->own.tensors); i++) {
    lp_stored *t = lp_map_value_at(m->own.tensors, i);
    const char *module = without(arena, lp_map_key_at(m->own.tensors, i), ".weight");
    if (!module || strstr(module, ".lora_")) continue;
    const char *inner = without(arena, module, ".base_layer");
    LP_TRY(replace(m, inner ? inner : module, t));
  }
  return LP_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* Tells whether the adapter has a tensor of a module that `name` names. */
static bool has_tensor_of(const merger *m, const char *name) {
  lp_arena *arena = m->base->module->arena;
  for (size_t i = 0; i < lp_map_count(m->own.tensors); i++) {
    const lp_stored *t = lp_map_value_at(m->own.tensors, i);
    static const char *const endings[] = {".lora_A.weight", ".lora_embedding_A", ".base_layer.weight", ".weight"};
    for (size_t k = 0; k < LP_COUNT(endings); k++) {
      const char *module = without(arena, unwrapped(t->name), endings[k]);
      if (module && lp_lora_names(module, name)) return true;
    }
  }
  return false;
}

static bool model_has(const merger *m, const char *name) {
  lp_arena *arena = m->base->module->arena;
  for (size_t i = 0; i < lp_map_count(m->base->tensors); i++) {
    const char *module = without(arena, lp_map_key_at(m->base->tensors, i), ".weight");
    if (module && lp_lora_names(module, name)) return true;
  }
  return false;
}

/* Every module of the model that the list names has tensors; one that the model lacks is no part of any. */
static lp_status check_list(const merger *m, const char *key) {
  lp_json list = lp_json_member(&m->config->root, key);
  for (size_t i = 0; lp_json_is(&list, LP_JSON_ARRAY) && i < lp_json_count(&list); i++) {
    lp_json at = lp_json_item(&list, i);
    const char *name;
    LP_TRY(lp_json_text(&at, &name, m->diag));
    if (model_has(m, name) && !has_tensor_of(m, name))
      return lp_json_error(&at, m->diag, "%s has no tensor of '%.80s'", file_name, name);
  }
  return LP_OK;
}

static lp_status check_used(const merger *m) {
  for (size_t i = 0; i < lp_map_count(m->own.tensors); i++) {
    const lp_stored *t = lp_map_value_at(m->own.tensors, i);
    if (!t->used) return refuse(m, t, "is of no kind that is merged");
  }
  return LP_OK;
}

static lp_status merge(merger *m) {
  const char *folder = m->adapter->folder;
  lp_module *module = m->base->module;
  /* A source of its own, although one adapter may be given twice. */
  const char *source = lp_arena_format(module->arena, "adapter %zu#%s", lp_map_count(module->sources), file_name);
  LP_TRY(lp_huggingface_tensors(&m->own, folder, file_name, source));
  if (lp_map_count(m->own.tensors) == 0) return lp_error(m->diag, LP_LOC_FILE(folder), "the adapter has no tensors");
  LP_TRY(check_list(m, "target_modules"));
  LP_TRY(check_list(m, "modules_to_save"));
  LP_TRY(replace_weights(m));
  LP_TRY(add_products(m));
  return check_used(m);
}

lp_status lp_huggingface_merge(const lp_adapter *adapter, const lp_decoder *decoder, lp_weights *weights,
                               lp_diag *diag) {
  lp_lora_config config;
  merger m = {.adapter = adapter, .decoder = decoder, .config = &config, .base = weights, .diag = diag};
  char *path = lp_path_join(adapter->folder, "adapter_config.json");
  lp_status status = lp_lora_config_load(path, &config, diag);
  m.own = *weights;
  m.own.path = adapter->folder;
  m.own.tensors = lp_map_create();
  if (status == LP_OK) status = merge(&m);
  lp_map_free(m.own.tensors);
  lp_lora_config_release(&config);
  free(path);
  return status;
}
