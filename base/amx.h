/* The tiles of AMX, whose registers a process must ask the operating system for. */
#ifndef LP_AMX_H
#define LP_AMX_H

#include <stdbool.h>

/* Asks for the tiles, for all threads of the process, present and future. Returns false where the processor or the
 * operating system has none, or where it denies them. May be called again, and by several threads. */
bool lp_amx_request(void);

#endif
