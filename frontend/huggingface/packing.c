/* Quantised checkpoints: reads quantization_config, and turns each packed matrix into one that the decoder's frontend
 * knows: codes, scales and zero points, made from the files when they are read. Sources: AutoGPTQ and
 * GPTQModel (qlinear), AutoAWQ (gemm), compressed-tensors (pack_quantized, float_quantized), DeepSeek-V3 (fp8_cast). */
#include "frontend/huggingface/huggingface.h"

#include "base/number.h"

#include <math.h>

enum { GROUP = 32 }; /* of codes that are rounded again */

/* ---- quantization_config ----------------------------------------------------------------------------------------- */

static lp_status refuse(const lp_json *at, lp_diag *diag, const char *what) {
  return lp_json_error(at, diag, "quantised weights with this %s are not supported: '%s'", what,
                       lp_json_text_or(at, "another value"));
}

/* The rows and columns of a block that shares a scale, if the key is given. */
static lp_status read_block(const lp_json *block, lp_packing *out, lp_diag *diag) {
  if (!lp_json_is_given(block)) return LP_OK;
  LP_TRY(lp_json_i64(LP_ITEM(block, 0), 1, 1 << 20, &out->block_rows, diag));
  return lp_json_i64(LP_ITEM(block, 1), 1, 1 << 20, &out->group, diag);
}

/* The object of compressed-tensors: one group of settings for all matrices. */
static lp_status read_compressed(const lp_json *root, lp_packing *out, lp_diag *diag) {
  const lp_json format = lp_json_member(root, "format"), groups = lp_json_member(root, "config_groups");
  if (lp_json_count(&groups) != 1) return lp_json_error(&groups, diag, "one group of settings is supported");
  const lp_json group = lp_json_entry(&groups, 0), weights = lp_json_member(&group, "weights");
  const lp_json bits = lp_json_member(&weights, "num_bits"), size = lp_json_member(&weights, "group_size");
  const lp_json block = lp_json_member(&weights, "block_structure");
  out->kind = lp_json_equals(&format, "pack-quantized") ? LP_PACKING_ROWS : LP_PACKING_FLOAT8;
  if (out->kind == LP_PACKING_FLOAT8 && !lp_json_equals(&format, "float-quantized"))
    return refuse(&format, diag, "format");
  LP_TRY(lp_json_i64(&bits, 4, 8, &out->bits, diag));
  if (out->bits != 8 && (out->bits != 4 || out->kind == LP_PACKING_FLOAT8))
    return refuse(&bits, diag, "number of bits");
  if (out->kind == LP_PACKING_FLOAT8) LP_TRY(read_block(&block, out, diag));
  if (!lp_json_is_given(&size)) return LP_OK;
  return lp_json_i64(&size, -1, 1 << 20, &out->group, diag);
}

static lp_status read_bitsandbytes(const lp_json *root, lp_packing *out, lp_diag *diag) {
  const lp_json four = lp_json_member(root, "load_in_4bit"), type = lp_json_member(root, "bnb_4bit_quant_type");
  const lp_json storage = lp_json_member(root, "bnb_4bit_quant_storage");
  out->kind = LP_PACKING_BITSANDBYTES;
  out->bits = lp_json_is_true(&four) ? 4 : 8;
  if (out->bits == 8) return LP_OK;
  if (!lp_json_equals(&type, "nf4"))
    return lp_json_error(&type, diag, "quantised weights of this type are not supported: '%s'",
                         lp_json_text_or(&type, "fp4"));
  if (lp_json_is_given(&storage) && !lp_json_equals(&storage, "uint8")) return refuse(&storage, diag, "storage");
  return LP_OK;
}

lp_status lp_packing_read(const lp_json *root, lp_packing *out, lp_diag *diag) {
  const lp_json method = lp_json_member(root, "quant_method"), bits = lp_json_member(root, "bits");
  const lp_json size = lp_json_member(root, "group_size"), block = lp_json_member(root, "weight_block_size");
  const lp_json version = lp_json_member(root, "version"), format = lp_json_member(root, "checkpoint_format");
  *out = (lp_packing){.group = -1};
  if (lp_json_equals(&method, "mxfp4")) return LP_OK; /* blocks have names of their own: experts.c */
  if (lp_json_equals(&method, "compressed-tensors")) return read_compressed(root, out, diag);
  if (lp_json_equals(&method, "bitsandbytes")) return read_bitsandbytes(root, out, diag);
  if (lp_json_equals(&method, "fp8") || lp_json_equals(&method, "fbgemm_fp8")) {
    out->kind = LP_PACKING_FLOAT8;
    out->bits = 8;
    return read_block(&block, out, diag);
  }
  out->kind = lp_json_equals(&method, "gptq") ? LP_PACKING_GPTQ : LP_PACKING_AWQ;
  if (out->kind == LP_PACKING_AWQ && !lp_json_equals(&method, "awq"))
    return lp_json_error(root, diag, "quantised weights ('%s') are not supported",
                         lp_json_text_or(&method, "unknown method"));
  if (out->kind == LP_PACKING_AWQ && lp_json_is_given(&version) && !lp_json_equals(&version, "gemm"))
    return refuse(&version, diag, "version");
  out->plus_one = out->kind == LP_PACKING_GPTQ && !lp_json_equals(&format, "gptq_v2");
  LP_TRY(lp_json_i64(&bits, 4, 8, &out->bits, diag));
  if (out->bits != 4 && (out->bits != 8 || out->kind == LP_PACKING_AWQ)) return refuse(&bits, diag, "number of bits");
  return lp_json_i64(&size, -1, 1 << 20, &out->group, diag);
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

/* A packed matrix [n][k]; `exact`: its codes stay, otherwise its values are rounded again, to int8 in groups of 32. */
typedef struct {
  lp_made_file made;
  enum { CODES, SCALES, ZEROS, VALUES } part; /* VALUES: in bf16 */
  lp_packing packing;
  int64_t n, k, group, groups; /* groups along k of the files' scales */
  const uint8_t *codes, *scales, *zeros, *index;
  lp_dtype scale_dtype;
  int64_t scale_rows; /* 1, or n, or n / block_rows */
  bool exact;
} packed;

static uint32_t word_at(const uint8_t *words, int64_t at) {
  uint32_t word;
  memcpy(&word, words + 4 * at, sizeof word);
  return word;
}

/* Element `at` of AWQ's, whose words have eight elements in the order 0, 2, 4, 6, 1, 3, 5, 7 from the low bits on. */
static int awq_nibble(const uint8_t *words, int64_t at) {
  const int64_t place = at % 8;
  return (int)(word_at(words, at / 8) >> (4 * (place % 2 * 4 + place / 2)) & 15);
}

static int code_at(const packed *p, int64_t n, int64_t k) {
  const int64_t bits = p->packing.bits, per = 32 / bits, mask = (1 << bits) - 1;
  switch (p->packing.kind) {
  case LP_PACKING_GPTQ:
    return (int)(word_at(p->codes, k / per * p->n + n) >> (k % per * bits) & mask);
  case LP_PACKING_AWQ:
    return awq_nibble(p->codes, k * p->n + n);
  default:
    return (int)(word_at(p->codes, n * ((p->k + per - 1) / per) + k / per) >> (k % per * bits) & mask);
  }
}

static int zero_at(const packed *p, int64_t n, int64_t g) {
  const int64_t bits = p->packing.bits, per = 32 / bits, mask = (1 << bits) - 1;
  if (!p->zeros) return 1 << (bits - 1);
  if (p->packing.kind == LP_PACKING_ROWS)
    return (int)(word_at(p->zeros, n / per * p->groups + g) >> (n % per * bits) & mask);
  if (p->packing.kind == LP_PACKING_AWQ) return awq_nibble(p->zeros, g * p->n + n);
  return (int)((word_at(p->zeros, g * (p->n / per) + n / per) >> (n % per * bits)) + p->packing.plus_one) & (int)mask;
}

static float scale_at(const packed *p, int64_t n, int64_t g) {
  const lp_tensor scales = {.type = {.dtype = p->scale_dtype}, .data = p->scales};
  const bool by_columns = p->packing.kind == LP_PACKING_GPTQ || p->packing.kind == LP_PACKING_AWQ;
  const int64_t row = p->scale_rows == p->n ? n : p->scale_rows == 1 ? 0 : n / p->packing.block_rows;
  return (float)lp_tensor_f64(&scales, by_columns ? g * p->n + n : row * p->groups + g);
}

static float value_at(const packed *p, int64_t n, int64_t k) {
  const int64_t g = p->index ? (int64_t)word_at(p->index, k) : k / p->group;
  if (p->packing.kind == LP_PACKING_FLOAT8)
    return lp_mini_decode(p->codes[n * p->k + k], LP_MINI_E4M3FN) * scale_at(p, n, g);
  return (float)(code_at(p, n, k) - zero_at(p, n, g)) * scale_at(p, n, g);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* The scale of 32 values that are rounded again; NaN where one is not finite, which the backend refuses. */
static float group_scale(const float *values) {
  float most = 0;
  for (int i = 0; i < GROUP; i++) {
    if (!isfinite(values[i])) return NAN;
    most = fmaxf(most, fabsf(values[i]));
  }
  return most / 127;
}

static void make_rounded(const packed *p, uint8_t *out) {
  float values[GROUP];
  for (int64_t n = 0; n < p->n; n++)
    for (int64_t g = 0; g < p->k / GROUP; g++) {
      for (int64_t i = 0; i < GROUP; i++)
        values[i] = value_at(p, n, g * GROUP + i);
      const float scale = group_scale(values);
      if (p->part == SCALES) memcpy(out + (n * (p->k / GROUP) + g) * 4, &scale, sizeof scale);
      for (int64_t i = 0; p->part == CODES && i < GROUP; i++)
        out[n * p->k + g * GROUP + i] = (uint8_t)(int8_t)(scale > 0 ? rintf(values[i] / scale) : 0);
    }
}

static void make(const lp_made_file *file, uint8_t *out) {
  const packed *p = (const packed *)file;
  const bool wide = p->packing.bits == 8;
  for (int64_t i = 0; p->part == VALUES && i < p->n * p->k; i++, out += sizeof(uint16_t)) {
    const uint16_t bits = lp_f32_to_bf16(value_at(p, i / p->k, i % p->k));
    memcpy(out, &bits, sizeof bits);
  }
  if (p->part == VALUES) return;
  if (!p->exact) {
    make_rounded(p, out);
    return;
  }
  const int64_t columns = p->part == CODES ? p->k : p->groups;
  const int middle = p->zeros ? 0 : 1 << (p->packing.bits - 1);
  for (int64_t n = 0; n < p->n; n++)
    for (int64_t i = 0; i < columns; i++) {
      const int64_t at = n * columns + i;
      const float scale = p->part == SCALES ? scale_at(p, n, i) : 0;
      const int code = p->part == CODES ? code_at(p, n, i) - middle : zero_at(p, n, i);
      if (p->part == SCALES)
        memcpy(out + 4 * at, &scale, sizeof scale);
      else if (wide)
        out[at] = (uint8_t)code;
      else
        lp_packed_set(out, LP_U4, at, code);
    }
}

static const char *add_file(lp_weights *w, const packed *p, const char *name, unsigned part, int64_t bits) {
  static const char *const parts[] = {[CODES] = "codes", [SCALES] = "scales", [ZEROS] = "zeros", [VALUES] = "values"};
  packed *own = lp_arena_copy(w->module->arena, p, sizeof *p);
  const char *file = lp_arena_format(w->module->arena, "%s#%s", name, parts[part]);
  own->part = part;
  own->made = (lp_made_file){.size = (size_t)(bits + 7) / 8, .make = make};
  lp_map_put(w->module->made, file, own);
  return file;
}

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

/* The tensor "LAYER" + `suffix`; NULL where the file has none. */
static const lp_stored *find_part(lp_weights *w, const char *layer, const char *suffix) {
  lp_stored *t = lp_weights_find(w, lp_arena_format(w->module->arena, "%s%s", layer, suffix));
  if (t) t->used = true;
  return t;
}

static bool has_size(const lp_stored *t, int64_t rows, int64_t columns, lp_dtype dtype) {
  return t && t->rank == 2 && t->dim[0] == rows && t->dim[1] == columns && t->dtype == dtype;
}

/* Tells whether the groups follow each other along k. */
static bool in_order(const packed *p) {
  for (int64_t k = 0; p->index && k < p->k; k++)
    if ((int64_t)word_at(p->index, k) != k / p->group) return false;
  return true;
}

static bool valid_index(const packed *p) {
  for (int64_t k = 0; p->index && k < p->k; k++)
    if (word_at(p->index, k) >= p->groups) return false;
  return true;
}

static lp_status fail(const lp_weights *w, const char *layer) {
  return lp_error(w->diag, LP_LOC_FILE(w->path), "the packed matrix '%s' has a part that is missing or of another size",
                  layer);
}

/* Finds sizes and parts of the matrix whose codes are `t`. */
static lp_status find_parts(lp_weights *w, const char *layer, const lp_stored *t, packed *p) {
  const lp_packing *c = &p->packing;
  const bool rows = c->kind == LP_PACKING_ROWS, float8 = c->kind == LP_PACKING_FLOAT8;
  const int64_t per = float8 ? 1 : 32 / c->bits;
  const lp_stored *scales = find_part(w, layer, rows || float8 ? ".weight_scale" : ".scales");
  const lp_stored *zeros = float8 ? NULL : find_part(w, layer, rows ? ".weight_zero_point" : ".qzeros");
  const lp_stored *index = float8 ? NULL : find_part(w, layer, rows ? ".weight_g_idx" : ".g_idx");
  if (!scales && float8) scales = find_part(w, layer, ".weight_scale_inv");
  if (rows) (void)find_part(w, layer, ".weight_shape");
  if (float8) (void)find_part(w, layer, ".input_scale");
  if (!scales || t->rank != 2 || scales->rank > 2 || !lp_dtype_is_float(scales->dtype)) return fail(w, layer);
  p->n = rows || float8 ? t->dim[0] : c->kind == LP_PACKING_AWQ ? t->dim[1] * per : t->dim[1];
  p->k = rows || float8 ? t->dim[1] * per : c->kind == LP_PACKING_AWQ ? t->dim[0] : t->dim[0] * per;
  p->group = c->group > 0 && c->group < p->k ? c->group : p->k;
  if (p->k < 1 || p->n < 1) return fail(w, layer);
  p->groups = (p->k + p->group - 1) / p->group;
  const bool columns = !rows && !float8;
  const int64_t across = scales->rank > 1 ? scales->dim[1] : 1, down = scales->rank > 0 ? scales->dim[0] : 1;
  p->scale_rows = columns ? p->n : down;
  p->scale_dtype = scales->dtype;
  const int64_t blocks = c->block_rows > 0 ? (p->n + c->block_rows - 1) / c->block_rows : p->n;
  const bool fits = columns ? down == p->groups && across == p->n
                            : across == p->groups && (down == p->n || down == blocks || (float8 && down == 1));
  if (!fits || ((columns || zeros) && p->n % per != 0)) return fail(w, layer);
  if (zeros &&
      !(rows ? has_size(zeros, p->n / per, p->groups, LP_I32) : has_size(zeros, p->groups, p->n / per, LP_I32)))
    return fail(w, layer);
  if (index && (index->rank != 1 || index->dim[0] != p->k || index->dtype != LP_I32)) return fail(w, layer);
  p->codes = lp_weights_bytes(w, t);
  p->scales = lp_weights_bytes(w, scales);
  p->zeros = zeros ? lp_weights_bytes(w, zeros) : NULL;
  p->index = index ? lp_weights_bytes(w, index) : NULL;
  return valid_index(p) ? LP_OK : fail(w, layer);
}

/* Adds the matrix LAYER.weight, of codes, or widened. `rounded` counts those that are rounded again. */
static lp_status add_matrix(lp_weights *w, const lp_packing *packing, const char *layer, lp_stored *t, bool widened,
                            size_t *rounded) {
  packed p = {.packing = *packing};
  lp_stored *matrix = packing->kind == LP_PACKING_FLOAT8 ? t : LP_NEW(w->module->arena, lp_stored);
  LP_TRY(find_parts(w, layer, t, &p));
  const char *source = t->file, *name = lp_arena_format(w->module->arena, "%s.weight", layer);
  t->used = packing->kind != LP_PACKING_FLOAT8;
  source = lp_arena_format(w->module->arena, "%s#%s", source, layer);
  if (widened) {
    *matrix = (lp_stored){.name = name, .dtype = LP_BF16, .rank = 2, .dim = {p.n, p.k}, .bytes = 2 * p.n * p.k};
    matrix->file = add_file(w, &p, source, VALUES, 16 * p.n * p.k);
    if (matrix != t) lp_map_put(w->tensors, name, matrix);
    return LP_OK;
  }
  if (packing->kind == LP_PACKING_FLOAT8) { /* the codes stay where they are */
    p.exact = true;
    t->group = p.group;
    t->scales = add_file(w, &p, source, SCALES, p.n * p.groups * 32);
    return LP_OK;
  }
  p.exact = in_order(&p) && p.k % p.group == 0;
  if (!p.exact && p.k % GROUP != 0)
    return lp_error(w->diag, LP_LOC_FILE(w->path), "the packed matrix '%s' has %" PRId64 " inputs, no multiple of %d",
                    layer, p.k, GROUP);
  *rounded += !p.exact;
  *matrix = (lp_stored){.name = name, .rank = 2, .dim = {p.n, p.k}, .group = p.exact ? p.group : GROUP};
  const bool wide = !p.exact || packing->bits == 8;
  matrix->dtype = !p.exact ? LP_I8 : p.zeros ? (wide ? LP_U8 : LP_U4) : wide ? LP_I8 : LP_I4;
  const int64_t groups = p.k / matrix->group, bits = wide ? 8 : 4;
  matrix->file = add_file(w, &p, source, CODES, p.n * p.k * bits);
  matrix->scales = add_file(w, &p, source, SCALES, p.n * groups * 32);
  if (p.exact && p.zeros) matrix->zeros = add_file(w, &p, source, ZEROS, p.n * groups * bits);
  matrix->bytes = p.n * p.k * bits / 8;
  lp_map_put(w->tensors, name, matrix);
  return LP_OK;
}

lp_status lp_packing_apply(const lp_packing *packing, const lp_decoder *decoder, lp_weights *w) {
  static const char *const suffixes[] = {[LP_PACKING_GPTQ] = ".qweight",
                                         [LP_PACKING_AWQ] = ".qweight",
                                         [LP_PACKING_ROWS] = ".weight_packed",
                                         [LP_PACKING_FLOAT8] = ".weight"};
  const char *heads = decoder->names[LP_ROLE_KV_B];
  if (packing->kind == LP_PACKING_BITSANDBYTES)
    return lp_bitsandbytes_apply(packing, heads ? heads + strlen("layers.%d") : NULL, w);
  const char *suffix = suffixes[packing->kind];
  size_t count = lp_map_count(w->tensors), rounded = 0;
  for (size_t i = 0; packing->kind != LP_PACKING_NONE && i < count; i++) {
    const char *key = lp_map_key_at(w->tensors, i);
    lp_stored *t = lp_map_value_at(w->tensors, i);
    const lp_dtype dtype = packing->kind == LP_PACKING_FLOAT8 ? LP_F8E4M3FN : LP_I32;
    if (!lp_has_suffix(key, suffix) || t->dtype != dtype) continue;
    const char *layer = lp_arena_strndup(w->module->arena, key, strlen(key) - strlen(suffix));
    LP_TRY(add_matrix(w, packing, layer, t, heads && lp_has_suffix(layer, heads + strlen("layers.%d")), &rounded));
  }
  if (rounded > 0)
    lp_note(w->diag, LP_LOC_FILE(w->path),
            "%zu packed matrices are rounded again, to int8 in groups of 32: each value moves by at most 1/254 of the "
            "greatest of its group",
            rounded);
  return LP_OK;
}
