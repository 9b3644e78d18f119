/* Parts of all placements by their largest activations (rooms.c). */
#pragma once

#include "base/base.h"
#include "proof/certificate.h"

/* The placements in which the largest activation of a side has `least` to `most` bytes. */
typedef struct {
  double least[LP_SIDE_COUNT], most[LP_SIDE_COUNT];
  double bound; /* of their objectives; -infinity: not known yet */
} room;
typedef LP_VEC(room) rooms;

/* Divides all placements into few rooms, those with the largest activations first. Release with lp_vec_free. */
void rooms_list(const lp_certificate *c, rooms *out);
/* Makes the problem of the placements of a room, in the arena of `c`: each side holds `least` bytes twice in any case,
 * and units with larger activations than `most` run on the other side. False when there are none. */
bool rooms_restrict(const lp_certificate *c, const room *r, lp_certificate *out);
