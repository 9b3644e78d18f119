/* Documents and their nodes. */
#include "base/yaml/yaml.h"
#include "base/file.h"
#include "base/map.h"
#include "base/path.h"
#include "base/units.h"

#include <yaml.h>

/* ---- documents ---- */

static lp_status syntax_error(const char *file, const yaml_parser_t *parser, lp_diag *diag) {
  const yaml_mark_t *mark = &parser->problem_mark;
  const char *problem = parser->problem ? parser->problem : "cannot be read";
  if (parser->error == YAML_READER_ERROR)
    return lp_error(diag, LP_LOC_FILE(file), "is not YAML: %s at byte %zu", problem, parser->problem_offset);
  lp_loc loc = {.file = file, .line = (int32_t)mark->line + 1, .col = (int32_t)mark->column + 1};
  return lp_error(diag, loc, "is not YAML: %s", problem);
}

/* Refuses collections inside more collections than any file of this project has: libyaml takes a time that grows with
 * the square of the depth. Leaves errors of syntax to the parser of the document. */
static lp_status check_depth(const char *file, const void *text, size_t size, lp_diag *diag) {
  enum { MOST = 64 };
  yaml_parser_t parser;
  yaml_event_t event;
  lp_status status = LP_OK;
  if (!yaml_parser_initialize(&parser)) return lp_error(diag, LP_LOC_FILE(file), "cannot start the YAML parser");
  yaml_parser_set_input_string(&parser, text, size);
  for (int depth = 0; status == LP_OK && yaml_parser_parse(&parser, &event);) {
    bool is_end = event.type == YAML_STREAM_END_EVENT;
    depth += event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT;
    depth -= event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
    lp_loc loc = {
        .file = file, .line = (int32_t)event.start_mark.line + 1, .col = (int32_t)event.start_mark.column + 1};
    if (depth > MOST) status = lp_error(diag, loc, "more than %d lists and mappings are inside one another", MOST);
    yaml_event_delete(&event);
    if (is_end) break;
  }
  yaml_parser_delete(&parser);
  return status;
}

lp_status lp_yaml_parse(const char *file, const void *text, size_t size, lp_arena *arena, lp_yaml_reader *read,
                        void *user, lp_diag *diag) {
  yaml_document_t document;
  lp_yaml yaml = {.file = file, .arena = arena, .document = &document, .diag = diag};
  yaml_parser_t parser;
  LP_TRY(check_depth(file, text, size, diag));
  if (!yaml_parser_initialize(&parser)) return lp_error(diag, LP_LOC_FILE(file), "cannot start the YAML parser");
  yaml_parser_set_input_string(&parser, text, size);
  lp_status status = LP_OK;
  if (!yaml_parser_load(&parser, &document)) {
    status = syntax_error(file, &parser, diag);
  } else {
    const yaml_node_t *root = yaml_document_get_root_node(&document);
    if (root)
      status = read(user, &yaml, root);
    else
      status = lp_error(diag, LP_LOC_FILE(file), "holds no YAML document");
    yaml_document_delete(&document);
  }
  yaml_parser_delete(&parser);
  return status;
}

lp_status lp_yaml_load(const char *path, lp_arena *arena, lp_yaml_reader *read, void *user, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *text = NULL;
  size_t size = 0;
  LP_TRY(lp_file_read(path, &text, &size, diag));
  return lp_yaml_parse(path, text, size, arena, read, user, diag);
}

const char *lp_yaml_relative(const lp_yaml *yaml, const char *path) {
  if (*path == '/') return path;
  LP_OWNED(lp_free_at) char *folder = lp_path_dir(yaml->file), *whole = lp_path_join(folder, path);
  return lp_arena_strdup(yaml->arena, whole);
}

/* ---- nodes ---- */

lp_loc lp_yaml_loc(const lp_yaml *yaml, const lp_yaml_node *node) {
  return (lp_loc){
      .file = yaml->file, .line = (int32_t)node->start_mark.line + 1, .col = (int32_t)node->start_mark.column + 1};
}

bool lp_yaml_is_scalar(const lp_yaml_node *node) {
  return node->type == YAML_SCALAR_NODE;
}

bool lp_yaml_is_mapping(const lp_yaml_node *node) {
  return node->type == YAML_MAPPING_NODE;
}

bool lp_yaml_is_list(const lp_yaml_node *node) {
  return node->type == YAML_SEQUENCE_NODE;
}

lp_status lp_yaml_text(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, const char **out) {
  if (node->type != YAML_SCALAR_NODE) return lp_yaml_error(yaml, node, "'%s' is not a single value", key);
  const char *text = (const char *)node->data.scalar.value;
  if (strlen(text) != node->data.scalar.length || !*text)
    return lp_yaml_error(yaml, node, "'%s' is empty or holds a NUL character", key);
  *out = lp_arena_strdup(yaml->arena, text);
  return LP_OK;
}

lp_status lp_yaml_number(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, double least, double most,
                         double *out) {
  const char *text = NULL;
  LP_TRY(lp_yaml_text(yaml, node, key, &text));
  if (lp_parse_signed(text, out, NULL, LP_LOC_NONE) == LP_OK && *out >= least && *out <= most) return LP_OK;
  return lp_yaml_error(yaml, node, "'%s' is '%s', not a number from %g to %g", key, text, least, most);
}

lp_status lp_yaml_whole(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, int64_t least, int64_t *out) {
  const char *text = NULL;
  LP_TRY(lp_yaml_text(yaml, node, key, &text));
  if (lp_parse_i64(text, least, INT64_C(1) << 40, out, NULL, LP_LOC_NONE) == LP_OK) return LP_OK;
  return lp_yaml_error(yaml, node, "'%s' is '%s', not a whole number from %" PRId64 " to 2^40", key, text, least);
}

lp_status lp_yaml_bool(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, bool *out) {
  const char *text = NULL;
  LP_TRY(lp_yaml_text(yaml, node, key, &text));
  *out = lp_streq(text, "true");
  if (*out || lp_streq(text, "false")) return LP_OK;
  return lp_yaml_error(yaml, node, "'%s' is '%s', neither 'true' nor 'false'", key, text);
}

lp_status lp_yaml_choice(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, const char *const *names,
                         size_t count, int32_t *out) {
  const char *text = NULL;
  LP_TRY(lp_yaml_text(yaml, node, key, &text));
  LP_OWNED(lp_buf_free) lp_buf known = {0};
  for (size_t i = 0; i < count; i++) {
    if (lp_streq(text, names[i])) {
      *out = (int32_t)i;
      return LP_OK;
    }
    lp_buf_printf(&known, "%s%s", i > 0 ? ", " : "", names[i]);
  }
  lp_status status = lp_yaml_error(yaml, node, "'%s' is '%s', not one of %s", key, text, lp_buf_text(&known));
  lp_note_near(yaml->diag, lp_yaml_loc(yaml, node), text, names, count);
  return status;
}

/* ---- mappings ---- */

lp_status lp_yaml_each(lp_yaml *yaml, const lp_yaml_node *node, const char *what, lp_yaml_entry_reader *read,
                       void *user) {
  if (node->type != YAML_MAPPING_NODE)
    return lp_yaml_error(yaml, node, "%s%sis not a mapping of keys to values", what, *what ? " " : "");
  LP_OWNED(lp_map_free_at) lp_map *seen = lp_map_create();
  lp_status status = LP_OK;
  for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
       status == LP_OK && pair < node->data.mapping.pairs.top; pair++) {
    const yaml_node_t *key = yaml_document_get_node(yaml->document, pair->key);
    const char *name = NULL;
    status = lp_yaml_text(yaml, key, "a key", &name);
    if (status == LP_OK && lp_map_has(seen, name)) status = lp_yaml_error(yaml, key, "'%s' is given twice", name);
    if (status != LP_OK) break;
    lp_map_put(seen, name, seen);
    status = read(yaml, key, name, yaml_document_get_node(yaml->document, pair->value), user);
  }
  return status;
}

lp_status lp_yaml_unknown_key(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, const char *const *keys,
                              size_t count) {
  return lp_error_near(yaml->diag, lp_yaml_loc(yaml, node), key, keys, count, "unknown key '%s'", key);
}

/* ---- lists ---- */

lp_status lp_yaml_list(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, int32_t *count) {
  *count = 0;
  if (node->type == YAML_SEQUENCE_NODE)
    *count = (int32_t)(node->data.sequence.items.top - node->data.sequence.items.start);
  if (*count > 0) return LP_OK;
  return lp_yaml_error(yaml, node, "'%s' is not a list of at least one", key);
}

const lp_yaml_node *lp_yaml_item(const lp_yaml *yaml, const lp_yaml_node *list, int32_t index) {
  return yaml_document_get_node(yaml->document, list->data.sequence.items.start[index]);
}

lp_status lp_yaml_numbers(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, const lp_yaml_range *range,
                          double **out, int32_t *count) {
  LP_TRY(lp_yaml_list(yaml, node, key, count));
  *out = LP_NEW_ARRAY(yaml->arena, double, *count);
  for (int32_t i = 0; i < *count; i++) {
    const lp_yaml_node *item = lp_yaml_item(yaml, node, i);
    LP_TRY(lp_yaml_number(yaml, item, key, range->least, range->most, &(*out)[i]));
    if (range->ascending && i > 0 && (*out)[i] <= (*out)[i - 1])
      return lp_yaml_error(yaml, item, "'%s' does not ascend", key);
  }
  return LP_OK;
}

/* ---- printing ---- */

void lp_yaml_print_quoted(const char *text, lp_buf *out) {
  lp_buf_puts(out, "\"");
  for (; *text; text++)
    if (*text == '"' || *text == '\\')
      lp_buf_printf(out, "\\%c", *text);
    else if ((unsigned char)*text < ' ' || *text == 127)
      lp_buf_printf(out, "\\x%02X", (unsigned)*text);
    else
      lp_buf_append(out, text, 1);
  lp_buf_puts(out, "\"");
}

/* ---- files in a library ------------------------------------------------------------------------------------------ */

static bool is_path(const char *text) {
  return strchr(text, '/') || lp_has_suffix(text, ".yaml") || lp_has_suffix(text, ".yml");
}

const char *lp_yaml_named(const lp_yaml *yaml, const char *text) {
  return is_path(text) ? lp_yaml_relative(yaml, text) : text;
}

lp_status lp_embedded_load(const lp_embedded_table *table, const char *what, const char *name, lp_arena *arena,
                           lp_yaml_reader *read, void *user, lp_diag *diag) {
  if (is_path(name)) return lp_yaml_load(name, arena, read, user, diag);
  const lp_embedded *entry = LP_FIND(table->entry, table->count, name);
  if (entry) return lp_yaml_parse(entry->name, entry->data, entry->size, arena, read, user, diag);
  lp_status status = lp_error(diag, LP_LOC_NONE, "unknown %s '%s'", what, name);
  lp_note_near(diag, LP_LOC_NONE, name, table->names, table->name_count);
  LP_OWNED(lp_buf_free) lp_buf known = {0};
  for (size_t i = 0; i < table->name_count; i++)
    lp_buf_printf(&known, "%s%s", i ? ", " : "", table->names[i]);
  lp_note(diag, LP_LOC_NONE, "known: %s, or the path of a YAML file", lp_buf_text(&known));
  return status;
}
