/* Attention with products of bf16. */
#define ATTENTION lpk_attention_pairs
#define PAIRS 1
#include "backend/cpu/kernels/attention_body.h"
