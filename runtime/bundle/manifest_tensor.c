/* Tensors as manifest.json describes them: element types, sizes in bytes, and the readers of the fields that several
 * parts of the manifest have in common. */
#include "base/poly.h"
#include "runtime/bundle/manifest.h"
#include "runtime/bundle/manifest_reader.h"

static const char *const dtype_names[LP_DT_COUNT] = {
    "f32",  "f16", "bf16", "f64", "i64", "i32",      "i16",        "i8",     "u8",         "u16",    "u32",   "u64",
    "bool", "i4",  "u4",   "i2",  "u2",  "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1"};
static const uint8_t dtype_bits[LP_DT_COUNT] = {32, 16, 16, 64, 64, 32, 16, 8, 8, 16, 32, 64,
                                                8,  4,  4,  2,  2,  8,  8,  8, 8, 8,  4};

size_t lp_element_size(lp_element dtype) {
  return (dtype_bits[dtype] + 7u) / 8;
}
const char *lp_element_name(lp_element dtype) {
  return dtype_names[dtype];
}

bool lp_tensor_bytes(const lp_tensor_desc *tensor, const int64_t *sym, int32_t symbol_count, size_t *bytes) {
  size_t total = dtype_bits[tensor->dtype];
  for (int32_t i = 0; i < tensor->rank; i++) {
    int64_t dim = lp_poly_eval(tensor->shape[i], sym, (size_t)symbol_count);
    if (dim < 0 || !lp_size_mul(total, (size_t)dim, &total)) return false;
  }
  *bytes = total / 8 + (total % 8 != 0);
  return true;
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */

lp_status lp_manifest_side(const manifest_reader *reader, const lp_json *at, lp_place *out) {
  return lp_json_choice(at, reader->out->place_name, (size_t)reader->out->place_count, out, reader->diag);
}

lp_status lp_manifest_text(manifest_reader *reader, const lp_json *at, const char **out) {
  LP_TRY(lp_json_text(at, out, reader->diag));
  *out = lp_arena_strdup(reader->arena, *out);
  return LP_OK;
}

lp_status lp_manifest_tensor(manifest_reader *reader, const lp_json *at, lp_tensor_desc *out) {
  lp_json name = lp_json_member(at, "name"), dtype = lp_json_member(at, "dtype"), shape = lp_json_member(at, "shape");
  LP_TRY(lp_manifest_text(reader, &name, &out->name));
  int32_t choice = 0;
  LP_TRY(lp_json_choice(&dtype, dtype_names, LP_DT_COUNT, &choice, reader->diag));
  out->dtype = (lp_element)choice;
  LP_TRY(lp_json_array(&shape, reader->diag));
  size_t rank = lp_json_count(&shape);
  if (rank > LP_MAX_RANK) return lp_json_error(&shape, reader->diag, "%zu axes; at most %d", rank, LP_MAX_RANK);
  out->rank = (int32_t)rank;
  LP_FOR_ITEMS(dim, &shape)
    LP_TRY(lp_json_poly(&dim, reader->arena, &reader->out->symbols, &out->shape[dim.index], reader->diag));
  return LP_OK;
}
