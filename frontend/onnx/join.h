/* Joins the files of a model into one graph: an encoder and its decoder, or an embedding and the decoder that reads its
 * rows. Exporters write them into separate files. */
#pragma once

#include "frontend/onnx/importer.h"

/* The names of the functions before they are joined. */
#define LP_ENCODER_FUNC "encoder"
#define LP_EMBEDDING_FUNC "embedding"

/* Checks a decoder that is imported with the encoder at `path`. Fails when the files do not lie in one folder, or the
 * decoder has no input for the encoder's states. */
LP_MUST_USE lp_status lp_encoder_check(lp_importer *decoder, const char *path);
/* Moves the operators of @encoder before those of @main, which then takes the encoder's inputs instead of its states.
 * Past inputs that nothing reads are removed. */
LP_MUST_USE lp_status lp_encoder_join(lp_module *module, lp_diag *diag);

/* Tells whether the import is for a generation by a decoder that takes rows of an embedding (`inputs_embeds`) instead
 * of token ids. */
bool lp_embedding_is_needed(const lp_importer *decoder);
/* Does the same as lp_encoder_join with @embedding: @main then takes its `input_ids` instead of `inputs_embeds`. Fails
 * when the embedding has other inputs, such as the features of an image. */
LP_MUST_USE lp_status lp_embedding_join(lp_module *module, lp_diag *diag);
