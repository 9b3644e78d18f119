/* runtime/bundle: a bundle in memory, that is, its manifest, its tokenizer, and the code and weights of the sides
 * that were loaded. This room reads and checks files; it runs nothing and knows no link. Below it lie gpu/ and
 * tokenizer/. The struct is private to runtime/ and its tests; runtime.h declares what others may ask of a bundle. */
#pragma once

#include "runtime/bundle/manifest.h"
#include "runtime/bundle/verifier.h"
#include "runtime/gpu/gpu.h"
#include "runtime/runtime.h"

typedef struct {
  bool loaded;
  void *code; /* handle of the shared object, or NULL */
  lp_mapping weights;
  const char *data; /* the data section of the weights, or NULL */
  lp_gpu *gpu;      /* the code when it runs on a GPU, or NULL */
  bool sequences;   /* segments can run several sequences in one pass */
} lp_side_code;

struct lp_bundle {
  lp_arena *arena;
  char *path;
  lp_manifest manifest;
  lp_side_code side[LP_PLACES_MAX];
  lp_tokenizer *tokenizer;
  int32_t eos;            /* the tokenizer's; -1: none */
  int32_t rank;           /* of a sharded half: whose weights are loaded */
  struct lp_ranks *ranks; /* set while the ranks of a sharded half run (exec/ranks.h); or NULL */
  lp_verifier *verifier;  /* checks the weights in the background; NULL: there is nothing to check */
};

/* Waits until the weights have been compared with the checksums of the manifest, and reports damage. Must succeed
 * before a result computed from them leaves the runtime. Any thread may call it, any number of times. */
LP_MUST_USE lp_status lp_bundle_await_check(const lp_bundle *bundle, lp_diag *diag);
