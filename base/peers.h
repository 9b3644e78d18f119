/* Processes that compute one result together, as a table of functions over a library of messages. Process 0 hands out
 * the work and gets the results. One thread at a time calls a function. */
#pragma once

#include "base/base.h"

typedef struct {
  int32_t rank, count;
  void (*send)(int32_t to, const void *data, size_t size);
  /* Waits for a message from any process; returns its sender and its size. */
  int32_t (*wait)(size_t *size);
  void (*receive)(int32_t from, void *data, size_t size); /* the message that `wait` found */
  /* Calls of all processes together: copies data[size] of process 0 to all others, and fills all[count][size] with
   * every process's part[size]. A process that waits for a broadcast sleeps after a while. */
  void (*broadcast)(void *data, size_t size);
  void (*all_gather)(const void *part, size_t size, void *all);
} lp_peers;
