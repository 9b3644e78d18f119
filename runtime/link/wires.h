/* The connections of a device with several places, awaited together: a place that is lost is noticed while the device
 * waits for another one. */
#pragma once

#include "runtime/link/link.h"

typedef struct {
  lp_wire *const *wire; /* [count]; NULL: no connection */
  size_t count;
  int epoll;  /* of all their channels; -1: not made, as one connection needs none */
  bool brief; /* the last wait was brief */
} lp_wires;

/* Prepares to wait for wire[count], which the caller owns and keeps until lp_wires_close. False: no descriptors are
 * left. */
bool lp_wires_open(lp_wires *wires, lp_wire *const *wire, size_t count);
void lp_wires_close(lp_wires *wires); /* twice is allowed */
/* Receives the next message of any connection as lp_wire_receive does, and sets *from to the index of its wire. */
lp_recv_outcome lp_wires_receive(lp_wires *wires, double timeout_ms, size_t *from, lp_inbound *out, const char **why);
