/* Parses the expressions of a chat template. Precedence is Jinja's: if-else, or, and, not, comparison, + -, ~,
 * * / // %, **, sign, then postfix, filters and tests. */

#include "runtime/chat/parse.h"

static lp_status parse_postfix(lp_chat_parser *p, lp_chat_node **out);

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

lp_status lp_chat_parse_deeper(lp_chat_parser *p) {
  if (++p->depth <= LP_CHAT_MAX_DEPTH) return LP_OK;
  return lp_chat_error(p->chat, p->token->at, "bodies or expressions are nested too deeply, more than %d",
                       LP_CHAT_MAX_DEPTH);
}

bool lp_chat_is_symbol(const lp_chat_parser *p, const char *text) {
  return p->token->kind == LP_CHAT_SYMBOL && lp_streq(p->token->text, text);
}

bool lp_chat_is_word(const lp_chat_parser *p, const char *text) {
  return p->token->kind == LP_CHAT_NAME && lp_streq(p->token->text, text);
}

bool lp_chat_accept_symbol(lp_chat_parser *p, const char *text) {
  if (!lp_chat_is_symbol(p, text)) return false;
  p->token++;
  return true;
}

bool lp_chat_accept_word(lp_chat_parser *p, const char *text) {
  if (!lp_chat_is_word(p, text)) return false;
  p->token++;
  return true;
}

lp_status lp_chat_unexpected(const lp_chat_parser *p, const char *wanted) {
  const char *found = p->token->kind == LP_CHAT_END ? "the end" : p->token->text;
  return lp_chat_error(p->chat, p->token->at, "expected %s, found '%s'", wanted, found);
}

lp_status lp_chat_expect_symbol(lp_chat_parser *p, const char *text) {
  return lp_chat_accept_symbol(p, text) ? LP_OK : lp_chat_unexpected(p, text);
}

lp_chat_node *lp_chat_make_node(lp_chat_parser *p, lp_chat_node_kind kind, const lp_chat_token *token) {
  lp_chat_node *node = p->node++;
  *node = (lp_chat_node){.kind = kind,
                         .at = token->at,
                         .text = token->text,
                         .size = token->size,
                         .integer = token->integer,
                         .real = token->real};
  return node;
}

lp_status lp_chat_expect_name(lp_chat_parser *p, const lp_chat_token **out) {
  if (p->token->kind != LP_CHAT_NAME) return lp_chat_unexpected(p, "a name");
  *out = p->token++;
  return LP_OK;
}

/* ---- expressions ------------------------------------------------------------------------------------------------- */

/* Parses items up to and including `close`; keyword arguments are allowed if `keywords` is set. */
lp_status lp_chat_parse_items(lp_chat_parser *p, const char *close, bool keywords, lp_chat_node **out) {
  lp_chat_node **end = out;
  while (!lp_chat_accept_symbol(p, close)) {
    if (end != out) LP_TRY(lp_chat_expect_symbol(p, ","));
    if (end != out && lp_chat_accept_symbol(p, close)) break;
    const lp_chat_token *name = p->token;
    bool keyword =
        keywords && name->kind == LP_CHAT_NAME && name[1].kind == LP_CHAT_SYMBOL && lp_streq(name[1].text, "=");
    if (keyword) {
      p->token += 2;
      *end = lp_chat_make_node(p, LP_CHAT_IS_KEYWORD, name);
      LP_TRY(lp_chat_parse_expression(p, &(*end)->a));
    } else {
      LP_TRY(lp_chat_parse_expression(p, end));
    }
    end = &(*end)->next;
  }
  return LP_OK;
}

/* Adjacent string literals are joined. */
static void parse_text(lp_chat_parser *p, lp_chat_node **out) {
  lp_buf text = {.arena = p->chat->arena};
  const lp_chat_token *first = p->token;
  for (; p->token->kind == LP_CHAT_TEXT; p->token++)
    lp_buf_append(&text, p->token->text, p->token->size);
  *out = lp_chat_make_node(p, LP_CHAT_IS_TEXT, first);
  (*out)->text = lp_buf_text(&text);
  (*out)->size = text.size;
}

/* Parses after "(": an expression, or a tuple, which becomes a list. */
static lp_status parse_group(lp_chat_parser *p, const lp_chat_token *token, lp_chat_node **out) {
  if (!lp_chat_is_symbol(p, ")")) LP_TRY(lp_chat_parse_expression(p, out));
  if (*out && lp_chat_accept_symbol(p, ")")) return LP_OK;
  lp_chat_node *list = lp_chat_make_node(p, LP_CHAT_IS_LIST, token);
  list->integer = 1; /* a tuple */
  list->b = *out;
  *out = list;
  if (!list->b) return lp_chat_expect_symbol(p, ")");
  LP_TRY(lp_chat_expect_symbol(p, ","));
  return lp_chat_parse_items(p, ")", false, &list->b->next);
}

/* Parses the members of a mapping, after "{". */
static lp_status parse_dict(lp_chat_parser *p, const lp_chat_token *token, lp_chat_node **out) {
  *out = lp_chat_make_node(p, LP_CHAT_IS_DICT, token);
  lp_chat_node **end = &(*out)->b;
  while (!lp_chat_accept_symbol(p, "}")) {
    if ((*out)->b) LP_TRY(lp_chat_expect_symbol(p, ","));
    if (lp_chat_accept_symbol(p, "}")) break;
    LP_TRY(lp_chat_parse_expression(p, end));
    LP_TRY(lp_chat_expect_symbol(p, ":"));
    end = &(*end)->next;
    LP_TRY(lp_chat_parse_expression(p, end));
    end = &(*end)->next;
  }
  return LP_OK;
}

static lp_status parse_primary(lp_chat_parser *p, lp_chat_node **out) {
  const lp_chat_token *token = p->token;
  switch (token->kind) {
  case LP_CHAT_NAME:
    *out = lp_chat_make_node(p, LP_CHAT_IS_NAME, token);
    break;
  case LP_CHAT_TEXT:
    parse_text(p, out);
    return LP_OK;
  case LP_CHAT_INTEGER:
    *out = lp_chat_make_node(p, LP_CHAT_IS_INTEGER, token);
    break;
  case LP_CHAT_FLOAT:
    *out = lp_chat_make_node(p, LP_CHAT_IS_REAL, token);
    break;
  default:
    if (lp_chat_accept_symbol(p, "(")) return parse_group(p, token, out);
    if (lp_chat_accept_symbol(p, "{")) return parse_dict(p, token, out);
    if (!lp_chat_accept_symbol(p, "[")) return lp_chat_unexpected(p, "a value");
    *out = lp_chat_make_node(p, LP_CHAT_IS_LIST, token);
    return lp_chat_parse_items(p, "]", false, &(*out)->b);
  }
  p->token++;
  return LP_OK;
}

static bool at_bound(const lp_chat_parser *p) {
  return !lp_chat_is_symbol(p, ":") && !lp_chat_is_symbol(p, "]");
}

static lp_status parse_subscript(lp_chat_parser *p, lp_chat_node **out) {
  lp_chat_node *node = lp_chat_make_node(p, LP_CHAT_IS_INDEX, p->token - 1);
  node->a = *out;
  *out = node;
  if (!lp_chat_is_symbol(p, ":")) LP_TRY(lp_chat_parse_expression(p, &node->b));
  if (lp_chat_accept_symbol(p, ":")) {
    node->kind = LP_CHAT_IS_SLICE;
    if (at_bound(p)) LP_TRY(lp_chat_parse_expression(p, &node->c));
    if (lp_chat_accept_symbol(p, ":") && at_bound(p)) LP_TRY(lp_chat_parse_expression(p, &node->d));
  }
  return lp_chat_expect_symbol(p, "]");
}

static lp_status parse_postfix(lp_chat_parser *p, lp_chat_node **out) {
  for (;;) {
    const lp_chat_token *token = p->token;
    lp_chat_node *node;
    if (lp_chat_accept_symbol(p, ".")) {
      const lp_chat_token *name = p->token;
      LP_TRY(lp_chat_expect_name(p, &name));
      node = lp_chat_make_node(p, LP_CHAT_IS_MEMBER, name);
      node->a = *out;
      *out = node;
    } else if (lp_chat_accept_symbol(p, "[")) {
      LP_TRY(parse_subscript(p, out));
    } else if (lp_chat_accept_symbol(p, "(")) {
      node = lp_chat_make_node(p, LP_CHAT_IS_CALL, token);
      node->a = *out;
      *out = node;
      LP_TRY(lp_chat_parse_items(p, ")", true, &node->b));
    } else {
      return LP_OK;
    }
  }
}

/* Words that continue an expression or end it. */
static bool is_keyword(const lp_chat_parser *p) {
  static const char *const words[] = {"and", "or", "else", "if", "is", "in", "not"};
  for (size_t i = 0; i < LP_COUNT(words); i++)
    if (lp_chat_is_word(p, words[i])) return true;
  return false;
}

static lp_status parse_test(lp_chat_parser *p, lp_chat_node **out) {
  bool negated = lp_chat_accept_word(p, "not");
  const lp_chat_token *name = p->token;
  LP_TRY(lp_chat_expect_name(p, &name));
  lp_chat_node *node = lp_chat_make_node(p, LP_CHAT_IS_TEST, name);
  node->integer = negated;
  node->a = *out;
  *out = node;
  if (lp_chat_accept_symbol(p, "(")) return lp_chat_parse_items(p, ")", true, &node->b);
  lp_chat_token_kind kind = p->token->kind;
  bool argument = kind == LP_CHAT_TEXT || kind == LP_CHAT_INTEGER || kind == LP_CHAT_FLOAT ||
                  lp_chat_is_symbol(p, "[") || lp_chat_is_symbol(p, "{") || (kind == LP_CHAT_NAME && !is_keyword(p));
  if (!argument) return LP_OK;
  LP_TRY(parse_primary(p, &node->b));
  return parse_postfix(p, &node->b);
}

lp_status lp_chat_parse_filters(lp_chat_parser *p, lp_chat_node **out) {
  for (;;) {
    if (lp_chat_accept_symbol(p, "|")) {
      const lp_chat_token *name = p->token;
      LP_TRY(lp_chat_expect_name(p, &name));
      lp_chat_node *node = lp_chat_make_node(p, LP_CHAT_IS_FILTER, name);
      node->a = *out;
      *out = node;
      if (lp_chat_accept_symbol(p, "(")) LP_TRY(lp_chat_parse_items(p, ")", true, &node->b));
    } else if (lp_chat_accept_word(p, "is")) {
      LP_TRY(parse_test(p, out));
    } else {
      return LP_OK;
    }
  }
}

static lp_status parse_unary(lp_chat_parser *p, lp_chat_node **out) {
  const lp_chat_token *token = p->token;
  (void)lp_chat_accept_symbol(p, "+");
  if (lp_chat_accept_symbol(p, "-")) {
    lp_chat_node *node = lp_chat_make_node(p, LP_CHAT_IS_MINUS, token);
    LP_TRY(parse_primary(p, &node->a));
    LP_TRY(parse_postfix(p, &node->a));
    *out = node;
  } else {
    LP_TRY(parse_primary(p, out));
    LP_TRY(parse_postfix(p, out));
  }
  return lp_chat_parse_filters(p, out);
}

/* The binary operators from the loosest level to the tightest. */
static const char *const levels[][7] = {
    {"or"}, {"and"}, {NULL}, {"==", "!=", "<", ">", "<=", ">=", "in"}, {"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"},
};
enum { LEVEL_NOT = 2, LEVEL_COMPARE = 3 };

static bool at_operator(const lp_chat_parser *p, size_t level) {
  for (size_t i = 0; i < LP_COUNT(levels[level]) && levels[level][i]; i++)
    if (lp_chat_is_symbol(p, levels[level][i]) || lp_chat_is_word(p, levels[level][i])) return true;
  return level == LEVEL_COMPARE && lp_chat_is_word(p, "not") && p->token[1].kind == LP_CHAT_NAME &&
         lp_streq(p->token[1].text, "in");
}

/* Parses comparisons such as a < b < c into a chain. Each link has its right side in `a`. */
static lp_status parse_chain(lp_chat_parser *p, lp_chat_node *node, lp_chat_node *first) {
  if (first->kind == LP_CHAT_IS_BINARY) {
    lp_chat_node *link = p->node++;
    *link = *first;
    link->a = first->b;
    link->b = NULL;
    first->kind = LP_CHAT_IS_CHAIN;
    first->b = first->c = link;
  }
  first->c->next = node;
  first->c = node;
  return lp_chat_parse_level(p, LEVEL_COMPARE + 1, &node->a);
}

lp_status lp_chat_parse_level(lp_chat_parser *p, size_t level, lp_chat_node **out) {
  if (level == LP_COUNT(levels)) return parse_unary(p, out);
  const lp_chat_token *token = p->token;
  if (level == LEVEL_NOT && lp_chat_accept_word(p, "not")) {
    LP_TRY(lp_chat_parse_deeper(p));
    *out = lp_chat_make_node(p, LP_CHAT_IS_NOT, token);
    LP_TRY(lp_chat_parse_level(p, level, &(*out)->a));
    p->depth--;
    return LP_OK;
  }
  LP_TRY(lp_chat_parse_level(p, level + 1, out));
  for (size_t count = 0; at_operator(p, level); count++) {
    lp_chat_node *node = lp_chat_make_node(p, LP_CHAT_IS_BINARY, p->token++);
    if (lp_streq(node->text, "not")) {
      p->token++;
      node->text = "not in";
    }
    if (level == LEVEL_COMPARE && count > 0) {
      LP_TRY(parse_chain(p, node, *out));
      continue;
    }
    node->a = *out;
    *out = node;
    LP_TRY(lp_chat_parse_level(p, level + 1, &node->b));
  }
  return LP_OK;
}

lp_status lp_chat_parse_expression(lp_chat_parser *p, lp_chat_node **out) {
  LP_TRY(lp_chat_parse_deeper(p));
  LP_TRY(lp_chat_parse_level(p, 0, out));
  const lp_chat_token *token = p->token;
  if (lp_chat_accept_word(p, "if")) {
    lp_chat_node *node = lp_chat_make_node(p, LP_CHAT_IS_CHOICE, token);
    node->a = *out;
    *out = node;
    LP_TRY(lp_chat_parse_level(p, 0, &node->b));
    if (lp_chat_accept_word(p, "else")) LP_TRY(lp_chat_parse_expression(p, &node->c));
  }
  p->depth--;
  return LP_OK;
}
