/* base/yaml: YAML documents read against a form, where every fault is reported with file, line and column.
 *
 * It knows the form of YAML, not the meaning of the values. It is a target of its own, because base/ needs only libc
 * and this needs libyaml; its callers need no header of libyaml.
 *
 * Nodes live as long as the document, texts as long as the arena. Not shared between threads.
 */
#pragma once

#include "base/base.h"

struct yaml_document_s;
typedef struct yaml_node_s lp_yaml_node;

/* A document while it is read. */
typedef struct {
  const char *file;
  lp_arena *arena; /* receives texts and arrays */
  struct yaml_document_s *document;
  lp_diag *diag;
} lp_yaml;

/* ---- documents --------------------------------------------------------------------------------------------------- */

/* Reads the root of a document; the document is gone when it returns. */
typedef lp_status lp_yaml_reader(void *user, lp_yaml *yaml, const lp_yaml_node *root);
/* `file` is the name for messages; an empty document is an error. */
LP_MUST_USE lp_status lp_yaml_parse(const char *file, const void *text, size_t size, lp_arena *arena,
                                    lp_yaml_reader *read, void *user, lp_diag *diag);
LP_MUST_USE lp_status lp_yaml_load(const char *path, lp_arena *arena, lp_yaml_reader *read, void *user, lp_diag *diag);

/* A path that the document gives, relative to the folder of its file; in the arena. */
const char *lp_yaml_relative(const lp_yaml *yaml, const char *path);
/* The same, unless it is a name and no path: see lp_embedded_load. */
const char *lp_yaml_named(const lp_yaml *yaml, const char *text);

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

lp_loc lp_yaml_loc(const lp_yaml *yaml, const lp_yaml_node *node);
/* Reports a fault of the node. */
#define lp_yaml_error(yaml, node, ...) lp_error((yaml)->diag, lp_yaml_loc(yaml, node), __VA_ARGS__)
bool lp_yaml_is_scalar(const lp_yaml_node *node);
bool lp_yaml_is_mapping(const lp_yaml_node *node);
bool lp_yaml_is_list(const lp_yaml_node *node);

/* The text of a scalar, neither empty nor with NUL characters. `key` names it in messages. */
LP_MUST_USE lp_status lp_yaml_text(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, const char **out);
LP_MUST_USE lp_status lp_yaml_number(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, double least,
                                     double most, double *out);
/* A whole number from `least` to 2^40. */
LP_MUST_USE lp_status lp_yaml_whole(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, int64_t least,
                                    int64_t *out);
/* true or false */
LP_MUST_USE lp_status lp_yaml_bool(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, bool *out);
/* The index of one of `names`; adds "did you mean". */
LP_MUST_USE lp_status lp_yaml_choice(const lp_yaml *yaml, const lp_yaml_node *node, const char *key,
                                     const char *const *names, size_t count, int32_t *out);

/* Calls `read` for each entry of a mapping; `name` is the text of its key. A key that occurs twice is an error. `what`
 * names the mapping ("a task"; "" is the whole file). */
typedef lp_status lp_yaml_entry_reader(lp_yaml *yaml, const lp_yaml_node *key, const char *name,
                                       const lp_yaml_node *value, void *user);
LP_MUST_USE lp_status lp_yaml_each(lp_yaml *yaml, const lp_yaml_node *node, const char *what,
                                   lp_yaml_entry_reader *read, void *user);
/* Reports an unknown key and suggests the nearest of `keys`. */
LP_MUST_USE lp_status lp_yaml_unknown_key(const lp_yaml *yaml, const lp_yaml_node *node, const char *key,
                                          const char *const *keys, size_t count);

/* Reads a list with at least one item. */
LP_MUST_USE lp_status lp_yaml_list(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, int32_t *count);
const lp_yaml_node *lp_yaml_item(const lp_yaml *yaml, const lp_yaml_node *list, int32_t index);
/* A list of numbers from `least` to `most`; `ascending` ones if so wanted. */
typedef struct {
  double least, most;
  bool ascending;
} lp_yaml_range;
LP_MUST_USE lp_status lp_yaml_numbers(const lp_yaml *yaml, const lp_yaml_node *node, const char *key,
                                      const lp_yaml_range *range, double **out, int32_t *count);

/* ---- mappings by table ------------------------------------------------------------------------------------------- */

typedef enum {
  LP_YAML_F64,    /* double: a number in [least, most] */
  LP_YAML_I64,    /* int64_t: a whole number in [least, most] */
  LP_YAML_BOOL,   /* bool */
  LP_YAML_TEXT,   /* const char * */
  LP_YAML_TIME_S, /* double, seconds: "400ms", "0.1s"; a bare number is ms */
  LP_YAML_BPS,    /* double, bit/s: "10Mbit/s" */
  LP_YAML_CHOICE, /* int32_t: an index of `names` */
  LP_YAML_NODE,   /* const lp_yaml_node *: kept for the caller to read */
} lp_yaml_kind;

/* One key of a mapping, and the member of the struct that its value sets. The member keeps its value when the key is
 * absent. */
typedef struct {
  const char *key;
  size_t offset;
  double least, most; /* bounds of numbers, times and rates; both are allowed values */
  const char *const *names;
  int32_t name_count;
  lp_yaml_kind kind;
  bool required;
} lp_yaml_field;

/* A row of such a table: LP_YAML_FIELD(LP_YAML_F64, "rate", settings, rate_hz, .least = 0, .most = 1e9). */
#define LP_YAML_FIELD(of, name, type, member, ...)                                                                     \
  {.kind = (of), .key = (name), .offset = offsetof(type, member), __VA_ARGS__}

/* Fills `out` from a mapping. `what` names the mapping: "a task". */
LP_MUST_USE lp_status lp_yaml_fields(lp_yaml *yaml, const lp_yaml_node *node, const char *what,
                                     const lp_yaml_field *fields, size_t count, void *out);

/* Of the values that the fields have in `of`, in their order, after `seed`; nodes are left out. */
uint64_t lp_yaml_digest(const lp_yaml_field *fields, size_t count, const void *of, uint64_t seed);

/* ---- files that are part of a library ---------------------------------------------------------------------------- */

typedef struct {
  const char *name; /* without ".yaml" */
  const unsigned char *data;
  size_t size;
} lp_embedded;

/* Made from a folder by cmake/embed_yaml.cmake. */
typedef struct {
  const lp_embedded *entry;
  size_t count;
  const char *const *names; /* sorted; may hold names that have no file */
  size_t name_count;
} lp_embedded_table;

/* Reads the YAML file at a path ('/' in it, or ending in ".yaml" or ".yml") or else the file of that name in the table.
 * `what` is the noun for messages: "machine". */
LP_MUST_USE lp_status lp_embedded_load(const lp_embedded_table *table, const char *what, const char *name,
                                       lp_arena *arena, lp_yaml_reader *read, void *user, lp_diag *diag);

/* Text as a quoted scalar of YAML. */
void lp_yaml_print_quoted(const char *text, lp_buf *out);
