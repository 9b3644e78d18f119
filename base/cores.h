/* The cores that this process may use. */
#ifndef LP_CORES_H
#define LP_CORES_H

#include <stdint.h>

int32_t lp_machine_threads(void); /* at least 1; respects the affinity of the process */

#endif
