/* A launch list as text: kernels (print.c), and launches.json (table.c), which docs/gpu.md describes. */
#pragma once

#include "backend/gpu/launches.h"

/* Appends all kernels in the dialect; with `library` also those that finish the products of a library. */
void gpu_print_kernels(const gpu_launch_list *list, const gpu_dialect *dialect, bool library, lp_buf *out);
/* Appends a polynomial as a C expression over the members of `f`. */
void gpu_print_size(const gpu_launch_list *list, const lp_poly *size, lp_buf *out);
/* Appends launches.json: the list as data, for a runtime that launches the kernels. */
void gpu_print_table(const gpu_launch_list *list, const gpu_dialect *dialect, lp_buf *out);
