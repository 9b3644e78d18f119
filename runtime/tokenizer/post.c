/* Loads the post-processor of tokenizer.json, and tokenizer_config.json: the tokens and texts around the text. */

#include "base/companions.h"
#include "base/file.h"
#include "base/path.h"
#include "runtime/runtime.h"
#include "runtime/tokenizer/load.h"
#include "runtime/tokenizer/vocab.h"

/* ---- post-processor ---------------------------------------------------------------------------------------------- */

static lp_status push_id(lp_loader *loader, const lp_json *at, lp_tokens *out) {
  int64_t id;
  size_t ignored;
  LP_TRY(lp_json_i64(at, 0, LP_VOCAB_MAX - 1, &id, loader->diag));
  if (!lp_vocab_text(&loader->tokenizer->vocab, (int32_t)id, &ignored))
    return lp_json_error(at, loader->diag, "there is no token of id %" PRId64, id);
  lp_vec_push(out, (int32_t)id);
  return LP_OK;
}

/* Reads the ids of the template's special token `name`. */
static lp_status push_special(lp_loader *loader, const lp_json *template, const char *name, lp_tokens *out) {
  lp_json all = lp_json_member(template, "special_tokens"), token = lp_json_member(&all, name);
  lp_json ids = lp_json_member(&token, "ids");
  LP_TRY(lp_json_array(&ids, loader->diag));
  LP_FOR_ITEMS(item, &ids)
    LP_TRY(push_id(loader, &item, out));
  return LP_OK;
}

/* `single` is a list of {"SpecialToken": {"id": ...}} and one {"Sequence": {"id": "A"}}. */
static lp_status load_template(lp_loader *loader, const lp_json *at, lp_tokens out[2]) {
  lp_json single = lp_json_member(at, "single");
  bool after = false;
  LP_TRY(lp_json_array(&single, loader->diag));
  for (size_t i = 0; i < lp_json_count(&single); i++) {
    lp_json item = lp_json_item(&single, i), sequence = lp_json_member(&item, "Sequence");
    lp_json special = lp_json_member(&item, "SpecialToken");
    const char *name;
    size_t size;
    LP_TRY(lp_json_object(&item, loader->diag));
    if (sequence.value) {
      if (after) return lp_json_error(&item, loader->diag, "a template with several sequences is not supported");
      after = true;
      continue;
    }
    LP_TRY(lp_load_text(loader, &special, "id", &name, &size));
    LP_TRY(push_special(loader, at, name, &out[after]));
  }
  return after ? LP_OK : lp_json_error(&single, loader->diag, "the template lacks the sequence");
}

/* BertProcessing and RobertaProcessing: "cls": ["[CLS]", 1], "sep": [...]. */
static lp_status load_bert(lp_loader *loader, const lp_json *at, lp_tokens out[2]) {
  static const char *const keys[] = {"cls", "sep"};
  for (size_t i = 0; i < 2; i++) {
    lp_json pair = lp_json_member(at, keys[i]), id = lp_json_item(&pair, 1);
    LP_TRY(lp_json_array(&pair, loader->diag));
    if (lp_json_count(&pair) != 2) return lp_json_error(&pair, loader->diag, "wanted a token and its id");
    LP_TRY(push_id(loader, &id, &out[i]));
  }
  return LP_OK;
}

static lp_status load_processor(lp_loader *loader, const lp_json *at, lp_tokens out[2]) {
  const char *type;
  size_t size;
  LP_TRY(lp_load_text(loader, at, "type", &type, &size));
  if (lp_streq(type, "TemplateProcessing")) return load_template(loader, at, out);
  if (lp_streq(type, "BertProcessing") || lp_streq(type, "RobertaProcessing")) return load_bert(loader, at, out);
  if (lp_streq(type, "ByteLevel")) return LP_OK; /* trims offsets, which this tokenizer does not have */
  lp_status status = lp_json_error(at, loader->diag, "the post-processor '%s' is not supported", type);
  lp_note(loader->diag, LP_LOC_FILE(loader->file),
          "supported are TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence");
  return status;
}

/* Puts the tokens of one processor around those of the processors before it. */
static void wrap(lp_tokenizer *tokenizer, const lp_tokens around[2]) {
  lp_tokens before = {0};
  for (size_t i = 0; i < around[0].count; i++)
    lp_vec_push(&before, around[0].data[i]);
  for (size_t i = 0; i < tokenizer->before.count; i++)
    lp_vec_push(&before, tokenizer->before.data[i]);
  lp_vec_free(&tokenizer->before);
  tokenizer->before = before;
  for (size_t i = 0; i < around[1].count; i++)
    lp_vec_push(&tokenizer->after, around[1].data[i]);
}

enum { MAX_NESTING = 32 };

static lp_status load_nested(lp_loader *loader, const lp_json *at, int depth) {
  lp_json type = lp_json_member(at, "type"), list = lp_json_member(at, "processors");
  if (!lp_json_is_given(at)) return LP_OK;
  if (depth > MAX_NESTING) return lp_error(loader->diag, LP_LOC_FILE(loader->file), "nested too deeply");
  LP_TRY(lp_json_object(at, loader->diag));
  if (lp_json_equals(&type, "Sequence")) {
    LP_TRY(lp_json_array(&list, loader->diag));
    LP_FOR_ITEMS(item, &list)
      LP_TRY(load_nested(loader, &item, depth + 1));
    return LP_OK;
  }
  lp_tokens around[2] = {{0}, {0}};
  lp_status status = load_processor(loader, at, around);
  if (status == LP_OK) wrap(loader->tokenizer, around);
  lp_vec_free(&around[0]);
  lp_vec_free(&around[1]);
  return status;
}

lp_status lp_load_post_processor(lp_loader *loader, const lp_json *at) {
  return load_nested(loader, at, 0);
}

/* ---- tokenizer_config.json --------------------------------------------------------------------------------------- */

/* Sets the text of a name, which may have one already; NULL removes it. */
static void name_special(lp_tokenizer *tokenizer, const char *name, const char *text) {
  lp_chat_special *all = tokenizer->specials.data;
  size_t at = 0;
  while (at < tokenizer->specials.count && !lp_streq(all[at].name, name))
    at++;
  if (lp_streq(name, "bos_token")) tokenizer->bos = text;
  if (lp_streq(name, "eos_token")) tokenizer->eos = text;
  if (at < tokenizer->specials.count && text)
    all[at].text = text;
  else if (at < tokenizer->specials.count)
    all[at] = all[--tokenizer->specials.count];
  else if (text)
    lp_vec_push(&tokenizer->specials, ((lp_chat_special){lp_arena_strdup(tokenizer->arena, name), text}));
}

/* Reads "eos_token": "</s>" or {"content": "</s>", ...}; null: there is none. */
static lp_status load_special(lp_loader *loader, const lp_json *root, const lp_json *member) {
  const char *text = NULL;
  size_t size;
  if (lp_json_is_given(member)) {
    bool object = lp_json_is(member, LP_JSON_OBJECT);
    LP_TRY(lp_load_text(loader, object ? member : root, object ? "content" : member->key, &text, &size));
  }
  name_special(loader->tokenizer, member->key, text);
  return LP_OK;
}

static bool is_standard(const char *name) {
  static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                      "pad_token", "cls_token", "mask_token"};
  return LP_FIND_IN(names, name) != NULL;
}

/* Names the special tokens that templates can print, as transformers does: the standard ones, those of the model (any
 * other text whose key ends in "_token"), and those of an object "extra_special_tokens". */
static lp_status load_specials(lp_loader *loader, const lp_json *root) {
  for (size_t i = 0; i < lp_json_count(root); i++) {
    lp_json member = lp_json_entry(root, i);
    bool own = lp_has_suffix(member.key, "_token") && lp_json_is(&member, LP_JSON_TEXT);
    if (is_standard(member.key) || own) LP_TRY(load_special(loader, root, &member));
  }
  lp_json extra = lp_json_member(root, "extra_special_tokens");
  for (size_t i = 0; lp_json_is(&extra, LP_JSON_OBJECT) && i < lp_json_count(&extra); i++) {
    lp_json member = lp_json_entry(&extra, i);
    LP_TRY(load_special(loader, &extra, &member));
  }
  return LP_OK;
}

static lp_status load_template_text(lp_loader *loader, const lp_json *object, const char *key, lp_chat_template *out) {
  out->file = lp_arena_strdup(loader->tokenizer->arena, loader->file);
  return lp_load_text(loader, object, key, &out->source, &out->size);
}

/* Reads "chat_template": a text, or a list of named texts, of which "default" is used, and "tool_use" with tools. */
static lp_status load_chat(lp_loader *loader, const lp_json *root) {
  lp_tokenizer *tokenizer = loader->tokenizer;
  lp_json member = lp_json_member(root, "chat_template");
  if (!lp_json_is_given(&member)) return LP_OK;
  if (!lp_json_is(&member, LP_JSON_ARRAY)) return load_template_text(loader, root, "chat_template", &tokenizer->chat);
  for (size_t i = 0; i < lp_json_count(&member); i++) {
    lp_json item = lp_json_item(&member, i), name = lp_json_member(&item, "name");
    if (lp_json_equals(&name, "default")) LP_TRY(load_template_text(loader, &item, "template", &tokenizer->chat));
    if (lp_json_equals(&name, "tool_use")) LP_TRY(load_template_text(loader, &item, "template", &tokenizer->tool_chat));
  }
  return tokenizer->chat.source ? LP_OK
                                : lp_json_error(&member, loader->diag, "none of the templates is named 'default'");
}

static lp_status load_json(lp_loader *loader, lp_status (*load)(lp_loader *, const lp_json *)) {
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  LP_TRY(lp_json_load(loader->file, LP_JSON_ALLOW_DUPLICATES, &document, loader->diag));
  lp_json root = lp_json_root(loader->file, document);
  LP_TRY(lp_json_object(&root, loader->diag));
  return load(loader, &root);
}

static lp_status load_config_root(lp_loader *loader, const lp_json *root) {
  loader->has_added_tokens = lp_json_is_given(LP_MEMBER(root, "added_tokens_decoder"));
  LP_TRY(load_specials(loader, root));
  return load_chat(loader, root);
}

static lp_status load_config_json(lp_loader *loader) {
  return load_json(loader, load_config_root);
}

/* A file of older models. transformers does not read it beside a configuration with "added_tokens_decoder". */
static lp_status load_map(lp_loader *loader) {
  return loader->has_added_tokens ? LP_OK : load_json(loader, load_specials);
}

static lp_status load_file(lp_loader *loader, lp_chat_template *out) {
  lp_arena *arena = loader->tokenizer->arena;
  LP_OWNED(lp_free_at) char *data = NULL;
  LP_TRY(lp_file_read(loader->file, &data, &out->size, loader->diag));
  out->source = lp_arena_copy(arena, data, out->size + 1);
  out->file = lp_arena_strdup(arena, loader->file);
  return LP_OK;
}

/* Templates in files replace those of the configuration. */
static lp_status load_chat_file(lp_loader *loader) {
  loader->tokenizer->tool_chat = (lp_chat_template){0};
  return load_file(loader, &loader->tokenizer->chat);
}

static lp_status load_tool_chat_file(lp_loader *loader) {
  return load_file(loader, &loader->tokenizer->tool_chat);
}

lp_status lp_load_config(lp_loader *loader, const char *dir) {
  static lp_status (*const load[LP_TOKENIZER_COMPANIONS])(lp_loader *loader) = {load_config_json, load_map,
                                                                                load_chat_file, load_tool_chat_file};
  lp_loader part = *loader;
  lp_status status = LP_OK;
  for (size_t i = 0; i < LP_TOKENIZER_COMPANIONS && status == LP_OK; i++) {
    LP_OWNED(lp_free_at) char *path = lp_path_join(dir, lp_tokenizer_companions[i]);
    part.file = path;
    if (lp_path_exists(path)) status = load[i](&part);
  }
  return status;
}
