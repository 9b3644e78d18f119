/* Writes hand-made bundles around the toy model, with each layer on the side that the test says. */
#ifndef LP_TOY_BUNDLE_H
#define LP_TOY_BUNDLE_H

#include "base/base.h"
#include "tests/runtime/toy/toy_model.h"

enum { TOY_STAGES = TOY_LAYERS + 2, TOY_EXITS = 2, TOY_PLACES = 4 }; /* embed, layers, head */

/* "ddccdd": the sides of embed, the layers and the head, 'd' or 'c'; 'e' goes to the cloud, which has no segment
 * there. With `places` the digit of a place, from '0'. */
typedef struct {
  const char *prefill, *decode; /* decode NULL: as prefill */
  int places;                   /* 3 or 4: "phone", "edge.1", "edge.2", "server"; 0: the device and the cloud */
  uint32_t seed;                /* of the weights; 0: 1 */
  bool no_crc;                  /* files carry only their SHA-256 */
  bool input_there;             /* the cloud reads the tokens itself when the embedding is there */
  int exits[TOY_EXITS];         /* early exits on the device after these numbers of layers, ascending; 0: none */
  bool closed;                  /* exits do not list what the layers after them read, so those cannot wait */
  bool nothing;                 /* the layers' segments do nothing */
} toy_placement;

/* A fresh folder under the temporary one, removed by toy_dir_remove. */
char *toy_dir_create(void);
void toy_dir_remove(char *dir);
/* Writes DIR/NAME and returns its path (free it). Aborts when that fails. */
char *toy_bundle_write(const char *dir, const char *name, const toy_placement *placement);
/* The manifest as text, for tests that damage it; writing it renews its seal. */
char *toy_manifest_read(const char *bundle);
void toy_manifest_write(const char *bundle, const char *text);

#endif
