/* The header of a safetensors file. */
#include "backend/safetensors.h"

#include "backend/constants.h"
#include "base/file.h"

static const char *safetensors_dtype(lp_dtype dtype) {
  static const char *const names[LP_DTYPE_COUNT] = {
      [LP_F32] = "F32", [LP_F16] = "F16", [LP_BF16] = "BF16", [LP_F64] = "F64", [LP_I8] = "I8",
      [LP_I16] = "I16", [LP_I32] = "I32", [LP_I64] = "I64",   [LP_U8] = "U8",   [LP_U16] = "U16",
      [LP_U32] = "U32", [LP_U64] = "U64", [LP_BOOL] = "BOOL"};
  return names[dtype] ? names[dtype] : "U8";
}

static void json_string(lp_buf *out, const char *text) {
  lp_buf_puts(out, "\"");
  for (const char *at = text; *at; at++) {
    if (*at == '"' || *at == '\\')
      lp_buf_printf(out, "\\%c", *at);
    else if ((unsigned char)*at < 0x20)
      lp_buf_printf(out, "\\u%04x", (unsigned)(unsigned char)*at);
    else
      lp_buf_append(out, at, 1);
  }
  lp_buf_puts(out, "\"");
}

/* The length, then JSON padded with spaces so that the data begins at a multiple of 64 bytes. */
void lp_safetensors_header(lp_writer *writer, const lp_stored_constant *const *list, size_t count) {
  lp_buf json = {0};
  lp_buf_puts(&json, "{");
  for (size_t i = 0; i < count; i++) {
    const lp_stored_constant *c = list[i];
    if (i) lp_buf_puts(&json, ",");
    json_string(&json, c->name);
    lp_buf_printf(&json, ":{\"dtype\":\"%s\",\"shape\":[", safetensors_dtype(c->dtype));
    bool packed = lp_dtype_bits(c->dtype) < 8; /* the format has no type under 8 bits: U8 */
    if (packed) lp_buf_printf(&json, "%" PRId64, c->bytes);
    for (int32_t k = 0; k < c->rank && !packed; k++)
      lp_buf_printf(&json, "%s%" PRId64, k ? "," : "", c->dim[k]);
    lp_buf_printf(&json, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", c->offset, c->offset + c->bytes);
  }
  lp_buf_puts(&json, "}");
  while ((json.size + 8) % 64 != 0)
    lp_buf_puts(&json, " ");
  unsigned char length[8];
  for (int i = 0; i < 8; i++)
    length[i] = (unsigned char)((uint64_t)json.size >> (8 * i));
  lp_writer_put(writer, length, sizeof length);
  lp_writer_put(writer, json.data, json.size);
  lp_buf_free(&json);
}
