/* The processes of `mpirun llmpart`: the functions of lib/llmpart/mpi.so, which the command loads (load.c). Errors of
 * MPI end all processes (MPI_ERRORS_ARE_FATAL). */
#pragma once

#include "base/peers.h"

typedef bool lp_mpi_begin_function(lp_peers *out);
typedef void lp_mpi_end_function(int status);

/* Begins MPI; false when it offers no threads. */
lp_mpi_begin_function lp_mpi_begin;
/* Ends it; a status other than 0 ends all processes. */
lp_mpi_end_function lp_mpi_end;

/* Under mpirun: loads the library and begins. Elsewhere it leaves peers->count and *end 0. `instead`: advice for when
 * this llmpart was built without MPI. */
LP_MUST_USE lp_status lp_tool_begin_mpi(lp_peers *peers, lp_mpi_end_function **end, const char *instead, lp_diag *diag);
