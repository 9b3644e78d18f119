/* Chat templates: a subset of Jinja, as large as the templates that models ship with need. Private to runtime/.
 *
 *   source -> tokens (chat_template_lex.c) -> tree (chat_template_parse.c) -> text (chat_template.c)
 *
 * chat_template_value.c and chat_template_filter.c hold the operations on values. White space is trimmed as
 * transformers sets it (trim_blocks, lstrip_blocks). Anything outside the subset is an error that names it; no
 * template is rendered in part. All memory comes from the arena of the rendering.
 */
#ifndef LP_CHAT_TEMPLATE_H
#define LP_CHAT_TEMPLATE_H

#include "runtime/runtime.h"

typedef struct {
  const char *file;      /* where the template came from, for messages */
  const char *bos, *eos; /* "" when there is none */
  const lp_chat_message *messages;
  size_t count;
  bool add_generation_prompt;
} lp_chat_input;

/* Appends the messages as the template prints them; appends nothing after a failure. */
LP_MUST_USE lp_status lp_chat_render(const char *source, size_t size, const lp_chat_input *input, lp_buf *out,
                                     lp_diag *diag);

typedef struct {
  const lp_chat_input *input;
  lp_arena *arena;
  lp_diag *diag;
  const char *source; /* newlines normalized */
  size_t size;
} lp_chat;

/* ---- source (chat_template_lex.c) -------------------------------------------------------------------------------- */

/* Copies the source to the arena as Jinja reads it: every kind of newline is \n, and one at the end is dropped. */
void lp_chat_set_source(lp_chat *chat, const char *source, size_t size);
/* Reports at byte `at` of the source. */
LP_MUST_USE lp_status lp_chat_error(const lp_chat *chat, size_t at, const char *format, ...) LP_PRINTF(3, 4);

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

typedef enum {
  LP_CHAT_DATA,   /* text between tags, already trimmed */
  LP_CHAT_OUTPUT, /* {{ */
  LP_CHAT_BLOCK,  /* {% */
  LP_CHAT_CLOSE,  /* }} or %} */
  LP_CHAT_NAME,
  LP_CHAT_TEXT, /* a string literal, unescaped */
  LP_CHAT_INTEGER,
  LP_CHAT_SYMBOL, /* an operator or bracket */
  LP_CHAT_END
} lp_chat_token_kind;

typedef struct {
  lp_chat_token_kind kind;
  size_t at;
  const char *text; /* NUL-terminated */
  size_t size;
  int64_t integer;
} lp_chat_token;
typedef LP_VEC(lp_chat_token) lp_chat_tokens;

LP_MUST_USE lp_status lp_chat_tokenize(const lp_chat *chat, lp_chat_tokens *out); /* ends in LP_CHAT_END */

/* ---- tree -------------------------------------------------------------------------------------------------------- */

typedef enum {
  /* statements, a list by `next` */
  LP_CHAT_DO_TEXT,   /* text */
  LP_CHAT_DO_OUTPUT, /* a */
  LP_CHAT_DO_IF,     /* a: condition, b: body, c: otherwise */
  LP_CHAT_DO_FOR,    /* text: variable, a: sequence, b: body */
  LP_CHAT_DO_SET,    /* text: variable, b: NULL or the attribute's name, a: value */
  /* expressions */
  LP_CHAT_IS_TEXT,
  LP_CHAT_IS_INTEGER,
  LP_CHAT_IS_NAME,
  LP_CHAT_IS_LIST,    /* b: items by `next` */
  LP_CHAT_IS_MEMBER,  /* a.text */
  LP_CHAT_IS_INDEX,   /* a[b] */
  LP_CHAT_IS_SLICE,   /* a[b:c], each of b and c may be NULL */
  LP_CHAT_IS_CALL,    /* a(b...); a keyword argument is KEYWORD */
  LP_CHAT_IS_KEYWORD, /* text=a */
  LP_CHAT_IS_FILTER,  /* a | text(b...) */
  LP_CHAT_IS_TEST,    /* a is text; integer: negated */
  LP_CHAT_IS_NOT,     /* a */
  LP_CHAT_IS_MINUS,   /* a */
  LP_CHAT_IS_BINARY,  /* a text b; `and`, `or`, `in`, `not in` too */
  LP_CHAT_IS_CHOICE   /* a if b else c; c may be NULL */
} lp_chat_node_kind;

typedef struct lp_chat_node {
  lp_chat_node_kind kind;
  size_t at;
  const char *text;
  size_t size;
  int64_t integer;
  struct lp_chat_node *a, *b, *c, *next;
} lp_chat_node;

LP_MUST_USE lp_status lp_chat_parse(const lp_chat *chat, const lp_chat_tokens *tokens, lp_chat_node **out);

/* ---- values ------------------------------------------------------------------------------------------------------ */

typedef enum {
  LP_CHAT_UNDEFINED,
  LP_CHAT_NONE,
  LP_CHAT_BOOL,    /* integer 0 or 1 */
  LP_CHAT_NUMBER,  /* integer */
  LP_CHAT_STRING,  /* text, size bytes */
  LP_CHAT_LIST,    /* items, size of them */
  LP_CHAT_MESSAGE, /* message */
  LP_CHAT_LOOP,    /* loop */
  LP_CHAT_SPACE    /* what namespace() makes: space */
} lp_chat_value_kind;

typedef struct {
  size_t index, count;
} lp_chat_loop;

struct lp_chat_variable;

typedef struct lp_chat_value {
  lp_chat_value_kind kind;
  int64_t integer;
  size_t size;
  union {
    const char *text;
    const struct lp_chat_value *items;
    const lp_chat_message *message;
    const lp_chat_loop *loop;
    struct lp_chat_variable **space;
  };
} lp_chat_value;

typedef struct lp_chat_variable {
  const char *name;
  lp_chat_value value;
  struct lp_chat_variable *next;
} lp_chat_variable;

lp_chat_value lp_chat_text(const char *text, size_t size);
lp_chat_value lp_chat_bool(bool value);
lp_chat_value lp_chat_number(int64_t value);
lp_chat_value lp_chat_keep(const lp_chat *chat, lp_buf *text); /* moves the text to the arena and empties the buffer */
bool lp_chat_is_integral(const lp_chat_value *value);          /* a number or a boolean */
bool lp_chat_is_key(const char *name);                         /* of a message */
lp_chat_value lp_chat_message_member(const lp_chat_message *message, const char *name);
/* Where `what` first is in `in` from byte `from` on, or NULL. */
const char *lp_chat_find(const lp_chat_value *in, const lp_chat_value *what, size_t from);
bool lp_chat_is_true(const lp_chat_value *value);
const char *lp_chat_kind_name(const lp_chat_value *value);
/* What {{ value }} prints; `at` is where to report a value that cannot be printed. */
LP_MUST_USE lp_status lp_chat_print(const lp_chat *chat, size_t at, const lp_chat_value *value, lp_buf *out);
/* Each reports an operation that does not exist at node->at; `args` are the evaluated arguments. */
LP_MUST_USE lp_status lp_chat_binary(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *a,
                                     const lp_chat_value *b, lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_member(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                                     const char *name, lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_index(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                                    const lp_chat_value *key, lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_filter(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value,
                                     const lp_chat_value *args, size_t count, lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_test(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value,
                                   bool *out);
/* object.name(args) */
LP_MUST_USE lp_status lp_chat_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                                     const char *name, const lp_chat_value *args, size_t count, lp_chat_value *out);

#endif
