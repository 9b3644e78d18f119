/* Identifies a node: its domain, its opset, its operator and its location. */
#include "frontend/onnx/identify.h"
#include "frontend/onnx/importer.h"

const char *lp_node_domain(const Onnx__NodeProto *node) {
  const char *domain = lp_text(node->domain);
  return lp_streq(domain, "ai.onnx") ? "" : domain;
}

int64_t lp_domain_opset(const lp_importer *im, const char *domain) {
  if (!domain[0]) return im->opset;
  for (size_t i = 0; i < im->model->n_opset_import; i++)
    if (lp_streq(lp_text(im->model->opset_import[i]->domain), domain)) return im->model->opset_import[i]->version;
  return 0;
}

lp_status lp_refuse_no_opset(const lp_importer *im, lp_loc loc) {
  return lp_error(im->diag, loc, "the model declares no opset of the default domain 'ai.onnx'");
}

lp_loc lp_node_loc(const lp_importer *im, const Onnx__NodeProto *node, const lp_call *call) {
  const char *name = lp_text(node->name);
  if (!name[0] && node->n_output > 0) name = lp_text(node->output[0]);
  lp_arena *arena = im->module->arena;
  name = call && call->name ? lp_arena_format(arena, "%s/%s", call->name, name) : lp_arena_strdup(arena, name);
  const char *domain = lp_node_domain(node);
  return (lp_loc){.file = im->file,
                  .node = name,
                  .op = lp_arena_strdup(arena, lp_text(node->op_type)),
                  .domain = domain[0] ? lp_arena_strdup(arena, domain) : "",
                  .opset = lp_domain_opset(im, domain)};
}

lp_loc lp_reader_loc(const lp_importer *im, const Onnx__GraphProto *graph, const char *name) {
  for (size_t n = 0; n < graph->n_node; n++)
    for (size_t i = 0; i < graph->node[n]->n_input; i++)
      if (lp_streq(lp_text(graph->node[n]->input[i]), name)) return lp_node_loc(im, graph->node[n], NULL);
  return LP_LOC_FILE(im->path);
}

static const char *prefix_of(const char *domain) {
  return domain[0] ? domain : "onnx";
}

static bool is_importable(const lp_op_info *info) {
  return info->level == LP_LEVEL_ONNX;
}

bool lp_kind_find(lp_importer *im, const Onnx__NodeProto *node, lp_kind *out) {
  const char *domain = lp_node_domain(node);
  const char *name = lp_arena_format(im->scratch, "%s.%s", prefix_of(domain), lp_text(node->op_type));
  return lp_op_info_find(name, out) && is_importable(lp_op_info_get(*out));
}

void lp_note_near_kinds(lp_importer *im, const Onnx__NodeProto *node, lp_loc loc) {
  const char *prefix = prefix_of(lp_node_domain(node));
  size_t length = strlen(prefix), found = 0;
  const char **names = LP_NEW_ARRAY(im->scratch, const char *, LP_OP_COUNT);
  for (int kind = 0; kind < LP_OP_COUNT; kind++) {
    const lp_op_info *info = lp_op_info_get((lp_kind)kind);
    if (is_importable(info) && lp_has_prefix(info->name, prefix) && info->name[length] == '.')
      names[found++] = info->name + length + 1;
  }
  lp_note_near(im->diag, loc, lp_text(node->op_type), names, found);
}
