/* A bundle in memory: its manifest, and the code and weights of the sides that were loaded. */
#ifndef LP_BUNDLE_H
#define LP_BUNDLE_H

#include "runtime/bundle/manifest.h"
#include "runtime/bundle/verifier.h"
#include "runtime/gpu/gpu.h"
#include "runtime/runtime.h"

typedef struct {
  bool loaded;
  void *code;
  lp_mapping weights;
  const char *data; /* the data section of the weights, or NULL */
  lp_gpu *gpu;      /* code for a GPU, or NULL */
  bool sequences;   /* segments run several sequences at once */
} lp_side_code;

struct lp_bundle {
  lp_arena *arena;
  char *path;
  lp_manifest manifest;
  lp_side_code side[LP_SIDE_COUNT];
  lp_tokenizer *tokenizer;
  struct lp_verifier *verifier; /* checks the weights behind the loader's back; NULL: nothing to check */
};

/* Waits until the content of the weights has been compared with the manifest's checksums; reports damage. */
LP_MUST_USE lp_status lp_bundle_await_check(const lp_bundle *bundle, lp_diag *diag);

#endif
