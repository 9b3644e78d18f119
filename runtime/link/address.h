/* Addresses of workers: HOST:PORT ("[::1]:80" for IPv6), or unix:PATH for a Unix socket of this machine. */
#pragma once

#include "base/base.h"

struct sockaddr;

/* Splits HOST:PORT. A Unix socket gives the host "unix:PATH" and port 0. Anything else is an error. The caller frees
 * `host`. */
LP_MUST_USE lp_status lp_address_split(const char *address, char **host, int *port, lp_diag *diag);
/* Tells whether only processes of this machine can reach the host, which is a loopback address or a Unix socket. */
bool lp_address_is_loopback(const char *host);
/* A number for the host of a socket's address: of IPv6 one host has a network of 64 bits, and all Unix sockets are one
 * host. Never 0. */
uint64_t lp_address_host(const struct sockaddr *at);
/* The path of a Unix socket's address, or NULL for other addresses. Borrowed from `address`. */
const char *lp_address_unix_path(const char *address);
