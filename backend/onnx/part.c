/* Splits a program into the turns of its sides, and names the tensors that cross between them. */
#include "backend/onnx/part.h"

#include "backend/values.h"
#include "base/map.h"

typedef struct {
  lp_module *module;
  lp_arena *arena;
  onnx_program *out;
  lp_map *owner; /* operator -> its part */
  lp_map *sent;  /* tag -> the value that was sent */
  lp_map *name;  /* value -> name */
  lp_map *taken;
  lp_diag *diag;
} splitter;

static const char *key_of(const splitter *s, const void *thing) {
  return lp_arena_format(s->arena, "%p", thing);
}

/* The value on the side that computed it, found through communication. */
static const lp_value *origin(const splitter *s, const lp_value *value) {
  while (value->def && value->def->kind == LP_OP_COMM_RECV) {
    const char *tag = lp_arena_format(s->arena, "%" PRId64, lp_op_i64(value->def, "tag", -1));
    const lp_value *sent = lp_map_get(s->sent, tag);
    if (!sent) break;
    value = sent;
  }
  return value;
}

static onnx_part *owner_of(const splitter *s, const lp_value *value) {
  return value->def ? lp_map_get(s->owner, key_of(s, value->def)) : NULL;
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

static void add_part(splitter *s, lp_place side) {
  onnx_part *part = LP_NEW(s->arena, onnx_part);
  part->side = side;
  for (size_t i = 0; i < s->out->parts.count; i++)
    part->turn += s->out->parts.data[i]->side == side;
  lp_vec_push(&s->out->parts, part);
}

static void split(splitter *s) {
  bool open = false;
  LP_FOR_OPS(op, s->out->func->region) {
    if (lp_op_has(op, LP_COMM)) open = false;
    if (op->kind == LP_OP_COMM_SEND)
      lp_map_put(s->sent, lp_arena_format(s->arena, "%" PRId64, lp_op_i64(op, "tag", -1)), lp_op_in(op, 0));
    if (!lp_op_is_run(op)) continue;
    size_t count = s->out->parts.count;
    if (!open || s->out->parts.data[count - 1]->side != lp_op_at(op)) add_part(s, lp_op_at(op));
    open = true;
    onnx_part *part = s->out->parts.data[s->out->parts.count - 1];
    lp_vec_push(&part->ops, op);
    lp_map_put(s->owner, key_of(s, op), part);
  }
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static const char *text_at(const lp_op *func, const char *list, int32_t index) {
  const lp_attr *attr = lp_op_attr(func, list);
  return attr && attr->kind == LP_ATTR_STRS && index < attr->count ? attr->ss[index] : NULL;
}

static const char *take_name(const splitter *s, const char *wanted) {
  const char *name = wanted;
  for (int n = 2; lp_map_has(s->taken, name); n++)
    name = lp_arena_format(s->arena, "%s.%d", wanted, n);
  lp_map_put(s->taken, name, NULL);
  return name;
}

static const char *state_name(const splitter *s, int64_t index) {
  LP_FOR_OPS(op, lp_module_body(s->module))
    if (op->kind == LP_OP_STATE && lp_op_i64(op, "index", -1) == index) return lp_op_str(op, "name", "state");
  return lp_arena_format(s->arena, "state.%" PRId64, index);
}

static int64_t appended_state(const lp_value *value) {
  return lp_op_is(value->def, LP_OP_KV_APPEND) ? lp_op_i64(value->def, "state", 0) : -1;
}

/* The name of the value in the model, else that of its operator. */
static const char *natural_name(const splitter *s, const lp_value *value) {
  const lp_op *end = lp_block_terminator(s->out->func->region);
  const char *name = value->def ? NULL : text_at(s->out->func, "inputs", value->index);
  if (appended_state(value) >= 0) name = lp_arena_format(s->arena, "present.%s", state_name(s, appended_state(value)));
  for (int32_t i = 0; i < end->in_count && !name; i++)
    if (lp_op_in(end, i) && origin(s, lp_op_in(end, i)) == value) name = text_at(s->out->func, "outputs", i);
  if (!name) name = value->name;
  if (!name && value->def) name = lp_op_str(value->def, "name", NULL);
  return name ? name : "value";
}

static const char *name_of(const splitter *s, const lp_value *value) {
  const char *key = key_of(s, value), *name = lp_map_get(s->name, key);
  if (name) return name;
  name = take_name(s, natural_name(s, value));
  lp_map_put(s->name, key, (void *)(uintptr_t)name);
  return name;
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

static bool has_port(const onnx_ports *ports, const lp_value *value, const char *name) {
  for (size_t i = 0; i < ports->count; i++)
    if ((value && ports->data[i].value == value) || lp_streq(ports->data[i].name, name)) return true;
  return false;
}

static void add_port(onnx_ports *ports, onnx_port port) {
  if (!has_port(ports, port.value, port.name)) lp_vec_push(ports, port);
}

/* Adds the ports of a value that a part reads: it enters this part, and leaves the part that computes it. */
static void read_value(const splitter *s, onnx_part *part, const lp_value *value) {
  if (!value || lp_value_is_constant(value)) return;
  const lp_value *from = origin(s, value);
  onnx_part *owner = owner_of(s, from);
  if (owner == part) return;
  onnx_role role = owner ? ONNX_PORT_CUT : ONNX_PORT_DATA;
  onnx_port port = {.role = role, .name = name_of(s, from), .type = from->type, .value = value, .state = -1};
  if (appended_state(from) >= 0) port.role = ONNX_PORT_PRESENT, port.state = appended_state(from);
  add_port(&part->in, port);
  port.value = from;
  if (owner) add_port(&owner->out, port);
}

/* Adds the cache's rows before this step: where the result has p + s rows, the past has p. */
static void add_cache(const splitter *s, onnx_part *part, const lp_op *op) {
  const lp_value *result = op->out[0];
  int64_t state = lp_op_i64(op, "state", 0);
  const lp_poly *dims[LP_MAX_RANK];
  for (int32_t i = 0; i < result->type.rank; i++)
    dims[i] = i == 2 ? lp_dim_symbol(s->module, "p") : result->type.dim[i];
  lp_type type = lp_type_make(s->module, result->type.dtype, result->type.rank, dims);
  const char *past = lp_arena_format(s->arena, "past.%s", state_name(s, state));
  add_port(&part->in, (onnx_port){ONNX_PORT_PAST, past, type, NULL, state});
  add_port(&part->out, (onnx_port){ONNX_PORT_PRESENT, name_of(s, result), result->type, result, state});
}

static void find_ports(const splitter *s) {
  LP_FOR_VEC_REFS(onnx_part, part, &s->out->parts) {
    LP_FOR_VEC_REFS(const lp_op, op, &part->ops) {
      for (int32_t n = 0; n < op->in_count; n++)
        read_value(s, part, lp_op_in(op, n));
      if (op->kind == LP_OP_KV_APPEND) add_cache(s, part, op);
    }
  }
}

/* Results leave the part that computes them. An input or a constant that is a result leaves the first part. */
static lp_status find_results(const splitter *s) {
  const lp_op *end = lp_block_terminator(s->out->func->region);
  for (int32_t i = 0; i < end->in_count; i++) {
    const lp_value *value = lp_op_in(end, i), *from = origin(s, value);
    onnx_part *owner = owner_of(s, from);
    if (!owner) {
      owner = s->out->parts.data[0];
      read_value(s, owner, value);
    }
    const char *wanted = text_at(s->out->func, "outputs", i), *name = name_of(s, from);
    if (wanted && !lp_streq(wanted, name)) name = take_name(s, wanted);
    onnx_port port = {ONNX_PORT_DATA, name, from->type, from, -1};
    bool known = false;
    for (size_t k = 0; k < owner->out.count && !known; k++)
      if (lp_streq(owner->out.data[k].name, name)) owner->out.data[k].role = ONNX_PORT_DATA, known = true;
    if (!known) lp_vec_push(&owner->out, port);
  }
  return LP_OK;
}

lp_status onnx_program_create(lp_module *module, const lp_op *func, lp_arena *arena, onnx_program *out, lp_diag *diag) {
  *out = (onnx_program){.func = func, .name = lp_op_str(func, "sym_name", "main")};
  splitter s = {module, arena, out, lp_map_create(), lp_map_create(), lp_map_create(), lp_map_create(), diag};
  split(&s);
  lp_status status = LP_OK;
  if (out->parts.count == 0)
    status = lp_error(diag, func->loc, "function '%s' computes nothing", out->name);
  else
    find_ports(&s);
  if (status == LP_OK) status = find_results(&s);
  lp_map *const maps[] = {s.owner, s.sent, s.name, s.taken};
  for (size_t i = 0; i < LP_COUNT(maps); i++)
    lp_map_free(maps[i]);
  return status;
}

void onnx_program_free(onnx_program *program) {
  LP_FOR_VEC_REFS(onnx_part, part, &program->parts) {
    lp_vec_free(&part->ops);
    lp_vec_free(&part->in);
    lp_vec_free(&part->out);
    lp_buf_free(&part->bytes);
  }
  lp_vec_free(&program->parts);
}
