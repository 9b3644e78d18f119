/* Declarations that the readers of manifest.json share. manifest.c reads the file and calls manifest_program.c for the
 * programs, manifest_plans.c for the plans and manifest_check.c for the relations between the parts; all of them use
 * manifest_tensor.c. Errors are reported at the JSON value that is wrong. */
#pragma once

#include "base/json/reader.h"
#include "runtime/bundle/manifest.h"

typedef struct {
  lp_arena *arena; /* receives all that `out` points to */
  lp_diag *diag;
  lp_manifest *out;
} manifest_reader;

/* Copies a string into the arena. */
LP_MUST_USE lp_status lp_manifest_text(manifest_reader *reader, const lp_json *at, const char **out);
/* Reads the name of a place, after `sides`. */
LP_MUST_USE lp_status lp_manifest_side(const manifest_reader *reader, const lp_json *at, lp_place *out);
/* Reads the members `name`, `dtype` and `shape` of the object. */
LP_MUST_USE lp_status lp_manifest_tensor(manifest_reader *reader, const lp_json *at, lp_tensor_desc *out);
/* Reads the member `programs`, after files, sides, states and ports. */
LP_MUST_USE lp_status lp_manifest_programs(manifest_reader *reader, const lp_json *root);
/* Reads the member `plans`, after the programs. */
LP_MUST_USE lp_status lp_manifest_plans(manifest_reader *reader, const lp_json *root);
/* Checks relations between the parts, after all of them (manifest_check.c). */
LP_MUST_USE lp_status lp_manifest_check(manifest_reader *reader);
