/* The host's part of cloud.cu: how each kind of call is launched, layers as functions, segments as tables of what the calls
 * work on. Equal layers are one function; only the tables grow with the depth of a model. Products are those of the kernels: a library
 * is the runtime's. */
#include "backend/cuda/cuda_internal.h"
#include "base/abi.h"
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

/* ---- launchers ------------------------------------------------------------------------------------------------------ */

static void print_groups(const gpu_plan *plan, const gpu_launch *launch, int axis, lp_buf *out) {
  int64_t per = launch->grid[axis].per;
  if (per > 1) lp_buf_puts(out, "groups(");
  gpu_print_size(plan, launch->grid[axis].size, out);
  if (per > 1) lp_buf_printf(out, ", %" PRId64 ")", per);
}

static void print_arg(const gpu_plan *plan, const gpu_arg *arg, lp_buf *out) {
  switch (arg->kind) {
  case GPU_ARG_REF:
    lp_buf_printf(out, "at(f, ref[%" PRId32 "])", arg->ref);
    break;
  case GPU_ARG_NULL:
    lp_buf_puts(out, "nullptr");
    break;
  case GPU_ARG_SCRATCH:
    lp_buf_puts(out, "Pointer{f.scratch}");
    break;
  case GPU_ARG_SIZE:
    gpu_print_size(plan, arg->size, out);
  }
}

/* One side of a condition, behind what is there already. */
static void print_bound(const gpu_plan *plan, const gpu_launch *launch, const char *relation, int64_t bound, bool more,
                        lp_buf *out) {
  lp_buf_puts(out, more ? " && " : "if (");
  gpu_print_size(plan, launch->few, out);
  lp_buf_printf(out, " %s %" PRId64, relation, bound);
}

static void print_condition(const gpu_plan *plan, const gpu_launch *launch, lp_buf *out) {
  const bool above = launch->few && launch->least > 0, below = launch->few && launch->most < INT64_MAX;
  if (above) print_bound(plan, launch, ">=", launch->least, false, out);
  if (below) print_bound(plan, launch, "<=", launch->most, above, out);
  if (launch->most_sm) {
    const bool newer = launch->least_sm > 0;
    lp_buf_printf(out, "%sarchitecture(%s) %s %" PRId32, above || below ? " && " : "if (", launch->kernel->name,
                  newer ? ">=" : "<=", newer ? launch->least_sm : launch->most_sm);
  }
  if (above || below || launch->most_sm) lp_buf_puts(out, ")\n    ");
}

static void print_launch(const gpu_plan *plan, const gpu_launch *launch, lp_buf *out) {
  lp_buf_puts(out, "  ");
  print_condition(plan, launch, out);
  lp_buf_printf(out, "launch(f, %s, ", launch->kernel->name);
  print_groups(plan, launch, 0, out);
  lp_buf_puts(out, ", ");
  print_groups(plan, launch, 1, out);
  lp_buf_printf(out, ", %" PRId32, launch->threads);
  for (int32_t i = 0; i < launch->arg_count; i++) {
    lp_buf_puts(out, ", ");
    print_arg(plan, &launch->arg[i], out);
  }
  lp_buf_puts(out, ");\n");
}

static void print_launchers(const gpu_plan *plan, lp_buf *out) {
  for (size_t i = 0; i < lp_map_count(plan->launchers); i++) {
    const gpu_launcher *launcher = lp_map_value_at(plan->launchers, i);
    lp_buf_printf(out, "\n// %s\nvoid %s(const Frame &f, const Ref *ref) {\n", launcher->what, launcher->name);
    for (int32_t k = 0; k < launcher->launch_count; k++)
      if (launcher->launch[k].by != GPU_BY_LIBRARY) print_launch(plan, &launcher->launch[k], out);
    lp_buf_puts(out, "}\n");
  }
}

/* ---- layers --------------------------------------------------------------------------------------------------------- */

typedef struct {
  const gpu_plan *plan;
  lp_map *layers; /* the calls -> the layer's name */
  lp_buf *out;
} printer;

static int32_t print_calls(const gpu_segment *segment, const gpu_run *run, lp_buf *out) {
  int32_t refs = 0;
  for (size_t i = 0; i < run->period; i++) {
    const gpu_call *call = &segment->calls.data[run->first + i];
    lp_buf_printf(out, "  %s(f, ref + %" PRId32 ");\n", call->launcher->name, refs);
    refs += call->ref_count;
  }
  return refs;
}

static const char *print_layer(const printer *p, const gpu_segment *segment, const gpu_run *run) {
  lp_buf body = {0};
  (void)print_calls(segment, run, &body);
  const char *name = lp_map_get(p->layers, lp_buf_text(&body));
  if (!name) {
    name = lp_arena_format(p->plan->arena, "layer_%zu", lp_map_count(p->layers));
    lp_map_put(p->layers, lp_buf_text(&body), (void *)(uintptr_t)name);
    lp_buf_printf(p->out, "\nvoid %s(const Frame &f, const Ref *ref) {\n%s}\n", name, lp_buf_text(&body));
  }
  lp_buf_free(&body);
  return name;
}

/* ---- segments ------------------------------------------------------------------------------------------------------- */

static void print_refs(const gpu_segment *segment, lp_buf *out) {
  lp_buf_printf(out, "\nconst Ref %s_refs[] = {\n", segment->symbol);
  for (size_t i = 0; i < segment->calls.count; i++) {
    const gpu_call *call = &segment->calls.data[i];
    lp_buf_puts(out, "    ");
    for (int32_t k = 0; k < call->ref_count; k++) {
      static const char *const places[] = {"?", "buffer", "weight", "state"};
      const gpu_ref *ref = &call->ref[k];
      lp_buf_printf(out, "%s(%" PRId64 "), ", places[ref->place], ref->constant ? ref->constant->offset : ref->index);
    }
    lp_buf_printf(out, " // %s\n", lp_op_str(call->op, "name", call->launcher->what));
  }
  lp_buf_puts(out, "};\n");
}

static int32_t run_refs(const gpu_segment *segment, const gpu_run *run) {
  int32_t refs = 0;
  for (size_t i = 0; i < run->period; i++)
    refs += segment->calls.data[run->first + i].ref_count;
  return refs;
}

static void print_segment(const printer *p, const gpu_program *program, const gpu_segment *segment) {
  gpu_runs runs = {0};
  lp_buf body = {0};
  gpu_find_runs(segment, &runs);
  lp_buf_printf(&body, "\nextern \"C\" void %s(const lp_frame *frame, int64_t thread) {\n", segment->symbol);
  lp_buf_printf(&body, "  if (thread != 0) return;\n  const Frame f = enter(frame, %" PRId64 ");\n",
                program->buffer_count);
  lp_buf_printf(&body, "  const Ref *ref = %s_refs;\n", segment->symbol);
  for (size_t i = 0; i < runs.count; i++) {
    const gpu_run *run = &runs.data[i];
    const char *name = segment->calls.data[run->first].launcher->name;
    if (run->period > 1) name = print_layer(p, segment, run);
    if (run->count > 1)
      lp_buf_printf(&body, "  for (int i = 0; i < %zu; i++, ref += %" PRId32 ")\n    %s(f, ref);\n", run->count,
                    run_refs(segment, run), name);
    else
      lp_buf_printf(&body, "  %s(f, ref), ref += %" PRId32 ";\n", name, run_refs(segment, run));
  }
  lp_buf_puts(&body, "  (void)ref;\n}\n");
  print_refs(segment, p->out);
  lp_buf_puts(p->out, lp_buf_text(&body));
  lp_buf_free(&body);
  lp_vec_free(&runs);
}

void cuda_print_host(const gpu_plan *plan, lp_buf *out) {
  printer p = {plan, lp_map_create(), out};
  lp_map *done = lp_map_create();
  gpu_print_text(&cuda_dialect, gpu_template("cuda_host"), out);
  print_launchers(plan, out);
  for (size_t i = 0; i < plan->programs.count; i++) {
    const gpu_program *program = &plan->programs.data[i];
    for (size_t k = 0; k < program->segments.count; k++) {
      if (lp_map_has(done, program->segments.data[k]->symbol)) continue;
      lp_map_put(done, program->segments.data[k]->symbol, NULL);
      print_segment(&p, program, program->segments.data[k]);
    }
  }
  lp_buf_puts(out, "\n}  // namespace\n");
  lp_buf_printf(out, "\nextern \"C\" {\nextern const uint32_t lp_abi;\nconst uint32_t lp_abi = %u;\n}\n",
                LP_ABI_VERSION);
  cuda_print_layouts(plan, out);
  lp_map_free(done);
  lp_map_free(p.layers);
}
