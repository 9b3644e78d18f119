/* Writes manifest.json, as docs/bundle.md describes it: sides, states, the steps of each program, the plans of a
 * family, and files. */
#include "backend/bundle/bundle_internal.h"

#include "backend/rows.h"
#include "backend/values.h"
#include "base/abi.h"
#include "base/digest.h"
#include "base/json/writer.h"
#include "base/path.h"
#include "base/poly.h"
#include "base/seal.h"
#include "base/side.h"

#include <string.h>

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static void put_shape(lp_json_writer *w, const bundle *b, const lp_poly *const *dim, int32_t rank) {
  lp_json_put_array(w, "shape");
  for (int32_t i = 0; i < rank; i++)
    lp_json_put_poly(w, NULL, dim[i], &b->module->symbols);
  lp_json_put_end(w);
}

static void put_tensor(lp_json_writer *w, const bundle *b, const char *name, lp_type type) {
  lp_json_put_text(w, "name", name);
  lp_json_put_text(w, "dtype", lp_dtype_name(type.dtype));
  put_shape(w, b, type.dim, type.rank);
}

/* ---- files and sides --------------------------------------------------------------------------------------------- */

static void put_files(lp_json_writer *w, const bundle *b) {
  lp_json_put_object(w, "files");
  for (int32_t i = 0; i < b->file_count; i++) {
    const bundle_file *file = &b->file[i];
    lp_json_put_object(w, file->path);
    lp_json_put_text(w, "sha256", file->sha256);
    lp_json_put_text(w, "crc32c", lp_arena_format(b->arena, "%08" PRIx32, file->crc32c));
    lp_json_put_integer(w, "bytes", (int64_t)file->bytes);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

static void put_half(lp_json_writer *w, const bundle_side *side) {
  if (side->code_path) lp_json_put_text(w, "code", side->code_path);
  if (side->kernels_path) lp_json_put_text(w, "kernels", side->kernels_path);
  if (side->weights_path) lp_json_put_text(w, "weights", side->weights_path);
  if (side->weights_path) lp_json_put_integer(w, "weight_bytes", side->code.weight_bytes);
  lp_json_put_text(w, "triple", side->code.triple);
  lp_json_put_text(w, "march", side->code.march);
  if (side->code.level) lp_json_put_text(w, "level", side->code.level);
}

static void put_sides(lp_json_writer *w, const bundle *b) {
  lp_json_put_object(w, "sides");
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    const bundle_side *side = &b->side[i];
    if (!side->present) continue;
    lp_json_put_object(w, lp_side_name(side->side));
    put_half(w, side);
    if (b->request->machine[i]) lp_json_put_text(w, "machine", b->request->machine[i]);
    if (side->fallback) {
      lp_json_put_object(w, "fallback");
      put_half(w, side->fallback);
      lp_json_put_end(w);
    }
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

/* ---- states, inputs, outputs ------------------------------------------------------------------------------------- */

/* Tells whether a program appends to the state on the side, or moves it from or to there. */
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

static void put_state(lp_json_writer *w, const bundle *b, const lp_op *op) {
  const lp_attr *shape = lp_op_attr(op, "shape");
  lp_json_put_object(w, NULL);
  lp_json_put_text(w, "name", lp_op_str(op, "name", ""));
  lp_json_put_text(w, "dtype", lp_op_str(op, "dtype", "f32"));
  put_shape(w, b, shape->polys, shape->count);
  lp_json_put_integer(w, "append_axis", lp_op_i64(op, "append_axis", 0));
  lp_json_put_array(w, "sides");
  for (int i = 0; i < LP_SIDE_COUNT; i++)
    if (state_on(b, lp_op_i64(op, "index", 0), b->side[i].side))
      lp_json_put_text(w, NULL, lp_side_name(b->side[i].side));
  lp_json_put_end(w);
  lp_json_put_end(w);
}

/* Writes the states that a block declares; `index` is their place in frame->state. */
static lp_status put_declared(lp_json_writer *w, const bundle *b, const lp_block *block, int64_t *count,
                              lp_diag *diag) {
  LP_FOR_OPS(op, block) {
    if (op->kind != LP_OP_STATE) continue;
    int64_t index = lp_op_i64(op, "index", -1);
    if (index != *count)
      return lp_error(diag, op->loc, "KV cache %" PRId64 " is declared as number %" PRId64, index, *count);
    put_state(w, b, op);
    (*count)++;
  }
  return LP_OK;
}

/* The passes declare states in the module; modules written by hand may declare them in a function. */
static lp_status put_states(lp_json_writer *w, const bundle *b, const lp_op *func, lp_diag *diag) {
  int64_t count = 0;
  lp_json_put_array(w, "states");
  LP_TRY(put_declared(w, b, lp_module_body(b->module), &count, diag));
  if (count == 0) LP_TRY(put_declared(w, b, func->region, &count, diag));
  lp_json_put_end(w);
  return LP_OK;
}

static const char *text_at(const lp_op *func, const char *name, int32_t index, const char *otherwise) {
  const lp_attr *attr = lp_op_attr(func, name);
  return attr && attr->kind == LP_ATTR_STRS && index < attr->count ? attr->ss[index] : otherwise;
}

/* The function that states the model's inputs and outputs. Prefill and decode have the same ones, but only decode has
 * their general shapes. */
static const lp_op *model_func(const bundle *b) {
  const lp_op *func = lp_module_find_func(b->module, "decode");
  if (func) return func;
  LP_FOR_FUNCS(first, b->module)
  return first;
  return NULL;
}

static void put_port(lp_json_writer *w, const bundle *b, const char *name, const char *role, lp_type type) {
  lp_json_put_object(w, NULL);
  put_tensor(w, b, name, type);
  lp_json_put_text(w, "role", role);
  lp_json_put_end(w);
}

static void put_inputs(lp_json_writer *w, const bundle *b, const lp_op *func) {
  lp_json_put_array(w, "inputs");
  for (int32_t i = 0; i < func->region->arg_count; i++)
    put_port(w, b, text_at(func, "inputs", i, "input"), text_at(func, "input_roles", i, "data"),
             func->region->arg[i]->type);
  lp_json_put_end(w);
}

static void put_outputs(lp_json_writer *w, const bundle *b, const lp_op *func) {
  const lp_op *end = lp_block_terminator(func->region);
  lp_json_put_array(w, "outputs");
  for (int32_t i = 0; i < end->in_count; i++)
    put_port(w, b, text_at(func, "outputs", i, "output"), text_at(func, "output_roles", i, "data"),
             lp_op_in(end, i)->type);
  lp_json_put_end(w);
}

static bool is_exit(const lp_op *func, int32_t output) {
  return lp_streq(text_at(func, "output_roles", output, ""), "exit_logits");
}

/* The outputs of role exit_logits are those of the layers in the attribute `exits`, in its order. */
static void put_exits(lp_json_writer *w, const lp_op *func) {
  const lp_attr *layer = lp_op_attr(func, "exits");
  if (!layer) return;
  const lp_op *end = lp_block_terminator(func->region);
  lp_json_put_array(w, "exits");
  for (int32_t i = 0, next = 0; i < end->in_count && next < layer->count; i++) {
    if (!is_exit(func, i)) continue;
    lp_json_put_object(w, NULL);
    lp_json_put_integer(w, "layer", layer->is[next++]);
    lp_json_put_integer(w, "output", i);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* A program being written. */
typedef struct {
  lp_json_writer *w;
  const bundle *b;
  const lp_op *func;
  const lp_code_program *code[LP_SIDE_COUNT];     /* NULL: the side runs nothing */
  const lp_code_program *fallback[LP_SIDE_COUNT]; /* NULL: the side has none */
  int64_t ran[LP_SIDE_COUNT];                     /* the segment of the last `run` step written; -1: none */
  lp_diag *diag;
} program;

/* Opens a step; lp_json_put_end closes it. */
static void begin_step(const program *p, const char *op) {
  lp_json_put_object(p->w, NULL);
  lp_json_put_text(p->w, "op", op);
}

/* Says which rows the buffer holds. In a batched pass the buffer holds those rows of all sequences. */
static void put_rows(const program *p, lp_value *value) {
  static const char *const names[] = {[LP_ROWS_NEW] = "s", [LP_ROWS_LAST] = "r"};
  lp_rows rows = lp_value_rows(p->b->module, value);
  if (rows != LP_ROWS_NONE) lp_json_put_text(p->w, "rows", names[rows]);
}

static void put_input_steps(const program *p) {
  for (int s = 0; s < LP_SIDE_COUNT; s++)
    for (int32_t i = 0; i < p->func->region->arg_count; i++) {
      int64_t buffer = lp_value_buffer(p->func->region->arg[i], (lp_side)s);
      if (buffer < 0) continue;
      begin_step(p, "input");
      lp_json_put_text(p->w, "side", lp_side_name((lp_side)s));
      lp_json_put_integer(p->w, "input", i);
      lp_json_put_integer(p->w, "buffer", buffer);
      put_rows(p, p->func->region->arg[i]);
      lp_json_put_end(p->w);
    }
}

/* The operators of a segment, for the profile. `op` is the first of them; the other side's operators may stand among
 * them. */
static void put_parts(const program *p, const lp_op *op, lp_side side, int64_t segment) {
  lp_json_put_array(p->w, "parts");
  for (; op; op = op->next) {
    if (!lp_op_is_run(op) || lp_op_side(op) != side) continue;
    if (lp_op_i64(op, "segment", 0) != segment) break;
    if (lp_op_has(op, LP_ALIAS) || lp_op_only_reads(op)) continue;
    lp_json_put_text(p->w, NULL,
                     lp_arena_format(p->b->arena, "%s %s", lp_op_info_get(op->kind)->name, lp_op_str(op, "name", "")));
  }
  lp_json_put_end(p->w);
}

/* Writes the step of a segment at its first operator. */
static void put_run_step(program *p, const lp_op *op) {
  lp_side side = lp_op_side(op);
  int64_t segment = lp_op_i64(op, "segment", 0);
  const lp_code_program *code = p->code[side];
  if (!code || segment >= code->segment_count || segment == p->ran[side]) return;
  p->ran[side] = segment;
  if (!code->segment[segment]) return;
  begin_step(p, "run");
  lp_json_put_text(p->w, "side", lp_side_name(side));
  lp_json_put_text(p->w, "segment", code->segment[segment]);
  if (p->fallback[side]) lp_json_put_text(p->w, "fallback", p->fallback[side]->segment[segment]);
  if (lp_op_attr(op, "exit")) lp_json_put_integer(p->w, "exit", lp_op_i64(op, "exit", 0));
  if (lp_op_bool(p->func, "profiled", false)) put_parts(p, op, side, segment);
  lp_json_put_end(p->w);
}

static const lp_op *find_send(const lp_block *block, int64_t tag) {
  LP_FOR_OPS(op, block) {
    if (op->kind == LP_OP_COMM_SEND && lp_op_i64(op, "tag", -1) == tag) return op;
  }
  return NULL;
}

static const char *sent_name(const lp_op *send) {
  const lp_value *value = lp_op_in(send, 0);
  const char *name = value->name ? value->name : lp_op_str(send, "name", NULL);
  if (!name && value->def) name = lp_op_str(value->def, "name", NULL);
  return name ? name : "tensor";
}

/* Writes one step for the pair of comm.send and comm.recv, at the place of the latter. */
static lp_status put_send_step(const program *p, const lp_op *recv) {
  const lp_op *send = find_send(p->func->region, lp_op_i64(recv, "tag", -1));
  if (!send) return lp_error(p->diag, recv->loc, "no 'comm.send' has the tag %" PRId64, lp_op_i64(recv, "tag", -1));
  const lp_value *value = lp_op_in(send, 0);
  lp_side sender = lp_op_side_attr(send, "from"), receiver = lp_op_side_attr(recv, "to");
  int64_t from = sender < LP_SIDE_COUNT ? lp_value_buffer(value, sender) : -1;
  int64_t to = receiver < LP_SIDE_COUNT ? lp_value_buffer(recv->out[0], receiver) : -1;
  if (from < 0 || to < 0) return lp_error(p->diag, send->loc, "the tensor that is sent has no buffer");
  begin_step(p, "send");
  lp_json_put_text(p->w, "from", lp_op_str(send, "from", ""));
  lp_json_put_text(p->w, "to", lp_op_str(recv, "to", ""));
  lp_json_put_integer(p->w, "from_buffer", from);
  lp_json_put_integer(p->w, "to_buffer", to);
  put_tensor(p->w, p->b, sent_name(send), value->type);
  put_rows(p, recv->out[0]);
  lp_json_put_end(p->w);
  return LP_OK;
}

static void put_move_step(const program *p, const lp_op *op) {
  begin_step(p, "move");
  lp_json_put_text(p->w, "from", lp_op_str(op, "from", ""));
  lp_json_put_text(p->w, "to", lp_op_str(op, "to", ""));
  lp_json_put_integer(p->w, "state", lp_op_i64(op, "state", 0));
  lp_json_put_end(p->w);
}

static lp_status put_output_step(const program *p, int32_t output) {
  lp_value *value = lp_op_in(lp_block_terminator(p->func->region), output);
  lp_side side = value->def ? lp_op_side(value->def) : LP_SIDE_DEVICE;
  int64_t buffer = lp_value_buffer(value, side);
  if (buffer < 0)
    return lp_error(p->diag, value->def ? value->def->loc : p->func->loc, "result '%s' has no buffer",
                    text_at(p->func, "outputs", output, "output"));
  begin_step(p, "output");
  lp_json_put_text(p->w, "side", lp_side_name(side));
  lp_json_put_integer(p->w, "output", output);
  lp_json_put_integer(p->w, "buffer", buffer);
  put_rows(p, value);
  lp_json_put_end(p->w);
  return LP_OK;
}

/* Writes the logits of an exit right after their operator, and all other results after the last operator, for which
 * `made_by` is NULL. */
static lp_status put_output_steps(const program *p, const lp_op *made_by) {
  const lp_op *end = lp_block_terminator(p->func->region);
  for (int32_t i = 0; i < end->in_count; i++) {
    const lp_op *def = lp_op_in(end, i)->def;
    bool exits = is_exit(p->func, i);
    bool now = made_by ? exits && def == made_by : !exits || !def || !lp_op_is_run(def);
    if (now) LP_TRY(put_output_step(p, i));
  }
  return LP_OK;
}

static lp_status put_steps(program *p) {
  lp_json_put_array(p->w, "steps");
  put_input_steps(p);
  LP_FOR_OPS(op, p->func->region) {
    if (op->kind == LP_OP_COMM_RECV)
      LP_TRY(put_send_step(p, op));
    else if (op->kind == LP_OP_COMM_KV_MOVE)
      put_move_step(p, op);
    else if (lp_op_is_run(op)) {
      put_run_step(p, op);
      LP_TRY(put_output_steps(p, op));
    }
  }
  LP_TRY(put_output_steps(p, NULL));
  lp_json_put_end(p->w);
  return LP_OK;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static const lp_code_program *find_code(const bundle_side *side, const char *name) {
  for (int32_t i = 0; side->present && i < side->code.program_count; i++)
    if (lp_streq(side->code.program[i].name, name)) return &side->code.program[i];
  return NULL;
}

/* The layouts of the sides' other forms. Their buffers are the same. */
static void put_fallbacks(const program *p) {
  if (!p->fallback[LP_SIDE_DEVICE] && !p->fallback[LP_SIDE_CLOUD]) return;
  lp_json_put_object(p->w, "fallback");
  for (int s = 0; s < LP_SIDE_COUNT; s++)
    if (p->fallback[s]) lp_json_put_text(p->w, lp_side_name((lp_side)s), p->fallback[s]->layout);
  lp_json_put_end(p->w);
}

static lp_status put_program(lp_json_writer *w, const bundle *b, const lp_op *func, lp_diag *diag) {
  const char *name = lp_op_str(func, "sym_name", "main");
  program p = {.w = w, .b = b, .func = func, .diag = diag};
  for (int s = 0; s < LP_SIDE_COUNT; s++) {
    p.ran[s] = -1;
    p.code[s] = find_code(&b->side[s], name);
    if (b->side[s].fallback) p.fallback[s] = find_code(b->side[s].fallback, name);
  }
  lp_json_put_object(w, name);
  lp_json_put_object(w, "layout");
  for (int s = 0; s < LP_SIDE_COUNT; s++)
    if (p.code[s]) lp_json_put_text(w, lp_side_name((lp_side)s), p.code[s]->layout);
  lp_json_put_end(w);
  lp_json_put_object(w, "buffers");
  for (int s = 0; s < LP_SIDE_COUNT; s++)
    if (p.code[s]) lp_json_put_integer(w, lp_side_name((lp_side)s), p.code[s]->buffers);
  lp_json_put_end(w);
  put_fallbacks(&p);
  LP_TRY(put_steps(&p));
  lp_json_put_end(w);
  return LP_OK;
}

static lp_status put_programs(lp_json_writer *w, const bundle *b, lp_diag *diag) {
  lp_json_put_object(w, "programs");
  LP_FOR_FUNCS(func, b->module)
  LP_TRY(put_program(w, b, func, diag));
  lp_json_put_end(w);
  return LP_OK;
}

/* ---- plans of a family ------------------------------------------------------------------------------------------- */

/* One region in the attribute plan_regions: the plan's number, then low and high along each axis. A high below 0 means
 * no limit. */
static const char *const axes[] = {"prompt_tokens", "generated_tokens", "rtt_ms", "up_bps"};
enum { AXES = LP_COUNT(axes), REGION_NUMBERS = 1 + 2 * AXES };

/* Finds an attribute that the pass `place` set on the first prefill. */
static const lp_attr *find_attr(const bundle *b, const char *name, lp_attr_kind kind) {
  const lp_op *func = lp_module_find_func(b->module, "prefill");
  const lp_attr *attr = func ? lp_op_attr(func, name) : NULL;
  return attr && attr->kind == kind ? attr : NULL;
}

static void put_region(lp_json_writer *w, const double *numbers) {
  lp_json_put_object(w, NULL);
  for (size_t i = 0; i < AXES; i++) {
    double high = numbers[2 * i + 1];
    lp_json_put_array(w, axes[i]);
    lp_json_put_number(w, NULL, numbers[2 * i]);
    if (high < 0)
      lp_json_put_null(w, NULL);
    else
      lp_json_put_number(w, NULL, high);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

/* Writes the programs of each plan and the requests that it serves; nothing when there is only one plan. */
static void put_plans(lp_json_writer *w, const bundle *b) {
  const lp_attr *prefill = find_attr(b, "plan_prefill", LP_ATTR_STRS),
                *decode = find_attr(b, "plan_decode", LP_ATTR_STRS);
  const lp_attr *numbers = find_attr(b, "plan_regions", LP_ATTR_F64S);
  if (!prefill || !decode || !numbers || prefill->count != decode->count || prefill->count < 2) return;
  lp_json_put_array(w, "plans");
  for (int32_t i = 0; i < prefill->count; i++) {
    lp_json_put_object(w, NULL);
    lp_json_put_text(w, "prefill", prefill->ss[i]);
    lp_json_put_text(w, "decode", decode->ss[i]);
    lp_json_put_array(w, "regions");
    for (int32_t k = 0; k + REGION_NUMBERS <= numbers->count; k += REGION_NUMBERS)
      if ((int32_t)numbers->fs[k] == i) put_region(w, &numbers->fs[k + 1]);
    lp_json_put_end(w);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

/* ---- the document ------------------------------------------------------------------------------------------------ */

/* The file's name without its ending: "smollm2" of "dir/smollm2.onnx". */
static const char *model_name(const bundle *b) {
  const char *base = lp_path_base(b->module->name ? b->module->name : "model");
  size_t length = strlen(base);
  if (lp_has_suffix(base, ".onnx")) length -= strlen(".onnx");
  return lp_arena_format(b->arena, "%.*s", (int)length, base);
}

static void put_symbols(lp_json_writer *w, const bundle *b) {
  lp_json_put_array(w, "symbols");
  for (size_t i = 0; i < b->module->symbols.names.count; i++)
    lp_json_put_text(w, NULL, b->module->symbols.names.data[i]);
  lp_json_put_end(w);
}

/* The context's bound by the graph holds in any case. A model without one, as with rotary positions, has the bound that
 * its files give. */
static int64_t context_of(const bundle *b) {
  int64_t graph = b->request->context, files = b->settings.context;
  return graph == 0 || (files > 0 && files < graph) ? files : graph;
}

static void put_settings(lp_json_writer *w, const bundle_settings *settings) {
  if (settings->stops.count > 0) {
    lp_json_put_array(w, "stops");
    for (size_t i = 0; i < settings->stops.count; i++)
      lp_json_put_integer(w, NULL, settings->stops.data[i]);
    lp_json_put_end(w);
  }
  if (settings->samples) {
    lp_json_put_object(w, "sampling");
    lp_json_put_number(w, "temperature", settings->temperature);
    lp_json_put_integer(w, "top_k", settings->top_k);
    lp_json_put_number(w, "top_p", settings->top_p);
    lp_json_put_end(w);
  }
}

/* Only a model with an encoder has a decoder that begins by itself. */
static void put_decoder(lp_json_writer *w, const bundle *b, const lp_op *func) {
  bool has_source = false;
  for (int32_t i = 0; i < func->region->arg_count; i++)
    has_source |= lp_has_prefix(text_at(func, "input_roles", i, "data"), "source");
  if (!has_source) return;
  lp_json_put_object(w, "decoder");
  lp_json_put_array(w, "start");
  for (size_t i = 0; i < b->settings.start.count; i++)
    lp_json_put_integer(w, NULL, b->settings.start.data[i]);
  lp_json_put_end(w);
  lp_json_put_integer(w, "pad", b->settings.pad);
  lp_json_put_integer(w, "source_context", lp_op_i64(func, "source_context", 0));
  lp_json_put_end(w);
}

static const lp_json_style style = {.indent = 1, .marks_reals = true};

/* `files` and the seal must be the last members: the runtime computes the contract from the text before `files`. */
lp_status lp_bundle_manifest_begin(bundle *b, lp_diag *diag) {
  const lp_op *func = model_func(b);
  if (!func) return lp_error(diag, LP_LOC_NONE, "the module has no function");
  lp_json_writer w = lp_json_writer_begin(&b->manifest, style);
  lp_json_put_object(&w, NULL);
  lp_json_put_text(&w, "schema", "llmpart.bundle/1");
  lp_json_put_text(&w, "name", model_name(b));
  lp_json_put_integer(&w, "abi", LP_ABI_VERSION);
  put_symbols(&w, b);
  lp_json_put_integer(&w, "context", context_of(b));
  lp_json_put_integer(&w, "vocab", b->request->vocab);
  lp_json_put_text(&w, "tokenizer", b->request->tokenizer ? "tokenizer.json" : NULL);
  put_settings(&w, &b->settings);
  put_decoder(&w, b, func);
  put_sides(&w, b);
  LP_TRY(put_states(&w, b, func, diag));
  put_inputs(&w, b, func);
  put_outputs(&w, b, func);
  put_exits(&w, func);
  LP_TRY(put_programs(&w, b, diag));
  put_plans(&w, b);
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, b->manifest.data, b->manifest.size);
  lp_sha256_hex(&sha, b->contract);
  return LP_OK;
}

void lp_bundle_manifest_end(bundle *b) {
  lp_buf files = {0}, *out = &b->manifest;
  lp_json_writer w = lp_json_writer_begin(&files, style);
  lp_json_put_object(&w, NULL);
  put_files(&w, b);
  lp_buf_puts(out, ",");
  lp_buf_append(out, files.data + 1, files.size - 1); /* without its opening brace */
  lp_buf_free(&files);
  lp_seal_put(out);
}
