/* frontend/huggingface: reads a folder that transformers saved (config.json and *.safetensors) into a module. It knows
 * the files and the meaning of their keys; frontend/decoder builds the graph. */
#pragma once

#include "base/json/reader.h"
#include "frontend/decoder/rotary.h"
#include "frontend/frontend.h"

/* How quantization_config says that matrices are packed. */
typedef struct {
  enum {
    LP_PACKING_NONE,
    LP_PACKING_GPTQ,
    LP_PACKING_AWQ,
    LP_PACKING_ROWS,
    LP_PACKING_FLOAT8,
    LP_PACKING_BITSANDBYTES
  } kind;
  int64_t bits;       /* of a code: 4 or 8 */
  int64_t group;      /* the inputs that share a scale; -1: all */
  int64_t block_rows; /* FLOAT8: the outputs that share a scale; 0: one, or all */
  bool plus_one;      /* zero points are stored less one */
} lp_packing;

/* Reads quantization_config; refuses methods that are not known by name (packing.c). */
LP_MUST_USE lp_status lp_packing_read(const lp_json *root, lp_packing *out, lp_diag *diag);
/* Replaces the packed matrices of a checkpoint by codes and scales, and says what is rounded again. Those of KV_B, of
 * which the graph has parts transposed, become bf16. */
LP_MUST_USE lp_status lp_packing_apply(const lp_packing *packing, const lp_decoder *decoder, lp_weights *weights);

/* The same of bitsandbytes (bitsandbytes.c). `widened` ends the names of matrices that become bf16; NULL: none. */
LP_MUST_USE lp_status lp_bitsandbytes_apply(const lp_packing *packing, const char *widened, lp_weights *weights);

/* Replaces the matrices of experts, in another order than LP_GATES_FIRST, by parts that the decoder's frontend knows
 * (experts.c). */
LP_MUST_USE lp_status lp_huggingface_part_experts(const lp_decoder *decoder, lp_weights *weights);

/* Reads config.json into a description of the model, in `arena`. An unknown key that may affect the computation is an
 * error. `*is_part` tells whether it is the text model of a model of images and text. */
LP_MUST_USE lp_status lp_huggingface_config(const char *path, lp_arena *arena, lp_decoder *out, bool *is_part,
                                            lp_packing *packing, lp_diag *diag);

/* Lists the tensors of model.safetensors, or of the files that model.safetensors.index.json names; module->sources
 * keeps the files mapped. Names lose a prefix "model." or "transformer.", and those of a text model within a larger one
 * also "language_model." or "text_model.". With weights->absent_ok both files may be absent; the graph then assumes
 * tensors of the type `stored`. */
LP_MUST_USE lp_status lp_huggingface_checkpoint(const char *folder, lp_dtype stored, lp_weights *weights,
                                                lp_diag *diag);
/* Marks the tensors of the images' encoder as used, and tells the user that they are left out. */
void lp_huggingface_leave_out_images(lp_weights *weights);
/* Adds the tensors of the file `name` in `folder`, which module->sources keeps mapped as `source`. */
LP_MUST_USE lp_status lp_huggingface_tensors(lp_weights *w, const char *folder, const char *name, const char *source);

/* Merges the adapter into `weights`, which hold the whole checkpoint of the model `decoder`: W + scale * B A. The sum
 * keeps the type of W. Everything in the adapter is merged, or refused by name.
 * Source: Hu et al., "LoRA", eq. 3; scales of Kalajdzievski, "Rank-stabilized LoRA"; files as PEFT 0.21 saves them. */
LP_MUST_USE lp_status lp_huggingface_merge(const lp_adapter *adapter, const lp_decoder *decoder, lp_weights *weights,
                                           lp_diag *diag);

/* Creates a module of the model in `folder`, with the adapters of `options`. */
LP_MUST_USE lp_status lp_huggingface_import(const char *folder, const lp_import_options *options, lp_module **out,
                                            lp_diag *diag);
