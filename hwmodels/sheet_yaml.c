/* Sheets from YAML: one mapping of texts and of figures; a figure is a value or { value, source }. */
#include "base/path.h"
#include "hwmodels/hwmodels_internal.h"

typedef struct {
  lp_sheet *sheet;
  bool given[LP_HW_FIGURE_COUNT];
} reader;

typedef struct {
  lp_sheet *sheet;
  size_t index;
  bool has_value;
} figure_reader;

static lp_status read_figure_entry(lp_yaml *yaml, const lp_yaml_node *key, const char *name, const lp_yaml_node *value,
                                   void *user) {
  static const char *const keys[] = {"value", "source"};
  figure_reader *r = user;
  const char *text = NULL;
  if (lp_streq(name, "source")) return lp_yaml_text(yaml, value, name, &r->sheet->source[r->index]);
  if (!lp_streq(name, "value")) return lp_yaml_unknown_key(yaml, key, name, keys, LP_COUNT(keys));
  LP_TRY(lp_yaml_text(yaml, value, name, &text));
  r->has_value = true;
  return lp_sheet_set(r->sheet, r->index, text, yaml->diag, lp_yaml_loc(yaml, value));
}

static lp_status read_figure(reader *r, lp_yaml *yaml, const lp_yaml_node *node, size_t index) {
  const char *figure = r->sheet->form->info[index].key, *value = NULL;
  lp_loc loc = lp_yaml_loc(yaml, node);
  if (lp_yaml_is_scalar(node)) {
    LP_TRY(lp_yaml_text(yaml, node, figure, &value));
    return lp_sheet_set(r->sheet, index, value, yaml->diag, loc);
  }
  if (!lp_yaml_is_mapping(node))
    return lp_error(yaml->diag, loc, "'%s' is neither a value nor { value, source }", figure);
  figure_reader parts = {r->sheet, index, false};
  LP_TRY(lp_yaml_each(yaml, node, figure, read_figure_entry, &parts));
  if (!parts.has_value) return lp_error(yaml->diag, loc, "'%s' lacks 'value'", figure);
  return LP_OK;
}

static lp_status read_kind(reader *r, const lp_yaml *yaml, const lp_yaml_node *node) {
  static const char *const kinds[] = {"gpu", "cpu"};
  LP_TRY(lp_yaml_text(yaml, node, "kind", &r->sheet->kind));
  for (size_t i = 0; i < LP_COUNT(kinds); i++)
    if (lp_streq(r->sheet->kind, kinds[i])) return LP_OK;
  return lp_yaml_error(yaml, node, "'kind' is '%s', neither 'gpu' nor 'cpu'", r->sheet->kind);
}

static lp_status unknown_key(const lp_sheet_form *form, const lp_yaml *yaml, const lp_yaml_node *node,
                             const char *key) {
  const char *keys[LP_HW_FIGURE_COUNT + 3 + LP_MOST_SECTIONS] = {form->what, "title", "kind"};
  size_t count = form->has_kind ? 3 : 2;
  for (size_t i = 0; i < LP_MOST_SECTIONS; i++)
    if (form->section[i].key) keys[count++] = form->section[i].key;
  for (size_t i = 0; i < form->count; i++)
    keys[count++] = form->info[i].key;
  return lp_yaml_unknown_key(yaml, node, key, keys, count);
}

static lp_status read_entry(lp_yaml *yaml, const lp_yaml_node *key_node, const char *key, const lp_yaml_node *value,
                            void *user) {
  reader *r = user;
  lp_sheet *sheet = r->sheet;
  const lp_sheet_form *form = sheet->form;
  for (size_t i = 0; i < LP_MOST_SECTIONS; i++)
    if (lp_streq(key, form->section[i].key)) return form->section[i].read(sheet->user, yaml, value);
  if (lp_streq(key, form->what)) return lp_yaml_text(yaml, value, key, &sheet->name);
  if (lp_streq(key, "title")) return lp_yaml_text(yaml, value, key, &sheet->title);
  if (lp_streq(key, "kind") && form->has_kind) return read_kind(r, yaml, value);
  size_t index = lp_sheet_find(form, key);
  if (index == form->count) return unknown_key(form, yaml, key_node, key);
  r->given[index] = true;
  return read_figure(r, yaml, value, index);
}

static lp_status read_root(void *user, lp_yaml *yaml, const lp_yaml_node *root) {
  lp_sheet *sheet = user;
  reader r = {.sheet = sheet};
  LP_TRY(lp_yaml_each(yaml, root, "", read_entry, &r));
  lp_loc loc = lp_yaml_loc(yaml, root);
  if (!sheet->name) return lp_error(yaml->diag, loc, "lacks '%s', the name", sheet->form->what);
  if (sheet->form->has_kind && !sheet->kind) return lp_error(yaml->diag, loc, "lacks 'kind': gpu or cpu");
  if (!sheet->title) sheet->title = sheet->name;
  return lp_sheet_complete(sheet, r.given, yaml->diag, loc);
}

lp_status lp_sheet_read_yaml(lp_sheet *sheet, const char *file, const void *text, size_t size, lp_diag *diag) {
  return lp_yaml_parse(file, text, size, sheet->arena, read_root, sheet, diag);
}

lp_status lp_sheet_load(lp_sheet *sheet, const char *text, lp_diag *diag) {
  if (strchr(text, ',') && lp_path_exists(text)) /* a path with a comma in it */
    return lp_yaml_load(text, sheet->arena, read_root, sheet, diag);
  const char *comma = strchr(text, ',');
  char *name = lp_arena_strndup(sheet->arena, text, comma ? (size_t)(comma - text) : strlen(text));
  LP_TRY(lp_embedded_load(sheet->form->embedded, sheet->form->what, name, sheet->arena, read_root, sheet, diag));
  bool given[LP_HW_FIGURE_COUNT] = {0};
  return comma ? lp_sheet_override(sheet, comma + 1, given, diag, LP_LOC_FILE(text)) : LP_OK;
}
