/* The lexer of generic MLIR assembly. */
#include "ir/text/lexer.h"

#include <ctype.h>

void lp_lexer_init(lp_lexer *lexer, const char *file, const char *text, size_t size, lp_arena *arena) {
  *lexer = (lp_lexer){.file = lp_arena_strdup(arena, file),
                      .text = text,
                      .at = text,
                      .end = text + size,
                      .line = 1,
                      .col = 1,
                      .arena = arena};
  lp_lexer_next(lexer);
}

static int peek(const lp_lexer *lexer, size_t ahead) {
  return (size_t)(lexer->end - lexer->at) > ahead ? (unsigned char)lexer->at[ahead] : -1;
}

static void skip(lp_lexer *lexer) {
  if (*lexer->at == '\n') {
    lexer->line++;
    lexer->col = 1;
  } else {
    lexer->col++;
  }
  lexer->at++;
}

static void skip_space(lp_lexer *lexer) {
  for (;;) {
    int c = peek(lexer, 0);
    if (c == '/' && peek(lexer, 1) == '/')
      while (peek(lexer, 0) >= 0 && peek(lexer, 0) != '\n')
        skip(lexer);
    else if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
      skip(lexer);
    else
      return;
  }
}

static bool is_word(int c) {
  return c >= 0 && (isalnum(c) || c == '_' || c == '$' || c == '.');
}

static void take_word(lp_lexer *lexer, lp_token_kind kind, bool hash_too) {
  const char *start = lexer->at;
  while (is_word(peek(lexer, 0)) || (hash_too && peek(lexer, 0) == '#'))
    skip(lexer);
  lexer->word = lp_arena_strndup(lexer->arena, start, (size_t)(lexer->at - start));
  lexer->kind = kind;
}

static void take_bad(lp_lexer *lexer, const char *what) {
  lexer->kind = LP_TOK_BAD;
  lexer->word = what;
  lexer->at = lexer->end;
}

static int hex_digit(int c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void take_string(lp_lexer *lexer) {
  lp_buf text = {0};
  skip(lexer);
  for (;;) {
    int c = peek(lexer, 0);
    if (c < 0 || c == '\n') {
      lp_buf_free(&text);
      take_bad(lexer, "string is not closed");
      return;
    }
    skip(lexer);
    if (c == '"') break;
    if (c == '\\') {
      int next = peek(lexer, 0), high = hex_digit(next), low = hex_digit(peek(lexer, 1));
      if (high >= 0 && low >= 0) {
        c = high * 16 + low;
        skip(lexer);
        skip(lexer);
      } else if (next == 'n' || next == 't' || next == '"' || next == '\\') {
        c = next == 'n' ? '\n' : next == 't' ? '\t' : next;
        skip(lexer);
      } else {
        lp_buf_free(&text);
        take_bad(lexer, "unknown escape in string");
        return;
      }
    }
    char byte = (char)c;
    lp_buf_append(&text, &byte, 1);
  }
  lexer->word = lp_arena_strndup(lexer->arena, lp_buf_text(&text), text.size);
  lexer->kind = LP_TOK_STRING;
  lp_buf_free(&text);
}

static void take_number(lp_lexer *lexer) {
  const char *start = lexer->at;
  if (peek(lexer, 0) == '0' && peek(lexer, 1) == 'x' && hex_digit(peek(lexer, 2)) >= 0) {
    skip(lexer);
    skip(lexer);
    while (hex_digit(peek(lexer, 0)) >= 0)
      skip(lexer);
  } else {
    while (peek(lexer, 0) >= 0 && isdigit(peek(lexer, 0)))
      skip(lexer);
    if (peek(lexer, 0) == '.') {
      skip(lexer);
      while (peek(lexer, 0) >= 0 && isdigit(peek(lexer, 0)))
        skip(lexer);
      int c = peek(lexer, 0), sign = peek(lexer, 1);
      if ((c == 'e' || c == 'E') && sign >= 0 && (isdigit(sign) || sign == '-' || sign == '+')) {
        skip(lexer);
        skip(lexer);
        while (peek(lexer, 0) >= 0 && isdigit(peek(lexer, 0)))
          skip(lexer);
      }
    }
  }
  lexer->word = lp_arena_strndup(lexer->arena, start, (size_t)(lexer->at - start));
  lexer->kind = LP_TOK_NUMBER;
}

void lp_lexer_next(lp_lexer *lexer) {
  skip_space(lexer);
  lexer->loc = (lp_loc){.file = lexer->file, .line = lexer->line, .col = lexer->col};
  int c = peek(lexer, 0);
  if (c < 0) {
    lexer->kind = LP_TOK_END;
    lexer->word = "end of file";
  } else if (c == '"') {
    take_string(lexer);
  } else if (isdigit(c)) {
    take_number(lexer);
  } else if (c == '%' || c == '^' || c == '#') {
    skip(lexer);
    take_word(lexer, c == '%' ? LP_TOK_VALUE : c == '^' ? LP_TOK_BLOCK : LP_TOK_HASH, c == '%');
  } else if (is_word(c)) {
    take_word(lexer, LP_TOK_WORD, false);
  } else if (c == '!') { /* an opaque type: the mark is part of its name */
    const char *start = lexer->at;
    skip(lexer);
    take_word(lexer, LP_TOK_WORD, false);
    lexer->word = lp_arena_strndup(lexer->arena, start, (size_t)(lexer->at - start));
  } else if (c == '-' && peek(lexer, 1) == '>') {
    skip(lexer);
    skip(lexer);
    lexer->kind = LP_TOK_PUNCT;
    lexer->word = "->";
  } else if (strchr("(){}[]<>,:=-*?", c)) {
    lexer->word = lp_arena_strndup(lexer->arena, lexer->at, 1);
    lexer->kind = LP_TOK_PUNCT;
    skip(lexer);
  } else {
    take_bad(lexer, "unexpected character");
  }
}

bool lp_lexer_dims(lp_lexer *lexer, int64_t *dims, int32_t max, int32_t *rank) {
  *rank = 0;
  skip_space(lexer);
  if (peek(lexer, 0) == '*' && peek(lexer, 1) == 'x') {
    skip(lexer);
    skip(lexer);
    *rank = -1;
    return true;
  }
  while (peek(lexer, 0) == '?' || (peek(lexer, 0) >= 0 && isdigit(peek(lexer, 0)))) {
    if (*rank == max) return false;
    int64_t dim = -1;
    if (peek(lexer, 0) == '?') {
      skip(lexer);
    } else {
      for (dim = 0; peek(lexer, 0) >= 0 && isdigit(peek(lexer, 0)); skip(lexer))
        if (!lp_i64_mul(dim, 10, &dim) || !lp_i64_add(dim, *lexer->at - '0', &dim)) return false;
    }
    if (peek(lexer, 0) != 'x') return false;
    skip(lexer);
    dims[(*rank)++] = dim;
  }
  return true;
}
