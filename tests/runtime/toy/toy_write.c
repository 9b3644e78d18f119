/* Writes a toy bundle for shell tests:  toy_write DIR NAME PREFILL [DECODE [EXIT [PLACES]]]
 * EXIT is the number of layers after which the device has an early exit, or 0; with PLACES, 3 or 4, PREFILL and DECODE
 * are digits of places. */
#include <stdlib.h>

#include "tests/runtime/toy/toy_bundle.h"

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  const toy_placement placement = {.prefill = argv[3],
                                   .decode = argc > 4 ? argv[4] : NULL,
                                   .exits = {argc > 5 ? atoi(argv[5]) : 0},
                                   .places = argc > 6 ? atoi(argv[6]) : 0};
  free(toy_bundle_write(argv[1], argv[2], &placement));
  return 0;
}
