/* Turns the flags of `llmpart run` into the tokens from which it continues. */
#include "tools/run/prompt.h"

#include "base/file.h"
#include "base/units.h"

int lp_prompts_given(const lp_prompt_flags *flags) {
  return (flags->text != NULL) + (flags->chat != NULL) + (flags->said != NULL) + (flags->tokens != NULL) +
         (flags->features != NULL);
}

void lp_prompt_settle(lp_prompt_flags *flags, const lp_bundle *bundle) {
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(bundle);
  if (!flags->said) return;
  *(tokenizer && lp_tokenizer_has_chat_template(tokenizer) ? &flags->chat : &flags->text) = flags->said;
  flags->said = NULL;
}

void lp_run_prompt_free(lp_run_prompt *prompt) {
  lp_vec_free(&prompt->ids);
  lp_vec_free(&prompt->lengths);
}

/* What an option gives: the text itself, or with "@FILE" or "-" that of a file or of stdin, without its last newline.
 * "@@" begins a text with "@". */
static lp_status read_given(const char *given, char **text, size_t *size, lp_diag *diag) {
  const bool names_file = given[0] == '@' && given[1] != '@';
  if (!names_file && !lp_streq(given, "-")) {
    *text = lp_strdup(given + (given[0] == '@'));
    *size = strlen(*text);
    return LP_OK;
  }
  LP_TRY(lp_file_read(names_file ? given + 1 : given, text, size, diag));
  if (*size > 0 && (*text)[*size - 1] == '\n') (*text)[--*size] = '\0';
  return LP_OK;
}

lp_status lp_prompt_read_rows(const char *text, const char *option, lp_run_prompt *out, lp_diag *diag) {
  lp_loc loc = LP_LOC_FILE(option);
  static const char blanks[] = ", \n";
  char *copy, *rest = NULL;
  size_t size;
  LP_TRY(read_given(text, &copy, &size, diag));
  lp_status status = LP_OK;
  for (char *row = strtok_r(copy, ";", &rest); row && status == LP_OK; row = strtok_r(NULL, ";", &rest)) {
    char *inner = NULL;
    size_t before = out->ids.count;
    for (char *at = strtok_r(row, blanks, &inner); at && status == LP_OK; at = strtok_r(NULL, blanks, &inner)) {
      int64_t id = 0;
      status = lp_parse_i64(at, 0, INT32_MAX, &id, diag, loc);
      lp_vec_push(&out->ids, (int32_t)id);
    }
    lp_vec_push(&out->lengths, (int64_t)(out->ids.count - before));
    out->batch++;
  }
  free(copy);
  if (status == LP_OK && out->batch == 0) return lp_error(diag, loc, "there are no tokens");
  out->length = out->batch > 0 ? out->lengths.data[0] : 0;
  return status;
}

static lp_status encode_chat(const lp_prompt_flags *flags, const lp_tokenizer *tokenizer, const char *chat,
                             lp_tokens *ids, lp_diag *diag) {
  lp_chat_message messages[2];
  size_t count = 0;
  if (flags->system) messages[count++] = (lp_chat_message){"system", flags->system};
  messages[count++] = (lp_chat_message){"user", chat};
  if (!flags->control_tokens) return lp_tokenizer_encode_chat(tokenizer, messages, count, NULL, ids, diag);
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  LP_TRY(lp_tokenizer_chat(tokenizer, messages, count, true, &text, diag));
  return lp_tokenizer_encode(tokenizer, lp_buf_text(&text), text.size, false, ids, diag);
}

static lp_status encode_prompt(const lp_prompt_flags *flags, const lp_bundle *bundle, lp_run_prompt *out,
                               lp_diag *diag) {
  if (flags->features) return LP_OK;
  if (flags->tokens) return lp_prompt_read_rows(flags->tokens, "--tokens", out, diag) == LP_OK ? LP_OK : LP_USAGE;
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(bundle);
  lp_loc loc = LP_LOC_FILE(flags->file);
  if (!tokenizer) return lp_error(diag, loc, "the bundle has no tokenizer: give the prompt as --tokens=1,2,3");
  out->batch = 1;
  if (flags->chat && !lp_tokenizer_has_chat_template(tokenizer))
    return lp_error(diag, loc, "the model has no chat template: give the text as --prompt");
  char *text;
  size_t size;
  LP_TRY(read_given(flags->chat ? flags->chat : flags->text, &text, &size, diag));
  if (flags->chat && strlen(text) != size) {
    free(text);
    return lp_error(diag, LP_LOC_FILE("--chat"), "a message with the character U+0000 is not supported");
  }
  lp_status status = flags->chat             ? encode_chat(flags, tokenizer, text, &out->ids, diag)
                     : flags->control_tokens ? lp_tokenizer_encode(tokenizer, text, size, true, &out->ids, diag)
                                             : lp_tokenizer_encode_typed(tokenizer, text, size, true, &out->ids, diag);
  free(text);
  LP_TRY(status);
  out->length = (int64_t)out->ids.count;
  lp_vec_push(&out->lengths, out->length);
  return LP_OK;
}

lp_status lp_prompt_read(const lp_prompt_flags *flags, const lp_saved_session *saved, const lp_bundle *bundle,
                         lp_run_prompt *out, lp_diag *diag) {
  if (saved && lp_prompts_given(flags) == 0) {
    for (size_t i = 0; i < saved->prompt.count; i++)
      lp_vec_push(&out->ids, saved->prompt.data[i]);
    out->batch = saved->batch;
    out->length = saved->length;
    return LP_OK;
  }
  LP_TRY(encode_prompt(flags, bundle, out, diag));
  if (flags->batch <= 1 || flags->features) return LP_OK;
  if (out->batch > 1 && out->batch != flags->batch)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "--batch=%" PRId64 ", but --tokens has %" PRId64 " rows",
                       flags->batch, out->batch);
  size_t row = out->ids.count;
  for (; out->batch < flags->batch; out->batch++) {
    lp_vec_push(&out->lengths, (int64_t)row);
    for (size_t i = 0; i < row; i++)
      lp_vec_push(&out->ids, out->ids.data[i]);
  }
  return LP_OK;
}
