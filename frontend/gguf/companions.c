/* The files that stand beside a model in a Hugging Face folder, from the metadata of a GGUF file: tokenizer.json,
 * tokenizer_config.json and config.json. */
#include "base/file.h"
#include "base/json/writer.h"
#include "base/path.h"
#include "frontend/frontend.h"
#include "frontend/gguf/gguf.h"

static const double normal_type = 1; /* of tokenizer.ggml.token_type */

static lp_status write_text(const char *folder, const char *name, const lp_buf *text, lp_diag *diag) {
  char *path = lp_path_join(folder, name);
  lp_status status = lp_file_write(path, lp_buf_text(text), text->size, diag);
  free(path);
  return status;
}

static void put_token(const lp_gguf *file, lp_json_writer *w, const char *key, const char *of) {
  const lp_gguf_value *tokens = lp_gguf_find(file, "tokenizer.ggml.tokens");
  int64_t id = lp_gguf_i64(file, of, -1);
  if (!tokens || !tokens->text || id < 0 || (uint64_t)id >= tokens->count) return;
  lp_json_put_bytes(w, key, tokens->text[id].data, tokens->text[id].size);
}

static void put_template(lp_json_writer *w, const char *name, const char *text) {
  lp_json_put_object(w, NULL);
  lp_json_put_text(w, "name", name);
  lp_json_put_text(w, "template", text);
  lp_json_put_end(w);
}

/* The key "tokenizer.chat_template" has the usual template, and "tokenizer.chat_template.NAME" one with a name. */
static void put_templates(const lp_gguf *file, lp_json_writer *w) {
  const char *usual = lp_gguf_string(file, "tokenizer.chat_template");
  const char *named = lp_gguf_string(file, "tokenizer.chat_template.default");
  const char *tools = lp_gguf_string(file, "tokenizer.chat_template.tool_use");
  if (!usual) usual = named;
  if (!usual) return;
  lp_json_put_array(w, "chat_template");
  put_template(w, "default", usual);
  if (tools) put_template(w, "tool_use", tools);
  lp_json_put_end(w);
}

static lp_status write_tokenizer_config(const lp_gguf *file, const char *folder, lp_diag *diag) {
  lp_buf text = {0};
  lp_json_writer w = lp_json_writer_begin(&text, (lp_json_style){0});
  lp_json_put_object(&w, NULL);
  put_token(file, &w, "bos_token", "tokenizer.ggml.bos_token_id");
  put_token(file, &w, "eos_token", "tokenizer.ggml.eos_token_id");
  put_token(file, &w, "unk_token", "tokenizer.ggml.unknown_token_id");
  put_token(file, &w, "pad_token", "tokenizer.ggml.padding_token_id");
  put_token(file, &w, "sep_token", "tokenizer.ggml.seperator_token_id"); /* written so in GGUF */
  put_token(file, &w, "cls_token", "tokenizer.ggml.cls_token_id");
  put_token(file, &w, "mask_token", "tokenizer.ggml.mask_token_id");
  put_templates(file, &w);
  lp_json_put_end(&w);
  lp_status status = write_text(folder, "tokenizer_config.json", &text, diag);
  lp_buf_free(&text);
  return status;
}

/* Tells whether the token ends a turn or a text: the metadata names it, or it is a special token that has one of the
 * names which llama.cpp takes for such. Most files name one token, even of models that end turns with another. */
static bool is_end(const lp_gguf *file, const lp_gguf_value *tokens, uint64_t id) {
  static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.eom_token_id"};
  static const char *const names[] = {"<|eot_id|>", "<|im_end|>", "<|end|>",         "<end_of_turn>", "<|endoftext|>",
                                      "<|eom_id|>", "<EOT>",      "<|end_of_text|>", "</s>",          "<eos>"};
  for (size_t i = 0; i < LP_COUNT(keys); i++)
    if (lp_gguf_i64(file, keys[i], -1) == (int64_t)id) return true;
  const lp_gguf_value *types = lp_gguf_find(file, "tokenizer.ggml.token_type");
  bool typed = types && types->is_array && types->data && types->count == tokens->count;
  const lp_gguf_text *text = &tokens->text[id];
  for (size_t i = 0; i < LP_COUNT(names) && typed && lp_gguf_number(types, id) != normal_type; i++)
    if (strlen(names[i]) == text->size && memcmp(names[i], text->data, text->size) == 0) return true;
  return false;
}

/* The context, and all tokens that end a generation. */
static lp_status write_settings(const lp_gguf *file, const char *folder, lp_diag *diag) {
  const char *name = lp_gguf_string(file, "general.architecture");
  const lp_gguf_value *tokens = lp_gguf_find(file, "tokenizer.ggml.tokens");
  lp_buf text = {0};
  lp_json_writer w = lp_json_writer_begin(&text, (lp_json_style){0});
  int64_t context = name ? lp_gguf_i64(file, lp_arena_format(file->arena, "%s.context_length", name), 0) : 0;
  lp_json_put_object(&w, NULL);
  if (context > 0) lp_json_put_integer(&w, "max_position_embeddings", context);
  lp_json_put_array(&w, "eos_token_id");
  for (uint64_t id = 0; tokens && tokens->text && id < tokens->count; id++)
    if (is_end(file, tokens, id)) lp_json_put_integer(&w, NULL, (int64_t)id);
  lp_json_put_end(&w);
  lp_json_put_end(&w);
  lp_status status = write_text(folder, "config.json", &text, diag);
  lp_buf_free(&text);
  return status;
}

static lp_status write_files(const lp_gguf *file, const char *folder, lp_diag *diag) {
  lp_diag *own = lp_diag_create();
  lp_buf text = {0};
  lp_status status = LP_OK;
  if (lp_gguf_tokenizer(file, &text, own) == LP_OK)
    status = write_text(folder, "tokenizer.json", &text, diag);
  else
    lp_note(diag, LP_LOC_FILE(file->path), "the bundle gets no tokenizer, so 'run' needs --tokens: %s",
            lp_diag_count(own) > 0 ? lp_diag_get(own, 0)->text : "it cannot be used");
  lp_buf_free(&text);
  lp_diag_free(own);
  LP_TRY(status);
  LP_TRY(write_tokenizer_config(file, folder, diag));
  return write_settings(file, folder, diag);
}

lp_status lp_gguf_write_companions(const char *path, const char *folder, lp_diag *diag) {
  lp_mapping mapping = {0};
  LP_TRY(lp_file_map(path, &mapping, diag));
  lp_gguf file = {.path = path, .data = mapping.data, .size = mapping.size, .arena = lp_arena_create()};
  lp_status status = lp_gguf_read(&file, diag);
  if (status == LP_OK) status = lp_gguf_check_types(&file, diag);
  if (status == LP_OK) status = write_files(&file, folder, diag);
  lp_gguf_release(&file);
  lp_arena_free(file.arena);
  lp_file_unmap(&mapping);
  return status;
}

void lp_gguf_list_unread(const char *path, lp_buf *out) {
  lp_mapping mapping = {0};
  lp_diag *quiet = lp_diag_create();
  if (lp_file_map(path, &mapping, quiet) == LP_OK) {
    lp_gguf file = {.path = path, .data = mapping.data, .size = mapping.size, .arena = lp_arena_create()};
    if (lp_gguf_read(&file, quiet) == LP_OK)
      for (size_t i = 0; i < lp_map_count(file.values); i++)
        if (!lp_gguf_is_read(&file, lp_map_key_at(file.values, i)))
          lp_buf_printf(out, "not read: %s\n", lp_map_key_at(file.values, i));
    lp_gguf_release(&file);
    lp_file_unmap(&mapping);
  }
  lp_diag_free(quiet);
}
