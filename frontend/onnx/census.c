/* Counts the operators of a file without importing anything. */
#include "base/map.h"
#include "frontend/onnx/graph.h"
#include "frontend/onnx/identify.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/node.h"

typedef struct {
  lp_importer *im;
  lp_arena *arena;
  lp_map *index; /* "domain:name" -> lp_operator_count* */
  LP_VEC(lp_operator_count *) list;
  int32_t depth;
} census;

static void add_node(census *c, const Onnx__NodeProto *node) {
  const char *domain = lp_node_domain(node), *name = lp_text(node->op_type);
  const char *key = lp_arena_format(c->im->scratch, "%s:%s", domain, name);
  lp_operator_count *entry = lp_map_get(c->index, key);
  if (!entry) {
    entry = LP_NEW(c->arena, lp_operator_count);
    entry->domain = domain[0] ? lp_arena_strdup(c->arena, domain) : "ai.onnx";
    entry->name = lp_arena_strdup(c->arena, name);
    entry->opset = lp_domain_opset(c->im, domain);
    entry->is_function = lp_function_find(c->im, node) != NULL;
    entry->is_known = lp_kind_find(c->im, node, &entry->kind);
    entry->is_built = !domain[0] && (lp_streq(name, "If") || lp_streq(name, "Loop") || lp_streq(name, "Einsum") ||
                                     lp_is_sequence_operator(name));
    lp_map_put(c->index, key, entry);
    lp_vec_push(&c->list, entry);
  }
  entry->count++;
}

static void add_nodes(census *c, Onnx__NodeProto *const *nodes, size_t count) {
  if (++c->depth <= LP_IMPORT_DEPTH) {
    for (size_t i = 0; i < count; i++) {
      add_node(c, nodes[i]);
      for (size_t a = 0; a < nodes[i]->n_attribute; a++) {
        const Onnx__GraphProto *graph = nodes[i]->attribute[a]->g;
        if (graph) add_nodes(c, graph->node, graph->n_node);
      }
    }
  }
  c->depth--;
}

lp_status lp_census_take(lp_importer *im, lp_arena *arena, lp_operator_count **out, size_t *count) {
  census c = {.im = im, .arena = arena, .index = lp_map_create()};
  const Onnx__GraphProto *graph = NULL;
  lp_status status = lp_model_graph(im, &graph);
  if (status == LP_OK) {
    add_nodes(&c, graph->node, graph->n_node);
    for (size_t i = 0; i < im->model->n_functions; i++)
      add_nodes(&c, im->model->functions[i]->node, im->model->functions[i]->n_node);
    *out = LP_NEW_ARRAY(arena, lp_operator_count, c.list.count + 1);
    for (size_t i = 0; i < c.list.count; i++)
      (*out)[i] = *c.list.data[i];
    *count = c.list.count;
  }
  lp_map_free(c.index);
  lp_vec_free(&c.list);
  return status;
}
