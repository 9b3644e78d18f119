/* Files: maps one, unpacks its skeleton, and reads those that hold one tensor. */
#include "base/file.h"
#include "base/map.h"
#include "base/path.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/skeleton.h"
#include "frontend/onnx/tensor.h"

static void *arena_alloc(void *arena, size_t size) {
  return lp_arena_alloc(arena, size);
}

static void arena_free(void *arena, void *memory) {
  (void)arena;
  (void)memory;
}

ProtobufCAllocator lp_importer_allocator(const lp_importer *im) {
  return (ProtobufCAllocator){arena_alloc, arena_free, im->scratch};
}

lp_status lp_importer_unpack(lp_importer *im, const ProtobufCMessageDescriptor *descriptor, lp_message kind,
                             ProtobufCMessage **out) {
  LP_OWNED(lp_buf_free) lp_buf skeleton = {0};
  lp_loc loc = LP_LOC_FILE(im->path);
  lp_status status = lp_onnx_skeleton(im->data, im->size, kind, &skeleton, im->diag, loc);
  if (status == LP_OK) {
    ProtobufCAllocator allocator = lp_importer_allocator(im);
    *out = protobuf_c_message_unpack(descriptor, &allocator, skeleton.size, (const uint8_t *)lp_buf_text(&skeleton));
    if (!*out) status = lp_error(im->diag, loc, "not an ONNX file: its protobuf fields are not those of onnx.proto");
  }
  return status;
}

lp_status lp_importer_open(lp_importer *im, const char *path, lp_diag *diag, lp_mapping *mapping) {
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

void lp_importer_close(lp_importer *im, lp_mapping *mapping) {
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
  lp_map_free(im->vague);
  lp_arena_free(im->scratch);
  lp_file_unmap(mapping);
}

lp_status lp_onnx_read_tensor(const char *path, lp_arena *arena, lp_array *out, const char **name, lp_diag *diag) {
  lp_importer im;
  lp_mapping mapping = {0};
  LP_TRY(lp_importer_open(&im, path, diag, &mapping));
  ProtobufCMessage *message = NULL;
  lp_tensor_data data;
  lp_status status = lp_importer_unpack(&im, &onnx__tensor_proto__descriptor, LP_MESSAGE_TENSOR, &message);
  if (status == LP_OK) {
    const Onnx__TensorProto *tensor = (const Onnx__TensorProto *)message;
    *name = tensor->name ? lp_arena_strdup(arena, tensor->name) : NULL;
    status = lp_tensor_check(&im, tensor, LP_LOC_FILE(path), lp_text(tensor->name), &data);
  }
  if (status == LP_OK && !data.data && data.bytes > 0)
    status = lp_error(diag, LP_LOC_FILE(path), "a tensor file must hold its data itself");
  if (status == LP_OK) {
    *out = (lp_array){.dtype = data.dtype, .rank = data.rank};
    memcpy(out->dim, data.dim, sizeof out->dim);
    out->data = data.bytes > 0 ? lp_arena_copy(arena, data.data, (size_t)data.bytes) : lp_arena_alloc(arena, 1);
  }
  lp_importer_close(&im, &mapping);
  return status;
}
