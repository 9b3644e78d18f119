/* base: what every other folder stands on: memory, text, containers, status and diagnostics, units, polynomials, files.
 *
 * It knows nothing of models, machines or compilers and includes libc alone.
 *
 * Allocation failure is not a status: out of memory prints one line and aborts, as in LLVM. Sizes that come from input
 * are checked (lp_size_mul, lp_size_add) before they reach an allocator.
 * Nothing here is shared between threads unless a function says so.
 */
#ifndef LP_BASE_H
#define LP_BASE_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

/* The outcome of a call; its value is the exit status a tool ends with. Whoever returns anything but LP_OK has reported
 * exactly one diagnostic for it. */
typedef enum {
  LP_OK = 0,
  LP_FAILED = 1,     /* bad input, or the outside world failed */
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

/* ---- arena ------------------------------------------------------------------------------------------------------- */

/* A region that grows in blocks and dies at once. Memory is zeroed and aligned to 16 bytes. */
typedef struct lp_arena lp_arena;

LP_NEVER_NULL lp_arena *lp_arena_create(void);
void lp_arena_free(lp_arena *arena);  /* NULL is allowed */
void lp_arena_reset(lp_arena *arena); /* forgets everything, keeps the first block */
size_t lp_arena_bytes(const lp_arena *arena);
/* What was allocated after a mark can be forgotten together, the last mark first: for work whose result lies elsewhere. */
typedef struct {
  void *block;
  size_t used;
} lp_arena_mark;
lp_arena_mark lp_arena_here(const lp_arena *arena);
void lp_arena_rewind(lp_arena *arena, lp_arena_mark mark);
LP_NEVER_NULL void *lp_arena_alloc(lp_arena *arena, size_t size);
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

/* A growable array of `type`: `LP_VEC(int64_t) dims = {0};`. Owned by whoever declared it; release with lp_vec_free. */
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
LP_NEVER_NULL void *lp_vec_grow(void *data, size_t *capacity, size_t item_size);

/* A growable text (always NUL-terminated once non-empty) or byte buffer. Release with lp_buf_free. */
typedef struct {
  char *data;
  size_t size, capacity;
} lp_buf;

/* Room for `size` bytes in all, for who writes them into `data` directly; neither `size` nor the NUL is kept. */
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
bool lp_has_prefix(const char *text, const char *prefix);
bool lp_has_suffix(const char *text, const char *suffix);
uint64_t lp_hash_bytes(const void *data, size_t size, uint64_t seed); /* stable across runs and machines */

/* ---- hash map ---------------------------------------------------------------------------------------------------- */

/* From text to pointer; iteration is in order of insertion, so it is deterministic. Keys are copied. No removal. */
typedef struct lp_map lp_map;

LP_NEVER_NULL lp_map *lp_map_create(void);
void lp_map_free(lp_map *map);                        /* NULL is allowed; the values are not touched */
void *lp_map_get(const lp_map *map, const char *key); /* NULL when absent */
bool lp_map_has(const lp_map *map, const char *key);
/* Puts or replaces; returns the value that was there, or NULL. */
void *lp_map_put(lp_map *map, const char *key, void *value);
size_t lp_map_count(const lp_map *map);
const char *lp_map_key_at(const lp_map *map, size_t index); /* index in order of insertion */
void *lp_map_value_at(const lp_map *map, size_t index);

/* ---- diagnostics ------------------------------------------------------------------------------------------------- */

/* Where something went wrong; every member may be NULL or 0. Text is borrowed; a report copies it. */
typedef struct {
  const char *file; /* "model.onnx" */
  int32_t line, col;
  const char *node;   /* ONNX node name: prints as  file: node 'NODE' (OP):  */
  const char *op;     /* ONNX operator type */
  const char *domain; /* of the operator; "" or "ai.onnx" is the standard's */
  int64_t opset;      /* the domain's version; known: an error's text ends with  [DOMAIN, opset N] */
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
/* Every later entry is also handed to `sink` at once. */
void lp_diag_set_sink(lp_diag *diag, lp_diag_sink *sink, void *user);
size_t lp_diag_count(const lp_diag *diag);
const lp_diag_entry *lp_diag_get(const lp_diag *diag, size_t index);
size_t lp_diag_error_count(const lp_diag *diag);
void lp_diag_clear(lp_diag *diag);
/* `file:line:col: error: text` or `file: node 'N' (Op): error: text [DOMAIN, opset N]`, without a newline. Control
 * characters show as \x0a, and what is very long is cut. */
void lp_diag_format(const lp_diag_entry *entry, lp_buf *out);

/* Reports and gives the status to return: `return lp_error(diag, loc, "...")` LP_FAILED, lp_error_as(status, diag, loc,
 * "...") the given one. `diag` may be NULL: then nothing is kept. A note belongs to the error before it. They are macros
 * so that compilers and checkers see that a report never leads to LP_OK. */
#define lp_error(...) (lp_report_error(__VA_ARGS__), LP_FAILED)
#define lp_error_as(status, ...) (lp_report_error(__VA_ARGS__), (status))
void lp_report_error(lp_diag *diag, lp_loc loc, const char *format, ...) LP_PRINTF(3, 4);
void lp_warning(lp_diag *diag, lp_loc loc, const char *format, ...) LP_PRINTF(3, 4);
void lp_note(lp_diag *diag, lp_loc loc, const char *format, ...) LP_PRINTF(3, 4);
/* A note whose remedy is an option of the command, for programs that read the list to try it. */
void lp_note_option(lp_diag *diag, lp_loc loc, const char *option, const char *format, ...) LP_PRINTF(4, 5);
/* Adds the note "did you mean 'X'?" when one of the `count` names is near enough to `found`. */
void lp_note_near(lp_diag *diag, lp_loc loc, const char *found, const char *const *names, size_t count);
/* The nearest of the names by edit distance, or NULL when none is near. */
const char *lp_near_name(const char *found, const char *const *names, size_t count);

#define LP_LOC_FILE(path) ((lp_loc){.file = (path)})
#define LP_LOC_NONE ((lp_loc){0})

/* ---- units ------------------------------------------------------------------------------------------------------- */

/* Each reads the whole of `text` or reports at `loc` what it found and which forms it takes. Finite, not negative. */
/* 400ms 0.1s 20us 2min; bare: ms */
LP_MUST_USE lp_status lp_parse_time_ms(const char *text, double *ms, lp_diag *diag, lp_loc loc);
/* 4GiB 512MB 1024; a fraction of a byte is rounded */
LP_MUST_USE lp_status lp_parse_size(const char *text, int64_t *bytes, lp_diag *diag, lp_loc loc);
/* 100Mbit/s 1Gbit/s 12MB/s; bare: bit/s */
LP_MUST_USE lp_status lp_parse_rate_bps(const char *text, double *bps, lp_diag *diag, lp_loc loc);
/* A number followed by one of `units`; `wanted` completes "'12 parsecs' is not ...": "a time such as 400ms". */
typedef struct {
  const char *name; /* "" for none */
  double factor;
} lp_unit;
LP_MUST_USE lp_status lp_parse_unit(const char *text, const lp_unit *units, size_t count, const char *wanted,
                                    double *value, lp_diag *diag, lp_loc loc);
LP_MUST_USE lp_status lp_parse_double(const char *text, double *value, lp_diag *diag, lp_loc loc);
/* The same, and 1% is 0.01. */
LP_MUST_USE lp_status lp_parse_share(const char *text, double *value, lp_diag *diag, lp_loc loc);
/* -1.5 too. */
LP_MUST_USE lp_status lp_parse_signed(const char *text, double *value, lp_diag *diag, lp_loc loc);
LP_MUST_USE lp_status lp_parse_i64(const char *text, int64_t min, int64_t max, int64_t *value, lp_diag *diag,
                                   lp_loc loc);
/* Human forms into a caller's buffer, which is returned: "4.0 GiB", "100 Mbit/s". */
const char *lp_format_bytes(double bytes, char out[32]);
const char *lp_format_rate(double bps, char out[32]);

/* ---- polynomials ------------------------------------------------------------------------------------------------- */

/* An integer polynomial over named symbols: the sizes and costs of a model in batch b, new tokens s, past tokens p.
 * Immutable; lives in the arena it was made in. Kept in canonical form (terms sorted by monomial, no zero coefficient),
 * so that equality is structural. Symbols are small positive numbers; a table maps them to names. */
typedef uint16_t lp_symbol; /* 1..; 0 is none */

enum { LP_POLY_DEGREE = 6, LP_POLY_TERMS = 256 };

typedef struct {
  int64_t coef;
  lp_symbol symbol[LP_POLY_DEGREE]; /* ascending, repeated for powers, padded with 0 at the end */
} lp_term;

typedef struct lp_poly {
  int32_t count;
  lp_term term[];
} lp_poly;

/* Names of symbols, in order of first use. `name[0]` is unused. Owned by its user; names live in `arena`. */
typedef struct {
  lp_arena *arena;
  LP_VEC(const char *) names; /* names.data[symbol - 1] */
} lp_symbols;

void lp_symbols_init(lp_symbols *symbols, lp_arena *arena);
void lp_symbols_free(lp_symbols *symbols);
enum { LP_MAX_NAMED_SYMBOLS = 4096 };
lp_symbol lp_symbols_intern(lp_symbols *symbols, const char *name);     /* 0 when LP_MAX_NAMED_SYMBOLS are there */
lp_symbol lp_symbols_find(const lp_symbols *symbols, const char *name); /* 0 when absent */
const char *lp_symbols_name(const lp_symbols *symbols, lp_symbol symbol);

const lp_poly *lp_poly_const(lp_arena *arena, int64_t value);
const lp_poly *lp_poly_symbol(lp_arena *arena, lp_symbol symbol);
/* NULL when a coefficient overflows, the degree exceeds LP_POLY_DEGREE or the terms LP_POLY_TERMS; NULL operands give
 * NULL. */
const lp_poly *lp_poly_add(lp_arena *arena, const lp_poly *a, const lp_poly *b);
const lp_poly *lp_poly_sub(lp_arena *arena, const lp_poly *a, const lp_poly *b);
const lp_poly *lp_poly_mul(lp_arena *arena, const lp_poly *a, const lp_poly *b);
const lp_poly *lp_poly_scale(lp_arena *arena, const lp_poly *a, int64_t factor);
/* a / b when it divides exactly as polynomials, else NULL. */
const lp_poly *lp_poly_div(lp_arena *arena, const lp_poly *a, const lp_poly *b);
/* `a` with `symbol` replaced by `by`. */
const lp_poly *lp_poly_subst(lp_arena *arena, const lp_poly *a, lp_symbol symbol, const lp_poly *by);
bool lp_poly_equal(const lp_poly *a, const lp_poly *b);  /* NULL is unknown: it equals nothing */
bool lp_poly_is_const(const lp_poly *a, int64_t *value); /* `value` may be NULL */
bool lp_poly_has(const lp_poly *a, lp_symbol symbol);
/* Is a >= b for all symbols >= 0? (sufficient test: every coefficient of a - b is >= 0) */
bool lp_poly_ge(lp_arena *arena, const lp_poly *a, const lp_poly *b);
/* values[symbol - 1]; symbols past `count` are an assertion. Saturates at INT64_MAX / INT64_MIN. */
int64_t lp_poly_eval(const lp_poly *a, const int64_t *values, size_t count);
double lp_poly_eval_f64(const lp_poly *a, const double *values, size_t count);
/* "2*b*s^2 + p": terms from the highest degree, `0` when empty. Parse reads what print writes, in any order, with or
 * without spaces, and sums in parentheses; it interns the names it meets. */
void lp_poly_print(const lp_poly *a, const lp_symbols *symbols, lp_buf *out);
LP_MUST_USE lp_status lp_poly_parse(lp_arena *arena, lp_symbols *symbols, const char *text, const lp_poly **out,
                                    lp_diag *diag, lp_loc loc);

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* A file mapped read-only. */
typedef struct {
  const uint8_t *data; /* NULL when empty */
  size_t size;
} lp_mapping;

LP_MUST_USE lp_status lp_file_map(const char *path, lp_mapping *out, lp_diag *diag);
void lp_file_unmap(lp_mapping *mapping);

/* Maps the regular file `path` of the folder `root`, where the path comes from a file that is not trusted. It must be
 * relative, without "..", and no symbolic link on the way may lead out of the folder, not even while others rename what is
 * in it; links within the folder are fine, the folder's own path is trusted. When it is refused, `*why` completes
 * "the path 'P' ..." (static text). Reports nothing. */
typedef enum { LP_FILE_FOUND, LP_FILE_ABSENT, LP_FILE_REFUSED } lp_found;
LP_MUST_USE lp_found lp_file_map_beneath(const char *root, const char *path, lp_mapping *out, const char **why);
/* The whole file ("-" is stdin), NUL-terminated; release with free(). */
LP_MUST_USE lp_status lp_file_read(const char *path, char **data, size_t *size, lp_diag *diag);

/* A file written under a temporary name beside `path` and renamed on commit; nothing is left behind otherwise. A path
 * that is there and is no regular file (/dev/null, a pipe) is written in place. */
typedef struct lp_writer lp_writer;
LP_MUST_USE lp_status lp_writer_open(const char *path, lp_writer **out, lp_diag *diag); /* "-" is stdout */
void lp_writer_put(lp_writer *writer, const void *data, size_t size);                   /* errors surface at commit */
void lp_writer_printf(lp_writer *writer, const char *format, ...) LP_PRINTF(2, 3);
uint64_t lp_writer_offset(const lp_writer *writer);
LP_MUST_USE lp_status lp_writer_commit(lp_writer *writer, lp_diag *diag); /* frees the writer in every case */
void lp_writer_abandon(lp_writer *writer);                                /* NULL is allowed */
/* open + put + commit */
LP_MUST_USE lp_status lp_file_write(const char *path, const void *data, size_t size, lp_diag *diag);

/* A directory built under a temporary name and swapped in whole; an old one of that name is replaced. What processes that
 * were killed left of building the same one is removed (claim.h). */
/* Release `temporary` with free() after commit or abandon. */
LP_MUST_USE lp_status lp_dir_begin(const char *path, char **temporary, lp_diag *diag);
/* Removes `temporary` when it fails, so that one of commit and abandon is enough. */
LP_MUST_USE lp_status lp_dir_commit(const char *temporary, const char *path, lp_diag *diag);
/* A fresh folder $TMPDIR/PREFIX-XXXXXX (/tmp); abandon it and release it with free(). */
LP_MUST_USE lp_status lp_dir_temporary(const char *prefix, char **temporary, lp_diag *diag);
void lp_dir_abandon(const char *temporary); /* removes it and its content; NULL is allowed */

/* Temporary files and folders that lp_temporaries_remove() is to remove, with what is in them: those of writers and of
 * lp_dir_begin are noted already. Forget one before it is renamed or removed. */
void lp_temporary_note(const char *path);
void lp_temporary_forget(const char *path);
/* For a process that is about to end by a signal, not in the handler itself: from now on whoever notes or forgets waits for
 * ever, so that nothing is renamed into place that is being removed. */
void lp_temporaries_remove(void);
void lp_remove_tree(const char *path); /* a file, or a folder and its content */

/* "dir/name"; the directory part of a path ("." when it has none); the last part. Release with free(). */
LP_NEVER_NULL char *lp_path_join(const char *dir, const char *name);
LP_NEVER_NULL char *lp_path_dir(const char *path);
LP_NEVER_NULL const char *lp_path_base(const char *path); /* borrowed */
bool lp_path_exists(const char *path);

/* SHA-256. `hex` and `bytes` end it: 64 digits and a NUL, or 32 bytes. */
typedef struct {
  uint32_t state[8];
  uint64_t length;
  uint8_t block[64];
} lp_sha256;
void lp_sha256_init(lp_sha256 *sha);
void lp_sha256_update(lp_sha256 *sha, const void *data, size_t size);
void lp_sha256_hex(lp_sha256 *sha, char out[65]);
void lp_sha256_bytes(lp_sha256 *sha, uint8_t out[32]);
/* CRC-32C of `crc`'s bytes followed by these; begins with 0. It finds damage, not malice, at the speed of memory. */
uint32_t lp_crc32c(uint32_t crc, const void *data, size_t size);

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Comma-separated values: a header, then rows of as many fields, blanks around fields taken off; lines that are empty are
 * left out. Fields are not quoted. Lives in the arena it was read into. */
typedef struct {
  const char *file;
  int32_t columns;
  const char **name; /* [columns] */
  size_t rows;
  const char **field; /* [rows][columns] */
  int32_t *col;       /* [rows][columns] where it begins in its line */
  int32_t *line;      /* [rows] */
} lp_csv;

LP_MUST_USE lp_status lp_csv_parse(const char *file, const char *text, size_t size, lp_arena *arena, lp_csv *out,
                                   lp_diag *diag);
LP_MUST_USE lp_status lp_csv_read(const char *path, lp_arena *arena, lp_csv *out, lp_diag *diag);
int32_t lp_csv_column(const lp_csv *csv, const char *name); /* -1: none of that name */
const char *lp_csv_at(const lp_csv *csv, size_t row, int32_t column);
lp_loc lp_csv_loc(const lp_csv *csv, size_t row, int32_t column);
/* Of a field that must be such a number. */
LP_MUST_USE lp_status lp_csv_number(const lp_csv *csv, size_t row, int32_t column, double least, double most,
                                    double *out, lp_diag *diag);

/* ---- small numbers ----------------------------------------------------------------------------------------------- */

float lp_f16_to_f32(uint16_t half);
uint16_t lp_f32_to_f16(float value); /* round to nearest even */
float lp_bf16_to_f32(uint16_t bits);
uint16_t lp_f32_to_bf16(float value);

double lp_now_ms(void); /* monotonic */

/* A flag that another thread sets, or a signal: `volatile sig_atomic_t`, which is int. */
static inline bool lp_flag_get(const volatile int *flag) {
  return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}
static inline void lp_flag_set(volatile int *flag) {
  __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
}

#endif
