/* Makes the source of an encoder: the prompt's tokens, or features from a file. */
#include "tools/run/source.h"

#include "base/file.h"

/* ---- features ---------------------------------------------------------------------------------------------------- */

enum { NPY_HEAD = 10 }; /* magic, version, and the length of the header in two bytes */

/* Finds the data of a .npy file, which must be little-endian f32 in C order. A file without its magic number is such
 * data from byte 0 on. */
static lp_status find_data(const char *path, const char *data, size_t size, size_t *begin, lp_diag *diag) {
  *begin = 0;
  if (size < NPY_HEAD || memcmp(data, "\x93NUMPY", 6) != 0) return LP_OK;
  const unsigned char *bytes = (const unsigned char *)data;
  size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8, head = NPY_HEAD;
  if (bytes[6] > 1 && size >= NPY_HEAD + 2) {
    length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    head += 2;
  }
  if (length > size - head) return lp_error(diag, LP_LOC_FILE(path), "the header of the .npy file is cut off");
  char *text = lp_alloc(length + 1);
  memcpy(text, data + head, length);
  text[length] = '\0';
  bool fits = strstr(text, "'<f4'") && strstr(text, "'fortran_order': False");
  free(text);
  *begin = head + length;
  return fits ? LP_OK : lp_error(diag, LP_LOC_FILE(path), "the .npy file does not hold float32 in C order");
}

static lp_status read_features(const char *path, int64_t batch, lp_run_source *out, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *data = NULL;
  size_t size = 0, begin = 0;
  LP_TRY(lp_file_read(path, &data, &size, diag));
  lp_status status = find_data(path, data, size, &begin, diag);
  size_t count = (size - begin) / sizeof(float);
  if (status == LP_OK && ((size - begin) % sizeof(float) != 0 || count == 0))
    status = lp_error(diag, LP_LOC_FILE(path), "%zu bytes are no float32 numbers", size - begin);
  for (int64_t k = 0; status == LP_OK && k < batch; k++)
    for (size_t i = 0; i < count; i++) {
      float number;
      memcpy(&number, data + begin + i * sizeof number, sizeof number);
      lp_vec_push(&out->features, number);
    }
  return status;
}

/* ---- the decoder's prompt ---------------------------------------------------------------------------------------- */

static lp_status check_lengths(const lp_run_prompt *prompt, lp_diag *diag) {
  for (size_t i = 1; i < prompt->lengths.count; i++)
    if (prompt->lengths.data[i] != prompt->lengths.data[0])
      return lp_error(diag, LP_LOC_FILE("--tokens"),
                      "rows of %" PRId64 " and %" PRId64 " tokens; a batch takes equal ones", prompt->lengths.data[0],
                      prompt->lengths.data[i]);
  return LP_OK;
}

/* Reads a row for each sequence, or one row for all sequences. */
static lp_status read_decoder_tokens(const lp_prompt_flags *flags, int64_t batch, lp_run_prompt *out, lp_diag *diag) {
  if (lp_prompt_read_rows(flags->decoder_tokens, "--decoder-tokens", out, diag) != LP_OK) return LP_USAGE;
  LP_TRY(check_lengths(out, diag));
  if (out->batch != 1 && out->batch != batch)
    return lp_error(diag, LP_LOC_FILE("--decoder-tokens"), "%" PRId64 " rows for %" PRId64 " sequences", out->batch,
                    batch);
  return LP_OK;
}

static lp_status begin_decoder(const lp_prompt_flags *flags, const lp_bundle *bundle, int64_t batch, lp_run_prompt *out,
                               lp_diag *diag) {
  const int32_t *start;
  size_t count = lp_bundle_start(bundle, &start);
  if (flags->decoder_tokens)
    LP_TRY(read_decoder_tokens(flags, batch, out, diag));
  else if (count == 0)
    return lp_error(diag, LP_LOC_FILE(flags->file),
                    "the model's files do not name the token that its decoder begins with: give --decoder-tokens=IDS");
  for (size_t i = 0; !flags->decoder_tokens && i < count; i++)
    lp_vec_push(&out->ids, start[i]);
  if (!flags->decoder_tokens) out->batch = 1;
  out->length = (int64_t)out->ids.count / out->batch;
  for (; out->batch < batch; out->batch++)
    for (int64_t i = 0; i < out->length; i++)
      lp_vec_push(&out->ids, out->ids.data[i]);
  return LP_OK;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static lp_status check_flags(const lp_prompt_flags *flags, const lp_bundle *bundle, lp_diag *diag) {
  bool reads = lp_bundle_reads_source(bundle), features = lp_bundle_reads_features(bundle);
  if (!reads && flags->decoder_tokens)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--decoder-tokens"), "the model has no encoder");
  if (flags->features && !features)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--features"), "the model reads no features");
  if (features && !flags->features)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(flags->file),
                       "the model's encoder reads features: give --features=FILE");
  return LP_OK;
}

lp_status lp_run_source_make(const lp_prompt_flags *flags, const lp_bundle *bundle, lp_run_prompt *prompt,
                             lp_run_source *out, lp_diag *diag) {
  *out = (lp_run_source){0};
  LP_TRY(check_flags(flags, bundle, diag));
  if (!lp_bundle_reads_source(bundle)) return check_lengths(prompt, diag);
  int64_t batch = flags->features ? flags->batch : prompt->batch;
  out->text = *prompt;
  *prompt = (lp_run_prompt){0};
  if (flags->features) LP_TRY(read_features(flags->features, batch, out, diag));
  out->source = (lp_source){.tokens = out->text.ids.data,
                            .lengths = out->text.lengths.data,
                            .features = out->features.data,
                            .feature_count = out->features.count};
  return begin_decoder(flags, bundle, batch, prompt, diag);
}

void lp_run_source_free(lp_run_source *source) {
  lp_run_prompt_free(&source->text);
  lp_vec_free(&source->features);
}
