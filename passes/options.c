/* The options of a pass in a pipeline: `pass{name=value,name=value}`. */
#include "passes/options.h"

/* Steps over one "name=value" of `text`; false at the end. */
static bool option_next(const char **text, const char **name, size_t *name_size, const char **value,
                        size_t *value_size) {
  const char *at = *text + strspn(*text, ", ");
  if (!*at) return false;
  const char *end = at + strcspn(at, ",");
  const char *equals = memchr(at, '=', (size_t)(end - at));
  *name = at;
  *name_size = (size_t)((equals ? equals : end) - at);
  *value = equals ? equals + 1 : "true";
  *value_size = equals ? (size_t)(end - equals - 1) : 4;
  *text = end;
  return true;
}

const char *lp_pass_option(const lp_pass_context *context, const char *wanted) {
  const char *text = context->options, *name, *value, *found = NULL;
  size_t name_size, value_size;
  while (text && option_next(&text, &name, &name_size, &value, &value_size))
    if (strlen(wanted) == name_size && strncmp(name, wanted, name_size) == 0)
      found = lp_arena_strndup(context->scratch, value, value_size);
  return found;
}

/* Tells whether `name` is one of the words of `words`. */
static bool has_word(const char *words, const char *name, size_t size) {
  for (const char *at = words; at && *at;) {
    size_t length = strcspn(at, " ");
    if (length == size && strncmp(at, name, size) == 0) return true;
    at += length + strspn(at + length, " ");
  }
  return false;
}

lp_status lp_pass_options_check(const lp_pass *pass, const char *text, lp_diag *diag) {
  const char *name, *value;
  size_t name_size, value_size;
  while (text && option_next(&text, &name, &name_size, &value, &value_size)) {
    if (has_word(pass->options, name, name_size)) continue;
    lp_status status =
        lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "pass '%s' has no option '%.*s'", pass->name, (int)name_size, name);
    if (pass->options) lp_note(diag, LP_LOC_NONE, "its options: %s", pass->options);
    return status;
  }
  return LP_OK;
}
