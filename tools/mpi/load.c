/* Loads the library that speaks MPI, when mpirun has started the command. */
#include "base/path.h"
#include "tools/mpi/mpi.h"

#include <dlfcn.h>

lp_status lp_tool_begin_mpi(lp_peers *peers, lp_mpi_end_function **end, const char *instead, lp_diag *diag) {
  lp_mpi_begin_function *begin = NULL;
  lp_mpi_end_function *found = NULL;
  if (!getenv("OMPI_COMM_WORLD_SIZE")) return LP_OK;
  char *path = lp_path_library("mpi.so");
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library) {
    *(void **)&begin = dlsym(library, "lp_mpi_begin");
    *(void **)&found = dlsym(library, "lp_mpi_end");
  }
  free(path);
  if (!begin || !found || !begin(peers))
    return lp_error(diag, LP_LOC_FILE("mpirun"), "this llmpart was built without MPI; %s", instead);
  *end = found;
  return LP_OK;
}
