/* Experts of gpt-oss and Llama 4: matrices [experts][inputs][outputs] of gates and ups, or [experts][outputs] in MXFP4,
 * become one tensor of gates, one of ups and one of downs, [experts][outputs][inputs] each, made when read.
 * Sources: transformers' GptOssExperts and convert_moe_packed_tensors. */
#include "frontend/huggingface/huggingface.h"

enum { BLOCK = 32, HALF = 16 }; /* elements of a block of MXFP4, and its bytes without the scale */

/* The `count` outputs `first`, `first` + `step`, .. of the matrix of each expert. */
typedef struct {
  lp_made_file made;
  const uint8_t *data, *scales; /* scales: of blocks; NULL: elements of `bytes` bytes */
  int64_t experts, inputs, outputs, first, step, count, bytes;
} expert_file;

static void make_elements(const lp_made_file *file, uint8_t *out) {
  const expert_file *f = (const expert_file *)file;
  const size_t bytes = (size_t)f->bytes;
  for (int64_t e = 0; e < f->experts; e++)
    for (int64_t n = f->first, end = n + f->count * f->step; n < end; n += f->step)
      for (int64_t k = 0; k < f->inputs; k++, out += bytes)
        memcpy(out, f->data + ((e * f->inputs + k) * f->outputs + n) * f->bytes, bytes);
}

/* Blocks as ggml has them: the scale, then the first half of the elements in the low bits of bytes. In the file
 * neighbours share a byte. */
static void make_blocks(const lp_made_file *file, uint8_t *out) {
  const expert_file *f = (const expert_file *)file;
  const int64_t blocks = f->inputs / BLOCK;
  for (int64_t row = 0; row < f->experts * f->outputs; row++) {
    const int64_t n = row % f->outputs - f->first;
    if (n < 0 || n % f->step != 0 || n / f->step >= f->count) continue;
    for (int64_t b = row * blocks; b < (row + 1) * blocks; b++) {
      const uint8_t *from = f->data + b * HALF;
      *out++ = f->scales[b];
      for (int i = 0; i < HALF; i++, out++) {
        const int shift = i % 2 * 4;
        *out = (uint8_t)((from[i / 2] >> shift & 15) | (from[(i + HALF) / 2] >> shift & 15) << 4);
      }
    }
  }
}

/* Adds the tensor `name`: part `index` of `parts` of the outputs of `t`, a matrix or, of rank 2, a bias. */
static lp_status add_part(lp_weights *w, const lp_stored *t, const lp_stored *scales, const char *name, int64_t index,
                          int64_t parts, lp_gate_order order) {
  lp_arena *arena = w->module->arena;
  lp_stored *part = LP_NEW(arena, lp_stored);
  expert_file *f = LP_NEW(arena, expert_file);
  const bool bias = t->rank == 2;
  const int64_t inputs = bias ? 1 : scales ? t->dim[2] * BLOCK : t->dim[1];
  const int64_t outputs = t->dim[scales || bias ? 1 : 2], count = outputs / parts;
  const int64_t kept = t->dim[0] * count;
  const bool left = order == LP_GATES_LEFT;
  *f = (expert_file){.data = lp_weights_bytes(w, t),
                     .scales = scales ? lp_weights_bytes(w, scales) : NULL,
                     .experts = t->dim[0],
                     .inputs = inputs,
                     .outputs = outputs,
                     .first = left ? index * count : index,
                     .step = left ? 1 : parts,
                     .count = count,
                     .bytes = lp_dtype_bits(t->dtype) / 8};
  *part = (lp_stored){.name = name, .dtype = scales ? LP_F32 : t->dtype, .rank = bias ? 2 : 3};
  part->form = scales ? lp_block_form_named("MXFP4") : NULL;
  part->bytes = kept * inputs * f->bytes;
  if (scales) part->bytes = kept * (inputs / BLOCK) * (HALF + 1);
  part->dim[0] = t->dim[0];
  part->dim[1] = count;
  part->dim[2] = inputs;
  part->file = lp_arena_format(arena, "%s#%s", t->file, name);
  f->made = (lp_made_file){(size_t)part->bytes, scales ? make_blocks : make_elements};
  lp_map_put(w->module->made, part->file, f);
  if (!lp_map_put(w->tensors, name, part)) return LP_OK;
  return lp_error(w->diag, LP_LOC_FILE(w->path), "tensor '%s' occurs twice", name);
}

static bool are_blocks(const lp_stored *t, const lp_stored *scales) {
  bool fit =
      t->rank == 4 && t->dtype == LP_U8 && t->dim[3] == HALF && scales && scales->rank == 3 && scales->dtype == LP_U8;
  for (int i = 0; i < 3 && fit; i++)
    fit = scales->dim[i] == t->dim[i];
  return fit;
}

lp_status lp_huggingface_part_experts(const lp_decoder *decoder, lp_weights *w) {
  static const char *const kinds[] = {"", "_bias", "_blocks"};
  const size_t count = lp_map_count(w->tensors);
  for (size_t i = 0; i < count && decoder->mixture.gates != LP_GATES_FIRST; i++) {
    lp_stored *t = lp_map_value_at(w->tensors, i), *scales = NULL;
    const char *key = lp_map_key_at(w->tensors, i), *at = strstr(key, "experts."), *suffix = NULL;
    const bool both = at && strstr(at, "gate_up_proj"), down = at && strstr(at, "down_proj");
    if (!both && !down) continue;
    at = strstr(at, both ? "gate_up_proj" : "down_proj");
    for (size_t k = 0; k < LP_COUNT(kinds); k++)
      if (lp_streq(at + strlen(both ? "gate_up_proj" : "down_proj"), kinds[k])) suffix = kinds[k];
    if (!suffix || t->rank < 1 || t->dim[0] < 1) continue;
    lp_arena *arena = w->module->arena;
    const int stem = (int)(at - key);
    if (lp_streq(suffix, "_blocks")) {
      scales = lp_weights_find(w, lp_arena_format(arena, "%.*s_scales", (int)(strlen(key) - strlen(suffix)), key));
      if (!are_blocks(t, scales))
        return lp_error(w->diag, LP_LOC_FILE(w->path), "the blocks '%s' have no scales of their shape", t->name);
      scales->used = true;
      suffix = "";
    } else if (t->rank != (suffix[0] ? 2 : 3) || !lp_dtype_is_float(t->dtype) || lp_dtype_bits(t->dtype) < 16) {
      return lp_error(w->diag, LP_LOC_FILE(w->path), "tensor '%s' is no matrix of experts", t->name);
    }
    if (both && t->dim[scales || t->rank == 2 ? 1 : 2] % 2 != 0)
      return lp_error(w->diag, LP_LOC_FILE(w->path), "tensor '%s' has not as many gates as ups", t->name);
    t->used = true;
    for (int64_t k = 0; k < (both ? 2 : 1); k++)
      LP_TRY(add_part(w, t, scales,
                      lp_arena_format(arena, "%.*s%s%s", stem, key,
                                      !both ? "down"
                                      : k   ? "up"
                                            : "gate",
                                      suffix),
                      k, both ? 2 : 1, decoder->mixture.gates));
  }
  return LP_OK;
}
