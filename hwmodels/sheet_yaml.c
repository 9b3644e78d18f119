/* Sheets from YAML: one mapping of texts and of figures; a figure is a value or { value, source }. */
#include "hwmodels/hwmodels_internal.h"

#include <string.h>
#include <yaml.h>

/* ---- documents ---- */

lp_loc lp_yaml_loc(const lp_yaml *yaml, const yaml_node_t *node) {
  return (lp_loc){
      .file = yaml->file, .line = (int32_t)node->start_mark.line + 1, .col = (int32_t)node->start_mark.column + 1};
}

lp_status lp_yaml_text(const lp_yaml *yaml, const yaml_node_t *node, const char *key, const char **out) {
  if (node->type != YAML_SCALAR_NODE)
    return lp_error(yaml->diag, lp_yaml_loc(yaml, node), "'%s' is not a single value", key);
  const char *text = (const char *)node->data.scalar.value;
  if (strlen(text) != node->data.scalar.length || !*text)
    return lp_error(yaml->diag, lp_yaml_loc(yaml, node), "'%s' is empty or holds a NUL character", key);
  *out = lp_arena_strdup(yaml->arena, text);
  return LP_OK;
}

yaml_node_t *lp_yaml_node(const lp_yaml *yaml, int index) {
  return yaml_document_get_node(yaml->document, index);
}

lp_status lp_yaml_unknown_key(const lp_yaml *yaml, const yaml_node_t *node, const char *key, const char *const *keys,
                              size_t count) {
  lp_status status = lp_error(yaml->diag, lp_yaml_loc(yaml, node), "unknown key '%s'", key);
  lp_note_near(yaml->diag, lp_yaml_loc(yaml, node), key, keys, count);
  return status;
}

/* ---- sheets ---- */

typedef struct {
  lp_sheet *sheet;
  lp_yaml yaml;
  lp_diag *diag;
  bool given[LP_HW_FIGURE_COUNT], has_section;
} reader;

static lp_loc loc_of(const reader *r, const yaml_node_t *node) {
  return lp_yaml_loc(&r->yaml, node);
}

static lp_status read_text(reader *r, const yaml_node_t *node, const char *key, const char **out) {
  return lp_yaml_text(&r->yaml, node, key, out);
}

static yaml_node_t *node_at(reader *r, int index) {
  return lp_yaml_node(&r->yaml, index);
}

static lp_status read_figure(reader *r, const yaml_node_t *node, size_t index) {
  static const char *const keys[] = {"value", "source"};
  const char *figure = r->sheet->form->info[index].key, *value = NULL;
  if (node->type == YAML_SCALAR_NODE) {
    LP_TRY(read_text(r, node, figure, &value));
    return lp_sheet_set(r->sheet, index, value, r->diag, loc_of(r, node));
  }
  if (node->type != YAML_MAPPING_NODE)
    return lp_error(r->diag, loc_of(r, node), "'%s' is neither a value nor { value, source }", figure);
  for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
    const yaml_node_t *key_node = node_at(r, pair->key), *value_node = node_at(r, pair->value);
    const char *key = NULL, *text = NULL;
    LP_TRY(read_text(r, key_node, "a key", &key));
    bool is_value = lp_streq(key, "value");
    if (!is_value && !lp_streq(key, "source"))
      return lp_yaml_unknown_key(&r->yaml, key_node, key, keys, LP_COUNT(keys));
    if (is_value ? value != NULL : r->sheet->source[index] != NULL)
      return lp_error(r->diag, loc_of(r, key_node), "'%s' is given twice", key);
    LP_TRY(read_text(r, value_node, key, &text));
    if (!is_value) {
      r->sheet->source[index] = text;
      continue;
    }
    value = text;
    LP_TRY(lp_sheet_set(r->sheet, index, value, r->diag, loc_of(r, value_node)));
  }
  if (!value) return lp_error(r->diag, loc_of(r, node), "'%s' lacks 'value'", figure);
  return LP_OK;
}

static lp_status read_kind(reader *r, const yaml_node_t *node) {
  static const char *const kinds[] = {"gpu", "cpu"};
  LP_TRY(read_text(r, node, "kind", &r->sheet->kind));
  for (size_t i = 0; i < LP_COUNT(kinds); i++)
    if (lp_streq(r->sheet->kind, kinds[i])) return LP_OK;
  return lp_error(r->diag, loc_of(r, node), "'kind' is '%s', neither 'gpu' nor 'cpu'", r->sheet->kind);
}

static lp_status read_entry(reader *r, const yaml_node_t *key_node, const yaml_node_t *value) {
  lp_sheet *sheet = r->sheet;
  const char *key = NULL;
  LP_TRY(read_text(r, key_node, "a key", &key));
  if (sheet->form->section && lp_streq(key, sheet->form->section)) {
    if (r->has_section) return lp_error(r->diag, loc_of(r, key_node), "'%s' is given twice", key);
    r->has_section = true;
    return sheet->form->read_section(sheet->user, &r->yaml, value);
  }
  const char **text = lp_streq(key, sheet->form->what)                 ? &sheet->name
                      : lp_streq(key, "title")                         ? &sheet->title
                      : lp_streq(key, "kind") && sheet->form->has_kind ? &sheet->kind
                                                                       : NULL;
  size_t index = lp_sheet_find(sheet->form, key);
  if (!text && index == sheet->form->count) {
    const char *keys[LP_HW_FIGURE_COUNT + 4] = {sheet->form->what, "title", "kind"};
    size_t count = sheet->form->has_kind ? 3 : 2;
    if (sheet->form->section) keys[count++] = sheet->form->section;
    for (size_t i = 0; i < sheet->form->count; i++)
      keys[count++] = sheet->form->info[i].key;
    return lp_yaml_unknown_key(&r->yaml, key_node, key, keys, count);
  }
  if (text ? *text != NULL : r->given[index]) return lp_error(r->diag, loc_of(r, key_node), "'%s' is given twice", key);
  if (text == &sheet->kind) return read_kind(r, value);
  if (text) return read_text(r, value, key, text);
  r->given[index] = true;
  return read_figure(r, value, index);
}

static lp_status read_root(reader *r) {
  lp_sheet *sheet = r->sheet;
  const yaml_node_t *root = yaml_document_get_root_node(r->yaml.document);
  if (!root) return lp_error(r->diag, LP_LOC_FILE(r->yaml.file), "holds no YAML document");
  if (root->type != YAML_MAPPING_NODE) return lp_error(r->diag, loc_of(r, root), "is not a mapping of keys to values");
  for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top; pair++)
    LP_TRY(read_entry(r, node_at(r, pair->key), node_at(r, pair->value)));
  if (!sheet->name) return lp_error(r->diag, loc_of(r, root), "lacks '%s', the name", sheet->form->what);
  if (sheet->form->has_kind && !sheet->kind) return lp_error(r->diag, loc_of(r, root), "lacks 'kind': gpu or cpu");
  if (!sheet->title) sheet->title = sheet->name;
  return lp_sheet_complete(sheet, r->given, r->diag, loc_of(r, root));
}

static lp_status syntax_error(const reader *r, const yaml_parser_t *parser) {
  const yaml_mark_t *mark = &parser->problem_mark;
  const char *problem = parser->problem ? parser->problem : "cannot be read";
  if (parser->error == YAML_READER_ERROR)
    return lp_error(r->diag, LP_LOC_FILE(r->yaml.file), "is not YAML: %s at byte %zu", problem, parser->problem_offset);
  lp_loc loc = {.file = r->yaml.file, .line = (int32_t)mark->line + 1, .col = (int32_t)mark->column + 1};
  return lp_error(r->diag, loc, "is not YAML: %s", problem);
}

lp_status lp_sheet_read_yaml(lp_sheet *sheet, const char *file, const void *text, size_t size, lp_diag *diag) {
  yaml_document_t document;
  reader r = {
      .sheet = sheet, .diag = diag, .yaml = {.file = file, .arena = sheet->arena, .document = &document, .diag = diag}};
  yaml_parser_t parser;
  if (!yaml_parser_initialize(&parser)) return lp_error(diag, LP_LOC_FILE(file), "cannot start the YAML parser");
  yaml_parser_set_input_string(&parser, text, size);
  lp_status status = LP_OK;
  if (!yaml_parser_load(&parser, &document)) {
    status = syntax_error(&r, &parser);
  } else {
    status = read_root(&r);
    yaml_document_delete(&document);
  }
  yaml_parser_delete(&parser);
  return status;
}
