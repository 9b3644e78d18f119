/* Checks the structure of a weights file: see safetensors.h. */
#include <string.h>

#include "base/file.h"
#include "base/json/reader.h"
#include "runtime/bundle/safetensors.h"

enum { DATA_ALIGNMENT = 64, HEADER_LIMIT = 100 << 20 };

/* The element types of the format and their sizes in bytes. */
static const struct {
  const char *name;
  size_t size;
} dtypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},     {"I32", 4},     {"I16", 2}, {"I8", 1},
              {"U8", 1},  {"U16", 2}, {"U32", 4}, {"U64", 8},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"BOOL", 1}};

static lp_status read_size(const lp_json *tensor, size_t *bytes, lp_diag *diag) {
  lp_json dtype = lp_json_member(tensor, "dtype"), shape = lp_json_member(tensor, "shape");
  const char *name = NULL;
  LP_TRY(lp_json_text(&dtype, &name, diag));
  *bytes = 0;
  for (size_t i = 0; i < LP_COUNT(dtypes); i++)
    if (lp_streq(name, dtypes[i].name)) *bytes = dtypes[i].size;
  if (*bytes == 0) return lp_json_error(&dtype, diag, "unknown type '%.40s'", name);
  LP_TRY(lp_json_array(&shape, diag));
  for (size_t i = 0; i < lp_json_count(&shape); i++) {
    lp_json dim = lp_json_item(&shape, i);
    int64_t value = 0;
    LP_TRY(lp_json_i64(&dim, 0, INT64_MAX, &value, diag));
    if (!lp_size_mul(*bytes, (size_t)value, bytes)) return lp_json_error(&shape, diag, "the size overflows");
  }
  return LP_OK;
}

static lp_status check_tensor(const lp_json *tensor, size_t data_size, lp_diag *diag) {
  LP_TRY(lp_json_object(tensor, diag));
  size_t bytes = 0;
  LP_TRY(read_size(tensor, &bytes, diag));
  lp_json offsets = lp_json_member(tensor, "data_offsets");
  LP_TRY(lp_json_array(&offsets, diag));
  if (lp_json_count(&offsets) != 2) return lp_json_error(&offsets, diag, "wanted two offsets");
  lp_json first = lp_json_item(&offsets, 0), last = lp_json_item(&offsets, 1);
  int64_t begin = 0, end = 0;
  LP_TRY(lp_json_i64(&first, 0, (int64_t)data_size, &begin, diag));
  LP_TRY(lp_json_i64(&last, begin, (int64_t)data_size, &end, diag));
  if ((size_t)(end - begin) == bytes) return LP_OK;
  return lp_json_error(&offsets, diag, "%" PRId64 " bytes; dtype and shape take %zu", end - begin, bytes);
}

static lp_status check_header(const lp_json *root, size_t data_size, lp_diag *diag) {
  LP_TRY(lp_json_object(root, diag));
  for (size_t i = 0; i < lp_json_count(root); i++) {
    lp_json tensor = lp_json_entry(root, i);
    if (lp_streq(tensor.key, "__metadata__")) continue;
    LP_TRY(check_tensor(&tensor, data_size, diag));
  }
  return LP_OK;
}

lp_status lp_safetensors_check(const char *path, const lp_mapping *mapping, size_t *data_offset, lp_diag *diag) {
  uint64_t header = 0;
  if (mapping->size < sizeof header)
    return lp_error(diag, LP_LOC_FILE(path), "not a safetensors file: %zu bytes", mapping->size);
  for (size_t i = 0; i < sizeof header; i++)
    header |= (uint64_t)mapping->data[i] << (8 * i);
  if (header > HEADER_LIMIT || header > mapping->size - sizeof header)
    return lp_error(diag, LP_LOC_FILE(path), "header of %" PRIu64 " bytes does not fit a file of %zu", header,
                    mapping->size);
  *data_offset = sizeof header + (size_t)header;
  if (*data_offset % DATA_ALIGNMENT != 0)
    return lp_error(diag, LP_LOC_FILE(path), "the data section begins at %zu, no multiple of %d", *data_offset,
                    DATA_ALIGNMENT);
  lp_json_document *document = NULL;
  LP_TRY(lp_json_parse(path, (const char *)mapping->data + sizeof header, (size_t)header, 0, &document, diag));
  lp_json root = lp_json_root(path, document);
  lp_status status = check_header(&root, mapping->size - *data_offset, diag);
  lp_json_free(document);
  return status;
}
