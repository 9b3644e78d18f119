/* The functions of lib/llmpart/mpi.so. MPI's errors end all processes (MPI_ERRORS_ARE_FATAL). */
#ifndef LP_TOOLS_MPI_H
#define LP_TOOLS_MPI_H

#include "passes/plan/sweep/sweep.h"

typedef bool lp_mpi_begin_function(lp_sweep_peers *out);
typedef void lp_mpi_end_function(int status);

/* Begins MPI; false when it offers no threads. */
lp_mpi_begin_function lp_mpi_begin;
/* Ends it; a status other than 0 ends all processes. */
lp_mpi_end_function lp_mpi_end;

#endif
