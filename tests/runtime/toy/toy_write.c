/* Writes a toy bundle for shell tests:  toy_write DIR NAME PREFILL [DECODE [EXIT]]
 * EXIT is the number of layers after which the device has an early exit. */
#include <stdlib.h>

#include "tests/runtime/toy/toy_bundle.h"

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  const toy_placement placement = {
      .prefill = argv[3], .decode = argc > 4 ? argv[4] : NULL, .exits = {argc > 5 ? atoi(argv[5]) : 0}};
  free(toy_bundle_write(argv[1], argv[2], &placement));
  return 0;
}
