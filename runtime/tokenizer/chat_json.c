/* Chats with tools: messages and tools as JSON, which the chat template reads as its variables. */

#include "base/json/writer.h"
#include "runtime/chat/chat.h"
#include "runtime/tokenizer/internal.h"

typedef struct {
  const lp_tokenizer *tokenizer;
  const char *mark; /* inserted into special tokens that the texts spell; NULL: texts are copied */
  bool fills;       /* a content that is null or absent becomes an empty text */
  lp_json_writer json;
} copier;

static void put_text(copier *c, const char *key, const char *text, size_t size) {
  LP_OWNED(lp_buf_free) lp_buf marked = {0};
  if (c->mark)
    lp_tokenizer_mark(c->tokenizer, text, size, c->mark, &marked);
  else
    lp_buf_append(&marked, text, size);
  lp_json_put_bytes(&c->json, key, lp_buf_text(&marked), marked.size);
}

static void copy(copier *c, const char *key, const lp_json *at) {
  const lp_json_value *value = at->value;
  if (value->kind == LP_JSON_TEXT) {
    put_text(c, key, value->text, value->size);
  } else if (value->kind == LP_JSON_ARRAY) {
    lp_json_put_array(&c->json, key);
    LP_FOR_ITEMS(item, at)
      copy(c, NULL, &item);
    lp_json_put_end(&c->json);
  } else if (value->kind == LP_JSON_OBJECT) {
    lp_json_put_object(&c->json, key);
    for (size_t i = 0; i < lp_json_count(at); i++) {
      lp_json member = lp_json_entry(at, i);
      copy(c, member.key, &member);
    }
    lp_json_put_end(&c->json);
  } else {
    lp_json_put_value(&c->json, key, value);
  }
}

/* A content as one text: templates expect that of parts that are texts. */
static void copy_content(copier *c, const lp_json *content) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  const bool is_filled = c->fills && !lp_json_is_given(content);
  if (!is_filled && !lp_json_is(content, LP_JSON_ARRAY)) {
    copy(c, "content", content);
    return;
  }
  for (size_t i = 0; i < lp_json_count(content); i++) {
    lp_json part = lp_json_item(content, i), at = lp_json_member(&part, "text");
    lp_buf_puts(&text, lp_json_text_or(&at, ""));
  }
  put_text(c, "content", lp_buf_text(&text), text.size);
}

/* The arguments of a call are a text of JSON in the API and a value in templates. Text that is no JSON stays. */
static void copy_arguments(copier *c, const lp_json *arguments) {
  const char *text = lp_json_text_or(arguments, NULL);
  lp_json_document *document = NULL;
  if (!text || lp_json_parse("arguments", text, strlen(text), LP_JSON_REFUSE_NUL, &document, NULL) != LP_OK) {
    copy(c, "arguments", arguments);
    return;
  }
  lp_json root = lp_json_root("arguments", document);
  copy(c, "arguments", &root);
  lp_json_free(document);
}

static void copy_calls(copier *c, const lp_json *calls) {
  lp_json_put_array(&c->json, "tool_calls");
  LP_FOR_ITEMS(call, calls) {
    lp_json_put_object(&c->json, NULL);
    for (size_t k = 0; k < lp_json_count(&call); k++) {
      lp_json member = lp_json_entry(&call, k);
      if (!lp_streq(member.key, "function")) {
        copy(c, member.key, &member);
        continue;
      }
      lp_json_put_object(&c->json, "function");
      for (size_t m = 0; m < lp_json_count(&member); m++) {
        lp_json part = lp_json_entry(&member, m);
        if (lp_streq(part.key, "arguments"))
          copy_arguments(c, &part);
        else
          copy(c, part.key, &part);
      }
      lp_json_put_end(&c->json);
    }
    lp_json_put_end(&c->json);
  }
  lp_json_put_end(&c->json);
}

static void copy_message(copier *c, const lp_json *message) {
  lp_json content = lp_json_member(message, "content");
  lp_json_put_object(&c->json, NULL);
  for (size_t i = 0; i < lp_json_count(message); i++) {
    lp_json member = lp_json_entry(message, i);
    if (lp_streq(member.key, "content"))
      copy_content(c, &member);
    else if (lp_streq(member.key, "tool_calls") && lp_json_is(&member, LP_JSON_ARRAY))
      copy_calls(c, &member);
    else
      copy(c, member.key, &member);
  }
  if (c->fills && !content.value) copy_content(c, &content);
  lp_json_put_end(&c->json);
}

/* What a template is given. */
typedef struct {
  lp_json messages, tools, more; /* more: an object of variables; tools and more may be absent */
} given;

static void write_variables(const lp_tokenizer *tokenizer, const given *g, bool fills, const char *mark, lp_buf *out) {
  copier c = {.tokenizer = tokenizer, .mark = mark, .fills = fills};
  c.json = lp_json_writer_begin(out, (lp_json_style){.has_no_space = true});
  lp_json_put_object(&c.json, NULL);
  lp_json_put_array(&c.json, "messages");
  LP_FOR_ITEMS(message, &g->messages)
    copy_message(&c, &message);
  lp_json_put_end(&c.json);
  if (lp_json_is_given(&g->tools)) copy(&c, "tools", &g->tools);
  for (size_t i = 0; i < lp_json_count(&g->more); i++) {
    lp_json variable = lp_json_entry(&g->more, i);
    copy(&c, variable.key, &variable);
  }
  lp_json_put_end(&c.json);
}

static lp_status encode(const lp_tokenizer *tokenizer, const given *g, bool fills, const lp_watch *watch,
                        lp_tokens *ids, lp_diag *diag) {
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  LP_OWNED(lp_buf_free) lp_buf plain = {0}, mark = {0}, marked = {0}, text = {0};
  write_variables(tokenizer, g, fills, NULL, &plain);
  const lp_chat_message all = {.role = "", .content = plain.data};
  lp_tokenizer_choose_mark(&all, 1, &mark);
  write_variables(tokenizer, g, fills, mark.data, &marked);
  lp_status status = lp_json_parse("the chat", marked.data, marked.size, 0, &document, diag);
  if (status == LP_OK) {
    lp_json root = lp_json_root("the chat", document);
    const lp_chat_input input = {.add_generation_prompt = true, .variables = root.value, .watch = watch};
    status = lp_tokenizer_render(tokenizer, input, lp_json_is_given(&g->tools), &text, diag);
  }
  if (status == LP_OK) status = lp_tokenizer_encode_marked(tokenizer, &text, mark.data, ids, diag);
  return status;
}

static bool lacks_content(const lp_json *messages) {
  for (size_t i = 0; i < lp_json_count(messages); i++) {
    lp_json message = lp_json_item(messages, i), content = lp_json_member(&message, "content");
    if (!lp_json_is_given(&content)) return true;
  }
  return false;
}

/* Calls have no content. Some templates ask whether it is none, and others fail for it: these get an empty text. */
lp_status lp_tokenizer_encode_chat_json(const lp_tokenizer *tokenizer, const struct lp_json_value *messages,
                                        const struct lp_json_value *tools, const struct lp_json_value *variables,
                                        const lp_watch *watch, lp_tokens *ids, lp_diag *diag) {
  const given g = {{.value = messages}, {.value = tools}, {.value = variables}};
  if (!lacks_content(&g.messages)) return encode(tokenizer, &g, false, watch, ids, diag);
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  const lp_status status = encode(tokenizer, &g, false, watch, ids, quiet);
  return status == LP_OK ? LP_OK : encode(tokenizer, &g, true, watch, ids, diag);
}

lp_status lp_tokenizer_try_chat(const lp_tokenizer *tokenizer, lp_diag *diag) {
  static const lp_chat_message all[] = {
      {"system", "Be brief."}, {"user", "Hi"}, {"assistant", "Hello!"}, {"user", "1 + 1?"}};
  static const char tools[] =
      "{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"add\",\"description\":\"Adds.\","
      "\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}}}]}";
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  lp_status status = lp_json_parse("tools", tools, sizeof tools - 1, 0, &document, diag);
  for (size_t i = 0; i < 4 && status == LP_OK && tokenizer->chat.source; i++) {
    const size_t first = i % 2; /* some templates refuse a system prompt */
    lp_json root = lp_json_root("tools", document);
    lp_chat_limit broken = LP_CHAT_NO_LIMIT;
    const lp_chat_input input = {.messages = all + first,
                                 .count = LP_COUNT(all) - first,
                                 .add_generation_prompt = true,
                                 .variables = i < 2 ? NULL : root.value,
                                 .broken = &broken};
    LP_OWNED(lp_diag_free_at) lp_diag *own = lp_diag_create();
    LP_OWNED(lp_buf_free) lp_buf text = {0};
    if (lp_tokenizer_render(tokenizer, input, i >= 2, &text, own) != LP_OK && broken != LP_CHAT_NO_LIMIT)
      status = lp_error(diag, lp_diag_get(own, 0)->loc, "%s", lp_diag_get(own, 0)->text);
  }
  return status;
}
