/* The places of a split model: the machines over which it is spread. A place is a number from 0, and its name is in the
 * module or the manifest that it belongs to. Place 0 is the device, which has the inputs and gets the tokens. A model
 * of two places has the sides of base/side.h as its places, with their names. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { LP_PLACES_MAX = 8, LP_PLACE_NAME_MOST = 48 };

typedef int32_t lp_place;

/* Tells whether a place may have this name, after which a folder is named: 1 to LP_PLACE_NAME_MOST letters, digits,
 * '_' and '.', the first of them no '.', and not "both", which says that an operator is at every
 * place. */
bool lp_place_is_name(const char *name);
/* The number of the place of this name among names[count]; -1: there is none, or `name` is NULL. */
lp_place lp_place_find(const char *const *names, int32_t count, const char *name);
