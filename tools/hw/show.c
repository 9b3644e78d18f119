/* llmpart hw list, show, predict: the figures of a machine, and predictions from them. */
#include "base/units.h"
#include "tools/hw/hw.h"

#include <math.h>

static void put_target(lp_json_writer *json, const lp_hw_target *target) {
  lp_json_put_object(json, "target");
  if (target->cpu) {
    lp_json_put_text(json, "os", target->os);
    lp_json_put_text(json, "isa", target->isa);
    lp_json_put_text(json, "cpu", target->cpu);
    lp_json_put_array(json, "types");
    for (size_t i = 0; i < LP_HW_TYPES; i++)
      if (target->has_type[i]) lp_json_put_text(json, NULL, lp_hw_type_names[i]);
    lp_json_put_end(json);
    lp_json_put_bool(json, "shared_memory", target->shared_memory);
    lp_json_put_bool(json, "ideal", target->ideal);
  }
  if (target->gpu_interface) {
    lp_json_put_text(json, "gpu_interface", target->gpu_interface);
    lp_json_put_text(json, "gpu", target->gpu);
  }
  lp_json_put_end(json);
}

/* Writes a machine under `key`; NULL: as an item of a list. */
static void put_machine(lp_json_writer *json, const char *key, const lp_machine *m) {
  static const char *const keys[LP_HW_FIGURE_COUNT] = {
      [LP_HW_PEAK_F32] = "peak_f32_flops",
      [LP_HW_PEAK_F16] = "peak_f16_flops",
      [LP_HW_PEAK_BF16] = "peak_bf16_flops",
      [LP_HW_PEAK_INT8] = "peak_int8_flops",
      [LP_HW_PEAK_INT4] = "peak_int4_flops",
      [LP_HW_BANDWIDTH] = "bandwidth_bytes_per_s",
      [LP_HW_MEMORY] = "memory_bytes",
      [LP_HW_CACHE] = "cache_bytes",
      [LP_HW_CACHE_BANDWIDTH] = "cache_bandwidth_bytes_per_s",
      [LP_HW_LOAD_BANDWIDTH] = "load_bandwidth_bytes_per_s",
      [LP_HW_MESSAGE] = "message_ms",
      [LP_HW_MESSAGE_BANDWIDTH] = "message_bandwidth_bytes_per_s",
      [LP_HW_COMPUTE_UTILISATION] = "compute_utilisation",
      [LP_HW_MEMORY_UTILISATION] = "memory_utilisation",
      [LP_HW_LAUNCH] = "launch_ms",
      [LP_HW_PRICE] = "price_usd_per_s",
      [LP_HW_POWER] = "power_w",
      [LP_HW_IDLE_POWER] = "idle_power_w",
      [LP_HW_PURCHASE] = "purchase_usd",
      [LP_HW_LIFE] = "life_years",
      [LP_HW_ENERGY_PRICE] = "energy_usd_per_kwh",
  };
  lp_json_put_object(json, key);
  lp_json_put_text(json, "name", m->name);
  lp_json_put_text(json, "title", m->title);
  lp_json_put_text(json, "kind", m->kind == LP_MACHINE_GPU ? "gpu" : "cpu");
  lp_json_put_text(json, "predictor", m->predictor->name);
  put_target(json, &m->target);
  lp_json_put_object(json, "figures");
  for (int i = 0; i < LP_HW_FIGURE_COUNT; i++)
    lp_json_put_number(json, keys[i], m->figure[i]);
  lp_json_put_end(json);
  lp_json_put_object(json, "sources");
  for (int i = 0; i < LP_HW_FIGURE_COUNT; i++)
    if (m->source[i]) lp_json_put_text(json, keys[i], m->source[i]);
  lp_json_put_end(json);
  lp_json_put_end(json);
}

static lp_status put_machines(lp_buf *out, lp_diag *diag) {
  const char *const *names = NULL;
  size_t count = lp_hw_names(&names);
  lp_json_writer json = lp_tool_json(out, 9, "llmpart.hw-list/1");
  lp_json_put_array(&json, "machines");
  for (size_t i = 0; i < count; i++) {
    lp_machine *machine = NULL;
    if (lp_streq(names[i], "host")) continue; /* this machine is measured only on request */
    LP_TRY(lp_hw_load(names[i], &machine, diag));
    put_machine(&json, NULL, machine);
    lp_hw_free(machine);
  }
  lp_json_put_end(&json);
  lp_json_document_end(&json);
  return LP_OK;
}

lp_status hw_list(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const hw_flags *flags = command->user;
  (void)args;
  LP_OWNED(lp_buf_free) lp_buf out = {0};
  lp_status status = LP_OK;
  if (lp_tool_wants(flags->out, "json"))
    status = put_machines(&out, diag);
  else
    lp_hw_list(&out);
  if (status == LP_OK) status = lp_tool_write_as(flags->out, &out, diag);
  return status;
}

static void put_machine_document(const lp_machine *machine, lp_buf *out) {
  lp_json_writer json = lp_tool_json(out, 9, "llmpart.hw/1");
  put_machine(&json, "machine", machine);
  lp_json_document_end(&json);
}

lp_status hw_show(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const hw_flags *flags = command->user;
  lp_machine *machine = NULL;
  LP_TRY(lp_hw_load(args->data[1], &machine, diag));
  lp_buf out = {0};
  if (lp_tool_wants(flags->out, "json")) {
    put_machine_document(machine, &out);
  } else if (lp_tool_wants(flags->out, "svg")) {
    lp_hw_roofline_svg(machine, &out);
  } else {
    if (!lp_tool_wants(flags->out, "yaml")) lp_hw_roofline_text(machine, &out);
    lp_hw_print(machine, &out);
  }
  lp_status status = lp_tool_write_as(flags->out, &out, diag);
  lp_hw_free(machine);
  return status;
}

/* ---- predict ---- */

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
    if (value == 0)
      return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'%s' needs '--%s'", flags->op, lp_hw_size_names[i]);
    lp_hw_op_set_size(facts, i, value);
  }
  if (facts->kv_heads > 0 && facts->heads % facts->kv_heads != 0)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--kv-heads"), "%" PRId64 " heads cannot share %" PRId64,
                       facts->heads, facts->kv_heads);
  lp_hw_op_facts(op, facts);
  facts->pass_bytes = flags->pass_bytes;
  return LP_OK;
}

static void put_prediction_json(const lp_machine *machine, const char *op, const lp_op_facts *facts,
                                const lp_prediction *p, lp_buf *out) {
  lp_json_writer json = lp_tool_json(out, 9, "llmpart.hw-predict/1");
  lp_json_put_text(&json, "machine", machine->name);
  lp_json_put_text(&json, "op", op);
  lp_json_put_number(&json, "flops", facts->flops);
  lp_json_put_number(&json, "bytes", facts->bytes);
  lp_json_put_number(&json, "time_us", p->time_ms * 1e3);
  lp_json_put_number(&json, "low_us", p->low_ms * 1e3);
  lp_json_put_number(&json, "high_us", p->high_ms * 1e3);
  lp_json_put_number(&json, "distance_octaves", p->distance); /* null when nothing was measured */
  lp_json_document_end(&json);
}

static void put_prediction_text(const lp_prediction *p, lp_buf *out) {
  char time[32], low[32], high[32];
  lp_buf_printf(out, "%s, 90 %% interval %s to %s; ", lp_format_ms(p->time_ms, time), lp_format_ms(p->low_ms, low),
                lp_format_ms(p->high_ms, high));
  if (isinf(p->distance))
    lp_buf_puts(out, "nothing measured: a roofline\n");
  else
    lp_buf_printf(out, "%.2f octaves from the nearest measurement\n", p->distance);
}

lp_status hw_predict(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const hw_flags *flags = command->user;
  lp_op_facts facts = {.dtype = LP_F16};
  lp_machine *machine = NULL;
  LP_TRY(read_facts(flags, &facts, diag));
  LP_TRY(lp_hw_load(args->data[1], &machine, diag));
  lp_prediction p = lp_hw_predict(machine, &facts);
  lp_buf out = {0};
  if (lp_tool_wants(flags->out, "json"))
    put_prediction_json(machine, flags->op, &facts, &p, &out);
  else
    put_prediction_text(&p, &out);
  lp_status status = lp_tool_write_as(flags->out, &out, diag);
  lp_hw_free(machine);
  return status;
}
