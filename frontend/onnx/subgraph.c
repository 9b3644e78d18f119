/* Models that wrap a decoder into a search (com.microsoft.BeamSearch and similar operators) hold it as an attribute of
 * a node. */
#include "frontend/onnx/graph.h"
#include "frontend/onnx/identify.h"
#include "frontend/onnx/importer.h"

void lp_note_subgraphs(const lp_importer *im, const Onnx__NodeProto *node, lp_loc loc) {
  LP_FOR_REFS(Onnx__AttributeProto, a, node->attribute, node->n_attribute) {
    if (!a->g) continue;
    const char *option = lp_arena_format(im->scratch, "--subgraph=%s", lp_text(a->name));
    lp_note_option(im->diag, loc, option, "its attribute '%s' holds a graph of %zu nodes: %s compiles that",
                   lp_text(a->name), a->g->n_node, option);
  }
}

lp_status lp_model_graph(lp_importer *im, const Onnx__GraphProto **out) {
  const char *wanted = im->options->subgraph;
  const Onnx__GraphProto *main = im->model->graph;
  lp_loc loc = LP_LOC_FILE(im->path);
  if (!main) return lp_error(im->diag, loc, "the model holds no graph");
  *out = main;
  if (!wanted) return LP_OK;
  const Onnx__GraphProto *found = NULL;
  for (size_t n = 0; n < main->n_node; n++) {
    for (size_t i = 0; i < main->node[n]->n_attribute; i++) {
      const Onnx__AttributeProto *a = main->node[n]->attribute[i];
      if (!a->g || !lp_streq(lp_text(a->name), wanted)) continue;
      if (found) return lp_error(im->diag, loc, "several nodes have a graph attribute '%s'", wanted);
      found = a->g;
    }
  }
  if (found) {
    *out = found;
    return LP_OK;
  }
  lp_status status = lp_error(im->diag, loc, "no node has a graph attribute '%s'", wanted);
  for (size_t n = 0; n < main->n_node; n++)
    lp_note_subgraphs(im, main->node[n], lp_node_loc(im, main->node[n], NULL));
  return status;
}
