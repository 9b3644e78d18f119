/* The tokenizer of a GGUF file as the files that Hugging Face has: tokenizer.json, tokenizer_config.json and
 * config.json. Byte-level BPE is supported, which GGUF calls "gpt2". */
#include "base/file.h"
#include "base/json/writer.h"
#include "base/path.h"
#include "frontend/frontend.h"
#include "frontend/gguf/gguf.h"

#include <stdlib.h>
#include <string.h>

static const double control_type = 3, user_defined_type = 4; /* of tokenizer.ggml.token_type */

/* The rules by which text is split before merging, for each value of tokenizer.ggml.pre: the settings of the models'
 * own tokenizer.json. */
typedef struct {
  const char *name;
  const char *pattern; /* NULL: ByteLevel's own */
  bool digits, nfc, ignore_merges;
} splitter;

static const splitter splitters[] = {
    {.name = "gpt-2"},
    {.name = "smollm", .digits = true},
    {.name = "qwen2",
     .pattern = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
                "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     .nfc = true},
    {.name = "llama-bpe",
     .pattern = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
                "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     .ignore_merges = true}};

typedef struct {
  const lp_gguf *file;
  const lp_gguf_value *tokens, *types, *merges;
  const splitter *split;
  lp_arena *arena;
  lp_diag *diag;
} reader;

static const char *text_at(const reader *r, const lp_gguf_value *list, uint64_t index) {
  return lp_arena_strndup(r->arena, list->text[index].data, list->text[index].size);
}

static lp_status read_lists(reader *r) {
  lp_loc loc = LP_LOC_FILE(r->file->path);
  const char *model = lp_gguf_string(r->file, "tokenizer.ggml.model");
  const char *pre = lp_gguf_string(r->file, "tokenizer.ggml.pre");
  r->tokens = lp_gguf_find(r->file, "tokenizer.ggml.tokens");
  r->types = lp_gguf_find(r->file, "tokenizer.ggml.token_type");
  r->merges = lp_gguf_find(r->file, "tokenizer.ggml.merges");
  if (!model || !lp_streq(model, "gpt2"))
    return lp_error(r->diag, loc, "tokenizers of the kind '%.40s' are not supported, only 'gpt2' (byte-level BPE)",
                    model ? model : "");
  for (size_t i = 0; i < LP_COUNT(splitters) && pre; i++)
    if (lp_streq(splitters[i].name, pre)) r->split = &splitters[i];
  if (!r->split)
    return lp_error(r->diag, loc, "tokenizers with the pre-tokenizer '%.40s' are not supported", pre ? pre : "");
  bool lists = r->tokens && r->tokens->text && r->merges && r->merges->text && r->types && r->types->data &&
               r->types->count == r->tokens->count;
  return lists ? LP_OK : lp_error(r->diag, loc, "the tokenizer's list of tokens, types or merges is missing");
}

/* ---- tokenizer.json ---------------------------------------------------------------------------------------------- */

static void put_added_tokens(const reader *r, lp_json_writer *w) {
  lp_json_put_array(w, "added_tokens");
  for (uint64_t i = 0; i < r->tokens->count; i++) {
    double type = lp_gguf_number(r->types, i);
    if (type != control_type && type != user_defined_type) continue;
    lp_json_put_object(w, NULL);
    lp_json_put_integer(w, "id", (int64_t)i);
    lp_json_put_text(w, "content", text_at(r, r->tokens, i));
    static const char *const off[] = {"single_word", "lstrip", "rstrip", "normalized"};
    for (size_t k = 0; k < LP_COUNT(off); k++)
      lp_json_put_bool(w, off[k], false);
    lp_json_put_bool(w, "special", type == control_type);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

static void put_byte_level(lp_json_writer *w, const char *key, bool own_pattern) {
  lp_json_put_object(w, key);
  lp_json_put_text(w, "type", "ByteLevel");
  lp_json_put_bool(w, "add_prefix_space", false);
  lp_json_put_bool(w, "trim_offsets", true);
  lp_json_put_bool(w, "use_regex", own_pattern);
  lp_json_put_end(w);
}

static void put_pre_tokenizer(const reader *r, lp_json_writer *w) {
  lp_json_put_object(w, "pre_tokenizer");
  lp_json_put_text(w, "type", "Sequence");
  lp_json_put_array(w, "pretokenizers");
  if (r->split->digits) {
    lp_json_put_object(w, NULL);
    lp_json_put_text(w, "type", "Digits");
    lp_json_put_bool(w, "individual_digits", true);
    lp_json_put_end(w);
  }
  if (r->split->pattern) {
    lp_json_put_object(w, NULL);
    lp_json_put_text(w, "type", "Split");
    lp_json_put_object(w, "pattern");
    lp_json_put_text(w, "Regex", r->split->pattern);
    lp_json_put_end(w);
    lp_json_put_text(w, "behavior", "Isolated");
    lp_json_put_bool(w, "invert", false);
    lp_json_put_end(w);
  }
  put_byte_level(w, NULL, !r->split->pattern);
  lp_json_put_end(w);
  lp_json_put_end(w);
}

/* Puts a token before every text when the file asks for one. */
static void put_post_processor(const reader *r, lp_json_writer *w) {
  int64_t id = lp_gguf_i64(r->file, "tokenizer.ggml.bos_token_id", -1);
  bool first = lp_gguf_bool(r->file, "tokenizer.ggml.add_bos_token", false);
  if (!first || id < 0 || (uint64_t)id >= r->tokens->count) {
    put_byte_level(w, "post_processor", true);
    return;
  }
  const char *token = text_at(r, r->tokens, (uint64_t)id);
  lp_json_put_object(w, "post_processor");
  lp_json_put_text(w, "type", "TemplateProcessing");
  static const char *const forms[] = {"single", "pair"}, *const names[] = {"A", "B"};
  for (size_t form = 0; form < 2; form++) {
    lp_json_put_array(w, forms[form]);
    for (size_t i = 0; i <= form; i++) {
      lp_json_put_object(w, NULL);
      lp_json_put_object(w, "SpecialToken");
      lp_json_put_text(w, "id", token);
      lp_json_put_integer(w, "type_id", (int64_t)i);
      lp_json_put_end(w);
      lp_json_put_end(w);
      lp_json_put_object(w, NULL);
      lp_json_put_object(w, "Sequence");
      lp_json_put_text(w, "id", names[i]);
      lp_json_put_integer(w, "type_id", (int64_t)i);
      lp_json_put_end(w);
      lp_json_put_end(w);
    }
    lp_json_put_end(w);
  }
  lp_json_put_object(w, "special_tokens");
  lp_json_put_object(w, token);
  lp_json_put_text(w, "id", token);
  lp_json_put_array(w, "ids");
  lp_json_put_integer(w, NULL, id);
  lp_json_put_end(w);
  lp_json_put_array(w, "tokens");
  lp_json_put_text(w, NULL, token);
  lp_json_put_end(w);
  lp_json_put_end(w);
  lp_json_put_end(w);
  lp_json_put_end(w);
}

static void put_model(const reader *r, lp_json_writer *w) {
  lp_json_put_object(w, "model");
  lp_json_put_text(w, "type", "BPE");
  lp_json_put_bool(w, "fuse_unk", false);
  lp_json_put_bool(w, "byte_fallback", false);
  lp_json_put_bool(w, "ignore_merges", r->split->ignore_merges);
  lp_json_put_object(w, "vocab");
  for (uint64_t i = 0; i < r->tokens->count; i++)
    lp_json_put_integer(w, text_at(r, r->tokens, i), (int64_t)i);
  lp_json_put_end(w);
  lp_json_put_array(w, "merges");
  for (uint64_t i = 0; i < r->merges->count; i++)
    lp_json_put_text(w, NULL, text_at(r, r->merges, i));
  lp_json_put_end(w);
  lp_json_put_end(w);
}

lp_status lp_gguf_tokenizer(const lp_gguf *file, lp_buf *out, lp_diag *diag) {
  reader r = {.file = file, .arena = file->arena, .diag = diag};
  LP_TRY(read_lists(&r));
  lp_json_writer w = lp_json_writer_begin(out, (lp_json_style){0});
  lp_json_put_object(&w, NULL);
  lp_json_put_text(&w, "version", "1.0");
  put_added_tokens(&r, &w);
  if (r.split->nfc) {
    lp_json_put_object(&w, "normalizer");
    lp_json_put_text(&w, "type", "NFC");
    lp_json_put_end(&w);
  }
  put_pre_tokenizer(&r, &w);
  put_post_processor(&r, &w);
  put_byte_level(&w, "decoder", true);
  put_model(&r, &w);
  lp_json_put_end(&w);
  return LP_OK;
}

/* ---- the files --------------------------------------------------------------------------------------------------- */

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

static lp_status write_tokenizer_config(const lp_gguf *file, const char *folder, lp_diag *diag) {
  lp_buf text = {0};
  lp_json_writer w = lp_json_writer_begin(&text, (lp_json_style){0});
  const char *chat = lp_gguf_string(file, "tokenizer.chat_template");
  lp_json_put_object(&w, NULL);
  put_token(file, &w, "bos_token", "tokenizer.ggml.bos_token_id");
  put_token(file, &w, "eos_token", "tokenizer.ggml.eos_token_id");
  put_token(file, &w, "unk_token", "tokenizer.ggml.unknown_token_id");
  put_token(file, &w, "pad_token", "tokenizer.ggml.padding_token_id");
  if (chat) lp_json_put_text(&w, "chat_template", chat);
  lp_json_put_end(&w);
  lp_status status = write_text(folder, "tokenizer_config.json", &text, diag);
  lp_buf_free(&text);
  return status;
}

/* The context, and all tokens that end a generation. */
static lp_status write_settings(const lp_gguf *file, const char *folder, lp_diag *diag) {
  static const char *const ends[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.eom_token_id"};
  const char *name = lp_gguf_string(file, "general.architecture");
  lp_buf text = {0};
  lp_json_writer w = lp_json_writer_begin(&text, (lp_json_style){0});
  int64_t context = name ? lp_gguf_i64(file, lp_arena_format(file->arena, "%s.context_length", name), 0) : 0;
  lp_json_put_object(&w, NULL);
  if (context > 0) lp_json_put_integer(&w, "max_position_embeddings", context);
  lp_json_put_array(&w, "eos_token_id");
  for (size_t i = 0; i < LP_COUNT(ends); i++)
    if (lp_gguf_i64(file, ends[i], -1) >= 0) lp_json_put_integer(&w, NULL, lp_gguf_i64(file, ends[i], -1));
  lp_json_put_end(&w);
  lp_json_put_end(&w);
  lp_status status = write_text(folder, "config.json", &text, diag);
  lp_buf_free(&text);
  return status;
}

static lp_status write_files(const lp_gguf *file, const char *folder, lp_diag *diag) {
  lp_diag *own = lp_diag_create();
  lp_buf text = {0};
  lp_status status = lp_gguf_tokenizer(file, &text, own);
  if (status == LP_OK)
    status = write_text(folder, "tokenizer.json", &text, diag);
  else
    lp_note(diag, LP_LOC_FILE(file->path), "the bundle gets no tokenizer, so 'run' needs --tokens: %s",
            lp_diag_count(own) > 0 ? lp_diag_get(own, 0)->text : "it cannot be used");
  lp_buf_free(&text);
  lp_diag_free(own);
  LP_TRY(write_tokenizer_config(file, folder, diag));
  return write_settings(file, folder, diag);
}

lp_status lp_gguf_write_companions(const char *path, const char *folder, lp_diag *diag) {
  lp_mapping mapping = {0};
  LP_TRY(lp_file_map(path, &mapping, diag));
  lp_gguf file = {.path = path, .data = mapping.data, .size = mapping.size, .arena = lp_arena_create()};
  lp_status status = lp_gguf_read(&file, diag);
  if (status == LP_OK) status = write_files(&file, folder, diag);
  lp_gguf_release(&file);
  lp_arena_free(file.arena);
  lp_file_unmap(&mapping);
  return status;
}
