/* The host's part of cloud.cu: a function that launches each kind of call, layers as functions, segments as tables of
 * the memory that calls use. Equal layers are one function; only the tables grow with the depth of a model. Kernels
 * compute all products. */
#include "backend/cuda/cuda_internal.h"

#include "backend/gpu/print.h"
#include "backend/program.h"
#include "base/abi.h"
#include "base/map.h"

/* ---- launchers --------------------------------------------------------------------------------------------------- */

static void print_groups(const gpu_launch_list *list, const gpu_launch *launch, int axis, lp_buf *out) {
  int64_t per = launch->grid[axis].per;
  if (per > 1) lp_buf_puts(out, "groups(");
  gpu_print_size(list, launch->grid[axis].size, out);
  if (per > 1) lp_buf_printf(out, ", %" PRId64 ")", per);
}

static void print_arg(const gpu_launch_list *list, const gpu_arg *arg, lp_buf *out) {
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
    gpu_print_size(list, arg->size, out);
  }
}

/* Appends one bound of a condition; `more` says that another bound precedes it. */
static void print_bound(const gpu_launch_list *list, const gpu_launch *launch, const char *relation, int64_t bound,
                        bool more, lp_buf *out) {
  lp_buf_puts(out, more ? " && " : "if (");
  gpu_print_size(list, launch->few, out);
  lp_buf_printf(out, " %s %" PRId64, relation, bound);
}

static void print_condition(const gpu_launch_list *list, const gpu_launch *launch, lp_buf *out) {
  const bool above = launch->few && launch->least > 0, below = launch->few && launch->most < INT64_MAX;
  if (above) print_bound(list, launch, ">=", launch->least, false, out);
  if (below) print_bound(list, launch, "<=", launch->most, above, out);
  if (launch->most_sm) {
    const bool newer = launch->least_sm > 0, older = launch->most_sm < LP_HW_MOST_SM;
    lp_buf_puts(out, above || below ? " && " : "if (");
    if (newer) lp_buf_printf(out, "architecture(%s) >= %" PRId32, launch->kernel->name, launch->least_sm);
    if (newer && older) lp_buf_puts(out, " && ");
    if (older) lp_buf_printf(out, "architecture(%s) <= %" PRId32, launch->kernel->name, launch->most_sm);
  }
  if (above || below || launch->most_sm) lp_buf_puts(out, ")\n    ");
}

static void print_launch(const gpu_launch_list *list, const gpu_launch *launch, lp_buf *out) {
  lp_buf_puts(out, "  ");
  print_condition(list, launch, out);
  lp_buf_printf(out, "launch(f, %s, ", launch->kernel->name);
  print_groups(list, launch, 0, out);
  lp_buf_puts(out, ", ");
  print_groups(list, launch, 1, out);
  lp_buf_printf(out, ", %" PRId32, launch->threads);
  for (int32_t i = 0; i < launch->arg_count; i++) {
    lp_buf_puts(out, ", ");
    print_arg(list, &launch->arg[i], out);
  }
  lp_buf_puts(out, ");\n");
}

static void print_launchers(const gpu_launch_list *list, lp_buf *out) {
  for (size_t i = 0; i < lp_map_count(list->launchers); i++) {
    const gpu_launcher *launcher = lp_map_value_at(list->launchers, i);
    lp_buf_printf(out, "\n// %s\nvoid %s(const Frame &f, const Ref *ref) {\n", launcher->what, launcher->name);
    for (int32_t k = 0; k < launcher->launch_count; k++)
      if (launcher->launch[k].by != GPU_BY_LIBRARY) print_launch(list, &launcher->launch[k], out);
    lp_buf_puts(out, "}\n");
  }
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* A run of `period` calls from `first` that occurs `count` times in a row: the layers of a model are equal runs. */
typedef struct {
  size_t first, period, count;
} call_run;
typedef LP_VEC(call_run) call_runs;

enum { LONGEST_PERIOD = 1024 };

/* Returns how many times the calls [first, first + period) repeat in a row. */
static size_t repeats(const lp_side_segment *segment, size_t first, size_t period) {
  size_t equal = 0;
  while (first + period + equal < segment->calls.count &&
         gpu_call_at(segment, first + equal)->launcher == gpu_call_at(segment, first + period + equal)->launcher)
    equal++;
  return 1 + equal / period;
}

/* The run from `first` that covers the most calls; of equal ones the one with the shortest period. */
static call_run longest_run(const lp_side_segment *segment, size_t first) {
  call_run best = {first, 1, 1};
  size_t left = segment->calls.count - first, most = left / 2 < LONGEST_PERIOD ? left / 2 : LONGEST_PERIOD;
  for (size_t period = 1; period <= most; period++) {
    size_t count = repeats(segment, first, period);
    if (count > 1 && count * period > best.count * best.period) best = (call_run){first, period, count};
  }
  return best;
}

/* Splits the calls into runs. A run that begins a little later goes first when it covers more calls. */
static void find_runs(const lp_side_segment *segment, call_runs *out) {
  for (size_t at = 0; at < segment->calls.count;) {
    call_run run = longest_run(segment, at);
    for (size_t later = at + 1; later < at + run.period && later < segment->calls.count; later++) {
      call_run other = longest_run(segment, later);
      if (other.count * other.period > run.count * run.period + run.period) run = (call_run){at, 1, 1};
    }
    lp_vec_push(out, run);
    at += run.period * run.count;
  }
}

typedef struct {
  const gpu_launch_list *list;
  lp_map *layers; /* the calls -> the layer's name */
  lp_buf *out;
} printer;

static int32_t print_calls(const lp_side_segment *segment, const call_run *run, lp_buf *out) {
  int32_t refs = 0;
  for (size_t i = 0; i < run->period; i++) {
    const gpu_call *call = gpu_call_at(segment, run->first + i);
    lp_buf_printf(out, "  %s(f, ref + %" PRId32 ");\n", call->launcher->name, refs);
    refs += call->ref_count;
  }
  return refs;
}

static const char *print_layer(const printer *p, const lp_side_segment *segment, const call_run *run) {
  LP_OWNED(lp_buf_free) lp_buf body = {0};
  (void)print_calls(segment, run, &body);
  const char *name = lp_map_get(p->layers, lp_buf_text(&body));
  if (!name) {
    name = lp_arena_format(p->list->arena, "layer_%zu", lp_map_count(p->layers));
    lp_map_put(p->layers, lp_buf_text(&body), (void *)(uintptr_t)name);
    lp_buf_printf(p->out, "\nvoid %s(const Frame &f, const Ref *ref) {\n%s}\n", name, lp_buf_text(&body));
  }
  return name;
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

static void print_refs(const lp_side_segment *segment, lp_buf *out) {
  lp_buf_printf(out, "\nconst Ref %s_refs[] = {\n", segment->symbol);
  for (size_t i = 0; i < segment->calls.count; i++) {
    const gpu_call *call = gpu_call_at(segment, i);
    lp_buf_puts(out, "    ");
    for (int32_t k = 0; k < call->ref_count; k++) {
      static const char *const places[] = {"?", "buffer", "weight", "state"};
      const gpu_ref *ref = &call->ref[k];
      lp_buf_printf(out, "%s(%" PRId64 "), ", places[ref->place],
                    ref->constant ? ref->constant->stored.offset : ref->index);
    }
    lp_buf_printf(out, " // %s\n", lp_op_str(call->base.op, "name", call->launcher->what));
  }
  lp_buf_puts(out, "};\n");
}

static int32_t run_refs(const lp_side_segment *segment, const call_run *run) {
  int32_t refs = 0;
  for (size_t i = 0; i < run->period; i++)
    refs += gpu_call_at(segment, run->first + i)->ref_count;
  return refs;
}

static void print_segment(const printer *p, const lp_side_program *program, const lp_side_segment *segment) {
  call_runs runs = {0};
  lp_buf body = {0};
  find_runs(segment, &runs);
  lp_buf_printf(&body, "\nextern \"C\" void %s(const lp_frame *frame, int64_t thread) {\n", segment->symbol);
  lp_buf_printf(&body, "  if (thread != 0) return;\n  const Frame f = enter(frame, %" PRId64 ");\n",
                program->buffer_count);
  lp_buf_printf(&body, "  const Ref *ref = %s_refs;\n", segment->symbol);
  for (size_t i = 0; i < runs.count; i++) {
    const call_run *run = &runs.data[i];
    const char *name = gpu_call_at(segment, run->first)->launcher->name;
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

void cuda_print_host(const gpu_launch_list *list, const gpu_dialect *dialect, lp_buf *out) {
  printer p = {list, lp_map_create(), out};
  lp_map *done = lp_map_create();
  gpu_print_text(dialect, gpu_template("cuda_host"), out);
  print_launchers(list, out);
  LP_FOR_VEC_REFS(lp_side_program, program, &list->programs.list) {
    for (size_t k = 0; k < program->segments.count; k++) {
      if (lp_map_has(done, program->segments.data[k]->symbol)) continue;
      lp_map_put(done, program->segments.data[k]->symbol, NULL);
      print_segment(&p, program, program->segments.data[k]);
    }
  }
  lp_buf_puts(out, "\n}  // namespace\n");
  lp_buf_printf(out, "\nextern \"C\" {\nextern const uint32_t lp_abi;\nconst uint32_t lp_abi = %u;\n}\n",
                LP_ABI_VERSION);
  cuda_print_layouts(list, out);
  lp_map_free(done);
  lp_map_free(p.layers);
}
