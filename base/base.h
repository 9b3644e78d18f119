/* base: the ground of every other folder: memory, text, containers, status and diagnostics, units, polynomials, files.
 *
 * It knows nothing of models, machines or compilers and includes only libc. The headers of libc that nearly every file
 * needs come with it: a file that includes anything of the tree names only further ones.
 *
 * Allocation failure is not a status: out of memory prints one line and aborts, as in LLVM. Sizes that come from input
 * are checked (lp_size_mul, lp_size_add) before they reach an allocator. Nothing here is shared between threads unless
 * a function says so.
 */
#pragma once

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define LP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define LP_MUST_USE __attribute__((warn_unused_result))
#define LP_NEVER_NULL __attribute__((returns_nonnull))
#else
#define LP_PRINTF(fmt, args)
#define LP_MUST_USE
#define LP_NEVER_NULL
#endif

#define LP_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- status ------------------------------------------------------------------------------------------------------ */

/* The outcome of a call; its value is the exit status a tool ends with. A function that returns anything but LP_OK has
 * reported exactly one diagnostic for it. */
typedef enum {
  LP_OK = 0,
  LP_FAILED = 1,     /* bad input, or a file, device or connection failed */
  LP_USAGE = 2,      /* the command line is wrong */
  LP_INFEASIBLE = 3, /* no plan meets the SLA */
  LP_MISMATCH = 4    /* a comparison failed */
} lp_status_code;
typedef lp_status_code lp_status;

/* Returns from the calling function with the status of `expr` unless it is LP_OK. */
#define LP_TRY(expr)                                                                                                   \
  do {                                                                                                                 \
    lp_status lp_try_status = (expr);                                                                                  \
    if (lp_try_status != LP_OK) return lp_try_status;                                                                  \
  } while (0)

/* Asked now and then during long work: true ends it with a failure. */
typedef struct {
  bool (*is_stopped)(void *user);
  void *user;
} lp_watch;

/* Declares locals that their block owns: `release` gets the address of each when the block is left, by LP_TRY and
 * return as well. `LP_OWNED(lp_buf_free) lp_buf text = {0};` LP_OWNER makes the `release` of pointers to a type. */
#define LP_OWNED(release) __attribute__((cleanup(release)))
#define LP_OWNER(type, free_it)                                                                                        \
  static inline void free_it##_at(type **at) {                                                                         \
    free_it(*at);                                                                                                      \
  }

/* ---- arena ------------------------------------------------------------------------------------------------------- */

/* A region that grows in blocks and dies at once. Memory is zeroed and aligned to 16 bytes. */
typedef struct lp_arena lp_arena;

LP_NEVER_NULL lp_arena *lp_arena_create(void);
void lp_arena_free(lp_arena *arena); /* NULL is allowed */
LP_OWNER(lp_arena, lp_arena_free)
void lp_arena_reset(lp_arena *arena); /* forgets everything, keeps the first block */
size_t lp_arena_bytes(const lp_arena *arena);
/* Rewinding to a mark releases everything that was allocated after it. Marks are rewound in the reverse order of their
 * making. Nothing that outlives the work may lie in the arena after the mark. */
typedef struct {
  void *block;
  size_t used;
} lp_arena_mark;
lp_arena_mark lp_arena_here(const lp_arena *arena);
void lp_arena_rewind(lp_arena *arena, lp_arena_mark mark);
LP_NEVER_NULL void *lp_arena_alloc(lp_arena *arena, size_t size);
/* As lp_arena_alloc, but NULL where the arena's blocks would exceed its limit or the machine has no memory. From then
 * on the arena is full. Only an arena that is used so may have a limit. */
void *lp_arena_try(lp_arena *arena, size_t size);
void lp_arena_limit(lp_arena *arena, size_t bytes);
bool lp_arena_is_full(const lp_arena *arena);
/* `count` x `size` bytes; an overflow of the product aborts. */
LP_NEVER_NULL void *lp_arena_array(lp_arena *arena, size_t count, size_t size);
LP_NEVER_NULL void *lp_arena_copy(lp_arena *arena, const void *data, size_t size);
LP_NEVER_NULL char *lp_arena_strdup(lp_arena *arena, const char *text);
LP_NEVER_NULL char *lp_arena_strndup(lp_arena *arena, const char *text, size_t length);
LP_NEVER_NULL char *lp_arena_format(lp_arena *arena, const char *format, ...) LP_PRINTF(2, 3);

#define LP_NEW(arena, type) ((type *)lp_arena_alloc((arena), sizeof(type)))
#define LP_NEW_ARRAY(arena, type, count) ((type *)lp_arena_array((arena), (size_t)(count), sizeof(type)))

/* Checked sizes: false when the result does not fit. */
bool lp_size_mul(size_t a, size_t b, size_t *out);
bool lp_size_add(size_t a, size_t b, size_t *out);
bool lp_i64_mul(int64_t a, int64_t b, int64_t *out);
bool lp_i64_add(int64_t a, int64_t b, int64_t *out);

/* ---- heap, vectors, text ----------------------------------------------------------------------------------------- */

/* malloc and realloc that abort when memory is out; zeroed on first allocation. Release with free(). */
LP_NEVER_NULL void *lp_alloc(size_t size);
LP_NEVER_NULL void *lp_realloc(void *old, size_t size);
LP_NEVER_NULL char *lp_strdup(const char *text);
/* For LP_OWNED: frees what a pointer of any type, or the array of a vector, is at. */
static inline void lp_free_at(void *at) {
  void *memory;
  memcpy(&memory, at, sizeof memory);
  free(memory);
}

/* A growable array of `type`: `LP_VEC(int64_t) dims = {0};`. Its owner is the declaring code; release with
 * lp_vec_free. */
#define LP_VEC(type)                                                                                                   \
  struct {                                                                                                             \
    type *data;                                                                                                        \
    size_t count, capacity;                                                                                            \
  }
#define lp_vec_push(vec, item)                                                                                         \
  ((void)((vec)->count == (vec)->capacity &&                                                                           \
          ((vec)->data = lp_vec_grow((vec)->data, &(vec)->capacity, sizeof(*(vec)->data)), 1)),                        \
   (void)((vec)->data[(vec)->count++] = (item)))
#define lp_vec_free(vec) (free((vec)->data), (void)((vec)->data = NULL, (vec)->count = (vec)->capacity = 0))
/* Loops over the items of an array, and of a vector, that stay where they are; `at` points to each in turn. */
#define LP_FOR_EACH(type, at, array, number)                                                                           \
  for (type *at = (array), *const at##_end = at ? at + (number) : at; at < at##_end; at++)
#define LP_FOR_VEC(type, at, vec) LP_FOR_EACH(type, at, (vec)->data, (vec)->count)
/* The same over pointers: `item` is each of them in turn. The array may lose or get items meanwhile, but not move. */
#define LP_FOR_REFS(type, item, array, number)                                                                         \
  for (type *const *item##_at = (array), *item;                                                                        \
       item##_at && item##_at < (array) + (number) && (item = *item##_at, true); item##_at++)
#define LP_FOR_VEC_REFS(type, item, vec) LP_FOR_REFS(type, item, (vec)->data, (vec)->count)
LP_NEVER_NULL void *lp_vec_grow(void *data, size_t *capacity, size_t item_size);

/* A growable text (always NUL-terminated once non-empty) or byte buffer. Release with lp_buf_free. With an arena it
 * lies there, and what that has no room for (lp_arena_try) is dropped. */
typedef struct {
  char *data;
  size_t size, capacity;
  lp_arena *arena;
} lp_buf;

/* Makes room for `size` bytes in all, for a caller that writes to `data` itself; sets neither buf->size nor a NUL. */
void lp_buf_reserve(lp_buf *buf, size_t size);
void lp_buf_append(lp_buf *buf, const void *data, size_t size);
void lp_buf_puts(lp_buf *buf, const char *text);
void lp_buf_printf(lp_buf *buf, const char *format, ...) LP_PRINTF(2, 3);
void lp_buf_vprintf(lp_buf *buf, const char *format, va_list args) LP_PRINTF(2, 0);
void lp_buf_clear(lp_buf *buf);
void lp_buf_free(lp_buf *buf);
/* Borrowed until the next append; "" when empty. */
LP_NEVER_NULL const char *lp_buf_text(const lp_buf *buf);

bool lp_streq(const char *a, const char *b); /* NULL equals NULL only */
/* The first entry of an array with that name, which is the first member of an entry, or the entry itself; NULL: there
 * is none. */
#define LP_FIND(array, number, name) lp_find_named((array), (size_t)(number), sizeof *(array), (name))
#define LP_FIND_IN(array, name) LP_FIND(array, LP_COUNT(array), name)
void *lp_find_named(const void *array, size_t count, size_t size, const char *name);
bool lp_has_prefix(const char *text, const char *prefix);
bool lp_has_suffix(const char *text, const char *suffix);
uint64_t lp_hash_bytes(const void *data, size_t size, uint64_t seed); /* stable across runs and machines */

/* ---- diagnostics ------------------------------------------------------------------------------------------------- */

/* The location of a message; every member may be NULL or 0. Text is borrowed; a report copies it. */
typedef struct {
  const char *file; /* "model.onnx" */
  int32_t line, col;
  const char *node;   /* ONNX node name: prints as  file: node 'NODE' (OP):  */
  const char *op;     /* ONNX operator type */
  const char *domain; /* of the operator; "" or "ai.onnx" is the standard's */
  int64_t opset;      /* version of the domain, 0 unknown: an error's text then ends with  [DOMAIN, opset N] */
} lp_loc;

typedef enum { LP_NOTE, LP_WARNING, LP_ERROR } lp_severity;

typedef struct {
  lp_severity severity;
  lp_loc loc;
  char *text;
  const char *option; /* of a note: the option that would help, "--bind=NAME"; NULL: none */
} lp_diag_entry;

/* A list of located messages. The owner decides where they go: tools print them as they come, tests collect them. */
typedef struct lp_diag lp_diag;
typedef void lp_diag_sink(void *user, const lp_diag_entry *entry);

LP_NEVER_NULL lp_diag *lp_diag_create(void);
void lp_diag_free(lp_diag *diag);
LP_OWNER(lp_diag, lp_diag_free)
/* Every later entry is also handed to `sink` at once. */
void lp_diag_set_sink(lp_diag *diag, lp_diag_sink *sink, void *user);
size_t lp_diag_count(const lp_diag *diag);
const lp_diag_entry *lp_diag_get(const lp_diag *diag, size_t index);
size_t lp_diag_error_count(const lp_diag *diag);
void lp_diag_clear(lp_diag *diag);
/* `file:line:col: error: text` or `file: node 'N' (Op): error: text [DOMAIN, opset N]`, without a newline. Control
 * characters show as \x0a, and a very long text is cut. */
void lp_diag_format(const lp_diag_entry *entry, lp_buf *out);
/* Escape sequences of a terminal around the parts of a diagnostic; each begins a style, and `end` ends it. */
typedef struct {
  const char *place, *severity[3], *end; /* severity: by lp_severity */
} lp_diag_style;
void lp_diag_format_styled(const lp_diag_entry *entry, const lp_diag_style *style, lp_buf *out);

/* Reports and gives the status to return: `return lp_error(diag, loc, "...")` LP_FAILED, lp_error_as(status, diag, loc,
 * "...") the given one. `diag` may be NULL: then nothing is kept. A note belongs to the error before it. They are
 * macros so that compilers and checkers see that a report never leads to LP_OK. */
#define lp_error(...) (lp_report_error(__VA_ARGS__), LP_FAILED)
#define lp_error_as(status, ...) (lp_report_error(__VA_ARGS__), (status))
void lp_report_error(lp_diag *diag, lp_loc loc, const char *format, ...) LP_PRINTF(3, 4);
void lp_warning(lp_diag *diag, lp_loc loc, const char *format, ...) LP_PRINTF(3, 4);
void lp_note(lp_diag *diag, lp_loc loc, const char *format, ...) LP_PRINTF(3, 4);
/* Adds a note that names the option of the command that would help, for programs that read the list and try the
 * option. */
void lp_note_option(lp_diag *diag, lp_loc loc, const char *option, const char *format, ...) LP_PRINTF(4, 5);
/* Reports all that `from` has, in its order, to `to`. */
void lp_diag_append(lp_diag *to, const lp_diag *from);
/* The same of what the value of `key` led to, at its place; an error of another file has its own in the text. */
void lp_diag_relay(lp_diag *to, lp_loc loc, const char *key, const lp_diag *from);
/* Adds the note "did you mean 'X'?" when one of the `count` names is near enough to `found`. */
void lp_note_near(lp_diag *diag, lp_loc loc, const char *found, const char *const *names, size_t count);
/* An error, and that note. */
#define lp_error_near(diag, loc, found, names, count, ...)                                                             \
  (lp_report_error(diag, loc, __VA_ARGS__), lp_note_near(diag, loc, found, names, count), LP_FAILED)
/* The nearest of the names by edit distance, or NULL when none is near. */
const char *lp_near_name(const char *found, const char *const *names, size_t count);

#define LP_LOC_FILE(path) ((lp_loc){.file = (path)})
#define LP_LOC_NONE ((lp_loc){0})
