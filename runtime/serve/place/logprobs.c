/* Writes tokens with their log probabilities in the API's format. */
#include "runtime/serve/place/logprobs.h"
#include "base/utf8.h"

lp_json_writer lp_answer_begin(lp_buf *out) {
  return lp_json_writer_begin(out, (lp_json_style){.has_no_space = true, .marks_reals = true});
}

/* ---- tokens of this process -------------------------------------------------------------------------------------- */

/* The text of a token: its bytes, with U+FFFD in place of those that are no whole character. */
static void put_text(lp_json_writer *json, const char *key, const lp_buf *bytes) {
  lp_json_put_key(json, key);
  lp_json_quote(lp_buf_text(bytes), json->out);
}

static void put_byte_list(lp_json_writer *json, const char *key, const lp_buf *bytes) {
  lp_json_put_array(json, key);
  for (size_t i = 0; i < bytes->size; i++)
    lp_json_put_integer(json, NULL, (uint8_t)bytes->data[i]);
  lp_json_put_end(json);
}

static void read_bytes(const lp_tokenizer *tokenizer, int32_t token, lp_buf *out) {
  bool special;
  lp_buf_clear(out);
  lp_tokenizer_token_bytes(tokenizer, token, out, &special);
}

static void put_likely(lp_json_writer *json, const lp_token_logprob *likely, bool chat, const lp_buf *bytes) {
  if (!chat) {
    lp_json_put_number(json, lp_buf_text(bytes), (double)likely->logprob);
    return;
  }
  lp_json_put_object(json, NULL);
  put_text(json, "token", bytes);
  lp_json_put_number(json, "logprob", (double)likely->logprob);
  put_byte_list(json, "bytes", bytes);
  lp_json_put_end(json);
}

/* The likeliest tokens. In text completions the drawn token is always among them, as OpenAI's API has it. */
static char *list_top(const lp_tokenizer *tokenizer, const lp_drawn *drawn, bool chat) {
  lp_buf out = {0}, bytes = {0};
  lp_json_writer json = lp_answer_begin(&out);
  bool lacks = !chat;
  if (chat)
    lp_json_put_array(&json, NULL);
  else
    lp_json_put_object(&json, NULL);
  for (int32_t i = 0; i < drawn->top_count; i++) {
    read_bytes(tokenizer, drawn->top[i].token, &bytes);
    put_likely(&json, &drawn->top[i], chat, &bytes);
    lacks = lacks && drawn->top[i].token != drawn->token;
  }
  read_bytes(tokenizer, drawn->token, &bytes);
  if (lacks) put_likely(&json, &(lp_token_logprob){drawn->token, drawn->logprob}, chat, &bytes);
  lp_json_put_end(&json);
  lp_buf_free(&bytes);
  return out.data;
}

lp_answer_logprob lp_answer_logprob_of(const lp_tokenizer *tokenizer, const lp_drawn *drawn, bool chat) {
  lp_buf bytes = {0}, text = {0}, number = {0}, list = {0};
  lp_json_writer json = lp_answer_begin(&number), list_json = lp_answer_begin(&list);
  read_bytes(tokenizer, drawn->token, &bytes);
  lp_json_quote(lp_buf_text(&bytes), &text);
  lp_json_put_number(&json, NULL, (double)drawn->logprob);
  if (chat) put_byte_list(&list_json, NULL, &bytes);
  lp_answer_logprob logprobs = {.token = text.data,
                                .logprob = number.data,
                                .top = list_top(tokenizer, drawn, chat),
                                .bytes = list.data,
                                .size = bytes.size,
                                .characters = lp_utf8_count(lp_buf_text(&bytes), bytes.size)};
  lp_buf_free(&bytes);
  return logprobs;
}

/* ---- tokens of another server ------------------------------------------------------------------------------------ */

static char *copy_json(const lp_json *at, const char *otherwise) {
  if (!at->value) return lp_strdup(otherwise);
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_value(&json, NULL, at->value);
  return out.data;
}

static void add(const lp_json *token, const lp_json *logprob, const lp_json *top, const lp_json *bytes, bool chat,
                lp_logprobs *out) {
  const char *text = lp_json_text_or(token, "");
  const lp_answer_logprob logprobs = {.token = copy_json(token, "\"\""),
                                      .logprob = copy_json(logprob, "null"),
                                      .top = copy_json(top, chat ? "[]" : "null"),
                                      .bytes = chat ? copy_json(bytes, "null") : NULL,
                                      .size = strlen(text),
                                      .characters = lp_utf8_count(text, strlen(text))};
  lp_vec_push(out, logprobs);
}

void lp_logprobs_read(const lp_json *logprobs, bool chat, lp_logprobs *out) {
  lp_json content = lp_json_member(logprobs, "content"), tokens = lp_json_member(logprobs, "tokens"),
          numbers = lp_json_member(logprobs, "token_logprobs"), tops = lp_json_member(logprobs, "top_logprobs");
  for (size_t i = 0; chat && i < lp_json_count(&content); i++) {
    lp_json item = lp_json_item(&content, i), bytes = lp_json_member(&item, "bytes");
    add(LP_MEMBER(&item, "token"), LP_MEMBER(&item, "logprob"), LP_MEMBER(&item, "top_logprobs"), &bytes, chat, out);
  }
  for (size_t i = 0; !chat && i < lp_json_count(&tokens); i++) {
    lp_json token = lp_json_item(&tokens, i), number = lp_json_item(&numbers, i), top = lp_json_item(&tops, i),
            none = {0};
    add(&token, &number, &top, &none, chat, out);
  }
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

lp_answer_logprob lp_answer_logprob_copy(const lp_answer_logprob *token) {
  lp_answer_logprob copy = *token;
  copy.token = lp_strdup(token->token);
  copy.logprob = lp_strdup(token->logprob);
  copy.top = lp_strdup(token->top);
  copy.bytes = token->bytes ? lp_strdup(token->bytes) : NULL;
  return copy;
}

void lp_answer_logprob_free(lp_answer_logprob *token) {
  free(token->token);
  free(token->logprob);
  free(token->top);
  free(token->bytes);
}

void lp_logprobs_free(lp_logprobs *logprobs) {
  for (size_t i = 0; i < logprobs->count; i++)
    lp_answer_logprob_free(&logprobs->data[i]);
  lp_vec_free(logprobs);
}

static void put_raw(lp_json_writer *json, const char *key, const char *value) {
  lp_json_put_key(json, key);
  lp_buf_puts(json->out, value);
}

static void write_chat(lp_json_writer *json, const lp_answer_logprob *logprobs, size_t count) {
  lp_json_put_array(json, "content");
  for (size_t i = 0; i < count; i++) {
    lp_json_put_object(json, NULL);
    put_raw(json, "token", logprobs[i].token);
    put_raw(json, "logprob", logprobs[i].logprob);
    put_raw(json, "bytes", logprobs[i].bytes);
    put_raw(json, "top_logprobs", logprobs[i].top);
    lp_json_put_end(json);
  }
  lp_json_put_end(json);
  lp_json_put_null(json, "refusal");
}

void lp_logprobs_write(lp_json_writer *json, const lp_answer_logprob *logprobs, size_t count, bool chat,
                       size_t characters) {
  lp_json_put_object(json, "logprobs");
  if (chat) {
    write_chat(json, logprobs, count);
    lp_json_put_end(json);
    return;
  }
  lp_json_put_array(json, "tokens");
  for (size_t i = 0; i < count; i++)
    put_raw(json, NULL, logprobs[i].token);
  lp_json_put_end(json);
  lp_json_put_array(json, "token_logprobs");
  for (size_t i = 0; i < count; i++)
    put_raw(json, NULL, logprobs[i].logprob);
  lp_json_put_end(json);
  lp_json_put_array(json, "top_logprobs");
  for (size_t i = 0; i < count; i++)
    put_raw(json, NULL, logprobs[i].top);
  lp_json_put_end(json);
  lp_json_put_array(json, "text_offset");
  for (size_t i = 0; i < count; characters += logprobs[i++].characters)
    lp_json_put_integer(json, NULL, (int64_t)characters);
  lp_json_put_end(json);
  lp_json_put_end(json);
}
