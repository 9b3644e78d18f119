/* The header of a safetensors file. */
#ifndef LP_BACKEND_SAFETENSORS_H
#define LP_BACKEND_SAFETENSORS_H

#include "backend/constants.h"

/* Writes the header. The caller writes the data after it, in the list's order and without gaps. */
void lp_safetensors_header(lp_writer *writer, const lp_stored_constant *const *list, size_t count);

#endif
