/* frontend/huggingface: reads a folder that transformers saved (config.json and *.safetensors) into a module. It knows
 * the files and the meaning of their keys; frontend/decoder builds the graph. */
#ifndef LP_HUGGINGFACE_H
#define LP_HUGGINGFACE_H

#include "frontend/decoder/rotary.h"

/* Reads config.json into a description of the model, in `arena`. An unknown key that may affect the computation is an
 * error. */
LP_MUST_USE lp_status lp_huggingface_config(const char *path, lp_arena *arena, lp_decoder *out, lp_diag *diag);

/* Lists the tensors of model.safetensors, or of the files that model.safetensors.index.json names; module->sources
 * keeps the files mapped. Names lose a prefix "model." or "transformer.". */
LP_MUST_USE lp_status lp_huggingface_checkpoint(const char *folder, lp_weights *weights, lp_diag *diag);

/* Creates a module of the model in `folder`. */
LP_MUST_USE lp_status lp_huggingface_import(const char *folder, lp_module **out, lp_diag *diag);

#endif
