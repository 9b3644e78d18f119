#include "runtime/router/decider_session.h"
#include "runtime/runtime.h"

lp_status lp_reader_open(const char *bundle, int32_t threads, lp_reader *out, lp_diag *diag) {
  *out = (lp_reader){0};
  lp_bundle_options load = {.load = LP_LOAD_ALL};
  lp_status status = lp_bundle_load(bundle, &load, &out->bundle, diag);
  lp_generate_options options = {.max_tokens = 1, .ignore_eos = true, .threads = threads};
  if (status == LP_OK) status = lp_session_open(out->bundle, &options, &out->session, diag);
  if (status != LP_OK) lp_reader_close(out);
  return status;
}

lp_status lp_reader_logits(lp_reader *reader, const int32_t *tokens, size_t count, const float **out, lp_diag *diag) {
  lp_generation_free(&reader->last);
  reader->last = (lp_generation){0};
  lp_status status = lp_session_generate(reader->session, tokens, 1, (int64_t)count, NULL, NULL, &reader->last, diag);
  if (status != LP_OK) return status;
  if (reader->last.first_logits.size < (size_t)lp_bundle_vocab(reader->bundle) * sizeof(float))
    return lp_error(diag, (lp_loc){0}, "the bundle gives no logits: a router's model must run whole on this machine");
  const void *logits = reader->last.first_logits.data;
  *out = logits;
  return LP_OK;
}

void lp_reader_close(lp_reader *reader) {
  lp_generation_free(&reader->last);
  if (reader->session) lp_session_close(reader->session);
  if (reader->bundle) lp_bundle_free(reader->bundle);
  *reader = (lp_reader){0};
}
