/* The kernels of kernels.h as LLVM 19 bitcode, for the code generator to parse and link. */
#pragma once

#include <stddef.h>

extern const unsigned char lp_kernels_x86_64[];
extern const size_t lp_kernels_x86_64_size;
extern const unsigned char lp_kernels_aarch64[];
extern const size_t lp_kernels_aarch64_size;
