/* Attention with products of floats. */
#define ATTENTION lpk_attention
#define PAIRS 0
#include "backend/cpu/kernels/attention_body.h"
