/* Runs a model on the steps of a generation, by the reference interpreter or by ONNX Runtime. */
#include "tools/equal/reference.h"
#include "passes/passes.h"
#include "tools/equal/inputs.h"
#include "tools/generator.h"

struct lp_reference {
  lp_step_inputs in;
  lp_module *module;
  lp_onnxruntime *runtime; /* borrowed; NULL: the interpreter evaluates */
  const lp_op *end;
  const char *const *output; /* names of the graph's outputs, of the module */
  int32_t logits;            /* the output that is compared: logits, or hidden states of a model without a head */
  bool is_hidden;
  int64_t vocab;
  bool has_past;
  lp_arena *arena, *before; /* of the last step, and of the one before it */
  int64_t past;
  LP_VEC(int64_t) history; /* [position][batch]: of a graph without caches */
};

/* ---- roles of inputs --------------------------------------------------------------------------------------------- */

static int32_t find_text(const lp_attr *texts, const char *name) {
  for (int32_t i = 0; texts && i < texts->count; i++)
    if (lp_streq(texts->ss[i], name)) return i;
  return -1;
}

static bool follower_kind(const char *name, lp_step_kind *out) {
  static const struct {
    const char *part;
    lp_step_kind kind;
  } parts[] = {{"use_cache", LP_STEP_SWITCH}, {"token_type", LP_STEP_ZEROS},
               {"seqlens_k", LP_STEP_LAST},   {"total_sequence_length", LP_STEP_TOTAL},
               {"mask", LP_STEP_MASK},        {"position", LP_STEP_POSITIONS}};
  for (size_t i = 0; i < LP_COUNT(parts); i++)
    if (strstr(name, parts[i].part)) {
      *out = parts[i].kind;
      return true;
    }
  return false;
}

/* `bound` is @main of the copy after bind-inputs, which keeps the inputs that do not follow from sizes. */
static lp_status learn_input(lp_reference *r, const lp_op *bound, int32_t index, lp_diag *diag) {
  lp_step_input *in = &r->in.input[index];
  int32_t rank = in->value->type.rank;
  const lp_attr *roles = lp_op_attr(bound, "input_roles"), *pairs = lp_op_attr(bound, "past_pair");
  int32_t at = find_text(lp_op_attr(bound, "inputs"), in->name);
  in->kind = LP_STEP_DATA;
  if (at < 0 && !follower_kind(in->name, &in->kind))
    return lp_error(diag, LP_LOC_FILE(r->module->name), "input '%s' cannot be given by a comparison", in->name);
  const char *means = lp_op_str(bound, lp_arena_format(r->module->arena, "mask_of_%s", in->name), NULL);
  in->means = means ? lp_arena_strdup(r->module->arena, means) : NULL;
  if (at < 0) return LP_OK;
  if (lp_streq(roles->ss[at], "tokens")) {
    in->kind = LP_STEP_TOKENS;
    r->in.tokens = index;
  } else if (lp_has_prefix(roles->ss[at], "past")) {
    in->kind = LP_STEP_PAST;
    in->present = (int32_t)pairs->is[at];
    in->grows = (int32_t)lp_op_i64(bound, lp_arena_format(r->module->arena, "grows_%s", in->name), rank - 2);
    r->has_past = true;
  } else if (lp_streq(roles->ss[at], "source_tokens")) {
    in->kind = LP_STEP_SOURCE;
  } else if (lp_streq(roles->ss[at], "source_mask")) {
    in->kind = LP_STEP_SOURCE_MASK;
  } else if (lp_has_suffix(roles->ss[at], "_past")) {
    in->kind = LP_STEP_PAST;
    in->present = (int32_t)pairs->is[at];
    in->grows = -1;
  }
  return LP_OK;
}

static lp_status learn(lp_reference *r, const lp_module *copy, lp_diag *diag) {
  const lp_op *main = lp_module_find_func(r->module, "main"), *bound = lp_module_find_func(copy, "main");
  const lp_attr *names = lp_op_attr(main, "inputs");
  r->end = lp_block_terminator(main->region);
  r->output = lp_op_attr(main, "outputs")->ss;
  r->in.count = main->region->arg_count;
  r->in.input = lp_alloc(((size_t)r->in.count + 1) * sizeof *r->in.input);
  r->in.tokens = -1;
  for (int32_t i = 0; i < r->in.count; i++) {
    r->in.input[i].name = names->ss[i];
    r->in.input[i].value = main->region->arg[i];
    LP_TRY(learn_input(r, bound, i, diag));
  }
  r->logits = find_text(lp_op_attr(bound, "output_roles"), "logits");
  r->is_hidden = r->logits < 0;
  if (r->is_hidden) r->logits = find_text(lp_op_attr(bound, "output_roles"), "hidden");
  if (r->in.tokens < 0 || r->logits < 0)
    return lp_error(diag, LP_LOC_FILE(r->module->name), "the model has no tokens, or no logits or hidden states");
  if (!r->is_hidden) (void)lp_type_static_dim(lp_op_in(r->end, r->logits)->type, -1, &r->vocab);
  if (r->is_hidden) r->vocab = lp_op_i64(bound, "vocab", 0);
  return LP_OK;
}

/* Tells whether the interpreter leaves the operator to the pass decompose. */
static bool is_decomposed(const lp_op *op) {
  static const char *const rule[LP_OP_COUNT] = {
#define LP_ONNX(id, name, imin, imax, omin, omax, traits, attrs, infer, eval) [LP_ONNX_##id] = #eval,
#include "ir/ops.def"
  };
  return rule[op->kind] && lp_streq(rule[op->kind], "decomposed");
}

/* Replaces operators that the interpreter lacks (all that ONNX Runtime adds to ONNX, and some of the standard's) by
 * others, with the pass decompose. */
static lp_status expand(lp_reference *r, lp_diag *diag) {
  const lp_compile_request request = {.generation = false};
  const lp_run_options run = {.verify_each = false};
  LP_FOR_OPS(op, lp_module_find_func(r->module, "main")->region)
    if (is_decomposed(op) || lp_has_prefix(lp_op_info_get(op->kind)->name, "com.microsoft"))
      return lp_passes_run(r->module, "decompose", &request, &run, diag);
  return LP_OK;
}

lp_status lp_reference_open(const char *model, const lp_import_options *import, lp_onnxruntime *runtime,
                            lp_reference **out, lp_diag *diag) {
  const lp_compile_request request = {.generation = true};
  const lp_run_options run = {.verify_each = false};
  lp_reference *r = lp_alloc(sizeof *r);
  r->runtime = runtime;
  lp_module *copy = NULL;
  lp_diag *quiet = lp_diag_create(); /* compilation has reported it already */
  lp_status status = lp_generator_import(model, import, &r->module, quiet);
  if (status == LP_OK) status = lp_generator_import(model, import, &copy, quiet);
  if (status == LP_OK) status = lp_passes_run(copy, "fold,bind-inputs", &request, &run, quiet);
  if (status == LP_OK && !runtime) status = expand(r, quiet);
  if (status != LP_OK) lp_report_error(diag, LP_LOC_FILE(model), "has no generation protocol to compare steps of");
  if (status == LP_OK) status = learn(r, copy, diag);
  if (status == LP_OK) {
    r->in.module = r->module;
    r->module->eval_steps = INT64_MAX; /* the limit is not for whole models */
    r->in.sym = lp_alloc((r->module->symbols.names.count + 1) * sizeof *r->in.sym);
    r->in.bound = lp_alloc((r->module->symbols.names.count + 1) * sizeof *r->in.bound);
    r->arena = lp_arena_create();
    *out = r;
  } else {
    lp_reference_free(r);
  }
  if (copy) lp_module_free(copy);
  lp_diag_free(quiet);
  return status;
}

void lp_reference_free(lp_reference *r) {
  if (!r) return;
  lp_arena_free(r->arena);
  lp_arena_free(r->before);
  if (r->module) lp_module_free(r->module);
  lp_vec_free(&r->history);
  free(r->in.input);
  free(r->in.sym);
  free(r->in.bound);
  free(r);
}

static int64_t token_axis(const lp_reference *r, int32_t axis) {
  int64_t size;
  return lp_type_static_dim(r->in.input[r->in.tokens].value->type, axis, &size) ? size : 0;
}

int64_t lp_reference_batch(const lp_reference *r) {
  return token_axis(r, 0);
}

int64_t lp_reference_length(const lp_reference *r) {
  return token_axis(r, 1);
}

int64_t lp_reference_vocab(const lp_reference *r) {
  return r->vocab;
}

const char *lp_reference_compared(const lp_reference *r) {
  return r->is_hidden ? "hidden states" : "logits";
}

lp_dtype lp_reference_dtype(const lp_reference *r) {
  lp_dtype least = LP_F32;
  LP_FOR_OPS(op, lp_module_find_func(r->module, "main")->region)
    for (int32_t i = 0; i < op->out_count; i++) {
      lp_dtype dtype = op->out[i]->type.dtype;
      if (dtype == LP_BF16 || (dtype == LP_F16 && least != LP_BF16)) least = dtype;
    }
  return least;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

lp_status lp_reference_begin(lp_reference *r, int64_t batch, lp_diag *diag) {
  (void)diag;
  r->in.batch = batch;
  r->past = 0;
  r->history.count = 0;
  r->in.drawn++;
  return LP_OK;
}

static lp_status interpret(lp_reference *r, const int32_t *outputs, size_t count, lp_array *found, lp_diag *diag) {
  lp_value **values = LP_NEW_ARRAY(r->arena, lp_value *, count);
  lp_binding *bindings = LP_NEW_ARRAY(r->arena, lp_binding, r->in.count + 1);
  for (size_t i = 0; i < count; i++)
    values[i] = lp_op_in(r->end, outputs[i]);
  for (int32_t i = 0; i < r->in.count; i++)
    bindings[i] = (lp_binding){r->in.input[i].value, r->in.input[i].array};
  return lp_values_eval(r->module, values, count, bindings, (size_t)r->in.count, r->in.sym, r->arena, found, diag);
}

static lp_status ask_runtime(lp_reference *r, const int32_t *outputs, size_t count, lp_array *found, lp_diag *diag) {
  const char **names = LP_NEW_ARRAY(r->arena, const char *, count);
  lp_named_array *inputs = LP_NEW_ARRAY(r->arena, lp_named_array, r->in.count + 1);
  for (size_t i = 0; i < count; i++)
    names[i] = r->output[outputs[i]];
  for (int32_t i = 0; i < r->in.count; i++)
    inputs[i] = (lp_named_array){r->in.input[i].name, r->in.input[i].array};
  return lp_onnxruntime_run(r->runtime, inputs, (size_t)r->in.count, names, count, r->arena, found, diag);
}

/* Keeps a present for the next step. A past of a narrower type gets it rounded, as a caller of the graph has to do. */
static void keep_present(lp_reference *r, lp_step_input *in, const lp_array *present) {
  lp_array kept = *present;
  kept.dtype = in->value->type.dtype;
  if (kept.dtype != present->dtype) {
    int64_t count = (int64_t)lp_array_bytes(present) * 8 / lp_dtype_bits(present->dtype);
    kept.data = lp_arena_alloc(r->arena, lp_array_bytes(&kept) + 1);
    const lp_tensor wide = {.type = {.dtype = present->dtype}, .data = present->data};
    for (int64_t i = 0; i < count; i++)
      lp_array_set_f64(&kept, i, lp_tensor_f64(&wide, i));
  }
  in->array = kept;
}

/* Evaluates the graph once: logits, and the presents when there are pasts. */
static lp_status evaluate(lp_reference *r, const int64_t *tokens, int64_t past, int64_t count, lp_array *logits,
                          lp_diag *diag) {
  LP_TRY(lp_step_inputs_size(&r->in, past, count, diag));
  lp_step_inputs_fill(&r->in, tokens, past, r->arena);
  int32_t *outputs = LP_NEW_ARRAY(r->arena, int32_t, r->in.count + 1);
  lp_array *found = LP_NEW_ARRAY(r->arena, lp_array, r->in.count + 1);
  size_t wanted = 1;
  outputs[0] = r->logits;
  for (int32_t i = 0; i < r->in.count; i++)
    if (r->in.input[i].kind == LP_STEP_PAST) outputs[wanted++] = r->in.input[i].present;
  LP_TRY(r->runtime ? ask_runtime(r, outputs, wanted, found, diag) : interpret(r, outputs, wanted, found, diag));
  wanted = 1;
  for (int32_t i = 0; i < r->in.count; i++)
    if (r->in.input[i].kind == LP_STEP_PAST) keep_present(r, &r->in.input[i], &found[wanted++]);
  *logits = found[0];
  if (logits->rank != 2) return LP_OK;
  logits->rank = 3; /* of the last position only */
  logits->dim[2] = logits->dim[1];
  logits->dim[1] = 1;
  return LP_OK;
}

/* The rows of the last `count` positions of logits[batch][all][vocab]. */
static lp_array last_rows(lp_reference *r, const lp_array *all, int64_t count) {
  lp_array last = *all;
  last.dim[1] = count;
  size_t row = lp_array_bytes(all) / (size_t)(all->dim[0] * all->dim[1]), size = row * (size_t)count;
  char *data = lp_arena_alloc(r->arena, lp_array_bytes(&last) + 1);
  for (int64_t b = 0; b < all->dim[0]; b++)
    memcpy(data + (size_t)b * size, (const char *)all->data + (size_t)((b + 1) * all->dim[1] - count) * row, size);
  last.data = data;
  return last;
}

lp_status lp_reference_step(lp_reference *r, const int64_t *tokens, int64_t count, lp_array *logits, lp_diag *diag) {
  lp_arena_free(r->before);
  r->before = r->arena; /* holds the presents that this step reads */
  r->arena = lp_arena_create();
  int64_t past = r->past;
  r->past += count;
  if (r->has_past) return evaluate(r, tokens, past, count, logits, diag);
  for (int64_t i = 0; i < count; i++)
    for (int64_t b = 0; b < r->in.batch; b++)
      lp_vec_push(&r->history, tokens[b * count + i]);
  int64_t *whole = LP_NEW_ARRAY(r->arena, int64_t, r->in.batch * r->past);
  for (int64_t b = 0; b < r->in.batch; b++)
    for (int64_t i = 0; i < r->past; i++)
      whole[b * r->past + i] = r->history.data[i * r->in.batch + b];
  LP_TRY(evaluate(r, whole, 0, r->past, logits, diag));
  if (logits->rank == 3 && logits->dim[1] == 1) return LP_OK;
  if (logits->rank != 3 || logits->dim[1] != r->past)
    return lp_error(diag, LP_LOC_FILE(r->module->name), "the logits are not of every position");
  *logits = last_rows(r, logits, count);
  return LP_OK;
}

static lp_verify_array as_verify(const lp_step_input *in) {
  lp_verify_array array = {.name = in->name,
                           .dtype = lp_dtype_name(in->array.dtype),
                           .rank = in->array.rank,
                           .data = in->array.data,
                           .size = lp_array_bytes(&in->array)};
  memcpy(array.dim, in->array.dim, sizeof array.dim < sizeof in->array.dim ? sizeof array.dim : sizeof in->array.dim);
  return array;
}

size_t lp_reference_data(const lp_reference *r, lp_verify_array *out) {
  size_t count = 0;
  for (int32_t i = 0; i < r->in.count; i++) {
    if (r->in.input[i].kind < LP_STEP_DATA) continue;
    if (out) out[count] = as_verify(&r->in.input[i]);
    count++;
  }
  return count;
}

lp_verify_array lp_reference_tokens(const lp_reference *r) {
  return as_verify(&r->in.input[r->in.tokens]);
}
