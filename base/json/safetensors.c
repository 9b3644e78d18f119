/* Reads the header of a safetensors file: see safetensors.h. */
#include "base/json/safetensors.h"
#include "base/json/reader.h"

enum { HEADER_LIMIT = 100 << 20 };

/* The element types of the format and their sizes in bytes. */
static const struct {
  const char *name;
  size_t size;
} dtypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},     {"I32", 4},     {"I16", 2}, {"I8", 1},
              {"U8", 1},  {"U16", 2}, {"U32", 4}, {"U64", 8},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"BOOL", 1}};

/* Type and shape, and the number of bytes that they take. */
static lp_status read_type(const lp_json *at, lp_arena *arena, lp_safetensor *out, lp_diag *diag) {
  lp_json dtype = lp_json_member(at, "dtype"), shape = lp_json_member(at, "shape");
  const char *name = NULL;
  LP_TRY(lp_json_text(&dtype, &name, diag));
  out->bytes = 0;
  for (size_t i = 0; i < LP_COUNT(dtypes); i++)
    if (lp_streq(name, dtypes[i].name)) out->bytes = dtypes[i].size;
  if (out->bytes == 0) return lp_json_error(&dtype, diag, "unknown type '%.40s'", name);
  out->dtype = lp_arena_strdup(arena, name);
  LP_TRY(lp_json_array(&shape, diag));
  if (lp_json_count(&shape) > LP_SAFETENSORS_MAX_RANK)
    return lp_json_error(&shape, diag, "%zu axes; at most %d are supported", lp_json_count(&shape),
                         LP_SAFETENSORS_MAX_RANK);
  LP_FOR_ITEMS(dim, &shape) {
    LP_TRY(lp_json_i64(&dim, 0, INT64_MAX, &out->dim[out->rank], diag));
    if (!lp_size_mul(out->bytes, (size_t)out->dim[out->rank++], &out->bytes))
      return lp_json_error(&shape, diag, "the size overflows");
  }
  return LP_OK;
}

static lp_status read_tensor(const lp_json *at, size_t data_size, lp_arena *arena, lp_safetensor *out, lp_diag *diag) {
  LP_TRY(lp_json_object(at, diag));
  out->name = lp_arena_strdup(arena, at->key);
  LP_TRY(read_type(at, arena, out, diag));
  lp_json offsets = lp_json_member(at, "data_offsets");
  LP_TRY(lp_json_array(&offsets, diag));
  if (lp_json_count(&offsets) != 2) return lp_json_error(&offsets, diag, "wanted two offsets");
  lp_json first = lp_json_item(&offsets, 0), last = lp_json_item(&offsets, 1);
  int64_t begin = 0, end = 0;
  LP_TRY(lp_json_i64(&first, 0, (int64_t)data_size, &begin, diag));
  LP_TRY(lp_json_i64(&last, begin, (int64_t)data_size, &end, diag));
  out->offset = (size_t)begin;
  if ((size_t)(end - begin) == out->bytes) return LP_OK;
  return lp_json_error(&offsets, diag, "%" PRId64 " bytes; dtype and shape take %zu", end - begin, out->bytes);
}

static lp_status read_header(const lp_json *root, size_t data_size, lp_arena *arena, lp_safetensors *out,
                             lp_diag *diag) {
  LP_TRY(lp_json_object(root, diag));
  out->tensor = LP_NEW_ARRAY(arena, lp_safetensor, lp_json_count(root) + 1);
  for (size_t i = 0; i < lp_json_count(root); i++) {
    lp_json tensor = lp_json_entry(root, i);
    if (lp_streq(tensor.key, "__metadata__")) continue;
    LP_TRY(read_tensor(&tensor, data_size, arena, &out->tensor[out->count], diag));
    out->tensor[out->count++].offset += out->data_offset;
  }
  return LP_OK;
}

lp_status lp_safetensors_read(const char *path, const uint8_t *data, size_t size, size_t alignment, lp_arena *arena,
                              lp_safetensors *out, lp_diag *diag) {
  uint64_t header = 0;
  *out = (lp_safetensors){0};
  if (size < sizeof header) return lp_error(diag, LP_LOC_FILE(path), "not a safetensors file: %zu bytes", size);
  for (size_t i = 0; i < sizeof header; i++)
    header |= (uint64_t)data[i] << (8 * i);
  if (header > HEADER_LIMIT || header > size - sizeof header)
    return lp_error(diag, LP_LOC_FILE(path), "header of %" PRIu64 " bytes does not fit a file of %zu", header, size);
  out->data_offset = sizeof header + (size_t)header;
  if (out->data_offset % alignment != 0)
    return lp_error(diag, LP_LOC_FILE(path), "the data section begins at %zu, no multiple of %zu", out->data_offset,
                    alignment);
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  LP_TRY(lp_json_parse(path, (const char *)data + sizeof header, (size_t)header, LP_JSON_REFUSE_NUL, &document, diag));
  lp_json root = lp_json_root(path, document);
  return read_header(&root, size - out->data_offset, arena, out, diag);
}
