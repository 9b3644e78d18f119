/* The two sides of a split model. Every loop over the sides takes their count and names from here. */
#pragma once

#include <stdbool.h>

typedef enum { LP_SIDE_DEVICE, LP_SIDE_CLOUD, LP_SIDE_COUNT } lp_side;

extern const char *const lp_side_names[LP_SIDE_COUNT]; /* "device", "cloud" */

const char *lp_side_name(lp_side side);            /* static text */
bool lp_side_find(const char *name, lp_side *out); /* false when `name` is NULL or names no side */
/* The side at the other end of the link. */
lp_side lp_side_other(lp_side side);
