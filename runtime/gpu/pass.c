/* Launches the calls of segments. A joint call is launched once over the rows of all sequences. Any other call is
 * launched once for all sequences if interface and kernel can read each sequence's sizes and addresses from tables
 * (tables.c), else once for each sequence. */
#include "runtime/gpu/pass.h"

#include "base/abi.h"
#include "base/map.h"
#include "runtime/gpu/sizes.h"
#include "runtime/gpu/tables.h"

/* The number of groups on an axis; in a recording, the number that the longest context of the grain needs. */
static int64_t groups_on(const lp_gpu_pass *pass, const lp_gpu_axis *axis, const int64_t *sym) {
  int64_t most[LP_MAX_NAMED_SYMBOLS];
  if (pass->recorded && lp_gpu_grows(axis->size)) {
    lp_gpu_grain(pass->gpu, sym, lp_gpu_longest_past(pass), most);
    sym = most;
  }
  int64_t size = lp_gpu_eval(pass->gpu, axis->size, sym);
  return size / axis->per + (size % axis->per > 0);
}

static lp_gpu_work work_of(const lp_gpu_pass *pass, const lp_gpu_launch *launch, const lp_gpu_value *value) {
  return (lp_gpu_work){.kernel = lp_map_get(pass->gpu->kernels, launch->kernel),
                       .groups = {0, 0, 1},
                       .threads = launch->threads,
                       .count = launch->arg_count,
                       .overlaps = pass->gpu->table.overlapping,
                       .arg = value};
}

static bool enqueue(const lp_gpu_pass *pass, const lp_gpu_work *work) {
  if (work->groups[0] <= 0 || work->groups[1] <= 0) return true;
  return pass->gpu->api->launch(pass->memory->queue, work);
}

/* ---- one part ---------------------------------------------------------------------------------------------------- */

static lp_gpu_value value_of(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call,
                             const lp_gpu_arg *arg) {
  lp_gpu_value value = {.is_memory = arg->kind != LP_GPU_ARG_SIZE};
  switch (arg->kind) {
  case LP_GPU_ARG_SIZE:
    value.size = lp_gpu_eval(pass->gpu, arg->size, part->frame->sym);
    if (pass->recorded && arg->moving >= 0 && part->owner)
      value.at = lp_gpu_size_at(pass, arg->moving, part->number > 0 ? part->number - 1 : 0);
    break;
  case LP_GPU_ARG_REF:
    value.memory = lp_gpu_memory_of(pass, part, &call->ref[arg->ref]);
    break;
  case LP_GPU_ARG_SCRATCH:
    value.memory = lp_gpu_scratch_of(pass, part);
    break;
  case LP_GPU_ARG_NULL:
    break;
  }
  return value;
}

static lp_gpu_product product_of(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call,
                                 const lp_gpu_launch *launch) {
  lp_gpu_value value[LP_GPU_PRODUCT_ARGS] = {{.is_memory = false}};
  for (int32_t i = 0; i < launch->arg_count; i++)
    value[i] = value_of(pass, part, call, &launch->arg[i]);
  return (lp_gpu_product){.kind = launch->product,
                          .rows = value[LP_GPU_ROWS].size,
                          .x = value[LP_GPU_X].memory,
                          .w = (char *)value[LP_GPU_W].memory + value[LP_GPU_W_BEGIN].size,
                          .bias = value[LP_GPU_BIAS].memory,
                          .add = value[LP_GPU_ADD].memory,
                          .y = (char *)value[LP_GPU_Y].memory + value[LP_GPU_BEGIN].size,
                          .workspace = (char *)lp_gpu_scratch_of(pass, part) -
                                       lp_gpu_workspace_bytes(pass->gpu, part->frame->sym)};
}

/* Tells whether the library does all products of a call. */
static bool by_library(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call) {
  bool any = false;
  LP_FOR_EACH(const lp_gpu_launch, launch, call->launcher->launch, call->launcher->count) {
    if (!launch->product || !lp_gpu_applies(pass->gpu, launch, part->frame->sym)) continue;
    const lp_gpu_product product = product_of(pass, part, call, launch);
    any = product.rows > 0 && pass->gpu->api->takes(pass->memory->queue, &product);
    if (!any) return false;
  }
  return any;
}

static bool multiply(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call,
                     const lp_gpu_launch *launch) {
  const lp_gpu_product product = product_of(pass, part, call, launch);
  atomic_store(&pass->gpu->library_used, true);
  return pass->gpu->api->multiply(pass->memory->queue, &product);
}

static bool launch_kernel(const lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call,
                          const lp_gpu_launch *launch) {
  lp_gpu_value value[LP_GPU_MOST_ARGS];
  lp_gpu_work work = work_of(pass, launch, value);
  for (int axis = 0; axis < 2; axis++)
    work.groups[axis] = groups_on(pass, &launch->axis[axis], part->frame->sym);
  for (int32_t i = 0; i < launch->arg_count; i++)
    value[i] = value_of(pass, part, call, &launch->arg[i]);
  return enqueue(pass, &work);
}

static bool launch(lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call, const lp_gpu_launch *launch) {
  if (!lp_gpu_applies(pass->gpu, launch, part->frame->sym)) return true;
  if (launch->by != LP_GPU_BY_ANY && (launch->by == LP_GPU_BY_LIBRARY) != by_library(pass, part, call)) return true;
  if (part->owner) pass->places = true;
  return launch->product ? multiply(pass, part, call, launch) : launch_kernel(pass, part, call, launch);
}

static bool launch_call(lp_gpu_pass *pass, const lp_gpu_part *part, const lp_gpu_call *call) {
  for (int32_t i = 0; i < call->launcher->count; i++)
    if (!launch(pass, part, call, &call->launcher->launch[i])) return false;
  return true;
}

/* ---- several sequences ------------------------------------------------------------------------------------------- */

static lp_gpu_value spread_value(const lp_gpu_pass *pass, const lp_gpu_call *call, const lp_gpu_arg *arg,
                                 int64_t first) {
  lp_gpu_value value = {.is_memory = arg->kind != LP_GPU_ARG_SIZE};
  if (arg->kind == LP_GPU_ARG_REF) return lp_gpu_spread_value(pass, &call->ref[arg->ref], first);
  if (arg->kind == LP_GPU_ARG_SCRATCH) return lp_gpu_spread_value(pass, NULL, first);
  if (arg->kind == LP_GPU_ARG_NULL) return value;
  value.size = lp_gpu_eval(pass->gpu, arg->size, pass->frame->sym); /* a constant, unless it is read from memory */
  if (arg->moving >= 0) value.at = lp_gpu_size_at(pass, arg->moving, first);
  return value;
}

/* One launch for sequences [first, last), with as many groups as the largest of them needs. */
static bool launch_spread(const lp_gpu_pass *pass, const lp_gpu_call *call, const lp_gpu_launch *launch, int64_t first,
                          int64_t last) {
  lp_gpu_value value[LP_GPU_MOST_ARGS];
  lp_gpu_work work = work_of(pass, launch, value);
  work.groups[2] = last - first;
  for (int axis = 0; axis < 2; axis++)
    for (int64_t i = first; i < last; i++) {
      int64_t groups = groups_on(pass, &launch->axis[axis], pass->frame->sequence[i].sym);
      if (groups > work.groups[axis]) work.groups[axis] = groups;
    }
  for (int32_t i = 0; i < launch->arg_count; i++)
    value[i] = spread_value(pass, call, &launch->arg[i], first);
  return enqueue(pass, &work);
}

/* One launch for each run of sequences that the condition of the launch holds for. */
static bool launch_runs(const lp_gpu_pass *pass, const lp_gpu_call *call, const lp_gpu_launch *launch) {
  const lp_frame *sequence = pass->frame->sequence;
  for (int64_t first = 0, last; first < pass->frame->sequences; first = last) {
    bool is = lp_gpu_applies(pass->gpu, launch, sequence[first].sym);
    for (last = first + 1; last < pass->frame->sequences && lp_gpu_applies(pass->gpu, launch, sequence[last].sym) == is;
         last++)
      ;
    if (is && !launch_spread(pass, call, launch, first, last)) return false;
  }
  return true;
}

static bool launch_for_each(lp_gpu_pass *pass, const lp_gpu_call *call, const lp_gpu_launch *one) {
  for (int64_t i = 1; i <= pass->frame->sequences; i++) {
    const lp_gpu_part part = lp_gpu_part_of(pass, i);
    if (!launch(pass, &part, call, one)) return false;
  }
  return true;
}

static bool launch_apart(lp_gpu_pass *pass, const lp_gpu_call *call) {
  LP_FOR_EACH(const lp_gpu_launch, one, call->launcher->launch, call->launcher->count) {
    bool spreads = one->spread && pass->gpu->api->spreads;
    if (!(spreads ? launch_runs(pass, call, one) : launch_for_each(pass, call, one))) return false;
  }
  return true;
}

/* Copies the rows that a call uses to the sequence's own memory, and back. */
static bool launch_shared(lp_gpu_pass *pass, const lp_gpu_call *call) {
  for (int64_t i = 1; i <= pass->frame->sequences; i++) {
    const lp_gpu_part part = lp_gpu_part_of(pass, i);
    if (!lp_gpu_take_rows(pass, &part, call) || !launch_call(pass, &part, call) || !lp_gpu_give_rows(pass, &part, call))
      return false;
  }
  return true;
}

/* An operator of a profiled segment begins when all earlier ones have ended. */
static bool mark(const lp_gpu_pass *pass) {
  lp_clock *clock = pass->frame->clock;
  bool done = pass->gpu->api->finish(pass->memory->queue);
  clock->mark(clock);
  return done;
}

bool lp_gpu_is_timed(const lp_gpu_pass *pass) {
  return pass->gpu->table.profiled && pass->frame->clock;
}

bool lp_gpu_launch_all(lp_gpu_pass *pass, const lp_gpu_segment *segment) {
  const lp_gpu_part all = lp_gpu_part_of(pass, 0);
  const bool timed = lp_gpu_is_timed(pass);
  bool done = true;
  for (int32_t i = 0; i < segment->count && done; i++) {
    const lp_gpu_call *call = &segment->call[i];
    if (timed && !mark(pass)) return false;
    if (pass->frame->sequences == 0 || call->joint)
      done = launch_call(pass, &all, call);
    else
      done = pass->gpu->api->apart ? launch_apart(pass, call) : launch_shared(pass, call);
  }
  return timed ? pass->gpu->api->finish(pass->memory->queue) && done : done;
}
