/* Reads the programs of manifest.json: the steps of each side in order, and the tensors that cross the link. */
#include "runtime/bundle/manifest.h"
#include "runtime/bundle/manifest_reader.h"

static const char *const step_names[] = {
    [LP_STEP_INPUT] = "input", [LP_STEP_RUN] = "run",       [LP_STEP_SEND] = "send",
    [LP_STEP_MOVE] = "move",   [LP_STEP_OUTPUT] = "output", [LP_STEP_GATHER] = "gather"};

/* Reads a side, which the bundle must have. */
static lp_status read_side(manifest_reader *reader, const lp_json *step, const char *key, lp_place *out) {
  lp_json at = lp_json_member(step, key);
  LP_TRY(lp_manifest_side(reader, &at, out));
  if (reader->out->side[*out].present) return LP_OK;
  return lp_json_error(&at, reader->diag, "`sides` has no '%s'", reader->out->place_name[*out]);
}

static lp_status read_index(manifest_reader *reader, const lp_json *step, const char *key, int32_t count,
                            int32_t *out) {
  lp_json at = lp_json_member(step, key);
  if (count == 0) return lp_json_error(&at, reader->diag, "there is none to refer to");
  return lp_json_i32(&at, 0, count - 1, out, reader->diag);
}

static lp_status read_rows(manifest_reader *reader, const lp_json *step, lp_row_count *out) {
  static const char *const names[] = {[LP_ROWS_NONE] = "none", [LP_ROWS_NEW] = "s", [LP_ROWS_LAST] = "r"};
  lp_json rows = lp_json_member(step, "rows");
  int32_t which = LP_ROWS_NONE;
  if (rows.value) LP_TRY(lp_json_choice(&rows, names, LP_COUNT(names), &which, reader->diag));
  *out = (lp_row_count)which;
  return LP_OK;
}

static lp_status read_input(manifest_reader *reader, const lp_json *at, const lp_program *program, lp_step *step) {
  LP_TRY(read_side(reader, at, "side", &step->side));
  LP_TRY(read_index(reader, at, "input", reader->out->input_count, &step->port));
  step->tensor = reader->out->inputs[step->port].tensor;
  step->carries_tokens = reader->out->inputs[step->port].role == LP_ROLE_TOKENS ||
                         reader->out->inputs[step->port].role == LP_ROLE_SOURCE_TOKENS;
  return read_index(reader, at, "buffer", program->buffers[step->side], &step->buffer);
}

static lp_status read_parts(manifest_reader *reader, const lp_json *at, lp_step *step) {
  lp_json parts = lp_json_member(at, "parts");
  if (!parts.value) return LP_OK;
  LP_TRY(lp_json_array(&parts, reader->diag));
  step->part = LP_NEW_ARRAY(reader->arena, const char *, lp_json_count(&parts) + 1);
  LP_FOR_ITEMS(item, &parts) {
    LP_TRY(lp_json_text(&item, &step->part[item.index], reader->diag));
    step->part[item.index] = lp_arena_strdup(reader->arena, step->part[item.index]);
    step->part_count++;
  }
  return LP_OK;
}

static lp_status read_operands(manifest_reader *reader, const lp_json *at, const lp_program *program, lp_step *step) {
  lp_json operands = lp_json_member(at, "operands");
  if (!operands.value) return LP_OK;
  LP_TRY(lp_json_array(&operands, reader->diag));
  step->operand = LP_NEW_ARRAY(reader->arena, lp_operand, lp_json_count(&operands) + 1);
  LP_FOR_ITEMS(item, &operands) {
    lp_operand *operand = &step->operand[item.index];
    LP_TRY(read_index(reader, &item, "part", step->part_count, &operand->part));
    LP_TRY(read_index(reader, &item, "buffer", program->buffers[step->side], &operand->buffer));
    lp_json experts = lp_json_member(&item, "experts");
    if (experts.value) LP_TRY(lp_json_i32(&experts, 1, INT32_MAX, &operand->experts, reader->diag));
    LP_TRY(lp_manifest_tensor(reader, &item, &operand->tensor));
    if (item.index > 0 && operand->part < operand[-1].part)
      return lp_json_error(&item, reader->diag, "operands are not in the order of their parts");
    step->operand_count++;
  }
  return LP_OK;
}

static lp_status read_run(manifest_reader *reader, const lp_json *at, const lp_program *program, lp_step *step) {
  LP_TRY(read_side(reader, at, "side", &step->side));
  lp_json segment = lp_json_member(at, "segment");
  LP_TRY(lp_json_text(&segment, &step->segment, reader->diag));
  if (!reader->out->side[step->side].code)
    return lp_json_error(&segment, reader->diag, "side '%s' has no code", reader->out->place_name[step->side]);
  step->segment = lp_arena_strdup(reader->arena, step->segment);
  if (reader->out->side[step->side].fallback) {
    LP_TRY(lp_json_text(LP_MEMBER(at, "fallback"), &step->fallback, reader->diag));
    step->fallback = lp_arena_strdup(reader->arena, step->fallback);
  }
  lp_json exit = lp_json_member(at, "exit");
  if (exit.value) LP_TRY(read_index(reader, at, "exit", reader->out->exit_count, &step->exit));
  LP_TRY(read_parts(reader, at, step));
  return read_operands(reader, at, program, step);
}

static lp_status read_ends(manifest_reader *reader, const lp_json *at, lp_step *step) {
  LP_TRY(read_side(reader, at, "from", &step->side));
  LP_TRY(read_side(reader, at, "to", &step->to));
  if (step->side != step->to) return LP_OK;
  return lp_json_error(at, reader->diag, "from '%s' to itself", reader->out->place_name[step->to]);
}

static lp_status read_send(manifest_reader *reader, const lp_json *at, const lp_program *program, lp_step *step) {
  LP_TRY(read_ends(reader, at, step));
  LP_TRY(read_index(reader, at, "from_buffer", program->buffers[step->side], &step->buffer));
  LP_TRY(read_index(reader, at, "to_buffer", program->buffers[step->to], &step->to_buffer));
  LP_TRY(lp_manifest_tensor(reader, at, &step->tensor));
  LP_FOR_EACH(const lp_step, before, program->step, program->step_count)
    if (before->kind == LP_STEP_INPUT && before->side == step->side && before->buffer == step->buffer)
      step->carries_tokens = before->carries_tokens;
  return LP_OK;
}

static lp_status read_move(manifest_reader *reader, const lp_json *at, lp_step *step) {
  LP_TRY(read_ends(reader, at, step));
  LP_TRY(read_index(reader, at, "state", reader->out->state_count, &step->state));
  const lp_state_desc *state = &reader->out->states[step->state];
  if (state->on[step->side] && state->on[step->to]) return LP_OK;
  return lp_json_error(at, reader->diag, "state '%.60s' is not kept on both sides", state->tensor.name);
}

static lp_status read_open(manifest_reader *reader, const lp_json *at, const lp_program *program, lp_step *step) {
  lp_json list = lp_json_member(at, "open");
  if (!list.value) return LP_OK;
  LP_TRY(lp_json_array(&list, reader->diag));
  size_t count = lp_json_count(&list);
  step->open = LP_NEW_ARRAY(reader->arena, lp_row_buffer, count + 1);
  for (; step->open_count < (int32_t)count; step->open_count++) {
    lp_json item = lp_json_item(&list, (size_t)step->open_count);
    lp_row_buffer *open = &step->open[step->open_count];
    LP_TRY(read_index(reader, &item, "buffer", program->buffers[step->side], &open->buffer));
    LP_TRY(lp_manifest_tensor(reader, &item, &open->tensor));
  }
  return LP_OK;
}

static lp_status read_output(manifest_reader *reader, const lp_json *at, const lp_program *program, lp_step *step) {
  LP_TRY(read_side(reader, at, "side", &step->side));
  LP_TRY(read_index(reader, at, "output", reader->out->output_count, &step->port));
  step->tensor = reader->out->outputs[step->port].tensor;
  LP_TRY(read_index(reader, at, "buffer", program->buffers[step->side], &step->buffer));
  return read_open(reader, at, program, step);
}

/* The ranks of the side put their parts of an axis together. */
static lp_status read_gather(manifest_reader *reader, const lp_json *at, const lp_program *program, lp_step *step) {
  lp_json axis = lp_json_member(at, "axis"), parts = lp_json_member(at, "parts");
  int64_t size = 0;
  LP_TRY(read_side(reader, at, "side", &step->side));
  int32_t ranks = reader->out->side[step->side].ranks;
  LP_TRY(read_index(reader, at, "from_buffer", program->buffers[step->side], &step->buffer));
  LP_TRY(read_index(reader, at, "to_buffer", program->buffers[step->side], &step->to_buffer));
  LP_TRY(lp_manifest_tensor(reader, at, &step->tensor));
  LP_TRY(lp_json_i32(&axis, 0, step->tensor.rank - 1, &step->axis, reader->diag));
  LP_TRY(lp_json_i32(&parts, 1, ranks, &step->parts, reader->diag));
  if (ranks % step->parts != 0) return lp_json_error(&parts, reader->diag, "wanted a divisor of %d ranks", ranks);
  if (lp_poly_is_const(step->tensor.shape[step->axis], &size) && size > 0 && size % step->parts == 0) return LP_OK;
  return lp_json_error(&axis, reader->diag, "wanted an axis that has %d equal parts", step->parts);
}

static lp_status read_step(manifest_reader *reader, const lp_json *at, const lp_program *program, lp_step *step) {
  LP_TRY(lp_json_object(at, reader->diag));
  int32_t kind = 0;
  LP_TRY(lp_json_choice(LP_MEMBER(at, "op"), step_names, LP_COUNT(step_names), &kind, reader->diag));
  step->kind = (lp_step_kind)kind;
  step->exit = -1;
  LP_TRY(read_rows(reader, at, &step->rows));
  lp_status status = LP_OK;
  switch (step->kind) {
  case LP_STEP_INPUT:
    status = read_input(reader, at, program, step);
    break;
  case LP_STEP_RUN:
    status = read_run(reader, at, program, step);
    break;
  case LP_STEP_SEND:
    return read_send(reader, at, program, step);
  case LP_STEP_MOVE:
    return read_move(reader, at, step);
  case LP_STEP_OUTPUT:
    status = read_output(reader, at, program, step);
    break;
  case LP_STEP_GATHER:
    status = read_gather(reader, at, program, step);
    break;
  }
  step->to = step->side;
  return status;
}

static lp_status read_fallbacks(manifest_reader *reader, const lp_json *at, lp_program *program) {
  lp_json names = lp_json_member(at, "fallback");
  for (lp_place i = 0; i < reader->out->place_count; i++) {
    if (!reader->out->side[i].fallback || !program->layout_name[i]) continue;
    LP_TRY(lp_json_object(&names, reader->diag));
    LP_TRY(lp_json_text(LP_MEMBER(&names, reader->out->place_name[i]), &program->fallback[i], reader->diag));
    program->fallback[i] = lp_arena_strdup(reader->arena, program->fallback[i]);
  }
  return LP_OK;
}

static lp_status read_layouts(manifest_reader *reader, const lp_json *at, lp_program *program) {
  lp_json layout = lp_json_member(at, "layout"), buffers = lp_json_member(at, "buffers");
  LP_TRY(lp_json_object(&layout, reader->diag));
  LP_TRY(lp_json_object(&buffers, reader->diag));
  for (lp_place i = 0; i < reader->out->place_count; i++) {
    lp_json name = lp_json_member(&layout, reader->out->place_name[i]);
    lp_json count = lp_json_member(&buffers, reader->out->place_name[i]);
    if (!name.value && !count.value) continue;
    LP_TRY(lp_json_i32(&count, 0, LP_MAX_BUFFERS, &program->buffers[i], reader->diag));
    if (!name.value && program->buffers[i] == 0) continue;
    LP_TRY(lp_json_text(&name, &program->layout_name[i], reader->diag));
    program->layout_name[i] = lp_arena_strdup(reader->arena, program->layout_name[i]);
    if (!reader->out->side[i].code)
      return lp_json_error(&name, reader->diag, "side '%s' has no code", reader->out->place_name[i]);
  }
  return LP_OK;
}

static lp_status read_program(manifest_reader *reader, const lp_json *at, lp_program *program) {
  LP_TRY(lp_json_object(at, reader->diag));
  program->name = lp_arena_strdup(reader->arena, at->key);
  LP_TRY(read_layouts(reader, at, program));
  LP_TRY(read_fallbacks(reader, at, program));
  lp_json steps = lp_json_member(at, "steps");
  LP_TRY(lp_json_array(&steps, reader->diag));
  program->step = LP_NEW_ARRAY(reader->arena, lp_step, lp_json_count(&steps) + 1);
  LP_FOR_ITEMS(item, &steps) {
    lp_step *step = &program->step[item.index];
    LP_TRY(read_step(reader, &item, program, step));
    program->step_count++;
    program->takes_part[step->side] = program->takes_part[step->to] = true;
    if (step->kind == LP_STEP_RUN && !program->layout_name[step->side])
      return lp_json_error(&item, reader->diag, "side '%s' has no layout", reader->out->place_name[step->side]);
  }
  return LP_OK;
}

lp_status lp_manifest_programs(manifest_reader *reader, const lp_json *root) {
  lp_json at = lp_json_member(root, "programs");
  LP_TRY(lp_json_object(&at, reader->diag));
  size_t count = lp_json_count(&at);
  if (count == 0) return lp_json_error(&at, reader->diag, "wanted at least one program");
  reader->out->programs = LP_NEW_ARRAY(reader->arena, lp_program, count);
  for (size_t i = 0; i < lp_json_count(&at); i++) {
    lp_json program = lp_json_entry(&at, i);
    LP_TRY(read_program(reader, &program, &reader->out->programs[reader->out->program_count++]));
  }
  return LP_OK;
}
