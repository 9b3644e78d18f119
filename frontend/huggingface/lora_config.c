/* Reads adapter_config.json: see lora.h. */
#include "frontend/huggingface/lora.h"

#include <math.h>

/* Keys that are read, and keys that do not affect the product of a trained adapter. */
static const char *const known_keys[] = {
    "alpha_pattern",       "auto_mapping",      "base_model_name_or_path", "bias",
    "ensure_weight_tying", "eva_config",        "exclude_modules",         "fan_in_fan_out",
    "inference_mode",      "init_lora_weights", "layers_pattern",          "layers_to_transform",
    "lora_alpha",          "lora_dropout",      "megatron_core",           "modules_to_save",
    "peft_type",           "peft_version",      "qalora_group_size",       "r",
    "rank_pattern",        "revision",          "runtime_config",          "target_modules",
    "task_type",           "use_rslora"};

static bool is_off(const lp_json *at) {
  if (!lp_json_is_given(at) || (lp_json_is(at, LP_JSON_BOOL) && !lp_json_is_true(at))) return true;
  return (lp_json_is(at, LP_JSON_ARRAY) || lp_json_is(at, LP_JSON_OBJECT)) && lp_json_count(at) == 0;
}

static lp_status check_keys(const lp_json *root, lp_diag *diag) {
  for (size_t i = 0; i < lp_json_count(root); i++) {
    lp_json at = lp_json_entry(root, i);
    bool known = is_off(&at);
    for (size_t k = 0; k < LP_COUNT(known_keys) && !known; k++)
      known = lp_streq(at.key, known_keys[k]);
    if (!known) return lp_json_error(&at, diag, "this key is not supported, and it may change what the adapter adds");
  }
  return LP_OK;
}

/* Others than these begin with other weights of the base model than its checkpoint has: PiSSA, OLoRA, CorDA, LoftQ. */
static lp_status check_start(const lp_json *root, lp_diag *diag) {
  static const char *const plain[] = {"gaussian", "eva"};
  lp_json at = lp_json_member(root, "init_lora_weights");
  bool known = !lp_json_is_given(&at) || lp_json_is(&at, LP_JSON_BOOL);
  for (size_t i = 0; i < LP_COUNT(plain); i++)
    known = known || lp_json_equals(&at, plain[i]);
  return known ? LP_OK
               : lp_json_error(&at, diag, "adapters that begin with '%.40s' change the base model's weights",
                               lp_json_text_or(&at, "a value of another kind"));
}

static lp_status check(const lp_json *root, lp_diag *diag) {
  LP_TRY(lp_json_object(root, diag));
  lp_json type = lp_json_member(root, "peft_type"), dora = lp_json_member(root, "use_dora");
  lp_json bias = lp_json_member(root, "bias");
  if (!lp_json_equals(&type, "LORA"))
    return lp_json_error(&type, diag, "adapters of type '%.40s' are not supported: LORA", lp_json_text_or(&type, ""));
  if (lp_json_is_true(&dora)) return lp_json_error(&dora, diag, "DoRA, which scales whole weights, is not supported");
  if (lp_json_is_given(&bias) && !lp_json_equals(&bias, "none"))
    return lp_json_error(&bias, diag, "trained biases are not supported");
  LP_TRY(check_keys(root, diag));
  return check_start(root, diag);
}

lp_status lp_lora_config_load(const char *path, lp_lora_config *out, lp_diag *diag) {
  *out = (lp_lora_config){.path = path};
  LP_TRY(lp_json_load(path, LP_JSON_REFUSE_NUL, &out->document, diag));
  out->root = lp_json_root(path, out->document);
  return check(&out->root, diag);
}

void lp_lora_config_release(lp_lora_config *config) {
  lp_json_free(config->document);
  *config = (lp_lora_config){0};
}

bool lp_lora_names(const char *module, const char *name) {
  size_t all = strlen(module), size = strlen(name);
  if (size == 0 || size > all || !lp_streq(module + all - size, name)) return false;
  return size == all || module[all - size - 1] == '.';
}

/* The value of the first key of the object `patterns` that names the module, else of the key `otherwise`. Keys are
 * regular expressions, of which plain names are supported; their dots stand for themselves. */
static lp_status value_for(const lp_lora_config *c, const char *patterns, const char *otherwise, const char *module,
                           double *out, lp_diag *diag) {
  lp_json object = lp_json_member(&c->root, patterns), at = lp_json_member(&c->root, otherwise);
  bool found = false;
  for (size_t i = 0; i < lp_json_count(&object); i++) {
    lp_json entry = lp_json_entry(&object, i);
    if (strpbrk(entry.key, "\\[](){}*+?|^$"))
      return lp_json_error(&entry, diag, "names that are regular expressions are not supported");
    if (found || !lp_lora_names(module, entry.key)) continue;
    LP_TRY(lp_json_number(&entry, -1e30, 1e30, out, diag));
    found = true;
  }
  return found ? LP_OK : lp_json_number(&at, -1e30, 1e30, out, diag);
}

lp_status lp_lora_scale(const lp_lora_config *config, const char *module, int64_t rank, double *out, lp_diag *diag) {
  double said = 0, alpha = 0;
  LP_TRY(value_for(config, "rank_pattern", "r", module, &said, diag));
  LP_TRY(value_for(config, "alpha_pattern", "lora_alpha", module, &alpha, diag));
  if (said != (double)rank || rank < 1)
    return lp_json_error(&config->root, diag, "the tensors of '%s' are of rank %" PRId64 ", the configuration says %g",
                         module, rank, said);
  *out = lp_json_is_true(LP_MEMBER(&config->root, "use_rslora")) ? alpha / sqrt(said) : alpha / said;
  return LP_OK;
}

/* Tells whether an item of the list names the module. */
static bool lists(const lp_json *list, const char *module) {
  LP_FOR_ITEMS(at, list)
    if (lp_lora_names(module, lp_json_text_or(&at, ""))) return true;
  return false;
}

static bool is_number(const char *text, size_t size) {
  return size > 0 && strspn(text, "0123456789") >= size;
}

/* The number of the module's layer: its first part that is a number, after one that is named `pattern` (NULL: after
 * any) and before another. Returns -1 when there is none. */
static int64_t layer_of(const char *module, const char *pattern) {
  const char *before = module;
  for (const char *dot; (dot = strchr(before, '.')); before = dot + 1) {
    size_t size = strcspn(dot + 1, ".");
    bool named = pattern ? strlen(pattern) == (size_t)(dot - before) && strncmp(before, pattern, strlen(pattern)) == 0
                         : before > module;
    if (named && dot[1 + size] == '.' && is_number(dot + 1, size)) return strtoll(dot + 1, NULL, 10);
  }
  return -1;
}

/* The layer's number by layers_pattern: a name, or a list of names. */
static int64_t layer_by_patterns(const lp_json *patterns, const char *module) {
  bool list = lp_json_is(patterns, LP_JSON_ARRAY);
  if (is_off(patterns)) return layer_of(module, NULL);
  int64_t layer = list ? -1 : layer_of(module, lp_json_text_or(patterns, ""));
  for (size_t i = 0; list && i < lp_json_count(patterns) && layer < 0; i++)
    layer = layer_of(module, lp_json_text_or(LP_ITEM(patterns, i), ""));
  return layer;
}

/* Tells whether layers_to_transform, one number or a list, has the module's layer. */
static bool is_in_layers(const lp_lora_config *config, const char *module) {
  lp_json layers = lp_json_member(&config->root, "layers_to_transform");
  if (is_off(&layers)) return true;
  int64_t layer = layer_by_patterns(LP_MEMBER(&config->root, "layers_pattern"), module);
  if (lp_json_is(&layers, LP_JSON_INTEGER)) return layer >= 0 && layer == layers.value->integer;
  LP_FOR_ITEMS(at, &layers)
    if (layer >= 0 && lp_json_is(&at, LP_JSON_INTEGER) && at.value->integer == layer) return true;
  return false;
}

bool lp_lora_targets(const lp_lora_config *config, const char *module) {
  lp_json list = lp_json_member(&config->root, "target_modules");
  lp_json excluded = lp_json_member(&config->root, "exclude_modules");
  if (lp_json_is(&excluded, LP_JSON_ARRAY) && lists(&excluded, module)) return false;
  return !lp_json_is(&list, LP_JSON_ARRAY) || (lists(&list, module) && is_in_layers(config, module));
}
