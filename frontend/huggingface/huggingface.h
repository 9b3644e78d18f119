/* frontend/huggingface: reads a folder as transformers saves it, config.json and *.safetensors, into a module. It knows
 * the files and what their keys mean; the graph is frontend/decoder's. */
#ifndef LP_HUGGINGFACE_H
#define LP_HUGGINGFACE_H

#include "frontend/decoder/rotary.h"

/* config.json as a description of the model, in `arena`. A key that may change what the model computes and is not
 * known is an error. */
LP_MUST_USE lp_status lp_huggingface_config(const char *path, lp_arena *arena, lp_decoder *out, lp_diag *diag);

/* The tensors of model.safetensors, or of the files that model.safetensors.index.json names; module->sources keeps the
 * files mapped. Names lose a prefix "model." or "transformer.". */
LP_MUST_USE lp_status lp_huggingface_checkpoint(const char *folder, lp_weights *weights, lp_diag *diag);

/* A new module of the model in `folder`. */
LP_MUST_USE lp_status lp_huggingface_import(const char *folder, lp_module **out, lp_diag *diag);

#endif
