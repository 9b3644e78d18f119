/* manifest.json of the halves: which models a step runs, in which order, and their inputs and outputs. */
#include "backend/onnx/halves.h"

#include "base/poly.h"
#include "base/side.h"

#include <jansson.h>
#include <stdlib.h>

static const char *const role_names[] = {"data", "cut", "past", "present", "size"};

static json_t *shape_json(const lp_module *module, lp_type type) {
  json_t *shape = json_array();
  for (int32_t i = 0; i < type.rank; i++) {
    lp_buf text = {0};
    lp_poly_print(type.dim[i], &module->symbols, &text);
    json_array_append_new(shape, json_string(lp_buf_text(&text)));
    lp_buf_free(&text);
  }
  return shape;
}

static json_t *ports_json(const lp_module *module, const onnx_ports *ports) {
  json_t *list = json_array();
  for (size_t i = 0; i < ports->count; i++) {
    const onnx_port *port = &ports->data[i];
    json_t *item = json_object();
    json_object_set_new(item, "name", json_string(port->name));
    json_object_set_new(item, "role", json_string(role_names[port->role]));
    json_object_set_new(item, "dtype", json_string(lp_dtype_name(port->type.dtype)));
    json_object_set_new(item, "shape", shape_json(module, port->type));
    if (port->state >= 0) json_object_set_new(item, "state", json_integer(port->state));
    json_array_append_new(list, item);
  }
  return list;
}

static json_t *part_json(const lp_module *module, const onnx_part *part) {
  json_t *item = json_object();
  json_object_set_new(item, "model", json_string(part->file));
  json_object_set_new(item, "side", json_string(lp_side_name(part->side)));
  json_object_set_new(item, "inputs", ports_json(module, &part->in));
  json_object_set_new(item, "outputs", ports_json(module, &part->out));
  return item;
}

void onnx_manifest(const lp_module *module, const onnx_program *const *program, int32_t count, int64_t opset,
                   lp_buf *out) {
  json_t *root = json_object(), *programs = json_object();
  json_object_set_new(root, "schema", json_string("llmpart.onnx/1"));
  json_object_set_new(root, "name", json_string(module->name));
  json_object_set_new(root, "opset", json_integer(opset));
  json_object_set_new(root, "programs", programs);
  for (int32_t i = 0; i < count; i++) {
    json_t *parts = json_array();
    for (size_t k = 0; k < program[i]->parts.count; k++)
      json_array_append_new(parts, part_json(module, program[i]->parts.data[k]));
    json_object_set_new(programs, program[i]->name, parts);
  }
  char *text = json_dumps(root, JSON_INDENT(2));
  lp_buf_puts(out, text);
  lp_buf_puts(out, "\n");
  free(text);
  json_decref(root);
}
