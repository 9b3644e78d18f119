/* Products of many rows by a library, if the runtime finds one. Codes are widened to 16 bits before it. The library
 * adds the bias, and the residual or the activation if the operator has one. A kernel that runs after it computes the
 * rest, and the gate. */
#include "backend/gpu/rules/product.h"

#include "base/poly.h"

enum { THREADS = 256, EACH = 4, WIDENED = 8 };

/* Offsets in the scratch. */
typedef struct {
  const lp_poly *w, *gate; /* the widened weight, and the product of the gate */
} places;

const char *gpu_linear_tag(const gpu_builder *b) {
  const char *epilogue = lp_op_str(b->op, "epilogue", "none");
  return gpu_format(b->list, "%s_%s%s%s", b->op->kind == LP_OP_EXPERTS ? "experts" : "linear",
                    lp_op_in(b->op, 4) ? "gated_" : "", lp_streq(epilogue, "none") ? "" : epilogue,
                    lp_streq(epilogue, "none") ? "" : "_");
}

static bool library_has(const char *epilogue) {
  return lp_streq(epilogue, "none") || lp_streq(epilogue, "relu") || lp_streq(epilogue, "gelu_tanh");
}

static void set_conditions(gpu_launch *launch, const gpu_linear *l, const gpu_product_form *form) {
  gpu_launch_when(launch, l->rows, form->few + 1, INT64_MAX);
  if (form->sm > 0) gpu_launch_on(launch, form->sm, LP_HW_MOST_SM);
  launch->by = GPU_BY_LIBRARY;
}

/* Widens the codes of the weight, or of the gate, into the scratch. */
static void widen(gpu_builder *b, const gpu_linear *l, const gpu_product_form *form, bool gate, const lp_poly *at) {
  gpu_launch_list *list = b->list;
  const char *const params[] = {"WTYPE", l->type, "STORE", l->store, "HALF", gpu_store_name(form->dtype), NULL};
  gpu_kernel *kernel = gpu_kernel_get(list, "widen", gpu_format(list, "widen_%s", l->store), params);
  kernel->finishes = true;
  const lp_poly *count = lp_dim_const(list->module, l->n * l->k);
  gpu_launch *launch = gpu_launch_add(b, kernel, THREADS, count, THREADS * WIDENED);
  set_conditions(launch, l, form);
  gpu_arg_ref(launch, gate ? l->gate : l->w);
  gpu_arg_ref(launch, gate ? l->gate_scale : l->scale);
  gpu_arg_scratch(launch);
  gpu_arg_size(launch, at);
  gpu_arg_size(launch, count);
}

/* Launches the product x . w into y, or with `gate` x . gate into the scratch. */
static gpu_launch *launch_product(gpu_builder *b, const gpu_linear *l, const gpu_product_form *form, bool gate,
                                  const char *epilogue, const places *at) {
  if (form->coded) widen(b, l, form, gate, at->w);
  gpu_gemm *product = LP_NEW(b->list->arena, gpu_gemm);
  *product = (gpu_gemm){.n = l->n, .k = l->k, .dtype = form->dtype, .scale = form->scale, .epilogue = epilogue};
  lp_vec_push(&b->launches, ((gpu_launch){.product = product}));
  gpu_launch *launch = &b->launches.data[b->launches.count - 1];
  set_conditions(launch, l, form);
  if (form->x < 0)
    gpu_arg_scratch(launch);
  else
    gpu_arg_ref(launch, form->x);
  if (form->coded)
    gpu_arg_scratch(launch);
  else
    gpu_arg_ref(launch, gate ? l->gate : l->w);
  return launch;
}

static void finish(gpu_builder *b, const gpu_linear *l, const gpu_product_form *form, const lp_poly *at) {
  gpu_launch_list *list = b->list;
  const char *epilogue = lp_op_str(b->op, "epilogue", "none");
  const char *const params[] = {"WHAT", "op.linear", "GATED", l->gate >= 0 ? "1" : "0", "EPILOGUE", epilogue, NULL};
  const char *stem = gpu_format(list, "%sfinish", gpu_linear_tag(b));
  gpu_kernel *kernel = gpu_kernel_get(list, "linear_finish", stem, params);
  kernel->finishes = true;
  const lp_poly *count = lp_poly_scale(list->module->arena, l->rows, l->n);
  gpu_launch *launch = gpu_launch_add(b, kernel, THREADS, count, THREADS * EACH);
  set_conditions(launch, l, form);
  gpu_arg_scratch(launch);
  gpu_arg_ref(launch, l->residual);
  gpu_arg_ref(launch, l->y);
  gpu_arg_size(launch, at);
  gpu_arg_size(launch, count);
  launch->spare = true;
}

/* Finds room after narrowed activations, which later operators may read too. */
static places find_room(gpu_builder *b, const gpu_linear *l, const gpu_product_form *form) {
  lp_arena *arena = b->list->module->arena;
  const lp_poly *begin = form->x < 0 ? lp_poly_scale(arena, l->rows, 2 * l->k) : lp_dim_const(b->list->module, 0);
  places at = {.w = begin, .gate = begin};
  if (form->coded) at.gate = lp_poly_add(arena, begin, lp_dim_const(b->list->module, 2 * l->n * l->k));
  if (l->gate < 0 && !form->coded) return at;
  const lp_poly *end = l->gate < 0 ? at.gate : lp_poly_add(arena, at.gate, lp_poly_scale(arena, l->rows, 4 * l->n));
  lp_vec_push(&b->program->scratch, ((gpu_scratch){end, l->rows, INT64_MAX, true}));
  if (form->x >= 0) b->program->narrowed.value = NULL;
  return at;
}

bool gpu_linear_product(gpu_builder *b, const gpu_linear *l, const gpu_product_form *form) {
  const char *epilogue = lp_op_str(b->op, "epilogue", "none");
  const bool plain = lp_streq(epilogue, "none"), gated = l->gate >= 0;
  const bool whole = !gated && (l->residual >= 0 ? plain : library_has(epilogue));
  if (!b->list->products) return false;
  const places at = find_room(b, l, form);
  const lp_poly *zero = lp_dim_const(b->list->module, 0);
  gpu_launch *launch = launch_product(b, l, form, false, whole ? epilogue : "none", &at);
  gpu_arg_ref(launch, l->bias);
  gpu_arg_ref(launch, whole ? l->residual : -1);
  gpu_arg_ref(launch, l->y);
  gpu_arg_size(launch, l->rows);
  gpu_arg_size(launch, zero);
  if (form->coded) gpu_arg_size(launch, at.w);
  if (gated) {
    launch = launch_product(b, l, form, true, "none", &at);
    gpu_arg_ref(launch, -1);
    gpu_arg_ref(launch, -1);
    gpu_arg_scratch(launch);
    gpu_arg_size(launch, l->rows);
    gpu_arg_size(launch, at.gate);
    if (form->coded) gpu_arg_size(launch, at.w);
  }
  if (!whole) finish(b, l, form, at.gate);
  return true;
}
