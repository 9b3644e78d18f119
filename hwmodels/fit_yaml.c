/* Fits in YAML: the part `measured` of a machine's file, families of curves as plain numbers. */
#include "hwmodels/hwmodels_internal.h"

#include <math.h>

/* ---- reading ---- */

static const lp_yaml_range positive = {1e-9, 1e18, false}, ascending = {1e-9, 1e18, true};

/* The sizes of a shape, in the order of the key. */
static const char *const *shape_names(lp_hw_op op, size_t *count) {
  static const char *const linear[] = {"n", "k"}, *const attention[] = {"q_len", "batch", "heads", "kv_heads",
                                                                        "head_dim"};
  *count = op == LP_HW_LINEAR ? 2 : op == LP_HW_ATTENTION ? 5 : op == LP_HW_ANY ? 0 : 1;
  return op == LP_HW_ATTENTION ? attention : linear;
}

typedef struct {
  const lp_fit_family *family;
  lp_fit_curve *curve;
  int32_t factors;
} curve_reader;

static lp_status read_shape_entry(lp_yaml *yaml, const lp_yaml_node *key, const char *name, const lp_yaml_node *value,
                                  void *user) {
  curve_reader *r = user;
  size_t count = 0;
  const char *const *names = shape_names(r->family->op, &count);
  for (size_t i = 0; i < count; i++)
    if (lp_streq(name, names[i])) return lp_yaml_whole(yaml, value, name, 1, &r->curve->key[i]);
  return lp_yaml_unknown_key(yaml, key, name, names, count);
}

static lp_status read_kind(lp_yaml *yaml, const lp_yaml_node *node, lp_curve_kind *kind) {
  const char *text = NULL;
  LP_TRY(lp_yaml_text(yaml, node, "kind", &text));
  for (*kind = LP_CURVE_LINEAR; *kind < LP_CURVE_KINDS; (*kind)++)
    if (lp_streq(text, lp_curve_kind_names[*kind])) return LP_OK;
  return lp_error_near(yaml->diag, lp_yaml_loc(yaml, node), text, lp_curve_kind_names, LP_CURVE_KINDS,
                       "there is no kind of curve '%s'", text);
}

static lp_status read_curve_entry(lp_yaml *yaml, const lp_yaml_node *key, const char *name, const lp_yaml_node *value,
                                  void *user) {
  static const char *const keys[] = {"shape", "kind", "spread", "size", "factor", "measured"};
  curve_reader *r = user;
  lp_fit_curve *curve = r->curve;
  if (lp_streq(name, "shape")) return lp_yaml_each(yaml, value, "'shape'", read_shape_entry, r);
  if (lp_streq(name, "kind")) return read_kind(yaml, value, &curve->kind);
  if (lp_streq(name, "spread")) return lp_yaml_number(yaml, value, name, 0, 10, &curve->spread);
  if (lp_streq(name, "size")) return lp_yaml_numbers(yaml, value, name, &ascending, &curve->x, &curve->count);
  if (lp_streq(name, "factor")) return lp_yaml_numbers(yaml, value, name, &positive, &curve->y, &r->factors);
  if (lp_streq(name, "measured"))
    return lp_yaml_numbers(yaml, value, name, &ascending, &curve->measured, &curve->measured_count);
  return lp_yaml_unknown_key(yaml, key, name, keys, LP_COUNT(keys));
}

static void take_logs(lp_fit_curve *curve) {
  for (int32_t i = 0; i < curve->count; i++) {
    curve->x[i] = log(curve->x[i]);
    curve->y[i] = log(curve->y[i]);
  }
}

static lp_status read_pass_entry(lp_yaml *yaml, const lp_yaml_node *key, const char *name, const lp_yaml_node *value,
                                 void *user) {
  static const char *const keys[] = {"bytes", "share"};
  curve_reader *r = user;
  if (lp_streq(name, "bytes")) return lp_yaml_numbers(yaml, value, name, &ascending, &r->curve->x, &r->curve->count);
  if (lp_streq(name, "share")) return lp_yaml_numbers(yaml, value, name, &positive, &r->curve->y, &r->factors);
  return lp_yaml_unknown_key(yaml, key, name, keys, LP_COUNT(keys));
}

static lp_status read_pass(lp_yaml *yaml, const lp_yaml_node *node, lp_fit_family *family) {
  curve_reader r = {family, &family->pass, 0};
  LP_TRY(lp_yaml_each(yaml, node, "'pass'", read_pass_entry, &r));
  if (r.curve->count == 0 || r.curve->count != r.factors)
    return lp_yaml_error(yaml, node, "'pass' has %d 'bytes' and %d 'share', not as many of both", r.curve->count,
                         r.factors);
  take_logs(r.curve);
  return LP_OK;
}

static lp_status read_curve(lp_yaml *yaml, const lp_yaml_node *node, const lp_fit_family *family, lp_fit_curve *curve) {
  curve_reader r = {family, curve, 0};
  LP_TRY(lp_yaml_each(yaml, node, "a curve", read_curve_entry, &r));
  lp_loc loc = lp_yaml_loc(yaml, node);
  size_t count = 0;
  const char *const *names = shape_names(family->op, &count);
  for (size_t i = 0; i < count; i++)
    if (curve->key[i] == 0) return lp_error(yaml->diag, loc, "the curve's shape lacks '%s'", names[i]);
  if (curve->count == 0 || curve->count != r.factors)
    return lp_error(yaml->diag, loc, "the curve has %d 'size' and %d 'factor', not as many of both", curve->count,
                    r.factors);
  take_logs(curve);
  return LP_OK;
}

static lp_status read_curves(lp_yaml *yaml, const lp_yaml_node *node, lp_fit_family *family) {
  LP_TRY(lp_yaml_list(yaml, node, "curves", &family->count));
  family->curve = LP_NEW_ARRAY(yaml->arena, lp_fit_curve, family->count);
  for (int32_t i = 0; i < family->count; i++)
    LP_TRY(read_curve(yaml, lp_yaml_item(yaml, node, i), family, &family->curve[i]));
  return LP_OK;
}

typedef struct {
  lp_fit_family *family;
  const lp_yaml_node *curves; /* read when the operator is known */
  bool has_op;
} family_reader;

static lp_status read_unseen_entry(lp_yaml *yaml, const lp_yaml_node *key, const char *name, const lp_yaml_node *value,
                                   void *user) {
  static const char *const keys[] = {"spread", "distance"};
  lp_fit_family *family = user;
  if (lp_streq(name, "spread")) return lp_yaml_number(yaml, value, name, 0, 10, &family->unseen_spread);
  if (lp_streq(name, "distance")) return lp_yaml_number(yaml, value, name, 0, 100, &family->unseen_distance);
  return lp_yaml_unknown_key(yaml, key, name, keys, LP_COUNT(keys));
}

static lp_status read_left_out_entry(lp_yaml *yaml, const lp_yaml_node *key, const char *name,
                                     const lp_yaml_node *value, void *user) {
  lp_fit_family *family = user;
  for (size_t kind = 0; kind < LP_CURVE_KINDS; kind++)
    if (lp_streq(name, lp_curve_kind_names[kind]))
      return lp_yaml_number(yaml, value, name, 0, 1e6, &family->left_out_pct[kind]);
  return lp_yaml_unknown_key(yaml, key, name, lp_curve_kind_names, LP_CURVE_KINDS);
}

static lp_status read_dtype(lp_yaml *yaml, const lp_yaml_node *node, lp_dtype *out) {
  const char *text = NULL;
  LP_TRY(lp_yaml_text(yaml, node, "dtype", &text));
  if (lp_dtype_parse(text, out)) return LP_OK;
  return lp_yaml_error(yaml, node, "'dtype' is '%s', not a type such as f16", text);
}

static lp_status read_stage(lp_yaml *yaml, const lp_yaml_node *node, bool *decode) {
  const char *text = NULL;
  LP_TRY(lp_yaml_text(yaml, node, "stage", &text));
  *decode = lp_streq(text, "decode");
  if (*decode || lp_streq(text, "prefill")) return LP_OK;
  return lp_yaml_error(yaml, node, "'stage' is '%s', neither 'prefill' nor 'decode'", text);
}

static lp_status read_family_entry(lp_yaml *yaml, const lp_yaml_node *key, const char *name, const lp_yaml_node *value,
                                   void *user) {
  static const char *const keys[] = {"op",      "stage", "dtype",   "launch_us", "flops_per_us", "bytes_per_us",
                                     "tick_us", "pass",  "quantum", "unseen",    "left_out_pct", "curves"};
  family_reader *r = user;
  lp_fit_family *family = r->family;
  const char *text = NULL;
  if (lp_streq(name, "op")) {
    r->has_op = true;
    LP_TRY(lp_yaml_text(yaml, value, name, &text));
    return lp_hw_op_parse(text, &family->op, yaml->diag, lp_yaml_loc(yaml, value));
  }
  if (lp_streq(name, "stage")) return read_stage(yaml, value, &family->decode);
  if (lp_streq(name, "dtype")) return read_dtype(yaml, value, &family->dtype);
  if (lp_streq(name, "launch_us")) return lp_yaml_number(yaml, value, name, 0, 1e9, &family->launch_us);
  if (lp_streq(name, "flops_per_us")) return lp_yaml_number(yaml, value, name, 1e-6, 1e18, &family->flops_per_us);
  if (lp_streq(name, "bytes_per_us")) return lp_yaml_number(yaml, value, name, 1e-6, 1e18, &family->bytes_per_us);
  if (lp_streq(name, "tick_us")) return lp_yaml_number(yaml, value, name, 0, 1e6, &family->tick_us);
  if (lp_streq(name, "pass")) return read_pass(yaml, value, family);
  if (lp_streq(name, "quantum")) return lp_yaml_whole(yaml, value, name, 0, &family->quantum);
  if (lp_streq(name, "unseen")) return lp_yaml_each(yaml, value, "'unseen'", read_unseen_entry, family);
  if (lp_streq(name, "left_out_pct")) return lp_yaml_each(yaml, value, "'left_out_pct'", read_left_out_entry, family);
  if (!lp_streq(name, "curves")) return lp_yaml_unknown_key(yaml, key, name, keys, LP_COUNT(keys));
  r->curves = value;
  return LP_OK;
}

static lp_status read_family(lp_yaml *yaml, const lp_yaml_node *node, lp_fit_family *family) {
  family_reader r = {.family = family};
  *family = (lp_fit_family){.dtype = LP_F16, .unseen_spread = 0.35, .unseen_distance = 1};
  LP_TRY(lp_yaml_each(yaml, node, "a family", read_family_entry, &r));
  const char *missing = !r.has_op                   ? "op"
                        : !r.curves                 ? "curves"
                        : family->flops_per_us == 0 ? "flops_per_us"
                        : family->bytes_per_us == 0 ? "bytes_per_us"
                                                    : NULL;
  if (missing) return lp_yaml_error(yaml, node, "the family lacks '%s'", missing);
  return read_curves(yaml, r.curves, family);
}

static lp_status read_fit_entry(lp_yaml *yaml, const lp_yaml_node *key, const char *name, const lp_yaml_node *value,
                                void *user) {
  static const char *const keys[] = {"source", "kernels", "families"};
  struct lp_hw_fit *fit = user;
  if (lp_streq(name, "source")) return lp_yaml_text(yaml, value, name, &fit->source);
  if (lp_streq(name, "kernels")) return lp_yaml_text(yaml, value, name, &fit->kernels);
  if (!lp_streq(name, "families")) return lp_yaml_unknown_key(yaml, key, name, keys, LP_COUNT(keys));
  LP_TRY(lp_yaml_list(yaml, value, name, &fit->count));
  fit->family = LP_NEW_ARRAY(yaml->arena, lp_fit_family, fit->count);
  for (int32_t i = 0; i < fit->count; i++)
    LP_TRY(read_family(yaml, lp_yaml_item(yaml, value, i), &fit->family[i]));
  return LP_OK;
}

lp_status lp_fit_read(void *user, lp_yaml *yaml, const lp_yaml_node *node) {
  lp_machine *machine = user;
  struct lp_hw_fit *fit = LP_NEW(machine->arena, struct lp_hw_fit);
  LP_TRY(lp_yaml_each(yaml, node, "'measured'", read_fit_entry, fit));
  if (fit->count == 0) return lp_yaml_error(yaml, node, "'measured' lacks 'families'");
  for (int32_t f = 0; f < fit->count; f++)
    for (int32_t c = 0; c < fit->family[f].count; c++)
      lp_fit_curve_bend(&fit->family[f].curve[c], fit->family[f].curve[c].kind);
  machine->fit = fit;
  machine->predictor = &lp_hw_fitted;
  return LP_OK;
}

/* ---- printing ---- */

static void print_list(const char *key, const double *values, int32_t count, const char *format, bool logs,
                       lp_buf *out) {
  lp_buf_printf(out, "          %s: [", key);
  size_t line = out->size;
  for (int32_t i = 0; i < count; i++) {
    if (out->size - line > 110) {
      lp_buf_puts(out, "\n            ");
      line = out->size;
    }
    char text[32];
    double value = logs ? exp(values[i]) : values[i];
    (void)snprintf(text, sizeof text, lp_streq(format, "size") ? "%.7g" : "%.4g", value);
    lp_buf_printf(out, "%s%s", text, i + 1 < count ? ", " : "");
  }
  lp_buf_puts(out, "]\n");
}

static void print_curve(const lp_fit_family *family, const lp_fit_curve *curve, lp_buf *out) {
  size_t count = 0;
  const char *const *names = shape_names(family->op, &count);
  lp_buf_puts(out, "        - shape: {");
  for (size_t i = 0; i < count; i++)
    lp_buf_printf(out, "%s %s: %" PRId64, i > 0 ? "," : "", names[i], curve->key[i]);
  lp_buf_printf(out, " }\n          kind: %s\n          spread: %.3g\n", lp_curve_kind_names[curve->kind],
                curve->spread);
  print_list("size", curve->x, curve->count, "size", true, out);
  print_list("factor", curve->y, curve->count, "factor", true, out);
  print_list("measured", curve->measured, curve->measured_count, "size", false, out);
}

static void print_left_out(const lp_fit_family *family, lp_buf *out) {
  lp_buf_puts(out, "      left_out_pct: {");
  for (size_t kind = 0; kind < LP_CURVE_KINDS; kind++)
    lp_buf_printf(out, "%s %s: %.4g", kind > 0 ? "," : "", lp_curve_kind_names[kind], family->left_out_pct[kind]);
  lp_buf_puts(out, " }\n");
}

void lp_fit_print(const struct lp_hw_fit *fit, lp_buf *out) {
  lp_buf_puts(out, "measured:\n");
  if (fit->source) {
    lp_buf_puts(out, "  source: ");
    lp_yaml_print_quoted(fit->source, out);
    lp_buf_puts(out, "\n");
  }
  if (fit->kernels) lp_buf_printf(out, "  kernels: %s\n", fit->kernels);
  lp_buf_puts(out, "  families:\n");
  LP_FOR_EACH(const lp_fit_family, family, fit->family, fit->count) {
    lp_buf_printf(out, "    - op: %s\n", lp_hw_op_name(family->op));
    if (family->op == LP_HW_ATTENTION) lp_buf_printf(out, "      stage: %s\n", family->decode ? "decode" : "prefill");
    lp_buf_printf(out, "      dtype: %s\n      launch_us: %.4g\n      flops_per_us: %.5g\n      bytes_per_us: %.5g\n",
                  lp_dtype_name(family->dtype), family->launch_us, family->flops_per_us, family->bytes_per_us);
    if (family->tick_us > 0) lp_buf_printf(out, "      tick_us: %.4g\n", family->tick_us);
    if (family->pass.count > 0) {
      lp_buf_puts(out, "      pass:\n");
      print_list("bytes", family->pass.x, family->pass.count, "size", true, out);
      print_list("share", family->pass.y, family->pass.count, "factor", true, out);
    }
    lp_buf_printf(out, "      quantum: %" PRId64 "\n      unseen: { spread: %.3g, distance: %.3g }\n", family->quantum,
                  family->unseen_spread, family->unseen_distance);
    if (family->left_out_pct[LP_CURVE_LINEAR] > 0) print_left_out(family, out);
    lp_buf_puts(out, "      curves:\n");
    for (int32_t c = 0; c < family->count; c++)
      print_curve(family, &family->curve[c], out);
  }
}
