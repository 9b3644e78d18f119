/* The processes of `mpirun llmpart sweep` and `simulate`, over MPI. This is a library of its own, which the command
 * loads under mpirun only, so that it needs no MPI itself. */
#include "tools/mpi/mpi.h"

#include <mpi.h>
#include <time.h>

static void send(int32_t to, const void *data, size_t size) {
  (void)MPI_Send(data, (int)size, MPI_BYTE, to, 0, MPI_COMM_WORLD);
}

/* Sleeps between looks: MPI_Probe keeps a core busy. */
static int32_t wait(size_t *size) {
  const struct timespec pause = {.tv_nsec = 50000};
  MPI_Status status;
  int found = 0, count = 0;
  for (;;) {
    (void)MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &found, &status);
    if (found) break;
    (void)nanosleep(&pause, NULL);
  }
  (void)MPI_Get_count(&status, MPI_BYTE, &count);
  *size = (size_t)count;
  return status.MPI_SOURCE;
}

static void receive(int32_t from, void *data, size_t size) {
  (void)MPI_Recv(data, (int)size, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

bool lp_mpi_begin(lp_peers *out) {
  int level = MPI_THREAD_SINGLE, rank = 0, count = 1;
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS || level < MPI_THREAD_SERIALIZED)
    return false;
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  (void)MPI_Comm_size(MPI_COMM_WORLD, &count);
  *out = (lp_peers){.rank = rank, .count = count, .send = send, .wait = wait, .receive = receive};
  return true;
}

void lp_mpi_end(int status) {
  if (status) (void)MPI_Abort(MPI_COMM_WORLD, status);
  (void)MPI_Finalize();
}
