/* The entry points: import a file into a module, count its operators, list its inputs. */
#include "base/map.h"
#include "base/path.h"
#include "frontend/onnx/graph.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/join.h"
#include "frontend/onnx/lengths.h"
#include "frontend/onnx/node.h"

/* Hands the mapped files to the module, because its weights lie in them and no name must be resolved twice. */
static void hand_over(lp_importer *im, const char *name, lp_mapping *mapping) {
  if (!mapping->data || lp_map_has(im->module->sources, name)) return;
  lp_mapping *kept = LP_NEW(im->module->arena, lp_mapping);
  *kept = *mapping;
  *mapping = (lp_mapping){0};
  lp_map_put(im->module->sources, name, kept);
}

static void hand_over_all(lp_importer *im, lp_mapping *mapping) {
  hand_over(im, im->file, mapping);
  for (size_t i = 0; i < lp_map_count(im->external); i++) {
    lp_external *external = lp_map_value_at(im->external, i);
    hand_over(im, lp_map_key_at(im->external, i), &external->mapping);
  }
}

/* "model.onnx" -> "model" */
static const char *stem(lp_arena *arena, const char *file) {
  size_t length = lp_has_suffix(file, ".onnx") ? strlen(file) - strlen(".onnx") : strlen(file);
  return lp_arena_strndup(arena, file, length);
}

static lp_module *create_module(lp_importer *im) {
  lp_module *module = lp_module_create(stem(im->scratch, im->file));
  char *directory = lp_path_dir(im->path);
  module->directory = lp_arena_strdup(module->arena, directory);
  free(directory);
  im->file = lp_arena_strdup(module->arena, im->file);
  return module;
}

/* The reading of the sizes that the inputs state, and the names and lengths that were found. */
typedef struct {
  bool ignores_names, frees_lengths;
  bool has_names, has_lengths; /* found: names of dimensions; lengths stated as numbers */
} size_reading;

static void prepare(lp_importer *im, const ProtobufCMessage *message, const size_reading *reading) {
  im->model = (const Onnx__ModelProto *)message;
  im->unpacked = lp_arena_bytes(im->scratch);
  im->functions = lp_map_create();
  im->dims = lp_map_create();
  im->vague = lp_map_create();
  im->without_labels = reading->ignores_names;
  im->frees_lengths = reading->frees_lengths;
}

/* Imports another file as function `func` of the decoder's module. */
static lp_status import_part(lp_importer *decoder, const char *path, const char *func, size_reading *reading) {
  lp_importer im;
  lp_mapping mapping = {0};
  LP_TRY(lp_importer_open(&im, path, decoder->diag, &mapping));
  ProtobufCMessage *message = NULL;
  lp_status status = lp_importer_unpack(&im, &onnx__model_proto__descriptor, LP_MESSAGE_MODEL, &message);
  if (status == LP_OK) {
    prepare(&im, message, reading);
    im.module = decoder->module;
    im.func = func;
    im.file = lp_arena_strdup(im.module->arena, im.file);
    status = lp_import_model(&im);
    reading->has_names |= im.labelled;
  }
  if (status == LP_OK) hand_over_all(&im, &mapping);
  lp_importer_close(&im, &mapping);
  return status;
}

/* Imports the embedding if the decoder needs one and its file is there; else *found is false. */
static lp_status import_embedding(lp_importer *decoder, size_reading *reading, bool *found) {
  char *path = lp_embedding_is_needed(decoder) ? lp_onnx_find_embedding(decoder->path) : NULL;
  lp_status status = path ? import_part(decoder, path, LP_EMBEDDING_FUNC, reading) : LP_OK;
  *found = path;
  free(path);
  return status;
}

static lp_status import_all(lp_importer *im, size_reading *reading) {
  const char *encoder = im->options->encoder;
  bool embeds;
  if (encoder) LP_TRY(lp_encoder_check(im, encoder));
  if (encoder) LP_TRY(import_part(im, encoder, LP_ENCODER_FUNC, reading));
  LP_TRY(import_embedding(im, reading, &embeds));
  lp_status status = lp_import_model(im);
  reading->has_names |= im->labelled;
  if (status == LP_OK && embeds) status = lp_embedding_join(im->module, im->diag);
  if (status == LP_OK && encoder) status = lp_encoder_join(im->module, im->diag);
  return status;
}

static lp_status import_once(const char *path, const lp_import_options *options, size_reading *reading, lp_module **out,
                             lp_diag *diag) {
  lp_importer im;
  lp_mapping mapping = {0};
  LP_TRY(lp_importer_open(&im, path, diag, &mapping));
  ProtobufCMessage *message = NULL;
  lp_status status = lp_importer_unpack(&im, &onnx__model_proto__descriptor, LP_MESSAGE_MODEL, &message);
  if (status == LP_OK) {
    prepare(&im, message, reading);
    if (options) im.options = options;
    im.module = create_module(&im);
    im.func = "main";
    status = import_all(&im, reading);
    reading->has_lengths = lp_has_constant_length(im.model->graph);
    if (status == LP_OK) {
      hand_over_all(&im, &mapping);
      *out = im.module;
    } else {
      lp_module_free(im.module);
    }
  }
  lp_importer_close(&im, &mapping);
  return status;
}

/* The first error of a list that has one. */
static const lp_diag_entry *first_error(const lp_diag *diag) {
  size_t i = 0;
  while (lp_diag_get(diag, i)->severity != LP_ERROR)
    i++;
  return lp_diag_get(diag, i);
}

/* Imports with the names of dimensions as symbols. Names are labels of the exporter: where the graph contradicts them,
 * the graph counts. */
static lp_status import_named(const char *path, const lp_import_options *options, size_reading *reading,
                              lp_module **out, lp_diag *diag) {
  LP_OWNED(lp_diag_free_at) lp_diag *with = lp_diag_create(), *without = lp_diag_create();
  size_reading again = {.ignores_names = true, .frees_lengths = reading->frees_lengths};
  lp_status status = import_once(path, options, reading, out, with);
  bool better = status == LP_FAILED && reading->has_names && import_once(path, options, &again, out, without) == LP_OK;
  if (better) {
    const lp_diag_entry *why = first_error(with);
    lp_note(diag, why->loc, "dimension names contradict the graph and are ignored: %s", why->text);
  }
  lp_diag_append(diag, better ? without : with);
  return better ? LP_OK : status;
}

/* The module with lengths as symbols if the graph computes any length; else NULL. */
static lp_module *import_freely(const char *path, const lp_import_options *options) {
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  lp_module *module = NULL;
  size_reading reading = {.frees_lengths = true};
  if (import_named(path, options, &reading, &module, quiet) == LP_OK && !lp_lengths_are_free(module)) {
    lp_module_free(module);
    module = NULL;
  }
  return module;
}

lp_status lp_onnx_import(const char *path, const lp_import_options *options, lp_module **out, lp_diag *diag) {
  size_reading reading = {0};
  LP_TRY(import_named(path, options, &reading, out, diag));
  lp_module *freed = reading.has_lengths && options && options->frees_lengths ? import_freely(path, options) : NULL;
  if (!freed) return LP_OK;
  lp_note(diag, LP_LOC_FILE(path),
          "the constant lengths of its inputs are ignored, because the graph can compute any length");
  lp_module_free(*out);
  *out = freed;
  return LP_OK;
}

lp_status lp_onnx_census(const char *path, const lp_import_options *options, lp_arena *arena, lp_operator_count **out,
                         size_t *count, lp_diag *diag) {
  lp_importer im;
  lp_mapping mapping = {0};
  LP_TRY(lp_importer_open(&im, path, diag, &mapping));
  ProtobufCMessage *message = NULL;
  lp_status status = lp_importer_unpack(&im, &onnx__model_proto__descriptor, LP_MESSAGE_MODEL, &message);
  if (status == LP_OK) {
    im.model = (const Onnx__ModelProto *)message;
    if (options) im.options = options;
    im.module = create_module(&im);
    im.functions = lp_map_create();
    status = lp_read_opset(&im, im.model->graph);
    if (status == LP_OK) status = lp_functions_index(&im);
    if (status == LP_OK) status = lp_census_take(&im, arena, out, count);
    lp_module_free(im.module);
  }
  lp_importer_close(&im, &mapping);
  return status;
}

lp_status lp_onnx_input_names(const char *path, lp_arena *arena, const char *const **names, size_t *count,
                              lp_diag *diag) {
  lp_importer im;
  lp_mapping mapping = {0};
  LP_TRY(lp_importer_open(&im, path, diag, &mapping));
  ProtobufCMessage *message = NULL;
  lp_status status = lp_importer_unpack(&im, &onnx__model_proto__descriptor, LP_MESSAGE_MODEL, &message);
  *count = 0;
  const Onnx__GraphProto *graph = status == LP_OK ? ((const Onnx__ModelProto *)message)->graph : NULL;
  if (graph) {
    lp_map *initializers = lp_map_create();
    const char **found = LP_NEW_ARRAY(arena, const char *, graph->n_input + 1);
    for (size_t i = 0; i < graph->n_initializer; i++)
      lp_map_put(initializers, lp_text(graph->initializer[i]->name), graph->initializer[i]);
    for (size_t i = 0; i < graph->n_input; i++)
      if (!lp_map_has(initializers, lp_text(graph->input[i]->name)))
        found[(*count)++] = lp_arena_strdup(arena, lp_text(graph->input[i]->name));
    lp_map_free(initializers);
    *names = found;
  }
  lp_importer_close(&im, &mapping);
  return status;
}
