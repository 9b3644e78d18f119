/* The processes of `mpirun llmpart sweep`, `simulate` and `worker`, over MPI. This is a library of its own, which the
 * command loads under mpirun only, so that it needs no MPI itself. */
#include "tools/mpi/mpi.h"

#include <limits.h>
#include <mpi.h>
#include <time.h>

enum { BROADCAST = 1, MOST_BYTES = 1 << 30 }; /* a tag; the most bytes of one message */

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

/* MPI_Bcast keeps a core busy while it waits. A worker's ranks wait for requests, so they look often at first, and then
 * sleep between looks. Messages of one sender arrive in order, so one tag is enough. */
static void receive_patiently(void *data, size_t size) {
  enum { LOOKS = 20000 };
  const struct timespec pause = {.tv_nsec = 50000};
  int found = 0;
  for (int i = 0; !found; i++) {
    (void)MPI_Iprobe(0, BROADCAST, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    if (!found && i >= LOOKS) (void)nanosleep(&pause, NULL);
  }
  (void)MPI_Recv(data, (int)size, MPI_BYTE, 0, BROADCAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void broadcast(void *data, size_t size) {
  int rank = 0, count = 1;
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  (void)MPI_Comm_size(MPI_COMM_WORLD, &count);
  for (size_t at = 0; at < size; at += MOST_BYTES) {
    size_t part = size - at < MOST_BYTES ? size - at : MOST_BYTES;
    for (int to = 1; rank == 0 && to < count; to++)
      (void)MPI_Send((char *)data + at, (int)part, MPI_BYTE, to, BROADCAST, MPI_COMM_WORLD);
    if (rank > 0) receive_patiently((char *)data + at, part);
  }
}

/* Every process has its own part in place, and gets the others'. */
static void all_gather(const void *part, size_t size, void *all) {
  if (size > INT_MAX) (void)MPI_Abort(MPI_COMM_WORLD, 1); /* a part of a tensor has no such size */
  (void)MPI_Allgather(part, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, MPI_COMM_WORLD);
}

bool lp_mpi_begin(lp_peers *out) {
  int level = MPI_THREAD_SINGLE, rank = 0, count = 1;
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS || level < MPI_THREAD_SERIALIZED)
    return false;
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  (void)MPI_Comm_size(MPI_COMM_WORLD, &count);
  *out = (lp_peers){.rank = rank,
                    .count = count,
                    .send = send,
                    .wait = wait,
                    .receive = receive,
                    .broadcast = broadcast,
                    .all_gather = all_gather};
  return true;
}

void lp_mpi_end(int status) {
  if (status) (void)MPI_Abort(MPI_COMM_WORLD, status);
  (void)MPI_Finalize();
}
