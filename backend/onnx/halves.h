/* The models of a placed module and their manifest. halves.c writes the folder. */
#pragma once

#include "backend/onnx/graph.h"
#include "base/map.h"

/* Writes the model of a part into part->bytes (model.c). */
LP_MUST_USE lp_status onnx_part_write(lp_module *module, onnx_part *part, onnx_store *store, int64_t opset,
                                      lp_diag *diag);
/* Appends manifest.json; `files` has the names of the other files of the folder as keys (manifest.c). */
void onnx_manifest(const lp_module *module, const onnx_program *const *program, int32_t count, int64_t opset,
                   const lp_map *files, lp_buf *out);
