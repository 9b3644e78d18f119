/* Positions of sites, and the gains of their antennas. */
#include "runtime/radio/radio.h"

#include <assert.h>
#include <math.h>

double lp_radio_antenna_db(const lp_radio_antenna *antenna, double azimuth_deg, double down_deg) {
  if (antenna->azimuth_deg <= 0) return antenna->gain_dbi;
  double turn = remainder(azimuth_deg, 360) / antenna->azimuth_deg;
  double nod = (down_deg - antenna->tilt_deg) / antenna->elevation_deg;
  double horizontal = fmin(12 * turn * turn, antenna->floor_db), vertical = fmin(12 * nod * nod, antenna->floor_db);
  return antenna->gain_dbi - fmin(horizontal + vertical, antenna->floor_db);
}

double lp_radio_bearing_deg(int32_t sector) {
  return 30 + 120 * (double)sector;
}

/* A point of the hexagonal grid: q steps to the east, r to the north-east. */
static lp_radio_point grid(double isd, int q, int r) {
  return (lp_radio_point){isd * (q + r / 2.0), isd * r * sqrt(3) / 2};
}

/* The copies of a layout of `rings` rings lie (2 rings + 1, -rings) steps away, and at that offset turned by multiples
 * of 60 degrees. */
static void add_images(lp_radio_layout *layout, int rings) {
  int q = 2 * rings + 1, r = -rings;
  for (int i = 1; i < LP_RADIO_IMAGES; i++) {
    layout->image[i] = grid(layout->isd, q, r);
    int turned = -r;
    r += q;
    q = turned;
  }
  layout->images = LP_RADIO_IMAGES;
}

lp_radio_layout lp_radio_layout_make(int32_t sites, double isd, bool wrap) {
  lp_radio_layout layout = {.isd = isd, .images = 1};
  int rings = sites == 19 ? 2 : sites == 7 ? 1 : 0;
  assert(sites == 1 || sites == 2 || rings > 0);
  for (int ring = 0; ring <= rings; ring++)
    for (int q = -ring; q <= ring; q++)
      for (int r = -ring; r <= ring; r++) {
        int s = -q - r, far = q * q > r * r ? q * q : r * r;
        if ((far > s * s ? far : s * s) == ring * ring) layout.site[layout.sites++] = grid(isd, q, r);
      }
  if (sites == 2) layout.site[layout.sites++] = grid(isd, 1, 0);
  if (wrap) add_images(&layout, rings);
  return layout;
}

lp_radio_point lp_radio_from_site(const lp_radio_layout *layout, int32_t site, lp_radio_point at) {
  lp_radio_point best = {0, 0};
  double least = INFINITY;
  for (int32_t i = 0; i < layout->images; i++) {
    double x = at.x - layout->site[site].x - layout->image[i].x, y = at.y - layout->site[site].y - layout->image[i].y;
    if (x * x + y * y >= least) continue;
    least = x * x + y * y;
    best = (lp_radio_point){x, y};
  }
  return best;
}
