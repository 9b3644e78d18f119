/* The lexer of chat templates: positions in reports, tokens, and the trimmed text between tags. */

#include "base/utf8.h"
#include "runtime/chat/syntax.h"

/* ---- source ------------------------------------------------------------------------------------------------------ */

void lp_chat_set_source(lp_chat *chat, const char *source, size_t size) {
  char *text = LP_CHAT_NEW(chat, char, size + 1);
  chat->source = "";
  if (!text) return;
  for (size_t i = 0; i < size; i++) {
    bool pair = source[i] == '\r' && i + 1 < size && source[i + 1] == '\n';
    if (!pair) text[chat->size++] = source[i] == '\r' ? '\n' : source[i];
  }
  if (chat->size > 0 && text[chat->size - 1] == '\n') chat->size--;
  text[chat->size] = '\0';
  chat->source = text;
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

typedef struct {
  const lp_chat *chat;
  lp_buf *out; /* of lp_chat_token */
  size_t at;
  bool line_start; /* the last tag ended in a newline, or this is the start */
} lexer;

static bool next_is(const lexer *l, const char *text) {
  size_t size = strlen(text);
  return l->chat->size - l->at >= size && memcmp(l->chat->source + l->at, text, size) == 0;
}

static char peek(const lexer *l) {
  return l->at < l->chat->size ? l->chat->source[l->at] : '\0';
}

static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static void push_token(lexer *l, lp_chat_token token) {
  token.text = lp_chat_strndup(l->chat, token.text, token.size);
  lp_buf_append(l->out, &token, sizeof token);
}

static void push(lexer *l, lp_chat_token_kind kind, size_t at, const char *text, size_t size) {
  push_token(l, (lp_chat_token){.kind = kind, .at = at, .text = text, .size = size});
}

/* ---- text between tags ------------------------------------------------------------------------------------------- */

/* lstrip_blocks: removes the text between the line's start and the tag if it is white space. */
static size_t strip_line(const char *text, size_t size, bool line_start) {
  size_t start = size;
  while (start > 0 && text[start - 1] != '\n')
    start--;
  if (start == 0 && !line_start) return size;
  for (size_t i = start; i < size; i++)
    if (!is_space(text[i])) return size;
  return start;
}

/* The size of the text that stays before a tag with this sign; `output`: the tag is {{. */
static size_t strip_before(const lexer *l, const char *text, size_t size, char sign, bool output) {
  while (sign == '-' && size > 0 && is_space(text[size - 1]))
    size--;
  return sign == '-' || sign == '+' || output ? size : strip_line(text, size, l->line_start);
}

static void lex_data(lexer *l) {
  size_t start = l->at;
  for (; l->at < l->chat->size; l->at++)
    if (peek(l) == '{' && (next_is(l, "{{") || next_is(l, "{%") || next_is(l, "{#"))) break;
  const char *text = l->chat->source + start;
  size_t size = l->at - start;
  bool tag = l->at < l->chat->size;
  char sign = l->at + 2 < l->chat->size ? l->chat->source[l->at + 2] : '\0';
  if (tag) size = strip_before(l, text, size, sign, next_is(l, "{{"));
  if (size > 0) push(l, LP_CHAT_DATA, start, text, size);
}

/* After a tag: '-' removes all white space; a block or comment removes one newline (trim_blocks). */
static void trim_after(lexer *l, bool minus, bool plus, bool output) {
  size_t start = l->at;
  while (minus && is_space(peek(l)))
    l->at++;
  if (!minus && !plus && !output && peek(l) == '\n') l->at++;
  l->line_start = l->at > start && l->chat->source[l->at - 1] == '\n';
}

static lp_status lex_comment(lexer *l) {
  size_t start = l->at;
  while (l->at < l->chat->size && !next_is(l, "#}"))
    l->at++;
  if (l->at >= l->chat->size) return lp_chat_error(l->chat, start, "the comment is not closed");
  char sign = l->at > start + 2 ? l->chat->source[l->at - 1] : '\0';
  l->at += 2;
  trim_after(l, sign == '-', sign == '+', false);
  return LP_OK;
}

/* ---- raw text ---------------------------------------------------------------------------------------------------- */

/* The size of the tag {% word %} at `at`, signs included, or 0. *sign is that before its end. */
static size_t word_tag(const lexer *l, size_t at, const char *word, char *sign) {
  const char *start = l->chat->source + at, *text = start;
  if (strncmp(text, "{%", 2) != 0) return 0;
  text += text[2] == '-' || text[2] == '+' ? 3 : 2;
  while (is_space(*text))
    text++;
  if (strncmp(text, word, strlen(word)) != 0) return 0;
  text += strlen(word);
  while (is_space(*text))
    text++;
  *sign = *text == '-' || *text == '+' ? *text++ : '\0';
  return strncmp(text, "%}", 2) == 0 ? (size_t)(text + 2 - start) : 0;
}

/* {% raw %}...{% endraw %}: the text between the tags. A newline after the first tag stays, as in Jinja. */
static lp_status lex_raw(lexer *l, size_t begin, char sign) {
  size_t start = l->at, size = 0;
  l->at += begin;
  trim_after(l, sign == '-', false, true);
  size_t from = l->at;
  for (; l->at < l->chat->size; l->at++)
    if ((size = word_tag(l, l->at, "endraw", &sign)) > 0) break;
  if (size == 0) return lp_chat_error(l->chat, start, "'raw' lacks its 'endraw'");
  const char *text = l->chat->source + from;
  size_t kept = strip_before(l, text, l->at - from, l->chat->source[l->at + 2], false);
  if (kept > 0) push(l, LP_CHAT_DATA, from, text, kept);
  l->at += size;
  trim_after(l, sign == '-', sign == '+', false);
  return LP_OK;
}

/* ---- inside tags ------------------------------------------------------------------------------------------------- */

static int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static lp_status lex_hex(lexer *l, int digits, lp_buf *out) {
  uint32_t code = 0;
  for (int i = 0; i < digits; i++, l->at++) {
    int value = hex_value(peek(l));
    if (value < 0) return lp_chat_error(l->chat, l->at, "a hexadecimal digit was expected");
    code = code << 4 | (uint32_t)value;
  }
  if (code >= 0xD800 && code <= 0xDFFF) return lp_chat_error(l->chat, l->at, "half of a surrogate pair");
  lp_utf8_write(code, out);
  return LP_OK;
}

/* Python's escapes. An unknown escape stands for itself, backslash included, as in Python. */
static lp_status lex_escape(lexer *l, lp_buf *out) {
  static const char names[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
  char c = peek(l);
  const char *name = c == '\0' ? NULL : strchr(names, c);
  if (c == 'N' || c == 'U' || is_digit(c))
    return lp_chat_error(l->chat, l->at, "the escape '\\%c' is not supported", c);
  l->at++;
  if (name) {
    lp_buf_append(out, &values[name - names], 1);
    return LP_OK;
  }
  if (c == 'x') return lex_hex(l, 2, out);
  if (c == 'u') return lex_hex(l, 4, out);
  if (c != '\n') lp_buf_append(out, "\\", 1);
  if (c != '\n') lp_buf_append(out, &c, 1);
  return LP_OK;
}

static lp_status lex_string(lexer *l) {
  size_t start = l->at;
  char quote = peek(l);
  lp_buf text = {.arena = l->chat->arena};
  lp_status status = LP_OK;
  for (++l->at; status == LP_OK && peek(l) != quote;) {
    char c = peek(l);
    if (l->at >= l->chat->size) {
      status = lp_chat_error(l->chat, start, "the string is not closed");
    } else if (c == '\\') {
      l->at++;
      status = lex_escape(l, &text);
    } else {
      lp_buf_append(&text, &c, 1);
      l->at++;
    }
  }
  l->at++;
  if (status == LP_OK) push(l, LP_CHAT_TEXT, start, lp_buf_text(&text), text.size);
  return status;
}

static lp_status lex_number(lexer *l) {
  size_t start = l->at;
  int64_t value = 0;
  for (; is_digit(peek(l)); l->at++)
    if (!lp_i64_mul(value, 10, &value) || !lp_i64_add(value, peek(l) - '0', &value))
      return lp_chat_error(l->chat, start, "the number is too large");
  size_t point = l->at;
  bool fraction = peek(l) == '.' && l->at + 1 < l->chat->size && is_digit(l->chat->source[l->at + 1]);
  while (fraction && (l->at == point || is_digit(peek(l))))
    l->at++;
  if (is_letter(peek(l))) return lp_chat_error(l->chat, start, "a number cannot end in a letter");
  push_token(l, (lp_chat_token){.kind = fraction ? LP_CHAT_FLOAT : LP_CHAT_INTEGER,
                                .at = start,
                                .text = l->chat->source + start,
                                .size = l->at - start,
                                .integer = value,
                                .real = strtod(l->chat->source + start, NULL)});
  return LP_OK;
}

static lp_status lex_symbol(lexer *l) {
  static const char *const symbols[] = {"==", "!=", "<=", ">=", "//", "**", "+", "-", "*", "/", "%", "~", "<",
                                        ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ",", ".", ":", "|"};
  for (size_t i = 0; i < LP_COUNT(symbols); i++) {
    if (peek(l) != symbols[i][0] || !next_is(l, symbols[i])) continue;
    push(l, LP_CHAT_SYMBOL, l->at, symbols[i], strlen(symbols[i]));
    l->at += strlen(symbols[i]);
    return LP_OK;
  }
  return lp_chat_error(l->chat, l->at, "unexpected character '%c'", peek(l));
}

static lp_status lex_name(lexer *l) {
  size_t start = l->at;
  while (is_letter(peek(l)) || is_digit(peek(l)))
    l->at++;
  push(l, LP_CHAT_NAME, start, l->chat->source + start, l->at - start);
  return LP_OK;
}

static lp_status lex_inside(lexer *l) {
  char c = peek(l);
  if (is_letter(c)) return lex_name(l);
  if (is_digit(c)) return lex_number(l);
  return c == '\'' || c == '"' ? lex_string(l) : lex_symbol(l);
}

static lp_status lex_tag(lexer *l) {
  bool output = next_is(l, "{{");
  const char *close = output ? "}}" : "%}";
  size_t start = l->at;
  int64_t depth = 0; /* the depth of open brackets; inside brackets "}}" closes two of them */
  push(l, output ? LP_CHAT_OUTPUT : LP_CHAT_BLOCK, start, l->chat->source + start, 2);
  l->at += 2;
  if (peek(l) == '-' || peek(l) == '+') l->at++;
  for (;;) {
    while (is_space(peek(l)))
      l->at++;
    if (l->at >= l->chat->size) return lp_chat_error(l->chat, start, "the tag is not closed");
    char sign = peek(l);
    size_t skip = sign == '-' || (sign == '+' && !output) ? 1 : 0;
    if (depth <= 0 && l->at + skip + 2 <= l->chat->size && memcmp(l->chat->source + l->at + skip, close, 2) == 0) {
      push(l, LP_CHAT_CLOSE, l->at, close, 2);
      l->at += skip + 2;
      trim_after(l, skip == 1 && sign == '-', skip == 1 && sign == '+', output);
      return LP_OK;
    }
    depth += strchr("([{", sign) ? 1 : strchr(")]}", sign) ? -1 : 0;
    LP_TRY(lex_inside(l));
  }
}

lp_status lp_chat_tokenize(const lp_chat *chat, const lp_chat_token **out) {
  lp_buf tokens = {.arena = chat->arena};
  lp_buf_reserve(&tokens, (chat->size / 6 + 16) * sizeof(lp_chat_token));
  lexer l = {.chat = chat, .out = &tokens, .line_start = true};
  while (l.at < chat->size) {
    lex_data(&l);
    if (l.at >= chat->size) break;
    char sign = '\0';
    size_t raw = word_tag(&l, l.at, "raw", &sign);
    LP_TRY(raw > 0 ? lex_raw(&l, raw, sign) : next_is(&l, "{#") ? lex_comment(&l) : lex_tag(&l));
  }
  push(&l, LP_CHAT_END, chat->size, "", 0);
  *out = (const void *)tokens.data;
  return lp_chat_check(chat, 0); /* a broken limit may have dropped tokens */
}
