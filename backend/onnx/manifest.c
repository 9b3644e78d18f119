/* manifest.json of the halves: the models that a step runs, their order, and their inputs and outputs. */
#include "backend/onnx/halves.h"

#include "base/json/writer.h"

static const char *const role_names[] = {"data", "cut", "past", "present", "size"};

static void put_shape(lp_json_writer *w, const lp_module *module, lp_type type) {
  lp_json_put_array(w, "shape");
  for (int32_t i = 0; i < type.rank; i++)
    lp_json_put_poly(w, NULL, type.dim[i], &module->symbols);
  lp_json_put_end(w);
}

static void put_ports(lp_json_writer *w, const char *key, const lp_module *module, const onnx_ports *ports) {
  lp_json_put_array(w, key);
  LP_FOR_VEC(const onnx_port, port, ports) {
    lp_json_put_object(w, NULL);
    lp_json_put_text(w, "name", port->name);
    lp_json_put_text(w, "role", role_names[port->role]);
    lp_json_put_text(w, "dtype", lp_dtype_name(port->type.dtype));
    put_shape(w, module, port->type);
    if (port->state >= 0) lp_json_put_integer(w, "state", port->state);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

static void put_part(lp_json_writer *w, const lp_module *module, const onnx_part *part) {
  lp_json_put_object(w, NULL);
  lp_json_put_text(w, "model", part->file);
  lp_json_put_text(w, "side", lp_module_place_name(module, part->side));
  put_ports(w, "inputs", module, &part->in);
  put_ports(w, "outputs", module, &part->out);
  lp_json_put_end(w);
}

void onnx_manifest(const lp_module *module, const onnx_program *const *program, int32_t count, int64_t opset,
                   const lp_map *files, lp_buf *out) {
  lp_json_writer w = lp_json_document_begin(out, (lp_json_style){.indent = 2}, "llmpart.onnx/1");
  if (module->name) lp_json_put_text(&w, "name", module->name);
  lp_json_put_integer(&w, "opset", opset);
  lp_json_put_array(&w, "files");
  for (size_t i = 0; i < lp_map_count(files); i++)
    lp_json_put_text(&w, NULL, lp_map_key_at(files, i));
  lp_json_put_end(&w);
  lp_json_put_object(&w, "programs");
  for (int32_t i = 0; i < count; i++) {
    lp_json_put_array(&w, program[i]->name);
    for (size_t k = 0; k < program[i]->parts.count; k++)
      put_part(&w, module, program[i]->parts.data[k]);
    lp_json_put_end(&w);
  }
  lp_json_put_end(&w);
  lp_json_document_end(&w);
}
