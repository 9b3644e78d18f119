/* YAML files that are part of a library, so that an installed program needs none. */
#include "base/yaml/yaml.h"

#include <string.h>

static bool is_path(const char *text) {
  return strchr(text, '/') || lp_has_suffix(text, ".yaml") || lp_has_suffix(text, ".yml");
}

const char *lp_yaml_named(const lp_yaml *yaml, const char *text) {
  return is_path(text) ? lp_yaml_relative(yaml, text) : text;
}

static const lp_embedded *find(const lp_embedded_table *table, const char *name) {
  for (size_t i = 0; i < table->count; i++)
    if (lp_streq(table->entry[i].name, name)) return &table->entry[i];
  return NULL;
}

lp_status lp_embedded_load(const lp_embedded_table *table, const char *what, const char *name, lp_arena *arena,
                           lp_yaml_reader *read, void *user, lp_diag *diag) {
  if (is_path(name)) return lp_yaml_load(name, arena, read, user, diag);
  const lp_embedded *entry = find(table, name);
  if (entry) return lp_yaml_parse(entry->name, entry->data, entry->size, arena, read, user, diag);
  lp_status status = lp_error(diag, LP_LOC_NONE, "unknown %s '%s'", what, name);
  lp_note_near(diag, LP_LOC_NONE, name, table->names, table->name_count);
  lp_buf known = {0};
  for (size_t i = 0; i < table->name_count; i++)
    lp_buf_printf(&known, "%s%s", i ? ", " : "", table->names[i]);
  lp_note(diag, LP_LOC_NONE, "known: %s, or the path of a YAML file", lp_buf_text(&known));
  lp_buf_free(&known);
  return status;
}
