/* A file beside it, named.h; a path, ir/ir.h; a path below a folder, base/named.h, and the only such one: rules.def. */
#include "base/absent.h"
/* gone.c is absent;
 * so is ir/gone.h, and twin.c is two files. */
int named; /* math.h is of the C library */
/* This comment has é, of two bytes, and exactly as many columns as a line of a comment may have, one hundred twenty. */
/* This comment has one column more than a line of a comment may have, so the check finds it and counts 121 columns. 1 */
const char *text = "text of a program, which is not a comment, may be longer than one hundred and twenty columns: 130";
