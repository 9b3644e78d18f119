/* Parses the statements of a chat template. */

#include "runtime/chat/parse.h"

static lp_status parse_body(lp_chat_parser *p, lp_chat_node **out);

static lp_status expect_close(lp_chat_parser *p) {
  if (p->token->kind != LP_CHAT_CLOSE) return lp_chat_unexpected(p, "the end of the tag");
  p->token++;
  return LP_OK;
}

/* Tells whether the next tag is {% word ... %}. */
static bool at_block(const lp_chat_parser *p, const char *word) {
  return p->token->kind == LP_CHAT_BLOCK && p->token[1].kind == LP_CHAT_NAME && lp_streq(p->token[1].text, word);
}

static lp_status expect_end(lp_chat_parser *p, const char *word, const lp_chat_token *start) {
  if (!at_block(p, word)) return lp_chat_error(p->chat, start->at, "'%s' lacks its '%s'", start->text, word);
  p->token += 2;
  return expect_close(p);
}

static lp_status parse_if(lp_chat_parser *p, const lp_chat_token *start, lp_chat_node **out);

static lp_status parse_otherwise(lp_chat_parser *p, const lp_chat_token *start, lp_chat_node **out) {
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
static lp_status parse_if(lp_chat_parser *p, const lp_chat_token *start, lp_chat_node **out) {
  LP_TRY(lp_chat_parse_deeper(p));
  *out = lp_chat_make_node(p, LP_CHAT_DO_IF, start);
  LP_TRY(lp_chat_parse_expression(p, &(*out)->a));
  LP_TRY(expect_close(p));
  LP_TRY(parse_body(p, &(*out)->b));
  LP_TRY(parse_otherwise(p, start, &(*out)->c));
  p->depth--;
  return LP_OK;
}

/* Parses names between commas, with or without parentheses. */
static lp_status parse_targets(lp_chat_parser *p, lp_chat_node **out) {
  bool group = lp_chat_accept_symbol(p, "(");
  do {
    const lp_chat_token *name = p->token;
    LP_TRY(lp_chat_expect_name(p, &name));
    *out = lp_chat_make_node(p, LP_CHAT_IS_NAME, name);
    out = &(*out)->next;
  } while (lp_chat_accept_symbol(p, ","));
  return group ? lp_chat_expect_symbol(p, ")") : LP_OK;
}

/* Makes *out the first item of a tuple without parentheses if a comma follows it. */
static lp_status parse_rest_of_tuple(lp_chat_parser *p, const lp_chat_token *start, lp_chat_node **out) {
  if (!lp_chat_is_symbol(p, ",")) return LP_OK;
  lp_chat_node *list = lp_chat_make_node(p, LP_CHAT_IS_LIST, start);
  list->integer = 1; /* a tuple */
  list->b = *out;
  *out = list;
  for (lp_chat_node **end = &list->b->next; lp_chat_accept_symbol(p, ","); end = &(*end)->next) {
    if (p->token->kind == LP_CHAT_CLOSE) break;
    LP_TRY(lp_chat_parse_level(p, 0, end));
  }
  return LP_OK;
}

static lp_status parse_for(lp_chat_parser *p, const lp_chat_token *start, lp_chat_node **out) {
  *out = lp_chat_make_node(p, LP_CHAT_DO_FOR, start);
  LP_TRY(parse_targets(p, &(*out)->targets));
  if (!lp_chat_accept_word(p, "in")) return lp_chat_unexpected(p, "in");
  LP_TRY(lp_chat_parse_level(p, 0, &(*out)->a));
  LP_TRY(parse_rest_of_tuple(p, start, &(*out)->a));
  if (lp_chat_accept_word(p, "if")) LP_TRY(lp_chat_parse_expression(p, &(*out)->d));
  if (lp_chat_is_word(p, "recursive"))
    return lp_chat_error(p->chat, p->token->at, "'recursive' loops are not supported");
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
static lp_status parse_capture(lp_chat_parser *p, const lp_chat_token *start, const char *end, lp_chat_node *node) {
  node->a = lp_chat_make_node(p, LP_CHAT_IS_CAPTURED, start);
  LP_TRY(lp_chat_parse_filters(p, &node->a));
  LP_TRY(expect_close(p));
  LP_TRY(parse_body(p, &node->b));
  return expect_end(p, end, start);
}

static lp_status parse_set(lp_chat_parser *p, const lp_chat_token *start, lp_chat_node **out) {
  *out = lp_chat_make_node(p, LP_CHAT_DO_SET, start);
  LP_TRY(parse_targets(p, &(*out)->targets));
  if (lp_chat_accept_symbol(p, ".")) {
    const lp_chat_token *attribute = p->token;
    LP_TRY(lp_chat_expect_name(p, &attribute));
    (*out)->targets->b = lp_chat_make_node(p, LP_CHAT_IS_NAME, attribute);
  }
  if (!lp_chat_accept_symbol(p, "=")) {
    (*out)->kind = LP_CHAT_DO_CAPTURE;
    return parse_capture(p, start, "endset", *out);
  }
  LP_TRY(lp_chat_parse_expression(p, &(*out)->a));
  LP_TRY(parse_rest_of_tuple(p, start, &(*out)->a));
  return expect_close(p);
}

/* {% filter name %}...{% endfilter %} prints the text through filters. */
static lp_status parse_filter_block(lp_chat_parser *p, const lp_chat_token *start, lp_chat_node **out) {
  const lp_chat_token *name = p->token;
  *out = lp_chat_make_node(p, LP_CHAT_DO_CAPTURE, start);
  LP_TRY(lp_chat_expect_name(p, &name));
  lp_chat_node *filter = lp_chat_make_node(p, LP_CHAT_IS_FILTER, name);
  filter->a = lp_chat_make_node(p, LP_CHAT_IS_CAPTURED, start);
  if (lp_chat_accept_symbol(p, "(")) LP_TRY(lp_chat_parse_items(p, ")", true, &filter->b));
  (*out)->a = filter;
  LP_TRY(lp_chat_parse_filters(p, &(*out)->a));
  LP_TRY(expect_close(p));
  LP_TRY(parse_body(p, &(*out)->b));
  return expect_end(p, "endfilter", start);
}

/* Parses parameters with their defaults, after "(". */
static lp_status parse_parameters(lp_chat_parser *p, lp_chat_node **out) {
  lp_chat_node **end = out;
  while (!lp_chat_accept_symbol(p, ")")) {
    if (*out) LP_TRY(lp_chat_expect_symbol(p, ","));
    const lp_chat_token *parameter = p->token;
    LP_TRY(lp_chat_expect_name(p, &parameter));
    *end = lp_chat_make_node(p, LP_CHAT_IS_NAME, parameter);
    if (lp_chat_accept_symbol(p, "=")) LP_TRY(lp_chat_parse_expression(p, &(*end)->a));
    end = &(*end)->next;
  }
  return LP_OK;
}

static lp_status parse_macro(lp_chat_parser *p, const lp_chat_token *start, lp_chat_node **out) {
  const lp_chat_token *name = p->token;
  LP_TRY(lp_chat_expect_name(p, &name));
  *out = lp_chat_make_node(p, LP_CHAT_DO_MACRO, name);
  LP_TRY(lp_chat_expect_symbol(p, "("));
  LP_TRY(parse_parameters(p, &(*out)->targets));
  LP_TRY(expect_close(p));
  const lp_chat_token *body = p->token;
  LP_TRY(parse_body(p, &(*out)->b));
  for (; body < p->token; body++)
    (*out)->integer |= body->kind == LP_CHAT_NAME && lp_streq(body->text, "caller");
  return expect_end(p, "endmacro", start);
}

/* {% call(parameters) macro(arguments) %}...{% endcall %} */
static lp_status parse_call(lp_chat_parser *p, const lp_chat_token *start, lp_chat_node **out) {
  *out = lp_chat_make_node(p, LP_CHAT_DO_CALL, start);
  lp_chat_node *body = (*out)->b = lp_chat_make_node(p, LP_CHAT_DO_MACRO, start);
  body->text = "caller";
  if (lp_chat_accept_symbol(p, "(")) LP_TRY(parse_parameters(p, &body->targets));
  LP_TRY(lp_chat_parse_expression(p, &(*out)->a));
  if ((*out)->a->kind != LP_CHAT_IS_CALL) return lp_chat_error(p->chat, start->at, "'call' without a call");
  LP_TRY(expect_close(p));
  LP_TRY(parse_body(p, &body->b));
  return expect_end(p, "endcall", start);
}

/* {% with name = value, ... %}...{% endwith %} */
static lp_status parse_with(lp_chat_parser *p, const lp_chat_token *start, lp_chat_node **out) {
  *out = lp_chat_make_node(p, LP_CHAT_DO_WITH, start);
  for (lp_chat_node **end = &(*out)->targets; p->token->kind != LP_CHAT_CLOSE; end = &(*end)->next) {
    if ((*out)->targets) LP_TRY(lp_chat_expect_symbol(p, ","));
    const lp_chat_token *name = p->token;
    LP_TRY(lp_chat_expect_name(p, &name));
    LP_TRY(lp_chat_expect_symbol(p, "="));
    *end = lp_chat_make_node(p, LP_CHAT_IS_NAME, name);
    LP_TRY(lp_chat_parse_expression(p, &(*end)->a));
  }
  LP_TRY(expect_close(p));
  LP_TRY(parse_body(p, &(*out)->b));
  return expect_end(p, "endwith", start);
}

/* A statement outside of the subset fails only when it runs, so the content of the tag is skipped. */
static lp_status parse_unknown(lp_chat_parser *p, const lp_chat_token *word, lp_chat_node **out) {
  if (lp_has_prefix(word->text, "end") || lp_streq(word->text, "block"))
    return lp_chat_error(p->chat, word->at, "the statement '%s' is not supported", word->text);
  *out = lp_chat_make_node(p, LP_CHAT_DO_REFUSE, word);
  while (p->token->kind != LP_CHAT_CLOSE && p->token->kind != LP_CHAT_END)
    p->token++;
  return expect_close(p);
}

static lp_status parse_block(lp_chat_parser *p, lp_chat_node **out) {
  p->token++;
  const lp_chat_token *word = p->token;
  LP_TRY(lp_chat_expect_name(p, &word));
  if (lp_streq(word->text, "if")) return parse_if(p, word, out);
  if (lp_streq(word->text, "for")) return parse_for(p, word, out);
  if (lp_streq(word->text, "set")) return parse_set(p, word, out);
  if (lp_streq(word->text, "macro")) return parse_macro(p, word, out);
  if (lp_streq(word->text, "call")) return parse_call(p, word, out);
  if (lp_streq(word->text, "with")) return parse_with(p, word, out);
  if (lp_streq(word->text, "filter")) return parse_filter_block(p, word, out);
  if (lp_streq(word->text, "break") || lp_streq(word->text, "continue")) {
    *out = lp_chat_make_node(p, word->text[0] == 'b' ? LP_CHAT_DO_BREAK : LP_CHAT_DO_CONTINUE, word);
    return expect_close(p);
  }
  if (lp_streq(word->text, "generation") || lp_streq(word->text, "endgeneration"))
    return expect_close(p); /* transformers' mark for training masks prints nothing */
  return parse_unknown(p, word, out);
}

static bool at_end_of_body(const lp_chat_parser *p) {
  static const char *const ends[] = {"endif",    "endfor",    "else",    "elif",   "endset",
                                     "endmacro", "endfilter", "endcall", "endwith"};
  for (size_t i = 0; i < LP_COUNT(ends); i++)
    if (at_block(p, ends[i])) return true;
  return false;
}

static lp_status parse_body(lp_chat_parser *p, lp_chat_node **out) {
  lp_chat_node **end = out;
  LP_TRY(lp_chat_parse_deeper(p));
  while (p->token->kind != LP_CHAT_END && !at_end_of_body(p)) {
    const lp_chat_token *token = p->token;
    if (token->kind == LP_CHAT_DATA) {
      *end = lp_chat_make_node(p, LP_CHAT_DO_TEXT, p->token++);
    } else if (token->kind == LP_CHAT_OUTPUT) {
      *end = lp_chat_make_node(p, LP_CHAT_DO_OUTPUT, p->token++);
      LP_TRY(lp_chat_parse_expression(p, &(*end)->a));
      LP_TRY(expect_close(p));
    } else {
      LP_TRY(parse_block(p, end));
    }
    if (*end) end = &(*end)->next;
  }
  p->depth--;
  return LP_OK;
}

lp_status lp_chat_parse(const lp_chat *chat, const lp_chat_token *tokens, lp_chat_node **out) {
  lp_chat_parser p = {.chat = chat, .token = tokens};
  size_t count = 16;
  for (const lp_chat_token *token = tokens; token->kind != LP_CHAT_END; token++)
    count += token->kind != LP_CHAT_SYMBOL || !strchr(".:=)]}", token->text[0]) || token->text[1] != '\0';
  p.node = LP_CHAT_NEW(chat, lp_chat_node, count + count / 4); /* chains of comparisons have one more for five tokens */
  *out = NULL;
  LP_TRY(lp_chat_check(chat, 0));
  LP_TRY(parse_body(&p, out));
  if (p.token->kind == LP_CHAT_END) return lp_chat_check(chat, p.token->at);
  return lp_chat_error(chat, p.token->at, "'%s' without its beginning", p.token[1].text);
}
