/* Values of chat templates and the operations on them (value.c, json.c). */
#pragma once

#include "runtime/chat/syntax.h"

typedef enum {
  LP_CHAT_UNDEFINED,
  LP_CHAT_NONE,
  LP_CHAT_BOOL,     /* integer 0 or 1 */
  LP_CHAT_NUMBER,   /* integer */
  LP_CHAT_REAL,     /* real */
  LP_CHAT_STRING,   /* text, size bytes, and one after them, which need not be a NUL */
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
  bool grows; /* the text or list may grow in place (lp_chat_append) */
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

/* ---- operations (value.c) ---------------------------------------------------------------------------------------- */

lp_chat_value lp_chat_keep(const lp_buf *text); /* of a buffer in the arena */
/* The text with a NUL at its end. */
const char *lp_chat_string(const lp_chat *chat, const lp_chat_value *text);
bool lp_chat_is_text(const lp_chat_value *value, const char *text);
size_t lp_chat_count_characters(const lp_chat *chat, const char *text, size_t size);
size_t lp_chat_character_length(const lp_chat_value *text,
                                size_t at);           /* of what begins at byte `at`, which may be bad */
bool lp_chat_is_integral(const lp_chat_value *value); /* a number or a boolean */
/* The argument at `index` by position or of that name; NULL: not given. */
const lp_chat_value *lp_chat_arg(const lp_chat_args *args, size_t index, const char *name);
/* The first variable of that name, from `first` on; NULL: none. */
lp_chat_variable *lp_chat_find_variable(const lp_chat *chat, lp_chat_variable *first, const char *name);
/* The first occurrence of `what` in `in` from byte `from` on, or NULL. */
const char *lp_chat_find(const lp_chat *chat, const lp_chat_value *in, const lp_chat_value *what, size_t from);
bool lp_chat_is_true(const lp_chat_value *value);
bool lp_chat_equals(const lp_chat *chat, const lp_chat_value *a, const lp_chat_value *b);
/* Compares two values, lists item by item: `order` is < 0, 0 or > 0. False: the values have no order. */
bool lp_chat_order(const lp_chat *chat, const lp_chat_value *a, const lp_chat_value *b, int *out);
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
/* Reports that the filter or method does not take these values. */
LP_MUST_USE lp_status lp_chat_unsupported(const lp_chat *chat, const lp_chat_node *node, const char *what,
                                          const char *name, const lp_chat_value *value);
/* Operations. Each reports at node->at if the values do not support it. */
LP_MUST_USE lp_status lp_chat_negate(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value,
                                     lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_binary(const lp_chat *chat, const lp_chat_node *node, const char *op,
                                     const lp_chat_value *a, const lp_chat_value *b, lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_member(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                                     const char *name, lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_index(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                                    const lp_chat_value *key, lp_chat_value *out);
/* A slice; each bound may be none or undefined. */
LP_MUST_USE lp_status lp_chat_slice(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                                    const lp_chat_value bounds[3], lp_chat_value *out);

/* ---- JSON (json.c) ----------------------------------------------------------------------------------------------- */

lp_chat_value lp_chat_from_json(const lp_chat *chat, const lp_json_value *value);
/* Writes JSON as Python's json.dumps does; `indent` < 0: on one line. Fails for a value that has no JSON. */
LP_MUST_USE bool lp_chat_to_json(const lp_chat *chat, const lp_chat_value *value, int64_t indent, bool ascii,
                                 lp_buf *out);
/* Appends Python's repr of the value, with which containers print their items. */
LP_MUST_USE bool lp_chat_repr(const lp_chat *chat, const lp_chat_value *value, lp_buf *out);
