/* What manifest.c and manifest_program.c share. */
#ifndef LP_MANIFEST_INTERNAL_H
#define LP_MANIFEST_INTERNAL_H

#include "base/json/json_reader.h"
#include "base/side.h"
#include "runtime/bundle/manifest.h"

typedef struct {
  lp_arena *arena;
  lp_diag *diag;
  lp_manifest *out;
} manifest_reader;

LP_MUST_USE lp_status lp_manifest_side(const lp_json *at, lp_side *out, lp_diag *diag);
/* `name`, `dtype` and `shape` of the object. */
LP_MUST_USE lp_status lp_manifest_tensor(manifest_reader *reader, const lp_json *at, lp_tensor_desc *out);
LP_MUST_USE lp_status lp_manifest_plans(manifest_reader *reader, const lp_json *root); /* behind the programs */
LP_MUST_USE lp_status lp_manifest_programs(manifest_reader *reader, const lp_json *root);

#endif
