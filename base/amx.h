/* The permission to use the tile registers of AMX: Linux gives it to a process that asks. */
#pragma once

#include <stdbool.h>

/* Asks for the tiles, for all threads of the process, present and future. Returns false where the processor or the
 * operating system has none, or where it denies them. May be called again, and by several threads. */
bool lp_amx_request(void);
