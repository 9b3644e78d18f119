/* The post-processor of tokenizer.json and what tokenizer_config.json says: the tokens and text around the text. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "runtime/runtime.h"
#include "runtime/tokenizer/internal.h"

#define FILE_LOC(loader) LP_LOC_FILE((loader)->file)

/* ---- post-processor ---------------------------------------------------------------------------------------------- */

static lp_status push_id(lp_loader *loader, const lp_node *json, const char *path, lp_tokens *out) {
  int64_t id;
  size_t ignored;
  LP_TRY(lp_node_count(loader, json, path, LP_VOCAB_MAX - 1, &id));
  if (!lp_vocab_text(&loader->tokenizer->vocab, (int32_t)id, &ignored))
    return lp_error(loader->diag, FILE_LOC(loader), "'%s': there is no token of id %" PRId64, path, id);
  lp_vec_push(out, (int32_t)id);
  return LP_OK;
}

/* The ids that the template's special token `name` stands for. */
static lp_status push_special(lp_loader *loader, const lp_node *json, const char *path, const char *name,
                              lp_tokens *out) {
  const lp_node *all, *token, *ids;
  LP_TRY(lp_member_get(loader, json, path, "special_tokens", LP_NODE_OBJECT, &all));
  const char *all_path = lp_path_member(loader, path, "special_tokens");
  LP_TRY(lp_member_get(loader, all, all_path, name, LP_NODE_OBJECT, &token));
  const char *token_path = lp_path_member(loader, all_path, name);
  LP_TRY(lp_member_get(loader, token, token_path, "ids", LP_NODE_ARRAY, &ids));
  const char *ids_path = lp_path_member(loader, token_path, "ids");
  for (size_t i = 0; i < ids->size; i++)
    LP_TRY(push_id(loader, lp_node_item(ids, i), lp_path_item(loader, ids_path, i), out));
  return LP_OK;
}

/* `single` is a list of {"SpecialToken": {"id": ...}} and one {"Sequence": {"id": "A"}}. */
static lp_status load_template(lp_loader *loader, const lp_node *json, const char *path, lp_tokens out[2]) {
  const lp_node *single;
  bool behind = false;
  LP_TRY(lp_member_get(loader, json, path, "single", LP_NODE_ARRAY, &single));
  const char *list_path = lp_path_member(loader, path, "single");
  for (size_t i = 0; i < single->size; i++) {
    const lp_node *item = lp_node_item(single, i), *special;
    const char *item_path = lp_path_item(loader, list_path, i), *name;
    size_t size;
    LP_TRY(lp_node_expect(loader, item, LP_NODE_OBJECT, item_path));
    if (lp_node_member(item, "Sequence")) {
      if (behind)
        return lp_error(loader->diag, FILE_LOC(loader), "'%s': a template with several sequences is not supported",
                        item_path);
      behind = true;
      continue;
    }
    LP_TRY(lp_member_get(loader, item, item_path, "SpecialToken", LP_NODE_OBJECT, &special));
    LP_TRY(lp_member_text(loader, special, lp_path_member(loader, item_path, "SpecialToken"), "id", &name, &size));
    LP_TRY(push_special(loader, json, path, name, &out[behind]));
  }
  if (behind) return LP_OK;
  return lp_error(loader->diag, FILE_LOC(loader), "'%s': the template lacks the sequence", list_path);
}

/* BertProcessing and RobertaProcessing: "cls": ["[CLS]", 1], "sep": [...]. */
static lp_status load_bert(lp_loader *loader, const lp_node *json, const char *path, lp_tokens out[2]) {
  static const char *const keys[] = {"cls", "sep"};
  for (size_t side = 0; side < 2; side++) {
    const lp_node *pair;
    LP_TRY(lp_member_get(loader, json, path, keys[side], LP_NODE_ARRAY, &pair));
    const char *pair_path = lp_path_member(loader, path, keys[side]);
    if (pair->size != 2)
      return lp_error(loader->diag, FILE_LOC(loader), "'%s': expected a token and its id", pair_path);
    LP_TRY(push_id(loader, lp_node_item(pair, 1), lp_path_item(loader, pair_path, 1), &out[side]));
  }
  return LP_OK;
}

static lp_status load_processor(lp_loader *loader, const lp_node *json, const char *path, lp_tokens out[2]) {
  const char *type;
  size_t size;
  LP_TRY(lp_member_text(loader, json, path, "type", &type, &size));
  if (lp_streq(type, "TemplateProcessing")) return load_template(loader, json, path, out);
  if (lp_streq(type, "BertProcessing") || lp_streq(type, "RobertaProcessing"))
    return load_bert(loader, json, path, out);
  if (lp_streq(type, "ByteLevel")) return LP_OK; /* trims offsets, which are not kept here */
  lp_status status =
      lp_error(loader->diag, FILE_LOC(loader), "'%s': the post-processor '%s' is not supported", path, type);
  lp_note(loader->diag, FILE_LOC(loader),
          "supported are TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence");
  return status;
}

/* Puts what one processor adds around what those before it added. */
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

static lp_status load_nested(lp_loader *loader, const lp_node *json, const char *path, int depth) {
  if (lp_node_absent(json)) return LP_OK;
  if (depth > MAX_NESTING) return lp_error(loader->diag, FILE_LOC(loader), "'%s' is nested too deeply", path);
  LP_TRY(lp_node_expect(loader, json, LP_NODE_OBJECT, path));
  const lp_node *type = lp_node_member(json, "type"), *list;
  if (lp_node_equals(type, "Sequence")) {
    LP_TRY(lp_member_get(loader, json, path, "processors", LP_NODE_ARRAY, &list));
    const char *list_path = lp_path_member(loader, path, "processors");
    for (size_t i = 0; i < list->size; i++)
      LP_TRY(load_nested(loader, lp_node_item(list, i), lp_path_item(loader, list_path, i), depth + 1));
    return LP_OK;
  }
  lp_tokens around[2] = {{0}, {0}};
  lp_status status = load_processor(loader, json, path, around);
  if (status == LP_OK) wrap(loader->tokenizer, around);
  lp_vec_free(&around[0]);
  lp_vec_free(&around[1]);
  return status;
}

lp_status lp_load_post_processor(lp_loader *loader, const lp_node *json, const char *path) {
  return load_nested(loader, json, path, 0);
}

/* ---- tokenizer_config.json --------------------------------------------------------------------------------------- */

/* "eos_token": "</s>" or {"content": "</s>", ...}; absent and null leave *out as it is. */
static lp_status load_special_text(lp_loader *loader, const lp_node *json, const char *key, const char **out) {
  const lp_node *member = lp_node_member(json, key);
  size_t size;
  if (lp_node_absent(member)) return LP_OK;
  if (lp_node_is(member, LP_NODE_OBJECT)) return lp_member_text(loader, member, key, "content", out, &size);
  return lp_member_text(loader, json, "", key, out, &size);
}

/* "chat_template": one text, or a list of named ones of which "default" counts. */
static lp_status load_chat(lp_loader *loader, const lp_node *json) {
  lp_tokenizer *tokenizer = loader->tokenizer;
  const lp_node *member = lp_node_member(json, "chat_template");
  if (lp_node_absent(member)) return LP_OK;
  tokenizer->chat_file = lp_arena_strdup(tokenizer->arena, loader->file);
  if (!lp_node_is(member, LP_NODE_ARRAY))
    return lp_member_text(loader, json, "", "chat_template", &tokenizer->chat, &tokenizer->chat_size);
  for (size_t i = 0; i < member->size; i++) {
    const lp_node *item = lp_node_item(member, i), *name = lp_node_member(item, "name");
    if (lp_node_equals(name, "default"))
      return lp_member_text(loader, item, lp_path_item(loader, "chat_template", i), "template", &tokenizer->chat,
                            &tokenizer->chat_size);
  }
  return lp_error(loader->diag, FILE_LOC(loader), "'chat_template': none of the templates is named 'default'");
}

static lp_status load_config_root(lp_loader *loader, const lp_node *root) {
  LP_TRY(lp_node_expect(loader, root, LP_NODE_OBJECT, "the file"));
  LP_TRY(load_special_text(loader, root, "bos_token", &loader->tokenizer->bos));
  LP_TRY(load_special_text(loader, root, "eos_token", &loader->tokenizer->eos));
  return load_chat(loader, root);
}

static lp_status load_config_json(lp_loader *loader) {
  char *data = NULL;
  size_t size = 0;
  lp_json_document *document = NULL;
  LP_TRY(lp_file_read(loader->file, &data, &size, loader->diag));
  lp_status status = lp_document_parse(loader, data, size, &document);
  if (status == LP_OK) status = load_config_root(loader, lp_document_root(document));
  lp_document_free(document);
  free(data);
  return status;
}

static lp_status load_chat_file(lp_loader *loader) {
  lp_tokenizer *tokenizer = loader->tokenizer;
  char *data = NULL;
  LP_TRY(lp_file_read(loader->file, &data, &tokenizer->chat_size, loader->diag));
  tokenizer->chat = lp_arena_copy(tokenizer->arena, data, tokenizer->chat_size + 1);
  tokenizer->chat_file = lp_arena_strdup(tokenizer->arena, loader->file);
  free(data);
  return LP_OK;
}

lp_status lp_load_config(lp_loader *loader, const char *dir) {
  static const struct {
    const char *name;
    lp_status (*load)(lp_loader *loader);
  } files[] = {{"tokenizer_config.json", load_config_json}, {"chat_template.jinja", load_chat_file}};
  lp_status status = LP_OK;
  for (size_t i = 0; i < LP_COUNT(files) && status == LP_OK; i++) {
    char *path = lp_path_join(dir, files[i].name);
    lp_loader beside = {.tokenizer = loader->tokenizer, .file = path, .diag = loader->diag};
    if (lp_path_exists(path)) status = files[i].load(&beside);
    free(path);
  }
  return status;
}
