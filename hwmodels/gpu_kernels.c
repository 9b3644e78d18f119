/* The types in which the kernels of the GPU backends multiply, by interface and architecture (backend/gpu/rules). */
#include "hwmodels/hwmodels.h"

/* sm_61 multiplies halves slowly, and 8 bits need its dot product of bytes. */
const lp_hw_architectures lp_hw_old_halves = {53, 60}, lp_hw_halves = {62, 79}, lp_hw_dot_bytes = {61, 79};

lp_hw_tensor lp_hw_tensor_of(lp_dtype store) {
  if (store == LP_BF16) return (lp_hw_tensor){LP_BF16, 80, 80};
  return (lp_hw_tensor){LP_F16, 75, store == LP_F16 ? 70 : 80};
}

int32_t lp_hw_attention_tensor_from(lp_dtype store, int64_t d, int64_t dv) {
  if (d % LP_HW_TENSOR_ELEMENTS != 0 || dv % LP_HW_TENSOR_ELEMENTS != 0) return 0;
  return store == LP_BF16 || store == LP_F16 ? lp_hw_tensor_of(store).sm : 0;
}

/* The CUDA architecture of the GPU, 80 for "sm_80"; 0: it has none. */
static int32_t architecture(const lp_machine *machine) {
  const lp_hw_target *target = &machine->target;
  const bool is_cuda = target->gpu && lp_streq(target->gpu_interface, "cuda") && lp_has_prefix(target->gpu, "sm_");
  return is_cuda ? (int32_t)atoi(target->gpu + strlen("sm_")) : 0;
}

/* No backend emits code for other GPUs: whatever kernels they have are taken to multiply in the types of operands. */
static bool has_our_kernels(const lp_machine *machine) {
  const lp_hw_target *target = &machine->target;
  return !target->ideal && (architecture(machine) > 0 || lp_streq(target->gpu_interface, "opencl"));
}

bool lp_hw_prefers_halves(const lp_machine *machine) {
  return machine->target.has_type[LP_HW_PEAK_F16 - LP_HW_PEAK_F32] &&
         machine->figure[LP_HW_PEAK_F16] > machine->figure[LP_HW_PEAK_F32];
}

static bool lies_in(int32_t sm, lp_hw_architectures range) {
  return sm >= range.least && sm <= range.most;
}

/* Products of rounded activations; f32: the GPU has none. */
static lp_dtype rounded_dtype(const lp_machine *machine, lp_dtype store, bool bytes) {
  const int32_t sm = architecture(machine);
  const bool coded = !lp_dtype_is_float(store);
  if (!coded && store != LP_F16) return LP_F32;
  if (sm == 0) return coded && bytes ? LP_I8 : lp_hw_prefers_halves(machine) ? LP_F16 : LP_F32;
  if (coded && bytes && lies_in(sm, lp_hw_dot_bytes)) return LP_I8;
  const bool multiplies_halves = lies_in(sm, lp_hw_old_halves) || (lies_in(sm, lp_hw_halves) && !(coded && bytes));
  return multiplies_halves ? LP_F16 : LP_F32;
}

lp_dtype lp_hw_product_dtype(const lp_machine *machine, lp_dtype store, int64_t k, bool bytes) {
  const lp_hw_tensor tensor = lp_hw_tensor_of(store);
  const int32_t sm = architecture(machine);
  const bool tiles = k % LP_HW_TENSOR_ELEMENTS == 0, by_library = sm >= tensor.sm_of_library && sm < tensor.sm;
  if (!has_our_kernels(machine)) return lp_dtype_bits(store) > 8 ? store : LP_F16;
  if (store == LP_F32) return LP_F32;
  if (tiles && (sm >= tensor.sm || by_library)) return tensor.dtype;
  return k % LP_HW_ROUNDED_BLOCK == 0 ? rounded_dtype(machine, store, bytes) : LP_F32;
}

lp_dtype lp_hw_attention_dtype(const lp_machine *machine, lp_dtype store, int64_t d, int64_t dv) {
  const int32_t from = lp_hw_attention_tensor_from(store, d, dv);
  if (!has_our_kernels(machine)) return lp_dtype_is_float(store) ? store : LP_F16;
  return from > 0 && architecture(machine) >= from ? store : LP_F32;
}

lp_dtype lp_hw_matmul_dtype(const lp_machine *machine, lp_dtype own) {
  return has_our_kernels(machine) ? LP_F32 : own;
}
