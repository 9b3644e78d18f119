/* Declarations that the actions of `llmpart radio` share. */
#pragma once

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
  const char *csv; /* a table to which a column is added */
  const char *out; /* a path, or text, csv or json for stdout; NULL: text */
} radio_flags;

/* `llmpart radio NAME ...`; the command's user: radio_flags. */
lp_tool_act radio_pathloss, radio_los, radio_o2i, radio_capacity; /* value.c */
lp_tool_act radio_pf, radio_drop, radio_list, radio_show;         /* cell.c */
