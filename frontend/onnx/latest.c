/* Constant nodes of one graph that share an output name. ONNX forbids them, but optimizers of old exporters wrote them.
 * ONNX Runtime turns Constant nodes into initializers before it reads any other node, and the latest one with a name
 * wins (onnxruntime/core/graph/graph.cc, "the model will use the latest encountered initializer"); it refuses other
 * types. */
#include "base/map.h"
#include "frontend/onnx/identify.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/node.h"

/* The element type and shape that a Constant declares. */
typedef struct {
  int32_t data_type;
  size_t rank;
  const int64_t *dim; /* [rank] */
  int64_t length;     /* length of a list; `dim` then points here */
} constant_type;

static bool read_type(const Onnx__NodeProto *node, constant_type *out) {
  const Onnx__AttributeProto *a = node->n_attribute == 1 ? node->attribute[0] : NULL;
  *out = (constant_type){0};
  if (!a || node->n_output != 1 || lp_text(a->ref_attr_name)[0]) return false;
  const char *form = lp_text(a->name);
  bool floats = lp_streq(form, "value_float") || lp_streq(form, "value_floats");
  bool list = lp_streq(form, "value_ints") || lp_streq(form, "value_floats");
  if (lp_streq(form, "value") && a->t) {
    *out = (constant_type){.data_type = a->t->data_type, .rank = a->t->n_dims, .dim = a->t->dims};
    return true;
  }
  if (!list && !floats && !lp_streq(form, "value_int")) return false;
  out->data_type = floats ? ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT : ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
  out->length = (int64_t)(floats ? a->n_floats : a->n_ints);
  out->rank = list ? 1 : 0;
  out->dim = &out->length;
  return true;
}

static bool same_type(const Onnx__NodeProto *a, const Onnx__NodeProto *b) {
  constant_type x, y;
  if (!read_type(a, &x) || !read_type(b, &y) || x.data_type != y.data_type || x.rank != y.rank) return false;
  return x.rank == 0 || memcmp(x.dim, y.dim, x.rank * sizeof *x.dim) == 0;
}

static bool is_constant(const Onnx__NodeProto *node) {
  return !lp_node_domain(node)[0] && lp_streq(lp_text(node->op_type), "Constant") && node->n_output == 1;
}

/* The latest Constant of each name: name -> node. */
static lp_map *index_latest(lp_importer *im, Onnx__NodeProto **nodes, size_t count) {
  lp_map *latest = lp_map_create();
  lp_vec_push(&im->maps, latest);
  for (size_t i = 0; i < count; i++)
    if (is_constant(nodes[i])) lp_map_put(latest, lp_text(nodes[i]->output[0]), nodes[i]);
  return latest;
}

size_t lp_keep_latest_constants(lp_importer *im, Onnx__NodeProto **nodes, size_t count, Onnx__NodeProto **kept) {
  const lp_map *latest = index_latest(im, nodes, count);
  const Onnx__NodeProto *first = NULL;
  size_t kept_count = 0;
  for (size_t i = 0; i < count; i++) {
    const Onnx__NodeProto *last = is_constant(nodes[i]) ? lp_map_get(latest, lp_text(nodes[i]->output[0])) : NULL;
    if (!last || last == nodes[i] || !same_type(nodes[i], last))
      kept[kept_count++] = nodes[i];
    else if (!first)
      first = nodes[i];
  }
  if (first)
    lp_warning(im->diag, lp_node_loc(im, first, NULL),
               "value '%s' is defined twice: the latest constant of a name is used (%zu are ignored)",
               lp_text(first->output[0]), count - kept_count);
  return kept_count;
}
