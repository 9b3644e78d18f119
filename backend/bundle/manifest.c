/* manifest.json, as docs/bundle.md describes it: files, sides, states, the steps of each program, plans. */
#include "backend/bundle/bundle_internal.h"

#include "backend/rows.h"
#include "backend/values.h"
#include "base/abi.h"
#include "base/path.h"
#include "base/poly.h"
#include "base/side.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static json_t *poly_json(const bundle *b, const lp_poly *poly) {
  lp_buf text = {0};
  lp_poly_print(poly, &b->module->symbols, &text);
  json_t *json = json_string(lp_buf_text(&text));
  lp_buf_free(&text);
  return json;
}

static json_t *shape_json(const bundle *b, const lp_poly *const *dim, int32_t rank) {
  json_t *shape = json_array();
  for (int32_t i = 0; i < rank; i++)
    json_array_append_new(shape, poly_json(b, dim[i]));
  return shape;
}

static void set_text(json_t *object, const char *key, const char *text) {
  json_object_set_new(object, key, json_string(text));
}

static void set_number(json_t *object, const char *key, int64_t number) {
  json_object_set_new(object, key, json_integer(number));
}

static void set_tensor(const bundle *b, json_t *object, const char *name, lp_type type) {
  set_text(object, "name", name);
  set_text(object, "dtype", lp_dtype_name(type.dtype));
  json_object_set_new(object, "shape", shape_json(b, type.dim, type.rank));
}

/* ---- files and sides --------------------------------------------------------------------------------------------- */

static json_t *files_json(const bundle *b) {
  json_t *files = json_object();
  for (int32_t i = 0; i < b->file_count; i++) {
    json_t *file = json_object();
    char crc[9];
    snprintf(crc, sizeof crc, "%08" PRIx32, b->file[i].crc32c);
    set_text(file, "sha256", b->file[i].sha256);
    set_text(file, "crc32c", crc);
    set_number(file, "bytes", (int64_t)b->file[i].bytes);
    json_object_set_new(files, b->file[i].path, file);
  }
  return files;
}

static json_t *sides_json(const bundle *b) {
  json_t *sides = json_object();
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    const bundle_side *side = &b->side[i];
    if (!side->present) continue;
    json_t *json = json_object();
    if (side->code_path) set_text(json, "code", side->code_path);
    if (side->kernels_path) set_text(json, "kernels", side->kernels_path);
    if (side->weights_path) set_text(json, "weights", side->weights_path);
    set_text(json, "triple", side->code.triple);
    set_text(json, "march", side->code.march);
    json_object_set_new(sides, lp_side_name(side->side), json);
  }
  return sides;
}

/* ---- states, inputs, outputs ------------------------------------------------------------------------------------- */

/* Does a program append to the state on the side, or move it from or to there? */
static bool state_on(const bundle *b, int64_t state, lp_side side) {
  LP_FOR_FUNCS(func, b->module) {
    LP_FOR_OPS(op, func->region) {
      if (op->kind != LP_OP_KV_APPEND && op->kind != LP_OP_COMM_KV_MOVE) continue;
      if (lp_op_i64(op, "state", -1) != state) continue;
      if (op->kind == LP_OP_KV_APPEND && lp_op_side(op) == side) return true;
      if (op->kind == LP_OP_COMM_KV_MOVE && (lp_op_side_attr(op, "from") == side || lp_op_side_attr(op, "to") == side))
        return true;
    }
  }
  return false;
}

static json_t *state_json(const bundle *b, const lp_op *op) {
  const lp_attr *shape = lp_op_attr(op, "shape");
  json_t *json = json_object(), *sides = json_array();
  set_text(json, "name", lp_op_str(op, "name", ""));
  set_text(json, "dtype", lp_op_str(op, "dtype", "f32"));
  json_object_set_new(json, "shape", shape_json(b, shape->polys, shape->count));
  set_number(json, "append_axis", lp_op_i64(op, "append_axis", 0));
  for (int i = 0; i < LP_SIDE_COUNT; i++)
    if (state_on(b, lp_op_i64(op, "index", 0), b->side[i].side))
      json_array_append_new(sides, json_string(lp_side_name(b->side[i].side)));
  json_object_set_new(json, "sides", sides);
  return json;
}

/* States are declared in the module or, by hand, in a function; `index` is their place in frame->state. */
static lp_status add_states(const bundle *b, const lp_block *block, json_t *states, lp_diag *diag) {
  LP_FOR_OPS(op, block) {
    if (op->kind != LP_OP_STATE) continue;
    if (lp_op_i64(op, "index", -1) != (int64_t)json_array_size(states))
      return lp_error(diag, op->loc, "KV cache %" PRId64 " is declared as number %zu", lp_op_i64(op, "index", -1),
                      json_array_size(states));
    json_array_append_new(states, state_json(b, op));
  }
  return LP_OK;
}

static const char *text_at(const lp_op *func, const char *name, int32_t index, const char *otherwise) {
  const lp_attr *attr = lp_op_attr(func, name);
  return attr && attr->kind == LP_ATTR_STRS && index < attr->count ? attr->ss[index] : otherwise;
}

/* Both programs have the same inputs and outputs; decode's shapes are the general ones. */
static const lp_op *model_func(const bundle *b) {
  const lp_op *func = lp_module_find_func(b->module, "decode");
  if (func) return func;
  LP_FOR_OPS(op, lp_module_body(b->module)) {
    if (op->kind == LP_OP_FUNC) return op;
  }
  return NULL;
}

static json_t *inputs_json(const bundle *b, const lp_op *func) {
  json_t *inputs = json_array();
  for (int32_t i = 0; i < func->region->arg_count; i++) {
    json_t *json = json_object();
    set_tensor(b, json, text_at(func, "inputs", i, "input"), func->region->arg[i]->type);
    set_text(json, "role", text_at(func, "input_roles", i, "data"));
    json_array_append_new(inputs, json);
  }
  return inputs;
}

static json_t *outputs_json(const bundle *b, const lp_op *func) {
  json_t *outputs = json_array();
  const lp_op *end = lp_block_terminator(func->region);
  for (int32_t i = 0; i < end->in_count; i++) {
    json_t *json = json_object();
    set_tensor(b, json, text_at(func, "outputs", i, "output"), lp_op_in(end, i)->type);
    set_text(json, "role", text_at(func, "output_roles", i, "data"));
    json_array_append_new(outputs, json);
  }
  return outputs;
}

/* The outputs of role exit_logits, in order, are those of the function's `exits`. */
static json_t *exits_json(const lp_op *func) {
  json_t *exits = json_array();
  const lp_attr *layer = lp_op_attr(func, "exits");
  const lp_op *end = lp_block_terminator(func->region);
  for (int32_t i = 0, next = 0; layer && i < end->in_count && next < layer->count; i++) {
    if (!lp_streq(text_at(func, "output_roles", i, ""), "exit_logits")) continue;
    json_t *exit = json_object();
    set_number(exit, "layer", layer->is[next++]);
    set_number(exit, "output", i);
    json_array_append_new(exits, exit);
  }
  return exits;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* A program being written. */
typedef struct {
  const bundle *b;
  const lp_op *func;
  json_t *steps;
  const lp_code_program *code[LP_SIDE_COUNT]; /* NULL: the side runs nothing */
  int64_t ran[LP_SIDE_COUNT];                 /* the segment whose step was written last, -1 none */
  json_t *parts[LP_SIDE_COUNT];               /* that step's operators when the function is profiled; else NULL */
  lp_diag *diag;
} program;

static json_t *add_step(const program *p, const char *op) {
  json_t *step = json_object();
  set_text(step, "op", op);
  json_array_append_new(p->steps, step);
  return step;
}

/* Says which rows the buffer holds, so that a batched pass holds those of all sequences in it. */
static void set_rows(const program *p, json_t *step, lp_value *value) {
  static const char *const names[] = {[LP_ROWS_NEW] = "s", [LP_ROWS_LAST] = "r"};
  lp_rows rows = lp_value_rows(p->b->module, value);
  if (rows != LP_ROWS_NONE) set_text(step, "rows", names[rows]);
}

static void add_inputs(const program *p) {
  for (int s = 0; s < LP_SIDE_COUNT; s++)
    for (int32_t i = 0; i < p->func->region->arg_count; i++) {
      int64_t buffer = lp_value_buffer(p->func->region->arg[i], (lp_side)s);
      if (buffer < 0) continue;
      json_t *step = add_step(p, "input");
      set_text(step, "side", lp_side_name((lp_side)s));
      set_number(step, "input", i);
      set_number(step, "buffer", buffer);
      set_rows(p, step, p->func->region->arg[i]);
    }
}

static void add_segment(program *p, const lp_op *op, lp_side side, int64_t segment) {
  const lp_code_program *code = p->code[side];
  p->ran[side] = segment;
  p->parts[side] = NULL;
  if (!code->segment[segment]) return;
  json_t *step = add_step(p, "run");
  set_text(step, "side", lp_side_name(side));
  set_text(step, "segment", code->segment[segment]);
  if (lp_op_attr(op, "exit")) set_number(step, "exit", lp_op_i64(op, "exit", 0));
  if (!lp_op_bool(p->func, "profiled", false)) return;
  p->parts[side] = json_array();
  json_object_set_new(step, "parts", p->parts[side]);
}

static void add_run(program *p, const lp_op *op) {
  lp_side side = lp_op_side(op);
  int64_t segment = lp_op_i64(op, "segment", 0);
  if (!p->code[side] || segment >= p->code[side]->segment_count) return;
  if (segment != p->ran[side]) add_segment(p, op, side, segment);
  if (!p->parts[side] || lp_op_has(op, LP_ALIAS)) return;
  json_array_append_new(p->parts[side],
                        json_sprintf("%s %s", lp_op_info_get(op->kind)->name, lp_op_str(op, "name", "")));
}

static const lp_op *find_send(const lp_block *block, int64_t tag) {
  LP_FOR_OPS(op, block) {
    if (op->kind == LP_OP_COMM_SEND && lp_op_i64(op, "tag", -1) == tag) return op;
  }
  return NULL;
}

/* The pair becomes one step, where the receiver stands. */
static lp_status add_send(const program *p, const lp_op *recv) {
  const lp_op *send = find_send(p->func->region, lp_op_i64(recv, "tag", -1));
  if (!send) return lp_error(p->diag, recv->loc, "nothing is sent with the tag %" PRId64, lp_op_i64(recv, "tag", -1));
  const lp_value *value = lp_op_in(send, 0);
  lp_side sender = lp_op_side_attr(send, "from"), receiver = lp_op_side_attr(recv, "to");
  int64_t from = sender < LP_SIDE_COUNT ? lp_value_buffer(value, sender) : -1;
  int64_t to = receiver < LP_SIDE_COUNT ? lp_value_buffer(recv->out[0], receiver) : -1;
  if (from < 0 || to < 0) return lp_error(p->diag, send->loc, "what is sent has no buffer");
  const char *name = value->name ? value->name : lp_op_str(send, "name", NULL);
  if (!name && value->def) name = lp_op_str(value->def, "name", NULL);
  json_t *step = add_step(p, "send");
  set_text(step, "from", lp_op_str(send, "from", ""));
  set_text(step, "to", lp_op_str(recv, "to", ""));
  set_number(step, "from_buffer", from);
  set_number(step, "to_buffer", to);
  set_tensor(p->b, step, name ? name : "tensor", value->type);
  set_rows(p, step, recv->out[0]);
  return LP_OK;
}

static void add_move(const program *p, const lp_op *op) {
  json_t *step = add_step(p, "move");
  set_text(step, "from", lp_op_str(op, "from", ""));
  set_text(step, "to", lp_op_str(op, "to", ""));
  set_number(step, "state", lp_op_i64(op, "state", 0));
}

static bool is_exit(const program *p, int32_t output) {
  return lp_streq(text_at(p->func, "output_roles", output, ""), "exit_logits");
}

static lp_status add_output(const program *p, int32_t output) {
  lp_value *value = lp_op_in(lp_block_terminator(p->func->region), output);
  lp_side side = value->def ? lp_op_side(value->def) : LP_SIDE_DEVICE;
  int64_t buffer = lp_value_buffer(value, side);
  if (buffer < 0)
    return lp_error(p->diag, value->def ? value->def->loc : p->func->loc, "result '%s' has no buffer",
                    text_at(p->func, "outputs", output, "output"));
  json_t *step = add_step(p, "output");
  set_text(step, "side", lp_side_name(side));
  set_number(step, "output", output);
  set_number(step, "buffer", buffer);
  set_rows(p, step, value);
  return LP_OK;
}

/* An exit's logits are output before the operators after the exit run; all other results at the end. */
static lp_status add_outputs(const program *p, const lp_op *made_by) {
  const lp_op *end = lp_block_terminator(p->func->region);
  for (int32_t i = 0; i < end->in_count; i++) {
    const lp_op *def = lp_op_in(end, i)->def;
    bool now = made_by ? is_exit(p, i) && def == made_by : !is_exit(p, i) || !def || !lp_op_is_run(def);
    if (now) LP_TRY(add_output(p, i));
  }
  return LP_OK;
}

static lp_status add_steps(program *p) {
  add_inputs(p);
  LP_FOR_OPS(op, p->func->region) {
    if (op->kind == LP_OP_COMM_RECV)
      LP_TRY(add_send(p, op));
    else if (op->kind == LP_OP_COMM_KV_MOVE)
      add_move(p, op);
    else if (lp_op_is_run(op)) {
      add_run(p, op);
      LP_TRY(add_outputs(p, op));
    }
  }
  return add_outputs(p, NULL);
}

static const lp_code_program *find_code(const bundle_side *side, const char *name) {
  for (int32_t i = 0; side->present && i < side->code.program_count; i++)
    if (lp_streq(side->code.program[i].name, name)) return &side->code.program[i];
  return NULL;
}

static lp_status add_program(const bundle *b, const lp_op *func, json_t *programs, lp_diag *diag) {
  const char *name = lp_op_str(func, "sym_name", "main");
  json_t *json = json_object(), *layout = json_object(), *buffers = json_object();
  program p = {.b = b, .func = func, .steps = json_array(), .diag = diag};
  for (int s = 0; s < LP_SIDE_COUNT; s++) {
    p.ran[s] = -1;
    p.code[s] = find_code(&b->side[s], name);
    if (!p.code[s]) continue;
    set_text(layout, lp_side_name((lp_side)s), p.code[s]->layout);
    set_number(buffers, lp_side_name((lp_side)s), p.code[s]->buffers);
  }
  lp_status status = add_steps(&p);
  json_object_set_new(json, "layout", layout);
  json_object_set_new(json, "buffers", buffers);
  json_object_set_new(json, "steps", p.steps);
  json_object_set_new(programs, name, json);
  return status;
}

/* ---- plans of a family ------------------------------------------------------------------------------------------- */

/* A region: the plan, then low and high along each axis; high below 0 is open. */
static const char *const axes[] = {"prompt_tokens", "generated_tokens", "rtt_ms", "up_bps"};
enum { AXES = LP_COUNT(axes), REGION_NUMBERS = 1 + 2 * AXES };

static const lp_attr *find_attr(const bundle *b, const char *name, lp_attr_kind kind) {
  const lp_op *func = lp_module_find_func(b->module, "prefill");
  const lp_attr *attr = func ? lp_op_attr(func, name) : NULL;
  return attr && attr->kind == kind ? attr : NULL;
}

static json_t *region_json(const double *numbers) {
  json_t *region = json_object();
  for (size_t i = 0; i < AXES; i++) {
    double high = numbers[2 * i + 1];
    json_object_set_new(region, axes[i], json_pack("[f, o]", numbers[2 * i], high < 0 ? json_null() : json_real(high)));
  }
  return region;
}

/* The member `plans`, from the attributes that the pass `place` left on the first prefill: the programs of each plan of
 * the family and the requests it serves. NULL when there is only one plan. */
static json_t *plans_json(const bundle *b) {
  const lp_attr *prefill = find_attr(b, "plan_prefill", LP_ATTR_STRS),
                *decode = find_attr(b, "plan_decode", LP_ATTR_STRS);
  const lp_attr *numbers = find_attr(b, "plan_regions", LP_ATTR_F64S);
  if (!prefill || !decode || !numbers || prefill->count != decode->count || prefill->count < 2) return NULL;
  json_t *plans = json_array();
  for (int32_t i = 0; i < prefill->count; i++) {
    json_t *regions = json_array();
    for (int32_t k = 0; k + REGION_NUMBERS <= numbers->count; k += REGION_NUMBERS)
      if ((int32_t)numbers->fs[k] == i) json_array_append_new(regions, region_json(&numbers->fs[k + 1]));
    json_array_append_new(
        plans, json_pack("{s:s, s:s, s:o}", "prefill", prefill->ss[i], "decode", decode->ss[i], "regions", regions));
  }
  return plans;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* "dir/smollm2.onnx" is "smollm2". */
static void set_name(const bundle *b, json_t *root) {
  const char *base = lp_path_base(b->module->name ? b->module->name : "model");
  size_t length = strlen(base);
  if (lp_has_suffix(base, ".onnx")) length -= strlen(".onnx");
  json_object_set_new(root, "name", json_stringn(base, length));
}

static json_t *symbols_json(const bundle *b) {
  json_t *symbols = json_array();
  for (size_t i = 0; i < b->module->symbols.names.count; i++)
    json_array_append_new(symbols, json_string(b->module->symbols.names.data[i]));
  return symbols;
}

static lp_status add_model(const bundle *b, json_t *root, lp_diag *diag) {
  const lp_op *func = model_func(b);
  if (!func) return lp_error(diag, LP_LOC_NONE, "the module has no function");
  json_t *states = json_array(), *programs = json_object();
  json_object_set_new(root, "states", states);
  json_object_set_new(root, "inputs", inputs_json(b, func));
  json_object_set_new(root, "outputs", outputs_json(b, func));
  if (lp_op_attr(func, "exits")) json_object_set_new(root, "exits", exits_json(func));
  json_object_set_new(root, "programs", programs);
  json_t *plans = plans_json(b);
  if (plans) json_object_set_new(root, "plans", plans);
  LP_TRY(add_states(b, lp_module_body(b->module), states, diag));
  if (json_array_size(states) == 0) LP_TRY(add_states(b, func->region, states, diag));
  LP_FOR_OPS(op, lp_module_body(b->module)) {
    if (op->kind == LP_OP_FUNC) LP_TRY(add_program(b, op, programs, diag));
  }
  return LP_OK;
}

/* The graph's own bound holds in any case; a model without one, as with rotary positions, has what its files say. */
static int64_t context_of(const bundle *b) {
  int64_t graph = b->request->context, files = b->settings.context;
  return graph == 0 || (files > 0 && files < graph) ? files : graph;
}

static void add_settings(const bundle *b, json_t *root) {
  const bundle_settings *settings = &b->settings;
  json_t *stops = json_array(), *sampling = json_object();
  for (size_t i = 0; i < settings->stops.count; i++)
    json_array_append_new(stops, json_integer(settings->stops.data[i]));
  json_object_set_new(sampling, "temperature", json_real(settings->temperature));
  set_number(sampling, "top_k", settings->top_k);
  json_object_set_new(sampling, "top_p", json_real(settings->top_p));
  if (settings->stops.count > 0) json_object_set(root, "stops", stops);
  if (settings->samples) json_object_set(root, "sampling", sampling);
  json_decref(stops);
  json_decref(sampling);
}

lp_status lp_bundle_manifest(const bundle *b, lp_buf *out, lp_diag *diag) {
  json_t *root = json_object();
  set_text(root, "schema", "llmpart.bundle/1");
  set_name(b, root);
  set_number(root, "abi", LP_ABI_VERSION);
  json_object_set_new(root, "symbols", symbols_json(b));
  set_number(root, "context", context_of(b));
  set_number(root, "vocab", b->request->vocab);
  json_object_set_new(root, "tokenizer", b->has_tokenizer ? json_string("tokenizer.json") : json_null());
  add_settings(b, root);
  json_object_set_new(root, "files", files_json(b));
  json_object_set_new(root, "sides", sides_json(b));
  lp_status status = add_model(b, root, diag);
  if (status == LP_OK) {
    char *text = json_dumps(root, JSON_INDENT(1));
    lp_buf_puts(out, text);
    lp_buf_puts(out, "\n");
    free(text);
  }
  json_decref(root);
  return status;
}
