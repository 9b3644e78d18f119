/* The products of integers, for targets that have instructions for them. */
#include "variants.h"

#define INTEGER(i, ...) DEFINE_GROUPS(integer_##i, lpk_linear_integer, __VA_ARGS__)
INTEGER_VARIANTS(INTEGER)
