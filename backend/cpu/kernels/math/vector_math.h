/* math_body.h for floats (scalar_NAME) and vectors (vector_NAME), and the activations on vectors. */
#pragma once

#include "backend/cpu/kernels/vector.h"

#define F float
#define I int32_t
#define U uint32_t
#define NAME(f) scalar_##f
#define SPLAT(c) ((float)(c))
#define TO_F(i) ((float)(i))
#include "backend/cpu/kernels/math/math_body.h"
#undef F
#undef I
#undef U
#undef NAME
#undef SPLAT
#undef TO_F

#define F v16
#define I v16i
#define U v16w
#define NAME(f) vector_##f
#define SPLAT(c) ((v16)(float)(c))
#define TO_F(i) __builtin_convertvector(i, v16)
#include "backend/cpu/kernels/math/math_body.h"
#undef F
#undef I
#undef U
#undef NAME
#undef SPLAT
#undef TO_F

INLINE v16 activate(v16 x, int act) {
  switch (act) {
  case LPK_ACT_RELU:
    return vector_relu(x);
  case LPK_ACT_GELU_TANH:
    return vector_gelu_tanh(x);
  case LPK_ACT_GELU_ERF:
    return vector_gelu_erf(x);
  case LPK_ACT_SILU:
    return vector_silu(x);
  case LPK_ACT_QUICK_GELU:
    return vector_quick_gelu(x);
  case LPK_ACT_SIGMOID:
    return vector_sigmoid(x);
  case LPK_ACT_TANH:
    return vector_tanh(x);
  default:
    return x;
  }
}
