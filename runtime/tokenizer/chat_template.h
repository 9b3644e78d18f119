/* Chat templates: the subset of Jinja that the templates of published models use. Private to runtime/.
 *
 *   source -> tokens (chat_template_lex.c) -> tree (chat_template_parse.c) -> text (chat_template.c)
 *
 * The other files hold the operations on values. White space is trimmed with transformers' settings (trim_blocks,
 * lstrip_blocks). A construct outside the subset is an error, which names it, when it is reached; no template is
 * rendered in part. All memory comes from the arena of the rendering.
 */
#ifndef LP_CHAT_TEMPLATE_H
#define LP_CHAT_TEMPLATE_H

#include "base/json/reader.h"
#include "runtime/runtime.h"

typedef struct {
  const char *file;      /* the template's file, for messages */
  const char *bos, *eos; /* "" when there is none */
  const lp_chat_message *messages;
  size_t count;
  bool add_generation_prompt;
  /* an object; its members, such as messages and tools, take precedence over those above; NULL: none */
  const lp_json_value *variables;
} lp_chat_input;

/* Appends the text that the template prints for the messages; appends nothing after a failure. */
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
/* Reports an error at byte `at` of the source. */
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
  LP_CHAT_FLOAT,
  LP_CHAT_SYMBOL, /* an operator or bracket */
  LP_CHAT_END
} lp_chat_token_kind;

typedef struct {
  lp_chat_token_kind kind;
  size_t at;
  const char *text; /* NUL-terminated */
  size_t size;
  int64_t integer;
  double real;
} lp_chat_token;
typedef LP_VEC(lp_chat_token) lp_chat_tokens;

LP_MUST_USE lp_status lp_chat_tokenize(const lp_chat *chat, lp_chat_tokens *out); /* ends in LP_CHAT_END */

/* ---- tree -------------------------------------------------------------------------------------------------------- */

typedef enum {
  /* statements, a list by `next` */
  LP_CHAT_DO_TEXT,   /* text */
  LP_CHAT_DO_OUTPUT, /* a */
  LP_CHAT_DO_IF,     /* a: condition, b: body, c: otherwise */
  /* targets: variables by `next`, a: sequence, d: the items' condition or NULL, b: body, c: otherwise */
  LP_CHAT_DO_FOR,
  LP_CHAT_DO_SET,     /* targets: variables, the first with b: NULL or the attribute's name; a: value */
  LP_CHAT_DO_CAPTURE, /* targets: NULL or one variable, b: body, a: filters of IS_CAPTURED, or NULL */
  LP_CHAT_DO_MACRO,   /* text: name, targets: parameters with defaults in a, b: body, integer: it names `caller` */
  LP_CHAT_DO_WITH,    /* targets: variables with values in a, b: body */
  LP_CHAT_DO_CALL,    /* a: the call, b: DO_MACRO of the body, which the called macro knows as `caller` */
  LP_CHAT_DO_BREAK,
  LP_CHAT_DO_CONTINUE,
  LP_CHAT_DO_REFUSE, /* text: the reason why this statement cannot run */
  /* expressions */
  LP_CHAT_IS_TEXT,
  LP_CHAT_IS_INTEGER,
  LP_CHAT_IS_NAME,
  LP_CHAT_IS_REAL,
  LP_CHAT_IS_CAPTURED, /* the text of the block around the expression */
  LP_CHAT_IS_LIST,     /* b: items by `next` */
  LP_CHAT_IS_DICT,     /* b: alternating keys and values */
  LP_CHAT_IS_MEMBER,   /* a.text */
  LP_CHAT_IS_INDEX,    /* a[b] */
  LP_CHAT_IS_SLICE,    /* a[b:c:d], each of b, c and d may be NULL */
  LP_CHAT_IS_CALL,     /* a(b...); a keyword argument is KEYWORD */
  LP_CHAT_IS_KEYWORD,  /* text=a */
  LP_CHAT_IS_FILTER,   /* a | text(b...) */
  LP_CHAT_IS_TEST,     /* a is text(b...); integer: negated */
  LP_CHAT_IS_NOT,      /* a */
  LP_CHAT_IS_MINUS,    /* a */
  LP_CHAT_IS_CHAIN,    /* a < b < ...: b has the comparisons by `next`, of which a is the right side */
  LP_CHAT_IS_BINARY,   /* a text b; `and`, `or`, `in`, `not in` too */
  LP_CHAT_IS_CHOICE    /* a if b else c; c may be NULL */
} lp_chat_node_kind;

typedef struct lp_chat_node {
  lp_chat_node_kind kind;
  size_t at;
  const char *text;
  size_t size;
  int64_t integer;
  double real;
  struct lp_chat_node *a, *b, *c, *d, *targets, *next;
} lp_chat_node;

LP_MUST_USE lp_status lp_chat_parse(const lp_chat *chat, const lp_chat_tokens *tokens, lp_chat_node **out);

/* ---- values ------------------------------------------------------------------------------------------------------ */

typedef enum {
  LP_CHAT_UNDEFINED,
  LP_CHAT_NONE,
  LP_CHAT_BOOL,     /* integer 0 or 1 */
  LP_CHAT_NUMBER,   /* integer */
  LP_CHAT_REAL,     /* real */
  LP_CHAT_STRING,   /* text, size bytes */
  LP_CHAT_LIST,     /* items[size]; also a tuple */
  LP_CHAT_DICT,     /* items: alternating keys and values, `size` pairs */
  LP_CHAT_LOOP,     /* loop */
  LP_CHAT_SPACE,    /* `space`: the result of namespace() */
  LP_CHAT_MACRO,    /* macro */
  LP_CHAT_FUNCTION, /* text: the name of a function of Jinja, or of a method that is not called */
  LP_CHAT_ITERATOR  /* iterator: a Python generator; it has no length, is true, and gives each item once */
} lp_chat_value_kind;

struct lp_chat_variable;
struct lp_chat_loop;
struct lp_chat_iterator;

/* `node`: an LP_CHAT_DO_MACRO; `scope`: the variables that its body sees, NULL: the template's own. */
typedef struct {
  const lp_chat_node *node;
  struct lp_chat_variable *scope;
} lp_chat_macro;

typedef struct lp_chat_value {
  lp_chat_value_kind kind;
  bool tuple; /* the list was written in parentheses and prints with them */
  bool group; /* the list is a pair of groupby, whose items are also its members `grouper` and `list` */
  bool safe;  /* the text is HTML: a text that is added to it is escaped */
  size_t size;
  union {
    int64_t integer;
    double real;
    const char *text;
    const struct lp_chat_value *items;
    const struct lp_chat_loop *loop;
    struct lp_chat_variable **space;
    const lp_chat_macro *macro;
    struct lp_chat_iterator *iterator;
  };
} lp_chat_value;

typedef struct lp_chat_iterator {
  const lp_chat_value *items;
  size_t size, at; /* `at` items have been given */
} lp_chat_iterator;

typedef struct lp_chat_loop {
  size_t index;
  lp_chat_value list;
} lp_chat_loop;

typedef struct lp_chat_variable {
  const char *name;
  lp_chat_value value;
  struct lp_chat_variable *next;
} lp_chat_variable;

/* The arguments of a call; keyword arguments have a `name`. */
enum { LP_CHAT_MOST_ARGS = 16 };
typedef struct {
  size_t count;
  const char *name[LP_CHAT_MOST_ARGS]; /* NULL: by position */
  lp_chat_value value[LP_CHAT_MOST_ARGS];
} lp_chat_args;

static inline lp_chat_value lp_chat_text(const char *text, size_t size) {
  return (lp_chat_value){.kind = LP_CHAT_STRING, .size = size, .text = text};
}
static inline lp_chat_value lp_chat_bool(bool value) {
  return (lp_chat_value){.kind = LP_CHAT_BOOL, .integer = value};
}
static inline lp_chat_value lp_chat_number(int64_t value) {
  return (lp_chat_value){.kind = LP_CHAT_NUMBER, .integer = value};
}
static inline lp_chat_value lp_chat_list(const lp_chat_value *items, size_t count) {
  return (lp_chat_value){.kind = LP_CHAT_LIST, .size = count, .items = items};
}

/* ---- operations (chat_template_value.c) -------------------------------------------------------------------------- */

lp_chat_value lp_chat_keep(const lp_chat *chat, lp_buf *text); /* moves the text to the arena and empties the buffer */
bool lp_chat_is_integral(const lp_chat_value *value);          /* a number or a boolean */
/* The argument at `index` by position or of that name; NULL: not given. */
const lp_chat_value *lp_chat_arg(const lp_chat_args *args, size_t index, const char *name);
/* The first occurrence of `what` in `in` from byte `from` on, or NULL. */
const char *lp_chat_find(const lp_chat_value *in, const lp_chat_value *what, size_t from);
bool lp_chat_is_true(const lp_chat_value *value);
bool lp_chat_equals(const lp_chat_value *a, const lp_chat_value *b);
/* Compares two values, lists item by item: `order` is < 0, 0 or > 0. False: the values have no order. */
bool lp_chat_order(const lp_chat_value *a, const lp_chat_value *b, int *out);
const char *lp_chat_kind_name(const lp_chat_value *value);
lp_chat_value lp_chat_iterator_over(const lp_chat *chat, const lp_chat_value *items, size_t size);
/* Lists the items that a loop over the value visits: characters, keys or elements. An iterator is empty afterwards.
 * False: the value cannot be iterated. */
bool lp_chat_iterate(const lp_chat *chat, const lp_chat_value *value, lp_chat_value *out);
/* Appends the text that {{ value }} prints; a value that cannot be printed is reported at `at`. */
LP_MUST_USE lp_status lp_chat_print(const lp_chat *chat, size_t at, const lp_chat_value *value, lp_buf *out);
lp_chat_value lp_chat_escape(const lp_chat *chat, const lp_chat_value *text); /* as HTML, once */
/* A text or mapping has a method of that name, which a template may call. */
bool lp_chat_has_method(const lp_chat_value *object, const char *name);
/* Operations. Each reports at node->at if the values do not support it. */
LP_MUST_USE lp_status lp_chat_binary(const lp_chat *chat, const lp_chat_node *node, const char *op,
                                     const lp_chat_value *a, const lp_chat_value *b, lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_member(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                                     const char *name, lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_index(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                                    const lp_chat_value *key, lp_chat_value *out);
/* A slice; each bound may be none or undefined. */
LP_MUST_USE lp_status lp_chat_slice(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                                    const lp_chat_value bounds[3], lp_chat_value *out);

/* ---- JSON (chat_template_json.c) --------------------------------------------------------------------------------- */

lp_chat_value lp_chat_from_json(const lp_chat *chat, const lp_json_value *value);
/* Writes JSON as Python's json.dumps does; `indent` < 0: on one line. Fails for a value that has no JSON. */
LP_MUST_USE bool lp_chat_to_json(const lp_chat_value *value, int64_t indent, bool ascii, lp_buf *out);
/* Appends Python's repr of the value, with which containers print their items. */
LP_MUST_USE bool lp_chat_repr(const lp_chat_value *value, lp_buf *out);

/* ---- functions (chat_template_function.c) ------------------------------------------------------------------------ */

extern const char *const lp_chat_functions[]; /* the names of Jinja's and transformers' functions, then NULL */
/* Calls the function of that name. */
LP_MUST_USE lp_status lp_chat_call(const lp_chat *chat, const lp_chat_node *node, const char *name,
                                   const lp_chat_args *args, lp_chat_value *out);

/* ---- filters, tests and methods ---------------------------------------------------------------------------------- */

/* Calls a method of a text; *known is false when there is no method of that name (chat_template_text.c). */
LP_MUST_USE lp_status lp_chat_text_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                                          const char *name, const lp_chat_args *args, bool *known, lp_chat_value *out);
/* Jinja's filter `title`, which begins words elsewhere than Python's method. */
LP_MUST_USE lp_status lp_chat_title(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value,
                                    lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_lower(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value,
                                    lp_chat_value *out);
/* Filters of texts that Python's methods do not have, and Python's center; *known is false when there is no such filter
 * (chat_template_words.c). */
LP_MUST_USE lp_status lp_chat_word_filter(const lp_chat *chat, const lp_chat_node *node, const char *name,
                                          const lp_chat_value *text, const lp_chat_args *args, bool *known,
                                          lp_chat_value *out);
/* Python's text % values. */
LP_MUST_USE lp_status lp_chat_format(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *text,
                                     const lp_chat_value *values, size_t count, lp_chat_value *out);
/* Applies a filter to the items of `value` (chat_template_list.c). */
LP_MUST_USE lp_status lp_chat_list_filter(const lp_chat *chat, const lp_chat_node *node, const char *name,
                                          const lp_chat_value *value, const lp_chat_args *args, lp_chat_value *out);
/* The member of that dotted name, in which numbers are indices. */
LP_MUST_USE lp_status lp_chat_attribute(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *item,
                                        const lp_chat_value *name, lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_join(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *list,
                                   const lp_chat_args *args, lp_chat_value *out);
/* The pairs of a mapping, each a tuple; dictsort(case_sensitive, by, reverse) when `args` is given. */
LP_MUST_USE lp_status lp_chat_pairs(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *dict,
                                    const lp_chat_args *args, lp_chat_value *out);
/* Reports that the filter or method does not take these values. */
LP_MUST_USE lp_status lp_chat_unsupported(const lp_chat *chat, const lp_chat_node *node, const char *what,
                                          const char *name, const lp_chat_value *value);
LP_MUST_USE lp_status lp_chat_filter(const lp_chat *chat, const lp_chat_node *node, const char *name,
                                     const lp_chat_value *value, const lp_chat_args *args, lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_test(const lp_chat *chat, const lp_chat_node *node, const char *name,
                                   const lp_chat_value *value, const lp_chat_args *args, bool *out);
/* object.name(args) */
LP_MUST_USE lp_status lp_chat_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                                     const char *name, const lp_chat_args *args, lp_chat_value *out);

#endif
