/* Matrices that bitsandbytes has packed: NF4 with a scale for each block, or int8 with one for each row. Sources:
 * its QuantState, quantize_4bit and Int8Params; Dettmers et al., "QLoRA", section 3. */
#include "frontend/huggingface/huggingface.h"

#include "base/number.h"

#include <math.h>

enum { CHUNK = 32, HALF = 16, CHUNK_BYTES = 2 + HALF }; /* a block of the form NF4 */

/* The quantiles of a normal distribution that codes stand for (QLoRA, appendix E). */
static const float normal[16] = {
    -1,          -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f, -0.09105004f, 0,
    0.07958030f, 0.16093020f,  0.24611230f,  0.33791524f,  0.44070983f,  0.56261700f,  0.72295684f,  1};

/* Made of a packed matrix: blocks or bf16 of one in 4 bits, scales of one in int8. */
typedef struct {
  lp_made_file made;
  int64_t count, block;          /* elements; those that share a scale */
  const uint8_t *codes, *scales; /* scales: f32, or bytes if `nested` */
  const uint8_t *nested, *map;   /* f32: a factor for each nested_block scales, and what bytes stand for */
  int64_t nested_block;
  float offset;
} packed;

static float float_at(const uint8_t *data, int64_t at) {
  float value;
  memcpy(&value, data + 4 * at, sizeof value);
  return value;
}

static float scale_at(const packed *p, int64_t at) {
  if (!p->nested) return float_at(p->scales, at);
  return float_at(p->map, p->scales[at]) * float_at(p->nested, at / p->nested_block) + p->offset;
}

/* The first of two elements in a byte has the high bits. */
static int code_at(const packed *p, int64_t at) {
  return p->codes[at / 2] >> (at % 2 ? 0 : 4) & 15;
}

static void make_blocks(const lp_made_file *file, uint8_t *out) {
  const packed *p = (const packed *)file;
  for (int64_t at = 0; at < p->count; at += CHUNK, out += CHUNK_BYTES) {
    lp_put_bytes(out, lp_f32_to_f16(scale_at(p, at / p->block) / 127), 2);
    for (int64_t i = 0; i < HALF; i++)
      out[2 + i] = (uint8_t)(code_at(p, at + i) | code_at(p, at + HALF + i) << 4);
  }
}

static void make_values(const lp_made_file *file, uint8_t *out) {
  const packed *p = (const packed *)file;
  for (int64_t at = 0; at < p->count; at++, out += 2)
    lp_put_bytes(out, lp_f32_to_bf16(normal[code_at(p, at)] * scale_at(p, at / p->block)), 2);
}

static void make_scales(const lp_made_file *file, uint8_t *out) {
  const packed *p = (const packed *)file;
  for (int64_t row = 0; row < p->count; row++, out += 4) {
    const float scale = float_at(p->scales, row) / 127;
    memcpy(out, &scale, sizeof scale);
  }
}

static lp_status fail(const lp_weights *w, const lp_stored *t, const char *what) {
  return lp_error(w->diag, LP_LOC_FILE(w->path), "the packed matrix '%s' has %s", t->name, what);
}

/* The data of the tensor KEY.suffix, of `count` elements of `dtype`; NULL: there is none of that size. */
static const uint8_t *part_of(lp_weights *w, const char *key, const char *suffix, lp_dtype dtype, int64_t count) {
  lp_stored *t = lp_weights_find(w, lp_arena_format(w->module->arena, "%s%s", key, suffix));
  int64_t found = 1;
  if (!t || t->dtype != dtype) return NULL;
  for (int32_t i = 0; i < t->rank; i++)
    found *= t->dim[i];
  t->used = true;
  return found == count ? lp_weights_bytes(w, t) : NULL;
}

/* Adds what `make` makes of the matrix, as `file`. */
static const char *add_file(lp_weights *w, const packed *p, const char *file, int64_t bytes,
                            void (*make)(const lp_made_file *file, uint8_t *out)) {
  packed *own = lp_arena_copy(w->module->arena, p, sizeof *p);
  own->made = (lp_made_file){.size = (size_t)bytes, .make = make};
  lp_map_put(w->module->made, file, own);
  return file;
}

static int64_t blocks_of(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

/* Reads the sizes of a matrix, which are JSON in a tensor. */
static lp_status read_state(lp_weights *w, const char *key, const lp_stored *t, packed *p, int64_t dim[2]) {
  static const char suffix[] = ".quant_state.bitsandbytes__nf4";
  lp_stored *state = lp_weights_find(w, lp_arena_format(w->module->arena, "%s%s", key, suffix));
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  double offset = 0;
  if (!state || state->dtype != LP_U8 || state->rank != 1) return fail(w, t, "no quant_state of NF4");
  state->used = true;
  LP_TRY(lp_json_parse(state->name, (const char *)lp_weights_bytes(w, state), (size_t)state->dim[0], 0, &document,
                       w->diag));
  const lp_json root = lp_json_root(state->name, document), shape = lp_json_member(&root, "shape");
  const lp_json nested = lp_json_member(&root, "nested_blocksize");
  LP_TRY(lp_json_i64(LP_MEMBER(&root, "blocksize"), 1, 1 << 20, &p->block, w->diag));
  for (size_t i = 0; i < 2; i++)
    LP_TRY(lp_json_i64(LP_ITEM(&shape, i), 1, INT32_MAX, &dim[i], w->diag));
  if (!lp_json_is_given(&nested)) return LP_OK;
  LP_TRY(lp_json_i64(&nested, 1, 1 << 20, &p->nested_block, w->diag));
  LP_TRY(lp_json_number(LP_MEMBER(&root, "nested_offset"), -1e30, 1e30, &offset, w->diag));
  p->offset = (float)offset;
  return LP_OK;
}

/* Finds the scales, and compares what the codes stand for. */
static lp_status find_scales(lp_weights *w, const char *key, const lp_stored *t, packed *p) {
  const int64_t scales = blocks_of(p->count, p->block);
  const uint8_t *map = part_of(w, key, ".quant_map", LP_F32, 16);
  p->scales = part_of(w, key, ".absmax", p->nested_block > 0 ? LP_U8 : LP_F32, scales);
  if (p->nested_block > 0) {
    p->nested = part_of(w, key, ".nested_absmax", LP_F32, blocks_of(scales, p->nested_block));
    p->map = part_of(w, key, ".nested_quant_map", LP_F32, 256);
  }
  if (!p->scales || !map || (p->nested_block > 0 && (!p->nested || !p->map)))
    return fail(w, t, "a part that is missing or of another size");
  for (int i = 0; i < 16; i++)
    if (!(fabsf(float_at(map, i) - normal[i]) < 1e-5f)) return fail(w, t, "codes of other values than NF4");
  return LP_OK;
}

static lp_status add_nibbles(lp_weights *w, const char *key, lp_stored *t, bool widened) {
  packed p = {.codes = lp_weights_bytes(w, t)};
  int64_t dim[2];
  LP_TRY(read_state(w, key, t, &p, dim));
  p.count = dim[0] * dim[1];
  if (t->dtype != LP_U8 || t->dim[0] * (t->rank > 1 ? t->dim[1] : 1) != blocks_of(p.count, 2))
    return fail(w, t, "other sizes than its quant_state");
  if (!widened && (dim[1] % CHUNK != 0 || p.block % CHUNK != 0))
    return fail(w, t, "rows or blocks of a size that is no multiple of 32");
  LP_TRY(find_scales(w, key, t, &p));
  const int64_t bytes = widened ? 2 * p.count : p.count / CHUNK * CHUNK_BYTES;
  const char *file = lp_arena_format(w->module->arena, "%s#%s", t->file, key);
  *t = (lp_stored){
      .name = t->name, .dtype = widened ? LP_BF16 : LP_F32, .rank = 2, .dim = {dim[0], dim[1]}, .bytes = bytes};
  t->form = widened ? NULL : lp_block_form_named("NF4");
  t->file = add_file(w, &p, file, bytes, widened ? make_values : make_blocks);
  return LP_OK;
}

/* The codes stay where they are. */
static lp_status add_bytes(lp_weights *w, const char *layer, lp_stored *t) {
  packed p = {.count = t->dim[0], .scales = part_of(w, layer, ".SCB", LP_F32, t->dim[0])};
  const uint8_t *format = part_of(w, layer, ".weight_format", LP_U8, 1);
  if (t->rank != 2 || !p.scales || (format && *format != 0))
    return fail(w, t, "no scale for each row, or codes in another order than by rows");
  t->group = t->dim[1];
  t->scales = add_file(w, &p, lp_arena_format(w->module->arena, "%s#%s.SCB", t->file, layer), 4 * p.count, make_scales);
  return LP_OK;
}

lp_status lp_bitsandbytes_apply(const lp_packing *packing, const char *widened, lp_weights *w) {
  static const char suffix[] = ".weight";
  const size_t count = lp_map_count(w->tensors);
  size_t rounded = 0;
  for (size_t i = 0; i < count; i++) {
    const char *key = lp_map_key_at(w->tensors, i);
    lp_stored *t = lp_map_value_at(w->tensors, i);
    if (!lp_has_suffix(key, suffix) || t->dtype != (packing->bits == 4 ? LP_U8 : LP_I8) ||
        (t->rank != 1 && t->rank != 2))
      continue;
    const char *layer = lp_arena_strndup(w->module->arena, key, strlen(key) - strlen(suffix));
    const bool wide = widened && lp_has_suffix(layer, widened);
    if (packing->bits == 8 && wide) return fail(w, t, "int8 codes, of which a part is needed transposed");
    LP_TRY(packing->bits == 8 ? add_bytes(w, layer, t) : add_nibbles(w, key, t, wide));
    rounded += packing->bits == 4 && !wide;
  }
  if (rounded > 0)
    lp_note(w->diag, LP_LOC_FILE(w->path),
            "the 16 values of NF4 in %zu matrices become multiples of 1/127 of the greatest of their block: a weight "
            "moves by at most 1/254 of it",
            rounded);
  return LP_OK;
}
