/* Loads shared objects that llmpart emitted, without the dynamic linker: a static program has none, and Android's lacks
 * the C library for which others are linked. Such an object is ELF for this processor, has no constructors and no
 * thread-local data, and imports at most the functions of memory and the scheduler listed in object.c. */
#pragma once

#include "base/base.h"

typedef struct lp_object lp_object;

/* Copies the `size` bytes of an object into memory of its own, resolves its imports, and makes it executable; `file`
 * names it in messages. Any bytes are safe input; the code itself is not checked. Release with lp_object_close. */
LP_MUST_USE lp_status lp_object_open(const char *file, const void *bytes, size_t size, lp_object **out, lp_diag *diag);
/* The address of an exported symbol, valid until the object is closed; NULL: it exports none of that name. */
void *lp_object_find(const lp_object *object, const char *name);
void lp_object_close(lp_object *object); /* NULL is allowed */
