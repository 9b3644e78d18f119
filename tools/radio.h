/* What the actions of `llmpart radio` share. */
#ifndef LP_TOOLS_RADIO_H
#define LP_TOOLS_RADIO_H

#include "runtime/radio/radio.h"
#include "tools/tools.h"

typedef struct {
  const char *scenario;
  bool los, nlos, high_loss, rayleigh;
  double d2d, h_bs, h_ut, fc, h_e, h_building, w_street, d_in; /* NAN: not given */
  double sinr_db, block_hz, gap_db, cap;
  int64_t blocks, users, intervals, seed;
  const char *scheduler;
  double beta;
  const char *csv; /* a table to add a column to */
  const char *out; /* a path, or text, csv or json on stdout; NULL: text */
} radio_flags;

/* One action: `llmpart radio NAME ...`. */
typedef lp_status radio_action(const radio_flags *flags, const lp_texts *args, lp_diag *diag);
radio_action radio_pathloss, radio_los, radio_o2i, radio_capacity; /* radio_value.c */
radio_action radio_pf, radio_drop, radio_list, radio_show;         /* radio_cell.c */

/* Writes to flags->out when that is a path, else to stdout. */
LP_MUST_USE lp_status radio_write(const radio_flags *flags, const lp_buf *text, lp_diag *diag);
bool radio_wants(const radio_flags *flags, const char *form); /* -o FORM or -o FILE.FORM */

#endif
