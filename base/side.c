/* The names of the sides. */
#include "base/side.h"

#include "base/base.h"

const char *const lp_side_names[LP_SIDE_COUNT] = {"device", "cloud"};

const char *lp_side_name(lp_side side) {
  return lp_side_names[side];
}

bool lp_side_find(const char *name, lp_side *out) {
  for (lp_side side = 0; side < LP_SIDE_COUNT; side++) {
    if (!lp_streq(name, lp_side_names[side])) continue;
    *out = side;
    return true;
  }
  return false;
}

lp_side lp_side_other(lp_side side) {
  return side == LP_SIDE_DEVICE ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
}
