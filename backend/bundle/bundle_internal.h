/* A bundle being written, which the files of backend/bundle/ share. */
#pragma once

#include "backend/backend.h"
#include "base/digest.h"
#include "base/map.h"

/* Of each place code, kernels and weights in two forms, besides a few of the whole, and the weights of the up to 64
 * ranks of a sharded half. */
enum { LP_BUNDLE_MOST_FILES = 8 + 6 * LP_PLACES_MAX + 64 };

/* What a bundle has for one place. */
typedef struct bundle_side {
  lp_place side;
  const lp_backend *backend;
  lp_emit_options options;
  bool present; /* the place has operators, buffers or caches */
  lp_code code;
  const char *code_path, *kernels_path, *weights_path; /* in the bundle; NULL: absent */
  int64_t ranks;                                       /* that run the half; more than 1: it is sharded */
  const char **shard_path;                             /* [ranks] of a sharded half, instead of weights_path */
  struct bundle_side *fallback;                        /* the same half as code for a processor; NULL: none */
} bundle_side;

typedef struct {
  const char *path; /* in the bundle */
  char sha256[65];
  uint32_t crc32c;
  uint64_t bytes;
} bundle_file;

/* Settings of generation from the files in the model's folder (settings.c). */
typedef struct {
  LP_VEC(int64_t) stops; /* ids that end a generation */
  int64_t context;       /* 0: unknown */
  bool samples;          /* the files give the next three */
  double temperature, top_p;
  int64_t top_k;
  LP_VEC(int64_t) start; /* of a decoder with an encoder: the tokens that it begins with */
  int64_t pad;           /* the token that fills up a text; 0: unknown */
  const char *pooling;   /* of hidden states into an embedding, as manifest.json names it; static text */
  bool normalises;       /* embeddings have length 1 */
  const char *lacks;     /* what the files ask for beyond that, which the bundle lacks; NULL: nothing. Static text */
} bundle_settings;

typedef struct {
  lp_module *module;
  const lp_bundle_request *request;
  lp_arena *arena;
  const char *folder; /* the temporary folder */
  int32_t place_count;
  const char *const *places; /* [place_count] their names */
  bundle_side side[LP_PLACES_MAX];
  bundle_file file[LP_BUNDLE_MOST_FILES];
  int32_t file_count;
  bundle_settings settings;
  char *left;            /* a folder that a killed compilation left; NULL: none */
  lp_map *kept;          /* weights files that are finished in part */
  FILE *journal;         /* of what is finished; NULL: there is none */
  lp_sha256 inputs;      /* of what determines the weights */
  uint64_t weights_done; /* bytes */
  lp_buf manifest;       /* its text; lp_bundle_manifest_end completes it */
  char contract[65];     /* SHA-256 of what lp_bundle_manifest_begin wrote */
} bundle;

/* Reads the files in `folder`, which may be NULL; the caller frees out->stops and out->start. */
void lp_bundle_read_settings(const char *folder, bundle_settings *out, lp_diag *diag);
/* Sets `pooling`, `normalises` and `lacks` from the files of sentence-transformers (pooling.c). */
void lp_bundle_read_pooling(const char *folder, bundle_settings *out, lp_diag *diag);
/* Writes the first part of manifest.json, which says how to run the code: everything except `files` and the seal. The
 * sides are described already. Sets b->contract. */
LP_MUST_USE lp_status lp_bundle_manifest_begin(bundle *b, lp_diag *diag);
/* Bytes of weights, or of those that are `stored` and not only digested. */
uint64_t lp_bundle_weight_bytes(const bundle *b, bool stored);
/* Opens the journal of weights, and takes over what is finished in b->left, which it removes. The sides are described,
 * and b->contract is set (weights.c). */
void lp_bundle_begin_weights(bundle *b, lp_diag *diag);
/* Removes the journal. */
void lp_bundle_end_weights(bundle *b);
LP_MUST_USE lp_status lp_bundle_write_weights(bundle *b, const bundle_side *side, const char *name, lp_diag *diag);
/* Adds a file of this content to those of the manifest. */
void lp_bundle_add_file(bundle *b, const char *name, const void *data, size_t size);
/* Makes a folder of the bundle, if it is not there. */
LP_MUST_USE lp_status lp_bundle_make_folder(const bundle *b, const char *name, lp_diag *diag);
void lp_bundle_report_progress(const bundle *b, const char *place, const char *what);
/* Adds `files`, which are all written, and the seal. */
void lp_bundle_manifest_end(bundle *b);
