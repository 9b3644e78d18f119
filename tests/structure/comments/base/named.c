/* A file beside it, named.h; a path, ir/ir.h; a path below a folder, base/named.h, and the only file of its name: rules.def. */
#include "base/absent.h"
/* gone.c is absent;
 * so is ir/gone.h, and twin.c is two files. */
int named; /* math.h is of the C library */
