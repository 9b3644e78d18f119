/* Writes how a bundle's code is run: the steps of each program, and the plans of a family, of manifest.json. */
#include "backend/bundle/manifest.h"

#include "backend/rows.h"
#include "backend/values.h"
#include "base/side.h"

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* A program being written. */
typedef struct {
  lp_json_writer *w;
  const bundle *b;
  const lp_op *func;
  const lp_code_program *code[LP_PLACES_MAX];     /* NULL: the side runs nothing */
  const lp_code_program *fallback[LP_PLACES_MAX]; /* NULL: the side has none */
  int64_t ran[LP_PLACES_MAX];                     /* the segment of the last `run` step written; -1: none */
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
  for (lp_place s = 0; s < p->b->place_count; s++)
    for (int32_t i = 0; i < p->func->region->arg_count; i++) {
      int64_t buffer = lp_value_buffer(p->func->region->arg[i], s);
      if (buffer < 0) continue;
      begin_step(p, "input");
      lp_json_put_text(p->w, "side", p->b->places[s]);
      lp_json_put_integer(p->w, "input", i);
      lp_json_put_integer(p->w, "buffer", buffer);
      put_rows(p, p->func->region->arg[i]);
      lp_json_put_end(p->w);
    }
}

/* The operators of a segment, for the profile. `op` is the first of them; the other side's operators may stand among
 * them. */
static void put_parts(const program *p, const lp_op *op, lp_place side, int64_t segment) {
  lp_json_put_array(p->w, "parts");
  for (; op; op = op->next) {
    if (!lp_op_is_run(op) || lp_op_at(op) != side) continue;
    if (lp_op_i64(op, "segment", 0) != segment) break;
    if (lp_op_has(op, LP_ALIAS) || lp_op_only_reads(op)) continue;
    lp_json_put_text(p->w, NULL,
                     lp_arena_format(p->b->arena, "%s %s", lp_op_info_get(op->kind)->name, lp_op_str(op, "name", "")));
  }
  lp_json_put_end(p->w);
}

/* What is read beside a weight. `experts`: how many of them it chooses from; 0: it is what the weight multiplies. */
static void put_operand(const program *p, lp_place side, int64_t part, lp_value *weight, lp_value *read,
                        int64_t experts) {
  const char *name = weight ? lp_value_base(weight)->name : NULL;
  int64_t buffer = lp_value_buffer(read, side);
  if (!name || buffer < 0) return;
  lp_json_put_object(p->w, NULL);
  lp_json_put_integer(p->w, "part", part);
  lp_json_put_integer(p->w, "buffer", buffer);
  if (experts > 0) lp_json_put_integer(p->w, "experts", experts);
  lp_bundle_put_tensor(p->w, p->b, name, read->type);
  lp_json_put_end(p->w);
}

/* For each weight of floats that an operator of the segment multiplies something by: what it multiplies; and for each
 * stack of experts: which of them are chosen. */
static void put_operands(const program *p, const lp_op *op, lp_place side, int64_t segment) {
  enum { X, WEIGHT, INDEX = 3, GATE = 4, SCALE = 5 };
  int64_t part = -1;
  lp_json_put_array(p->w, "operands");
  for (; op; op = op->next) {
    if (!lp_op_is_run(op) || lp_op_at(op) != side) continue;
    if (lp_op_i64(op, "segment", 0) != segment) break;
    if (lp_op_has(op, LP_ALIAS) || lp_op_only_reads(op)) continue;
    part++;
    if (op->kind == LP_OP_EXPERTS)
      put_operand(p, side, part, lp_op_in(op, WEIGHT), lp_op_in(op, INDEX), lp_op_i64(op, "experts", 0));
    if (!lp_op_is_weighted(op) || lp_op_in(op, SCALE)) continue;
    put_operand(p, side, part, lp_op_in(op, WEIGHT), lp_op_in(op, X), 0);
    put_operand(p, side, part, lp_op_in(op, GATE), lp_op_in(op, X), 0);
  }
  lp_json_put_end(p->w);
}

/* Writes the step of a segment at its first operator. */
static void put_run_step(program *p, const lp_op *op) {
  lp_place side = lp_op_at(op);
  int64_t segment = lp_op_i64(op, "segment", 0);
  const lp_code_program *code = p->code[side];
  if (!code || segment >= code->segment_count || segment == p->ran[side]) return;
  p->ran[side] = segment;
  if (!code->segment[segment]) return;
  begin_step(p, "run");
  lp_json_put_text(p->w, "side", p->b->places[side]);
  lp_json_put_text(p->w, "segment", code->segment[segment]);
  if (p->fallback[side]) lp_json_put_text(p->w, "fallback", p->fallback[side]->segment[segment]);
  if (lp_op_attr(op, "exit")) lp_json_put_integer(p->w, "exit", lp_op_i64(op, "exit", 0));
  if (lp_op_bool(p->func, "profiled", false)) {
    put_parts(p, op, side, segment);
    put_operands(p, op, side, segment);
  }
  lp_json_put_end(p->w);
}

static const lp_op *find_send(const lp_block *block, int64_t tag) {
  LP_FOR_OPS(op, block) {
    if (op->kind == LP_OP_COMM_SEND && lp_op_i64(op, "tag", -1) == tag) return op;
  }
  return NULL;
}

/* The name of a value that has none is that of its operator, or `otherwise`. */
static const char *name_of(const lp_value *value, const char *otherwise) {
  if (value->name) return value->name;
  const char *name = value->def ? lp_op_str(value->def, "name", NULL) : NULL;
  return name ? name : otherwise;
}

/* Writes one step for the pair of comm.send and comm.recv, at the place of the latter. */
static lp_status put_send_step(const program *p, const lp_op *recv) {
  const lp_op *send = find_send(p->func->region, lp_op_i64(recv, "tag", -1));
  if (!send) return lp_error(p->diag, recv->loc, "no 'comm.send' has the tag %" PRId64, lp_op_i64(recv, "tag", -1));
  const lp_value *value = lp_op_in(send, 0);
  const lp_place sender = lp_op_place(send, "from"), receiver = lp_op_place(recv, "to");
  int64_t from = sender >= 0 ? lp_value_buffer(value, sender) : -1;
  int64_t to = receiver >= 0 ? lp_value_buffer(recv->out[0], receiver) : -1;
  if (from < 0 || to < 0) return lp_error(p->diag, send->loc, "the tensor that is sent has no buffer");
  begin_step(p, "send");
  lp_json_put_text(p->w, "from", lp_op_str(send, "from", ""));
  lp_json_put_text(p->w, "to", lp_op_str(recv, "to", ""));
  lp_json_put_integer(p->w, "from_buffer", from);
  lp_json_put_integer(p->w, "to_buffer", to);
  lp_bundle_put_tensor(p->w, p->b, name_of(value, lp_op_str(send, "name", "tensor")), value->type);
  put_rows(p, recv->out[0]);
  lp_json_put_end(p->w);
  return LP_OK;
}

/* The ranks of the side put their parts together. */
static lp_status put_gather_step(const program *p, const lp_op *op) {
  const lp_place side = lp_op_at(op);
  lp_value *part = lp_op_in(op, 0), *whole = op->out[0];
  int64_t from = lp_value_buffer(part, side), to = lp_value_buffer(whole, side);
  if (from < 0 || to < 0) return lp_error(p->diag, op->loc, "the tensor that is gathered has no buffer");
  begin_step(p, "gather");
  lp_json_put_text(p->w, "side", p->b->places[side]);
  lp_json_put_integer(p->w, "from_buffer", from);
  lp_json_put_integer(p->w, "to_buffer", to);
  lp_json_put_integer(p->w, "axis", lp_op_i64(op, "axis", 0));
  lp_json_put_integer(p->w, "parts", lp_op_i64(op, "parts", 1));
  lp_bundle_put_tensor(p->w, p->b, name_of(whole, lp_op_str(op, "name", "tensor")), whole->type);
  put_rows(p, whole);
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

/* ---- what an exit leaves open ------------------------------------------------------------------------------------ */

typedef LP_VEC(lp_value *) values;

/* Tells whether an operator of the device up to `exit` computes the value; an argument counts as one. */
static bool is_made_by(const lp_op *exit, const lp_value *value) {
  if (!value->def) return true;
  if (lp_op_at(value->def) != LP_SIDE_DEVICE) return false;
  const lp_op *op = exit;
  while (op && op != value->def)
    op = op->prev;
  return op != NULL;
}

static bool has_buffer_of(const values *list, const lp_value *value) {
  for (size_t i = 0; i < list->count; i++)
    if (lp_value_buffer(list->data[i], LP_SIDE_DEVICE) == lp_value_buffer(value, LP_SIDE_DEVICE)) return true;
  return false;
}

/* Adds the operands of `op` that were made up to the exit. False: one has no row for each new token. */
static bool add_open(const program *p, const lp_op *exit, const lp_op *op, values *list) {
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *value = lp_op_in(op, i);
    if (!value || lp_value_buffer(value, LP_SIDE_DEVICE) < 0 || !is_made_by(exit, value)) continue;
    if (lp_value_rows(p->b->module, value) != LP_ROWS_NEW) return false;
    if (!has_buffer_of(list, value)) lp_vec_push(list, value);
  }
  return true;
}

/* Lists the tensors that the device's operators after an exit read of those before it, if each has one row for each new
 * token. With these rows the runtime runs the later operators when a token needs them, for several tokens at once. */
static void put_open(const program *p, const lp_op *exit) {
  LP_OWNED(lp_free_at) values list = {0};
  bool all = true;
  for (const lp_op *op = exit->next; op && all; op = op->next)
    if ((lp_op_is_run(op) && lp_op_at(op) == LP_SIDE_DEVICE) || op->kind == LP_OP_COMM_SEND)
      all = add_open(p, exit, op, &list);
  if (all && list.count > 0) lp_json_put_array(p->w, "open");
  for (size_t i = 0; all && i < list.count; i++) {
    const lp_value *value = list.data[i];
    lp_json_put_object(p->w, NULL);
    lp_json_put_integer(p->w, "buffer", lp_value_buffer(value, LP_SIDE_DEVICE));
    lp_bundle_put_tensor(p->w, p->b, name_of(value, "tensor"), value->type);
    lp_json_put_end(p->w);
  }
  if (all && list.count > 0) lp_json_put_end(p->w);
}

static lp_status put_output_step(const program *p, int32_t output) {
  lp_value *value = lp_op_in(lp_block_terminator(p->func->region), output);
  lp_place side = value->def ? lp_op_at(value->def) : LP_SIDE_DEVICE;
  int64_t buffer = lp_value_buffer(value, side);
  if (buffer < 0)
    return lp_error(p->diag, value->def ? value->def->loc : p->func->loc, "result '%s' has no buffer",
                    lp_bundle_text_at(p->func, "outputs", output, "output"));
  begin_step(p, "output");
  lp_json_put_text(p->w, "side", p->b->places[side]);
  lp_json_put_integer(p->w, "output", output);
  lp_json_put_integer(p->w, "buffer", buffer);
  put_rows(p, value);
  if (value->def && side == LP_SIDE_DEVICE && lp_bundle_exits_at(p->func, output)) put_open(p, value->def);
  lp_json_put_end(p->w);
  return LP_OK;
}

/* ---- all steps --------------------------------------------------------------------------------------------------- */

/* Writes the logits of an exit right after their operator, and all other results after the last operator, for which
 * `made_by` is NULL. */
static lp_status put_output_steps(const program *p, const lp_op *made_by) {
  const lp_op *end = lp_block_terminator(p->func->region);
  for (int32_t i = 0; i < end->in_count; i++) {
    const lp_op *def = lp_op_in(end, i)->def;
    bool exits = lp_bundle_exits_at(p->func, i);
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
    else if (op->kind == LP_OP_COMM_ALL_GATHER)
      LP_TRY(put_gather_step(p, op));
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
  bool any = false;
  for (lp_place s = 0; s < p->b->place_count; s++)
    any |= p->fallback[s] != NULL;
  if (!any) return;
  lp_json_put_object(p->w, "fallback");
  for (lp_place s = 0; s < p->b->place_count; s++)
    if (p->fallback[s]) lp_json_put_text(p->w, p->b->places[s], p->fallback[s]->layout);
  lp_json_put_end(p->w);
}

static lp_status put_program(lp_json_writer *w, const bundle *b, const lp_op *func, lp_diag *diag) {
  const char *name = lp_op_str(func, "sym_name", "main");
  program p = {.w = w, .b = b, .func = func, .diag = diag};
  for (lp_place s = 0; s < b->place_count; s++) {
    p.ran[s] = -1;
    p.code[s] = find_code(&b->side[s], name);
    if (b->side[s].fallback) p.fallback[s] = find_code(b->side[s].fallback, name);
  }
  lp_json_put_object(w, name);
  lp_json_put_object(w, "layout");
  for (lp_place s = 0; s < b->place_count; s++)
    if (p.code[s]) lp_json_put_text(w, b->places[s], p.code[s]->layout);
  lp_json_put_end(w);
  lp_json_put_object(w, "buffers");
  for (lp_place s = 0; s < b->place_count; s++)
    if (p.code[s]) lp_json_put_integer(w, b->places[s], p.code[s]->buffers);
  lp_json_put_end(w);
  put_fallbacks(&p);
  LP_TRY(put_steps(&p));
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

lp_status lp_bundle_put_programs(lp_json_writer *w, const bundle *b, lp_diag *diag) {
  lp_json_put_object(w, "programs");
  LP_FOR_FUNCS(func, b->module)
    LP_TRY(put_program(w, b, func, diag));
  lp_json_put_end(w);
  put_plans(w, b);
  return LP_OK;
}
