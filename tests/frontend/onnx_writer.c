#include "tests/frontend/onnx_writer.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/poly.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/frontend.h"

/* ---- wire format ---- */

static void raw_varint(lp_buf *to, uint64_t value) {
  do {
    uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    lp_buf_append(to, &byte, 1);
    value >>= 7;
  } while (value);
}

void onnx_varint(lp_buf *to, uint32_t field, uint64_t value) {
  raw_varint(to, (uint64_t)field << 3);
  raw_varint(to, value);
}

void onnx_bytes(lp_buf *to, uint32_t field, const void *data, size_t size) {
  raw_varint(to, (uint64_t)field << 3 | 2);
  raw_varint(to, size);
  if (size > 0) lp_buf_append(to, data, size);
}

void onnx_text(lp_buf *to, uint32_t field, const char *text) {
  onnx_bytes(to, field, text, strlen(text));
}

void onnx_sub(lp_buf *to, uint32_t field, lp_buf *message) {
  onnx_bytes(to, field, message->data, message->size);
  lp_buf_free(message);
}

/* Calls `each` for every word of `words`. */
typedef void word_function(lp_buf *to, uint32_t field, const char *word);

static void for_words(lp_buf *to, uint32_t field, const char *words, word_function *each) {
  char *copy = lp_strdup(words), *state = NULL;
  for (char *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state))
    each(to, field, word);
  free(copy);
}

static void put_name(lp_buf *to, uint32_t field, const char *word) {
  onnx_text(to, field, strcmp(word, "-") == 0 ? "" : word);
}

/* ---- nodes ---- */

lp_buf onnx_node(const char *op, const char *inputs, const char *outputs) {
  lp_buf node = {0};
  for_words(&node, 1, inputs, put_name);
  for_words(&node, 2, outputs, put_name);
  onnx_text(&node, 4, op);
  return node;
}

lp_buf onnx_named(const char *name, const char *op, const char *inputs, const char *outputs) {
  lp_buf node = onnx_node(op, inputs, outputs);
  onnx_text(&node, 3, name);
  return node;
}

void onnx_domain(lp_buf *node, const char *domain) {
  onnx_text(node, 7, domain);
}

enum { A_FLOAT = 1, A_INT = 2, A_STRING = 3, A_TENSOR = 4, A_GRAPH = 5, A_FLOATS = 6, A_INTS = 7 };

static lp_buf attribute(const char *name, uint64_t type) {
  lp_buf a = {0};
  onnx_text(&a, 1, name);
  onnx_varint(&a, 20, type);
  return a;
}

void onnx_attr_i(lp_buf *node, const char *name, int64_t value) {
  lp_buf a = attribute(name, A_INT);
  onnx_varint(&a, 3, (uint64_t)value);
  onnx_sub(node, 5, &a);
}

void onnx_attr_f(lp_buf *node, const char *name, float value) {
  lp_buf a = attribute(name, A_FLOAT);
  raw_varint(&a, 2u << 3 | 5);
  lp_buf_append(&a, &value, sizeof value);
  onnx_sub(node, 5, &a);
}

void onnx_attr_s(lp_buf *node, const char *name, const char *value) {
  lp_buf a = attribute(name, A_STRING);
  onnx_text(&a, 4, value);
  onnx_sub(node, 5, &a);
}

void onnx_attr_ints(lp_buf *node, const char *name, int count, const int64_t *values) {
  lp_buf a = attribute(name, A_INTS);
  for (int i = 0; i < count; i++)
    onnx_varint(&a, 8, (uint64_t)values[i]);
  onnx_sub(node, 5, &a);
}

void onnx_attr_floats(lp_buf *node, const char *name, int count, const float *values) {
  lp_buf a = attribute(name, A_FLOATS);
  for (int i = 0; i < count; i++) {
    raw_varint(&a, 7u << 3 | 5);
    lp_buf_append(&a, &values[i], sizeof values[i]);
  }
  onnx_sub(node, 5, &a);
}

void onnx_attr_tensor(lp_buf *node, const char *name, lp_buf *tensor) {
  lp_buf a = attribute(name, A_TENSOR);
  onnx_sub(&a, 5, tensor);
  onnx_sub(node, 5, &a);
}

void onnx_attr_graph(lp_buf *node, const char *name, lp_buf *graph) {
  lp_buf a = attribute(name, A_GRAPH);
  onnx_sub(&a, 6, graph);
  onnx_sub(node, 5, &a);
}

void onnx_attr_ref(lp_buf *node, const char *name, const char *of_function, uint64_t type) {
  lp_buf a = attribute(name, type);
  onnx_text(&a, 21, of_function);
  onnx_sub(node, 5, &a);
}

static void put_attribute(lp_buf *node, char *word) {
  char *value = strchr(word, '=');
  int64_t ints[8];
  int count = 0;
  *value++ = '\0';
  bool is_number = isdigit((unsigned char)value[0]) || value[0] == '-';
  if (!is_number) {
    onnx_attr_s(node, word, value);
  } else if (strchr(value, ',')) {
    char *state = NULL;
    for (char *item = strtok_r(value, ",", &state); item && count < 8; item = strtok_r(NULL, ",", &state))
      ints[count++] = strtoll(item, NULL, 10);
    onnx_attr_ints(node, word, count, ints);
  } else if (strchr(value, '.')) {
    onnx_attr_f(node, word, strtof(value, NULL));
  } else {
    onnx_attr_i(node, word, strtoll(value, NULL, 10));
  }
}

static lp_buf node_in_text(char *text) {
  lp_buf node = {0};
  char *state = NULL, *word = strtok_r(text, " ", &state);
  uint32_t field = 1;
  bool microsoft = strncmp(word, "MS.", 3) == 0;
  onnx_text(&node, 4, microsoft ? word + 3 : word);
  if (microsoft) onnx_domain(&node, "com.microsoft");
  while ((word = strtok_r(NULL, " ", &state))) {
    if (strcmp(word, ">") == 0)
      field = 2;
    else if (strchr(word, '='))
      put_attribute(&node, word);
    else
      put_name(&node, field, word);
  }
  return node;
}

void onnx_nodes(lp_buf *graph, const char *text) {
  char *copy = lp_strdup(text), *state = NULL;
  for (char *node = strtok_r(copy, ";", &state); node; node = strtok_r(NULL, ";", &state))
    onnx_add(graph, node_in_text(node));
  free(copy);
}

/* ---- tensors ---- */

static void put_number(lp_buf *to, uint32_t field, const char *word) {
  onnx_varint(to, field, (uint64_t)strtoll(word, NULL, 10));
}

static lp_buf tensor_of(const char *name, int type, const char *dims) {
  lp_buf t = {0};
  for_words(&t, 1, dims, put_number);
  onnx_varint(&t, 2, (uint64_t)type);
  onnx_text(&t, 8, name);
  return t;
}

lp_buf onnx_tensor(const char *name, int type, const char *dims, const void *data, size_t size) {
  lp_buf t = tensor_of(name, type, dims);
  onnx_bytes(&t, 9, data, size);
  return t;
}

static void put_entry(lp_buf *tensor, const char *key, const char *value) {
  lp_buf entry = {0};
  if (!value) return;
  onnx_text(&entry, 1, key);
  onnx_text(&entry, 2, value);
  onnx_sub(tensor, 13, &entry);
}

lp_buf onnx_external(const char *name, int type, const char *dims, const char *location, const char *offset,
                     const char *length) {
  lp_buf t = tensor_of(name, type, dims);
  put_entry(&t, "location", location);
  put_entry(&t, "offset", offset);
  put_entry(&t, "length", length);
  onnx_varint(&t, 14, 1);
  return t;
}

/* ---- graphs ---- */

static void put_dim(lp_buf *shape, uint32_t field, const char *word) {
  lp_buf dim = {0};
  if (isdigit((unsigned char)word[0]) || word[0] == '-')
    put_number(&dim, 1, word);
  else if (strcmp(word, "?") != 0)
    onnx_text(&dim, 2, word);
  onnx_sub(shape, field, &dim);
}

static void put_value(lp_buf *graph, uint32_t field, const char *name, int type, const char *dims) {
  lp_buf shape = {0}, tensor = {0}, kind = {0}, value = {0};
  onnx_varint(&tensor, 1, (uint64_t)type);
  if (dims) {
    for_words(&shape, 1, dims, put_dim);
    onnx_sub(&tensor, 2, &shape);
  }
  onnx_sub(&kind, 1, &tensor);
  onnx_text(&value, 1, name);
  onnx_sub(&value, 2, &kind);
  onnx_sub(graph, field, &value);
}

void onnx_add(lp_buf *graph, lp_buf node) {
  onnx_sub(graph, 1, &node);
}

void onnx_input(lp_buf *graph, const char *name, int type, const char *dims) {
  put_value(graph, 11, name, type, dims);
}

void onnx_output(lp_buf *graph, const char *name, int type, const char *dims) {
  put_value(graph, 12, name, type, dims);
}

void onnx_initializer(lp_buf *graph, lp_buf tensor) {
  onnx_sub(graph, 5, &tensor);
}

lp_buf onnx_model(lp_buf *graph, int64_t opset) {
  lp_buf model = {0}, set = {0};
  onnx_varint(&model, 1, 8);
  if (opset) {
    onnx_text(&set, 1, "");
    onnx_varint(&set, 2, (uint64_t)opset);
    onnx_sub(&model, 8, &set);
  }
  onnx_sub(&model, 7, graph);
  return model;
}

void onnx_function_field(lp_buf *model, lp_buf *function) {
  onnx_sub(model, 25, function);
}

/* ---- files ---- */

static char folder[64];

const char *onnx_folder(void) {
  if (!folder[0]) {
    strcpy(folder, "/tmp/onnx-test-XXXXXX");
    char *made = mkdtemp(folder);
    assert(made);
    (void)made;
  }
  return folder;
}

const char *onnx_path(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", onnx_folder(), name);
  return path;
}

void onnx_cleanup(void) {
  if (folder[0]) lp_dir_abandon(folder);
  folder[0] = '\0';
}

void onnx_write(const char *name, const void *data, size_t size) {
  lp_status status = lp_file_write(onnx_path(name), data, size, NULL);
  assert(status == LP_OK);
  (void)status;
}

lp_module *onnx_import_with(lp_buf *model, bool weights_absent_ok, lp_diag *diag) {
  lp_import_options options = {.weights_absent_ok = weights_absent_ok};
  lp_module *module = NULL;
  onnx_write("model.onnx", model->data ? model->data : "", model->size);
  lp_buf_free(model);
  lp_status status = lp_onnx_import(onnx_path("model.onnx"), &options, &module, diag);
  return status == LP_OK ? module : NULL;
}

lp_module *onnx_import(lp_buf *model, lp_diag *diag) {
  return onnx_import_with(model, false, diag);
}

/* ---- imported results ---- */

lp_op *onnx_result(const lp_module *module, int32_t index) {
  const lp_op *func = lp_module_find_func(module, "main");
  return lp_op_in(lp_block_terminator(func->region), index)->def;
}

const char *onnx_type_text(const lp_module *module, const lp_value *value) {
  static char text[256];
  lp_buf out = {0};
  lp_buf_printf(&out, "%s[", lp_dtype_name(value->type.dtype));
  for (int32_t i = 0; i < value->type.rank; i++) {
    if (i > 0) lp_buf_puts(&out, ",");
    lp_poly_print(value->type.dim[i], &module->symbols, &out);
  }
  lp_buf_puts(&out, "]");
  snprintf(text, sizeof text, "%s", lp_buf_text(&out));
  lp_buf_free(&out);
  return text;
}

const char *onnx_message(const lp_diag *diag, size_t index) {
  static char text[512];
  lp_buf out = {0};
  if (index >= lp_diag_count(diag)) return "";
  lp_diag_format(lp_diag_get(diag, index), &out);
  snprintf(text, sizeof text, "%s", lp_buf_text(&out));
  lp_buf_free(&out);
  return text;
}
