/* The container of a side's weights: safetensors, an 8-byte header length, a JSON header, and a data section. */
#ifndef LP_SAFETENSORS_H
#define LP_SAFETENSORS_H

#include "base/base.h"
#include "base/file.h"

/* Checks that the mapped file is well formed and that every tensor lies inside its data section, so that code may
 * read all of it. `data_offset` receives where the section begins; `path` is for messages. */
LP_MUST_USE lp_status lp_safetensors_check(const char *path, const lp_mapping *mapping, size_t *data_offset,
                                           lp_diag *diag);

#endif
