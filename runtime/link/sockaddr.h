/* The socket addresses that an address stands for (address.c). Private to the folder. */
#ifndef LP_LINK_SOCKADDR_H
#define LP_LINK_SOCKADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

typedef struct {
  struct sockaddr_storage at;
  socklen_t size;
} lp_sockaddr;

/* Looks up the socket addresses to connect to, or to listen on ("*" is every interface). Returns how many it stored, at
 * most `most`; for 0, `why` says what went wrong. Looking up a name may block for as long as the system's resolver
 * takes. */
size_t lp_address_resolve(const char *address, bool listens, lp_sockaddr *out, size_t most, const char **why);
/* "10.0.0.7:51234", "[::1]:51234", or "a process of this machine" for a Unix socket. */
void lp_sockaddr_print(const lp_sockaddr *from, char out[64]);
int lp_sockaddr_port(const lp_sockaddr *from); /* 0 for a Unix socket */

#endif
