/* Reads --cloud and --peer: see addresses.h. */
#include "tools/run/addresses.h"

lp_status lp_run_addresses_read(const lp_texts *values, const char *option, bool named, lp_arena *arena,
                                lp_place_addresses *out, lp_diag *diag) {
  if (lp_place_addresses_of(values->data, values->count, option, arena, out, diag) != LP_OK) return LP_USAGE;
  if (!named || !out->only) return LP_OK;
  return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(option),
                     "'%s' is not the name and address of a place, such as edge=10.0.0.7:7700", out->only);
}
