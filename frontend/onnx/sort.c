/* Topological order of a graph's nodes. Files should be sorted, but some are not. The sort is depth first, so that a
 * sorted file keeps its order. Names that a branch reads from the graph around it are dependencies of its node. Names
 * that the branch makes itself are not, even when a node outside makes the same name (optimum's merged decoders). */
#include "base/map.h"
#include "frontend/onnx/identify.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/node.h"

typedef LP_VEC(size_t) index_list;

typedef struct {
  lp_importer *im;
  Onnx__NodeProto **nodes;
  const lp_call *call;
  const lp_map *producers; /* name -> index + 1 */
  index_list *needs;       /* [count] */
} sorter;

static void add_need(sorter *s, size_t node, const char *name) {
  size_t producer = (size_t)(uintptr_t)lp_map_get(s->producers, lp_text(name));
  if (producer) lp_vec_push(&s->needs[node], producer - 1);
}

/* Names that a branch and the graphs around it make: in the branch they hide those of the main graph. */
typedef struct hidden {
  const struct hidden *outer;
  lp_map *names;
} hidden;

static bool is_hidden(const hidden *inner, const char *name) {
  for (; inner; inner = inner->outer)
    if (lp_map_has(inner->names, lp_text(name))) return true;
  return false;
}

static void hide(lp_map *names, const char *name) {
  if (lp_text(name)[0]) lp_map_put(names, name, names);
}

static lp_map *names_of(const sorter *s, const Onnx__GraphProto *graph) {
  lp_map *names = lp_map_create();
  lp_vec_push(&s->im->maps, names);
  for (size_t i = 0; i < graph->n_input; i++)
    hide(names, graph->input[i]->name);
  for (size_t i = 0; i < graph->n_initializer; i++)
    hide(names, graph->initializer[i]->name);
  for (size_t i = 0; i < graph->n_node; i++)
    for (size_t k = 0; k < graph->node[i]->n_output; k++)
      hide(names, graph->node[i]->output[k]);
  return names;
}

static void add_needs(sorter *s, size_t index, const Onnx__NodeProto *node, const hidden *outer) {
  for (size_t i = 0; i < node->n_input; i++)
    if (!is_hidden(outer, node->input[i])) add_need(s, index, node->input[i]);
  for (size_t a = 0; a < node->n_attribute; a++) {
    const Onnx__GraphProto *graph = node->attribute[a]->g;
    if (!graph) continue;
    const hidden inner = {outer, names_of(s, graph)};
    for (size_t i = 0; i < graph->n_node; i++)
      add_needs(s, index, graph->node[i], &inner);
    for (size_t i = 0; i < graph->n_output; i++)
      if (!is_hidden(&inner, graph->output[i]->name)) add_need(s, index, graph->output[i]->name);
  }
}

typedef enum { NEW, OPEN, DONE } visit_state;

typedef struct {
  size_t node, next; /* next: the index of the next need */
} frame;

/* Visits depth first from one node with an explicit stack, because graphs are deep. */
static lp_status visit(sorter *s, size_t root, visit_state *state, size_t *order, size_t *done) {
  LP_VEC(frame) stack = {0};
  frame first = {root, 0};
  lp_status status = LP_OK;
  lp_vec_push(&stack, first);
  state[root] = OPEN;
  while (stack.count > 0 && status == LP_OK) {
    frame *top = &stack.data[stack.count - 1];
    if (top->next == s->needs[top->node].count) {
      state[top->node] = DONE;
      order[(*done)++] = top->node;
      stack.count--;
      continue;
    }
    size_t need = s->needs[top->node].data[top->next++];
    if (state[need] == OPEN) {
      status =
          lp_error(s->im->diag, lp_node_loc(s->im, s->nodes[need], s->call), "the graph has a cycle through this node");
    } else if (state[need] == NEW) {
      frame below = {need, 0};
      state[need] = OPEN;
      lp_vec_push(&stack, below);
    }
  }
  lp_vec_free(&stack);
  return status;
}

lp_status lp_sort_nodes(lp_importer *im, Onnx__NodeProto **nodes, size_t count, const lp_call *call, size_t *order) {
  lp_map *producers = lp_map_create();
  lp_vec_push(&im->maps, producers);
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < nodes[i]->n_output; k++)
      if (lp_text(nodes[i]->output[k])[0]) lp_map_put(producers, nodes[i]->output[k], (void *)(uintptr_t)(i + 1));
  sorter s = {im, nodes, call, producers, LP_NEW_ARRAY(im->scratch, index_list, count)};
  visit_state *state = LP_NEW_ARRAY(im->scratch, visit_state, count);
  for (size_t i = 0; i < count; i++)
    add_needs(&s, i, nodes[i], NULL);
  size_t done = 0;
  lp_status status = LP_OK;
  for (size_t i = 0; i < count && status == LP_OK; i++)
    if (state[i] == NEW) status = visit(&s, i, state, order, &done);
  for (size_t i = 0; i < count; i++)
    lp_vec_free(&s.needs[i]);
  return status;
}
