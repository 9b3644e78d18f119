/* Parses the tokens of a chat template. Precedence is Jinja's: if-else, or, and, not, comparison, + -, ~, * / // %, **,
 * sign, then postfix, filters and tests. */
#include <string.h>

#include "runtime/tokenizer/chat_template.h"

typedef struct {
  const lp_chat *chat;
  const lp_chat_token *token;
  int depth;
} parser;

enum { MAX_DEPTH = 100 };

static lp_status parse_expression(parser *p, lp_chat_node **out);
static lp_status parse_postfix(parser *p, lp_chat_node **out);
static lp_status parse_body(parser *p, lp_chat_node **out);

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static bool is_symbol(const parser *p, const char *text) {
  return p->token->kind == LP_CHAT_SYMBOL && lp_streq(p->token->text, text);
}

static bool is_word(const parser *p, const char *text) {
  return p->token->kind == LP_CHAT_NAME && lp_streq(p->token->text, text);
}

static bool accept_symbol(parser *p, const char *text) {
  if (!is_symbol(p, text)) return false;
  p->token++;
  return true;
}

static bool accept_word(parser *p, const char *text) {
  if (!is_word(p, text)) return false;
  p->token++;
  return true;
}

static lp_status unexpected(const parser *p, const char *wanted) {
  const char *found = p->token->kind == LP_CHAT_END ? "the end" : p->token->text;
  return lp_chat_error(p->chat, p->token->at, "expected %s, found '%s'", wanted, found);
}

static lp_status expect_symbol(parser *p, const char *text) {
  return accept_symbol(p, text) ? LP_OK : unexpected(p, text);
}

static lp_status expect_close(parser *p) {
  if (p->token->kind != LP_CHAT_CLOSE) return unexpected(p, "the end of the tag");
  p->token++;
  return LP_OK;
}

static lp_chat_node *make(parser *p, lp_chat_node_kind kind, const lp_chat_token *token) {
  lp_chat_node *node = LP_NEW(p->chat->arena, lp_chat_node);
  node->kind = kind;
  node->at = token->at;
  node->text = token->text;
  node->size = token->size;
  node->integer = token->integer;
  node->real = token->real;
  return node;
}

static lp_status expect_name(parser *p, const lp_chat_token **out) {
  if (p->token->kind != LP_CHAT_NAME) return unexpected(p, "a name");
  *out = p->token++;
  return LP_OK;
}

/* ---- expressions ------------------------------------------------------------------------------------------------- */

/* Parses items up to and including `close`; keyword arguments are allowed if `keywords` is set. */
static lp_status parse_items(parser *p, const char *close, bool keywords, lp_chat_node **out) {
  lp_chat_node **end = out;
  while (!accept_symbol(p, close)) {
    if (end != out) LP_TRY(expect_symbol(p, ","));
    if (end != out && accept_symbol(p, close)) break;
    const lp_chat_token *name = p->token;
    bool keyword =
        keywords && name->kind == LP_CHAT_NAME && name[1].kind == LP_CHAT_SYMBOL && lp_streq(name[1].text, "=");
    if (keyword) {
      p->token += 2;
      *end = make(p, LP_CHAT_IS_KEYWORD, name);
      LP_TRY(parse_expression(p, &(*end)->a));
    } else {
      LP_TRY(parse_expression(p, end));
    }
    end = &(*end)->next;
  }
  return LP_OK;
}

/* Adjacent string literals are joined. */
static void parse_text(parser *p, lp_chat_node **out) {
  lp_buf text = {0};
  const lp_chat_token *first = p->token;
  for (; p->token->kind == LP_CHAT_TEXT; p->token++)
    lp_buf_append(&text, p->token->text, p->token->size);
  *out = make(p, LP_CHAT_IS_TEXT, first);
  (*out)->text = lp_arena_strndup(p->chat->arena, lp_buf_text(&text), text.size);
  (*out)->size = text.size;
  lp_buf_free(&text);
}

/* Parses after "(": an expression, or a tuple, which becomes a list. */
static lp_status parse_group(parser *p, const lp_chat_token *token, lp_chat_node **out) {
  if (!is_symbol(p, ")")) LP_TRY(parse_expression(p, out));
  if (*out && accept_symbol(p, ")")) return LP_OK;
  lp_chat_node *list = make(p, LP_CHAT_IS_LIST, token);
  list->integer = 1; /* a tuple */
  list->b = *out;
  *out = list;
  if (!list->b) return expect_symbol(p, ")");
  LP_TRY(expect_symbol(p, ","));
  return parse_items(p, ")", false, &list->b->next);
}

/* Parses the members of a mapping, after "{". */
static lp_status parse_dict(parser *p, const lp_chat_token *token, lp_chat_node **out) {
  *out = make(p, LP_CHAT_IS_DICT, token);
  lp_chat_node **end = &(*out)->b;
  while (!accept_symbol(p, "}")) {
    if ((*out)->b) LP_TRY(expect_symbol(p, ","));
    if (accept_symbol(p, "}")) break;
    LP_TRY(parse_expression(p, end));
    LP_TRY(expect_symbol(p, ":"));
    end = &(*end)->next;
    LP_TRY(parse_expression(p, end));
    end = &(*end)->next;
  }
  return LP_OK;
}

static lp_status parse_primary(parser *p, lp_chat_node **out) {
  const lp_chat_token *token = p->token;
  switch (token->kind) {
  case LP_CHAT_NAME:
    *out = make(p, LP_CHAT_IS_NAME, token);
    break;
  case LP_CHAT_TEXT:
    parse_text(p, out);
    return LP_OK;
  case LP_CHAT_INTEGER:
    *out = make(p, LP_CHAT_IS_INTEGER, token);
    break;
  case LP_CHAT_FLOAT:
    *out = make(p, LP_CHAT_IS_REAL, token);
    break;
  default:
    if (accept_symbol(p, "(")) return parse_group(p, token, out);
    if (accept_symbol(p, "{")) return parse_dict(p, token, out);
    if (!accept_symbol(p, "[")) return unexpected(p, "a value");
    *out = make(p, LP_CHAT_IS_LIST, token);
    return parse_items(p, "]", false, &(*out)->b);
  }
  p->token++;
  return LP_OK;
}

static bool at_bound(const parser *p) {
  return !is_symbol(p, ":") && !is_symbol(p, "]");
}

static lp_status parse_subscript(parser *p, lp_chat_node **out) {
  lp_chat_node *node = make(p, LP_CHAT_IS_INDEX, p->token - 1);
  node->a = *out;
  *out = node;
  if (!is_symbol(p, ":")) LP_TRY(parse_expression(p, &node->b));
  if (accept_symbol(p, ":")) {
    node->kind = LP_CHAT_IS_SLICE;
    if (at_bound(p)) LP_TRY(parse_expression(p, &node->c));
    if (accept_symbol(p, ":") && at_bound(p)) LP_TRY(parse_expression(p, &node->d));
  }
  return expect_symbol(p, "]");
}

static lp_status parse_postfix(parser *p, lp_chat_node **out) {
  for (;;) {
    const lp_chat_token *token = p->token;
    lp_chat_node *node;
    if (accept_symbol(p, ".")) {
      const lp_chat_token *name = p->token;
      LP_TRY(expect_name(p, &name));
      node = make(p, LP_CHAT_IS_MEMBER, name);
      node->a = *out;
      *out = node;
    } else if (accept_symbol(p, "[")) {
      LP_TRY(parse_subscript(p, out));
    } else if (accept_symbol(p, "(")) {
      node = make(p, LP_CHAT_IS_CALL, token);
      node->a = *out;
      *out = node;
      LP_TRY(parse_items(p, ")", true, &node->b));
    } else {
      return LP_OK;
    }
  }
}

/* Words that continue an expression or end it. */
static bool is_keyword(const parser *p) {
  static const char *const words[] = {"and", "or", "else", "if", "is", "in", "not"};
  for (size_t i = 0; i < LP_COUNT(words); i++)
    if (is_word(p, words[i])) return true;
  return false;
}

static lp_status parse_test(parser *p, lp_chat_node **out) {
  bool negated = accept_word(p, "not");
  const lp_chat_token *name = p->token;
  LP_TRY(expect_name(p, &name));
  lp_chat_node *node = make(p, LP_CHAT_IS_TEST, name);
  node->integer = negated;
  node->a = *out;
  *out = node;
  if (accept_symbol(p, "(")) return parse_items(p, ")", true, &node->b);
  lp_chat_token_kind kind = p->token->kind;
  bool argument = kind == LP_CHAT_TEXT || kind == LP_CHAT_INTEGER || kind == LP_CHAT_FLOAT || is_symbol(p, "[") ||
                  is_symbol(p, "{") || (kind == LP_CHAT_NAME && !is_keyword(p));
  if (!argument) return LP_OK;
  LP_TRY(parse_primary(p, &node->b));
  return parse_postfix(p, &node->b);
}

static lp_status parse_filters(parser *p, lp_chat_node **out) {
  for (;;) {
    if (accept_symbol(p, "|")) {
      const lp_chat_token *name = p->token;
      LP_TRY(expect_name(p, &name));
      lp_chat_node *node = make(p, LP_CHAT_IS_FILTER, name);
      node->a = *out;
      *out = node;
      if (accept_symbol(p, "(")) LP_TRY(parse_items(p, ")", true, &node->b));
    } else if (accept_word(p, "is")) {
      LP_TRY(parse_test(p, out));
    } else {
      return LP_OK;
    }
  }
}

static lp_status parse_unary(parser *p, lp_chat_node **out) {
  const lp_chat_token *token = p->token;
  (void)accept_symbol(p, "+");
  if (accept_symbol(p, "-")) {
    lp_chat_node *node = make(p, LP_CHAT_IS_MINUS, token);
    LP_TRY(parse_primary(p, &node->a));
    LP_TRY(parse_postfix(p, &node->a));
    *out = node;
  } else {
    LP_TRY(parse_primary(p, out));
    LP_TRY(parse_postfix(p, out));
  }
  return parse_filters(p, out);
}

/* The binary operators from the loosest level to the tightest. */
static const char *const levels[][7] = {
    {"or"}, {"and"}, {NULL}, {"==", "!=", "<", ">", "<=", ">=", "in"}, {"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"},
};
enum { LEVEL_NOT = 2, LEVEL_COMPARE = 3 };

static bool at_operator(const parser *p, size_t level) {
  for (size_t i = 0; i < LP_COUNT(levels[level]) && levels[level][i]; i++)
    if (is_symbol(p, levels[level][i]) || is_word(p, levels[level][i])) return true;
  return level == LEVEL_COMPARE && is_word(p, "not") && p->token[1].kind == LP_CHAT_NAME &&
         lp_streq(p->token[1].text, "in");
}

static lp_status parse_level(parser *p, size_t level, lp_chat_node **out);

/* Parses comparisons such as a < b < c into a chain. Each link has its right side in `a`. */
static lp_status parse_chain(parser *p, lp_chat_node *node, lp_chat_node **out) {
  lp_chat_node *first = *out;
  if (first->kind == LP_CHAT_IS_BINARY) {
    lp_chat_node *link = LP_NEW(p->chat->arena, lp_chat_node);
    *link = *first;
    link->a = first->b;
    link->b = NULL;
    first->kind = LP_CHAT_IS_CHAIN;
    first->b = link;
  }
  lp_chat_node *last = first->b;
  while (last->next)
    last = last->next;
  last->next = node;
  return parse_level(p, LEVEL_COMPARE + 1, &node->a);
}

static lp_status parse_level(parser *p, size_t level, lp_chat_node **out) {
  if (level == LP_COUNT(levels)) return parse_unary(p, out);
  const lp_chat_token *token = p->token;
  if (level == LEVEL_NOT && accept_word(p, "not")) {
    if (++p->depth > MAX_DEPTH) return lp_chat_error(p->chat, token->at, "nested too deeply");
    *out = make(p, LP_CHAT_IS_NOT, token);
    LP_TRY(parse_level(p, level, &(*out)->a));
    p->depth--;
    return LP_OK;
  }
  LP_TRY(parse_level(p, level + 1, out));
  for (size_t count = 0; at_operator(p, level); count++) {
    lp_chat_node *node = make(p, LP_CHAT_IS_BINARY, p->token++);
    if (lp_streq(node->text, "not")) {
      p->token++;
      node->text = "not in";
    }
    if (level == LEVEL_COMPARE && count > 0) {
      LP_TRY(parse_chain(p, node, out));
      continue;
    }
    node->a = *out;
    *out = node;
    LP_TRY(parse_level(p, level + 1, &node->b));
  }
  return LP_OK;
}

static lp_status parse_expression(parser *p, lp_chat_node **out) {
  if (++p->depth > MAX_DEPTH) return lp_chat_error(p->chat, p->token->at, "nested too deeply");
  LP_TRY(parse_level(p, 0, out));
  const lp_chat_token *token = p->token;
  if (accept_word(p, "if")) {
    lp_chat_node *node = make(p, LP_CHAT_IS_CHOICE, token);
    node->a = *out;
    *out = node;
    LP_TRY(parse_level(p, 0, &node->b));
    if (accept_word(p, "else")) LP_TRY(parse_expression(p, &node->c));
  }
  p->depth--;
  return LP_OK;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

/* Tells whether the next tag is {% word ... %}. */
static bool at_block(const parser *p, const char *word) {
  return p->token->kind == LP_CHAT_BLOCK && p->token[1].kind == LP_CHAT_NAME && lp_streq(p->token[1].text, word);
}

static lp_status expect_end(parser *p, const char *word, const lp_chat_token *start) {
  if (!at_block(p, word)) return lp_chat_error(p->chat, start->at, "'%s' lacks its '%s'", start->text, word);
  p->token += 2;
  return expect_close(p);
}

static lp_status parse_if(parser *p, const lp_chat_token *start, lp_chat_node **out);

static lp_status parse_otherwise(parser *p, const lp_chat_token *start, lp_chat_node **out) {
  const lp_chat_token *word = p->token + 1;
  if (at_block(p, "elif")) {
    p->token += 2;
    return parse_if(p, word, out);
  }
  if (at_block(p, "else")) {
    p->token += 2;
    LP_TRY(expect_close(p));
    LP_TRY(parse_body(p, out));
  }
  return expect_end(p, "endif", start);
}

/* Parses the condition, the body and all branches after it, after `if` or `elif`. */
static lp_status parse_if(parser *p, const lp_chat_token *start, lp_chat_node **out) {
  if (++p->depth > MAX_DEPTH) return lp_chat_error(p->chat, start->at, "nested too deeply");
  *out = make(p, LP_CHAT_DO_IF, start);
  LP_TRY(parse_expression(p, &(*out)->a));
  LP_TRY(expect_close(p));
  LP_TRY(parse_body(p, &(*out)->b));
  LP_TRY(parse_otherwise(p, start, &(*out)->c));
  p->depth--;
  return LP_OK;
}

/* Parses names between commas, with or without parentheses. */
static lp_status parse_targets(parser *p, lp_chat_node **out) {
  bool group = accept_symbol(p, "(");
  do {
    const lp_chat_token *name = p->token;
    LP_TRY(expect_name(p, &name));
    *out = make(p, LP_CHAT_IS_NAME, name);
    out = &(*out)->next;
  } while (accept_symbol(p, ","));
  return group ? expect_symbol(p, ")") : LP_OK;
}

/* Makes *out the first item of a tuple without parentheses if a comma follows it. */
static lp_status parse_rest_of_tuple(parser *p, const lp_chat_token *start, lp_chat_node **out) {
  if (!is_symbol(p, ",")) return LP_OK;
  lp_chat_node *list = make(p, LP_CHAT_IS_LIST, start);
  list->integer = 1; /* a tuple */
  list->b = *out;
  *out = list;
  for (lp_chat_node **end = &list->b->next; accept_symbol(p, ","); end = &(*end)->next) {
    if (p->token->kind == LP_CHAT_CLOSE) break;
    LP_TRY(parse_level(p, 0, end));
  }
  return LP_OK;
}

static lp_status parse_for(parser *p, const lp_chat_token *start, lp_chat_node **out) {
  *out = make(p, LP_CHAT_DO_FOR, start);
  LP_TRY(parse_targets(p, &(*out)->targets));
  if (!accept_word(p, "in")) return unexpected(p, "in");
  LP_TRY(parse_level(p, 0, &(*out)->a));
  LP_TRY(parse_rest_of_tuple(p, start, &(*out)->a));
  if (accept_word(p, "if")) LP_TRY(parse_expression(p, &(*out)->d));
  if (is_word(p, "recursive")) return lp_chat_error(p->chat, p->token->at, "'recursive' loops are not supported");
  LP_TRY(expect_close(p));
  LP_TRY(parse_body(p, &(*out)->b));
  if (at_block(p, "else")) {
    p->token += 2;
    LP_TRY(expect_close(p));
    LP_TRY(parse_body(p, &(*out)->c));
  }
  return expect_end(p, "endfor", start);
}

/* Parses a block that captures its text. Filters may follow the name; the body ends at `end`. */
static lp_status parse_capture(parser *p, const lp_chat_token *start, const char *end, lp_chat_node *node) {
  node->a = make(p, LP_CHAT_IS_CAPTURED, start);
  LP_TRY(parse_filters(p, &node->a));
  LP_TRY(expect_close(p));
  LP_TRY(parse_body(p, &node->b));
  return expect_end(p, end, start);
}

static lp_status parse_set(parser *p, const lp_chat_token *start, lp_chat_node **out) {
  *out = make(p, LP_CHAT_DO_SET, start);
  LP_TRY(parse_targets(p, &(*out)->targets));
  if (accept_symbol(p, ".")) {
    const lp_chat_token *attribute = p->token;
    LP_TRY(expect_name(p, &attribute));
    (*out)->targets->b = make(p, LP_CHAT_IS_NAME, attribute);
  }
  if (!accept_symbol(p, "=")) {
    (*out)->kind = LP_CHAT_DO_CAPTURE;
    return parse_capture(p, start, "endset", *out);
  }
  LP_TRY(parse_expression(p, &(*out)->a));
  LP_TRY(parse_rest_of_tuple(p, start, &(*out)->a));
  return expect_close(p);
}

/* {% filter name %}...{% endfilter %} prints the text through filters. */
static lp_status parse_filter_block(parser *p, const lp_chat_token *start, lp_chat_node **out) {
  const lp_chat_token *name = p->token;
  *out = make(p, LP_CHAT_DO_CAPTURE, start);
  LP_TRY(expect_name(p, &name));
  lp_chat_node *filter = make(p, LP_CHAT_IS_FILTER, name);
  filter->a = make(p, LP_CHAT_IS_CAPTURED, start);
  if (accept_symbol(p, "(")) LP_TRY(parse_items(p, ")", true, &filter->b));
  (*out)->a = filter;
  LP_TRY(parse_filters(p, &(*out)->a));
  LP_TRY(expect_close(p));
  LP_TRY(parse_body(p, &(*out)->b));
  return expect_end(p, "endfilter", start);
}

/* Parses parameters with their defaults, after "(". */
static lp_status parse_parameters(parser *p, lp_chat_node **out) {
  lp_chat_node **end = out;
  while (!accept_symbol(p, ")")) {
    if (*out) LP_TRY(expect_symbol(p, ","));
    const lp_chat_token *parameter = p->token;
    LP_TRY(expect_name(p, &parameter));
    *end = make(p, LP_CHAT_IS_NAME, parameter);
    if (accept_symbol(p, "=")) LP_TRY(parse_expression(p, &(*end)->a));
    end = &(*end)->next;
  }
  return LP_OK;
}

static lp_status parse_macro(parser *p, const lp_chat_token *start, lp_chat_node **out) {
  const lp_chat_token *name = p->token;
  LP_TRY(expect_name(p, &name));
  *out = make(p, LP_CHAT_DO_MACRO, name);
  LP_TRY(expect_symbol(p, "("));
  LP_TRY(parse_parameters(p, &(*out)->targets));
  LP_TRY(expect_close(p));
  const lp_chat_token *body = p->token;
  LP_TRY(parse_body(p, &(*out)->b));
  for (; body < p->token; body++)
    (*out)->integer |= body->kind == LP_CHAT_NAME && lp_streq(body->text, "caller");
  return expect_end(p, "endmacro", start);
}

/* {% call(parameters) macro(arguments) %}...{% endcall %} */
static lp_status parse_call(parser *p, const lp_chat_token *start, lp_chat_node **out) {
  *out = make(p, LP_CHAT_DO_CALL, start);
  lp_chat_node *body = (*out)->b = make(p, LP_CHAT_DO_MACRO, start);
  body->text = "caller";
  if (accept_symbol(p, "(")) LP_TRY(parse_parameters(p, &body->targets));
  LP_TRY(parse_expression(p, &(*out)->a));
  if ((*out)->a->kind != LP_CHAT_IS_CALL) return lp_chat_error(p->chat, start->at, "'call' without a call");
  LP_TRY(expect_close(p));
  LP_TRY(parse_body(p, &body->b));
  return expect_end(p, "endcall", start);
}

/* {% with name = value, ... %}...{% endwith %} */
static lp_status parse_with(parser *p, const lp_chat_token *start, lp_chat_node **out) {
  *out = make(p, LP_CHAT_DO_WITH, start);
  for (lp_chat_node **end = &(*out)->targets; p->token->kind != LP_CHAT_CLOSE; end = &(*end)->next) {
    if ((*out)->targets) LP_TRY(expect_symbol(p, ","));
    const lp_chat_token *name = p->token;
    LP_TRY(expect_name(p, &name));
    LP_TRY(expect_symbol(p, "="));
    *end = make(p, LP_CHAT_IS_NAME, name);
    LP_TRY(parse_expression(p, &(*end)->a));
  }
  LP_TRY(expect_close(p));
  LP_TRY(parse_body(p, &(*out)->b));
  return expect_end(p, "endwith", start);
}

/* A statement outside of the subset fails only when it runs, so the content of the tag is skipped. */
static lp_status parse_unknown(parser *p, const lp_chat_token *word, lp_chat_node **out) {
  if (lp_has_prefix(word->text, "end") || lp_streq(word->text, "block"))
    return lp_chat_error(p->chat, word->at, "the statement '%s' is not supported", word->text);
  *out = make(p, LP_CHAT_DO_REFUSE, word);
  while (p->token->kind != LP_CHAT_CLOSE && p->token->kind != LP_CHAT_END)
    p->token++;
  return expect_close(p);
}

static lp_status parse_block(parser *p, lp_chat_node **out) {
  p->token++;
  const lp_chat_token *word = p->token;
  LP_TRY(expect_name(p, &word));
  if (lp_streq(word->text, "if")) return parse_if(p, word, out);
  if (lp_streq(word->text, "for")) return parse_for(p, word, out);
  if (lp_streq(word->text, "set")) return parse_set(p, word, out);
  if (lp_streq(word->text, "macro")) return parse_macro(p, word, out);
  if (lp_streq(word->text, "call")) return parse_call(p, word, out);
  if (lp_streq(word->text, "with")) return parse_with(p, word, out);
  if (lp_streq(word->text, "filter")) return parse_filter_block(p, word, out);
  if (lp_streq(word->text, "break") || lp_streq(word->text, "continue")) {
    *out = make(p, word->text[0] == 'b' ? LP_CHAT_DO_BREAK : LP_CHAT_DO_CONTINUE, word);
    return expect_close(p);
  }
  if (lp_streq(word->text, "generation") || lp_streq(word->text, "endgeneration"))
    return expect_close(p); /* transformers' mark for training masks prints nothing */
  return parse_unknown(p, word, out);
}

static bool at_end_of_body(const parser *p) {
  static const char *const ends[] = {"endif",    "endfor",    "else",    "elif",   "endset",
                                     "endmacro", "endfilter", "endcall", "endwith"};
  for (size_t i = 0; i < LP_COUNT(ends); i++)
    if (at_block(p, ends[i])) return true;
  return false;
}

static lp_status parse_body(parser *p, lp_chat_node **out) {
  lp_chat_node **end = out;
  if (++p->depth > MAX_DEPTH) return lp_chat_error(p->chat, p->token->at, "nested too deeply");
  while (p->token->kind != LP_CHAT_END && !at_end_of_body(p)) {
    const lp_chat_token *token = p->token;
    if (token->kind == LP_CHAT_DATA) {
      *end = make(p, LP_CHAT_DO_TEXT, p->token++);
    } else if (token->kind == LP_CHAT_OUTPUT) {
      *end = make(p, LP_CHAT_DO_OUTPUT, p->token++);
      LP_TRY(parse_expression(p, &(*end)->a));
      LP_TRY(expect_close(p));
    } else {
      LP_TRY(parse_block(p, end));
    }
    if (*end) end = &(*end)->next;
  }
  p->depth--;
  return LP_OK;
}

lp_status lp_chat_parse(const lp_chat *chat, const lp_chat_tokens *tokens, lp_chat_node **out) {
  parser p = {.chat = chat, .token = tokens->data};
  *out = NULL;
  LP_TRY(parse_body(&p, out));
  if (p.token->kind == LP_CHAT_END) return LP_OK;
  return lp_chat_error(chat, p.token->at, "'%s' without its beginning", p.token[1].text);
}
