/* Loop: is unrolled. The number of trips must be known or have a bound. Where the condition depends on the input, all
 * trips are made; from the first failing condition on, the carried values no longer change (docs/adr/0018). */
#include "base/map.h"
#include "frontend/onnx/attr.h"
#include "frontend/onnx/build.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/node.h"
#include "frontend/onnx/scope.h"
#include "frontend/onnx/tensor.h"

typedef struct {
  lp_importer *im;
  const lp_scope *scope; /* the scope around the node */
  const Onnx__NodeProto *node;
  const Onnx__GraphProto *body;
  lp_loc loc;
  int64_t trips, made; /* trips: INT64_MAX when no bound is known */
  bool ended;          /* no trip follows */
  lp_value *going;     /* the condition of this trip; NULL: it always takes place */
  size_t carried, scans;
  lp_value **value;        /* [carried] */
  const lp_list **list;    /* [carried] in place of a value, where a sequence is carried */
  LP_VEC(lp_value *) scan; /* [made][scans], each with an axis of one in front */
} loop;

static lp_status refuse_unbounded(const loop *l, const lp_value *on, const char *what) {
  lp_status status = lp_error(l->im->diag, l->loc, "%s", what);
  if (on) lp_note_binding(l->im->diag, l->loc, on);
  return status;
}

/* ---- one trip ---- */

static lp_value *constant(const loop *l, lp_dtype dtype, const void *data, size_t bytes) {
  return lp_import_constant(l->im, l->loc, dtype, 0, NULL, data, bytes);
}

static lp_status define_inputs(const loop *l, lp_scope *body) {
  const uint8_t yes = 1;
  for (size_t i = 0; i < l->body->n_input; i++) {
    if (i > 1 && l->list[i - 2]) {
      lp_map_put(body->lists, lp_text(l->body->input[i]->name), (void *)(uintptr_t)l->list[i - 2]);
      continue;
    }
    lp_value *value = i == 0   ? constant(l, LP_I64, &l->made, sizeof l->made)
                      : i == 1 ? constant(l, LP_BOOL, &yes, sizeof yes)
                               : l->value[i - 2];
    LP_TRY(lp_scope_define(l->im, body, lp_text(l->body->input[i]->name), value, l->loc));
  }
  return LP_OK;
}

static lp_status body_result(const loop *l, const lp_scope *body, size_t index, lp_value **out) {
  return lp_scope_result(l->im, body, lp_text(l->body->output[index]->name), l->loc, out);
}

static lp_status keep_scans(loop *l, const lp_scope *body) {
  const int64_t one = 1, front = 0;
  lp_type unknown = {.rank = -1};
  for (size_t i = 0; i < l->scans; i++) {
    lp_value *in[2];
    LP_TRY(body_result(l, body, 1 + l->carried + i, &in[0]));
    in[1] = lp_import_constant(l->im, l->loc, LP_I64, 1, &one, &front, sizeof front);
    lp_op *op = lp_op_create(l->im->module, LP_ONNX_Unsqueeze, l->loc, 2, in, 1, &unknown);
    lp_value *row;
    LP_TRY(lp_import_built(l->im, op, &row));
    lp_vec_push(&l->scan, row);
  }
  return LP_OK;
}

/* Makes the following trips depend on this condition of the input, too. */
static lp_status go_on_if(loop *l, lp_value *condition) {
  if (l->trips == INT64_MAX)
    return refuse_unbounded(l, condition, "its number of trips depends on the input, and no trip count limits it");
  if (l->scans > 0)
    return refuse_unbounded(l, condition, "its number of trips depends on the input, and so does the size of a result");
  LP_TRY(lp_import_condition(l->im, l->loc, &condition));
  if (l->going) {
    lp_value *both[] = {l->going, condition};
    lp_type unknown = {.rank = -1};
    lp_op *op = lp_op_create(l->im->module, LP_ONNX_And, l->loc, 2, both, 1, &unknown);
    LP_TRY(lp_import_built(l->im, op, &condition));
  }
  l->going = condition;
  return LP_OK;
}

/* Reads the body's condition for the next trip. */
static lp_status next_condition(loop *l, const lp_scope *body) {
  lp_value *condition;
  int64_t known;
  LP_TRY(body_result(l, body, 0, &condition));
  if (lp_import_number(condition, &known)) {
    l->ended |= known == 0;
    return LP_OK;
  }
  return l->made + 1 < l->trips ? go_on_if(l, condition) : LP_OK; /* nothing reads it after the last trip */
}

static lp_status carry_list(const loop *l, const lp_scope *body, size_t index) {
  const char *name = lp_text(l->body->output[1 + index]->name);
  const lp_list *next = lp_scope_find_list(body, name);
  if (!next) return lp_error(l->im->diag, l->loc, "result '%s' is no sequence of constant length", name);
  if (l->going) return lp_error(l->im->diag, l->loc, "the length of the sequence '%s' depends on the input", name);
  l->list[index] = next;
  return LP_OK;
}

static lp_status make_trip(loop *l, const lp_call *call) {
  static const Onnx__NodeProto no_node = ONNX__NODE_PROTO__INIT;
  lp_importer *im = l->im;
  if (l->made == LP_LOOP_TRIPS)
    return lp_error(im->diag, l->loc, "it makes more than %d trips, the most that are unrolled", LP_LOOP_TRIPS);
  if (++im->node_count > LP_IMPORT_NODES)
    return lp_error(im->diag, l->loc, "the graph has more than %d operators once loops are unrolled", LP_IMPORT_NODES);
  lp_call inner = call ? *call : (lp_call){.node = &no_node};
  inner.name = lp_arena_format(im->module->arena, "%s/%" PRId64, l->loc.node, l->made);
  lp_scope body = lp_scope_open(im, l->scope);
  lp_value *going = l->going;
  LP_TRY(define_inputs(l, &body));
  LP_TRY(lp_import_body(im, &body, l->body, &inner, l->loc));
  LP_TRY(next_condition(l, &body));
  LP_TRY(keep_scans(l, &body));
  for (size_t i = 0; i < l->carried; i++) {
    lp_value *next;
    if (l->list[i]) {
      LP_TRY(carry_list(l, &body, i));
      continue;
    }
    LP_TRY(body_result(l, &body, 1 + i, &next));
    LP_TRY(lp_import_choice(im, l->loc, going, next, l->value[i], &l->value[i]));
  }
  l->made++;
  return LP_OK;
}

/* ---- the node ---- */

static lp_status operand(const loop *l, size_t index, lp_value **out) {
  const char *name = index < l->node->n_input ? lp_text(l->node->input[index]) : "";
  *out = NULL;
  if (!name[0]) return LP_OK;
  LP_TRY(lp_scope_find(l->im, l->scope, name, out));
  return *out ? LP_OK
              : lp_error(l->im->diag, l->loc, "input '%s' is made by no node, initializer or graph input", name);
}

/* Reads the trip count and the first condition. */
static lp_status read_bounds(loop *l) {
  lp_value *count, *condition;
  int64_t known;
  LP_TRY(operand(l, 0, &count));
  LP_TRY(operand(l, 1, &condition));
  if (count && !lp_import_number(count, &l->trips))
    return refuse_unbounded(l, count, "its trip count depends on the input");
  if (!condition) return LP_OK;
  if (!lp_import_number(condition, &known)) return go_on_if(l, condition);
  l->ended = known == 0;
  return LP_OK;
}

static lp_status read_body(loop *l, const lp_call *call) {
  const Onnx__AttributeProto *body = lp_attribute_find(l->node, call, "body");
  if (!body || !body->g) return lp_error(l->im->diag, l->loc, "attribute 'body' is missing");
  l->body = body->g;
  l->carried = l->node->n_input > 2 ? l->node->n_input - 2 : 0;
  if (l->body->n_input != 2 + l->carried)
    return lp_error(l->im->diag, l->loc, "its body has %zu inputs, %zu wanted", l->body->n_input, 2 + l->carried);
  if (l->body->n_output < 1 + l->carried || l->node->n_output > l->body->n_output - 1)
    return lp_error(l->im->diag, l->loc, "its body has %zu outputs, %zu wanted", l->body->n_output,
                    1 + (l->node->n_output > l->carried ? l->node->n_output : l->carried));
  l->scans = l->body->n_output - 1 - l->carried;
  l->value = LP_NEW_ARRAY(l->im->scratch, lp_value *, l->carried + 1);
  l->list = LP_NEW_ARRAY(l->im->scratch, const lp_list *, l->carried + 1);
  for (size_t i = 0; i < l->carried; i++) {
    l->list[i] = lp_scope_find_list(l->scope, lp_text(l->node->input[2 + i]));
    if (!l->list[i]) LP_TRY(operand(l, 2 + i, &l->value[i]));
  }
  return LP_OK;
}

/* Concatenates the values of all trips. Without any trip the result has the declared type, which must have no
 * symbols. */
static lp_status join_scan(const loop *l, size_t index, lp_value **out) {
  const Onnx__ValueInfoProto *declared = l->body->output[1 + l->carried + index];
  lp_type type, unknown = {.rank = -1};
  if (l->made > 0) {
    lp_value *parts[LP_LOOP_TRIPS];
    for (size_t trip = 0; trip < (size_t)l->made; trip++)
      parts[trip] = l->scan.data[trip * l->scans + index];
    lp_op *op = lp_op_create(l->im->module, LP_ONNX_Concat, l->loc, (int32_t)l->made, parts, 1, &unknown);
    lp_op_set_i64(l->im->module, op, "axis", 0);
    return lp_import_built(l->im, op, out);
  }
  int64_t dim[LP_MAX_RANK + 1] = {0};
  LP_TRY(lp_import_type(l->im, l->body, declared->type, lp_text(declared->name), &type));
  for (int32_t i = 0; i < type.rank; i++)
    if (type.rank == LP_MAX_RANK || !lp_type_static_dim(type, i, &dim[i + 1]))
      return lp_error(l->im->diag, l->loc, "it makes no trip, and the size of its result '%s' is not constant",
                      lp_text(declared->name));
  *out = lp_import_constant(l->im, l->loc, type.dtype, type.rank + 1, dim, NULL, 0);
  return LP_OK;
}

static lp_status unroll(loop *l, lp_scope *scope, const lp_call *call) {
  const Onnx__NodeProto *node = l->node;
  LP_TRY(read_body(l, call));
  LP_TRY(read_bounds(l));
  while (!l->ended && l->made < l->trips)
    LP_TRY(make_trip(l, call));
  for (size_t i = 0; i < node->n_output; i++) {
    lp_value *value = i < l->carried ? l->value[i] : NULL;
    if (!lp_text(node->output[i])[0]) continue;
    if (i < l->carried && l->list[i]) {
      lp_map_put(scope->lists, lp_text(node->output[i]), (void *)(uintptr_t)l->list[i]);
      continue;
    }
    if (i >= l->carried) LP_TRY(join_scan(l, i - l->carried, &value));
    LP_TRY(lp_scope_define(l->im, scope, lp_text(node->output[i]), value, l->loc));
  }
  return LP_OK;
}

lp_status lp_import_loop(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call,
                         lp_loc loc) {
  loop l = {.im = im, .scope = scope, .node = node, .loc = loc, .trips = INT64_MAX};
  lp_status status = unroll(&l, scope, call);
  lp_vec_free(&l.scan);
  return status;
}
