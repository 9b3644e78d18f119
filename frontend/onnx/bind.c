/* Inputs of the graph that the user gives as constants: a size from which a shape is computed, an axis, a choice of
 * branch. */
#include "base/poly.h"
#include "base/units.h"
#include "frontend/onnx/graph.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/tensor.h"

static const lp_input_binding *find_binding(const lp_importer *im, const char *name) {
  return LP_FIND(im->options->bindings, im->options->binding_count, name);
}

static bool has_input(const Onnx__GraphProto *graph, const char *name) {
  for (size_t i = 0; i < graph->n_input; i++)
    if (lp_streq(lp_text(graph->input[i]->name), name)) return true;
  return false;
}

lp_status lp_bindings_check(lp_importer *im, const Onnx__GraphProto *graph) {
  for (size_t i = 0; i < im->options->binding_count; i++) {
    const char *name = im->options->bindings[i].name;
    if (find_binding(im, name) != &im->options->bindings[i])
      return lp_error(im->diag, LP_LOC_FILE("--bind"), "input '%s' is bound twice", name);
    if (has_input(graph, name)) continue;
    lp_status status = lp_error(im->diag, LP_LOC_FILE("--bind"), "the model has no input '%s'", name);
    const char **names = LP_NEW_ARRAY(im->scratch, const char *, graph->n_input + 1);
    for (size_t k = 0; k < graph->n_input; k++)
      names[k] = lp_text(graph->input[k]->name);
    lp_note_near(im->diag, LP_LOC_FILE(im->path), name, names, graph->n_input);
    return status;
  }
  return LP_OK;
}

/* ---- inputs that select positions with logits ---- */

/* Tells whether the value is an index of a Gather, as it is or under another type or shape. */
static bool is_index(const Onnx__GraphProto *graph, const char *name, int depth) {
  static const char *const views[] = {"Cast", "Unsqueeze", "Squeeze", "Reshape", "Identity"};
  for (size_t i = 0; i < graph->n_node && depth < 4; i++) {
    const Onnx__NodeProto *node = graph->node[i];
    const char *kind = lp_text(node->op_type);
    if (node->n_input > 1 && lp_streq(kind, "Gather") && lp_streq(lp_text(node->input[1]), name)) return true;
    if (node->n_input < 1 || node->n_output != 1 || !lp_streq(lp_text(node->input[0]), name)) continue;
    for (size_t k = 0; k < LP_COUNT(views); k++)
      if (lp_streq(kind, views[k]) && is_index(graph, lp_text(node->output[0]), depth + 1)) return true;
  }
  return false;
}

/* 0 of transformers' argument means all positions; an index chooses one, which bind-inputs expects to be the last. */
const lp_input_binding *lp_binding_of(const lp_importer *im, const Onnx__GraphProto *graph, const char *name,
                                      lp_type type) {
  static const lp_input_binding defaults[][2] = {{{"num_logits_to_keep", "0"}, {"num_logits_to_keep", "-1"}},
                                                 {{"logits_to_keep", "0"}, {"logits_to_keep", "-1"}}};
  const lp_input_binding *given = find_binding(im, name);
  bool counts = (type.dtype == LP_I64 || type.dtype == LP_I32) && type.rank <= 1;
  for (size_t i = 0; i < LP_COUNT(defaults) && !given && counts && im->options->frees_lengths; i++)
    if (lp_streq(defaults[i][0].name, name)) given = &defaults[i][is_index(graph, name, 0)];
  return given;
}

/* ---- values ---- */

static lp_status read_number(lp_array *array, int64_t index, const char *text, lp_diag *diag) {
  lp_loc loc = LP_LOC_FILE("--bind");
  int64_t integer = 0;
  if (lp_streq(text, "true") || lp_streq(text, "false")) {
    lp_array_set_i64(array, index, text[0] == 't');
    return LP_OK;
  }
  if (lp_dtype_is_float(array->dtype)) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end) return lp_error(diag, loc, "'%s' is not a number", text);
    lp_array_set_f64(array, index, number);
    return LP_OK;
  }
  LP_TRY(lp_parse_i64(text, INT64_MIN, INT64_MAX, &integer, diag, loc));
  lp_array_set_i64(array, index, integer);
  return LP_OK;
}

/* "2,3" as a vector, a single number also as a scalar; more axes only where their sizes are fixed. */
static lp_status read_list(lp_importer *im, const lp_input_binding *binding, lp_type type, lp_array *out) {
  int64_t count = 0, wanted = 0;
  char *text = lp_arena_strdup(im->scratch, binding->value), *rest = NULL;
  for (const char *c = text; *c; c++)
    count += *c == ',';
  count += text[0] != '\0';
  bool fixed = lp_type_static_numel(type, &wanted);
  if ((fixed && wanted != count) || (!fixed && type.rank != 1))
    return lp_error(im->diag, LP_LOC_FILE("--bind"), "input '%s': found %" PRId64 " values for a tensor of %" PRId64,
                    binding->name, count, fixed ? wanted : 0);
  *out = (lp_array){.dtype = type.dtype, .rank = type.rank};
  for (int32_t i = 0; i < type.rank; i++)
    if (!lp_type_static_dim(type, i, &out->dim[i])) out->dim[i] = count;
  out->data = lp_arena_array(im->scratch, (size_t)count + 1, sizeof(int64_t));
  int64_t index = 0;
  for (char *at = strtok_r(text, ",", &rest); at; at = strtok_r(NULL, ",", &rest), index++)
    LP_TRY(read_number(out, index, at, im->diag));
  if (index != count) return lp_error(im->diag, LP_LOC_FILE("--bind"), "input '%s': a value is empty", binding->name);
  return LP_OK;
}

static lp_status check_file(const lp_importer *im, const lp_input_binding *binding, lp_type type,
                            const lp_array *array) {
  lp_loc loc = LP_LOC_FILE(binding->value);
  int64_t dim;
  if (array->dtype != type.dtype || array->rank != type.rank)
    return lp_error(im->diag, loc, "input '%s' is %s of rank %d, the file's tensor %s of rank %d", binding->name,
                    lp_dtype_name(type.dtype), type.rank, lp_dtype_name(array->dtype), array->rank);
  for (int32_t i = 0; i < type.rank; i++)
    if (lp_type_static_dim(type, i, &dim) && dim != array->dim[i])
      return lp_error(im->diag, loc, "axis %d of input '%s' is %" PRId64 ", the file's tensor has %" PRId64, i,
                      binding->name, dim, array->dim[i]);
  return LP_OK;
}

/* Replaces a size that is a single symbol by its value in the whole module. */
static lp_status fix_sizes(lp_importer *im, const lp_input_binding *binding, lp_type type, const lp_array *array) {
  for (int32_t i = 0; i < type.rank; i++) {
    const lp_poly *dim = type.dim[i];
    bool lone = dim->count == 1 && dim->term[0].coef == 1 && dim->term[0].symbol[0] && !dim->term[0].symbol[1];
    if (lone && !lp_module_substitute(im->module, dim->term[0].symbol[0], lp_dim_const(im->module, array->dim[i])))
      return lp_error(im->diag, LP_LOC_FILE("--bind"), "input '%s': a size overflows", binding->name);
  }
  return LP_OK;
}

lp_status lp_import_binding(lp_importer *im, const lp_input_binding *binding, lp_type type, lp_value **out) {
  lp_array array;
  const char *unused;
  if (lp_has_suffix(binding->value, ".pb")) {
    LP_TRY(lp_onnx_read_tensor(binding->value, im->scratch, &array, &unused, im->diag));
    LP_TRY(check_file(im, binding, type, &array));
  } else {
    LP_TRY(read_list(im, binding, type, &array));
  }
  LP_TRY(fix_sizes(im, binding, type, &array));
  size_t count = 1;
  for (int32_t i = 0; i < array.rank; i++)
    count *= (size_t)array.dim[i];
  size_t bytes = (count * (size_t)lp_dtype_bits(array.dtype) + 7) / 8;
  *out = lp_import_constant(im, LP_LOC_FILE(im->file), array.dtype, array.rank, array.dim, array.data, bytes);
  return LP_OK;
}
