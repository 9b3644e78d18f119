/* llmpart hw list, show, predict: what is known of a machine. */
#include "tools/hw/hw.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static lp_status write_json(const hw_flags *flags, json_t *root, lp_diag *diag) {
  lp_buf out = {0};
  char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
  lp_buf_printf(&out, "%s\n", text ? text : "{}");
  free(text);
  json_decref(root);
  lp_status status = lp_tool_write_as(flags->out, &out, diag);
  lp_buf_free(&out);
  return status;
}

static json_t *machine_json(const lp_machine *m) {
  static const char *const keys[LP_HW_FIGURE_COUNT] = {"peak_f32_flops",
                                                       "peak_f16_flops",
                                                       "peak_bf16_flops",
                                                       "peak_int8_flops",
                                                       "peak_int4_flops",
                                                       "bandwidth_bytes_per_s",
                                                       "memory_bytes",
                                                       "cache_bytes",
                                                       "compute_utilisation",
                                                       "memory_utilisation",
                                                       "launch_ms",
                                                       "price_usd_per_s",
                                                       "power_w"};
  json_t *figures = json_object(), *sources = json_object();
  for (int i = 0; i < LP_HW_FIGURE_COUNT; i++) {
    json_object_set_new(figures, keys[i], json_real(m->figure[i]));
    if (m->source[i]) json_object_set_new(sources, keys[i], json_string(m->source[i]));
  }
  return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "name", m->name, "title", m->title, "kind",
                   m->kind == LP_MACHINE_GPU ? "gpu" : "cpu", "predictor", m->predictor->name, "figures", figures,
                   "sources", sources);
}

lp_status hw_list(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const hw_flags *flags = command->user;
  (void)args;
  if (lp_tool_wants(flags->out, "json")) {
    const char *const *names = NULL;
    size_t count = lp_hw_names(&names);
    json_t *machines = json_array();
    for (size_t i = 0; i < count; i++) {
      lp_machine *machine = NULL;
      if (lp_streq(names[i], "host")) continue; /* measured only when asked for */
      LP_TRY(lp_hw_load(names[i], &machine, diag));
      json_array_append_new(machines, machine_json(machine));
      lp_hw_free(machine);
    }
    return write_json(flags, json_pack("{s:s, s:o}", "schema", "llmpart.hw-list/1", "machines", machines), diag);
  }
  lp_buf out = {0};
  lp_hw_list(&out);
  lp_status status = lp_tool_write_as(flags->out, &out, diag);
  lp_buf_free(&out);
  return status;
}

lp_status hw_show(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const hw_flags *flags = command->user;
  lp_machine *machine = NULL;
  LP_TRY(lp_hw_load(args->data[1], &machine, diag));
  lp_buf out = {0};
  lp_status status = LP_OK;
  if (lp_tool_wants(flags->out, "json")) {
    status =
        write_json(flags, json_pack("{s:s, s:o}", "schema", "llmpart.hw/1", "machine", machine_json(machine)), diag);
  } else {
    if (lp_tool_wants(flags->out, "svg")) {
      lp_hw_roofline_svg(machine, &out);
    } else {
      if (!lp_tool_wants(flags->out, "yaml")) lp_hw_roofline_text(machine, &out);
      lp_hw_print(machine, &out);
    }
    status = lp_tool_write_as(flags->out, &out, diag);
  }
  lp_buf_free(&out);
  lp_hw_free(machine);
  return status;
}

/* ---- predict ---- */

static lp_status usage(lp_diag *diag, const char *op, const char *name) {
  return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'%s' needs '--%s'", op, name);
}

static lp_status read_facts(const hw_flags *flags, lp_op_facts *facts, lp_diag *diag) {
  lp_hw_op op = LP_HW_ANY;
  if (!flags->op) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'predict' needs '--op=OP'");
  if (lp_hw_op_parse(flags->op, &op, diag, LP_LOC_FILE("--op")) != LP_OK) return LP_USAGE;
  if (!lp_dtype_parse(flags->dtype, &facts->dtype))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--dtype"), "'%s' is not a type such as f16", flags->dtype);
  for (size_t i = 0; i < LP_HW_SIZES; i++) {
    int64_t value = flags->size[i];
    if (!lp_hw_op_needs(op, i)) continue;
    if (value == 0 && lp_streq(lp_hw_size_names[i], "kv_heads")) value = facts->heads;
    if (value == 0) return usage(diag, flags->op, lp_hw_size_names[i]);
    lp_hw_op_set_size(facts, i, value);
  }
  if (facts->kv_heads > 0 && facts->heads % facts->kv_heads != 0)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--kv-heads"), "%" PRId64 " heads cannot share %" PRId64,
                       facts->heads, facts->kv_heads);
  lp_hw_op_facts(op, facts);
  facts->pass_bytes = flags->pass_bytes;
  return LP_OK;
}

lp_status hw_predict(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const hw_flags *flags = command->user;
  lp_op_facts facts = {.dtype = LP_F16};
  lp_machine *machine = NULL;
  LP_TRY(read_facts(flags, &facts, diag));
  LP_TRY(lp_hw_load(args->data[1], &machine, diag));
  lp_prediction p = lp_hw_predict(machine, &facts);
  lp_status status = LP_OK;
  if (lp_tool_wants(flags->out, "json")) {
    json_t *root = json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:f}", "schema", "llmpart.hw-predict/1", "machine",
                             machine->name, "op", flags->op, "flops", facts.flops, "bytes", facts.bytes, "time_us",
                             p.time_ms * 1e3, "low_us", p.low_ms * 1e3, "high_us", p.high_ms * 1e3);
    json_object_set_new(root, "distance_octaves", isinf(p.distance) ? json_null() : json_real(p.distance));
    status = write_json(flags, root, diag);
  } else {
    lp_buf out = {0};
    lp_buf_printf(&out, "%.4g us, 90 %% interval %.4g to %.4g us; ", p.time_ms * 1e3, p.low_ms * 1e3, p.high_ms * 1e3);
    if (isinf(p.distance))
      lp_buf_puts(&out, "nothing measured: a roofline\n");
    else
      lp_buf_printf(&out, "%.2f octaves from the nearest measurement\n", p.distance);
    status = lp_tool_write_as(flags->out, &out, diag);
    lp_buf_free(&out);
  }
  lp_hw_free(machine);
  return status;
}
