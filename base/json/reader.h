/* base/json: the project's one reader and one writer of JSON (writer.h).
 *
 * The reader is our own because of tokenizer.json: it holds "\u0000" as a key, which jansson refuses, and a quarter of
 * a million short texts, for which a tree of allocations costs more than the rest of loading. A document here is two
 * blocks: the unescaped texts, and the values, each container's items side by side.
 *
 * It reads hostile text too. It refuses text that is not RFC 8259 in UTF-8, nests deeper than LP_JSON_MAX_NESTING,
 * gives a key twice or holds a number beyond the range of a double, and no text takes more than n log n time.
 *
 * An lp_json is a value together with the path to it, so that a report names the place: `manifest.json: error:
 * programs.decode.steps[3].buffer: ...`.
 */
#pragma once

#include "base/base.h"
#include "base/poly.h"

typedef enum {
  LP_JSON_NULL,
  LP_JSON_BOOL,
  LP_JSON_INTEGER,
  LP_JSON_REAL,
  LP_JSON_TEXT,
  LP_JSON_ARRAY,
  LP_JSON_OBJECT
} lp_json_kind;

/* Lives as long as its document. */
typedef struct lp_json_value {
  lp_json_kind kind;
  uint32_t size; /* bytes of a text, items of an array, members of an object */
  union {
    bool truth;
    int64_t integer;
    double real;                       /* an integer beyond 64 bits, too */
    const char *text;                  /* valid UTF-8, NUL-terminated; may hold NUL */
    const struct lp_json_value *items; /* an array's items; an object's keys and values, alternating */
  };
} lp_json_value;

typedef struct lp_json_document lp_json_document;

enum { LP_JSON_MAX_NESTING = 128 }; /* containers around a value */

/* Options of lp_json_parse: text that it accepts beyond RFC 8259 with unique keys, and text that it refuses. */
enum {
  LP_JSON_ALLOW_DUPLICATES = 1, /* the first member of a key counts */
  LP_JSON_REFUSE_NUL = 2        /* no text or key holds \u0000 */
};

/* Reads one value and nothing after it. Release with lp_json_free. */
LP_MUST_USE lp_status lp_json_parse(const char *file, const char *text, size_t size, unsigned options,
                                    lp_json_document **out, lp_diag *diag);
/* The same of a file. */
LP_MUST_USE lp_status lp_json_load(const char *path, unsigned options, lp_json_document **out, lp_diag *diag);
void lp_json_free(lp_json_document *document); /* NULL is allowed */
LP_OWNER(lp_json_document, lp_json_free)

/* ---- values and their places (reader.c) ------------------------------------------------------------------------- */

/* Lives on the stack of the function that reads the document; `parent` outlives it. */
typedef struct lp_json {
  const struct lp_json *parent;
  const char *file;           /* of the root */
  const char *key;            /* in an object, else NULL */
  size_t index;               /* in an array */
  const lp_json_value *value; /* NULL: absent */
} lp_json;

lp_json lp_json_root(const char *file, const lp_json_document *document); /* `file` outlives it */
/* The member with that key; absent when `object` has no such member or is not an object. Takes time in proportion to
 * the members before it. */
lp_json lp_json_member(const lp_json *object, const char *key);
/* A pointer to that member, for one call: it lives until the end of the block. */
#define LP_MEMBER(object, key) ((lp_json[]){lp_json_member((object), (key))})
/* Calls `asked` for each member that lp_json_member is asked for, until it is NULL. Other threads may read nothing
 * meanwhile. */
void lp_json_watch(void (*asked)(void *user, const lp_json *member), void *user);
lp_json lp_json_entry(const lp_json *object, size_t index);                 /* the member at index < lp_json_count */
lp_json lp_json_item(const lp_json *array, size_t index);                   /* absent beyond the last item */
#define LP_ITEM(array, index) ((lp_json[]){lp_json_item((array), (index))}) /* as LP_MEMBER */
/* Loops over the items of an array. */
#define LP_FOR_ITEMS(item, array)                                                                                      \
  for (lp_json item = lp_json_item(array, 0); item.index < lp_json_count(array);                                       \
       item = lp_json_item(array, item.index + 1))
size_t lp_json_count(const lp_json *at); /* of an array's items or an object's members; else 0 */

bool lp_json_is(const lp_json *at, lp_json_kind kind); /* an absent value is of no kind */
bool lp_json_is_given(const lp_json *at);              /* neither absent nor null */
bool lp_json_is_true(const lp_json *at);
bool lp_json_equals(const lp_json *at, const char *text); /* a string of that text */
/* The text of a string that holds no NUL, borrowed from the document; `otherwise` for every other value. */
const char *lp_json_text_or(const lp_json *at, const char *otherwise);
const char *lp_json_text_of(const lp_json *object, const char *key); /* of a member; NULL: it is no text */

LP_MUST_USE lp_status lp_json_error(const lp_json *at, lp_diag *diag, const char *format, ...) LP_PRINTF(3, 4);

/* Each function reads a value of one kind, and otherwise reports the kind that it wanted and the kind that it found.
 * Text is borrowed from the document. */
LP_MUST_USE lp_status lp_json_object(const lp_json *at, lp_diag *diag);
LP_MUST_USE lp_status lp_json_array(const lp_json *at, lp_diag *diag);
LP_MUST_USE lp_status lp_json_text(const lp_json *at, const char **out,
                                   lp_diag *diag); /* refuses text that holds NUL */
LP_MUST_USE lp_status lp_json_bytes(const lp_json *at, const char **out, size_t *size, lp_diag *diag); /* any text */
LP_MUST_USE lp_status lp_json_bool(const lp_json *at, bool *out, lp_diag *diag);
LP_MUST_USE lp_status lp_json_i64(const lp_json *at, int64_t min, int64_t max, int64_t *out, lp_diag *diag);
LP_MUST_USE lp_status lp_json_i32(const lp_json *at, int32_t min, int32_t max, int32_t *out, lp_diag *diag);
/* An integer or a real number. */
LP_MUST_USE lp_status lp_json_number(const lp_json *at, double min, double max, double *out, lp_diag *diag);
/* Reads one of `names` and sets its index; otherwise suggests the nearest name. */
LP_MUST_USE lp_status lp_json_choice(const lp_json *at, const char *const *names, size_t count, int32_t *out,
                                     lp_diag *diag);

/* A hash of all keys, texts and numbers but of the root's member `except`: the same whatever the layout. */
uint64_t lp_json_digest(const lp_json *root, const char *except);

/* Reads a polynomial in symbols that the table has already. */
LP_MUST_USE lp_status lp_json_poly(const lp_json *at, lp_arena *arena, lp_symbols *symbols, const lp_poly **out,
                                   lp_diag *diag);
