/* Checks how the parts of a manifest relate, once each of them is read: the ports with the vocabulary, and the steps
 * of a program with its ports, buffers and code. */
#include "base/poly.h"
#include "runtime/bundle/manifest.h"
#include "runtime/bundle/manifest_reader.h"

static lp_loc loc_of(const manifest_reader *reader) {
  return LP_LOC_FILE(reader->out->file);
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

/* Each row of logits holds one value for each word of the vocabulary; the sampler reads that number of them. */
static lp_status check_logits(manifest_reader *reader, const lp_port *port) {
  const lp_tensor_desc *tensor = &port->tensor;
  int64_t width = 0;
  bool is_number = tensor->rank > 0 && lp_poly_is_const(tensor->shape[tensor->rank - 1], &width);
  if (is_number && width == reader->out->vocab) return LP_OK;
  return lp_error(reader->diag, loc_of(reader), "the last axis of the logits '%.60s' is not the vocabulary of %" PRId32,
                  tensor->name, reader->out->vocab);
}

static lp_status check_ports(manifest_reader *reader) {
  const lp_manifest *out = reader->out;
  for (int32_t i = 0; i < out->output_count; i++)
    if (out->outputs[i].role == LP_ROLE_LOGITS) LP_TRY(check_logits(reader, &out->outputs[i]));
  for (int32_t i = 0; i < out->exit_count; i++)
    LP_TRY(check_logits(reader, &out->outputs[out->exits[i].output]));
  return LP_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool shares_code(const lp_side_desc *side) {
  const lp_side_desc *other = side->fallback;
  return other->code == other->weights || other->code == side->code || other->code == side->kernels ||
         other->code == side->weights;
}

static lp_status check_files(manifest_reader *reader) {
  for (lp_place i = 0; i < reader->out->place_count; i++) {
    const lp_side_desc *side = &reader->out->side[i];
    bool twice = (side->code && (side->code == side->weights || side->code == side->kernels)) ||
                 (side->weights && side->weights == side->kernels) || (side->fallback && shares_code(side));
    if (twice)
      return lp_error(reader->diag, loc_of(reader), "one file of the %s is both code and data",
                      reader->out->place_name[i]);
    if (side->ranks > 1 && (i != LP_SIDE_CLOUD || side->fallback))
      return lp_error(reader->diag, loc_of(reader), "the half of the %s cannot have ranks", reader->out->place_name[i]);
  }
  return LP_OK;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* The effects of the steps before the one that is checked. */
typedef struct {
  manifest_reader *reader;
  const lp_program *program;
  bool ran[LP_PLACES_MAX];      /* a segment, which may write to any buffer of its side */
  bool *written[LP_PLACES_MAX]; /* [buffers] by an input or a send */
  bool *read[LP_PLACES_MAX];    /* [inputs] */
  bool *made;                   /* [outputs] */
} progress;

static lp_status complain(const progress *p, int32_t step, const char *what) {
  return lp_error(p->reader->diag, loc_of(p->reader), "programs.%.60s.steps[%" PRId32 "]: %s", p->program->name, step,
                  what);
}

/* The buffer that a step reads must hold something. */
static lp_status check_source(const progress *p, int32_t index) {
  const lp_step *step = &p->program->step[index];
  if (p->ran[step->side] || p->written[step->side][step->buffer]) return LP_OK;
  return complain(p, index, "no step before it fills its buffer");
}

static bool is_segment(const char *name) {
  return lp_has_prefix(name, "lp_segment_");
}

static lp_status check_step(progress *p, int32_t index) {
  const lp_step *step = &p->program->step[index];
  switch (step->kind) {
  case LP_STEP_INPUT:
    if (p->read[step->side][step->port]) return complain(p, index, "its side has read this input already");
    p->read[step->side][step->port] = p->written[step->side][step->buffer] = true;
    return LP_OK;
  case LP_STEP_RUN:
    p->ran[step->side] = true;
    return is_segment(step->segment) && (!step->fallback || is_segment(step->fallback))
               ? LP_OK
               : complain(p, index, "its segment is no 'lp_segment_...'");
  case LP_STEP_SEND:
    LP_TRY(check_source(p, index));
    p->written[step->to][step->to_buffer] = true;
    return LP_OK;
  case LP_STEP_MOVE:
    return LP_OK;
  case LP_STEP_GATHER:
    LP_TRY(check_source(p, index));
    p->written[step->side][step->to_buffer] = true;
    return LP_OK;
  case LP_STEP_OUTPUT:
    LP_TRY(check_source(p, index));
    if (p->made[step->port]) return complain(p, index, "this output is made already");
    p->made[step->port] = true;
    return LP_OK;
  }
  return LP_OK;
}

static lp_status check_layout(const progress *p, const char *layout) {
  if (!layout || lp_has_prefix(layout, "lp_layout_")) return LP_OK;
  return lp_error(p->reader->diag, loc_of(p->reader), "programs.%.60s.layout: '%.60s' is no 'lp_layout_...'",
                  p->program->name, layout);
}

static lp_status check_steps(progress *p) {
  for (lp_place i = 0; i < p->reader->out->place_count; i++) {
    LP_TRY(check_layout(p, p->program->layout_name[i]));
    LP_TRY(check_layout(p, p->program->fallback[i]));
  }
  for (int32_t i = 0; i < p->program->step_count; i++)
    LP_TRY(check_step(p, i));
  return LP_OK;
}

static lp_status check_program(manifest_reader *reader, const lp_program *program) {
  const lp_manifest *out = reader->out;
  progress p = {.reader = reader, .program = program, .made = lp_alloc((size_t)out->output_count + 1)};
  for (lp_place i = 0; i < out->place_count; i++) {
    p.written[i] = lp_alloc((size_t)program->buffers[i] + 1);
    p.read[i] = lp_alloc((size_t)out->input_count + 1);
  }
  lp_status status = check_steps(&p);
  for (lp_place i = 0; i < out->place_count; i++) {
    free(p.written[i]);
    free(p.read[i]);
  }
  free(p.made);
  return status;
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static bool has_step(const lp_program *program, lp_step_kind kind, int32_t port) {
  for (int32_t i = 0; i < program->step_count; i++)
    if (program->step[i].kind == kind && program->step[i].port == port) return true;
  return false;
}

/* A program that generates reads the tokens and makes the logits that are sampled. */
static lp_status check_generates(manifest_reader *reader, int32_t index) {
  const lp_program *program = &reader->out->programs[index];
  int32_t tokens = lp_manifest_input(reader->out, LP_ROLE_TOKENS);
  int32_t logits = lp_manifest_output(reader->out, LP_ROLE_LOGITS);
  if (tokens < 0 || logits < 0) return LP_OK;
  bool reads = has_step(program, LP_STEP_INPUT, tokens), makes = has_step(program, LP_STEP_OUTPUT, logits);
  if (reads && makes) return LP_OK;
  return lp_error(reader->diag, loc_of(reader), "program '%.60s' %s", program->name,
                  reads ? "makes no logits" : "does not read the tokens");
}

lp_status lp_manifest_check(manifest_reader *reader) {
  const lp_manifest *out = reader->out;
  LP_TRY(check_files(reader));
  LP_TRY(check_ports(reader));
  for (int32_t i = 0; i < out->program_count; i++)
    LP_TRY(check_program(reader, &out->programs[i]));
  for (int32_t i = 0; i < out->plan_count; i++) {
    LP_TRY(check_generates(reader, out->plans[i].prefill));
    LP_TRY(check_generates(reader, out->plans[i].decode));
  }
  return LP_OK;
}
