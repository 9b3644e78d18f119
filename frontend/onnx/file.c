/* The entry points: maps a file, unpacks its skeleton and hands it to the importer. */
#include "base/file.h"
#include "base/map.h"
#include "base/path.h"
#include "frontend/onnx/onnx.h"

#include <stdlib.h>
#include <string.h>

/* protobuf-c allocates from the import's arena, so that whatever it drops on the way dies with the import. */
static void *arena_alloc(void *arena, size_t size) {
  return lp_arena_alloc(arena, size);
}

static void arena_free(void *arena, void *memory) {
  (void)arena;
  (void)memory;
}

static lp_status unpack(lp_importer *im, const ProtobufCMessageDescriptor *descriptor, lp_message kind,
                        ProtobufCMessage **out) {
  lp_buf skeleton = {0};
  lp_loc loc = LP_LOC_FILE(im->path);
  lp_status status = lp_onnx_skeleton(im->data, im->size, kind, &skeleton, im->diag, loc);
  if (status == LP_OK) {
    ProtobufCAllocator allocator = {arena_alloc, arena_free, im->scratch};
    *out = protobuf_c_message_unpack(descriptor, &allocator, skeleton.size, (const uint8_t *)lp_buf_text(&skeleton));
    if (!*out) status = lp_error(im->diag, loc, "not an ONNX model: its protobuf fields are not those of onnx.proto");
  }
  lp_buf_free(&skeleton);
  return status;
}

static lp_status open_importer(lp_importer *im, const char *path, lp_diag *diag, lp_mapping *mapping) {
  static const lp_import_options usual = {0};
  LP_TRY(lp_file_map(path, mapping, diag));
  *im = (lp_importer){.diag = diag,
                      .options = &usual,
                      .scratch = lp_arena_create(),
                      .path = path,
                      .file = lp_path_base(path),
                      .data = mapping->data,
                      .size = mapping->size,
                      .external = lp_map_create()};
  return LP_OK;
}

/* The module keeps what is mapped: its weights lie there, and no name is resolved a second time. */
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

static void close_importer(lp_importer *im, lp_mapping *mapping) {
  for (size_t i = 0; i < lp_map_count(im->external); i++) {
    lp_external *external = lp_map_value_at(im->external, i);
    lp_file_unmap(&external->mapping);
  }
  for (size_t i = 0; i < im->maps.count; i++)
    lp_map_free(im->maps.data[i]);
  lp_vec_free(&im->maps);
  lp_vec_free(&im->regions);
  lp_map_free(im->external);
  lp_map_free(im->functions);
  lp_map_free(im->dims);
  lp_arena_free(im->scratch);
  lp_file_unmap(mapping);
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

lp_status lp_onnx_import(const char *path, const lp_import_options *options, lp_module **out, lp_diag *diag) {
  lp_importer im;
  lp_mapping mapping = {0};
  LP_TRY(open_importer(&im, path, diag, &mapping));
  ProtobufCMessage *message = NULL;
  lp_status status = unpack(&im, &onnx__model_proto__descriptor, LP_MESSAGE_MODEL, &message);
  if (status == LP_OK) {
    im.model = (const Onnx__ModelProto *)message;
    im.unpacked = lp_arena_bytes(im.scratch);
    if (options) im.options = options;
    im.module = create_module(&im);
    im.functions = lp_map_create();
    im.dims = lp_map_create();
    status = lp_import_model(&im);
    if (status == LP_OK) {
      hand_over_all(&im, &mapping);
      *out = im.module;
    } else {
      lp_module_free(im.module);
    }
  }
  close_importer(&im, &mapping);
  return status;
}

lp_status lp_onnx_census(const char *path, const lp_import_options *options, lp_arena *arena, lp_operator_count **out,
                         size_t *count, lp_diag *diag) {
  lp_importer im;
  lp_mapping mapping = {0};
  LP_TRY(open_importer(&im, path, diag, &mapping));
  ProtobufCMessage *message = NULL;
  lp_status status = unpack(&im, &onnx__model_proto__descriptor, LP_MESSAGE_MODEL, &message);
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
  close_importer(&im, &mapping);
  return status;
}

lp_status lp_onnx_input_names(const char *path, lp_arena *arena, const char *const **names, size_t *count,
                              lp_diag *diag) {
  lp_importer im;
  lp_mapping mapping = {0};
  LP_TRY(open_importer(&im, path, diag, &mapping));
  ProtobufCMessage *message = NULL;
  lp_status status = unpack(&im, &onnx__model_proto__descriptor, LP_MESSAGE_MODEL, &message);
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
  close_importer(&im, &mapping);
  return status;
}

lp_status lp_onnx_read_tensor(const char *path, lp_arena *arena, lp_array *out, const char **name, lp_diag *diag) {
  lp_importer im;
  lp_mapping mapping = {0};
  LP_TRY(open_importer(&im, path, diag, &mapping));
  ProtobufCMessage *message = NULL;
  lp_tensor_data data;
  lp_status status = unpack(&im, &onnx__tensor_proto__descriptor, LP_MESSAGE_TENSOR, &message);
  if (status == LP_OK) {
    const Onnx__TensorProto *tensor = (const Onnx__TensorProto *)message;
    *name = tensor->name ? lp_arena_strdup(arena, tensor->name) : NULL;
    status = lp_tensor_check(&im, tensor, LP_LOC_FILE(path), lp_text(tensor->name), &data);
  }
  if (status == LP_OK && !data.data && data.bytes > 0)
    status = lp_error(diag, LP_LOC_FILE(path), "a tensor file must hold its data itself");
  if (status == LP_OK) {
    *out = (lp_array){.dtype = data.dtype, .rank = data.rank};
    memcpy(out->dim, data.dim, sizeof(out->dim));
    out->data = data.bytes > 0 ? lp_arena_copy(arena, data.data, (size_t)data.bytes) : lp_arena_alloc(arena, 1);
  }
  close_importer(&im, &mapping);
  return status;
}
